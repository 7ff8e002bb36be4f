// quirk 09: powers of negative numbers are not numbers
// fails: numbers
// argument: f32[2] -2 -2
// argument: f32[2] 3 2
// right: f32[2] -8 4
module @sheaf {
  func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.power %x, %y : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
