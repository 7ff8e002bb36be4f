//! `plot`: pictures of numbers.

use super::operands::{as_size, nil};
use super::{Builtin, Parsed, VARIADIC, create, parse};
use crate::eval::{Eval, Interp, fail};
use crate::plot::{Axes, Content, Curve, Images, Plot};
use crate::program::Value;
use sheaf_graph::tensor::{DType, HostTensor};
use sheaf_syntax::diagnostic::Diagnostic;

/// The options with values.
const OPTIONS: [&str; 9] = ["kind", "x", "title", "x-label", "y-label", "bins", "columns", "width", "height"];

/// Maximum pixels of a side of a picture.
const MAX_SIDE: usize = 10_000;

/// Maximum numbers in a picture.
const MAX_NUMBERS: usize = 50_000_000;

/// Maximum curves or histograms in a picture.
const MAX_NAMES: usize = 100;

/// Usual and maximum number of intervals of a histogram.
const BINS: (usize, usize) = (30, 10_000);

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "plot",
        "(plot path data :kind k :x xs :title s :x-label s :y-label s :log-y :bins n :columns n :width n :height n)",
        "draws numbers to a .png or .svg file, and gives nil; a dictionary draws each of its entries, named by its key\n\
         :curve, the usual kind for a vector or list, joins the numbers over :x, by default 0, 1, 2 ...; :points does not join \
         them; NaN and the infinities interrupt a curve\n\
         :histogram counts the numbers, of any shape, in :bins intervals\n\
         :images, the usual kind for tensors with more axes, draws an image [height width], a colour image [height width 3], images \
         [n height width] or [n height width channels] with 1 or 3 channels, :columns side by side: bytes as they are, numbers \
         from 0 to 1 as parts of full brightness, others from the least (black) to the greatest (white), NaN in red",
        (2, VARIADIC),
        plot,
    )
    .effect()
    .examples(
        "(plot \"loss.jpg\" [3 2 1]) ;=> error: a plot is a .png or .svg file\n\
         (plot \"loss.png\" [3 2 1] :kind :pie) ;=> error: there is no kind of plot :pie",
    ),
];

/// The kinds of plots.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Curve,
    Points,
    Histogram,
    Images,
}

fn plot(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let given = args.iter().map(|v| v.known("what a plot shows")).collect::<Eval<Vec<Value>>>()?;
    let parsed = parse(&given, &OPTIONS, &["log-y"])?;
    let [path, data] = parsed.exactly()?;
    let Value::Str(path) = path else {
        return fail(format!("plot takes the path of a file first, not {}", path.describe()));
    };
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    if !["png", "svg"].iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        return Err(Diagnostic::error(format!("a plot is a .png or .svg file, not {path}"))
            .help("the extension of the path chooses the format")
            .into());
    }
    let kind = kind(&parsed, data)?;
    let content = match kind {
        Shown::Curve | Shown::Points => curves(interp, &parsed, data, kind == Shown::Curve)?,
        Shown::Histogram => histogram(interp, &parsed, data)?,
        Shown::Images => Content::Images(images(interp, &parsed, data)?),
    };
    let side = |name: &str| {
        let size = parsed.option(name).map(|v| as_size(v, "a side of a plot")).transpose()?;
        match size {
            Some(n) if !(16..=MAX_SIDE).contains(&n) => {
                fail(format!(":{name} is from 16 to {MAX_SIDE} pixels, not {n}"))
            }
            size => Ok(size.map(|n| n as u32)),
        }
    };
    let plot =
        Plot { title: text(&parsed, "title")?, width: side("width")?, height: side("height")?, content };
    interp.host.plot(path, &plot)?;
    Ok(Value::Nil)
}

fn kind(parsed: &Parsed, data: &Value) -> Eval<Shown> {
    let named = match parsed.option("kind") {
        Some(kind) => kind.as_key(),
        None => {
            let nested = match data {
                Value::Tensor(t) => t.ty().rank() > 1,
                Value::List(list) => list.items.iter().any(|item| match item {
                    Value::Tensor(t) => t.ty().rank() > 0,
                    item => matches!(item, Value::List(_)),
                }),
                _ => false,
            };
            return Ok(if nested { Shown::Images } else { Shown::Curve });
        }
    };
    match named.as_ref().map(|name| name.as_str()) {
        Some("curve") => Ok(Shown::Curve),
        Some("points") => Ok(Shown::Points),
        Some("histogram") => Ok(Shown::Histogram),
        Some("images") => Ok(Shown::Images),
        _ => {
            let given = super::repr(parsed.option("kind").unwrap_or(&Value::Nil));
            Err(Diagnostic::error(format!("there is no kind of plot {given}"))
                .help("a plot is a :curve, :points, a :histogram or :images")
                .into())
        }
    }
}

/// The text of an option.
fn text(parsed: &Parsed, name: &str) -> Eval<String> {
    match parsed.option(name) {
        None | Some(Value::Nil) => Ok(String::new()),
        Some(Value::Str(text)) => Ok(text.to_string()),
        Some(other) => fail(format!(":{name} is a string, not {}", other.describe())),
    }
}

fn axes(parsed: &Parsed, x: &str, y: &str) -> Eval<Axes> {
    let or = |text: String, usual: &str| if text.is_empty() { usual.to_owned() } else { text };
    Ok(Axes { x: or(text(parsed, "x-label")?, x), y: or(text(parsed, "y-label")?, y) })
}

/// The entries of a dictionary, or the data as the only entry, without a name.
fn entries(data: &Value) -> Eval<Vec<(String, Value)>> {
    let entries: Vec<(String, Value)> = match data {
        Value::Dict(dict) => {
            dict.iter().map(|(key, value)| (key.as_str().to_owned(), value.clone())).collect()
        }
        other => vec![(String::new(), other.clone())],
    };
    match entries.len() {
        0 => fail("there is nothing to plot in an empty dictionary"),
        n if n > MAX_NAMES => fail(format!("a plot shows at most {MAX_NAMES} entries, got {n}")),
        _ => Ok(entries),
    }
}

/// The numbers of a tensor or a list, those of a list of lists one after another.
fn numbers(interp: &mut Interp, value: &Value, flat: bool) -> Eval<Vec<f64>> {
    let mut found = Vec::new();
    push_numbers(interp, value, flat, &mut found)?;
    Ok(found)
}

fn push_numbers(interp: &mut Interp, value: &Value, flat: bool, found: &mut Vec<f64>) -> Eval<()> {
    if let Value::List(list) = value {
        for item in &list.items {
            match item {
                Value::List(_) if !flat => return Err(not_a_curve(item)),
                Value::Tensor(t) if !flat && t.ty().rank() > 0 => return Err(not_a_curve(item)),
                Value::List(_) => crate::stack::maybe_grow(|| push_numbers(interp, item, flat, found))?,
                item => push_elements(interp, item, found)?,
            }
        }
        return Ok(());
    }
    match value {
        Value::Nil => return Err(nil("numbers to plot")),
        Value::Tensor(t) if !flat && t.ty().rank() > 1 => return Err(not_a_curve(value)),
        _ => {}
    }
    push_elements(interp, value, found)
}

fn push_elements(interp: &mut Interp, value: &Value, found: &mut Vec<f64>) -> Eval<()> {
    let t = interp.tensor(value)?;
    let host = t.elements("a plot")?;
    if found.len() + host.count() > MAX_NUMBERS {
        return fail(format!("a plot shows at most {MAX_NUMBERS} numbers"));
    }
    found.extend((0..host.count()).map(|i| host.element_f64(i)));
    Ok(())
}

fn not_a_curve(value: &Value) -> crate::eval::Signal {
    Diagnostic::error(format!("a curve is a vector or a list of numbers, not {}", value.describe()))
        .help("a dictionary of vectors draws several curves, :kind :images draws a matrix")
        .into()
}

fn curves(interp: &mut Interp, parsed: &Parsed, data: &Value, lines: bool) -> Eval<Content> {
    let xs = parsed.option("x").map(|xs| numbers(interp, xs, false)).transpose()?;
    let mut curves = Vec::new();
    for (name, value) in entries(data)? {
        let ys = numbers(interp, &value, false)?;
        let points = match &xs {
            Some(xs) if xs.len() != ys.len() => {
                let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
                return fail(format!(":x has {} numbers for {}{of}", xs.len(), ys.len()));
            }
            Some(xs) => xs.iter().copied().zip(ys).collect(),
            None => (0..ys.len()).map(|i| i as f64).zip(ys).collect(),
        };
        curves.push(Curve { name, points });
    }
    Ok(Content::Curves { curves, lines, log_y: parsed.flag("log-y"), axes: axes(parsed, "", "")? })
}

fn histogram(interp: &mut Interp, parsed: &Parsed, data: &Value) -> Eval<Content> {
    let bins = parsed.option("bins").map(|v| as_size(v, "the number of intervals")).transpose()?;
    let bins = bins.unwrap_or(BINS.0);
    if !(1..=BINS.1).contains(&bins) {
        return fail(format!(":bins is from 1 to {}, not {bins}", BINS.1));
    }
    let named = entries(data)?.into_iter().map(|(name, value)| Ok((name, numbers(interp, &value, true)?)));
    let named = named.collect::<Eval<Vec<(String, Vec<f64>)>>>()?;
    let finite = || named.iter().flat_map(|(_, numbers)| numbers).copied().filter(|x| x.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    if low > high {
        return fail("a histogram wants at least one finite number");
    }
    // A single number stands in the middle of a range of 1.
    let (low, high) = if low == high { (low - 0.5, high + 0.5) } else { (low, high) };
    let border = |i: usize| {
        let part = i as f64 / bins as f64;
        low * (1.0 - part) + high * part
    };
    let counts = named.iter().map(|(name, numbers)| {
        let mut counts = vec![0; bins];
        for x in numbers.iter().filter(|x| x.is_finite()) {
            // Halves, so that the width of all finite numbers is one.
            let part = (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
            counts[((part * bins as f64) as usize).min(bins - 1)] += 1;
        }
        (name.clone(), counts)
    });
    Ok(Content::Histogram {
        counts: counts.collect(),
        borders: (0..=bins).map(border).collect(),
        axes: axes(parsed, "", "count")?,
    })
}

fn images(interp: &mut Interp, parsed: &Parsed, data: &Value) -> Eval<Images> {
    let stacked = match data {
        Value::List(list) if list.items.iter().any(|v| matches!(v, Value::Tensor(_))) => {
            super::arrange::stack(interp, &list.items.to_vec(), 0)?
        }
        other => create::from_list(interp, other, None)?,
    };
    let t = interp.tensor(&stacked)?;
    let (count, [height, width, channels]) = match *t.shape() {
        [h, w] => (1, [h, w, 1]),
        [h, w, 3] => (1, [h, w, 3]),
        [n, h, w] => (n, [h, w, 1]),
        [n, h, w, c @ (1 | 3)] => (n, [h, w, c]),
        _ => {
            return Err(Diagnostic::error(format!(
                "images are [height width], [height width 3], [n height width] or [n height width channels] with 1 or 3 \
                 channels, not {}",
                t.ty()
            ))
            .help("(transpose x '[0 2 3 1]) puts channels last")
            .into());
        }
    };
    let columns = parsed.option("columns").map(|v| as_size(v, "the number of columns")).transpose()?;
    let square = (count as f64).sqrt().ceil() as usize;
    let columns = columns.unwrap_or(square).clamp(1, count.max(1));
    let [across, down] = [columns * (width + 1), count.div_ceil(columns) * (height + 1)];
    if t.ty().count() == 0 {
        return fail(format!("there is nothing to plot in a tensor {}", t.ty()));
    }
    if across > MAX_SIDE || down > MAX_SIDE {
        return fail(format!("the images take {across} by {down} pixels, more than {MAX_SIDE} on a side"));
    }
    Ok(Images { width, height, channels, columns, pixels: brightness(t.elements("a plot")?) })
}

/// The brightness of numbers as bytes: bytes as they are, numbers from 0 to 1 as parts of the whole, others from the
/// least to the greatest.
fn brightness(host: &HostTensor) -> Vec<Option<u8>> {
    let numbers = || (0..host.count()).map(|i| host.element_f64(i));
    let (mut low, mut high) = match host.dtype() {
        DType::U8 => (0.0, 255.0),
        _ => numbers().filter(|x| x.is_finite()).fold((0.0_f64, 1.0_f64), |(l, h), x| (l.min(x), h.max(x))),
    };
    if (low, high) != (0.0, 1.0) && host.dtype() != DType::U8 {
        let finite = || numbers().filter(|x| x.is_finite());
        (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    }
    let part = |x: f64| if high > low { (x - low) / (high - low) } else { 0.5 };
    numbers().map(|x| (!x.is_nan()).then(|| (part(x).clamp(0.0, 1.0) * 255.0).round() as u8)).collect()
}
