// quirk 30: an allocation of unsigned integers
// fails: compiler "failed to legalize operation 'flow.tensor.alloca'"
// argument: u32[4] 1 1 1 1
module @sheaf {
  func.func @main(%row: tensor<4xui32>) -> tensor<3x4xui32> {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %many = arith.constant 3 : index
    %corner = stablehlo.constant dense<0> : tensor<i32>
    %stack = flow.tensor.alloca : tensor<3x4xui32>
    cf.br ^head(%zero, %stack : index, tensor<3x4xui32>)
    ^head(%i: index, %rows: tensor<3x4xui32>):
    %goes_on = arith.cmpi slt, %i, %many : index
    cf.cond_br %goes_on, ^body, ^exit
    ^body:
    %number = arith.index_cast %i : index to i32
    %position = tensor.from_elements %number : tensor<i32>
    %update = stablehlo.reshape %row : (tensor<4xui32>) -> tensor<1x4xui32>
    %next = stablehlo.dynamic_update_slice %rows, %update, %position, %corner : (tensor<3x4xui32>, tensor<1x4xui32>, tensor<i32>, tensor<i32>) -> tensor<3x4xui32>
    %j = arith.addi %i, %one : index
    cf.br ^head(%j, %next : index, tensor<3x4xui32>)
    ^exit:
    return %rows : tensor<3x4xui32>
  }
}
