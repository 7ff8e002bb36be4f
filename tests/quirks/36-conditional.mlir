// quirk 36: a branch with a loop of six numbers and their stacks
// fails: call "ref is null"
// argument: f32[] 1
// argument: f32[] 1
// argument: f32[] 1
// argument: f32[] 1
// argument: f32[] 1
// argument: f32[] 1
// argument: f32[3] 1 2 3
module @sheaf attributes {stream.topology = #hal.device.topology<links = [(@__device_0 -> @__device_0 = {unified_memory = true, transparent_access = true})]>} {
  func.func @main(%s0: tensor<f32>, %s1: tensor<f32>, %s2: tensor<f32>, %s3: tensor<f32>, %s4: tensor<f32>, %s5: tensor<f32>, %x: tensor<3xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %sum = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %p = stablehlo.compare GT, %sum, %z, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %r:12 = "stablehlo.if"(%p) ({
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      %c3 = stablehlo.constant dense<3> : tensor<i32>
      %n0 = stablehlo.constant dense<0.0> : tensor<f32>
      %l0 = stablehlo.optimization_barrier %n0 : tensor<f32>
      %k0 = stablehlo.broadcast_in_dim %l0, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %n1 = stablehlo.constant dense<0.0> : tensor<f32>
      %l1 = stablehlo.optimization_barrier %n1 : tensor<f32>
      %k1 = stablehlo.broadcast_in_dim %l1, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %n2 = stablehlo.constant dense<0.0> : tensor<f32>
      %l2 = stablehlo.optimization_barrier %n2 : tensor<f32>
      %k2 = stablehlo.broadcast_in_dim %l2, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %n3 = stablehlo.constant dense<0.0> : tensor<f32>
      %l3 = stablehlo.optimization_barrier %n3 : tensor<f32>
      %k3 = stablehlo.broadcast_in_dim %l3, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %n4 = stablehlo.constant dense<0.0> : tensor<f32>
      %l4 = stablehlo.optimization_barrier %n4 : tensor<f32>
      %k4 = stablehlo.broadcast_in_dim %l4, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %n5 = stablehlo.constant dense<0.0> : tensor<f32>
      %l5 = stablehlo.optimization_barrier %n5 : tensor<f32>
      %k5 = stablehlo.broadcast_in_dim %l5, dims = [] : (tensor<f32>) -> tensor<3xf32>
      %w:13 = stablehlo.while(%i = %c0, %a0 = %s0, %a1 = %s1, %a2 = %s2, %a3 = %s3, %a4 = %s4, %a5 = %s5, %q0 = %k0, %q1 = %k1, %q2 = %k2, %q3 = %k3, %q4 = %k4, %q5 = %k5) : tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
      cond {
        %lt = stablehlo.compare LT, %i, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %lt : tensor<i1>
      } do {
        %row = stablehlo.dynamic_slice %x, %i, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
        %e = stablehlo.reshape %row : (tensor<1xf32>) -> tensor<f32>
        %j = stablehlo.add %i, %c1 : tensor<i32>
        %b0 = stablehlo.add %a0, %e : tensor<f32>
        %b1 = stablehlo.add %a1, %e : tensor<f32>
        %b2 = stablehlo.add %a2, %e : tensor<f32>
        %b3 = stablehlo.add %a3, %e : tensor<f32>
        %b4 = stablehlo.add %a4, %e : tensor<f32>
        %b5 = stablehlo.add %a5, %e : tensor<f32>
        %t0 = stablehlo.reshape %b0 : (tensor<f32>) -> tensor<1xf32>
        %u0 = stablehlo.dynamic_update_slice %q0, %t0, %i : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
        %t1 = stablehlo.reshape %b1 : (tensor<f32>) -> tensor<1xf32>
        %u1 = stablehlo.dynamic_update_slice %q1, %t1, %i : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
        %t2 = stablehlo.reshape %b2 : (tensor<f32>) -> tensor<1xf32>
        %u2 = stablehlo.dynamic_update_slice %q2, %t2, %i : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
        %t3 = stablehlo.reshape %b3 : (tensor<f32>) -> tensor<1xf32>
        %u3 = stablehlo.dynamic_update_slice %q3, %t3, %i : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
        %t4 = stablehlo.reshape %b4 : (tensor<f32>) -> tensor<1xf32>
        %u4 = stablehlo.dynamic_update_slice %q4, %t4, %i : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
        %t5 = stablehlo.reshape %b5 : (tensor<f32>) -> tensor<1xf32>
        %u5 = stablehlo.dynamic_update_slice %q5, %t5, %i : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
        stablehlo.return %j, %b0, %b1, %b2, %b3, %b4, %b5, %u0, %u1, %u2, %u3, %u4, %u5 : tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
      }
      %y:12 = stablehlo.optimization_barrier %w#1, %w#2, %w#3, %w#4, %w#5, %w#6, %w#7, %w#8, %w#9, %w#10, %w#11, %w#12 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
      stablehlo.return %y#0, %y#1, %y#2, %y#3, %y#4, %y#5, %y#6, %y#7, %y#8, %y#9, %y#10, %y#11 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    }, {
      stablehlo.return %s0, %s1, %s2, %s3, %s4, %s5, %x, %x, %x, %x, %x, %x : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
    }) : (tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
    return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7, %r#8, %r#9, %r#10, %r#11 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
  }
}
