//! JSON for readers and version control: one line per leaf of a function, not per number.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Maximum depth of nesting that is broken into lines; deeper values stay on one line.
const BROKEN_LEVELS: usize = 4;

/// `value` as JSON, ending with a line end.
pub fn to_vec(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut json, Broken::default()))?;
    json.push(b'\n');
    Ok(json)
}

#[derive(Default)]
struct Broken {
    level: usize,
    has_items: bool,
}

impl Broken {
    fn begin<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.has_items = false;
        writer.write_all(bracket)
    }

    fn begin_item<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if self.level <= BROKEN_LEVELS {
            self.break_line(writer)
        } else if first {
            Ok(())
        } else {
            writer.write_all(b" ")
        }
    }

    fn end<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level -= 1;
        if self.has_items && self.level < BROKEN_LEVELS {
            self.break_line(writer)?;
        }
        self.has_items = true;
        writer.write_all(bracket)
    }

    fn break_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.level).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Broken {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin_item(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_items = true;
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin_item(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_items = true;
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_levels_are_broken() {
        let value = serde_json::json!({
            "empty": [], "none": {}, "a": [1, [2, [3, [4, [5, {"b": [6, 7]}]]], [], {}]],
        });
        let json = to_vec(&value).unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&json).unwrap(), value);
        insta::assert_snapshot!(String::from_utf8(json).unwrap(), @r#"
        {
          "a": [
            1,
            [
              2,
              [
                3,
                [4, [5, {"b": [6, 7]}]]
              ],
              [],
              {}
            ]
          ],
          "empty": [],
          "none": {}
        }
        "#);
    }
}
