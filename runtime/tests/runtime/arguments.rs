//! Calls with wrong arguments: each is an error, and the frame remains usable.

use sheaf_runtime::{ElementType, Error, Runtime, Target};

use crate::support::{ADD, f32s, load, on_each_target, read_f32s};

#[test]
fn a_missing_argument_is_named() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let Some(add) = load(&device, ADD) else { return };
    let mut frame = add.call_frame().unwrap();
    frame.set(0, &f32s(&device, &[4], &[0.0; 4])).unwrap();
    let error = frame.invoke().unwrap_err();
    assert!(matches!(error, Error::MissingArgument { index: 1, count: 2 }));
    insta::assert_snapshot!(error, @"argument 1 of 2 was not set before the call (counted from 0)");
}

#[test]
fn an_argument_too_many_is_refused() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let Some(add) = load(&device, ADD) else { return };
    let error = add.call_frame().unwrap().set(2, &f32s(&device, &[4], &[0.0; 4])).unwrap_err();
    assert!(matches!(error, Error::NoSuchArgument { index: 2, count: 2 }));
    insta::assert_snapshot!(error, @"argument 2 was set, but the program takes 2 (counted from 0)");
}

#[test]
fn a_wrong_type_or_shape_fails_the_call_and_the_frame_stays_usable() {
    on_each_target(|device, target| {
        let Some(add) = load(device, ADD) else { return };
        let good = f32s(device, &[4], &[1.0; 4]);
        let ints = device.upload(ElementType::I32, &[4], &[0; 16]).unwrap();
        let mut frame = add.call_frame().unwrap();
        frame.set(0, &good).unwrap();
        for bad in [ints, f32s(device, &[2], &[1.0; 2]), f32s(device, &[2, 2], &[1.0; 4])] {
            frame.set(1, &bad).unwrap();
            let error = frame.invoke().unwrap_err();
            let Error::Call { status, .. } = &error else { panic!("{error:?}") };
            assert_eq!(status.code_name(), "INVALID_ARGUMENT", "{target}");
            assert!(matches!(frame.result(0), Err(Error::NoSuchResult { index: 0, count: 0 })));
        }
        frame.set(1, &good).unwrap();
        frame.invoke().unwrap();
        assert_eq!(read_f32s(&frame.result(0).unwrap()), [2.0; 4], "{target}");
    });
}

#[test]
fn the_message_of_a_failed_call_names_argument_and_cause() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let Some(add) = load(&device, ADD) else { return };
    let mut frame = add.call_frame().unwrap();
    frame.set(0, &f32s(&device, &[4], &[1.0; 4])).unwrap();

    frame.set(1, &device.upload(ElementType::I32, &[4], &[0; 16]).unwrap()).unwrap();
    insta::assert_snapshot!(frame.invoke().unwrap_err(), @"the call failed on local-sync: input1 element type mismatch; expected f32 (21000020) but have si32 (11000020); while invoking native function hal.buffer_view.assert (INVALID_ARGUMENT)");

    frame.set(1, &f32s(&device, &[2, 2], &[1.0; 4])).unwrap();
    insta::assert_snapshot!(frame.invoke().unwrap_err(), @"the call failed on local-sync: input1 shape rank mismatch; expected 1 but have 2; expected shape `4`, actual shape `2x2`; while invoking native function hal.buffer_view.assert (INVALID_ARGUMENT)");
}

#[test]
fn a_cleared_frame_wants_its_arguments_again() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let Some(add) = load(&device, ADD) else { return };
    let one = f32s(&device, &[4], &[1.0; 4]);
    let mut frame = add.call_frame().unwrap();
    frame.set(0, &one).unwrap();
    frame.set(1, &one).unwrap();
    frame.invoke().unwrap();
    frame.clear();
    assert!(matches!(frame.result(0), Err(Error::NoSuchResult { .. })));
    assert!(matches!(frame.invoke(), Err(Error::MissingArgument { index: 0, .. })));
    frame.set(0, &one).unwrap();
    frame.set(1, &one).unwrap();
    frame.invoke().unwrap();
    assert_eq!(read_f32s(&frame.result(0).unwrap()), [2.0; 4]);
}

#[test]
fn results_can_be_read_again_until_they_are_taken() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let Some(add) = load(&device, ADD) else { return };
    let one = f32s(&device, &[4], &[1.0; 4]);
    let mut frame = add.call_frame().unwrap();
    frame.set(0, &one).unwrap();
    frame.set(1, &one).unwrap();
    frame.invoke().unwrap();
    assert_eq!(read_f32s(&frame.result(0).unwrap()), [2.0; 4]);
    assert_eq!(read_f32s(&frame.result(0).unwrap()), [2.0; 4]);
    assert_eq!(frame.take_results().unwrap().len(), 1);
    insta::assert_snapshot!(frame.result(0).unwrap_err(), @"there is no result 0: the last call left 0 (counted from 0)");
}
