//! Rejected programs.

use sheaf_runtime::{Error, Runtime, Target, Vmfb, sha256};

use crate::compiler::compile;
use crate::support::ADD;

#[test]
fn a_damaged_program_never_reaches_iree() {
    let Some(bytes) = compile(ADD) else { return };
    let digest = sha256(&bytes);
    let mut damaged = bytes.to_vec();
    damaged[bytes.len() / 2] ^= 0x10;
    assert!(Vmfb::verify(damaged, &digest).is_err());
    let cut_short = bytes[..bytes.len() - 1].to_vec();
    assert!(Vmfb::verify(cut_short, &digest).is_err());
    assert!(Vmfb::verify(bytes, &digest).is_ok());
}

#[test]
fn a_program_that_imports_another_module_is_refused() {
    const IMPORTS: &str = "
module @sheaf {
  func.func private @other.twice(%a: tensor<4xf32>) -> tensor<4xf32>
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %twice = call @other.twice(%a) : (tensor<4xf32>) -> tensor<4xf32>
    return %twice : tensor<4xf32>
  }
}";
    let Some(bytes) = compile(IMPORTS) else { return };
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let error = device.load(&Vmfb::verify(bytes.clone(), &sha256(&bytes)).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Load { .. }), "{error:?}");
    insta::assert_snapshot!(error, @"the program could not be loaded on local-sync: required module 'other' not registered on the context; resolving module 'sheaf' imports (NOT_FOUND); compile it again with the compiler that belongs to this runtime");
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
    let Some(bytes) = compile(&ADD.replace("@main", "@other")) else { return };
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
    let Some(bytes) = compile(PLAIN) else { return };
    let device = Runtime::new().unwrap().device(Target::LocalSync).unwrap();
    let error = device.load(&Vmfb::verify(bytes.clone(), &sha256(&bytes)).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Entry { .. }), "{error:?}");
    insta::assert_snapshot!(error, @"the program has no usable function `main`: it passes a value of VM type `i`, not a tensor; compile it again from a module whose `main` takes and gives tensors only");
}
