//! `sheaf tune`: what one machine has measured, others take from the shared cache.

use std::fs;
use std::path::Path;

use sheaf_tests::{Output, Sandbox};

use crate::machine::{Machine, Remote};
use crate::shared::{folder, own, taken};

/// By default sums of rows of twelve numbers are added up in order; as vectors, they take 0.6 of the time with AVX-512, 0.8 with AVX2
/// alone. Rows of sixteen are vectors anyway with AVX-512.
const PROGRAM: &str = "\
(defn add-products [(p f32 [20000]) (x f32 [20000 12]) (y f32 [20000 12])]
  (+ p (sum (* x y) :axis -1)))
(defn little [(x f32 [4])] (* 2 x))
(def x (reshape (- (* 2.0 (mod (arange 240000) 2)) 1) '[20000 12]))
(print (max (repeat [i 20] [p (zeros '[20000])] (add-products p x x))))
";

/// The output of the program: 20 times the sum of twelve ones.
const PRINTED: &str = "240.0\n";

const TUNE: [&str; 3] = ["tune", "rows.shf", "--json"];

const RUN: [&str; 6] = ["rows.shf", "--jit", "always", "--strict", "--donate", "always"];

fn with_program(machine: Machine) -> Machine {
    machine.sandbox.write("rows.shf", PROGRAM);
    machine
}

/// The entries of `functions` in the JSON of a build.
fn functions(output: &Output) -> Vec<serde_json::Value> {
    assert_eq!(output.code, Some(0), "{output}");
    let report: serde_json::Value =
        serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}\n{output}"));
    report["functions"].as_array().expect("a list").clone()
}

/// The entry of `add-products` in the manifest.
fn entry(sandbox: &Sandbox) -> serde_json::Value {
    let manifest = fs::read_to_string(sandbox.path("__sheaf__/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let entries = manifest["entries"].as_array().expect("a list");
    entries.iter().find(|entry| entry["function"] == "add-products").expect("an entry").clone()
}

/// A machine tunes; another one, whose compiler would do as well, takes the record and the program.
#[test]
fn one_machine_tunes_for_all() {
    let server = own();
    let remote = Remote::at(format!("http://127.0.0.1:{}", server.port));
    let (place, in_folder) = folder();
    let both = Remote::at(format!("{},{}", remote.address, in_folder.address));
    let Some(a) = Machine::writing(&both) else { return };
    let a = with_program(a);
    let tuned = functions(&a.run(&TUNE));
    let (products, little) = (&tuned[0], &tuned[1]);
    assert_eq!(little["tuning"]["outcome"], "too-little");
    let tuning = &products["tuning"];
    assert_eq!(tuning["outcome"], "measured");
    let flags = tuning["flags"].as_array().expect("flags");
    assert!(flags.contains(&"reassociate-reductions".into()), "{tuning:#}");
    let ms = |name: &str| tuning[name].as_f64().expect("a number");
    assert!(ms("tuned-ms") < 0.97 * ms("default-ms"), "{tuning:#}");
    assert!(tuning["trials"].as_array().expect("trials").len() > 5);
    let alternatives = entry(&a.sandbox)["alternatives"].clone();
    let tuned = alternatives[0].as_array().expect("flags");
    assert!(tuned.contains(&"--iree-llvmcpu-reassociate-fp-reductions=true".into()), "{alternatives:#}");
    // The program for calls that own their arguments is compiled with the record's flags.
    assert_eq!(a.run(&RUN).compiled(), PRINTED);
    assert_eq!(a.run(&RUN).silent(), PRINTED);
    let explained = a.run(&[&["--explain"][..], &RUN].concat()).stderr;
    assert!(
        explained.contains("  compiled with ") && explained.contains("reassociate-reductions"),
        "{explained}"
    );
    assert!(explained.contains(", as its tuning record says\n"), "{explained}");
    // The record is found again, and so is the program by its sources.
    let again = functions(&a.run(&TUNE));
    assert_eq!((&again[0]["tuning"]["outcome"], &again[0]["result"]), (&"known".into(), &"cached".into()));
    let verified = a.run(&["verify", "rows.shf", "--rebuild"]).compiled();
    assert_eq!(
        verified.matches("rebuilt, with the same bytes").count(),
        3,
        "with the donating one: {verified}"
    );
    // No compiler has made the record.
    let audited = a.run(&["cache", "audit", "--sample", "1"]);
    assert_eq!(
        (audited.code, audited.stderr.contains("could not be audited")),
        (Some(0), false),
        "{audited}"
    );

    // Without a compiler.
    let b = with_program(Machine::reading(&remote));
    assert_eq!(taken(b.run(&RUN)), PRINTED);
    assert_eq!(entry(&b.sandbox)["key"], products["key"]);
    // The program for calls that own their arguments has the flags of the record too.
    let explained = b.run(&[&["--explain"][..], &RUN].concat()).stderr;
    assert!(explained.contains("  results take the place of 1 argument in "), "{explained}");
    // Nothing but the folder: neither record nor cache.
    let c = Machine::bare();
    c.sandbox.copy_from(&b.sandbox);
    fs::remove_dir_all(c.sandbox.home()).expect("a home");
    assert_eq!(c.run(&[&RUN[..], &["--offline"]].concat()).silent(), PRINTED);

    // A writer whom this machine does not trust.
    let d = with_program(Machine::reading(&remote).env("SHEAF_CACHE_TRUSTED_KEYS", ""));
    let stranger = d.run(&["cache", "pull", "rows.shf"]);
    assert_eq!(stranger.code, Some(1), "{stranger}");

    an_altered_record_is_not_used(place.path(), &in_folder);
}

/// A record of another machine that was altered is not used, and its flags are nowhere.
#[track_caller]
fn an_altered_record_is_not_used(place: &Path, remote: &Remote) {
    let mut altered = 0;
    for file in Sandbox::files(place) {
        let path = place.join(&file);
        let Ok(bytes) = fs::read(&path) else { continue };
        if bytes.starts_with(b"{\"version\":1,\"flags\":") {
            let text = String::from_utf8(bytes)
                .expect("JSON")
                .replace("reassociate-reductions", "reassociated-reductions");
            fs::write(&path, text).expect("a file");
            altered += 1;
        }
    }
    assert_eq!(altered, 1, "{:?}", Sandbox::files(place));
    let b = with_program(Machine::reading(remote));
    let pulled = b.run(&["cache", "pull", "rows.shf"]);
    assert!(!b.sandbox.path("__sheaf__/add-products.cpu.vmfb").exists(), "{pulled}");
    assert_eq!(pulled.code, Some(1), "{pulled}");
}
