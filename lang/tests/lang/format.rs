//! Format strings; the expected texts are from Python's `str.format`.

#![allow(clippy::unreadable_literal, reason = "numbers stand beside their texts")]

use proptest::prelude::*;
use sheaf_lang::format::FormatArg::{self, Float, Int, Single, Text};
use sheaf_lang::format::{FormatError, has_placeholder, parse};

fn filled(template: &str, args: &[FormatArg]) -> Result<String, FormatError> {
    parse(template)?.render(args)
}

#[test]
fn as_in_python() {
    let cases: &[(&str, &[FormatArg], &str)] = &[
        ("{:}", &[Float(5.14159)], "5.14159"),
        ("{:}", &[Float(-1234567.891)], "-1234567.891"),
        ("{:.4f}", &[Float(5.14159)], "5.1416"),
        ("{:.4f}", &[Float(-1234567.891)], "-1234567.8910"),
        ("{:7}", &[Float(5.14159)], "5.14159"),
        ("{:7}", &[Float(-1234567.891)], "-1234567.891"),
        ("{:>8}", &[Float(5.14159)], " 5.14159"),
        ("{:>8}", &[Float(-1234567.891)], "-1234567.891"),
        ("{:<8}", &[Float(5.14159)], "5.14159 "),
        ("{:<8}", &[Float(-1234567.891)], "-1234567.891"),
        ("{:^8}", &[Float(5.14159)], "5.14159 "),
        ("{:^8}", &[Float(-1234567.891)], "-1234567.891"),
        ("{:*^9}", &[Float(5.14159)], "*5.14159*"),
        ("{:*^9}", &[Float(-1234567.891)], "-1234567.891"),
        ("{:08.3f}", &[Float(5.14159)], "0005.142"),
        ("{:08.3f}", &[Float(-1234567.891)], "-1234567.891"),
        ("{:+.2f}", &[Float(5.14159)], "+5.14"),
        ("{:+.2f}", &[Float(-1234567.891)], "-1234567.89"),
        ("{:.0f}", &[Float(5.14159)], "5"),
        ("{:.0f}", &[Float(-1234567.891)], "-1234568"),
        ("{:e}", &[Float(5.14159)], "5.141590e+00"),
        ("{:e}", &[Float(-1234567.891)], "-1.234568e+06"),
        ("{:.3e}", &[Float(5.14159)], "5.142e+00"),
        ("{:.3e}", &[Float(-1234567.891)], "-1.235e+06"),
        ("{:E}", &[Float(5.14159)], "5.141590E+00"),
        ("{:E}", &[Float(-1234567.891)], "-1.234568E+06"),
        ("{:g}", &[Float(5.14159)], "5.14159"),
        ("{:g}", &[Float(-1234567.891)], "-1.23457e+06"),
        ("{:.3g}", &[Float(5.14159)], "5.14"),
        ("{:.3g}", &[Float(-1234567.891)], "-1.23e+06"),
        ("{:#.3g}", &[Float(5.14159)], "5.14"),
        ("{:#.3g}", &[Float(-1234567.891)], "-1.23e+06"),
        ("{:%}", &[Float(5.14159)], "514.159000%"),
        ("{:%}", &[Float(-1234567.891)], "-123456789.100000%"),
        ("{:.1%}", &[Float(5.14159)], "514.2%"),
        ("{:.1%}", &[Float(-1234567.891)], "-123456789.1%"),
        ("{:,}", &[Float(5.14159)], "5.14159"),
        ("{:,}", &[Float(-1234567.891)], "-1,234,567.891"),
        ("{:+,.2f}", &[Float(5.14159)], "+5.14"),
        ("{:+,.2f}", &[Float(-1234567.891)], "-1,234,567.89"),
        ("{:012,.1f}", &[Float(5.14159)], "00,000,005.1"),
        ("{:012,.1f}", &[Float(-1234567.891)], "-1,234,567.9"),
        ("{:.3}", &[Float(5.14159)], "5.14"),
        ("{:.3}", &[Float(-1234567.891)], "-1.23e+06"),
        ("{:z.1f}", &[Float(5.14159)], "5.1"),
        ("{:z.1f}", &[Float(-1234567.891)], "-1234567.9"),
        ("{: f}", &[Float(5.14159)], " 5.141590"),
        ("{: f}", &[Float(-1234567.891)], "-1234567.891000"),
        ("{:=+9.2f}", &[Float(5.14159)], "+    5.14"),
        ("{:=+9.2f}", &[Float(-1234567.891)], "-1234567.89"),
        ("{:.10g}", &[Float(5.14159)], "5.14159"),
        ("{:.10g}", &[Float(-1234567.891)], "-1234567.891"),
        ("{:F}", &[Float(5.14159)], "5.141590"),
        ("{:F}", &[Float(-1234567.891)], "-1234567.891000"),
        ("{:n}", &[Float(5.14159)], "5.14159"),
        ("{:n}", &[Float(-1234567.891)], "-1.23457e+06"),
        ("{}", &[Float(0.0)], "0.0"),
        ("{}", &[Float(-0.0)], "-0.0"),
        ("{}", &[Float(1e16)], "1e+16"),
        ("{}", &[Float(1000000000000000.0)], "1000000000000000.0"),
        ("{}", &[Float(1e-05)], "1e-05"),
        ("{}", &[Float(0.0001)], "0.0001"),
        ("{}", &[Float(123456789.0)], "123456789.0"),
        ("{}", &[Float(0.1)], "0.1"),
        ("{}", &[Float(2.5)], "2.5"),
        ("{}", &[Float(1e22)], "1e+22"),
        ("{}", &[Float(5e-324)], "5e-324"),
        ("{:.0f}", &[Float(0.5)], "0"),
        ("{:.0f}", &[Float(1.5)], "2"),
        ("{:.0f}", &[Float(2.5)], "2"),
        ("{:.0f}", &[Float(-0.4)], "-0"),
        ("{:.2f}", &[Float(0.125)], "0.12"),
        ("{:.1f}", &[Float(0.25)], "0.2"),
        ("{:z.0f}", &[Float(-0.4)], "0"),
        ("{:.3}", &[Float(100.0)], "1e+02"),
        ("{:.3}", &[Float(1000.0)], "1e+03"),
        ("{:g}", &[Float(100000.0)], "100000"),
        ("{:g}", &[Float(1000000.0)], "1e+06"),
        ("{:g}", &[Float(1e-05)], "1e-05"),
        ("{:#g}", &[Float(1.0)], "1.00000"),
        ("{:.0e}", &[Float(12345.0)], "1e+04"),
        ("{:#.0e}", &[Float(12345.0)], "1.e+04"),
        ("{:.20f}", &[Float(0.1)], "0.10000000000000000555"),
        ("{:}", &[Float(f64::NAN)], "nan"),
        ("{:.2f}", &[Float(f64::NAN)], "nan"),
        ("{:F}", &[Float(f64::NAN)], "NAN"),
        ("{:8}", &[Float(f64::NAN)], "     nan"),
        ("{:08}", &[Float(f64::NAN)], "00000nan"),
        ("{:+}", &[Float(f64::NAN)], "+nan"),
        ("{:}", &[Float(f64::INFINITY)], "inf"),
        ("{:.2f}", &[Float(f64::INFINITY)], "inf"),
        ("{:F}", &[Float(f64::INFINITY)], "INF"),
        ("{:8}", &[Float(f64::INFINITY)], "     inf"),
        ("{:08}", &[Float(f64::INFINITY)], "00000inf"),
        ("{:+}", &[Float(f64::INFINITY)], "+inf"),
        ("{:}", &[Float(f64::NEG_INFINITY)], "-inf"),
        ("{:.2f}", &[Float(f64::NEG_INFINITY)], "-inf"),
        ("{:F}", &[Float(f64::NEG_INFINITY)], "-INF"),
        ("{:8}", &[Float(f64::NEG_INFINITY)], "    -inf"),
        ("{:08}", &[Float(f64::NEG_INFINITY)], "-0000inf"),
        ("{:+}", &[Float(f64::NEG_INFINITY)], "-inf"),
        ("{:}", &[Int(1234)], "1234"),
        ("{:d}", &[Int(1234)], "1234"),
        ("{:5}", &[Int(1234)], " 1234"),
        ("{:05d}", &[Int(1234)], "01234"),
        ("{:<5}", &[Int(1234)], "1234 "),
        ("{:^7}", &[Int(1234)], " 1234  "),
        ("{:+}", &[Int(1234)], "+1234"),
        ("{:+d}", &[Int(1234)], "+1234"),
        ("{: d}", &[Int(1234)], " 1234"),
        ("{:,}", &[Int(1234)], "1,234"),
        ("{:_}", &[Int(1234)], "1_234"),
        ("{:x}", &[Int(1234)], "4d2"),
        ("{:X}", &[Int(1234)], "4D2"),
        ("{:#x}", &[Int(1234)], "0x4d2"),
        ("{:#010b}", &[Int(1234)], "0b10011010010"),
        ("{:b}", &[Int(1234)], "10011010010"),
        ("{:o}", &[Int(1234)], "2322"),
        ("{:_b}", &[Int(1234)], "100_1101_0010"),
        ("{:,d}", &[Int(1234)], "1,234"),
        ("{:010,}", &[Int(1234)], "00,001,234"),
        ("{:*>8,}", &[Int(1234)], "***1,234"),
        ("{:.2f}", &[Int(1234)], "1234.00"),
        ("{:e}", &[Int(1234)], "1.234000e+03"),
        ("{:%}", &[Int(1234)], "123400.000000%"),
        ("{:g}", &[Int(1234)], "1234"),
        ("{:n}", &[Int(1234)], "1234"),
        ("{:c}", &[Int(1234)], "Ӓ"),
        ("{:,}", &[Int(0)], "0"),
        ("{:,}", &[Int(-7)], "-7"),
        ("{:,}", &[Int(i64::MAX)], "9,223,372,036,854,775,807"),
        ("{:,}", &[Int(i64::MIN)], "-9,223,372,036,854,775,808"),
        ("{:+}", &[Int(0)], "+0"),
        ("{:06d}", &[Int(-42)], "-00042"),
        ("{:=6}", &[Int(-42)], "-   42"),
        ("{:x}", &[Int(-255)], "-ff"),
        ("{:c}", &[Int(955)], "λ"),
        ("{:.1%}", &[Int(1)], "100.0%"),
        ("{:}", &[Text("loss")], "loss"),
        ("{:s}", &[Text("loss")], "loss"),
        ("{:8}", &[Text("loss")], "loss    "),
        ("{:>8}", &[Text("loss")], "    loss"),
        ("{:<8}", &[Text("loss")], "loss    "),
        ("{:^8}", &[Text("loss")], "  loss  "),
        ("{:.2}", &[Text("loss")], "lo"),
        ("{:*^9.3s}", &[Text("loss")], "***los***"),
        ("{:05}", &[Text("loss")], "loss0"),
        ("{:6}|", &[Text("é∂x")], "é∂x   |"),
        ("{:é<4}", &[Text("a")], "aééé"),
        ("{}", &[Text("")], ""),
        ("loss {:.4f} after {} steps", &[Float(0.70314718), Int(500)], "loss 0.7031 after 500 steps"),
        ("{0} {1} {0}", &[Int(1), Int(2)], "1 2 1"),
        ("{1:>4}|{0:<4}|", &[Int(1), Int(2)], "   2|1   |"),
        ("{{}} {} {{{}}}", &[Int(1), Int(2)], "{} 1 {2}"),
        ("100% {}", &[Int(1)], "100% 1"),
        ("no placeholder", &[], "no placeholder"),
        ("", &[], ""),
        ("{}", &[Int(1), Int(2)], "1"),
        ("{:>12}|{:<8.3f}|{:^7}", &[Text("epoch"), Float(0.25), Int(3)], "       epoch|0.250   |   3   "),
    ];
    for (template, args, expected) in cases {
        assert_eq!(filled(template, args).as_deref(), Ok(*expected), "{template:?} with {args:?}");
    }
}

#[test]
fn singles_show_as_printed_and_round_as_floats() {
    for (template, value, expected) in [
        ("{}", 0.1, "0.1"),
        ("{}", 2.0, "2.0"),
        ("{}", -1e-8, "-1e-08"),
        ("{}", 1e6, "1e+06"),
        ("{:>10}|", 0.022_934, "  0.022934|"),
        ("{:+}", 0.1, "+0.1"),
        ("{:.4f}", 0.1, "0.1000"),
        ("{:.12f}", 0.1, "0.100000001490"),
        ("{:.3}", 0.1, "0.1"),
        ("{:%}", 0.25, "25.000000%"),
        ("{}", f32::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(filled(template, &[Single(value)]).as_deref(), Ok(expected), "{template:?} with {value}");
    }
}

#[test]
fn what_counts_as_a_placeholder() {
    for text in [
        "{}",
        "loss {:.4f}",
        "{0}",
        "{12:>8}",
        "{{{}}}",
        "{:,}",
        "{: >8}",
        "{: d}",
        "{x} {}",
        "{ {}",
        "{:.4q}",
    ] {
        assert!(has_placeholder(text), "{text:?}");
    }
    for text in
        ["", "loss", "{{}}", "{", "}", "{x}", "{:x 1 :y 2}", "{:a [1 2]}", "{a", "{{0}}", "}{", "{!r}"]
    {
        assert!(!has_placeholder(text), "{text:?}");
    }
}

#[test]
fn errors_name_the_placeholder_and_what_was_found() {
    let cases: &[(&str, &[FormatArg])] = &[
        ("loss {:.4f", &[]),
        ("loss } after", &[]),
        ("{loss}", &[]),
        ("{!r}", &[]),
        ("{:{}}", &[]),
        ("{} {0}", &[]),
        ("{0} {}", &[]),
        ("{:.4q}", &[]),
        ("{:x 1}", &[]),
        ("{:.f}", &[]),
        ("{:,_}", &[]),
        ("{:99999}", &[]),
        ("{99999999999999999999}", &[]),
        ("{} {} {}", &[Int(1)]),
        ("{:d}", &[Float(3.5)]),
        ("{:d}", &[Single(0.1)]),
        ("{:.2f}", &[Text("nil")]),
        ("{:s}", &[Int(7)]),
        ("{:.2d}", &[Int(7)]),
        ("{:zd}", &[Int(7)]),
        ("{:,x}", &[Int(7)]),
        ("{:,n}", &[Int(7)]),
        ("{:,n}", &[Float(7.0)]),
        ("{:c}", &[Int(-1)]),
        ("{:+c}", &[Int(65)]),
        ("{:+}", &[Text("a")]),
        ("{:=8}", &[Text("a")]),
        ("{:,}", &[Text("a long text that goes on and on")]),
    ];
    let messages: Vec<String> = cases
        .iter()
        .map(|(template, args)| filled(template, args).expect_err(template).to_string())
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    the placeholder that begins `{:.4f` is never closed: add `}`, or write `{{` for a brace
    the `}` at the end of `loss }` closes nothing: write `}}` for a brace
    the placeholder `{loss}` has the name `loss`, but arguments are numbered: write `{}` or `{0}`, or `{{` for a brace
    the placeholder `{!r}` has a conversion, of which there are none: leave out `!` and what follows
    the placeholder `{:{}}` has another one in it: write the width as a number, or `{{` for a brace
    the placeholder `{0}` comes after others without a number: number all of them or none
    the placeholder `{}` comes after others with a number: number all of them or none
    the placeholder `{:.4q}` cannot be understood: found `q` where a code such as `d`, `f`, `e`, `g`, `%` or `s` ends it, as in `{:>8.4f}`
    the placeholder `{:x 1}` cannot be understood: found `x 1` where a code such as `d`, `f`, `e`, `g`, `%` or `s` ends it, as in `{:>8.4f}`
    the placeholder `{:.f}` cannot be understood: after `.` a number of digits must follow, as in `{:.4f}`
    the placeholder `{:,_}` cannot be understood: it has both `,` and `_`; write one of them
    the placeholder `{:99999}` cannot be understood: the width or precision 99999 is more than 10000; write a smaller one
    the placeholder `{99999999999999999999}` has the name `99999999999999999999`, but arguments are numbered: write `{}` or `{0}`, or `{{` for a brace
    the placeholder `{}` shows argument 2, but 1 is given: add the argument or remove the placeholder
    the placeholder `{:d}` cannot show the float 3.5: the code `d` is for integers; write `{:.0f}` for a float without digits after the point, or convert it with `int`
    the placeholder `{:d}` cannot show the float 0.1: the code `d` is for integers; write `{:.0f}` for a float without digits after the point, or convert it with `int`
    the placeholder `{:.2f}` cannot show the text `nil`: the code `f` is for numbers; leave it out or write `s`
    the placeholder `{:s}` cannot show the integer 7: the code `s` is for text; leave it out, or write `d` or `f`
    the placeholder `{:.2d}` cannot show the integer 7: digits after the point are for floats; write `{:.4f}`, or leave them out
    the placeholder `{:zd}` cannot show the integer 7: `z` is for floats; leave it out
    the placeholder `{:,x}` cannot show the integer 7: `,` is for decimal numbers; write `_`
    the placeholder `{:,n}` cannot show the integer 7: separators do not go with the code `n`; write `d`
    the placeholder `{:,n}` cannot show the float 7.0: separators do not go with the code `n`; write `f`
    the placeholder `{:c}` cannot show the integer -1: it is the code of no character; leave out the code `c`
    the placeholder `{:+c}` cannot show the integer 65: with the code `c` only a width and an alignment go; leave out the rest
    the placeholder `{:+}` cannot show the text `a`: a sign is for numbers; leave it out
    the placeholder `{:=8}` cannot show the text `a`: the alignment `=` is for numbers; leave it out
    the placeholder `{:,}` cannot show the text `a long text that goe...`: a separator of thousands is for numbers; leave it out
    ");
}

fn any_arg() -> impl Strategy<Value = (i64, f64, f32, String, u8)> {
    (any::<i64>(), any::<f64>(), any::<f32>(), any::<String>(), 0u8..4)
}

fn check(template: &str, (int, float, single, text, which): &(i64, f64, f32, String, u8)) {
    has_placeholder(template);
    let arg = [Int(*int), Float(*float), Single(*single), Text(text)][*which as usize];
    if let Ok(parsed) = parse(template) {
        match parsed.render(&[arg]) {
            Ok(_) => {}
            Err(error) => assert!(error.to_string().contains("placeholder `{"), "{error}"),
        }
    }
}

proptest! {
    #[test]
    fn any_template_is_filled_or_refused(template in any::<String>(), arg in any_arg()) {
        check(&template, &arg);
    }

    #[test]
    fn any_specification_is_filled_or_refused(
        template in r"(\{0?(:[*é0 ]?[<>^=]?[-+ ]?z?#?0?[0-9]{0,3}[,_]?(\.[0-9]{0,3})?[a-zA-Z%]?)?\}|[{}: a]){0,4}",
        arg in any_arg(),
    ) {
        check(&template, &arg);
    }

    #[test]
    fn floats_read_back_as_themselves(bits in any::<u64>()) {
        let x = f64::from_bits(bits);
        let again: f64 = filled("{}", &[Float(x)]).expect("a number").parse().expect("a number");
        prop_assert!(again.to_bits() == x.to_bits() || (x.is_nan() && again.is_nan()));
    }
}
