//! Files of metrics: lines of JSON, and event files that TensorBoard reads.
//!
//! Each metric is written at once and whole, so that a run that is killed leaves a readable file.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crc_fast::{CrcAlgorithm, checksum};
use prost::Message;
use serde::Serialize;

/// The files of a run.
#[derive(Default)]
pub struct Metrics {
    logs: Vec<Log>,
    /// The number of metrics so far by name.
    counts: HashMap<String, i64>,
}

struct Log {
    path: PathBuf,
    file: File,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Events,
}

/// A file that a metric could not be written to; no more is written to it.
#[derive(Debug)]
pub struct Unwritten {
    /// Its path.
    pub path: PathBuf,
    /// The cause.
    pub error: io::Error,
}

impl Metrics {
    /// Adds a file: lines of JSON are appended to one whose name ends in `.jsonl` or `.json`; any other path is a folder,
    /// in which an event file is begun.
    pub fn add(&mut self, path: &Path) -> io::Result<()> {
        let is_json = path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("jsonl") || e.eq_ignore_ascii_case("json"));
        self.logs.push(if is_json { json_lines(path)? } else { events(path)? });
        Ok(())
    }

    /// True if there are no files.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// Writes a metric to all files; the step is the number of earlier ones of its name, unless it is given. Returns the
    /// files that failed.
    pub fn write(&mut self, name: &str, step: Option<i64>, value: f64) -> Vec<Unwritten> {
        let step = match (step, self.counts.get_mut(name)) {
            (Some(step), _) => step,
            (None, Some(count)) => {
                *count += 1;
                *count
            }
            (None, None) => {
                self.counts.insert(name.to_owned(), 0);
                0
            }
        };
        let time = now();
        let mut failed = Vec::new();
        self.logs.retain_mut(|log| {
            let bytes = match log.form {
                Form::Json => line(name, step, value, time),
                Form::Events => record(&Event::of(name, step, value, time)),
            };
            let written = log.file.write_all(&bytes);
            let path = || log.path.clone();
            written.map_err(|error| failed.push(Unwritten { path: path(), error })).is_ok()
        });
        failed
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn json_lines(path: &Path) -> io::Result<Log> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    // A run that was killed may have left part of a line.
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last)?;
    }
    if last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(Log { path: path.to_owned(), file, form: Form::Json })
}

/// A metric as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    step: i64,
    name: &'a str,
    value: Number,
    /// Seconds since 1970.
    time: f64,
}

/// A number. NaN and the infinities, for which JSON has none, are strings.
#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Single(f32),
    Double(f64),
    Text(&'static str),
}

impl Number {
    fn of(x: f64) -> Number {
        match x {
            x if x.is_nan() => Number::Text("nan"),
            x if x.is_infinite() => Number::Text(if x > 0.0 { "inf" } else { "-inf" }),
            // The digits of a 32-bit float, if it is one.
            x if f64::from(x as f32) == x => Number::Single(x as f32),
            x => Number::Double(x),
        }
    }
}

fn line(name: &str, step: i64, value: f64, time: Duration) -> Vec<u8> {
    let time = (time.as_secs_f64() * 1000.0).round() / 1000.0;
    let line = Line { step, name, value: Number::of(value), time };
    let mut text = serde_json::to_vec(&line).unwrap_or_default();
    text.push(b'\n');
    text
}

fn events(folder: &Path) -> io::Result<Log> {
    fs::create_dir_all(folder)?;
    let time = now();
    for n in 0.. {
        let name = format!("events.out.tfevents.{}.sheaf.{}.{n}", time.as_secs(), std::process::id());
        let path = folder.join(name);
        match OpenOptions::new().create_new(true).append(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(mut file) => {
                let version = Event {
                    wall_time: time.as_secs_f64(),
                    file_version: Some(VERSION.into()),
                    ..Event::default()
                };
                file.write_all(&record(&version))?;
                return Ok(Log { path, file, form: Form::Events });
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// The version of event files that all readers know.
const VERSION: &str = "brain.Event:2";

/// The part of TensorFlow's `Event` that holds a number (`tensorflow/core/util/event.proto`).
#[derive(Clone, PartialEq, Message)]
struct Event {
    /// Seconds since 1970.
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(string, optional, tag = "3")]
    file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

/// `Summary` (`tensorflow/core/framework/summary.proto`).
#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Scalar>,
}

/// `Summary.Value`.
#[derive(Clone, PartialEq, Message)]
struct Scalar {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

impl Event {
    fn of(name: &str, step: i64, value: f64, time: Duration) -> Event {
        let scalar = Scalar { tag: name.to_owned(), simple_value: Some(value as f32) };
        Event {
            wall_time: time.as_secs_f64(),
            step,
            summary: Some(Summary { value: vec![scalar] }),
            ..Event::default()
        }
    }
}

/// A `TFRecord`: the length, its checksum, the message, its checksum, all in little endian.
fn record(event: &Event) -> Vec<u8> {
    let message = event.encode_to_vec();
    let length = (message.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), &message, &masked(&message)].concat()
}

/// A masked CRC-32C: records may hold checksums themselves.
fn masked(bytes: &[u8]) -> [u8; 4] {
    let crc = checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32;
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_checksums_are_those_of_tensorflow() {
        // The first bytes of any event file: the length 24 and its checksum.
        assert_eq!(masked(&24_u64.to_le_bytes()), [0xa3, 0x7f, 0x4b, 0x22]);
        // The check value of CRC-32C.
        assert_eq!(checksum(CrcAlgorithm::Crc32Iscsi, b"123456789"), 0xe306_9283);
    }

    #[test]
    fn lines_have_the_digits_of_the_number() {
        let text =
            |value| String::from_utf8(line("a\"b", 3, value, Duration::from_millis(1500))).expect("text");
        assert_eq!(text(f64::from(0.1_f32)), "{\"step\":3,\"name\":\"a\\\"b\",\"value\":0.1,\"time\":1.5}\n");
        assert!(text(0.1).contains("\"value\":0.1,"));
        assert!(text(f64::NAN).contains("\"value\":\"nan\""));
        assert!(text(f64::NEG_INFINITY).contains("\"value\":\"-inf\""));
        assert!(text(3.0).contains("\"value\":3.0,"));
    }

    #[test]
    fn steps_are_counted_by_name_unless_they_are_given() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("metrics.jsonl");
        fs::write(&path, "{\"step\":0,\"na").expect("a line cut short");
        let mut metrics = Metrics::default();
        metrics.add(&path).expect("a file");
        for (name, step) in [("a", None), ("b", None), ("a", None), ("a", Some(10)), ("a", None)] {
            assert!(metrics.write(name, step, 0.5).is_empty());
        }
        let text = fs::read_to_string(&path).expect("a file");
        let steps = text.lines().skip(1).map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            format!("{} {}", value["name"].as_str().unwrap_or(""), value["step"])
        });
        assert_eq!(steps.collect::<Vec<_>>(), ["a 0", "b 0", "a 1", "a 10", "a 2"]);
    }
}
