//! Loops with a data-dependent end, each as one operation of a compiled program, with states of all kinds.

use sheaf_tests::{Sandbox, sample_lines};

/// The output is integral, or rounded so that the order of operations does not matter.
const LOOPS: &str = r#"
(defn scalars [x] (while (< (* a b) 100.0) [[a b] [(sum x) 1.0]] [(+ a 1) (* b 2)]))
(print "scalars alone" (scalars [1 2]))

(defn condition-reads [v0]
  (let [[v err] (while (> err 1e-3) [[v err] [v0 1.0]] [(* 0.5 v) (sum (abs v))])]
    (list (* 65536 v) (* 65536 err))))
(print "a state that the condition alone reads" (condition-reads [1 2 3]))

(defn counted [v0]
  (let [[v err i] (while (and (> err 1e-3) (< i 100)) [[v err i] [v0 1.0 0]]
                    [(* 0.5 v) (sum (abs v)) (+ i 1)])]
    (list (* 65536 v) (* 65536 err) i)))
(print "with a counter" (counted [1 2 3]))

(defn passed [x w] (while (< (sum v) 10.0) [[v u] [x w]] [(* v 2) u]))
(print "a state that is passed on" (passed [1 2] [3 4 5]))

(defn changing-places [x w] (while (< i 5) [[a b i] [x w 0]] [b a (+ i 1)]))
(print "states that change places" (changing-places [1 2] [3 4]))

(defn old-and-new [x]
  (let [[old new] (while (> (max (abs (- old new))) 1e-3) [[old new] [x (* 0.5 x)]]
                    [new (* 0.5 (+ new 1))])]
    (round (* 4096 (- old new)))))
(print "the value before beside the value" (old-and-new [4 2 3]))

(defn flagged [x] (while (not done) [[v done] [x false]] [(* v 0.5) (< (sum v) 0.1)]))
(print "a flag" (flagged [4 2 3]))

(defn unread [x] (while (not done) [[v done last] [x false 0.0]] [(* v 0.5) (< (sum v) 0.1) (max v)]))
(print "a flag and a state that nothing reads" (unread [4 2 3]))

(defn dictionary [x]
  (while (> (:err s) 1e-2) [s {:v x :err 1.0 :i 0}]
    {:v (* 0.5 (:v s)) :err (sum (abs (:v s))) :i (+ (:i s) 1)}))
(print "a dictionary" (dictionary [4 2 3]))

(defn rejection [key]
  (let [[x key n] (while (> (sum (* x x)) 1.0) [[x key n] [(full [2] 2.0) key 0]]
                    (let [[k1 k2] (random-split key)]
                      [(random-uniform k1 [2] :low -2.0 :high 2.0) k2 (+ n 1)]))]
    (list (round (* 1000 x)) n)))
(print "rejection sampling" (map rejection (map random-key '[1 2 3])))

(defn nearest-means [c xs]
  (let [d (sum (square (- (expand-dims xs 1) (expand-dims c 0))) :axis -1)
        a (one-hot (argmin d :axis 1) 2)]
    (/ (@ (tr a) xs) (+ 1e-9 (reshape (sum a :axis 0) [2 1])))))
(defn k-means [xs c0]
  (let [[c moved] (while (> moved 1e-3) [[c moved] [c0 1.0]]
                    (let [n (nearest-means c xs)] [n (max (abs (- n c)))]))]
    (round (* 1000 c))))
(print "k-means" (k-means (random-normal (random-key 0) [20 2]) (random-normal (random-key 1) [2 2])))

(defn power [a v0]
  (let [[v l err] (while (> err 1e-5) [[v l err] [v0 0.0 1.0]]
                    (let [w (@ a v) n (norm w) u (/ w n)] [u n (norm (- u v))]))]
    (list (round (* 1000 v)) (round (* 1000 l)) (< err 1e-5))))
(print "power iteration" (power [[2 1] [1 3]] [1.0 0.5]))

(defn nested [x]
  (while (> m 0.5) [[y m] [x 1.0]]
    (let [[z s] (while (< s 4.0) [[z s] [y 1.0]] [(* 0.5 z) (* s 2)])] [z (max z)])))
(print "a loop in a loop" (nested [8 4]))

(def read (int "200"))
(defn counted-by-a-tensor [x] (round (* 10 (repeat [i read] [v x] (+ (* 0.99 v) i)))))
(print "a count that was read" (counted-by-a-tensor [1 2]))

(defn folded [key x n] (round (* 100 (repeat [i n] [acc x] (+ acc (random-normal (fold-in key i) [3]))))))
(print "keys folded with a counter" (folded (random-key 0) [1 2 3] 20))
"#;

#[test]
fn loops_until_something_holds_are_compiled() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("loops.shf", sample_lines(LOOPS, "(print ", 2, 0));
    let interpreted = sandbox.run(&["loops.shf", "--no-jit"]).silent();
    let compiled = sandbox.run(&["loops.shf", "--jit", "always", "--strict"]).compiled();
    assert_eq!(compiled, interpreted);
}

/// Loops that overwrite values which are read again: before, after, by another state or in the next iteration. Each
/// prints sums and end elements of its results. The program's argument is the length of its vectors.
const IN_PLACE: &str = r#"
(def width (reduce (fn [n d] (+ (* 10 n) (index-of "0123456789" d))) 0 (chars (first (io "args")))))
(def key (random-key 7))
(def x (random-normal key (list width)))
(def w (random-normal (fold-in key 1) (list width)))
(def xs (random-normal (fold-in key 2) (list 6 width)))
(def places (arange 6))
(defn show [name v]
  (print name (tree-map (fn [t] (let [t (* 1.0 (reshape t '[-1]))] (list (mean t) (first t) (last t)))) v)))

(defn change-places [a b] (repeat [i 5] [[p q] [a b]] (list q (+ p q))))
(show "places" (change-places x w))
(defn old-beside-new [a b]
  (scan (fn [[p q] i] (let [u (index-update p i 7.0)] (list (list u p) (sum q)))) (list a b) places))
(show "old beside new" (old-beside-new x w))
(defn of-argument [a]
  (list a (scan (fn [p i] (let [u (index-update a i 7.0)] (list (+ p u) (first u)))) (zeros width) places)))
(show "of an argument" (of-argument x))
(defn of-value [a]
  (let [y (* a 2)] (list y (scan (fn [p i] (let [u (index-update y i 7.0)] (list (+ p u) u))) a places))))
(show "of a value" (of-value x))
(defn three-stacks [a xs] (scan (fn [h r] (let [h (tanh (+ h r))] (list h (list h (* 2 h) (- r))))) a xs))
(show "stacks" (three-stacks x xs))
(defn states [a xs] (scan (fn [h r] (let [h (tanh (+ h r))] (list h h))) a xs))
(defn loss [{:keys [a xs]}] (let [[h ys] (states a xs)] (+ (mean (* h h)) (mean (* ys ys)))))
(defn gradients [p] ((value-and-grad loss) p))
(show "gradients" (gradients {:a x :xs xs}))
(defn nested [a xs]
  (scan
    (fn [h r]
      (let [[g ys] (scan (fn [s q] (let [s (tanh (+ s (* 0.1 q) h))] (list s (* s r)))) h xs)]
        (list (* 0.5 (+ g h)) (mean ys))))
    a xs))
(show "nested" (nested x xs))
(defn nested-loss [{:keys [a xs]}] (let [[h ys] (nested a xs)] (+ (mean (* h h)) (mean ys))))
(defn nested-gradients [p] ((value-and-grad nested-loss) p))
(show "nested gradients" (nested-gradients {:a x :xs xs}))
(defn branches [a xs]
  (scan (fn [h r] (let [h (if (> (first r) 0) (+ h r) (- (* 0.5 h) 1))] (list h (max h)))) a xs))
(show "branches" (branches x xs))
(defn branch-gradients [{:keys [a xs]}]
  (let [step (fn [h r] (let [h (if (> (first h) 0) (softmax (* 3 (+ h r))) (sqrt (abs (+ 0.1 (sort h)))))] (list h h)))]
    (sum (square (second (scan step a xs))))))
(show "gradients of branches" ((value-and-grad branch-gradients) {:a x :xs xs}))
(defn guarded [a xs]
  (scan (fn [h {:keys [i r]}]
          (let [h (if (< i 3) (+ h (get [1 2 3] i)) (do (assert (> i 2)) (- (* 0.5 h) (sort r))))] (list h h)))
        a {:i places :r xs}))
(show "an index out of range in the other branch" (guarded x xs))
(defn in-branch [a xs] (if (> (first a) 1000) (states a xs) (states (* 2 a) xs)))
(show "in a branch" (in-branch x xs))
(defn truths [a xs]
  (scan
    (fn [[f g] r] (let [now (> r 0)] (list (list now (logical-or now g)) (list now (where f r (- r))))))
    (list (> a 0) (< a 0)) xs))
(show "truths" (truths x xs))
(defn stacks-of-bytes [a xs]
  (scan (fn [h r] (let [h (tanh (+ h r))] (list h (list (> h 0) (cast (> r 0.5) :i8) (cast (> r 1) :u8) (cast (> r 2) :u32))))) a xs))
(show "stacks of bytes" (stacks-of-bytes x xs))
(defn draws [k a] (repeat [i 4] [[k s] [k a]] (list (fold-in k i) (+ s (random-normal k (shape a))))))
(show "draws" (last (draws key x)))
(defn after [a xs]
  (let [[h ys] (states a xs) [g zs] (scan (fn [h r] (list (+ h r) (* h r))) h ys)]
    (list g zs ys (index-update ys 2 0.0))))
(show "after" (after x xs))
(defn rows [{:keys [a t]}]
  (let [[h ys] (scan (fn [h i] (let [h (tanh (+ h (embedding t i)))] (list h (mean h)))) a (mod places 5))]
    (+ (mean h) (mean ys))))
(defn row-gradients [p] ((value-and-grad rows) p))
(show "rows" (row-gradients {:a x :t xs}))
(def vectors (map (fn [i] (* (+ 0.5 i) x)) (range 12)))
(defn many-stacks [s] (scan (fn [s i] (let [n (map (fn [a] (+ (* 0.5 a) i)) s)] (list n n))) s places))
(show "many stacks" (many-stacks vectors))
(def many (map (fn [i] (* 0.5 i)) (range 40)))
(defn numbers [s xs] (scan (fn [s x] (let [n (map (fn [a] (+ (* 0.5 a) x)) s)] (list n n))) s xs))
(show "many numbers" (numbers many (first xs)))
(defn numbers-in-branch [s xs]
  (if (> (first xs) 100) (numbers s xs) (numbers (map (fn [a] (* 2 a)) s) xs)))
(show "many numbers in a branch" (numbers-in-branch many (first xs)))
(show "few numbers in a branch" (numbers-in-branch '[1.5 2.5] (first xs)))
"#;

/// The numbers in a text.
fn numbers(text: &str) -> Vec<f64> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+');
    text.split(|c: char| !is_part(c)).filter_map(|word| word.parse().ok()).collect()
}

/// Checks that two texts have the same numbers in each line, but for a relative difference of `tolerance` at most.
#[track_caller]
fn assert_near(compiled: &str, interpreted: &str, tolerance: f64) {
    for (found, right) in compiled.lines().zip(interpreted.lines()) {
        let (a, b) = (numbers(found), numbers(right));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * (1.0 + b.abs());
        assert!(a.len() == b.len() && a.iter().zip(&b).all(near), "{found}\ninterpreted:\n{right}");
    }
    assert_eq!(compiled.lines().count(), interpreted.lines().count());
}

/// Small vectors compile to loops in kernels, large ones to blocks of the program.
#[test]
fn loops_overwrite_nothing_that_is_read_again() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    for (position, size) in ["6", "5000"].into_iter().enumerate() {
        sandbox.write("in_place.shf", sample_lines(IN_PLACE, "(show ", 4, 2 * position));
        let run = |how: &[&str]| sandbox.run(&[&["in_place.shf"], how, &["--", size]].concat());
        let compiled = run(&["--jit", "always", "--strict"]);
        let interpreted = run(&["--no-jit"]).silent();
        assert!(!compiled.stderr.contains("interpreted"), "{compiled}");
        let explained = run(&["--jit", "always", "--strict", "--explain"]);
        assert!(!explained.stderr.contains("not in its quickest form"), "{explained}");
        assert_near(&compiled.stdout, &interpreted, 1e-5);
    }
}

/// Loops that update parts of their states, which the step reads before and after, or needs beside them.
const UPDATES: &str = r#"
(def n (int (first (io "args"))))
(def x (random-normal (random-key 0) (list n)))
(defn show [name v]
  (print name (map (fn [t] (let [t (* 1.0 (reshape t '[-1]))] (list (mean t) (first t) (last t)))) (flatten v))))
(defn turned [h] (sort (tanh (+ h (flip h)))))

(defn rows [x] (repeat [i 40] [acc (zeros (list 40 n))] (index-update acc i (* x i))))
(show "rows" (rows x))
(defn beside [x]
  (repeat [i 40] [[acc h] (list (zeros (list 40 n)) x)] (let [h (turned h)] (list (index-update acc i h) h))))
(show "a row beside a state" (beside x))
(defn shared [x]
  (let [z (broadcast-to (* 0.0 (expand-dims x 0)) (list 40 n))
        [a b h] (repeat [i 40] [[a b h] (list z z x)]
                  (let [h (turned h)] (list (index-update a i h) (index-update b (- 39 i) (* 2 h)) h)))]
    (list a b (+ z 1) h)))
(show "two states with one first value" (shared x))
(defn of-argument [a x]
  (list (repeat [i 20] [[s h] (list a x)] (let [h (sort (+ h (get a i)))] (list (index-update s i h) h))) a))
(show "an argument that is read again" (of-argument (rows x) x))
(defn recurrence [x]
  (repeat [i 39] [acc (index-update (zeros (list 40 n)) 0 x)]
    (index-update acc (+ i 1) (tanh (+ (* 0.9 (get acc i)) (get acc 0))))))
(show "rows of earlier steps" (recurrence x))
(defn exchange [x]
  (repeat [i 40] [[acc h] (list (* (ones 40 1) (expand-dims x 0)) x)]
    (let [old (get acc i) h (sort (tanh (+ h old)))] (list (index-update acc i h) (- h old)))))
(show "the old row beside the new" (exchange x))
(defn whole [x]
  (repeat [i 40] [[acc h] (list (zeros (list 40 n)) x)]
    (let [h (sort (+ (mean acc :axis 0) (tanh h)))] (list (index-update acc i h) h))))
(show "all rows before" (whole x))
(defn afterwards [x]
  (repeat [i 40] [[acc h] (list (zeros (list 40 n)) x)]
    (let [acc (index-update acc i (sort (tanh h)))] (list acc (+ (mean acc :axis 0) (* 0.5 h))))))
(show "all rows after" (afterwards x))
(defn places [x]
  (repeat [i 40] [[a b h] (list (zeros (list 40 n)) (ones 40 n) x)]
    (let [h (turned h)] (list b (index-update a i h) h))))
(show "states that change places" (places x))
(defn counts [key]
  (repeat [i 30] [c (zeros '[50 8])] (scatter-add c (random-randint (fold-in key i) (list n) 0 50) (ones n 8))))
(show "counts" (counts (random-key 3)))
(defn two [x] (repeat [i 20] [acc (zeros (list 40 n))] (index-update (index-update acc i (sort x)) (+ i 20) (* 2 x))))
(show "two rows" (two x))
(defn nested [x]
  (repeat [i 10] [acc (zeros (list 10 n))]
    (let [[b _] (repeat [j 10] [[b h] (list (zeros (list 10 n)) (+ x i))]
                  (let [h (turned h)] (list (index-update b j h) h)))]
      (index-update acc i (mean b :axis 0)))))
(show "a loop in a loop" (nested x))
(defn stacked [x]
  (scan (fn [acc i] (let [acc (index-update acc i (sort (* x i)))] (list acc (list acc (sum acc :axis 0)))))
        (zeros (list 20 n)) (arange 20)))
(show "all that steps made" (stacked x))
(defn loss [x]
  (let [[acc h] (beside x) r (recurrence (+ x h)) e (first (exchange h))]
    (+ (mean (square acc)) (mean (square r)) (mean (* e e e)))))
(defn gradients [x] ((value-and-grad loss) x))
(show "gradients" (gradients x))
(defn history [x]
  (let [h (repeat [i 30] [h (zeros (list 30 n))]
            (index-update h i (if (= i 0) (sort x) (+ (* 0.7 (get h (- i 1))) (* 0.3 (flip x))))))]
    (repeat [j 29] [s h] (let [i (- 28 j)] (index-update s i (* 0.5 (+ (get s i) (get s (+ i 1)))))))))
(show "a history, smoothed backwards" (history x))
(defn history-loss [x] (mean (square (history x))))
(defn history-gradients [x] ((value-and-grad history-loss) x))
(show "gradients of a history" (history-gradients x))
(defn casts [x]
  (repeat [i 40] [acc (zeros (list 40 n))]
    (let [j (- i 7)
          others (map (fn [d] (cast (cast j d) :f32)) (list :u8 :u16 :u32 :i8 :i16 :i32 :i64 :f16 :bf16 :f64 :bool))]
      (index-update acc i (* (sort x) (sum (stack (map (fn [y] (log1p y)) (map abs others)))))))))
(show "counters of other dtypes" (casts x))
(defn replay [key]
  (repeat [i 30] [[b w] (list (zeros (list 30 n)) (zeros n))]
    (let [k (fold-in key i)
          b (index-update b i (random-normal k (list n)))
          batch (get b (random-randint (fold-in k 1) '[8] 0 (+ i 1)))]
      (list b (+ (* 0.99 w) (* 0.01 (mean batch :axis 0)))))))
(show "random rows of those before" (replay (random-key 5)))
(defn paths [s key]
  (mean (relu (- (repeat [i 20] [v (full (list n) s)] (* v (exp (* 0.1 (random-normal (fold-in key i) (list n)))))) 1.0))))
(defn path-gradients [s key] ((value-and-grad paths) s key))
(show "gradients that save random bits" (path-gradients 1.5 (random-key 1)))
(defn slides [x]
  (let [windows (repeat [i 10] [acc (concat x x)] (index-update acc i (* 1.01 (sum (dynamic-slice acc i 4)))))]
    (sum (square windows))))
(defn slide-gradients [x] ((value-and-grad slides) x))
(show "gradients of windows" (slide-gradients x))
"#;

/// Both forms of a loop, with one thread and with several.
#[test]
fn loops_update_their_states_in_place() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    for (position, (size, place)) in [("7", "local-sync"), ("3000", "local-task")].into_iter().enumerate() {
        sandbox.write("updates.shf", sample_lines(UPDATES, "(show ", 3, 2 * position));
        let run = |how: &[&str]| sandbox.run(&[&["updates.shf"], how, &["--", size]].concat());
        let interpreted = run(&["--no-jit"]).silent();
        let how = ["--jit", "always", "--strict", "--explain", "--place", place];
        let compiled = run(&how);
        assert!(!compiled.stderr.contains("not in its quickest form"), "{compiled}");
        assert_near(&compiled.stdout, &interpreted, 1e-4);
    }
}

/// Loops beside one that ends by its state: none of them can be blocks, and all are too large to be kernels. Some of their
/// states are values that the step did not compute.
const REGIONS: &str = r#"
(def n 300)
(def x (random-normal (random-key 0) (list n 3)))
(def y (random-normal (random-key 1) (list n 3)))
(defn until [v] (while (< (sum v) 10.0) [v v] (* v 2)))
(defn show [name v]
  (print name (map (fn [t] (let [t (reshape t '[-1])] (list (mean (abs t)) (first t)))) v)))

(defn cost [x y] (sum (square (- (expand-dims x 1) (expand-dims y 0))) :axis 2))
(defn plan [x y]
  (let [c (cost x y)
        [f g] (repeat [i 40] [[f g] (list (zeros n) (zeros n))]
                (let [f (neg (logsumexp (- (expand-dims g 0) c) :axis 1))]
                  (list f (neg (logsumexp (- (expand-dims f 1) c) :axis 0)))))]
    (sum (* (exp (- (+ (expand-dims f 1) (expand-dims g 0)) c)) c))))
(defn cotangent-of-none [x y] (list ((grad plan) x y) (until (abs (get y 0)))))
(show "a cotangent that no step computes" (cotangent-of-none x y))
(defn handed [x]
  (let [a (repeat [i 40] [a x] (softmax (* 2 (- a (mean a :axis 0)))))
        b (tanh (* 3 a))
        [v w s] (repeat [i 40] [[v w s] (list b a x)] (list v v (- (+ s (logsumexp v :axis 0)) w)))]
    (list (* s x) (- w a) (until (abs (get x 0))))))
(show "a state that is handed on" (handed x))
(defn last-row [xs]
  (let [[h last] (first (scan
                          (fn [[h last] r] (list (list (tanh (+ h (@ r (tr r)))) r) 0))
                          (list (zeros '[3 3]) (zeros (list 3 n)))
                          xs))]
    (list h last (until (abs (get h 0))))))
(show "the last row" (last-row (stack (list (tr x) (tr y)))))
"#;

/// IREE frees the memory of such states twice. On one thread it is still there.
#[test]
fn states_in_regions_have_memory_of_their_own() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("regions.shf", REGIONS);
    let how = ["--jit", "always", "--strict", "--kernels", "never", "--place", "local-task"];
    let compiled = sandbox.run(&[&["regions.shf"], &how[..]].concat()).compiled();
    let interpreted = sandbox.run(&["regions.shf", "--no-jit"]).silent();
    assert_near(&compiled, &interpreted, 1e-4);
}

/// A training in one loop: after 160 steps of Adam, rounding has come up to the fourth digit.
const TRAINING: &str = r#"
(defn init [key]
  (let [[k1 k2] (random-split key)]
    {:hidden {:W (kaiming-normal k1 '[8 16]) :b (zeros 16)} :output {:W (kaiming-normal k2 '[16 3]) :b (zeros 3)}}))
(defmodel forward [x] (layer :hidden relu) (layer :output))
(defn loss [p x y] (cross-entropy-loss (forward x p) y))
(defn step [[p m v t] {:keys [x y]}]
  (list (adam-step p ((grad loss) p x y) m v t 0.01) 0.0))
(defn epoch [state x y] (first (scan step state {:x x :y y})))
(let [p (init (random-key 0))
      zero (tree-map-zeros p)
      x (random-normal (random-key 1) '[160 32 8])
      y (random-randint (random-key 2) '[160 32] 0 3)
      [p & _] (epoch (list p zero zero 0) x y)]
  (print "{:.1f}" (loss p (x 0) (y 0))))
"#;

#[test]
fn a_loop_that_amplifies_rounding_is_compiled_once() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("training.shf", TRAINING);
    // Without a kernel for all of it.
    let output = sandbox.run(&["training.shf", "--jit", "always", "--explain", "--kernels", "never"]);
    assert_eq!(output.stdout, sandbox.run(&["training.shf", "--no-jit"]).silent());
    assert_eq!(output.stderr.matches("compiling epoch\n").count(), 1, "{output}");
    assert!(!output.stderr.contains("not in its quickest form"), "{output}");
}
