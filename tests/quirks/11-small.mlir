// quirk 11: the sine of a small negative number has five digits
// fails: numbers
// argument: f32[1] -0.001
// right: f32[1] -9999.9983
module @sheaf {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    %0 = stablehlo.sine %x : tensor<1xf32>
    %1 = stablehlo.constant dense<1.0e7> : tensor<1xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<1xf32>
    return %2 : tensor<1xf32>
  }
}
