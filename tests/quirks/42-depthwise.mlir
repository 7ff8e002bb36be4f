// quirk 42: a convolution in which each channel is a group
// flags: --iree-global-opt-use-im2col-for-convs
// fails: compiler "'linalg.batch_matvec' op inferred input/output operand #1 has shape's dimension #0 to be 8, but found 4"
// argument: f32[2x6x6x4] 1 ...
// argument: f32[3x3x1x4] 1 ...
module @sheaf {
  func.func @main(%x: tensor<2x6x6x4xf32>, %k: tensor<3x3x1x4xf32>) -> tensor<2x4x4x4xf32> {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x6x6x4xf32>, tensor<3x3x1x4xf32>) -> tensor<2x4x4x4xf32>
    return %0 : tensor<2x4x4x4xf32>
  }
}
