//! Data of files in whole runs: memory that stays small, saves that are killed, many files at once.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use sheaf_tests::Sandbox;

/// Prints the most memory that the process had, pages of files included, in kB.
const MEMORY: &str = "
(defn memory [name]
  (let [lines (filter (fn [line] (str-call \"startswith\" line name)) (io \"lines\" \"/proc/self/status\"))]
    (second (filter (fn [word] (not (= word \"\"))) (str-call \"split\" (first lines))))))
(print (memory \"VmHWM\"))
";

/// The output of a program, and the most memory that it had, in MB.
fn memory(sandbox: &Sandbox, program: &str) -> (String, f64) {
    sandbox.write("program.shf", program.to_owned() + MEMORY);
    let output = sandbox.run(&["program.shf", "--no-jit"]).silent();
    let (printed, kb) = output.trim_end().rsplit_once('\n').expect("two lines");
    (printed.to_owned(), kb.parse::<f64>().expect("a number") / 1e3)
}

#[cfg(target_os = "linux")]
#[test]
fn slices_and_gathers_read_nothing_else_of_a_file() {
    const ROWS: u64 = 1 << 28;
    let sandbox = Sandbox::new();
    // 1 GiB of a hole, which takes no space, and memory as any other page once it is read.
    for name in ["a-1.bin", "a-2.bin"] {
        fs::File::create(sandbox.path(name)).expect("a file").set_len(ROWS * 2).expect("a hole");
    }
    let header = format!(
        r#"{{"x":{{"dtype":"F32","shape":[{},1024],"data_offsets":[0,{}]}}}}"#,
        ROWS / 1024,
        ROWS * 4
    );
    let header = format!("{header}{}", " ".repeat(header.len().next_multiple_of(8) - header.len()));
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    sandbox.write("m.safetensors", &file);
    let length = file.len() as u64 + ROWS * 4;
    fs::File::options()
        .write(true)
        .open(sandbox.path("m.safetensors"))
        .expect("a file")
        .set_len(length)
        .expect("a hole");

    let (_, nothing) = memory(&sandbox, "(print 0)");
    let programs = [
        (
            "a handle across files",
            "(def h (io \"load\" \"a-*.bin\" :i32))
             (def i (random-randint (random-key 0) '[100] 0 (len h)))
             (print (len h) (sum (slice h 134217000 134218000)) (sum (get h i)) (sum (h 5:100)) (h -1)
                    (reduce + 0 (map sum (take 50 (batches (shuffle (random-key 1) (slice h 1000 9000)) 100)))))",
            "268435456 0 0 0 0 0",
        ),
        (
            "a tensor",
            "(def x (:x (io \"load\" \"m.safetensors\")))
             (print (shape x) (sum (x 7)) (sum (slice x 1000 1100)) (sum (get x [3 200000 77])) (x 262143 1023))",
            "[262144 1024] 0.0 0.0 0.0 0.0",
        ),
    ];
    for (name, program, wanted) in programs {
        let (printed, most) = memory(&sandbox, program);
        println!("{name}: {:.1} MB of 1,074 beyond {nothing:.1}", most - nothing);
        assert_eq!(printed, wanted);
        assert!(most - nothing < 16.0, "{name}: {most} MB, beside {nothing} for nothing");
    }
    let (_, whole) = memory(&sandbox, "(print (sum (:x (io \"load\" \"m.safetensors\"))))");
    assert!(whole - nothing > 1000.0, "the memory of a file that is read shows: {whole}");
}

#[test]
fn a_kill_while_saving_leaves_the_old_file() {
    /// Saves one file again and again, each time with other numbers.
    const SAVES: &str = "
        (defn made [n] {:n n :x (* n (cast (arange 1000000) :f32))})
        (io \"save\" \"run/m.safetensors\" (made 1))
        (print \"saved\")
        (repeat [i 100000] [n 2] (do (io \"save\" \"run/m.safetensors\" (made n)) (+ n 1)))";
    let sandbox = Sandbox::new();
    sandbox.write("saves.shf", SAVES);
    sandbox.write(
        "load.shf",
        "(def m (io \"load\" \"run/m.safetensors\"))
         (print (max (abs (- (:x m) (* (:n m) (cast (arange 1000000) :f32))))))",
    );
    let mut within = 0;
    for round in 0..8_u64 {
        let mut child = sandbox
            .sheaf(&["saves.shf", "--no-jit"])
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sheaf starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "saved\n");
        let start = Instant::now();
        while Sandbox::files(&sandbox.path("run")).len() < 2 && start.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        thread::sleep(Duration::from_micros(700 * round));
        child.kill().expect("killed");
        child.wait().expect("an end");
        let unfinished = Sandbox::files(&sandbox.path("run")).len() - 1;
        within += unfinished;
        assert_eq!(sandbox.run(&["load.shf", "--no-jit"]).silent(), "0.0\n", "after kill {round}");
        for name in Sandbox::files(&sandbox.path("run")) {
            if name != "m.safetensors" {
                fs::remove_file(sandbox.path("run").join(name)).expect("removed");
            }
        }
    }
    assert!(within > 0, "no kill was within a save");
}

#[cfg(unix)]
#[test]
fn more_files_than_may_be_open_by_default() {
    let sandbox = Sandbox::new();
    for i in 0..300_u32 {
        let numbers: Vec<u8> = (0..20_000_u32).flat_map(|n| (n + i).to_le_bytes()).collect();
        sandbox.write(&format!("parts/{i:03}.bin"), numbers);
    }
    sandbox.write("program.shf", "(def h (io \"load\" \"parts/*.bin\" :u32)) (print (len h) (h 0) (h -1))");
    let limited = |limits: &str| {
        let command = sandbox.sheaf(&["program.shf", "--no-jit"]).command();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("ulimit {limits} && exec \"$0\" program.shf --no-jit")]);
        shell.arg(command.get_program()).current_dir(sandbox.path(""));
        shell.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.output().expect("sh");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    assert_eq!(limited("-Sn 128"), (Some(0), "6000000 0 20298\n".into()));
    let (code, text) = limited("-n 128");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.starts_with("error: parts/") && text.contains("cannot be read: Too many open files"),
        "{text}"
    );
    assert!(text.contains("= help: load fewer files at a time"), "{text}");
}
