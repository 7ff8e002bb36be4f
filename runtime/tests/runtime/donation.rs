//! Calls that consume arguments.

use sheaf_runtime::{Error, Runtime, Target, Workers};

use crate::support::{ADD, call, f32s, load, on_each_target, read_f32s};

/// `(a, b) -> (a + b, b * b)`, the first in the memory of `a`.
const IN_PLACE: &str = "
module @sheaf {
  func.func @main(%a: tensor<65536xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<65536xf32>)
      -> (tensor<65536xf32>, tensor<65536xf32>) {
    %sum = stablehlo.add %a, %b : tensor<65536xf32>
    %square = stablehlo.multiply %b, %b : tensor<65536xf32>
    return %sum, %square : tensor<65536xf32>, tensor<65536xf32>
  }
}";
const COUNT: usize = 65536;

#[test]
fn a_result_takes_the_place_of_a_consumed_argument() {
    for target in [Target::LocalSync, Target::LocalTask(Workers::Cores)] {
        let device = &Runtime::new().unwrap().device(target).unwrap();
        let Some(program) = load(device, IN_PLACE) else { return };
        let (mut a, b) =
            (f32s(device, &[COUNT], &vec![1.0; COUNT]), f32s(device, &[COUNT], &vec![2.0; COUNT]));
        let mut frame = program.call_frame().unwrap();
        let mut kept = Vec::new();
        for step in 1_u8..6 {
            frame.donate(0, a).unwrap();
            frame.set(1, &b).unwrap();
            frame.invoke().unwrap();
            let [sum, square] = <[_; 2]>::try_from(frame.take_results().unwrap()).unwrap();
            assert_eq!(read_f32s(&sum), vec![1.0 + 2.0 * f32::from(step); COUNT], "{target}");
            assert!(sum.is_unshared(), "{target}: the result can be consumed in turn");
            // A live neighbour in the same allocation does not prevent donation.
            kept.push(square);
            a = sum;
        }
        assert!(kept.iter().all(|square| read_f32s(square) == vec![4.0; COUNT]));
        // Consumed once, and not set again.
        assert!(matches!(frame.invoke(), Err(Error::MissingArgument { index: 0, .. })));
    }
}

#[test]
fn what_something_else_refers_to_is_not_consumed() {
    on_each_target(|device, target| {
        let Some(add) = load(device, ADD) else { return };
        let one = f32s(device, &[4], &[1.0; 4]);
        let mut frame = add.call_frame().unwrap();
        let shared = |result: Result<(), Error>| matches!(result, Err(Error::SharedBuffer { index: 0 }));

        frame.set(1, &one).unwrap();
        assert!(shared(frame.donate(0, one)), "{target}: an argument of a frame");

        let one = f32s(device, &[4], &[1.0; 4]);
        frame.set(0, &one).unwrap();
        frame.set(1, &one).unwrap();
        frame.invoke().unwrap();
        assert!(shared(frame.donate(0, frame.result(0).unwrap())), "{target}: a result of a frame");

        let [result, _another] = [0, 0].map(|index| frame.result(index).unwrap());
        frame.clear();
        assert!(shared(frame.donate(0, result)), "{target}: two buffers of one result");
    });
}

/// A result that is an argument shares its memory.
#[test]
fn a_result_that_is_an_argument_is_shared_with_it() {
    const SAME: &str = "
module @sheaf {
  func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %twice = stablehlo.add %a, %a : tensor<4xf32>
    return %a, %twice : tensor<4xf32>, tensor<4xf32>
  }
}";
    on_each_target(|device, target| {
        let Some(same) = load(device, SAME) else { return };
        let a = f32s(device, &[4], &[1.0; 4]);
        let results = call(&same, &[&a]).unwrap();
        if results[0].is_unshared() {
            // The program has copied it.
            assert!(a.is_unshared(), "{target}");
        } else {
            assert!(!a.is_unshared(), "{target}");
            drop(a);
            assert!(results[0].is_unshared(), "{target}");
        }
        assert_eq!(read_f32s(&results[0]), [1.0; 4]);
    });
}
