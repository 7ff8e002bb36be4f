// quirk 63: the sums of columns are twice what they are
// flags: --iree-dispatch-creation-enable-aggressive-fusion=true
// fails: numbers
// argument: f32[2x3] 1 2 3 4 5 6
// right: f32[3] 5 7 9
// right: f32[] -21
module {
  func.func @main(%x: tensor<2x3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %sums = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %each = stablehlo.broadcast_in_dim %sums, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %rest = stablehlo.subtract %x, %each : tensor<2x3xf32>
    %sum = stablehlo.reduce(%rest init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    return %sums, %sum : tensor<3xf32>, tensor<f32>
  }
}
