//! Factorisations of matrices by the kernels that compiled code has for them: the program asserts what they leave of the matrices.

use std::time::Duration;

use sheaf_tests::Sandbox;

/// Limit of the run, whose programs are compiled.
const LIMIT: Duration = Duration::from_secs(10 * 60);

#[test]
fn factors_give_their_matrices() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("factors.shf", include_str!("factors.shf"));
    let out = sandbox.sheaf(&["run", "factors.shf", "--jit", "always"]).within(LIMIT).run();
    assert_eq!(out.code, Some(0), "{out}");
    assert_eq!(out.stdout, "factors of 3\nfactors of 6\nfactors of 66\n");
    assert!(!out.stderr.contains("cannot be compiled"), "{out}");
}
