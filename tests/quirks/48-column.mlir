// quirk 48: a column of a matrix in another shape is not reversed
// fails: compiler "unrealized_conversion_cast"
module @sheaf {
  func.func @main(%x: tensor<1x100x64xf32>) -> tensor<100x1xf32> {
    %0 = stablehlo.slice %x [0:1, 0:100, 0:1] : (tensor<1x100x64xf32>) -> tensor<1x100x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x100x1xf32>) -> tensor<100x1xf32>
    %2 = stablehlo.reverse %1, dims = [0] : tensor<100x1xf32>
    return %2 : tensor<100x1xf32>
  }
}
