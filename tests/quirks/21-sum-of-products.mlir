// quirk 21: the sum over two axes of a product, one factor of which repeats a tensor
// fails: compiler "invalid accumulator/result vector shape"
// argument: f32[4x8x8] 1 ...
// argument: f32[4x8] 1 ...
module @sheaf {
  func.func @main(%x: tensor<4x8x8xf32>, %y: tensor<4x8xf32>) -> tensor<4xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %y, dims = [0, 2] : (tensor<4x8xf32>) -> tensor<4x8x8xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<4x8x8xf32>
    %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1, 2] : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
