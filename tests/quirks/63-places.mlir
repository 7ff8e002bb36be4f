// quirk 63: both results are the second value in its place
// flags: --iree-dispatch-creation-enable-aggressive-fusion=true
// fails: numbers
// argument: f32[3] 1 2 3
// right: f32[4] -6 -12 -18 0
// right: f32[4] 0 6 12 18
module {
  func.func @main(%x: tensor<3xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %number = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %each = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %scaled = stablehlo.multiply %each, %x : tensor<3xf32>
    %negative = stablehlo.negate %scaled : tensor<3xf32>
    %first = stablehlo.pad %negative, %zero, low = [0], high = [1], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<4xf32>
    %second = stablehlo.pad %scaled, %zero, low = [1], high = [0], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<4xf32>
    return %first, %second : tensor<4xf32>, tensor<4xf32>
  }
}
