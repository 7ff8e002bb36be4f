//! Functions of many tensors: a kernel of a compiled program reads a limited number.

use sheaf_tests::Sandbox;

#[test]
fn a_sum_of_many_tensors_is_compiled() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let names: Vec<String> = (0..34).map(|i| format!("x{i}")).collect();
    let values: Vec<String> = (0..34).map(|i| format!("[{i} 1 2]")).collect();
    let (names, values) = (names.join(" "), values.join(" "));
    // Small enough for plain calls, and too large for them.
    sandbox.write(
        "wide.shf",
        format!(
            "(defn all [{names}] (+ {names}))
             (print (all {values}))
             (defn total [p] (reduce + 0.0 p))
             (print (sum (total (map (fn [i] (* i (ones [100 200]))) (range 40)))))"
        ),
    );
    assert_eq!(sandbox.run(&["wide.shf", "--jit", "always"]).compiled(), "[561.  34.  68.]\n1.56e+07\n");
}

/// The second derivative of a power in a loop: kernels with many results.
fn turns(count: u32) -> String {
    format!(
        "(defn along [x] (repeat [i {count}] [v (mean x)] (** (+ 2 v) (tanh v))))
         (defn turn [x] ((value-and-grad (fn [p] ((grad along) (mean (sqrt (+ 1 (square p))))))) x))
         (let [[value slope] (turn [1 2 3])]
           (print (int (* 1000 value)) (int (* 1000 slope))))"
    )
}

/// Such a kernel compiles for plain calls and for a device, but IREE rejects it when it is loaded or called.
#[test]
fn what_does_not_run_with_plain_calls_runs_on_a_device_or_is_interpreted() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    let always = ["turns.shf", "--jit", "always"];
    for count in [2, 3] {
        sandbox.write("turns.shf", turns(count));
        let output = sandbox.run(&always);
        let interpreted = sandbox.run(&["turns.shf", "--no-jit"]).silent();
        assert_eq!((output.code, &output.stdout), (Some(0), &interpreted), "{output}");
        // The cached program runs.
        let again = sandbox.run(&always);
        assert_eq!((again.code, &again.stdout), (Some(0), &interpreted), "{again}");
        assert_eq!(again.stderr.contains("compiling turn"), output.stderr.contains("interpreted"), "{again}");
    }
}
