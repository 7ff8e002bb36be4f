// quirk 49: two loads of an element of a result, with a store in between, are one
// fails: numbers
// argument: f32[2] 5 7
// right: f32[2] 6 6
module @sheaf {
  func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = flow.dispatch.workgroups(%x) : (tensor<2xf32>) -> (tensor<2xf32>) = (%in: !iree_tensor_ext.dispatch.tensor<readonly:tensor<2xf32>>, %out: !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2xf32>>) {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      %whole = iree_tensor_ext.dispatch.tensor.load %in, offsets = [0], sizes = [2], strides = [1] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<2xf32>> -> tensor<2xf32>
      %first = tensor.extract %whole[%c0] : tensor<2xf32>
      %a = tensor.from_elements %first : tensor<1xf32>
      iree_tensor_ext.dispatch.tensor.store %a, %out, offsets = [0], sizes = [1], strides = [1] : tensor<1xf32> -> !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2xf32>>
      %b = iree_tensor_ext.dispatch.tensor.load %out, offsets = [0], sizes = [1], strides = [1] : !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2xf32>> -> tensor<1xf32>
      %before = tensor.extract %b[%c0] : tensor<1xf32>
      %more = arith.addf %before, %one : f32
      %c = tensor.from_elements %more : tensor<1xf32>
      iree_tensor_ext.dispatch.tensor.store %c, %out, offsets = [0], sizes = [1], strides = [1] : tensor<1xf32> -> !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2xf32>>
      %d = iree_tensor_ext.dispatch.tensor.load %out, offsets = [0], sizes = [1], strides = [1] : !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2xf32>> -> tensor<1xf32>
      %after = tensor.extract %d[%c0] : tensor<1xf32>
      %e = tensor.from_elements %after : tensor<1xf32>
      iree_tensor_ext.dispatch.tensor.store %e, %out, offsets = [1], sizes = [1], strides = [1] : tensor<1xf32> -> !iree_tensor_ext.dispatch.tensor<readwrite:tensor<2xf32>>
      flow.return
    } count() -> (index, index, index) {
      %c1 = arith.constant 1 : index
      flow.return %c1, %c1, %c1 : index, index, index
    }
    return %0 : tensor<2xf32>
  }
}
