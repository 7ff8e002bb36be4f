//! Ten actions and their keys, which must never change under the same key version. `keys.json` was written by the
//! Python program of `docs/keys.md`, which shares no code with the crate.

use sheaf_artifacts::{Action, Cpu, Donation, KEY_VERSION};
use sheaf_foundation::Digest;

#[derive(serde::Deserialize)]
struct Golden {
    what: String,
    action: Fields,
    key: String,
}

#[derive(serde::Deserialize)]
struct Fields {
    program: String,
    compiler: String,
    compiler_digest: Digest,
    flags: Vec<String>,
    alternatives: Vec<Vec<String>>,
    device: String,
    cpu: Option<Cpu>,
    donation: Vec<(u32, u32)>,
    debug: bool,
    rejected: Vec<Digest>,
}

#[test]
fn keys_are_what_they_always_were() {
    assert_eq!(KEY_VERSION, 6, "a new key version needs new golden keys, and docs/keys.md says what changed");
    let golden: Vec<Golden> = serde_json::from_str(include_str!("keys.json")).unwrap();
    assert_eq!(golden.len(), 10);
    for Golden { what, action: fields, key } in golden {
        let donation = |(argument, output)| Donation { argument, output };
        let mut action = Action {
            program: fields.program,
            compiler: fields.compiler,
            compiler_digest: fields.compiler_digest,
            flags: fields.flags,
            alternatives: fields.alternatives,
            tuned: None,
            device: fields.device,
            cpu: fields.cpu,
            donation: fields.donation.into_iter().map(donation).collect(),
            debug: fields.debug,
            rejected: fields.rejected,
        };
        assert_eq!(action.key().to_string(), key, "{what}");
        // Source locations are not part of the key.
        action.program = action.program.replace("  }\n", "  } loc(\"model.shf\":1:1)\n");
        assert_eq!(action.key().to_string(), key, "{what}, with a location");
    }
}
