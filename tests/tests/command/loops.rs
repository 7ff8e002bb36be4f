//! Loops until something holds, each as one operation of a compiled program, with states of all kinds.

use sheaf_tests::World;

/// What is printed is whole, or rounded so that the order of operations does not matter.
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

(defn folded [key x n] (round (* 100 (repeat [i n] [acc x] (+ acc (random-normal (fold-in key i) [3]))))))
(print "keys folded with a counter" (folded (random-key 0) [1 2 3] 20))
"#;

#[test]
fn loops_until_something_holds_are_compiled() {
    let Some(world) = World::with_compiler() else { return };
    world.write("loops.shf", LOOPS);
    let interpreted = world.run(&["loops.shf", "--no-jit"]).silent();
    let compiled = world.run(&["loops.shf", "--jit", "always", "--strict"]).compiled();
    assert_eq!(compiled, interpreted);
}
