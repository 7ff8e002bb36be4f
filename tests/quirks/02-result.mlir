// quirk 02: an update writes over a value that is a result, too
// fails: numbers
// argument: f32[4x4] 1 2 3 4 ...
// argument: f32[4x4] 5 6 7 8 ...
// argument: f32[1x4] 9 9 9 9
// argument: i32[] 2
// right: f32[4x4] -5 -6 -7 -8 ...
// right: f32[4x4] -1 -2 -3 -4 -1 -2 -3 -4 9 9 9 9 -1 -2 -3 -4
// right: f32[4x4] -1 -2 -3 -4 ...
module @sheaf {
  func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>, %row: tensor<1x4xf32>, %i: tensor<i32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
    %0 = stablehlo.constant dense<0> : tensor<i32>
    %x = stablehlo.negate %a : tensor<4x4xf32>
    %y = stablehlo.negate %b : tensor<4x4xf32>
    %1 = stablehlo.dynamic_update_slice %x, %row, %i, %0 : (tensor<4x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
    return %y, %1, %x : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
  }
}
