//! Data files beside NumPy and the Python library safetensors, both ways. `tests/data/oracle.py` writes and compares.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

use sheaf_tests::{Sandbox, skip};

const PROGRAM: &str = r#"
(defn array [dtype shape] (io "load" (format "{}.{}.npy" dtype shape)))

(def dtypes '["bool" "i8" "i16" "i32" "i64" "u8" "u16" "u32" "f16" "f32" "f64"])

(def shapes '["scalar" "row" "none" "cube"])

(def arrays
  (reduce (fn [all d] (assoc all d (reduce (fn [of s] (assoc of s (array d s))) {} shapes))) {} dtypes))

(def tensors (io "load" "all.safetensors"))

(defn pickled [protocol]
  (reduce (fn [all name]
            (assoc-in all
                      (str-call "split" name ".")
                      (get (get (io "load" (format "p{}.pkl" protocol)) "arrays") name)))
          {}
          (keys (get (io "load" "p4.pkl") "arrays"))))

(io "save" "out.safetensors"
    (merge {:npy arrays :stored (io "load" "stored.npz") :packed (io "load" "packed.npz") :tensors tensors :step 12
            :fortran (io "load" "fortran.npy") :big (io "load" "big.npy") :row (io "load" "row.bin" :u16)}
           (reduce (fn [all p] (assoc all (format "p{}" p) (pickled p))) {} '[0 1 2 3 4 5])))

(io "save" "out.npz" (dissoc tensors "bf16"))

(io "save" "out.bin" (get-in tensors [:u16 :row]))

(map (fn [d] (map (fn [s] (io "save" (format "out-{}.{}.npy" d s) (get-in tensors (list d s)))) shapes)) dtypes)

(print (get (io "load" "p0.pkl") "list") (count (flatten tensors)))
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder above").to_owned()
}

/// The pinned Python. `None`, after a message, if it cannot be installed.
fn python() -> Option<PathBuf> {
    let output = Command::new(root().join("scripts/jax-python")).output().expect("a script");
    if output.status.success() {
        return Some(String::from_utf8(output.stdout).expect("a path").trim().into());
    }
    skip(String::from_utf8_lossy(&output.stderr).trim());
    None
}

#[test]
fn arrays_of_every_dtype_format_and_layout_are_the_same_in_python() {
    let Some(python) = python() else { return };
    let sandbox = Sandbox::new();
    let oracle = |what: &str| {
        let mut command = Command::new(&python);
        command.arg(root().join("tests/data/oracle.py")).arg(what).arg(sandbox.path(""));
        let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("Python starts");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        said.into_owned()
    };
    oracle("write");
    sandbox.write("copy.shf", PROGRAM);
    assert_eq!(sandbox.run(&["copy.shf", "--no-jit"]).silent(), "[1 two 3.5 nil] 45\n");
    assert_eq!(oracle("check"), "44 arrays, 10 ways: all the same\n");
}
