//! Format specifications, after the colon of a placeholder: `[[fill]align][sign][z][#][0][width][,][.precision][code]`.

use super::FormatArg;
use super::number::{self, Grouping};
use sheaf_graph::tensor::DType;

/// Maximum width and precision.
const LIMIT: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
    Center,
    /// Padding between sign and digits.
    AfterSign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Only minus.
    Minus,
    /// `+` for non-negative numbers.
    Plus,
    /// A blank for non-negative numbers.
    Blank,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub fill: Option<char>,
    pub align: Option<Align>,
    pub sign: Option<Sign>,
    /// `z`: no minus for numbers that round to zero.
    pub positive_zero: bool,
    /// `#`: a prefix for bases, always a point for floats.
    pub alternate: bool,
    /// `0` before the width.
    pub zeros: bool,
    pub width: usize,
    pub separator: Option<char>,
    pub precision: Option<usize>,
    pub code: Option<char>,
}

impl Spec {
    /// Parses; the error names the fault and the fix.
    pub(super) fn parse(text: &str) -> Result<Spec, String> {
        let mut rest = text;
        let mut chars = text.chars();
        let (first, second) = (chars.next(), chars.next());
        let (fill, align) = match (first.and_then(align), second.and_then(align)) {
            (_, Some(align)) => (first, Some(align)),
            (align, None) => (None, align),
        };
        let skip = fill.map_or(0, char::len_utf8) + usize::from(align.is_some());
        rest = &rest[skip..];

        let sign = match rest.chars().next() {
            Some('+') => Some(Sign::Plus),
            Some('-') => Some(Sign::Minus),
            Some(' ') => Some(Sign::Blank),
            _ => None,
        };
        rest = &rest[usize::from(sign.is_some())..];
        let positive_zero = take(&mut rest, 'z');
        let alternate = take(&mut rest, '#');
        let zeros = fill.is_none() && take(&mut rest, '0');
        let width = digits(&mut rest)?.unwrap_or(0);
        let comma = take(&mut rest, ',').then_some(',');
        let underscore = take(&mut rest, '_').then_some('_');
        if comma.is_some() && underscore.is_some() {
            return Err("it has both `,` and `_`; write one of them".to_owned());
        }
        let separator = comma.or(underscore);
        let precision = if take(&mut rest, '.') {
            let found = digits(&mut rest)?;
            Some(found.ok_or("after `.` a number of digits must follow, as in `{:.4f}`")?)
        } else {
            None
        };

        let mut chars = rest.chars();
        let code = chars.next();
        let known = code.is_none_or(|c| "bcdeEfFgGnosxX%".contains(c));
        if !known || chars.next().is_some() {
            return Err(format!(
                "found `{rest}` where a code such as `d`, `f`, `e`, `g`, `%` or `s` ends it, as in `{{:>8.4f}}`"
            ));
        }
        Ok(Spec { fill, align, sign, positive_zero, alternate, zeros, width, separator, precision, code })
    }

    /// Formats; the error names the mismatch and the fix.
    pub(super) fn format(&self, arg: FormatArg<'_>) -> Result<String, String> {
        match (arg, self.code) {
            (FormatArg::Text(text), None | Some('s')) => self.text(text),
            (FormatArg::Text(_), Some(code)) => {
                Err(format!("the code `{code}` is for numbers; leave it out or write `s`"))
            }
            (_, Some('s')) => Err("the code `s` is for text; leave it out, or write `d` or `f`".to_owned()),
            (FormatArg::Int(n), Some('c')) => self.character(n),
            (FormatArg::Int(n), None | Some('d' | 'n' | 'b' | 'o' | 'x' | 'X')) => self.integer(n),
            (FormatArg::Int(n), Some(_)) => self.float(n as f64, None),
            (_, Some(code @ ('c' | 'd' | 'b' | 'o' | 'x' | 'X'))) => Err(format!(
                "the code `{code}` is for integers; write `{{:.0f}}` for a float without digits after the point, \
                 or convert it with `int`"
            )),
            (FormatArg::Float(x), _) => self.float(x, None),
            (FormatArg::Single(x), _) => self.float(f64::from(x), Some(DType::F32)),
            (FormatArg::Element(x, dtype), _) => self.float(x, Some(dtype)),
        }
    }

    fn text(&self, text: &str) -> Result<String, String> {
        let wrong = match self {
            Spec { sign: Some(_), .. } => "a sign",
            Spec { positive_zero: true, .. } => "`z`",
            Spec { alternate: true, .. } => "`#`",
            Spec { align: Some(Align::AfterSign), .. } => "the alignment `=`",
            Spec { separator: Some(_), .. } => "a separator of thousands",
            _ => {
                let cut: String = text.chars().take(self.precision.unwrap_or(usize::MAX)).collect();
                return Ok(self.pad("", &cut, Align::Left));
            }
        };
        Err(format!("{wrong} is for numbers; leave it out"))
    }

    fn character(&self, n: i64) -> Result<String, String> {
        let plain = self.sign.is_none() && self.precision.is_none() && self.separator.is_none();
        if !plain || self.alternate || self.positive_zero {
            return Err("with the code `c` only a width and an alignment go; leave out the rest".to_owned());
        }
        let character = u32::try_from(n).ok().and_then(char::from_u32);
        let text = character.ok_or("it is the code of no character; leave out the code `c`")?.to_string();
        Ok(self.pad("", &text, Align::Right))
    }

    fn integer(&self, n: i64) -> Result<String, String> {
        if self.precision.is_some() {
            return Err("digits after the point are for floats; write `{:.4f}`, or leave them out".to_owned());
        }
        if self.positive_zero {
            return Err("`z` is for floats; leave it out".to_owned());
        }
        let magnitude = n.unsigned_abs();
        let (digits, prefix) = match self.code {
            Some('b') => (format!("{magnitude:b}"), "0b"),
            Some('o') => (format!("{magnitude:o}"), "0o"),
            Some('x') => (format!("{magnitude:x}"), "0x"),
            Some('X') => (format!("{magnitude:X}"), "0X"),
            _ => (magnitude.to_string(), ""),
        };
        let group = match (self.separator, self.code) {
            (Some(_), Some('n')) => {
                return Err("separators do not go with the code `n`; write `d`".to_owned());
            }
            (Some(','), Some('b' | 'o' | 'x' | 'X')) => {
                return Err("`,` is for decimal numbers; write `_`".to_owned());
            }
            (Some(_), Some('b' | 'o' | 'x' | 'X')) => 4,
            _ => 3,
        };
        let sign = self.sign_of(n < 0).to_owned() + if self.alternate { prefix } else { "" };
        Ok(self.number(&sign, &digits, "", group))
    }

    /// Formats a float; `dtype` is that of its tensor, `None` for a plain float.
    fn float(&self, x: f64, dtype: Option<DType>) -> Result<String, String> {
        if self.separator.is_some() && self.code == Some('n') {
            return Err("separators do not go with the code `n`; write `f`".to_owned());
        }
        let style = number::Style { code: self.code, precision: self.precision, alternate: self.alternate };
        let number = number::float(x, dtype, style);
        let negative = number.negative && !(self.positive_zero && number.is_zero());
        Ok(self.number(self.sign_of(negative), &number.whole, &number.rest, 3))
    }

    fn sign_of(&self, negative: bool) -> &'static str {
        match self.sign {
            _ if negative => "-",
            Some(Sign::Plus) => "+",
            Some(Sign::Blank) => " ",
            _ => "",
        }
    }

    /// Groups the digits before the point and pads.
    fn number(&self, sign: &str, whole: &str, rest: &str, group: usize) -> String {
        let default = if self.zeros { Align::AfterSign } else { Align::Right };
        let zeros = self.fill_char() == '0' && self.align.unwrap_or(default) == Align::AfterSign;
        let width = if zeros { self.width.saturating_sub(sign.len() + rest.len()) } else { 0 };
        let whole = match self.separator {
            Some(separator) if !whole.is_empty() => Grouping { separator, group }.apply(whole, width),
            _ => whole.to_owned(),
        };
        self.pad(sign, &(whole + rest), default)
    }

    fn fill_char(&self) -> char {
        self.fill.unwrap_or(if self.zeros { '0' } else { ' ' })
    }

    /// Pads a text to the width, `sign` first.
    fn pad(&self, sign: &str, text: &str, default: Align) -> String {
        let missing = self.width.saturating_sub(sign.len() + text.chars().count());
        let (before, between, after) = match self.align.unwrap_or(default) {
            Align::Left => (0, 0, missing),
            Align::Right => (missing, 0, 0),
            Align::Center => (missing / 2, 0, missing - missing / 2),
            Align::AfterSign => (0, missing, 0),
        };
        let fill = |n: usize| std::iter::repeat_n(self.fill_char(), n).collect::<String>();
        format!("{}{sign}{}{text}{}", fill(before), fill(between), fill(after))
    }
}

fn align(c: char) -> Option<Align> {
    match c {
        '<' => Some(Align::Left),
        '>' => Some(Align::Right),
        '^' => Some(Align::Center),
        '=' => Some(Align::AfterSign),
        _ => None,
    }
}

fn take(rest: &mut &str, wanted: char) -> bool {
    match rest.strip_prefix(wanted) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}

/// Parses a leading number, if there is one.
fn digits(rest: &mut &str) -> Result<Option<usize>, String> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, after) = rest.split_at(end);
    *rest = after;
    if digits.is_empty() {
        return Ok(None);
    }
    match digits.parse() {
        Ok(n) if n <= LIMIT => Ok(Some(n)),
        _ => Err(format!("the width or precision {digits} is more than {LIMIT}; write a smaller one")),
    }
}
