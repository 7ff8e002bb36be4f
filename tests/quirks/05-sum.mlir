// quirk 05: a sum of ones does not get beyond 2048
// fails: numbers
// argument: f32[4096] 1 ...
// right: f32[] 4096
module @sheaf {
  func.func @main(%arg: tensor<4096xf32>) -> tensor<f32> {
    %x = stablehlo.convert %arg : (tensor<4096xf32>) -> tensor<4096xf16>
    %z = stablehlo.constant dense<0.0> : tensor<f16>
    %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4096xf16>, tensor<f16>) -> tensor<f16>
    %1 = stablehlo.convert %0 : (tensor<f16>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}
