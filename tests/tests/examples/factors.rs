//! Factorisations of matrices by the kernels that compiled code has for them: the program asserts what they leave of the matrices.

use std::time::Duration;

use sheaf_tests::{Sandbox, sample};

/// Limit of the run, whose programs are compiled.
const LIMIT: Duration = Duration::from_secs(10 * 60);

#[test]
fn factors_give_their_matrices() {
    let Some(sandbox) = Sandbox::with_shared_store() else { return };
    // Each size has nine programs.
    let sizes = [("[3]", 6), ("[]", 3), ("[2]", 66), ("[]", 66)];
    let sizes: Vec<_> = sample(sizes, 4).collect();
    let checks: String = sizes.iter().map(|(batch, n)| format!("\n(-check '{batch} {n})")).collect();
    sandbox.write("factors.shf", include_str!("factors.shf").to_owned() + &checks);
    let out = sandbox.sheaf(&["run", "factors.shf", "--jit", "always"]).within(LIMIT).run();
    assert_eq!(out.code, Some(0), "{out}");
    let done: String = sizes.iter().map(|(_, n)| format!("factors of {n}\n")).collect();
    assert_eq!(out.stdout, done);
    assert!(!out.stderr.contains("cannot be compiled"), "{out}");
}
