// quirk 27: the position of the minimum is that of the maximum
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: numbers
// argument: f32[8] 3 7 1 4 9 2 6 5
// right: i32[] 4
// right: i32[] 2
module @sheaf {
  func.func @main(%arg0: tensor<8xf32>) -> (tensor<i32>, tensor<i32>) {
    %0, %1 = flow.dispatch.workgroups(%arg0) : (tensor<8xf32>) -> (tensor<i32>, tensor<i32>) = (%in0: !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>>, %out0: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<i32>>, %out1: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<i32>>) {
      %x0 = iree_tensor_ext.dispatch.tensor.load %in0, offsets = [0], sizes = [8], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<8xf32>> -> tensor<8xf32>
      %i0 = stablehlo.iota dim = 0 : tensor<8xi32>
      %w0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %l0 = stablehlo.constant dense<2147483647> : tensor<i32>
      %y0, %v0 = stablehlo.reduce(%i0 init: %l0), (%x0 init: %w0) across dimensions = [0] : (tensor<8xi32>, tensor<8xf32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>) reducer(%at: tensor<i32>, %i: tensor<i32>) (%best: tensor<f32>, %x: tensor<f32>) {
        %better = stablehlo.compare GT, %x, %best, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %where = stablehlo.select %better, %i, %at : tensor<i1>, tensor<i32>
        %value = stablehlo.select %better, %x, %best : tensor<i1>, tensor<f32>
        stablehlo.return %where, %value : tensor<i32>, tensor<f32>
      }
      %i1 = stablehlo.iota dim = 0 : tensor<8xi32>
      %w1 = stablehlo.constant dense<0x7F800000> : tensor<f32>
      %l1 = stablehlo.constant dense<2147483647> : tensor<i32>
      %y1, %v1 = stablehlo.reduce(%i1 init: %l1), (%x0 init: %w1) across dimensions = [0] : (tensor<8xi32>, tensor<8xf32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>) reducer(%at: tensor<i32>, %i: tensor<i32>) (%best: tensor<f32>, %x: tensor<f32>) {
        %better = stablehlo.compare LT, %x, %best, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %where = stablehlo.select %better, %i, %at : tensor<i1>, tensor<i32>
        %value = stablehlo.select %better, %x, %best : tensor<i1>, tensor<f32>
        stablehlo.return %where, %value : tensor<i32>, tensor<f32>
      }
      iree_tensor_ext.dispatch.tensor.store %y0, %out0, offsets = [], sizes = [], strides = [] : tensor<i32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<i32>>
      iree_tensor_ext.dispatch.tensor.store %y1, %out1, offsets = [], sizes = [], strides = [] : tensor<i32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<i32>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0, %1 : tensor<i32>, tensor<i32>
  }
}
