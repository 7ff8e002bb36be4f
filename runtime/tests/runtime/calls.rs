//! Results of programs, and reuse of frames.

use sheaf_runtime::{ElementType, Error, Runtime, Target, Workers};

use crate::support::{ADD, call, f32s, load, on_each_target, read_f32s};

#[test]
fn vectors_are_added_on_each_target() {
    on_each_target(|device, target| {
        let Some(add) = load(device, ADD) else { return };
        assert_eq!((add.argument_count(), add.result_count()), (2, 1));
        let a = f32s(device, &[4], &[1.0, 2.0, 3.0, 4.0]);
        let b = f32s(device, &[4], &[10.0, 20.0, 30.0, 40.0]);
        let sum = &call(&add, &[&a, &b]).unwrap()[0];
        assert_eq!(sum.shape(), [4], "{target}");
        assert_eq!(read_f32s(sum), [11.0, 22.0, 33.0, 44.0], "{target}");
        assert_eq!(read_f32s(&a), [1.0, 2.0, 3.0, 4.0], "arguments are left as they were");
    });
}

#[test]
fn numbers_of_rank_zero_go_in_and_out() {
    const NUMBERS: &str = "
module @sheaf {
  func.func @main(%x: tensor<f32>, %n: tensor<i64>, %yes: tensor<i1>)
      -> (tensor<f32>, tensor<i64>, tensor<i1>) {
    %x2 = stablehlo.add %x, %x : tensor<f32>
    %n2 = stablehlo.multiply %n, %n : tensor<i64>
    %no = stablehlo.not %yes : tensor<i1>
    return %x2, %n2, %no : tensor<f32>, tensor<i64>, tensor<i1>
  }
}";
    on_each_target(|device, target| {
        let Some(numbers) = load(device, NUMBERS) else { return };
        let x = f32s(device, &[], &[1.25]);
        let n = device.upload(ElementType::I64, &[], &(1_i64 << 31).to_ne_bytes()).unwrap();
        let yes = device.upload(ElementType::Bool, &[], &[1]).unwrap();
        let results = call(&numbers, &[&x, &n, &yes]).unwrap();
        assert!(results.iter().all(|result| result.shape().is_empty()), "{target}");
        assert_eq!(read_f32s(&results[0]), [2.5], "{target}");
        assert_eq!(results[1].element_type(), ElementType::I64);
        assert_eq!(results[1].read().unwrap(), (1_i64 << 62).to_ne_bytes(), "{target}");
        assert_eq!(results[2].element_type(), ElementType::Bool);
        assert_eq!(results[2].read().unwrap(), [0], "{target}");
    });
}

#[test]
fn results_are_fed_back_without_leaving_the_device() {
    on_each_target(|device, target| {
        let Some(add) = load(device, ADD) else { return };
        let mut frame = add.call_frame().unwrap();
        frame.set(0, &f32s(device, &[4], &[0.0, 1.0, 2.0, 3.0])).unwrap();
        frame.set(1, &f32s(device, &[4], &[1.0, 1.0, 2.0, 2.0])).unwrap();
        for _ in 0..500 {
            frame.invoke().unwrap();
            let sum = frame.take_results().unwrap().remove(0);
            frame.set(0, &sum).unwrap();
        }
        frame.invoke().unwrap();
        assert_eq!(read_f32s(&frame.result(0).unwrap()), [501.0, 502.0, 1004.0, 1005.0], "{target}");
    });
}

#[test]
fn cpu_buffers_serve_every_cpu_target_of_their_runtime() {
    let runtime = Runtime::new().unwrap();
    for from in Target::ALL {
        let from = runtime.device(from).unwrap();
        let Some(add) = load(&from, ADD) else { return };
        let uploaded = f32s(&from, &[4], &[1.0; 4]);
        let computed = call(&add, &[&uploaded, &uploaded]).unwrap().remove(0);
        for to in Target::ALL {
            let to = runtime.device(to).unwrap();
            let add = load(&to, ADD).unwrap();
            let sum = call(&add, &[&uploaded, &computed]).unwrap().remove(0);
            assert_eq!(read_f32s(&sum), [3.0; 4], "{} to {}", from.target(), to.target());
        }
    }
}

#[test]
fn empty_tensors_pass_between_targets() {
    const EMPTY: &str = "
module @sheaf {
  func.func @main(%a: tensor<0x3xf32>) -> (tensor<0x3xf32>, tensor<f32>) {
    %b = stablehlo.add %a, %a : tensor<0x3xf32>
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    return %b, %c : tensor<0x3xf32>, tensor<f32>
  }
}";
    let runtime = Runtime::new().unwrap();
    let mut empty = f32s(&runtime.device(Target::LocalSync).unwrap(), &[0, 3], &[]);
    for target in [Target::LocalSync, Target::LocalTask(Workers::Cores), Target::LocalSync] {
        let Some(program) = load(&runtime.device(target).unwrap(), EMPTY) else { return };
        empty = call(&program, &[&empty]).unwrap().remove(0);
        assert_eq!(empty.shape(), [0, 3], "{target}");
        assert!(read_f32s(&empty).is_empty(), "{target}");
    }
}

#[test]
fn a_buffer_of_another_runtime_is_refused() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let Some(add) = load(&device, ADD) else { return };
    let elsewhere = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let error = add.call_frame().unwrap().set(1, &f32s(&elsewhere, &[4], &[0.0; 4])).unwrap_err();
    assert!(matches!(error, Error::ForeignBuffer { index: 1 }));
    insta::assert_snapshot!(error, @"argument 1 belongs to another runtime: upload it to a device of this one");
}

#[test]
fn threads_may_have_runtimes_of_their_own() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                on_each_target(|device, _| {
                    let Some(add) = load(device, ADD) else { return };
                    let mut sum = f32s(device, &[4], &[1.0; 4]);
                    for _ in 0..10 {
                        sum = call(&add, &[&sum, &sum]).unwrap().remove(0);
                    }
                    assert_eq!(read_f32s(&sum), [1024.0; 4]);
                });
            });
        }
    });
}

/// IREE keeps its type registry in global variables, which opening a device must not write again.
#[test]
fn devices_may_be_opened_while_programs_run() {
    let opening = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                for target in Target::ALL {
                    Runtime::new().unwrap().device(target).unwrap();
                }
            }
            opening.store(false, std::sync::atomic::Ordering::Relaxed);
        });
        scope.spawn(|| {
            let device = &Runtime::new().unwrap().device(Target::LocalSync).unwrap();
            let Some(add) = load(device, ADD) else { return };
            let ones = f32s(device, &[4], &[1.0; 4]);
            while opening.load(std::sync::atomic::Ordering::Relaxed) {
                assert_eq!(read_f32s(&call(&add, &[&ones, &ones]).unwrap()[0]), [2.0; 4]);
            }
        });
    });
}
