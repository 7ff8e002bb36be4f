// quirk 06: a number is not rounded to bf16
// fails: numbers
// argument: f32[1] 1.001
// right: f32[1] 1
module @sheaf {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    %0 = stablehlo.convert %x : (tensor<1xf32>) -> tensor<1xbf16>
    %1 = stablehlo.convert %0 : (tensor<1xbf16>) -> tensor<1xf32>
    return %1 : tensor<1xf32>
  }
}
