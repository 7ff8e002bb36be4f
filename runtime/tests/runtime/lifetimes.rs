//! Lifetimes of objects that refer to each other.

use sheaf_runtime::{Runtime, Target, Workers};

use crate::support::{ADD, call, f32s, load, read_f32s};

/// Returns its argument and a constant unchanged.
const PASS: &str = "
module @sheaf {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
    %c = stablehlo.constant dense<2.5> : tensor<f32>
    return %a, %c : tensor<4xf32>, tensor<f32>
  }
}";

#[test]
fn results_outlive_frame_program_device_and_runtime() {
    for target in Target::ALL {
        let runtime = Runtime::new().unwrap();
        let device = runtime.device(target).unwrap();
        let Some(pass) = load(&device, PASS) else { return };
        let argument = f32s(&device, &[4], &[7.0; 4]);
        let mut frame = pass.call_frame().unwrap();
        frame.set(0, &argument).unwrap();
        frame.invoke().unwrap();
        let results = frame.take_results().unwrap();
        drop((frame, pass, argument, device, runtime));
        assert_eq!(read_f32s(&results[0]), [7.0; 4], "{target}");
        assert_eq!(read_f32s(&results[1]), [2.5], "{target}");
    }
}

#[test]
fn a_large_constant_outlives_the_program_that_holds_it() {
    let values: Vec<String> = (0..512).map(|i| format!("{i}.0")).collect();
    let mlir = format!(
        "module @sheaf {{ func.func @main() -> (tensor<512xf32>, tensor<2x256xf32>) {{
           %c = stablehlo.constant dense<[{}]> : tensor<512xf32>
           %r = stablehlo.reshape %c : (tensor<512xf32>) -> tensor<2x256xf32>
           return %c, %r : tensor<512xf32>, tensor<2x256xf32> }} }}",
        values.join(", ")
    );
    let expected: Vec<f32> = (0..512_u16).map(f32::from).collect();
    let runtime = Runtime::new().unwrap();
    for target in [Target::LocalSync, Target::LocalTask(Workers::Cores)] {
        let device = runtime.device(target).unwrap();
        let Some(program) = load(&device, &mlir) else { return };
        let results = call(&program, &[]).unwrap();
        drop(program);
        // The program's bytes can be reallocated and overwritten only if they are free.
        let _others: Vec<_> = (0..100).map(|_| f32s(&device, &[512], &[-1.0; 512])).collect();
        for result in &results {
            assert_eq!(read_f32s(result), expected, "{target}");
        }
    }
}

#[test]
fn a_result_passed_on_outlives_the_program_that_made_it() {
    // Results that another device returns may lie in memory of the first.
    let runtime = Runtime::new().unwrap();
    for first in Target::ALL {
        for second in Target::ALL {
            let Some(add) = load(&runtime.device(first).unwrap(), ADD) else { return };
            let pass = load(&runtime.device(second).unwrap(), PASS).unwrap();
            let x = f32s(&runtime.device(first).unwrap(), &[4], &[3.5; 4]);
            let made = call(&add, &[&x, &x]).unwrap().remove(0);
            drop(add);
            let passed = call(&pass, &[&made]).unwrap().remove(0);
            drop((made, pass));
            assert_eq!(read_f32s(&passed), [7.0; 4], "{first} to {second}");
        }
    }
}
