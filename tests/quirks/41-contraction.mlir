// quirk 41: a product is not rounded before it is added
// fails: numbers
// argument: f32[1] 1.000244140625
// argument: f32[1] -1.00048828125
// right: f32[1] 0
module @sheaf {
  func.func @main(%x: tensor<1xf32>, %y: tensor<1xf32>) -> tensor<1xf32> {
    %0 = stablehlo.multiply %x, %x : tensor<1xf32>
    %1 = stablehlo.add %0, %y : tensor<1xf32>
    %s = stablehlo.constant dense<16777216.0> : tensor<1xf32>
    %2 = stablehlo.multiply %1, %s : tensor<1xf32>
    return %2 : tensor<1xf32>
  }
}
