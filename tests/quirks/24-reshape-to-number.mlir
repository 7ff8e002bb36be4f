// quirk 24: a reshape to no axes
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: compiler "expected mixed sizes rank to match mixed strides rank"
// argument: f32[1x1] 3
module @sheaf {
  func.func @main(%arg: tensor<1x1xf32>) -> tensor<f32> {
    %0 = flow.dispatch.workgroups(%arg) : (tensor<1x1xf32>) -> (tensor<f32>) = (%in: !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x1xf32>>, %out: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %in, offsets = [0, 0], sizes = [1, 1], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<1x1xf32>> -> tensor<1x1xf32>
      %a = stablehlo.tanh %x : tensor<1x1xf32>
      %b = stablehlo.reshape %a : (tensor<1x1xf32>) -> tensor<f32>
      %y = stablehlo.negate %b : tensor<f32>
      iree_tensor_ext.dispatch.tensor.store %y, %out, offsets = [], sizes = [], strides = [] : tensor<f32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0 : tensor<f32>
  }
}
