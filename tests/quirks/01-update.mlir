// quirk 01: an update writes over an argument
// fails: arguments
// argument: f32[4] 1 2 3 4
// argument: f32[1] 9
// right: f32[4] 9 2 3 4
module @sheaf {
  func.func @main(%x: tensor<4xf32>, %y: tensor<1xf32>) -> tensor<4xf32> {
    %i = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_update_slice %x, %y, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
