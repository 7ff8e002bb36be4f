// quirk 39: a product of many matrices, which is masked
// flags: --iree-opt-data-tiling=true
// fails: compiler "One or more operations with large vector sizes"
// argument: f32[8x4x64x32] 1 ...
// argument: f32[8x4x32x64] 1 ...
// argument: bool[8x4x64x64] 1 ...
module @sheaf {
  func.func @main(%0: tensor<8x4x64x32xf32>, %1: tensor<8x4x32x64xf32>, %m: tensor<8x4x64x64xi1>) -> tensor<8x4x64x64xf32> {
    %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<8x4x64x32xf32>, tensor<8x4x32x64xf32>) -> tensor<8x4x64x64xf32>
    %58 = stablehlo.constant dense<0xFF167699> : tensor<8x4x64x64xf32>
    %59 = stablehlo.select %m, %2, %58 : (tensor<8x4x64x64xi1>, tensor<8x4x64x64xf32>, tensor<8x4x64x64xf32>) -> tensor<8x4x64x64xf32>
    return %59 : tensor<8x4x64x64xf32>
  }
}
