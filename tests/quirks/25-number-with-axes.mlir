// quirk 25: a number gets an axis, and is padded
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: compiler "'func.func' op failed on workgroup distribution verification"
// argument: f32[] 1
module @sheaf {
  func.func @main(%arg0: tensor<f32>) -> (tensor<4xf32>) {
    %0 = flow.dispatch.workgroups(%arg0) : (tensor<f32>) -> (tensor<4xf32>) = (%in0: !iree_tensor_ext.dispatch.tensor<readonly:tensor<f32>>, %out0: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x0 = iree_tensor_ext.dispatch.tensor.load %in0, offsets = [], sizes = [], strides = [] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<f32>> -> tensor<f32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %t = stablehlo.sqrt %x0 : tensor<f32>
      %r = stablehlo.reshape %t : (tensor<f32>) -> tensor<1xf32>
      %y0 = stablehlo.pad %r, %z, low = [1], high = [2], interior = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<4xf32>
      iree_tensor_ext.dispatch.tensor.store %y0, %out0, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0 : tensor<4xf32>
  }
}
