// quirk 64: a product of 16 KiB of elementary products, beside its sum
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: compiler "large vector sizes"
module @sheaf {
  func.func @main(%x: tensor<64x4xf32>, %y: tensor<4x16xf32>) -> tensor<64xf32> {
    %0 = flow.dispatch.workgroups(%x, %y) : (tensor<64x4xf32>, tensor<4x16xf32>) -> (tensor<64xf32>) = (%left: !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x4xf32>>, %right: !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x16xf32>>, %out: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64xf32>>) {
      %a = iree_tensor_ext.dispatch.tensor.load %left, offsets = [0, 0], sizes = [64, 4], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<64x4xf32>> -> tensor<64x4xf32>
      %b = iree_tensor_ext.dispatch.tensor.load %right, offsets = [0, 0], sizes = [4, 16], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<4x16xf32>> -> tensor<4x16xf32>
      %product = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x4xf32>, tensor<4x16xf32>) -> tensor<64x16xf32>
      %cell = memref.alloca() : memref<64x16xf32>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %rows = arith.constant 64 : index
      %columns = arith.constant 16 : index
      scf.for %i = %c0 to %rows step %c1 {
        scf.for %j = %c0 to %columns step %c1 {
          %element = tensor.extract %product[%i, %j] : tensor<64x16xf32>
          memref.store %element, %cell[%i, %j] : memref<64x16xf32>
        }
      }
      %own = bufferization.to_tensor %cell restrict : memref<64x16xf32> to tensor<64x16xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %sums = stablehlo.reduce(%own init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x16xf32>, tensor<f32>) -> tensor<64xf32>
      iree_tensor_ext.dispatch.tensor.store %sums, %out, offsets = [0], sizes = [64], strides = [1] : tensor<64xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<64xf32>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0 : tensor<64xf32>
  }
}
