//! Removal of source locations from MLIR text, so that moving a function or renaming a file causes no recompilation.

use std::borrow::Cow;

/// `text` without MLIR's source locations: each `loc(...)` with the spaces before it, and each line that defines a
/// location alias (`#loc3 = loc(...)`). Strings and comments are unchanged, as is a location whose bracket is never
/// closed.
pub fn strip_locations(text: &str) -> Cow<'_, str> {
    if !text.contains("loc(") {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut stripped = String::with_capacity(text.len());
    // Text before `kept` has been copied or dropped; `at` is the read position.
    let (mut kept, mut at) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        let location = match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'/' if bytes[at..].starts_with(b"//") => {
                at = end_of_line(bytes, at);
                continue;
            }
            b'#' => alias_line(bytes, at),
            b'l' => inline_location(bytes, at),
            _ => None,
        };
        if let Some((start, end)) = location {
            stripped.push_str(&text[kept..start]);
            (kept, at) = (end, end);
        } else {
            at += 1;
        }
    }
    stripped.push_str(&text[kept..]);
    Cow::Owned(stripped)
}

/// The range of ` loc(...)`, if the word at `at` begins one.
fn inline_location(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (before, rest) = bytes.split_at(at);
    let begins_word =
        before.last().is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b"_$.-%@#!^".contains(byte));
    if !begins_word || !rest.starts_with(b"loc(") {
        return None;
    }
    Some((length_without_spaces(before), end_of_brackets(bytes, at + 3)?))
}

/// The range of a line `#locN = loc(...)`, line end included, if the `#` at `at` begins one.
fn alias_line(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let start = length_without_spaces(&bytes[..at]);
    if start > 0 && bytes[start - 1] != b'\n' {
        return None;
    }
    let number = bytes[at..].strip_prefix(b"#loc")?;
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let definition = number[digits..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    if !definition.starts_with(b"loc(") {
        return None;
    }
    let end = end_of_brackets(bytes, bytes.len() - definition.len() + 3)?;
    let rest_of_line = &bytes[end..end_of_line(bytes, end)];
    rest_of_line.trim_ascii().is_empty().then(|| (start, (end + rest_of_line.len() + 1).min(bytes.len())))
}

/// The position after the bracket that closes the one at `open`; `None` if it is never closed.
fn end_of_brackets(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = open;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at + 1),
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The position after the string whose opening quote is at `open`.
fn end_of_string(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The position of the next line end, or of the end of the text.
fn end_of_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// The length of `text` without the spaces and tabs at its end.
fn length_without_spaces(text: &[u8]) -> usize {
    text.iter().rposition(|byte| !b" \t".contains(byte)).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: &str = r#"module @sheaf {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
    %1 = stablehlo.custom_call @f(%0) {note = "see loc(here)"} : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"#;

    const LOCATED: &str = r#"#loc = loc(unknown)
#loc1 = loc("arg (0)")
  #loc2 = loc(callsite("a.shf":3:4 at fused<"x">["b\".shf":1:1, #loc1]))
module @sheaf {
  func.func public @main(%arg0: tensor<4xf32> loc("arg (0)"), %arg1: tensor<4xf32> loc(#loc1)) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32> loc(#loc2)
    %1 = stablehlo.custom_call @f(%0) {note = "see loc(here)"} : (tensor<4xf32>) -> tensor<4xf32>	loc(fused[
      "c.shf":1:2, "d.shf":3:4])
    return %1 : tensor<4xf32> loc(#loc2)
  } loc(#loc)
} loc(#loc)
#loc30 = loc("late.shf":9:9)
"#;

    #[test]
    fn a_program_with_locations_becomes_the_one_without() {
        assert_eq!(strip_locations(LOCATED), PLAIN);
        assert_eq!(strip_locations(PLAIN), PLAIN);
    }

    #[test]
    fn what_only_looks_like_a_location_stays() {
        for text in [
            r#"{a = "x loc(1)", b = "\" loc(2)"}"#,
            "// don't strip loc(this) here\n",
            "alloc(%0) %loc(1) @loc(2) my.loc(3) #loc(4)",
            "#local = loc_of<3>\n#locale = dense<1>",
            "{loc = 3 : i32}",
            "never closed loc(\"a\"",
            "#loc1 = loc(\"a\"",
        ] {
            assert_eq!(strip_locations(text), text);
        }
    }

    #[test]
    fn a_location_after_a_comment_with_a_quote_is_found() {
        assert_eq!(strip_locations("// it's \"so\nreturn loc(unknown)\n"), "// it's \"so\nreturn\n");
    }

    #[test]
    fn an_alias_on_the_last_line_needs_no_line_end() {
        assert_eq!(strip_locations("a\n#loc = loc(unknown)"), "a\n");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "([a#=\"\\\\/ \n]|loc|\\(|\\)|é){0,40}") {
            let stripped = strip_locations(&text);
            prop_assert!(stripped.len() <= text.len());
        }
    }
}
