// quirk 44: the sum of two products, the left factor of one of which is computed
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: numbers
// argument: f32[3x4] 1 2 3 4 -1 2 0 1 3 -2 1 2
// argument: f32[3x4] 1 0 2 -1 3 1 2 2 -1 4 1 0
// argument: f32[3x4] 2 1 0 1 1 -2 3 0 2 2 -1 1
// argument: f32[3x4] 1 1 -1 2 0 3 1 1 -2 1 0 2
// argument: f32[3x4] 3 0 1 2 -1 1 2 0 1 2 1 -1
// right: f32[4x4] 3 19 -5 8 11 1 8 9 7 11 13 5 11 10 11 1
module @sheaf {
  func.func @main(%arg_z: tensor<3x4xf32>, %arg_y: tensor<3x4xf32>, %arg_v: tensor<3x4xf32>, %arg_w: tensor<3x4xf32>, %arg_x: tensor<3x4xf32>) -> (tensor<4x4xf32>) {
    %result = flow.dispatch.workgroups(%arg_z, %arg_y, %arg_v, %arg_w, %arg_x) : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> (tensor<4x4xf32>) = (%in_z: !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>>, %in_y: !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>>, %in_v: !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>>, %in_w: !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>>, %in_x: !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>>, %out: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x4xf32>>) {
      %z = iree_tensor_ext.dispatch.tensor.load %in_z, offsets = [0, 0], sizes = [3, 4], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>> -> tensor<3x4xf32>
      %y = iree_tensor_ext.dispatch.tensor.load %in_y, offsets = [0, 0], sizes = [3, 4], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>> -> tensor<3x4xf32>
      %v = iree_tensor_ext.dispatch.tensor.load %in_v, offsets = [0, 0], sizes = [3, 4], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>> -> tensor<3x4xf32>
      %w = iree_tensor_ext.dispatch.tensor.load %in_w, offsets = [0, 0], sizes = [3, 4], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>> -> tensor<3x4xf32>
      %x = iree_tensor_ext.dispatch.tensor.load %in_x, offsets = [0, 0], sizes = [3, 4], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<3x4xf32>> -> tensor<3x4xf32>
      %computed = stablehlo.add %v, %w : tensor<3x4xf32>
      %product = stablehlo.dot_general %computed, %x, contracting_dims = [0] x [0] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
      %turned = stablehlo.transpose %product, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %other = stablehlo.dot_general %y, %z, contracting_dims = [0] x [0] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
      %otherturned = stablehlo.transpose %other, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %sum = stablehlo.add %turned, %otherturned : tensor<4x4xf32>
      %cell = memref.alloca() : memref<4x4xf32>
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %n0 = arith.constant 4 : index
      %n1 = arith.constant 4 : index
      scf.for %i0 = %zero to %n0 step %one {
        scf.for %i1 = %zero to %n1 step %one {
          %element = tensor.extract %sum[%i0, %i1] : tensor<4x4xf32>
          memref.store %element, %cell[%i0, %i1] : memref<4x4xf32>
        }
      }
      %own = bufferization.to_tensor %cell restrict : memref<4x4xf32> to tensor<4x4xf32>
      iree_tensor_ext.dispatch.tensor.store %own, %out, offsets = [0, 0], sizes = [4, 4], strides = [1, 1] : tensor<4x4xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<4x4xf32>>
      flow.return
    } count() -> (index, index, index) {
      %n = arith.constant 1 : index
      flow.return %n, %n, %n : index, index, index
    }
    return %result : tensor<4x4xf32>
  }
}
