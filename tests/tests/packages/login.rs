//! `sheaf login`: credentials that go to their host and nowhere else, and credentials of other programs, which go nowhere.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sheaf_tests::{Run, Sandbox};

use crate::static_web::{Reply, Web};
use crate::world::{World, file_of_index, project_files};

/// `ada` with the password `s3cret`, as http's basic authentication has it.
const BASIC: &str = "Basic YWRhOnMzY3JldA==";

/// A static copy of a world's registry for those with the token.
fn private_copy(world: &World) -> Web {
    let bare = world.bare("index");
    Web::new(move |request| {
        if request.authorization.as_deref() != Some("Bearer s3cret") {
            return Reply::Status(401);
        }
        let file = request.path.strip_prefix("/index/").and_then(|path| file_of_index(&bare, path));
        file.map_or(Reply::Status(404), |text| Reply::Body(text, ""))
    })
}

fn log_in(user: &Sandbox, arguments: &[&str], token: &str) {
    let kept = user.sheaf(&[&["login"], arguments].concat()).input(format!("{token}\n")).run();
    assert_eq!(kept.code, Some(0), "{kept}");
    assert!(!format!("{kept}").contains(token), "{kept}");
}

fn user() -> Sandbox {
    let user = Sandbox::new();
    user.run(&["new", "demo"]).silent();
    user.write("demo/src/main.shf", "(use maths)\n(print version)\n");
    user
}

#[test]
fn tokens_are_kept_listed_and_removed() {
    let user = Sandbox::new();
    assert_eq!(user.run(&["login"]).silent(), "");
    let file = user.home().join("data/credentials.toml");
    log_in(&user, &["git.example"], "s3cret");
    // A whole address is what people copy.
    log_in(&user, &["https://other.example:8443/team/index", "--user", "ada"], "s4cret");
    assert_eq!(user.run(&["login"]).silent(), "git.example\nother.example:8443\n");
    let kept = fs::metadata(&file).expect("a file");
    assert_eq!(kept.permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).expect("a file");
    assert!(text.contains("s3cret") && text.contains("user = \"ada\""), "{text}");
    // Another token replaces it.
    log_in(&user, &["GIT.example"], "s5cret");
    assert!(!fs::read_to_string(&file).expect("a file").contains("s3cret"));
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let before = fs::read(&file).expect("a file");
    for (arguments, input) in [
        (&["login", "git.example"][..], ""),
        (&["login", "git.example"], "a\nb\n"),
        (&["login", "ada@git.example"], "x\n"),
    ] {
        let refused = user.sheaf(arguments).input(input).run();
        assert!(refused.code == Some(1) && refused.stderr.contains("= help: "), "{refused}");
        assert_eq!(fs::read(&file).expect("a file"), before);
    }
    assert_eq!(
        user.run(&["login", "git.example", "--remove"]).silent(),
        "removed the credentials for git.example\n"
    );
    assert_eq!(user.run(&["login"]).silent(), "other.example:8443\n");
    let none = user.run(&["login", "git.example", "--remove"]);
    assert!(
        none.code == Some(1) && none.stderr.contains("there are no credentials for git.example"),
        "{none}"
    );
}

#[test]
fn a_private_registry_is_used_with_its_token_alone() {
    let world = World::new();
    world.publish("maths", "1.0.0", "", "(def version 1)\n");
    let web = private_copy(&world);
    let (user, host) = (user(), web.host());
    let index = format!("sparse+http://{host}/index");
    let run = |arguments: &[&str]| user.sheaf(arguments).env("SHEAF_REGISTRY", &index).at("demo").run();
    let before = project_files(&user, "demo");
    let refused = |arguments: &[&str]| {
        let refused = run(arguments);
        assert_eq!(refused.code, Some(1), "{refused}");
        assert!(
            refused.stderr.contains("the server answers 401")
                && refused.stderr.contains(&format!("`sheaf login {host}`")),
            "{refused}"
        );
        assert!(!refused.stderr.contains("cret"), "{refused}");
        assert_eq!(project_files(&user, "demo"), before);
    };
    refused(&["add", "maths"]);
    assert!(web.requests().iter().all(|request| request.authorization.is_none()));
    // The token of another host is not tried here.
    log_in(&user, &["other.example"], "s3cret");
    refused(&["add", "maths"]);
    assert!(web.requests().iter().all(|request| request.authorization.is_none()));
    log_in(&user, &[&host], "wrong-secret");
    refused(&["add", "maths"]);
    assert!(
        web.requests().iter().all(|request| request.authorization.as_deref() == Some("Bearer wrong-secret"))
    );

    log_in(&user, &[&host], "s3cret");
    let added = run(&["add", "maths"]);
    assert_eq!(added.code, Some(0), "{added}");
    assert_eq!(run(&["run", "--no-jit"]).silent(), "1\n");
    for file in ["Sheaf.toml", "Sheaf.lock"] {
        assert!(!fs::read_to_string(user.path(&format!("demo/{file}"))).expect("a file").contains("s3cret"));
    }
    assert_eq!(user.run(&["login", &host, "--remove"]).code, Some(0));
    let before = project_files(&user, "demo");
    let update = run(&["update"]);
    assert!(update.code == Some(1) && update.stderr.contains("401"), "{update}");
    assert_eq!(project_files(&user, "demo"), before);
    // Locked packages need no registry.
    assert_eq!(run(&["run", "--no-jit"]).silent(), "1\n");
}

/// Regression: the login of a host that `--git` names did not count. gix sends passwords over https only.
#[test]
fn the_token_of_a_git_server_does_not_leave_unencrypted() {
    let world = World::over_http(Some(BASIC));
    let author = Sandbox::new();
    author.write("p/Sheaf.toml", "[package]\nname = \"maths\"\nversion = \"1.0.0\"\n");
    world.push(&author.path("p"), "private/maths", &["v1.0.0"]);
    let (user, git) = (user(), world.address("private/maths"));
    let host = world.http().address.to_string();
    let before = project_files(&user, "demo");
    let mut all = String::new();
    for token in [None, Some("s3cret")] {
        token.iter().for_each(|token| log_in(&user, &[&host, "--user", "ada"], token));
        let refused = user.sheaf(&["add", "maths", "--git", &git, "--tag", "v1.0.0"]).at("demo").run();
        assert_eq!(refused.code, Some(1), "{refused}");
        assert_eq!(project_files(&user, "demo"), before);
        all += &world.neutral(&refused);
    }
    insta::assert_snapshot!(all, @"
    $ sheaf add maths --git http://[address]/private/maths.git --tag v1.0.0
    exit code 1
    standard error:
      updating http://[address]/private/maths.git
      error: the versions of maths (git+http://[address]/private/maths.git?tag=v1.0.0) cannot be read: http://[address]/private/maths.git wants a user name and a password or token
       = help: run `sheaf login [address]`

    $ sheaf add maths --git http://[address]/private/maths.git --tag v1.0.0
    exit code 1
    standard error:
      updating http://[address]/private/maths.git
      error: the versions of maths (git+http://[address]/private/maths.git?tag=v1.0.0) cannot be read: http://[address]/private/maths.git refuses access: passwords are not sent without encryption
       = help: use an https address
    ");
    let seen = world.http().seen();
    assert!(!seen.is_empty() && seen.iter().all(Option::is_none), "{seen:?}");
}

/// Credentials of other programs and of caches, all of which would fit; and a helper for git, which leaves a marker.
fn foreign<'a>(run: Run<'a>, user: &Sandbox, marker: &Path) -> Run<'a> {
    let netrc = "machine 127.0.0.1 login ada password s3cret\ndefault login ada password s3cret\n";
    let home = user.home().parent().expect("a folder").to_path_buf();
    fs::write(home.join(".netrc"), netrc).expect("a file");
    let helper = format!("!touch {}; echo username=ada; echo password=s3cret", marker.display());
    fs::write(home.join(".gitconfig"), format!("[credential]\n\thelper = \"{helper}\"\n")).expect("a file");
    run.env("NETRC", home.join(".netrc").display().to_string())
        .env("AWS_ACCESS_KEY_ID", "AKIA")
        .env("AWS_SECRET_ACCESS_KEY", "s3cret")
        .env("AWS_SESSION_TOKEN", "s3cret")
        .env("SHEAF_CACHE_TOKEN", "s3cret")
        .env("SHEAF_CACHE_CREDENTIAL_HELPER", format!("touch {}", marker.display()))
}

#[test]
fn credentials_of_other_programs_reach_no_registry_and_no_git_server() {
    let world = World::over_http(Some(BASIC));
    world.publish("maths", "1.0.0", "", "(def version 1)\n");
    let author = Sandbox::new();
    author.write("p/Sheaf.toml", "[package]\nname = \"hidden\"\nversion = \"1.0.0\"\n");
    world.push(&author.path("p"), "private/hidden", &["v1.0.0"]);
    let (copy, open) = (private_copy(&world), World::with_static_copy());
    open.publish("maths", "1.0.0", "", "(def version 1)\n");
    world.http().seen();
    let git = world.address("private/hidden");
    let copy_index = format!("sparse+http://{}/index", copy.host());
    for (index, arguments, code) in [
        (world.registry(), &["add", "maths"][..], 0),
        (open.registry(), &["add", "maths"], 0),
        (copy_index, &["add", "maths"], 1),
        (world.registry(), &["add", "hidden", "--git", &git], 1),
    ] {
        let user = user();
        let marker = user.path("helper-ran");
        let run = user.sheaf(arguments).env("SHEAF_REGISTRY", index).at("demo");
        let done = foreign(run, &user, &marker).run();
        assert_eq!(done.code, Some(code), "{done}");
        assert!(!marker.exists(), "{done}");
        assert!(!done.stderr.contains("s3cret"), "{done}");
    }
    let git_requests = world.http().seen();
    assert!(git_requests.len() > 4 && git_requests.iter().all(Option::is_none), "{git_requests:?}");
    for requests in [copy.requests(), open.static_copy().requests()] {
        assert!(
            !requests.is_empty() && requests.iter().all(|request| request.authorization.is_none()),
            "{requests:?}"
        );
    }
}
