// quirk 34: an update in a loop writes over what each step reads, and over an argument
// fails: numbers
// argument: f32[4] 1 2 3 4
// right: f32[4] 3 6 9 12
// right: f32[4] 9 9 9 4
module @sheaf attributes {stream.topology = #hal.device.topology<links = [(@__device_0 -> @__device_0 = {unified_memory = true, transparent_access = true})]>} {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %u = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<3> : tensor<i32>
    %nine = stablehlo.constant dense<9.0> : tensor<1xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %y = stablehlo.negate %a : tensor<4xf32>
    %x = stablehlo.negate %y : tensor<4xf32>
    cf.br ^head(%z, %zero, %x : tensor<i32>, tensor<4xf32>, tensor<4xf32>)
  ^head(%i: tensor<i32>, %h: tensor<4xf32>, %p: tensor<4xf32>):
    %lt = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %b = tensor.extract %lt[] : tensor<i1>
    cf.cond_br %b, ^body, ^exit
  ^body:
    %p1 = stablehlo.dynamic_update_slice %p, %nine, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    %h1 = stablehlo.add %h, %x : tensor<4xf32>
    %i1 = stablehlo.add %i, %u : tensor<i32>
    cf.br ^head(%i1, %h1, %p1 : tensor<i32>, tensor<4xf32>, tensor<4xf32>)
  ^exit:
    return %h, %p : tensor<4xf32>, tensor<4xf32>
  }
}
