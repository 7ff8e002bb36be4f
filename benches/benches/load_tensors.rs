//! A file of 1 GB of tensors, from its loading to the first use of one, in a process of its own: time and memory beyond
//! those of a program that loads nothing. Linux alone tells the memory.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Tensors of the file, and their elements: 1 GiB of `f32`.
const TENSORS: usize = 256;
const ELEMENTS: usize = 1 << 20;
const RUNS: usize = 21;

/// Prints the most memory that the process had, and what of it are pages of files.
const MEMORY: &str = "
(defn memory [name]
  (let [lines (filter (fn [line] (str-call \"startswith\" line name)) (io \"lines\" \"/proc/self/status\"))]
    (second (filter (fn [word] (not (= word \"\"))) (str-call \"split\" (first lines))))))
(print (memory \"VmHWM\") (memory \"RssFile\"))
";

const PROGRAMS: [(&str, &str); 4] = [
    ("nothing", "(print (sum (ones 1000)))"),
    ("a row", "(def p (io \"load\" \"model.safetensors\")) (print (sum ((get-in p [:layers :128 :W]) 7)))"),
    ("a tensor", "(def p (io \"load\" \"model.safetensors\")) (print (sum (get-in p [:layers :128 :W])))"),
    ("printed", "(def p (io \"load\" \"model.safetensors\")) (print (get-in p [:layers :128 :W]))"),
];

fn main() {
    sheaf_benches::run(measure);
}

fn measure() {
    let Some(sheaf) = sheaf() else {
        println!("there is no release build of sheaf: cargo build --release -p sheaf");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder.path().join("model.safetensors")).expect("1 GB of space");
    println!("1 GiB of safetensors, {TENSORS} tensors; medians of {RUNS} processes: ms, and MB at most");
    let mut base = None;
    for (name, text) in PROGRAMS {
        fs::write(folder.path().join("program.shf"), format!("{text}{MEMORY}")).expect("a program");
        let mut runs: Vec<(Duration, f64)> = (0..RUNS).map(|_| run(&sheaf, folder.path())).collect();
        runs.sort_by_key(|(time, _)| *time);
        let time = runs[RUNS / 2].0.as_secs_f64() * 1e3;
        let memory = runs.iter().map(|(_, memory)| *memory).fold(0.0, f64::max) / 1e3;
        let (base_time, base_memory) = *base.get_or_insert((time, memory));
        println!(
            "{name}: {time:.1} ms, {memory:.1} MB; beyond nothing: {:.1} ms, {:.1} MB",
            time - base_time,
            memory - base_memory
        );
    }
}

/// The release build beside this program.
fn sheaf() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    this.ancestors().map(|folder| folder.join("sheaf")).find(|path| path.is_file())
}

/// Time of a run of the program, and the most memory that it took, in kB.
fn run(sheaf: &Path, folder: &Path) -> (Duration, f64) {
    let start = Instant::now();
    let output = Command::new(sheaf).arg("program.shf").current_dir(folder).output().expect("sheaf");
    let time = start.elapsed();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let memory = text.lines().last().and_then(|line| line.split(' ').next()).and_then(|kb| kb.parse().ok());
    (time, memory.expect("the memory of the process"))
}

fn write(path: &Path) -> std::io::Result<()> {
    let bytes = ELEMENTS * 4;
    let entry = |i: usize| {
        let (from, to) = (i * bytes, (i + 1) * bytes);
        format!("\"layers.{i}.W\":{{\"dtype\":\"F32\",\"shape\":[1024,1024],\"data_offsets\":[{from},{to}]}}")
    };
    let mut header = format!("{{{}}}", (0..TENSORS).map(entry).collect::<Vec<_>>().join(","));
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    let elements: Vec<u8> = (0..ELEMENTS).flat_map(|i| (i as f32 / ELEMENTS as f32).to_le_bytes()).collect();
    (0..TENSORS).try_for_each(|_| file.write_all(&elements))?;
    file.flush()
}
