// quirk 61: a product over an axis of extent 0 crashes the compiler
// fails: compiler "signal 8"
module {
  func.func @main(%a: tensor<3x0xf32>, %b: tensor<0x4xf32>) -> tensor<3x4xf32> {
    %product = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x0xf32>, tensor<0x4xf32>) -> tensor<3x4xf32>
    return %product : tensor<3x4xf32>
  }
}
