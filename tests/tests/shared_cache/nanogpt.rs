//! The GPT of `examples/nanogpt`, outside of `make nightly` a model of bigrams in its place: trained on one machine, then on one that
//! cannot compile.

use std::fs;
use std::path::Path;

use sheaf_tests::{bigrams, sample, skip};

use crate::machine::{Machine, Remote, warnings};
use crate::servers;
use crate::shared::{bucket, nginx, own, taken};

/// A few steps, and the loss on other text: every function of the example that is worth compiling.
const TRAIN: &str = r#"
(use ./model.shf)
(use ./text.shf)
(def text (io "read" "text.txt"))
(def letters (alphabet text))
(def ids (encode text letters))
(let [[p & _]
      (repeat [i 3] [state (init-state (init-params (random-key 1) (len letters) config))]
        (let [[x y] (batch (fold-in (random-key 2) i) ids 12 (get config :context))
              [state value] (train-step state x y 0.001)]
          (print "step {} loss {:.4f}" i value)
          state))
      [x y] (batch (random-key 3) ids 12 (get config :context))]
  (print "test loss {:.4f}" (loss p x y config)))
"#;

/// The arguments to run it.
pub const RUN: [&str; 4] = ["train.shf", "--jit", "always", "--strict"];

/// Copies the example, with the start of its text. `None`, after a message, if there is no text.
pub fn prepare(machine: Machine) -> Option<Machine> {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("examples").join("nanogpt");
    let Ok(text) = fs::read(example.join("shakespeare.txt")) else {
        skip("there is no text: run scripts/fetch-shakespeare");
        return None;
    };
    let module = |name| fs::read_to_string(example.join(name)).expect("a module");
    let model = if sheaf_tests::nightly() { module("model.shf") } else { bigrams().to_owned() };
    machine.sandbox.write("model.shf", model);
    machine.sandbox.write("text.shf", module("text.shf"));
    machine.sandbox.write("train.shf", TRAIN);
    // A debug build reads slowly.
    machine.sandbox.write("text.txt", &text[..20_000]);
    Some(machine)
}

/// One machine trains and pushes to all of these; then another one trains with each alone.
#[test]
fn trains_on_a_machine_that_cannot_compile() {
    let own = own();
    let mut remotes = vec![
        Remote::at(format!("http://127.0.0.1:{}", own.port)),
        // The same server by its other protocol; it has everything already.
        Remote::at(format!("grpc://127.0.0.1:{}", own.port)),
    ];
    let (nginx, bucket) = (nginx(), bucket());
    remotes.extend([&nginx, &bucket].into_iter().flatten().map(|(_, remote)| remote.clone()));
    let clusters = [servers::buildgrid(""), servers::casd()];
    let clusters = clusters.iter().flatten();
    remotes.extend(clusters.map(|server| Remote::at(format!("grpc://127.0.0.1:{}", server.port))));

    let addresses: Vec<_> = remotes.iter().map(|remote| remote.address.as_str()).collect();
    let environment = remotes.iter().flat_map(|remote| remote.environment.clone()).collect();
    let a = Machine::writing(&Remote { address: addresses.join(","), environment });
    let Some(a) = a.and_then(prepare) else { return };
    let first = a.run(&RUN);
    assert_eq!(warnings(&first), [""; 0], "{first}");
    let first = first.compiled();
    assert_eq!(first.lines().count(), 4, "{first}");

    for remote in sample(remotes, 2) {
        let Some(b) = prepare(Machine::reading(&remote)) else { return };
        assert_eq!(taken(b.run(&RUN)), first, "{}", remote.address);
        assert!(!b.sandbox.home().join("data").exists(), "something was installed");
    }
}
