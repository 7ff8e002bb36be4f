//! Time of a warm resolution.

use std::time::{Duration, Instant};

use semver::Version;
use sheaf_registry::resolve::synthetic::{Size, registry};
use sheaf_registry::resolve::{Policy, Resolution, resolve};

/// `cargo test --release -p sheaf-registry --test resolver_speed -- --ignored --nocapture`
#[test]
#[ignore = "a time, of the release build"]
fn a_graph_of_200_packages_takes_less_than_50_ms() {
    let mut policy = Policy::new(Version::new(0, 4, 0));
    for seed in 0..5 {
        let (index, root) = registry(Size { packages: 10_000, versions: 10, graph: 200 }, seed);
        for kind in ["unlocked", "locked", "minimal"] {
            policy.minimal = kind == "minimal";
            let mut times: Vec<Duration> = Vec::new();
            let mut resolution = None;
            for _ in 0..9 {
                let start = Instant::now();
                resolution = Some(resolve(&root, &index, &policy).unwrap());
                times.push(start.elapsed());
            }
            times.sort();
            let resolution = resolution.unwrap();
            println!("seed {seed}, {kind}: {} versions, median {:?}", resolution.packages.len(), times[4]);
            assert!(times[4] < Duration::from_millis(50), "{times:?}");
            policy.locked = if kind == "unlocked" { resolution } else { Resolution::default() };
        }
    }
}
