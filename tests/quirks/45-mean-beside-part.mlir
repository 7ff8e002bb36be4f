// quirk 45: the mean of a vector, beside its first element
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: numbers
// argument: f32[12] 1 2 3 4 5 6 7 8 9 10 11 12
// right: f32[] 7.5
// right: f32[] 2
module @sheaf {
  func.func @main(%arg: tensor<12xf32>) -> (tensor<f32>, tensor<f32>) {
    %mean, %first = flow.dispatch.workgroups(%arg) : (tensor<12xf32>) -> (tensor<f32>, tensor<f32>) = (%in: !iree_tensor_ext.dispatch.tensor<readonly:tensor<12xf32>>, %out0: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>, %out1: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>) {
      %x = iree_tensor_ext.dispatch.tensor.load %in, offsets = [0], sizes = [12], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<12xf32>> -> tensor<12xf32>
      %ones = stablehlo.constant dense<1.0> : tensor<12xf32>
      %y = stablehlo.add %x, %ones : tensor<12xf32>
      %none = stablehlo.constant dense<0.0> : tensor<f32>
      %sum = stablehlo.reduce(%y init: %none) applies stablehlo.add across dimensions = [0] : (tensor<12xf32>, tensor<f32>) -> tensor<f32>
      %count = stablehlo.constant dense<12.0> : tensor<f32>
      %quotient = stablehlo.divide %sum, %count : tensor<f32>
      %part = stablehlo.slice %y [0:1] : (tensor<12xf32>) -> tensor<1xf32>
      %element = stablehlo.reduce(%part init: %none) applies stablehlo.add across dimensions = [0] : (tensor<1xf32>, tensor<f32>) -> tensor<f32>
      %cell0 = memref.alloca() : memref<f32>
      %cell1 = memref.alloca() : memref<f32>
      %value0 = tensor.extract %quotient[] : tensor<f32>
      memref.store %value0, %cell0[] : memref<f32>
      %own0 = bufferization.to_tensor %cell0 restrict : memref<f32> to tensor<f32>
      iree_tensor_ext.dispatch.tensor.store %own0, %out0, offsets = [], sizes = [], strides = [] : tensor<f32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>
      %value1 = tensor.extract %element[] : tensor<f32>
      memref.store %value1, %cell1[] : memref<f32>
      %own1 = bufferization.to_tensor %cell1 restrict : memref<f32> to tensor<f32>
      iree_tensor_ext.dispatch.tensor.store %own1, %out1, offsets = [], sizes = [], strides = [] : tensor<f32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>
      flow.return
    } count() -> (index, index, index) {
      %n = arith.constant 1 : index
      flow.return %n, %n, %n : index, index, index
    }
    return %mean, %first : tensor<f32>, tensor<f32>
  }
}
