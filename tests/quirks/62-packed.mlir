// quirk 62: the rows of the left operand are multiplied by those of others
// flags: --iree-opt-data-tiling=true
// fails: numbers
// argument: f32[2x7x4] 1 ...
// argument: f32[2x7] 1 2 3 4 5 6 7 8 9 10 11 12 13 14
// argument: f32[2x4x8] 1 ...
// right: f32[2x7x8] 4 4 4 4 4 4 4 4 8 8 8 8 8 8 8 8 12 12 12 12 12 12 12 12 16 16 16 16 16 16 16 16 20 20 20 20 20 20 20 20 24 24 24 24 24 24 24 24 28 28 28 28 28 28 28 28 32 32 32 32 32 32 32 32 36 36 36 36 36 36 36 36 40 40 40 40 40 40 40 40 44 44 44 44 44 44 44 44 48 48 48 48 48 48 48 48 52 52 52 52 52 52 52 52 56 56 56 56 56 56 56 56
module {
  func.func @main(%x: tensor<2x7x4xf32>, %rows: tensor<2x7xf32>, %y: tensor<2x4x8xf32>) -> tensor<2x7x8xf32> {
    %each = stablehlo.broadcast_in_dim %rows, dims = [0, 1] : (tensor<2x7xf32>) -> tensor<2x7x4xf32>
    %scaled = stablehlo.multiply %x, %each : tensor<2x7x4xf32>
    %product = stablehlo.dot_general %scaled, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x7x4xf32>, tensor<2x4x8xf32>) -> tensor<2x7x8xf32>
    return %product : tensor<2x7x8xf32>
  }
}
