// quirk 15: an index out of bounds reads what lies behind the tensor
// fails: numbers
// argument: f32[16] 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
// argument: i32[] 9
// right: f32[] 4
module @sheaf {
  func.func @main(%arg: tensor<16xf32>, %i: tensor<i32>) -> tensor<f32> {
    %x = stablehlo.slice %arg [0:4] : (tensor<16xf32>) -> tensor<4xf32>
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 0>, slice_sizes = array<i64: 1>}> : (tensor<4xf32>, tensor<i32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
