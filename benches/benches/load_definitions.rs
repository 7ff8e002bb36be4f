//! Time to load a file of 10,000 definitions.

use std::fmt::Write;

use sheaf_benches::median;
use sheaf_lang::eval::{Interp, Options, STACK_BYTES};
use sheaf_loader::SystemHost;
use std::sync::Arc;

const DEFINITIONS: usize = 10_000;

fn main() {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(measure).expect("a thread");
    thread.join().expect("the benchmark");
}

fn measure() {
    let mut text = String::new();
    for i in 0..DEFINITIONS {
        let definition = format!(
            "(defn layer{i} \"Layer {i}.\" [x p]
               (let [h (relu (+ (@ x (get p :W{i})) (get p :b)))]
                 (if (> (sum h) {i}) (* h {i}.5) h)))"
        );
        writeln!(text, "{definition}").expect("memory");
    }
    let mut interp =
        Interp::new(Box::new(SystemHost::new(Vec::new(), Arc::new(()))), None, Options::default());
    let time = median(21, || drop(interp.run_program("bench.shf", &text).expect("a program that loads")));
    println!("loading {DEFINITIONS} definitions, median of 21 runs: {:.3} s", time.as_secs_f64());
}
