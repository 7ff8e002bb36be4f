//! Programs and helpers shared by the tests.

#![allow(clippy::unwrap_used, reason = "only tests use this")]

use sheaf_runtime::{Buffer, Device, ElementType, Error, Program, Runtime, Target, Vmfb, sha256};

use crate::compiler::compile;

/// `(a, b) -> a + b` over four numbers.
pub const ADD: &str = "
module @sheaf {
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %sum = stablehlo.add %a, %b : tensor<4xf32>
    return %sum : tensor<4xf32>
  }
}";

/// Verifies and loads a program; `None` without a compiler.
pub fn load(device: &Device, mlir: &str) -> Option<Program> {
    let bytes = compile(mlir)?;
    let digest = sha256(&bytes);
    Some(device.load(&Vmfb::verify(bytes, &digest).unwrap()).unwrap())
}

/// Runs a test on each target, in a separate runtime.
pub fn on_each_target(test: impl Fn(&Device, Target)) {
    for target in Target::ALL {
        test(&Runtime::new().unwrap().device(target).unwrap(), target);
    }
}

pub fn f32s(device: &Device, shape: &[usize], values: &[f32]) -> Buffer {
    device.upload(ElementType::F32, shape, bytemuck::cast_slice(values)).unwrap()
}

pub fn read_f32s(buffer: &Buffer) -> Vec<f32> {
    assert_eq!(buffer.element_type(), ElementType::F32);
    bytemuck::pod_collect_to_vec(&buffer.read().unwrap())
}

/// Calls a program once.
pub fn call(program: &Program, arguments: &[&Buffer]) -> Result<Vec<Buffer>, Error> {
    let mut frame = program.call_frame()?;
    for (index, argument) in arguments.iter().enumerate() {
        frame.set(index, argument)?;
    }
    frame.invoke()?;
    frame.take_results()
}
