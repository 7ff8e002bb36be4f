// quirk 35: two stacks of a loop that start from zero have the rows of the second
// fails: numbers
// argument: f32[4] 1 2 3 4
// argument: f32[4] 5 6 7 8
// right: f32[3x4] 1 2 3 4 0.5 1 1.5 2 0.25 0.5 0.75 1
// right: f32[3x4] 5 6 7 8 2.5 3 3.5 4 1.25 1.5 1.75 2
module @sheaf attributes {stream.topology = #hal.device.topology<links = [(@__device_0 -> @__device_0 = {unified_memory = true, transparent_access = true})]>} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %z = stablehlo.constant dense<0> : tensor<i32>
    %n0 = stablehlo.constant dense<0.0> : tensor<f32>
    %b0 = stablehlo.optimization_barrier %n0 : tensor<f32>
    %s0 = stablehlo.broadcast_in_dim %b0, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    %n1 = stablehlo.constant dense<0.0> : tensor<f32>
    %b1 = stablehlo.optimization_barrier %n1 : tensor<f32>
    %s1 = stablehlo.broadcast_in_dim %b1, dims = [] : (tensor<f32>) -> tensor<3x4xf32>
    cf.br ^head(%c0, %arg0, %arg1, %s0, %s1 : index, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>)
  ^head(%i: index, %g: tensor<4xf32>, %h: tensor<4xf32>, %p: tensor<3x4xf32>, %q: tensor<3x4xf32>):
    %lt = arith.cmpi slt, %i, %c3 : index
    cf.cond_br %lt, ^body, ^exit
  ^body:
    %k = arith.index_cast %i : index to i32
    %at = tensor.from_elements %k : tensor<i32>
    %half = stablehlo.constant dense<0.5> : tensor<4xf32>
    %g0 = stablehlo.reshape %g : (tensor<4xf32>) -> tensor<1x4xf32>
    %p1 = stablehlo.dynamic_update_slice %p, %g0, %at, %z : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    %h0 = stablehlo.reshape %h : (tensor<4xf32>) -> tensor<1x4xf32>
    %q1 = stablehlo.dynamic_update_slice %q, %h0, %at, %z : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    %g1 = stablehlo.multiply %g, %half : tensor<4xf32>
    %h1 = stablehlo.multiply %h, %half : tensor<4xf32>
    %j = arith.addi %i, %c1 : index
    cf.br ^head(%j, %g1, %h1, %p1, %q1 : index, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<3x4xf32>)
  ^exit:
    return %p, %q : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
