// quirk 17: a row of one element is gathered in a loop, chosen beside a position that a reduction finds, and written back
// fails: compiler "'arith.select' op failed to verify"
// argument: f32[1x503] 1 ...
// argument: i32[72x1] 1 ...
module @sheaf {
  func.func @main(%z: tensor<1x503xf32>, %x: tensor<72x1xi32>) -> tensor<72x1xi32> {
    %o = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %o, %s = %x) : tensor<i32>, tensor<72x1xi32>
    cond {
      %end = stablehlo.constant dense<71> : tensor<i32>
      %more = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %next = stablehlo.add %i, %one : tensor<i32>
      %n = stablehlo.iota dim = 1 : tensor<1x503xi32>
      %zz = stablehlo.constant dense<0.0> : tensor<1x503xf32>
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %y, %v = stablehlo.reduce(%n init: %zero), (%z init: %low) across dimensions = [1] : (tensor<1x503xi32>, tensor<1x503xf32>, tensor<i32>, tensor<f32>) -> (tensor<1xi32>, tensor<1xf32>) reducer(%at: tensor<i32>, %k: tensor<i32>) (%best: tensor<f32>, %e: tensor<f32>) {
        %wins = stablehlo.compare GT, %e, %best, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %where = stablehlo.select %wins, %k, %at : tensor<i1>, tensor<i32>
        %value = stablehlo.select %wins, %e, %best : tensor<i1>, tensor<f32>
        stablehlo.return %where, %value : tensor<i32>, tensor<f32>
      }
      %n1 = stablehlo.reshape %next : (tensor<i32>) -> tensor<1xi32>
      %eight = stablehlo.constant dense<8> : tensor<1xi32>
      %p = stablehlo.compare GE, %n1, %eight, SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
      %g = "stablehlo.gather"(%s, %next) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 0>, slice_sizes = array<i64: 1, 1>}> : (tensor<72x1xi32>, tensor<i32>) -> tensor<1xi32>
      %c = stablehlo.select %p, %y, %g : tensor<1xi1>, tensor<1xi32>
      %c2 = stablehlo.reshape %c : (tensor<1xi32>) -> tensor<1x1xi32>
      %b = stablehlo.constant dense<0> : tensor<72x1xi32>
      %u = stablehlo.dynamic_update_slice %s, %c2, %next, %zero : (tensor<72x1xi32>, tensor<1x1xi32>, tensor<i32>, tensor<i32>) -> tensor<72x1xi32>
      stablehlo.return %next, %u : tensor<i32>, tensor<72x1xi32>
    }
    return %r#1 : tensor<72x1xi32>
  }
}
