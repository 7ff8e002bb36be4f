//! Names from Clojure, Python, JAX and other libraries, with the Sheaf equivalent as help.

/// Names of other languages and libraries, with the help text.
const NAMES: &[(&[&str], &str)] = &[
    // Defining and importing.
    (&["import", "require", "from", "ns", "include"], "modules are used with (use name)"),
    (
        &["define", "defun", "func", "function", "defn-", "set", "setq", "var", "const"],
        "a value is defined with (def name value), a function with (defn name [params] body)",
    ),
    (&["class", "defrecord", "deftype", "struct"], "group values in a dictionary: {:W w :b b}"),
    (&["return", "yield"], "a function gives the value of its last expression; there is no return"),
    (
        &["set!", "swap!", "reset!", "atom", "global", "nonlocal", "del"],
        "values do not change: bind a new one with let, or carry it through repeat, while or reduce",
    ),
    (&["letfn", "let*", "letrec"], "write (let [f (fn [x] ...)] ...)"),
    (&["lambda:", "λ"], "a function is written (fn [x] ...); a comment starts with ;"),
    // Control flow.
    (
        &["for", "doseq", "dotimes", "foreach"],
        "loops are (repeat [i n] [acc init] body), (map f xs) and (reduce f init xs)",
    ),
    (
        &["elif", "elseif", "else-if", "switch", "match"],
        "choose with (if c a b), (cond c1 v1 c2 v2 :else v) or (case x k1 v1 default)",
    ),
    (&["else"], "the last condition of cond is :else; (if c a b) needs no word before b"),
    (&["if-let", "when-let", "if-not", "when-not"], "bind with let first, then (if x a b) or (when x ...)"),
    (
        &["try", "except", "catch", "raise", "throw"],
        "errors end the program and cannot be caught; check first with if",
    ),
    (
        &["in"],
        "loops and comprehensions are (map f xs) and (reduce f init xs); (contains? xs x) tests for an item",
    ),
    (&["lazy-seq", "doall", "dorun", "begin", "progn"], "several expressions in order are (do a b c)"),
    (&["pass"], "an expression that gives nothing is nil"),
    // Constants.
    (&["None", "null", "NULL", "undefined", "nothing"], "the empty value is nil"),
    (&["True", "TRUE", "#t"], "write true"),
    (&["False", "FALSE", "#f"], "write false"),
    (&["inf", "Infinity"], "infinity is (/ 1.0 0.0)"),
    (&["nan", "NaN"], "not-a-number is (/ 0.0 0.0)"),
    (&["pi", "PI"], "define it: (def pi 3.14159265358979)"),
    // Clojure's functions.
    (&["null?", "none?"], "write (nil? x)"),
    (&["some?"], "write (not (nil? x))"),
    (&["any?"], "write (some f xs); (any x) is for the elements of a tensor"),
    (&["not-any?"], "write (not (some f xs))"),
    (&["map-indexed", "enumerate", "mapv-indexed"], "write (map f (range (len xs)) xs)"),
    (&["zero?"], "write (= x 0)"),
    (&["even?", "odd?"], "write (= (mod x 2) 0)"),
    (&["not=", "<>", "/=", "≠"], "write (!= a b)"),
    (&["conj", "push", "extend"], "write (append xs x)"),
    (
        &["into", "vec", "vector", "tuple"],
        "a list is (list a b c), a tensor [1 2 3]; (stack xs) makes a tensor of a list",
    ),
    (&["hash-map", "array-map"], "write {:key value} or (dict k v)"),
    (&["Counter", "value_counts"], "write (frequencies xs)"),
    (&["mapcat", "flatmap"], "write (apply concat (map f xs))"),
    (&["filterv", "remove"], "write (filter f xs)"),
    (&["foldl", "fold", "foldr"], "write (reduce f init xs)"),
    (&["slurp", "open", "read-file"], "write (io \"read\" path)"),
    (&["spit"], "write (io \"write\" path text)"),
    (&["str/join", "string-append", "strcat"], "strings are joined with (str a b ...)"),
    (&["printf", "format!", "println!", "console.log", "prn"], "write (print \"{} of {}\" a b)"),
    // Python's functions and operators.
    (&["sorted"], "write (sort xs)"),
    (
        &["isinstance", "type", "typeof"],
        "write (tensor? x), (number? x), (string? x), (list? x), (dict? x) or (fn? x)",
    ),
    (&["pow", "^"], "write (** x y)"),
    (&["&&"], "write (and a b); element by element (logical-and a b)"),
    (&["||"], "write (or a b); element by element (logical-or a b)"),
    (&["!"], "write (not x)"),
    (&["===", "eq", "is"], "write (= a b), or (equal? a b) for one truth value"),
    (&["+=", "-=", "*=", "/=="], "values do not change: bind a new one with let"),
    (&["<-", ":="], "bind with (let [name value] ...) or (def name value)"),
    // Tensors.
    (&["array", "asarray", "Tensor", "DeviceArray"], "a vector literal is a tensor: [1 2 3]"),
    (&["matmul", "mm", "bmm"], "write (@ a b)"),
    (&["inverse"], "write (inv a)"),
    (
        &["eig", "eigvals"],
        "write (eigh a) or (eigvalsh a), which take symmetric matrices; there are no complex numbers",
    ),
    (&["concatenate", "cat", "vstack", "hstack"], "write (concat a b :axis 0), or (stack (list a b))"),
    (&["unsqueeze", "expand_dims", "newaxis"], "write (expand-dims x axis)"),
    (&["view"], "write (reshape x '[2 -1])"),
    (&["permute", "moveaxis"], "write (transpose x '[1 0 2])"),
    (&["clip"], "write (clamp x low high)"),
    (&["astype", "to"], "write (cast x :i32)"),
    (&["split", "chunk"], "write (tensor-split x n :axis 0)"),
    (&["index_select", "take_along_axis"], "write (get x indices)"),
    (&["randn", "normal", "standard_normal"], "write (random-normal (random-key 42) '[2 3])"),
    (&["rand", "random", "uniform"], "write (random-uniform (random-key 42) '[2 3])"),
    (&["randint", "rand-int"], "write (random-randint (random-key 42) '[2 3] low high)"),
    (&["PRNGKey", "key", "seed", "manual_seed"], "write (random-key 42); each use of randomness takes a key"),
    (&["jit", "compile", "pjit"], "leave it out: pure functions are compiled by themselves"),
    (&["value_and_grad"], "write (value-and-grad f)"),
    (&["backward", "requires_grad", "autograd"], "gradients are functions: ((grad loss) params)"),
    (&["no_grad", "detach", "stop_gradient"], "write (stop-gradient x)"),
    (
        &["item", "tolist", "numpy", "block_until_ready", "device_put", "cuda", "cpu"],
        "leave it out: values move to and from the device by themselves",
    ),
    (&["Linear", "Dense"], "write (linear x W b)"),
    (&["fori_loop"], "write (repeat [i n] [acc init] body)"),
    (&["while_loop"], "write (while condition [acc init] body)"),
    (&["power"], "write (** x y)"),
    (&["multiply"], "write (* a b)"),
    (&["divide", "true_divide"], "write (/ a b)"),
    (&["subtract"], "write (- a b)"),
    (&["add"], "write (+ a b)"),
];

/// Prefixes before a point that name a library of Python or Java rather than a value.
const LIBRARIES: [&str; 16] = [
    "np",
    "numpy",
    "jnp",
    "jax",
    "torch",
    "tf",
    "math",
    "F",
    "nn",
    "lax",
    "random",
    "optax",
    "functools",
    "Math",
    "keras",
    "K",
];

/// Help for a foreign `name`. `known` is true of names that have a meaning in Sheaf.
pub fn foreign_name_help(name: &str, known: &dyn Fn(&str) -> bool) -> Option<String> {
    listed(name)
        .or_else(|| option(name))
        .or_else(|| dotted(name, known))
        .or_else(|| spelling(name, known))
        .or_else(|| infix(name, known))
}

fn listed(name: &str) -> Option<String> {
    let (_, help) = NAMES.iter().find(|(names, _)| names.contains(&name))?;
    Some((*help).to_string())
}

/// `axis=1`, `x:`, `'text'`.
fn option(name: &str) -> Option<String> {
    if let Some((option, value)) = name.split_once('=')
        && !option.is_empty()
        && option.chars().all(|c| c.is_alphanumeric() || c == '_')
    {
        let value = if value.is_empty() { "value" } else { value };
        return Some(format!("an option is written :{} {value}", option.replace('_', "-")));
    }
    if name.starts_with('#') {
        return Some("a comment starts with ;".into());
    }
    if name.len() > 1 && name.ends_with(':') {
        return Some(
            "a function is written (fn [x] ...), an option or key :name, each without a colon behind".into(),
        );
    }
    name.ends_with('\'').then(|| "text is written in double quotes: \"text\"".into())
}

/// `np.zeros`, `jax.lax.scan`, `x.shape`, `xs.append`.
fn dotted(name: &str, known: &dyn Fn(&str) -> bool) -> Option<String> {
    let (before, last) =
        name.rsplit_once(['.', '/']).filter(|(b, l)| b.starts_with(char::is_alphabetic) && !l.is_empty())?;
    let library = LIBRARIES.contains(&before.split(['.', '/']).next().unwrap_or(before));
    if library {
        let here = plain(last, known);
        return Some(match here {
            Some(here) => format!("names have no library before them: write {here}"),
            None => listed(last)
                .unwrap_or_else(|| format!("there is no {before} here; `sheaf doc` lists the builtins")),
        });
    }
    if name.contains('/') {
        return None;
    }
    Some(match (last, plain(last, known)) {
        ("T", _) => format!("write (transpose {before})"),
        (_, Some(here)) => format!("there are no methods: write ({here} {before})"),
        _ => match listed(last) {
            Some(help) => format!("there are no methods; {help}"),
            None => {
                format!("there are no methods or fields: write (f {before}), or (:{last} {before}) for a key")
            }
        },
    })
}

/// `log_softmax`, `ReLU`.
fn spelling(name: &str, known: &dyn Fn(&str) -> bool) -> Option<String> {
    plain(name, known).filter(|here| here != name).map(|here| format!("write {here}"))
}

/// `-x`, `x+1`.
fn infix(name: &str, known: &dyn Fn(&str) -> bool) -> Option<String> {
    let operand = |word: &str| known(word) || word.parse::<f64>().is_ok_and(f64::is_finite);
    if let Some(x) = name.strip_prefix('-').filter(|x| known(x)) {
        return Some(format!("a blank makes it a call: (- {x})"));
    }
    let (at, operator) = name.char_indices().skip(1).find(|(_, c)| "+-*/<>".contains(*c))?;
    let (a, b) = (&name[..at], &name[at + 1..]);
    (operand(a) && operand(b)).then(|| format!("an operator is called like a function: ({operator} {a} {b})"))
}

/// The name in Sheaf's spelling, if it is known.
fn plain(name: &str, known: &dyn Fn(&str) -> bool) -> Option<String> {
    let dashes = name.replace('_', "-");
    [name.to_string(), dashes.clone(), dashes.to_lowercase()].into_iter().find(|n| known(n))
}

#[cfg(test)]
mod tests {
    use super::foreign_name_help;

    #[test]
    fn habits_of_other_languages_have_an_answer() {
        let known = |n: &str| ["zeros", "shape", "log-softmax", "relu", "sum", "grad"].contains(&n);
        let cases = [
            ("import", "modules are used with (use name)"),
            ("axis=1", "an option is written :axis 1"),
            ("keep_dims=True", "an option is written :keep-dims True"),
            ("np.zeros", "names have no library before them: write zeros"),
            ("jnp/zeros", "names have no library before them: write zeros"),
            ("jax.grad", "names have no library before them: write grad"),
            ("jnp.dot.matmul", "write (@ a b)"),
            ("torch.cat", "write (concat a b :axis 0), or (stack (list a b))"),
            ("x.shape", "there are no methods: write (shape x)"),
            ("x.T", "write (transpose x)"),
            ("log_softmax", "write log-softmax"),
            ("ReLU", "write relu"),
            ("-relu", "a blank makes it a call: (- relu)"),
            ("sum*2", "an operator is called like a function: (* sum 2)"),
            ("math.pi", "define it: (def pi 3.14159265358979)"),
            ("hello'", "text is written in double quotes: \"text\""),
        ];
        for (name, wanted) in cases {
            assert_eq!(foreign_name_help(name, &known).as_deref(), Some(wanted), "{name}");
        }
        for name in ["lenght", "x", "=", "a-b", "1.5", "f!", "-", "-x", "sum-", "+sum", "sum+x"] {
            assert_eq!(foreign_name_help(name, &known), None, "{name}");
        }
    }
}
