//! Loops of known count in programs: one operation or unrolled, by the equations of all steps; either gives the
//! interpreted result.

use crate::support::{compiling, run, run_with};
use sheaf_lang::eval::Jit;

/// A step of `x` and `w` with at least 60 equations.
const LARGE: &str =
    "(defn large [x w] (reduce (fn [x k] (tanh (+ (* x w) k))) x '[0.01 0.02 0.03 0.04 0.05 0.06 0.07 0.08
    0.09 0.1 0.11 0.12 0.13 0.14 0.15 0.16 0.17 0.18 0.19 0.2]))\n";

/// The operation names of the only unit, and the number of equations including nested ones.
fn unit(program: &str) -> (Vec<&'static str>, usize) {
    let (mut interp, world, log) = compiling(Jit::Always);
    let out = run_with(&mut interp, &world, program);
    let log = log.borrow();
    let [unit] = log.units.as_slice() else { panic!("one unit: {program}\n{out}") };
    (unit.graph.equations.iter().map(|e| e.op.name()).collect(), unit.graph.size())
}

fn loops(program: &str) -> usize {
    unit(program).0.iter().filter(|name| **name == "scan").count()
}

/// The program has at most two or three training steps, whatever their count.
#[test]
fn a_training_does_not_grow_with_its_steps() {
    let training = |n: usize| {
        format!(
            "(defn loss [p x y] (with-params [p] (mean (square (- (+ (@ (relu (+ (@ x W1) b1)) W2) b2) y)))))
             (defn train [p xs ys]
               (scan (fn [[p m v t] batch]
                       (let [[l g] ((value-and-grad loss) p (get batch :x) (get batch :y))]
                         (list (adam-step p g m v t 0.01) l)))
                     (list p (tree-map-zeros p) (tree-map-zeros p) 0)
                     {{:x xs :y ys}}))
             (train {{:W1 (ones [3 4]) :b1 (ones [4]) :W2 (ones [4 2]) :b2 (ones [2])}} (ones [{n} 5 3]) (ones [{n} 5 2]))"
        )
    };
    for n in [2, 4, 8, 15, 17] {
        let (names, size) = unit(&training(n));
        assert_eq!(names.contains(&"scan"), n > 2, "{n}: {names:?}");
        assert!(size < 300, "{n} steps: {size} equations");
    }
}

/// Each kind of loop, just below and above the limit.
#[test]
fn loops_are_unrolled_by_the_equations_of_all_steps() {
    let small = "(defn small [x w] (tanh (+ (* x w) 0.1)))\n";
    for (body, count, rolled) in [("small", 16, 0), ("small", 17, 1), ("large", 2, 0), ("large", 8, 1)] {
        for program in [
            format!("(defn f [x w] (repeat [i {count}] [x x] ({body} x w))) (f [1 2] [3 4])"),
            format!("(defn f [x ws] (reduce (fn [x w] ({body} x w)) x ws)) (f [1 2] (ones [{count} 2]))"),
            format!(
                "(defn f [x ws] (scan (fn [x w] (list ({body} x w) (sum x))) x ws)) (f [1 2] (ones [{count} 2]))"
            ),
        ] {
            assert_eq!(loops(&format!("{small}{LARGE}{program}")), rolled, "{count} times {body}: {program}");
        }
    }
}

/// List items, steps that need their counter, and outputs that a loop would copy repeatedly.
#[test]
fn some_loops_of_large_steps_are_unrolled() {
    for program in [
        // Layers of a model are a list; so is its construction.
        "(defn f [x ps] (reduce (fn [x p] (large x (get p :w))) x ps)) (f [1 2] (map (fn [i] {:w [1 2]}) (range 8)))",
        "(defn f [ws] (map (fn [w] {:w (large w w)}) ws)) (f (ones [8 2]))",
        "(defn f [x w] (repeat [i 8] [x x] (large x (* w (nth '[1 2 3 4 5 6 7 8] i))))) (f [1 2] [3 4])",
        "(defn f [x w] (repeat [i 8] [x x] (concat (large x 0.5) [1]))) (f [1 2] [3 4])",
        "(defn f [x ws] (scan (fn [x w] (list (large x w) (large x w))) x ws)) (f (ones [100000]) (ones [8 1]))",
    ] {
        assert_eq!(loops(&format!("{LARGE}{program}")), 0, "{program}");
    }
}

/// True if two texts are equal up to the rounding of numbers.
fn agree(a: &str, b: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| c.is_whitespace() || "[](){}".contains(c)).map(str::to_owned).collect()
    };
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * (1e-2 + b.abs());
    let same = |(a, b): (&String, &String)| {
        a == b || a.parse().ok().zip(b.parse().ok()).is_some_and(|(a, b)| near(a, b))
    };
    let (a, b) = (words(a), words(b));
    a.len() == b.len() && a.iter().zip(&b).all(same)
}

/// Loops that were unrolled when only their count was considered.
#[test]
fn loops_of_large_steps_compute_what_interpreting_computes() {
    for program in [
        "(defn f [x w] (repeat [i 8] [x x] (large (* x (+ i 1)) w))) (print (f [1 2] [0.3 0.4]))",
        "(defn f [x w] (repeat [i 8] [[x n] [x 0]] [(large x w) (+ n 2)])) (print (f [1 2] [0.3 0.4]))",
        "(defn f [x w] (repeat [i 8] [[x total] [x 0.0]] [(large x w) (+ total (sum x))])) (print (f [1 2] 0.5))",
        "(defn f [x w] (repeat [i 8] [x x] (if (= i 0) (large x w) (- (large x w) x)))) (print (f [1 2] [0.3 0.4]))",
        "(defn f [x w] (repeat [i 3] [x x] (repeat [j 5] [x x] (large x (* w (+ i j)))))) (print (f [1 2] [0.3 0.4]))",
        "(defn f [x ws] (reduce (fn [x w] (large x w)) x ws)) (print (f [1 2] [[1 2] [3 4] [5 6] [7 8] [1 1]]))",
        "(defn f [x ws] (scan (fn [{:keys [x n]} w] (list {:x (large x w) :n (+ n 1)} [(sum x) n])) {:x x :n 0} ws))
         (print (f [1 2] [[1 2] [3 4] [5 6] [7 8] [1 1]]))",
        "(defn f [x ws] (scan (fn [x w] (list (large x w) nil)) x ws)) (print (f [1 2] [[1 2] [3 4] [5 6] [7 8] [1 1]]))",
        "(defn f [w] ((grad (fn [w] (sum (repeat [i 8] [x [1 2]] (large x (* w (+ i 1))))))) w)) (print (f [0.3 0.4]))",
        "(defn g [w x] (sum (first (scan (fn [x u] (list (large x (* u w)) (sum x))) x [1 2 3 4 5 6]))))
         (defn f [w x] ((value-and-grad g :wrt '[0 1]) w x)) (print (f [0.3 0.4] [1 2]))",
        "(defn g [w] (sum (repeat [i 6] [x [1 2]] (large x w)))) (defn f [w] ((jvp g) w [1 1]))
         (print (f [0.3 0.4]))",
        "(defn g [w] (sum (repeat [i 6] [x 0.5] (large x w)))) (defn f [ws] ((vmap (grad g)) ws)) (print (f [0.3 0.4]))",
    ] {
        let program = format!("{LARGE}{program}");
        let wanted = run(&program);
        assert!(!wanted.contains("error"), "{program}: {wanted}");
        let (mut interp, world, log) = compiling(Jit::Always);
        let found = run_with(&mut interp, &world, &program);
        assert!(agree(&found, &wanted), "{program}\n{found}\n{wanted}");
        let log = log.borrow();
        let rolled = |unit: &sheaf_lang::host::Unit| unit.graph.equations.iter().any(|e| e.op.name() == "scan");
        assert!(log.units.iter().any(rolled), "{program}");
    }
}

/// An error in a step is reported as in a loop of small steps.
#[test]
fn errors_in_large_steps_are_those_of_the_program() {
    let program =
        format!("{LARGE}(defn f [x w] (repeat [i 8] [x x] (@ (large x w) [1 2 3])))\n(f [1 2] [3 4])");
    let (mut interp, world, _) = compiling(Jit::Always);
    let out = run_with(&mut interp, &world, &program);
    assert!(out.starts_with("error: (@ a b): f32[2] and f32[3] do not fit"), "{out}");
}
