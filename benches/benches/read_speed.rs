//! Speed of the reader, text to forms. Dropping the forms is excluded.

use std::time::Instant;

use sheaf_syntax::{Sources, read};

const RUNS: usize = 41;

/// Typical code, repeated to a source of ordinary size.
const PROGRAM: &str = r#"
; Two dense layers, trained by hand.
(use nn)
(defn forward "Class scores." [x p]
  (let [h (relu (+ (@ x (get-in p [:layer1 :W])) (get-in p [:layer1 :b])))]
    (+ (@ h (get-in p [:layer2 :W])) (get-in p [:layer2 :b]))))

(defn train-step [params lr x y]
  (let [[loss grads] ((value-and-grad (fn [p] (mse-loss (forward x p) y))) params)
        params (tree-map (fn [w g] (- w (* lr g))) params grads)]
    {:params params :loss loss :history '[0.125 1e-8 -7 42]}))

(print "loss {:.4f} after {} steps" (get result :loss) 500)
"#;

fn main() {
    let mut sources = Sources::default();
    let id = sources.add("text", PROGRAM.repeat(2_000));
    let megabytes = sources.text(id).len() as f64 / 1e6;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        let forms = read(&sources, id);
        times.push(start.elapsed());
        drop(forms);
    }
    times.sort_unstable();
    let speed = megabytes / times[RUNS / 2].as_secs_f64();
    println!("reading {megabytes:.1} MB of source, median of {RUNS} runs: {speed:.0} MB/s");
}
