// quirk 19: the first state of a loop is used beside its results
// fails: compiler "circular dependency: input operation uses partition output"
// argument: f32[4] 1 2 3 4
module @sheaf {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %u = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<3> : tensor<i32>
    %t = stablehlo.tanh %a : tensor<4xf32>
    %r:2 = stablehlo.while(%i = %z, %p = %t) : tensor<i32>, tensor<4xf32>
    cond {
      %lt = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %lt : tensor<i1>
    } do {
      %p1 = stablehlo.tanh %p : tensor<4xf32>
      %i1 = stablehlo.add %i, %u : tensor<i32>
      stablehlo.return %i1, %p1 : tensor<i32>, tensor<4xf32>
    }
    %s = stablehlo.add %r#1, %t : tensor<4xf32>
    %v = stablehlo.sine %t : tensor<4xf32>
    %w = stablehlo.add %s, %v : tensor<4xf32>
    return %s, %w : tensor<4xf32>, tensor<4xf32>
  }
}
