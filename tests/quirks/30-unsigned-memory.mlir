// quirk 30: an operand of unsigned integers
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: compiler "failed to legalize operation 'flow.dispatch.workgroups'"
// argument: u32[4] 1 1 1 1
module @sheaf {
  func.func @main(%arg: tensor<4xui32>) -> tensor<4xui32> {
    %0 = flow.dispatch.workgroups(%arg) : (tensor<4xui32>) -> (tensor<4xui32>) = (%in: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xui32>>, %out: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xui32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %in, offsets = [0], sizes = [4], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4xui32>> -> tensor<4xui32>
      %y = stablehlo.add %x, %x : tensor<4xui32>
      iree_tensor_ext.dispatch.tensor.store %y, %out, offsets = [0], sizes = [4], strides = [1] : tensor<4xui32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xui32>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0 : tensor<4xui32>
  }
}
