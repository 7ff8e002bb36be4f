// quirk 38: a result takes the place of an argument before its sum is computed
// fails: numbers
// argument: f32[4] 1 2 3 4
// right: f32[4] -1 -2 -3 -4
// right: f32[] 10
module @sheaf {
  func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<4xf32>, tensor<f32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.negate %x : tensor<4xf32>
    %b = stablehlo.optimization_barrier %0 : tensor<4xf32>
    %1 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %0, %1 : tensor<4xf32>, tensor<f32>
  }
}
