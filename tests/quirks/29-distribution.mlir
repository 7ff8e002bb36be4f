// quirk 29: a kernel that is distributed to workgroups writes a part of its results
// fails: numbers
// right: f32[4x4] 0.25 ...
// right: f32[4] 4 8 12 16
// argument: f32[4x4] 1 2 3 4 ...
module @sheaf {
  func.func @main(%arg0: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
    %0, %1 = flow.dispatch.workgroups(%arg0) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) = (%in0: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x4xf32>>, %out0: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x4xf32>>, %out1: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>) {
      %x0 = iree_tensor_ext.dispatch.tensor.load %in0, offsets = [0, 0], sizes = [4, 4], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x4xf32>> -> tensor<4x4xf32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %y1 = stablehlo.reduce(%x0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
      %b = stablehlo.broadcast_in_dim %y1, dims = [0] : (tensor<4xf32>) -> tensor<4x4xf32>
      %y0 = stablehlo.divide %x0, %b : tensor<4x4xf32>
      iree_tensor_ext.dispatch.tensor.store %y0, %out0, offsets = [0, 0], sizes = [4, 4], strides = [1, 1] : tensor<4x4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x4xf32>>
      iree_tensor_ext.dispatch.tensor.store %y1, %out1, offsets = [0], sizes = [4], strides = [1] : tensor<4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4xf32>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0, %1 : tensor<4x4xf32>, tensor<4xf32>
  }
}
