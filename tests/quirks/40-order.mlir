// quirk 40: four segments of a chain that are computed again after barriers take more memory than two
// fails: memory 700000
// argument: f32[256x64] 0.001 ...
// argument: f32[64x64] 0.002 ...
module @sheaf {
  func.func @main(%x: tensor<256x64xf32>, %w: tensor<64x64xf32>) -> tensor<256x64xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %f0_0m = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f0_0 = stablehlo.tanh %f0_0m : tensor<256x64xf32>
    %f0_1m = stablehlo.dot_general %f0_0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f0_1 = stablehlo.tanh %f0_1m : tensor<256x64xf32>
    %f0_2m = stablehlo.dot_general %f0_1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f0_2 = stablehlo.tanh %f0_2m : tensor<256x64xf32>
    %f0_3m = stablehlo.dot_general %f0_2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f0_3 = stablehlo.tanh %f0_3m : tensor<256x64xf32>
    %f1_0m = stablehlo.dot_general %f0_3, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f1_0 = stablehlo.tanh %f1_0m : tensor<256x64xf32>
    %f1_1m = stablehlo.dot_general %f1_0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f1_1 = stablehlo.tanh %f1_1m : tensor<256x64xf32>
    %f1_2m = stablehlo.dot_general %f1_1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f1_2 = stablehlo.tanh %f1_2m : tensor<256x64xf32>
    %f1_3m = stablehlo.dot_general %f1_2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f1_3 = stablehlo.tanh %f1_3m : tensor<256x64xf32>
    %f2_0m = stablehlo.dot_general %f1_3, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f2_0 = stablehlo.tanh %f2_0m : tensor<256x64xf32>
    %f2_1m = stablehlo.dot_general %f2_0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f2_1 = stablehlo.tanh %f2_1m : tensor<256x64xf32>
    %f2_2m = stablehlo.dot_general %f2_1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f2_2 = stablehlo.tanh %f2_2m : tensor<256x64xf32>
    %f2_3m = stablehlo.dot_general %f2_2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f2_3 = stablehlo.tanh %f2_3m : tensor<256x64xf32>
    %f3_0m = stablehlo.dot_general %f2_3, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f3_0 = stablehlo.tanh %f3_0m : tensor<256x64xf32>
    %f3_1m = stablehlo.dot_general %f3_0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f3_1 = stablehlo.tanh %f3_1m : tensor<256x64xf32>
    %f3_2m = stablehlo.dot_general %f3_1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f3_2 = stablehlo.tanh %f3_2m : tensor<256x64xf32>
    %f3_3m = stablehlo.dot_general %f3_2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %f3_3 = stablehlo.tanh %f3_3m : tensor<256x64xf32>
    %h3, %u3 = stablehlo.optimization_barrier %f2_3, %f3_3 : tensor<256x64xf32>, tensor<256x64xf32>
    %a3_0m = stablehlo.dot_general %h3, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a3_0 = stablehlo.tanh %a3_0m : tensor<256x64xf32>
    %a3_1m = stablehlo.dot_general %a3_0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a3_1 = stablehlo.tanh %a3_1m : tensor<256x64xf32>
    %a3_2m = stablehlo.dot_general %a3_1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a3_2 = stablehlo.tanh %a3_2m : tensor<256x64xf32>
    %a3_3m = stablehlo.dot_general %a3_2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a3_3 = stablehlo.tanh %a3_3m : tensor<256x64xf32>
    %s3_3 = stablehlo.multiply %a3_3, %a3_3 : tensor<256x64xf32>
    %p3_3 = stablehlo.multiply %f3_3, %s3_3 : tensor<256x64xf32>
    %q3_3 = stablehlo.dot_general %p3_3, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s3_2 = stablehlo.multiply %a3_2, %a3_2 : tensor<256x64xf32>
    %p3_2 = stablehlo.multiply %q3_3, %s3_2 : tensor<256x64xf32>
    %q3_2 = stablehlo.dot_general %p3_2, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s3_1 = stablehlo.multiply %a3_1, %a3_1 : tensor<256x64xf32>
    %p3_1 = stablehlo.multiply %q3_2, %s3_1 : tensor<256x64xf32>
    %q3_1 = stablehlo.dot_general %p3_1, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s3_0 = stablehlo.multiply %a3_0, %a3_0 : tensor<256x64xf32>
    %p3_0 = stablehlo.multiply %q3_1, %s3_0 : tensor<256x64xf32>
    %q3_0 = stablehlo.dot_general %p3_0, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %h2, %u2 = stablehlo.optimization_barrier %f1_3, %q3_0 : tensor<256x64xf32>, tensor<256x64xf32>
    %a2_0m = stablehlo.dot_general %h2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a2_0 = stablehlo.tanh %a2_0m : tensor<256x64xf32>
    %a2_1m = stablehlo.dot_general %a2_0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a2_1 = stablehlo.tanh %a2_1m : tensor<256x64xf32>
    %a2_2m = stablehlo.dot_general %a2_1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a2_2 = stablehlo.tanh %a2_2m : tensor<256x64xf32>
    %a2_3m = stablehlo.dot_general %a2_2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a2_3 = stablehlo.tanh %a2_3m : tensor<256x64xf32>
    %s2_3 = stablehlo.multiply %a2_3, %a2_3 : tensor<256x64xf32>
    %p2_3 = stablehlo.multiply %q3_0, %s2_3 : tensor<256x64xf32>
    %q2_3 = stablehlo.dot_general %p2_3, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s2_2 = stablehlo.multiply %a2_2, %a2_2 : tensor<256x64xf32>
    %p2_2 = stablehlo.multiply %q2_3, %s2_2 : tensor<256x64xf32>
    %q2_2 = stablehlo.dot_general %p2_2, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s2_1 = stablehlo.multiply %a2_1, %a2_1 : tensor<256x64xf32>
    %p2_1 = stablehlo.multiply %q2_2, %s2_1 : tensor<256x64xf32>
    %q2_1 = stablehlo.dot_general %p2_1, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s2_0 = stablehlo.multiply %a2_0, %a2_0 : tensor<256x64xf32>
    %p2_0 = stablehlo.multiply %q2_1, %s2_0 : tensor<256x64xf32>
    %q2_0 = stablehlo.dot_general %p2_0, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %h1, %u1 = stablehlo.optimization_barrier %f0_3, %q2_0 : tensor<256x64xf32>, tensor<256x64xf32>
    %a1_0m = stablehlo.dot_general %h1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a1_0 = stablehlo.tanh %a1_0m : tensor<256x64xf32>
    %a1_1m = stablehlo.dot_general %a1_0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a1_1 = stablehlo.tanh %a1_1m : tensor<256x64xf32>
    %a1_2m = stablehlo.dot_general %a1_1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a1_2 = stablehlo.tanh %a1_2m : tensor<256x64xf32>
    %a1_3m = stablehlo.dot_general %a1_2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a1_3 = stablehlo.tanh %a1_3m : tensor<256x64xf32>
    %s1_3 = stablehlo.multiply %a1_3, %a1_3 : tensor<256x64xf32>
    %p1_3 = stablehlo.multiply %q2_0, %s1_3 : tensor<256x64xf32>
    %q1_3 = stablehlo.dot_general %p1_3, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s1_2 = stablehlo.multiply %a1_2, %a1_2 : tensor<256x64xf32>
    %p1_2 = stablehlo.multiply %q1_3, %s1_2 : tensor<256x64xf32>
    %q1_2 = stablehlo.dot_general %p1_2, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s1_1 = stablehlo.multiply %a1_1, %a1_1 : tensor<256x64xf32>
    %p1_1 = stablehlo.multiply %q1_2, %s1_1 : tensor<256x64xf32>
    %q1_1 = stablehlo.dot_general %p1_1, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s1_0 = stablehlo.multiply %a1_0, %a1_0 : tensor<256x64xf32>
    %p1_0 = stablehlo.multiply %q1_1, %s1_0 : tensor<256x64xf32>
    %q1_0 = stablehlo.dot_general %p1_0, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %h0, %u0 = stablehlo.optimization_barrier %x, %q1_0 : tensor<256x64xf32>, tensor<256x64xf32>
    %a0_0m = stablehlo.dot_general %h0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a0_0 = stablehlo.tanh %a0_0m : tensor<256x64xf32>
    %a0_1m = stablehlo.dot_general %a0_0, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a0_1 = stablehlo.tanh %a0_1m : tensor<256x64xf32>
    %a0_2m = stablehlo.dot_general %a0_1, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a0_2 = stablehlo.tanh %a0_2m : tensor<256x64xf32>
    %a0_3m = stablehlo.dot_general %a0_2, %w, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %a0_3 = stablehlo.tanh %a0_3m : tensor<256x64xf32>
    %s0_3 = stablehlo.multiply %a0_3, %a0_3 : tensor<256x64xf32>
    %p0_3 = stablehlo.multiply %q1_0, %s0_3 : tensor<256x64xf32>
    %q0_3 = stablehlo.dot_general %p0_3, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s0_2 = stablehlo.multiply %a0_2, %a0_2 : tensor<256x64xf32>
    %p0_2 = stablehlo.multiply %q0_3, %s0_2 : tensor<256x64xf32>
    %q0_2 = stablehlo.dot_general %p0_2, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s0_1 = stablehlo.multiply %a0_1, %a0_1 : tensor<256x64xf32>
    %p0_1 = stablehlo.multiply %q0_2, %s0_1 : tensor<256x64xf32>
    %q0_1 = stablehlo.dot_general %p0_1, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    %s0_0 = stablehlo.multiply %a0_0, %a0_0 : tensor<256x64xf32>
    %p0_0 = stablehlo.multiply %q0_1, %s0_0 : tensor<256x64xf32>
    %q0_0 = stablehlo.dot_general %p0_0, %w, contracting_dims = [1] x [1] : (tensor<256x64xf32>, tensor<64x64xf32>) -> tensor<256x64xf32>
    return %q0_0 : tensor<256x64xf32>
  }
}
