// quirk 46: unsigned integers of 8 bits that become floats and are factors of a product
// fails: numbers
// argument: f32[2x2] 1 2 3 4
// argument: u8[2x2] 200 1 2 255
// right: f32[2x2] 204 511 608 1023
module @sheaf {
  func.func @main(%x: tensor<2x2xf32>, %y: tensor<2x2xui8>) -> tensor<2x2xf32> {
    %0 = stablehlo.convert %y : (tensor<2x2xui8>) -> tensor<2x2xf32>
    %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %1 : tensor<2x2xf32>
  }
}
