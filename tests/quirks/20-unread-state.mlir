// quirk 20: a state that the condition alone reads
// fails: compiler "region branch point has 4 operands, but region successor needs 2 inputs"
// argument: f32[3] 1 2 3
// right: f32[3] 0.000244140625 0.00048828125 0.000732421875
module @sheaf {
  func.func @main(%v0: tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %r:2 = stablehlo.while(%v = %v0, %e = %one) : tensor<3xf32>, tensor<f32>
    cond {
      %c = stablehlo.constant dense<1.0e-3> : tensor<f32>
      %p = stablehlo.compare GT, %e, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %h = stablehlo.constant dense<0.5> : tensor<3xf32>
      %n = stablehlo.multiply %v, %h : tensor<3xf32>
      %s = stablehlo.reduce(%v init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %n, %s : tensor<3xf32>, tensor<f32>
    }
    return %r#0, %r#1 : tensor<3xf32>, tensor<f32>
  }
}
