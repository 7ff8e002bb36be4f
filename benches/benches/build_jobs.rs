//! `sheaf build` of eight training steps with one compile worker and with two, alternating. `make bench` builds the
//! binary first; it needs the compiler in the user's folder, or downloads it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Builds per number of workers.
const ROUNDS: usize = 5;

const STEPS: usize = 8;

fn main() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("build_jobs");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("steps.shf");
    fs::write(&file, program()).expect("a file");
    let build = |jobs: usize| {
        let start = Instant::now();
        let output = Command::new(sheaf())
            .arg("build")
            .arg(&file)
            .args(["--recompile", "--jobs", &jobs.to_string()])
            .output()
            .expect("sheaf starts: build it with `cargo build --release -p sheaf`");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        start.elapsed().as_secs_f64()
    };
    // Warm-up.
    build(2);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one.push(build(1));
        two.push(build(2));
    }
    let (one, two) = (middle(one), middle(two));
    println!("sheaf build of {STEPS} training steps; medians of {ROUNDS}");
    println!("  1 worker {one:.2} s, 2 workers {two:.2} s: {:.2} of the time", two / one);
}

/// Steps of networks of different widths: all programs differ.
fn program() -> String {
    let mut text = String::from("(use nn)\n(use optim)\n");
    for i in 0..STEPS {
        let width = 64 + 16 * i;
        let _ = writeln!(
            text,
            "(defparams Net{i} {{:W1 [32 {width}] :b1 [{width}] :W2 [{width} 10] :b2 [10]}})
(defn step{i} [(p :as Net{i}) (m :as Net{i}) (v :as Net{i}) (t f32 []) (x f32 [16 32]) (y f32 [16 10])]
  (let [loss (fn [p] (with-params [p] (mean (square (- (linear (tanh (linear x W1 b1)) W2 b2) y)))))
        [value grads] ((value-and-grad loss) p)]
    (list value (adam-step p grads m v t 0.001))))"
        );
    }
    text
}

/// The `sheaf` binary of the same profile.
fn sheaf() -> std::path::PathBuf {
    let this = std::env::current_exe().expect("this program");
    this.ancestors().nth(2).expect("the profile's folder").join("sheaf")
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
