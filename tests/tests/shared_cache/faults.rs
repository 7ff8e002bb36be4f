//! Servers that are down, slow, broken or closed: the run succeeds, with one warning and the right results; missing
//! programs are compiled here, or interpreted without a compiler.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use sheaf_tests::Output;

use crate::entries::pushed;
use crate::machine::{FOURTEEN, Machine, RUN_SQUARES, Remote, warnings};
use crate::servers::{Server, words};
use crate::shared::taken;
use crate::web::{Fault, Web};

/// Two functions, so that a fault has two occasions.
const TWO: &str = "(defn sum-of-squares [x] (sum (* x x)))\n(defn sum-of-cubes [x] (sum (* x x x)))\n\
                   (print (sum-of-squares [1 2 3]))\n(print (sum-of-cubes [1 2 3]))\n";

/// The warning of a machine that cannot compile.
const NO_COMPILER: &str = "warning: there is no compiler";

/// Runs two functions without and with a compiler. Both give the right results with the same warning, which is
/// returned.
#[track_caller]
fn runs_with_one_warning(remote: &Remote, more: &[(&str, &str)]) -> String {
    let prepared = |machine: Machine| {
        machine.sandbox.write("two.shf", TWO);
        more.iter().fold(machine, |machine, (name, value)| machine.env(name, *value))
    };
    let check = |output: Output, name: &str| {
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "14.0\n36.0\n"), "{name}: {output}");
        let told: Vec<_> = warnings(&output).into_iter().filter(|w| !w.starts_with(NO_COMPILER)).collect();
        assert_eq!(told.len(), 1, "{name}: {output}");
        (story(&output), output)
    };
    let interpreting = prepared(Machine::reading(remote));
    let (story, _) = check(interpreting.run(&["two.shf", "--jit", "always"]), "without a compiler");
    // The protocol makes no difference once nothing was found.
    if remote.address.starts_with("grpc") && !sheaf_tests::nightly() {
        return story;
    }
    let Some(compiling) = Machine::compiling(remote).map(prepared) else { return story };
    let (other, output) = check(compiling.run(&["two.shf", "--jit", "always"]), "with a compiler");
    assert_eq!(output.stderr.matches("compiling sum-of-").count(), 2, "{output}");
    assert_eq!(other, story);
    // Compiled programs are kept, and not looked up in the cache again.
    assert_eq!(compiling.run(&["two.shf", "--jit", "always"]).silent(), output.stdout);
    story
}

/// The first warning of a run with its notes, without the parts that vary.
pub fn story(output: &Output) -> String {
    let shown = output.to_string();
    let lines = shown.lines().skip_while(|line| !line.trim().starts_with("warning:"));
    let lines = lines.take_while(|line| !line.trim().is_empty()).map(str::trim);
    lines.collect::<Vec<_>>().join("\n")
}

/// A port without a listener.
fn nobody() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

#[test]
fn down() {
    for scheme in ["http", "grpc"] {
        let remote = Remote::at(format!("{scheme}://127.0.0.1:{}", nobody()));
        let story = runs_with_one_warning(&remote, &[]);
        insta::assert_snapshot!(format!("down_{scheme}"), story);
    }
}

/// A server that accepts connections and never answers costs its timeout once, whatever the number of functions.
#[test]
fn silent() {
    for scheme in ["http", "grpc"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let start = Instant::now();
        let story = runs_with_one_warning(
            &Remote::at(format!("{scheme}://127.0.0.1:{port}")),
            &[("SHEAF_CACHE_TIMEOUT", "1")],
        );
        assert!(start.elapsed() < Duration::from_secs(60));
        insta::assert_snapshot!(format!("silent_{scheme}"), story);
    }
}

#[test]
fn slow() {
    let Some(files) = pushed() else { return };
    let web = Web::start(files.clone(), Fault::Slow("/", Duration::from_secs(3)));
    let story = runs_with_one_warning(&web.remote(), &[("SHEAF_CACHE_TIMEOUT", "1")]);
    insta::assert_snapshot!("slow", story);
    // A longer timeout gets the program.
    let patient = Machine::reading(&web.remote()).squares().env("SHEAF_CACHE_TIMEOUT", "30");
    assert_eq!(taken(patient.run(&RUN_SQUARES)), FOURTEEN);
}

/// A remote that answers each look-up slowly but in time costs a run no more than the total budget.
#[test]
fn slow_for_many_functions() {
    let slow = Fault::Slow("/", Duration::from_secs(2));
    let web = Web::start(crate::web::Files::new(), slow);
    let machine = Machine::reading(&web.remote()).env("SHEAF_CACHE_TIMEOUT", "5");
    let names = ["one", "two", "three", "four", "five"];
    let program: String = (1..)
        .zip(names)
        .map(|(i, f)| format!("(defn {f} [x] (sum (+ {i} x)))\n(print ({f} [1 2]))\n"))
        .collect();
    machine.sandbox.write("five.shf", program);
    let output = machine.run(&["five.shf", "--jit", "always"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "5.0\n7.0\n9.0\n11.0\n13.0\n"), "{output}");
    let told: Vec<_> = warnings(&output).into_iter().filter(|w| !w.starts_with(NO_COMPILER)).collect();
    assert_eq!(told.len(), 1, "{output}");
    assert!(told[0].contains("took 5 s of this run for look-ups"), "{output}");
    // Each of five functions would take one or two look-ups of two seconds each; the third exceeds the budget.
    let asked = web.requests();
    assert_eq!(asked.len(), 3, "{asked:?}");
}

#[test]
fn hanging_mid_body() {
    let Some(files) = pushed() else { return };
    for part in ["/ac", "/cas"] {
        let web = Web::start(files.clone(), Fault::Hangs(part));
        let story = runs_with_one_warning(&web.remote(), &[("SHEAF_CACHE_TIMEOUT", "1")]);
        insta::assert_snapshot!(format!("hanging_{}", &part[1..]), story);
    }
}

#[test]
fn breaking_mid_body() {
    let Some(files) = pushed() else { return };
    for part in ["/ac", "/cas"] {
        let web = Web::start(files.clone(), Fault::Breaks(part));
        let story = runs_with_one_warning(&web.remote(), &[]);
        insta::assert_snapshot!(format!("breaking_{}", &part[1..]), story);
    }
}

#[test]
fn errors_of_the_server() {
    let Some(files) = pushed() else { return };
    for (part, status) in [("/ac", 500), ("/cas", 500), ("/ac", 503), ("/ac", 403)] {
        let web = Web::start(files.clone(), Fault::Status(part, status));
        let story = runs_with_one_warning(&web.remote(), &[]);
        insta::assert_snapshot!(format!("status_{status}_{}", &part[1..]), story);
    }
}

/// A server that accepts no uploads: the writer's run succeeds with one warning.
#[test]
fn a_server_that_takes_nothing() {
    for status in [403, 500, 507] {
        let web = Web::start([].into(), Fault::ReadOnly(status));
        let Some(machine) = Machine::writing(&web.remote()) else { return };
        machine.sandbox.write("two.shf", TWO);
        let output = machine.run(&["two.shf", "--jit", "always"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "14.0\n36.0\n"), "{output}");
        assert_eq!(warnings(&output).len(), 1, "{output}");
        assert!(web.files().is_empty());
    }
}

/// Our own server with a token file.
pub fn guarded(tokens: &str) -> Server {
    Server::start(|folder, port| {
        let (data, file) = (folder.join("data"), folder.join("tokens"));
        std::fs::write(&file, tokens).expect("written");
        let listen = format!("127.0.0.1:{port}");
        let sheaf = sheaf_tests::sheaf();
        words([&sheaf, &"cache", &"serve", &"--folder", &data, &"--listen", &listen, &"--tokens", &file])
    })
}

#[test]
fn tokens() {
    let line = |role: &str, token: &str, more: &str| {
        format!("{role} {} {role}r {more}\n", sheaf_foundation::Digest::of(token.as_bytes()))
    };
    let tokens = [
        line("write", "the-write-token", "expires=2999-12-31"),
        line("read", "the-read-token", ""),
        line("read", "the-old-token", "expires=2020-01-31"),
    ];
    for scheme in ["http", "grpc"] {
        let server = guarded(&tokens.concat());
        let remote = Remote::at(format!("{scheme}://127.0.0.1:{}", server.port));
        let Some(a) = Machine::writing(&remote) else { return };
        let _ = a.env("SHEAF_CACHE_TOKEN", "the-write-token").push_squares();
        let b = Machine::reading(&remote).env("SHEAF_CACHE_TOKEN", "the-read-token").squares();
        assert_eq!(taken(b.run(&[&RUN_SQUARES[..], &["--strict"]].concat())), FOURTEEN);

        for (name, token) in [("expired", "the-old-token"), ("unknown", "the-wrong-token"), ("absent", "")] {
            let story = runs_with_one_warning(&remote, &[("SHEAF_CACHE_TOKEN", token)]);
            assert!(!story.contains("-token"), "{story}");
            insta::assert_snapshot!(format!("token_{name}_{scheme}"), story);
        }

        // A user who may only read, and compiles, is warned once.
        let Some(c) = Machine::writing(&remote) else { return };
        let c = c.env("SHEAF_CACHE_TOKEN", "the-read-token");
        c.sandbox.write("two.shf", TWO.replace("[x]", "[y]").replace('x', "y").replace("* y", "+ y"));
        let output = c.run(&["two.shf", "--jit", "always"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "12.0\n18.0\n"), "{output}");
        assert_eq!(warnings(&output).len(), 1, "{output}");
        insta::assert_snapshot!(format!("token_for_reading_{scheme}"), story(&output));
    }
}

/// A server's reason for a refusal is shown; a token or password repeated in it is not.
#[test]
fn secrets_that_a_server_repeats_are_not_shown() {
    let web = Web::start([].into(), Fault::Refuses(403));
    let story = runs_with_one_warning(&web.remote(), &[("SHEAF_CACHE_TOKEN", "a-secret-token")]);
    insta::assert_snapshot!("repeated_token", story);
    let address = web.remote().address.replace("http://", "http://ada:a-secret-word@");
    let story = runs_with_one_warning(&Remote::at(address), &[]);
    insta::assert_snapshot!("repeated_password", story);
}
