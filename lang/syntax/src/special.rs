//! The special forms: the one table of their names, documentation and layout.
//!
//! The resolver, the expander, the formatter and the reference page take theirs from it. A form without a rule in one of
//! them is an error of the compiler, since they match on the variants.

use crate::Form;
use crate::fmt::Layout;

/// Description of a special form.
#[derive(Debug)]
pub struct Description {
    /// The name, at the head of a list.
    pub name: &'static str,
    /// The call syntax.
    pub signature: &'static str,
    /// The help text.
    pub help: &'static str,
    /// The examples, one `code ;=> result` a line.
    pub examples: &'static str,
    /// The layout of lists with this head.
    pub(crate) layout: Layout,
}

macro_rules! special_forms {
    ($($form:ident = $name:literal { $($field:ident: $value:expr,)* })*) => {
        /// A special form.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SpecialForm {
            $(#[doc = concat!("`", $name, "`")] $form,)*
        }

        impl SpecialForm {
            /// All special forms, in the order of the reference page.
            pub const ALL: &[SpecialForm] = &[$(SpecialForm::$form),*];

            const DESCRIPTIONS: &[Description] = &[$(Description { name: $name, $($field: $value),* }),*];

            /// The special form of that name.
            pub fn named(name: &str) -> Option<SpecialForm> {
                match name {
                    $($name => Some(SpecialForm::$form),)*
                    _ => None,
                }
            }
        }
    };
}

impl SpecialForm {
    /// Its entry in the table.
    pub fn description(self) -> &'static Description {
        &SpecialForm::DESCRIPTIONS[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// True if a program may redefine it.
    pub fn is_redefinable(self) -> bool {
        matches!(self, SpecialForm::Loop | SpecialForm::Recur)
    }
}

impl Form {
    /// The special form that this symbol names.
    pub fn special(&self) -> Option<SpecialForm> {
        SpecialForm::named(&self.symbol()?)
    }
}

special_forms! {
    Quote = "quote" {
        signature: "'x or (quote x)",
        help: "x itself, not evaluated: code, a list, a shape",
        examples: "'(+ 1 x) ;=> (list '+ 1 'x)\n\
         (first '[a b]) ;=> 'a\n\
         (zeros '[2]) ;=> [0 0]",
        layout: Layout::CALL,
    }
    Quasiquote = "quasiquote" {
        signature: "`x or (quasiquote x)",
        help: "x not evaluated, but for ~ and ~@ within it: a template of code",
        examples: "`(1 ~(+ 1 1)) ;=> '(1 2)\n\
         `(1 ~@(list 2 3)) ;=> '(1 2 3)",
        layout: Layout::CALL,
    }
    Unquote = "unquote" {
        signature: "~x or (unquote x)",
        help: "within a quasiquote, the value of x",
        examples: "`(a ~(* 2 3)) ;=> '(a 6)\n\
         ~x ;=> error: outside of a quasiquote",
        layout: Layout::CALL,
    }
    UnquoteSplicing = "unquote-splicing" {
        signature: "~@xs or (unquote-splicing xs)",
        help: "within a list of a quasiquote, the items of xs",
        examples: "`(+ ~@'(1 2)) ;=> '(+ 1 2)\n\
         `~@'(1) ;=> error: splices into a list",
        layout: Layout::CALL,
    }
    If = "if" {
        signature: "(if condition then else?)",
        help: "then where the condition holds, otherwise else or nil; false, nil and a false scalar do not hold",
        examples: "(if (> 2 1) :yes :no) ;=> :yes\n\
         (if 0 :yes :no) ;=> :yes\n\
         (if [true false] 1 2) ;=> error: a condition is one truth value",
        layout: Layout::body(1),
    }
    And = "and" {
        signature: "(and x ...)",
        help: "the first of the values that does not hold, or the last; what follows it is not evaluated",
        examples: "(and 1 2) ;=> 2\n\
         (and nil (undefined)) ;=> error: unknown name\n\
         (and false 1) ;=> false",
        layout: Layout::CALL,
    }
    Or = "or" {
        signature: "(or x ...)",
        help: "the first of the values that holds, or the last; what follows it is not evaluated",
        examples: "(or nil 3) ;=> 3\n\
         (or false nil) ;=> nil",
        layout: Layout::CALL,
    }
    Do = "do" {
        signature: "(do x ...)",
        help: "evaluates each in turn and gives the last; at the top level, its definitions are those of the file",
        examples: "(do 1 2 3) ;=> 3\n\
         (do) ;=> nil",
        layout: Layout::CALL,
    }
    Let = "let" {
        signature: "(let [pattern value ...] body...)",
        help: "binds names for the body, each visible to the next; patterns take lists, tensors and dictionaries apart: [a b & rest], {:keys [a b] :or {b 0} :as whole}",
        examples: "(let [x 2 y (* x x)] (+ x y)) ;=> 6\n\
         (let [[a & more] '[1 2 3] {:keys [b]} {:b 4}] (list a more b)) ;=> '[1 [2 3] 4]\n\
         (let [{:keys [a b] :or {b 5}} {:a 1}] (+ a b)) ;=> 6\n\
         (let [x] x) ;=> error: a value for every name",
        layout: Layout::body(1).bindings(&[1]),
    }
    Case = "case" {
        signature: "(case x key value ... default?)",
        help: "the value beside the key that equals x, the default or nil; keys are not evaluated, several stand in round brackets",
        examples: "(case 2 1 :one 2 :two) ;=> :two\n\
         (case 5 (1 2) :low :high) ;=> :high\n\
         (case :c :a 1) ;=> nil",
        layout: Layout::body(1).pairs(2),
    }
    Cond = "cond" {
        signature: "(cond condition value ... :else value)",
        help: "the value beside the first condition that holds, or nil",
        examples: "(cond false 1 true 2 :else 3) ;=> 2\n\
         (cond nil 1 :else 3) ;=> 3\n\
         (cond true) ;=> error: pairs of condition and value",
        layout: Layout::CALL.pairs(1),
    }
    Fn = "fn" {
        signature: "(fn [params] body...)",
        help: "a function of the parameters, which sees the names around it; parameters may be patterns, typed (x f32 [4 2]), the rest: & xs, or keyword arguments: & {:keys [lr] :or {lr 0.1}}; #(* % 2) is short for (fn [x] (* x 2)), with %1 %2 and %& for several",
        examples: "((fn [x y] (- x y)) 5 3) ;=> 2\n\
         ((fn [x & more] more) 1 2 3) ;=> '[2 3]\n\
         ((fn [x & {:keys [lr] :or {lr 2}}] (* x lr)) 5 :lr 3) ;=> 15\n\
         (map #(+ % 1) '[1 2]) ;=> '[2 3]\n\
         ((fn [x] x)) ;=> error: takes 1 argument",
        layout: Layout::definition(1),
    }
    Lambda = "lambda" {
        signature: "(lambda (params) body...)",
        help: "the same as fn",
        examples: "((lambda (x) (* x x)) 3) ;=> 9",
        layout: Layout::definition(1),
    }
    Repeat = "repeat" {
        signature: "(repeat [i n] [acc init] body...)",
        help: "n times the body, with i counting from 0; the body gives the next acc, the last is the value",
        examples: "(repeat [i 4] [acc 0] (+ acc i)) ;=> 6\n\
         (repeat [i 5] [[a b] [0 1]] [b (+ a b)]) ;=> '[5 8]\n\
         (repeat [i 2.5] [acc 0] acc) ;=> error: whole number",
        layout: Layout::body(2).bindings(&[1, 2]),
    }
    While = "while" {
        signature: "(while condition [acc init] body...)",
        help: "the body as long as the condition, which sees acc, holds; the body gives the next acc",
        examples: "(while (< x 100) [x 1] (* 2 x)) ;=> 128\n\
         (while (> n 0) [[n sum] [3 0]] [(- n 1) (+ sum n)]) ;=> '[0 6]",
        layout: Layout::body(2).bindings(&[2]),
    }
    Loop = "loop" {
        signature: "(loop [pattern init ...] body...)",
        help: "the body with names bound as by let; where it ends in (recur x ...), the body again with the names bound to the x, else its value",
        examples: "(loop [i 0 sum 0] (if (< i 5) (recur (inc i) (+ sum i)) sum)) ;=> 10\n\
         (loop [x 1.0] (let [y (/ (+ x (/ 2 x)) 2)] (if (< (abs (- y x)) 1e-5) y (recur y)))) ;=> 1.4142135",
        layout: Layout::body(1).bindings(&[1]),
    }
    Recur = "recur" {
        signature: "(recur x ...)",
        help: "at the end of the body of a loop or function: the body again, with a new value for each of its names",
        examples: "(loop [n 3] (if (> n 0) (recur (dec n)) :done)) ;=> :done\n\
         (do (defn fact [n acc] (if (<= n 1) acc (recur (- n 1) (* acc n)))) (fact 5 1)) ;=> 120\n\
         (loop [n 3] (+ 1 (recur n))) ;=> error: recur stands where the value of a loop",
        layout: Layout::CALL,
    }
    WithParams = "with-params" {
        signature: "(with-params [p :key ...] body...) or (with-params p body...)",
        help: "the body with the keys of the dictionary p, or of the one at the key path, as names; a name at the head of a call means a function where there is one",
        examples: "(with-params {:W 2 :b 1} (+ (* 3 W) b)) ;=> 7\n\
         (with-params [{:l1 {:W 2}} :l1] W) ;=> 2\n\
         (with-params {:W 2} (* W b)) ;=> error: unknown name b",
        layout: Layout::CALL,
    }
    Static = "static" {
        signature: "(static x)",
        help: "x, which must be known when the function around it is compiled; otherwise an error here",
        examples: "(static (+ 1 2)) ;=> 3",
        layout: Layout::CALL,
    }
    Def = "def" {
        signature: "(def name value)",
        help: "a constant of the file; visible in the whole file, with a value once its form has run",
        examples: "(do (def answer 42) answer) ;=> 42\n\
         (let [x 1] (def y 2)) ;=> error: belongs at the top level",
        layout: Layout::definition(1),
    }
    Defn = "defn" {
        signature: "(defn name \"doc\"? [params] body...)",
        help: "a function of the file; (defn (name params) ...) is the same, and options such as :jit before the name or the body are accepted",
        examples: "(do (defn double [x] (* 2 x)) (double 21)) ;=> 42\n\
         (do (defn (sub a b) :jit (- a b)) (sub 3 1)) ;=> 2\n\
         (defn if [x] x) ;=> error: special form",
        layout: Layout::CALL,
    }
    Defmacro = "defmacro" {
        signature: "(defmacro name [params] body...)",
        help: "code that makes code: called with the forms of its use while the file is expanded, it gives the form to stand there",
        examples: "(do (defmacro twice [x] `(list ~x ~x)) (twice (+ 1 2))) ;=> '[3 3]\n\
         (do (defmacro five [] [1 2]) (five)) ;=> error: which is not code",
        layout: Layout::CALL,
    }
    Defparams = "defparams" {
        signature: "(defparams Name {:l1 {:W [2 8] :b [8]}})",
        help: "names a tree of shapes, [:f32 2 8] with the dtype too; a parameter (p :as Name) takes only such a tree",
        examples: "(do (defparams Layer {:W [2 1]}) (defn f [(p :as Layer)] (sum (:W p))) (f {:W [[1] [2]]})) ;=> 3\n\
         (do (defparams Row {:b [2]}) (defn g [(p :as Row)] p) (g {:b [1 2 3]})) ;=> error: p.b wants a tensor of shape [2]",
        layout: Layout::definition(1),
    }
    Defgrad = "defgrad" {
        signature: "(defgrad f [args] [out] [cotangent] body...)",
        help: "the gradient of f, a function defined above: from its arguments, its result and the cotangent of the result, the body gives the cotangent of the argument, or a list of them for several; the body may call f, whose third and higher derivatives there are those of its code",
        examples: "(do (defn double [x] (* 2 x)) (defgrad double [x] [y] [g] (* 10 g)) ((grad double) 3.0)) ;=> 10.0",
        layout: Layout::definition(4),
    }
    Use = "use" {
        signature: "(use name), (use name :as n), (use name :only [a b]), (use ./file.shf)",
        help: "makes the public names of a module known here, all of them, behind a prefix n/, or those named",
        examples: "(do (use nn) (mse-loss [1 2] [1 4])) ;=> 2\n\
         (do (use nn :as net) (net/mse-loss [1 2] [1 4])) ;=> 2\n\
         (use nowhere) ;=> error: cannot use nowhere",
        layout: Layout::CALL,
    }
    ThreadFirst = "->" {
        signature: "(-> x form ...)",
        help: "x as the first argument of the first form, the result as the first of the next, and so on",
        examples: "(-> 5 (- 1) (* 2)) ;=> 8\n\
         (-> -3 abs sqrt square) ;=> 3.0",
        layout: Layout::CALL,
    }
    ThreadLast = "->>" {
        signature: "(->> x form ...)",
        help: "x as the last argument of the first form, the result as the last of the next, and so on",
        examples: "(->> 5 (- 1) (* 2)) ;=> -8\n\
         (->> '[1 2 3] (map square) (reduce + 0)) ;=> 14",
        layout: Layout::CALL,
    }
    ThreadAs = "as->" {
        signature: "(as-> init name form ...)",
        help: "each form with name bound to the value of the one before",
        examples: "(as-> 5 x (- x 1) (/ 8 x)) ;=> 2.0\n\
         (as-> 1) ;=> error: a value and a name",
        layout: Layout::body(2),
    }
    Rest = "&" {
        signature: "[a b & rest]",
        help: "in a parameter list or pattern, the name after it takes what is left, as a list",
        examples: "((fn [a & more] (len more)) 1 2 3) ;=> 2\n\
         (let [[a & [b]] '[1 2]] b) ;=> 2\n\
         (fn [& a b] a) ;=> error: one last name",
        layout: Layout::CALL,
    }
}
