// quirk 16: rows that are one number throughout are taken for that number alone, and the sum is of two
// fails: numbers
// argument: i32[9] 0 1 2 0 1 2 0 1 2
// right: f32[] 9
module @sheaf {
  func.func @main(%i: tensor<9xi32>) -> tensor<f32> {
    %x = stablehlo.constant dense<1.0> : tensor<3xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<3xf32>, tensor<9xi32>) -> tensor<9xf32>
    %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<9xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
}
