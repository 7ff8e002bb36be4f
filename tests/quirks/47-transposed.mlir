// quirk 47: rows divided by their sums, and the transpose added
// fails: numbers
// argument: f32[3x3] 1 2 3 4 5 6 7 8 9
// right: f32[3x3] 14 27 40 27 40 53 40 53 66
module @sheaf {
  func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
    %r = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>) -> tensor<3x3xf32>
    %y = stablehlo.add %x, %r : tensor<3x3xf32>
    %t = stablehlo.transpose %y, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %u = stablehlo.add %y, %t : tensor<3x3xf32>
    return %u : tensor<3x3xf32>
  }
}
