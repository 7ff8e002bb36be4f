// quirk 47: the sums of all pairs of rows
// fails: numbers
// argument: f32[3x2] 1 2 3 4 5 6
// right: f32[3x3] 6 10 14 10 14 18 14 18 22
module @sheaf {
  func.func @main(%x: tensor<3x2xf32>) -> tensor<3x3xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x2xf32>, tensor<f32>) -> tensor<3xf32>
    %rows = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>) -> tensor<3x3xf32>
    %columns = stablehlo.broadcast_in_dim %s, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
    %u = stablehlo.add %rows, %columns : tensor<3x3xf32>
    return %u : tensor<3x3xf32>
  }
}
