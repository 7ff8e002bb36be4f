// quirk 18: the counter of a loop becomes an unsigned integer of fewer bits
// fails: compiler "'arith.trunci' op result #0 must be signless-fixed-width-integer-like"
// argument: i64[] 3
// argument: u32[] 3
module @sheaf {
  func.func @main(%x: tensor<i64>, %y: tensor<ui32>) -> tensor<ui32> {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %z = stablehlo.constant dense<0> : tensor<i64>
    %r:2 = stablehlo.while(%i = %z, %k = %y) : tensor<i64>, tensor<ui32>
    cond {
      %p = stablehlo.compare LT, %i, %x : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.add %i, %c : tensor<i64>
      %u = stablehlo.convert %i : (tensor<i64>) -> tensor<ui32>
      %v = stablehlo.xor %k, %u : tensor<ui32>
      stablehlo.return %j, %v : tensor<i64>, tensor<ui32>
    }
    return %r#1 : tensor<ui32>
  }
}
