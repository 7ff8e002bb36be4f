// quirk 10: unsigned integers cannot be reversed
// fails: compiler "failed to legalize operation 'linalg.generic'"
// argument: u32[2] 1 2
// right: u32[2] 2 1
module @sheaf {
  func.func @main(%x: tensor<2xui32>) -> tensor<2xui32> {
    %0 = stablehlo.reverse %x, dims = [0] : tensor<2xui32>
    return %0 : tensor<2xui32>
  }
}
