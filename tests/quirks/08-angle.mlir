// quirk 08: the angle of the origin is not a number
// fails: numbers
// argument: f32[2] 0 1
// argument: f32[2] 0 1
// right: f32[2] 0 0.78539816
module @sheaf {
  func.func @main(%y: tensor<2xf32>, %x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.atan2 %y, %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
