// quirk 04: a million additions in one chain lose digits
// fails: numbers
// argument: f32[1000000] 0.1 ...
// right: f32[] 100000
module @sheaf {
  func.func @main(%x: tensor<1000000xf32>) -> tensor<f32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<1000000xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
