//! Functions of many tensors: a kernel of a compiled program reads only so many.

use sheaf_tests::World;

#[test]
fn a_sum_of_many_tensors_is_compiled() {
    let Some(world) = World::with_compiler() else { return };
    let names: Vec<String> = (0..34).map(|i| format!("x{i}")).collect();
    let values: Vec<String> = (0..34).map(|i| format!("[{i} 1 2]")).collect();
    let (names, values) = (names.join(" "), values.join(" "));
    // Small enough for plain calls, and too large for them.
    world.write(
        "wide.shf",
        format!(
            "(defn all [{names}] (+ {names}))
             (print (all {values}))
             (defn total [p] (reduce + 0.0 p))
             (print (sum (total (map (fn [i] (* i (ones [100 200]))) (range 40)))))"
        ),
    );
    assert_eq!(world.run(&["wide.shf", "--jit", "always"]).compiled(), "[561.  34.  68.]\n1.56e+07\n");
}
