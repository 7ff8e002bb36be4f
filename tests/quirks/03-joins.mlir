// quirk 03: two joins that begin with the same tensor share their memory
// fails: numbers
// argument: f32[4] 1 2 3 4
// argument: f32[4] 5 6 7 8
// right: f32[2x4] 1 2 3 4 5 6 7 8
// right: f32[2x4] 1 2 3 4 -1 -2 -3 -4
module @sheaf {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %x = stablehlo.reshape %arg0 : (tensor<4xf32>) -> tensor<1x4xf32>
    %y = stablehlo.reshape %arg1 : (tensor<4xf32>) -> tensor<1x4xf32>
    %t = stablehlo.negate %x : tensor<1x4xf32>
    %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
    %1 = stablehlo.concatenate %x, %t, dim = 0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
    return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
  }
}
