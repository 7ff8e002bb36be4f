// quirk 65: the next value of a state is that of another one
// threads: all
// fails: call "transient buffer has not been committed"
// argument: f32[3] 0.5 ...
// right: f32[3] 2.603196665107867 ...
// right: f32[3] -0.06980268005052637 ...
module @sheaf {
  func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %many = stablehlo.constant dense<3> : tensor<i32>
    %first = stablehlo.exponential %x : tensor<3xf32>
    %q:2 = stablehlo.while(%i = %zero, %v = %first) : tensor<i32>, tensor<3xf32>
    cond {
      %p = stablehlo.compare LT, %i, %many, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %t = stablehlo.tanh %v : tensor<3xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %t : tensor<i32>, tensor<3xf32>
    }
    %held = stablehlo.optimization_barrier %q#1 : tensor<3xf32>
    %second = stablehlo.tanh %held : tensor<3xf32>
    %r:4 = stablehlo.while(%i = %zero, %v = %second, %w = %held, %sum = %first) : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    cond {
      %p = stablehlo.compare LT, %i, %many, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s0 = stablehlo.add %sum, %v : tensor<3xf32>
      %s = stablehlo.subtract %s0, %w : tensor<3xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %v, %v, %s : tensor<i32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    }
    %kv, %kw, %kept = stablehlo.optimization_barrier %r#1, %r#2, %r#3 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    %last = stablehlo.multiply %kept, %first : tensor<3xf32>
    %lv = stablehlo.subtract %kv, %first : tensor<3xf32>
    %lw = stablehlo.subtract %kw, %held : tensor<3xf32>
    return %last, %lw : tensor<3xf32>, tensor<3xf32>
  }
}
