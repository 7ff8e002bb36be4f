// quirk 12: a function of doubles is one of a library that is not there
// fails: compiler "undefined symbol: tanh"
// argument: f64[1] 1
// right: f64[1] 0.7615941559557649
module @sheaf {
  func.func @main(%x: tensor<1xf64>) -> tensor<1xf64> {
    %0 = stablehlo.tanh %x : tensor<1xf64>
    return %0 : tensor<1xf64>
  }
}
