// quirk 55: the transposition of the positions of a reduction of pairs loses the second result of the reduction
// fails: compiler "expected number of yield values"
module {
  func.func @main(%x: tensor<3x40x17xf32>) -> tensor<40x3xi32> {
    %at = stablehlo.iota dim = 2 : tensor<3x40x17xi32>
    %worst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %none = stablehlo.constant dense<2147483647> : tensor<i32>
    %found:2 = stablehlo.reduce(%at init: %none), (%x init: %worst) across dimensions = [2] : (tensor<3x40x17xi32>, tensor<3x40x17xf32>, tensor<i32>, tensor<f32>) -> (tensor<3x40xi32>, tensor<3x40xf32>) reducer(%i: tensor<i32>, %j: tensor<i32>) (%y: tensor<f32>, %z: tensor<f32>) {
      %better = stablehlo.compare GT, %z, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %where = stablehlo.select %better, %j, %i : tensor<i1>, tensor<i32>
      %value = stablehlo.select %better, %z, %y : tensor<i1>, tensor<f32>
      stablehlo.return %where, %value : tensor<i32>, tensor<f32>
    }
    %turned = stablehlo.transpose %found#0, dims = [1, 0] : (tensor<3x40xi32>) -> tensor<40x3xi32>
    return %turned : tensor<40x3xi32>
  }
}
