//! Programs that are refused.

use sheaf_runtime::{Error, Model, Runtime, Target, Vmfb, sha256};

use crate::compiler::compile;
use crate::support::ADD;

#[test]
fn a_damaged_program_never_reaches_iree() {
    let Some(bytes) = compile(Model::Hal, ADD) else { return };
    let digest = sha256(&bytes);
    let mut damaged = bytes.to_vec();
    damaged[bytes.len() / 2] ^= 0x10;
    assert!(Vmfb::verify(damaged, &digest).is_err());
    let cut_short = bytes[..bytes.len() - 1].to_vec();
    assert!(Vmfb::verify(cut_short, &digest).is_err());
    assert!(Vmfb::verify(bytes, &digest).is_ok());
}

#[test]
fn a_program_of_the_other_model_is_refused() {
    let runtime = Runtime::new().unwrap();
    let mut messages = Vec::new();
    for target in Target::ALL {
        let other = if target.model() == Model::Inline { Model::Hal } else { Model::Inline };
        let Some(bytes) = compile(other, ADD) else { return };
        let vmfb = Vmfb::verify(bytes.clone(), &sha256(&bytes)).unwrap();
        let error = runtime.device(target).unwrap().load(&vmfb).unwrap_err();
        assert!(matches!(error, Error::WrongModel { program, .. } if program == other), "{error:?}");
        messages.push(error.to_string());
    }
    insta::assert_snapshot!(messages[0], @"the program was compiled for the HAL execution model, but the device inline needs the inline model; compile it again for this device, or load it on a device of its own model");
    insta::assert_snapshot!(messages[1], @"the program was compiled for the inline execution model, but the device local-sync needs the HAL model; compile it again for this device, or load it on a device of its own model");
}

#[test]
fn bytes_that_are_no_program_are_refused() {
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    for bytes in [&b""[..], b"not a program", &[0; 4096]] {
        let error = device.load(&Vmfb::verify(bytes, &sha256(bytes)).unwrap()).unwrap_err();
        assert!(matches!(error, Error::Load { .. }), "{error:?}");
        if bytes == b"not a program" {
            insta::assert_snapshot!(error, @"the program could not be loaded on local-sync: FlatBuffer data is not present or less than 16 bytes (13 total) (INVALID_ARGUMENT); compile it again with the compiler that belongs to this runtime");
        }
    }
}

#[test]
fn a_program_without_main_is_refused() {
    let Some(bytes) = compile(Model::Hal, &ADD.replace("@main", "@other")) else { return };
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let error = device.load(&Vmfb::verify(bytes.clone(), &sha256(&bytes)).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Entry { .. }), "{error:?}");
    insta::assert_snapshot!(error, @"the program has no usable function `main`: no function `main` exported by module (NOT_FOUND); compile it again from a module whose `main` takes and gives tensors only");
}

#[test]
fn a_main_that_takes_plain_numbers_is_refused() {
    const PLAIN: &str = "
module @sheaf {
  func.func @main(%a: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
}";
    let Some(bytes) = compile(Model::Hal, PLAIN) else { return };
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let error = device.load(&Vmfb::verify(bytes.clone(), &sha256(&bytes)).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Entry { .. }), "{error:?}");
    insta::assert_snapshot!(error, @"the program has no usable function `main`: it passes a value of VM type `i`, not a tensor; compile it again from a module whose `main` takes and gives tensors only");
}
