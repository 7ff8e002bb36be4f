// quirk 52: a sum of negatives along a long axis is refused for CUDA
// device: cuda
// fails: compiler "failed to get neutral element for reduction"
module {
  func.func @main(%x: tensor<64x1024xf32>) -> tensor<64xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %negative = stablehlo.negate %x : tensor<64x1024xf32>
    %sum = stablehlo.reduce(%negative init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x1024xf32>, tensor<f32>) -> tensor<64xf32>
    return %sum : tensor<64xf32>
  }
}
