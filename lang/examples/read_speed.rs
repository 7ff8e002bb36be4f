//! Prints how fast the reader is: `cargo run --release -p sheaf-lang --example read_speed [FILE...]`.

use std::time::Instant;

use sheaf_lang::syntax::{Sources, read};

/// What programs look like, repeated when no file is named.
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

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    for path in std::env::args().skip(1) {
        text += &std::fs::read_to_string(path)?;
    }
    if text.is_empty() {
        text = PROGRAM.repeat(2_000);
    }
    let mut sources = Sources::default();
    let id = sources.add("text", text);
    let megabytes = sources.text(id).len() as f64 / 1e6;
    let mut best = f64::INFINITY;
    let mut forms = 0;
    for _ in 0..50 {
        let start = Instant::now();
        let read = read(&sources, id);
        best = best.min(start.elapsed().as_secs_f64());
        forms = read.map_or(0, |forms| forms.len());
    }
    println!("{megabytes:.1} MB, {forms} top-level forms, best of 50: {:.0} MB/s", megabytes / best);
    Ok(())
}
