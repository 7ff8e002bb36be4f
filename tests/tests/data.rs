//! Data files on a real disk, mapped into memory, in sessions of this process.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use sheaf_engine::{Module, Session, Value};
use sheaf_lang::eval::Jit;
use sheaf_tests::Sandbox;

/// Rows of the files; more than a page, so that the end of a file is in another one than its start.
const ROWS: usize = 100_000;

/// A program that has mapped `data.bin` and `data.safetensors`, and functions that use them.
fn program(sandbox: &Sandbox) -> Module {
    let numbers: Vec<u8> = (0..ROWS as u32).flat_map(u32::to_le_bytes).collect();
    sandbox.write("data.bin", &numbers);
    let header =
        format!("{{\"x\":{{\"dtype\":\"U32\",\"shape\":[{ROWS}],\"data_offsets\":[0,{}]}}}}", numbers.len());
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &numbers].concat();
    sandbox.write("data.safetensors", file);
    let home = sandbox.home().display().to_string();
    let session = Session::builder()
        .environment(move |name| (name == "SHEAF_HOME").then(|| home.clone()))
        .project(sandbox.path(""))
        .jit(Jit::Never)
        .build()
        .expect("it works");
    let text = format!(
        "(def h (io \"load\" {:?} :u32))
         (def x (:x (io \"load\" {:?})))
         (defn item [i] (h i))
         (defn part [a b] (tensor (slice h a b)))
         (defn gathered [i] (get h i))
         (defn total [] (sum (cast x :f64)))
         (defn entry [i] (x i))
         (def bs (batches h 1000))
         (defn batch [i] (sum (bs i)))
         (defn save [] (io \"save\" {:?} {{:x (+ x 1)}}))",
        text_of(&sandbox.path("data.bin")),
        text_of(&sandbox.path("data.safetensors")),
        text_of(&sandbox.path("data.safetensors"))
    );
    session.load_text("data.shf", &text).expect("it works")
}

/// A path as text.
fn text_of(path: &Path) -> &str {
    path.to_str().expect("text")
}

fn call(module: &Module, function: &str, arguments: &[i64]) -> Result<f64, String> {
    let arguments: Vec<Value> = arguments.iter().map(|n| Value::from(*n)).collect();
    let result = module.function(function).expect("it works").call(&arguments);
    result.and_then(|value| value.to_f64()).map_err(|e| e.diagnostics()[0].message.clone())
}

fn truncate(sandbox: &Sandbox, name: &str, size: u64) {
    OpenOptions::new()
        .write(true)
        .open(sandbox.path(name))
        .expect("it works")
        .set_len(size)
        .expect("it works");
}

fn overwrite(sandbox: &Sandbox, name: &str) {
    let mut file = OpenOptions::new().write(true).open(sandbox.path(name)).expect("it works");
    file.seek(SeekFrom::End(-4)).expect("it works");
    file.write_all(&[0; 4]).expect("it works");
    // Clocks of file systems tick slowly.
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).expect("it works");
}

#[test]
fn numbers_of_files() {
    let sandbox = Sandbox::new();
    let module = program(&sandbox);
    assert_eq!(call(&module, "item", &[-1]), Ok(99_999.0));
    assert_eq!(call(&module, "entry", &[70_000]), Ok(70_000.0));
    assert_eq!(call(&module, "total", &[]), Ok(4_999_950_000.0));
    assert_eq!(call(&module, "batch", &[1]), Ok(1_499_500.0));
}

#[test]
fn a_file_truncated_while_it_is_mapped_is_an_error() {
    let sandbox = Sandbox::new();
    let module = program(&sandbox);
    assert_eq!(call(&module, "batch", &[0]), Ok(499_500.0));
    truncate(&sandbox, "data.bin", 16);
    let path = sandbox.path("data.bin");
    let message =
        format!("{} was changed while it was in use: it had 400000 bytes, and now has 16", path.display());
    for (function, arguments) in [
        ("item", &[5][..]),
        ("item", &[99_999]),
        ("part", &[0, 100_000]),
        ("gathered", &[3]),
        ("batch", &[2]),
    ] {
        assert_eq!(call(&module, function, arguments).map_err(|e| e == message), Err(true), "{function}");
    }
    // The other file is none the worse for it.
    assert_eq!(call(&module, "entry", &[70_000]), Ok(70_000.0));
    truncate(&sandbox, "data.safetensors", 16);
    let path = sandbox.path("data.safetensors");
    for (function, arguments) in [("entry", &[70_000][..]), ("total", &[])] {
        let message = call(&module, function, arguments).unwrap_err();
        assert!(
            message.starts_with(&format!("{} was changed while it was in use", path.display())),
            "{message}"
        );
    }
}

#[test]
fn a_file_changed_while_it_is_mapped_is_an_error() {
    let sandbox = Sandbox::new();
    let module = program(&sandbox);
    assert_eq!(call(&module, "item", &[5]), Ok(5.0));
    overwrite(&sandbox, "data.bin");
    let message = format!("{} was written to while it was in use", sandbox.path("data.bin").display());
    assert_eq!(call(&module, "item", &[5]), Err(message.clone()));
    assert_eq!(call(&module, "batch", &[5]), Err(message));
    overwrite(&sandbox, "data.safetensors");
    let message =
        format!("{} was written to while it was in use", sandbox.path("data.safetensors").display());
    assert_eq!(call(&module, "total", &[]), Err(message));
}

#[test]
fn a_file_that_is_saved_over_stays_as_it_was_for_those_who_have_it() {
    let sandbox = Sandbox::new();
    let module = program(&sandbox);
    module.function("save").unwrap().call(&[]).unwrap();
    assert_eq!(call(&module, "entry", &[70_000]), Ok(70_000.0));
    fs::remove_file(sandbox.path("data.bin")).unwrap();
    File::create(sandbox.path("data.bin")).unwrap();
    assert_eq!(call(&module, "total", &[]), Ok(4_999_950_000.0));
    assert_eq!(call(&module, "item", &[99_999]), Ok(99_999.0));
}
