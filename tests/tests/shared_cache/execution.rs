//! Compilation in buildbox-casd's sandbox, for a machine that has no compiler.

use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote, warnings};
use crate::nanogpt;
use crate::servers;
use crate::shared::folder;

#[test]
fn a_cluster_compiles_for_a_machine_without_a_compiler() {
    let Some(server) = servers::casd() else { return };
    let cluster = format!("grpc://127.0.0.1:{}", server.port);
    let (_folder, remote) = folder();

    // The cluster does not have the compiler yet: the run warns and continues without.
    let early = Machine::reading(&remote).squares();
    let output = early.run(&[&RUN_SQUARES[..], &["--remote-executor", &cluster]].concat());
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    assert!(output.stderr.contains("does not have the compiler's file"), "{output}");

    // A machine with the compiler uploads it with its first program.
    let Some(a) = Machine::writing(&remote) else { return };
    let a = a.squares();
    let output = a.run(&[&RUN_SQUARES[..], &["--remote-executor", &cluster]].concat());
    assert_eq!(warnings(&output), [""; 0], "{output}");
    assert_eq!(output.stdout, FOURTEEN);
    assert!(output.stderr.contains("compiling sum-of-squares on the cluster"), "{output}");

    // From then on a machine without one trains there, and pushes the programs to a cache.
    let b = Machine::reading(&remote).env("SHEAF_REMOTE_EXECUTOR", &cluster);
    let b = b.env("SHEAF_CACHE_KEY", crate::machine::writer().reveal());
    let Some(b) = nanogpt::prepare(b) else { return };
    let output = b.run(&nanogpt::RUN);
    assert_eq!((output.code, warnings(&output).len()), (Some(0), 0), "{output}");
    assert!(output.stderr.contains("compiling train-step on the cluster"), "{output}");
    assert!(!b.sandbox.home().join("data").exists(), "something was installed");
    assert_eq!(output.stdout.lines().count(), 4, "{output}");

    // Small programs are compiled there too, and give the same results.
    let d = reading(&remote, &cluster);
    d.sandbox.write("max.shf", "(print ((value-and-grad (fn [m] (max (last m)))) [[1 -2 3] [2 -5 6]]))\n");
    let small = d.run(&["max.shf", "--strict", "--jit", "always"]);
    assert_eq!((small.code, warnings(&small).len()), (Some(0), 0), "{small}");
    assert_eq!(small.stdout, d.run(&["max.shf", "--no-jit"]).stdout, "{small}");
    assert!(small.stderr.contains(" on the cluster"), "{small}");
    assert!(!d.sandbox.home().join("data").exists(), "something was installed");

    // A build there makes the programs of a run, on a machine without a compiler too.
    let e = reading(&remote, &cluster);
    e.sandbox
        .write("net.shf", "(defn loss [(x f32 [2 3])] (sum (* x x)))\n(print (loss [[1 2 3] [4 5 6]]))\n");
    let built = e.run(&["build", "net.shf"]);
    assert_eq!((built.code, warnings(&built).len()), (Some(0), 0), "{built}");
    assert!(built.stdout.contains("1 compiled, 0 there before"), "{built}");
    assert!(!e.sandbox.home().join("data").exists(), "something was installed");
    let run = e.run(&["net.shf", "--jit", "always", "--strict", "--offline"]);
    assert_eq!(run.silent(), "91.0\n");

    // Readers of that cache need neither.
    let Some(c) = nanogpt::prepare(Machine::reading(&remote)) else { return };
    assert_eq!(c.run(&nanogpt::RUN).compiled_nothing(), output.stdout);
}

/// A missing cluster, or one that is only a cache: reported once, and this machine compiles.
#[test]
fn without_a_cluster_this_machine_compiles() {
    let (_folder, remote) = folder();
    let server = crate::shared::own();
    for cluster in ["grpc://127.0.0.1:1".to_owned(), format!("grpc://127.0.0.1:{}", server.port)] {
        let Some(machine) = Machine::writing(&remote) else { return };
        let machine = machine.env("SHEAF_REMOTE_EXECUTOR", &cluster);
        machine.sandbox.write(
            "two.shf",
            "(defn sum-of-squares [x] (sum (* x x)))\n(defn halves [x] (/ x 2))\n\
             (print (sum-of-squares [1 2 3]))\n(print (halves [2 4]))\n",
        );
        let output = machine.run(&["two.shf", "--jit", "always", "--recompile"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "14.0\n[1. 2.]\n"), "{output}");
        assert_eq!(warnings(&output).len(), 1, "{output}");
        assert!(output.stderr.contains("this machine compiles instead"), "{output}");
        assert_eq!(output.stderr.matches("on the cluster").count(), 1, "it was asked again: {output}");
    }
}

/// Programs on the cluster without a trusted signature are compiled there again, and signed here.
#[test]
fn one_server_may_be_cluster_and_cache() {
    let Some(server) = servers::casd() else { return };
    let address = format!("grpc://127.0.0.1:{}", server.port);
    let remote = Remote::at(&address);
    let Some(a) = Machine::writing(&remote) else { return };
    let a = a.env("SHEAF_REMOTE_EXECUTOR", &address).squares();
    let output = a.run(&RUN_SQUARES);
    assert_eq!((output.code, warnings(&output).len()), (Some(0), 0), "{output}");
    let b = Machine::reading(&remote).squares();
    let output = b.run(&[&RUN_SQUARES[..], &["--strict"]].concat());
    assert_eq!(output.silent(), FOURTEEN);
}

/// A machine without a compiler that uses a cluster, and pushes nothing to the cache.
fn reading(remote: &Remote, cluster: &str) -> Machine {
    Machine::reading(remote).env("SHEAF_REMOTE_EXECUTOR", cluster).env("SHEAF_CACHE_MODE", "read-only")
}
