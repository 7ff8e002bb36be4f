// quirk 26: booleans that are padded
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: compiler "'tensor.pad' op expected yield type to match shape element type"
// argument: bool[4] 1 1 1 1
module @sheaf {
  func.func @main(%arg: tensor<4xi1>) -> tensor<6xi1> {
    %0 = flow.dispatch.workgroups(%arg) : (tensor<4xi1>) -> (tensor<6xi1>) = (%in: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xi1>>, %out: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<6xi1>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %in, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xi1>> -> tensor<4xi1>
      %f = stablehlo.constant dense<false> : tensor<i1>
      %y = stablehlo.pad %x, %f, low = [1], high = [1], interior = [0] : (tensor<4xi1>, tensor<i1>) -> tensor<6xi1>
      iree_tensor_ext.dispatch.tensor.store %y, %out, offsets = [0], sizes = [6], strides = [1] : tensor<6xi1> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<6xi1>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0 : tensor<6xi1>
  }
}
