//! The entries of the special forms.

/// A special form.
pub(super) struct SpecialForm {
    pub name: &'static str,
    pub signature: &'static str,
    pub help: &'static str,
    /// One `code ;=> result` a line.
    pub examples: &'static str,
}

const fn form(
    name: &'static str,
    signature: &'static str,
    help: &'static str,
    examples: &'static str,
) -> SpecialForm {
    SpecialForm { name, signature, help, examples }
}

/// Every special form.
pub(super) const FORMS: &[SpecialForm] = &[
    form(
        "quote",
        "'x or (quote x)",
        "x itself, not evaluated: code, a list, a shape",
        "'(+ 1 x) ;=> (list '+ 1 'x)\n\
         (first '[a b]) ;=> 'a\n\
         (zeros '[2]) ;=> [0 0]",
    ),
    form(
        "quasiquote",
        "`x or (quasiquote x)",
        "x not evaluated, but for ~ and ~@ within it: a template of code",
        "`(1 ~(+ 1 1)) ;=> '(1 2)\n\
         `(1 ~@(list 2 3)) ;=> '(1 2 3)",
    ),
    form(
        "unquote",
        "~x or (unquote x)",
        "within a quasiquote, the value of x",
        "`(a ~(* 2 3)) ;=> '(a 6)\n\
         ~x ;=> error: outside of a quasiquote",
    ),
    form(
        "unquote-splicing",
        "~@xs or (unquote-splicing xs)",
        "within a list of a quasiquote, the items of xs",
        "`(+ ~@'(1 2)) ;=> '(+ 1 2)\n\
         `~@'(1) ;=> error: splices into a list",
    ),
    form(
        "if",
        "(if condition then else?)",
        "then where the condition holds, otherwise else or nil; false, nil and a false scalar do not hold",
        "(if (> 2 1) :yes :no) ;=> :yes\n\
         (if 0 :yes :no) ;=> :yes\n\
         (if [true false] 1 2) ;=> error: a condition is one truth value",
    ),
    form(
        "and",
        "(and x ...)",
        "the first of the values that does not hold, or the last; what follows it is not evaluated",
        "(and 1 2) ;=> 2\n\
         (and nil (undefined)) ;=> error: unknown name\n\
         (and false 1) ;=> false",
    ),
    form(
        "or",
        "(or x ...)",
        "the first of the values that holds, or the last; what follows it is not evaluated",
        "(or nil 3) ;=> 3\n\
         (or false nil) ;=> nil",
    ),
    form(
        "do",
        "(do x ...)",
        "evaluates each in turn and gives the last; at the top level, its definitions are those of the file",
        "(do 1 2 3) ;=> 3\n\
         (do) ;=> nil",
    ),
    form(
        "let",
        "(let [pattern value ...] body...)",
        "binds names for the body, each visible to the next; patterns take lists, tensors and dictionaries apart: [a b & rest], {:keys [a b] :or {b 0} :as whole}",
        "(let [x 2 y (* x x)] (+ x y)) ;=> 6\n\
         (let [[a & more] '[1 2 3] {:keys [b]} {:b 4}] (list a more b)) ;=> '[1 [2 3] 4]\n\
         (let [{:keys [a b] :or {b 5}} {:a 1}] (+ a b)) ;=> 6\n\
         (let [x] x) ;=> error: a value for every name",
    ),
    form(
        "case",
        "(case x key value ... default?)",
        "the value beside the key that equals x, the default or nil; keys are not evaluated, several stand in round brackets",
        "(case 2 1 :one 2 :two) ;=> :two\n\
         (case 5 (1 2) :low :high) ;=> :high\n\
         (case :c :a 1) ;=> nil",
    ),
    form(
        "cond",
        "(cond condition value ... :else value)",
        "the value beside the first condition that holds, or nil",
        "(cond false 1 true 2 :else 3) ;=> 2\n\
         (cond nil 1 :else 3) ;=> 3\n\
         (cond true) ;=> error: pairs of condition and value",
    ),
    form(
        "fn",
        "(fn [params] body...)",
        "a function of the parameters, which sees the names around it; parameters may be patterns, typed (x f32 [4 2]), the rest: & xs, or keyword arguments: & {:keys [lr] :or {lr 0.1}}; #(* % 2) is short for (fn [x] (* x 2)), with %1 %2 and %& for several",
        "((fn [x y] (- x y)) 5 3) ;=> 2\n\
         ((fn [x & more] more) 1 2 3) ;=> '[2 3]\n\
         ((fn [x & {:keys [lr] :or {lr 2}}] (* x lr)) 5 :lr 3) ;=> 15\n\
         (map #(+ % 1) '[1 2]) ;=> '[2 3]\n\
         ((fn [x] x)) ;=> error: takes 1 argument",
    ),
    form("lambda", "(lambda (params) body...)", "the same as fn", "((lambda (x) (* x x)) 3) ;=> 9"),
    form(
        "repeat",
        "(repeat [i n] [acc init] body...)",
        "n times the body, with i counting from 0; the body gives the next acc, the last is the value",
        "(repeat [i 4] [acc 0] (+ acc i)) ;=> 6\n\
         (repeat [i 5] [[a b] [0 1]] [b (+ a b)]) ;=> '[5 8]\n\
         (repeat [i 2.5] [acc 0] acc) ;=> error: whole number",
    ),
    form(
        "while",
        "(while condition [acc init] body...)",
        "the body as long as the condition, which sees acc, holds; the body gives the next acc",
        "(while (< x 100) [x 1] (* 2 x)) ;=> 128\n\
         (while (> n 0) [[n sum] [3 0]] [(- n 1) (+ sum n)]) ;=> '[0 6]",
    ),
    form(
        "loop",
        "(loop [pattern init ...] body...)",
        "the body with names bound as by let; where it ends in (recur x ...), the body again with the names bound to the x, else its value",
        "(loop [i 0 sum 0] (if (< i 5) (recur (inc i) (+ sum i)) sum)) ;=> 10\n\
         (loop [x 1.0] (let [y (/ (+ x (/ 2 x)) 2)] (if (< (abs (- y x)) 1e-5) y (recur y)))) ;=> 1.4142135",
    ),
    form(
        "recur",
        "(recur x ...)",
        "at the end of the body of a loop or function: the body again, with a new value for each of its names",
        "(loop [n 3] (if (> n 0) (recur (dec n)) :done)) ;=> :done\n\
         (do (defn fact [n acc] (if (<= n 1) acc (recur (- n 1) (* acc n)))) (fact 5 1)) ;=> 120\n\
         (loop [n 3] (+ 1 (recur n))) ;=> error: recur stands where the value of a loop",
    ),
    form(
        "with-params",
        "(with-params [p :key ...] body...) or (with-params p body...)",
        "the body with the keys of the dictionary p, or of the one at the key path, as names; a name at the head of a call means a function where there is one",
        "(with-params {:W 2 :b 1} (+ (* 3 W) b)) ;=> 7\n\
         (with-params [{:l1 {:W 2}} :l1] W) ;=> 2\n\
         (with-params {:W 2} (* W b)) ;=> error: unknown name b",
    ),
    form(
        "static",
        "(static x)",
        "x, which must be known when the function around it is compiled; otherwise an error here",
        "(static (+ 1 2)) ;=> 3",
    ),
    form(
        "def",
        "(def name value)",
        "a constant of the file; visible in the whole file, with a value once its form has run",
        "(do (def answer 42) answer) ;=> 42\n\
         (let [x 1] (def y 2)) ;=> error: belongs at the top level",
    ),
    form(
        "defn",
        "(defn name \"doc\"? [params] body...)",
        "a function of the file; (defn (name params) ...) is the same, and options such as :jit before the name or the body are accepted",
        "(do (defn double [x] (* 2 x)) (double 21)) ;=> 42\n\
         (do (defn (sub a b) :jit (- a b)) (sub 3 1)) ;=> 2\n\
         (defn if [x] x) ;=> error: special form",
    ),
    form(
        "defmacro",
        "(defmacro name [params] body...)",
        "code that makes code: called with the forms of its use while the file is expanded, it gives the form to stand there",
        "(do (defmacro twice [x] `(list ~x ~x)) (twice (+ 1 2))) ;=> '[3 3]\n\
         (do (defmacro five [] [1 2]) (five)) ;=> error: which is not code",
    ),
    form(
        "defparams",
        "(defparams Name {:l1 {:W [2 8] :b [8]}})",
        "names a tree of shapes, [:f32 2 8] with the dtype too; a parameter (p :as Name) takes only such a tree",
        "(do (defparams Layer {:W [2 1]}) (defn f [(p :as Layer)] (sum (:W p))) (f {:W [[1] [2]]})) ;=> 3\n\
         (do (defparams Row {:b [2]}) (defn g [(p :as Row)] p) (g {:b [1 2 3]})) ;=> error: p.b wants a tensor of shape [2]",
    ),
    form(
        "defgrad",
        "(defgrad f [args] [out] [cotangent] body...)",
        "the gradient of f, a function defined above: from its arguments, its result and the cotangent of the result, the body gives the cotangent of the argument, or a list of them for several",
        "(do (defn double [x] (* 2 x)) (defgrad double [x] [y] [g] (* 10 g)) ((grad double) 3.0)) ;=> 10.0",
    ),
    form(
        "use",
        "(use name), (use name :as n), (use name :only [a b]), (use ./file.shf)",
        "makes the public names of a module known here, all of them, behind a prefix n/, or those named",
        "(do (use nn) (mse-loss [1 2] [1 4])) ;=> 2\n\
         (do (use nn :as net) (net/mse-loss [1 2] [1 4])) ;=> 2\n\
         (use nowhere) ;=> error: cannot use nowhere",
    ),
    form(
        "->",
        "(-> x form ...)",
        "x as the first argument of the first form, the result as the first of the next, and so on",
        "(-> 5 (- 1) (* 2)) ;=> 8\n\
         (-> -3 abs sqrt square) ;=> 3.0",
    ),
    form(
        "->>",
        "(->> x form ...)",
        "x as the last argument of the first form, the result as the last of the next, and so on",
        "(->> 5 (- 1) (* 2)) ;=> -8\n\
         (->> '[1 2 3] (map square) (reduce + 0)) ;=> 14",
    ),
    form(
        "as->",
        "(as-> init name form ...)",
        "each form with name bound to the value of the one before",
        "(as-> 5 x (- x 1) (/ 8 x)) ;=> 2.0\n\
         (as-> 1) ;=> error: a value and a name",
    ),
    form(
        "&",
        "[a b & rest]",
        "in a parameter list or pattern, the name after it takes what is left, as a list",
        "((fn [a & more] (len more)) 1 2 3) ;=> 2\n\
         (let [[a & [b]] '[1 2]] b) ;=> 2\n\
         (fn [& a b] a) ;=> error: one last name",
    ),
];

#[cfg(test)]
mod tests {
    use super::FORMS;
    use crate::eval::SPECIAL;

    #[test]
    fn every_special_form_has_an_entry() {
        let names: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
        for name in SPECIAL {
            assert!(names.contains(&name), "{name} has no entry");
        }
        assert_eq!(names.len(), SPECIAL.len(), "an entry that is no special form");
    }
}
