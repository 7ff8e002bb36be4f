// quirk 46: booleans that become floats and are factors of a product of many matrices
// fails: numbers
// argument: f32[2x2x3] 1 2 3 4 5 6 1 0 2 3 1 1
// argument: bool[2x3] 1 0 1 0 1 1
// right: f32[2x2] 4 10 2 2
module @sheaf {
  func.func @main(%x: tensor<2x2x3xf32>, %y: tensor<2x3xi1>) -> tensor<2x2xf32> {
    %0 = stablehlo.convert %y : (tensor<2x3xi1>) -> tensor<2x3xf32>
    %1 = stablehlo.dot_general %x, %0, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
    return %1 : tensor<2x2xf32>
  }
}
