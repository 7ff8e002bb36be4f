// quirk 28: a loop that carries a number
// flags: --iree-llvmcpu-disable-distribution --iree-llvmcpu-stack-allocation-limit=131072
// fails: compiler "Yield operand #0 is not equivalent to the corresponding iter bbArg"
// argument: f32[] 1 ...
module @sheaf {
  func.func @main(%arg0: tensor<f32>) -> (tensor<f32>) {
    %0 = flow.dispatch.workgroups(%arg0) : (tensor<f32>) -> (tensor<f32>) = (%in0: !iree_tensor_ext.dispatch.tensor<readonly:tensor<f32>>, %out0: !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>) {
      %x0 = iree_tensor_ext.dispatch.tensor.load %in0, offsets = [], sizes = [], strides = [] : !iree_tensor_ext.dispatch.tensor<readonly:tensor<f32>> -> tensor<f32>
      %z = arith.constant 0 : index
      %n = arith.constant 5 : index
      %u = arith.constant 1 : index
      %y0 = scf.for %i = %z to %n step %u iter_args(%v = %x0) -> (tensor<f32>) {
        %w = stablehlo.tanh %v : tensor<f32>
        scf.yield %w : tensor<f32>
      }
      iree_tensor_ext.dispatch.tensor.store %y0, %out0, offsets = [], sizes = [], strides = [] : tensor<f32> -> !iree_tensor_ext.dispatch.tensor<writeonly:tensor<f32>>
      flow.return
    } count() -> (index, index, index) {
      %one = arith.constant 1 : index
      flow.return %one, %one, %one : index, index, index
    }
    return %0 : tensor<f32>
  }
}
