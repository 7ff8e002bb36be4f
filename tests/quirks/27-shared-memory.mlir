// quirk 27: three sums by rows, of which one is another one
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: numbers
// argument: f32[6x3] 1 2 3 4 -5 6 7 8 -9 0 1 -1 2 2 2 -3 5 1
// right: f32[6] 6 5 6 0 6 3
// right: f32[6] -6 -5 -6 0 -6 -3
// right: f32[6] 14 77 194 2 12 35
module @sheaf {
  func.func @main(%arg0: tensor<6x3xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
    %0, %1, %2 = flow.dispatch.workgroups(%arg0) : (tensor<6x3xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) = (%in0: !iree_tensor_ext.dispatch.tensor<readonly:tensor<6x3xf32>>, %out0: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<6xf32>>, %out1: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<6xf32>>, %out2: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<6xf32>>) {
      %x0 = iree_tensor_ext.dispatch.tensor.load %in0, offsets = [0, 0], sizes = [6, 3], strides = [1, 1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<6x3xf32>> -> tensor<6x3xf32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %x1 = stablehlo.negate %x0 : tensor<6x3xf32>
      %x2 = stablehlo.multiply %x0, %x0 : tensor<6x3xf32>
      %y0 = stablehlo.reduce(%x0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<6x3xf32>, tensor<f32>) -> tensor<6xf32>
      %y1 = stablehlo.reduce(%x1 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<6x3xf32>, tensor<f32>) -> tensor<6xf32>
      %y2 = stablehlo.reduce(%x2 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<6x3xf32>, tensor<f32>) -> tensor<6xf32>
      iree_tensor_ext.dispatch.tensor.store %y0, %out0, offsets = [0], sizes = [6], strides = [1] : tensor<6xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<6xf32>>
      iree_tensor_ext.dispatch.tensor.store %y1, %out1, offsets = [0], sizes = [6], strides = [1] : tensor<6xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<6xf32>>
      iree_tensor_ext.dispatch.tensor.store %y2, %out2, offsets = [0], sizes = [6], strides = [1] : tensor<6xf32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<6xf32>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0, %1, %2 : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
  }
}
