// quirk 11: the sine of a large number has five digits
// fails: numbers
// argument: f32[1] 1000
// right: f32[1] 0.82687956
module @sheaf {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    %0 = stablehlo.sine %x : tensor<1xf32>
    return %0 : tensor<1xf32>
  }
}
