//! Casts within compiled programs.

use sheaf_tests::{Sandbox, sample_lines};

/// Products with a factor that was boolean or unsigned and narrower: whole numbers, so that all orders of sums agree.
const PRODUCTS: &str = r"
(def x (reshape (arange 60) '[2 3 10]))
(def mask (> (reshape (arange 20) '[2 10]) 7))
(defn rows [x m] ((vmap (fn [x m] (@ x m))) x m))
(defn one [x m] (@ x m))
(defn times [f x m to] (f (cast x to) (cast m to)))
(defn products [x m]
  (map (fn [to] (list (times rows x m to)
                      (times one (x 0) (m 0) to)
                      (times one (x 1) (transpose (concat m m)) to)
                      (times one (concat m m) (transpose (x 1)) to)))
       '[:f32 :f64 :i32 :i64]))
(print (products x mask))
(print (products x (cast (* 13 (reshape (arange 20) '[2 10])) :u8)))
(print (products x (cast (* 3001 (reshape (arange 20) '[2 10])) :u16)))
(print (one (cast (x 0) :u32) (cast (cast (full '[10] 200) :u8) :u32)))
";

/// Joined with a product, a conversion took true for -1 and a `u8` of 200 for -56 (Q46).
#[test]
fn factors_that_had_no_sign_have_none() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("products.shf", sample_lines(PRODUCTS, "(print (products", 3, 1));
    let expected = sandbox.run(&["products.shf", "--no-jit"]).silent();
    assert!(expected.contains("29000"), "{expected}");
    assert_eq!(sandbox.run(&["products.shf", "--jit", "always"]).compiled(), expected);
}
