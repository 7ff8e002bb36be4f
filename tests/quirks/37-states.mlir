// quirk 37: a loop that updates a state and hands on the one before
// fails: call "indirect buffer reference slot 0 is out range of the declared binding capacity"
// argument: f32[4] 1 2 3 4
// argument: f32[4] 1 2 3 4
// right: f32[4] 9 9 9 4
// right: f32[4] 9 9 3 4
module @sheaf attributes {stream.topology = #hal.device.topology<links = [(@__device_0 -> @__device_0 = {unified_memory = true, transparent_access = true})]>} {
  func.func @main(%a: tensor<4xf32>, %c: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %u = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<3> : tensor<i32>
    %nine = stablehlo.constant dense<9.0> : tensor<1xf32>
    cf.br ^head(%z, %a, %c : tensor<i32>, tensor<4xf32>, tensor<4xf32>)
  ^head(%i: tensor<i32>, %p: tensor<4xf32>, %q: tensor<4xf32>):
    %lt = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %b = tensor.extract %lt[] : tensor<i1>
    cf.cond_br %b, ^body, ^exit
  ^body:
    %p1 = stablehlo.dynamic_update_slice %p, %nine, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %i1 = stablehlo.add %i, %u : tensor<i32>
    cf.br ^head(%i1, %p1, %p : tensor<i32>, tensor<4xf32>, tensor<4xf32>)
  ^exit:
    return %p, %q : tensor<4xf32>, tensor<4xf32>
  }
}
