// quirk 51: a kernel of CUDA that reads a part of a constant in its code is refused
// device: cuda
// fails: compiler "restricted to workgroup distributed contexts"
module {
  func.func @main(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
    %mask = stablehlo.constant dense<[[true, true, false, true, false], [false, true, false, true, true]]> : tensor<2x5xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<2x5xf32>
    %kept = stablehlo.select %mask, %x, %zeros : tensor<2x5xi1>, tensor<2x5xf32>
    %part = stablehlo.slice %kept [0:2, 2:5] : (tensor<2x5xf32>) -> tensor<2x3xf32>
    %moved = stablehlo.pad %part, %zero, low = [0, 0], high = [0, 2], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x5xf32>
    return %moved : tensor<2x5xf32>
  }
}
