//! Curves, points and histograms.

use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::{BLACK, Color, IntoFont, RGBColor, WHITE};
use sheaf_lang::plot::{Axes, Content, Curve, Plot};

use crate::axis::{Axis, Wanted};
use crate::text::{FONT, clean};
use crate::{DrawError, Format, drawing, png};

/// The usual size in pixels.
const SIZE: (u32, u32) = (800, 500);

/// Colours of curves, in turn: those of Okabe and Ito, which the colour-blind tell apart, the darker ones first.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

const GREY: RGBColor = RGBColor(225, 225, 225);
const DARK: RGBColor = RGBColor(90, 90, 90);

/// Height of the texts in pixels.
const TEXT: u32 = 15;

/// Maximum characters of a title, and of the name of a curve.
const LENGTHS: (usize, usize) = (100, 40);

pub fn draw(plot: &Plot, format: Format) -> Result<Vec<u8>, DrawError> {
    let size = (plot.width.unwrap_or(SIZE.0), plot.height.unwrap_or(SIZE.1));
    match format {
        Format::Svg => {
            let mut text = String::new();
            paint(plot, size, &SVGBackend::with_string(&mut text, size).into_drawing_area())?;
            Ok(text.into_bytes())
        }
        Format::Png => {
            let mut pixels = vec![0; 3 * size.0 as usize * size.1 as usize];
            paint(plot, size, &BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area())?;
            png(size.0, size.1, &pixels)
        }
    }
}

fn paint<B: DrawingBackend>(
    plot: &Plot,
    size: (u32, u32),
    area: &DrawingArea<B, Shift>,
) -> Result<(), DrawError> {
    area.fill(&WHITE).map_err(drawing)?;
    match &plot.content {
        Content::Curves { curves, lines, log_y, axes } => {
            let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
            let on_y = Wanted { log: *log_y, ..Wanted::default() };
            let y = Axis::of(points().map(|(_, y)| y), on_y)?;
            let tight = Wanted { tight: *lines, ..Wanted::default() };
            let x = Axis::of(points().filter(|(_, at)| y.holds(*at)).map(|(x, _)| x), tight)?;
            let shapes = |i: usize| Shapes::Curve { curve: &curves[i], lines: *lines, room: size.0 as usize };
            let names: Vec<&str> = curves.iter().map(|curve| curve.name.as_str()).collect();
            chart(plot, area, axes, (x, y), &names, &shapes)?;
        }
        Content::Histogram { borders, counts, axes } => {
            let most = counts.iter().flat_map(|(_, counts)| counts).map(|n| *n as f64);
            let y = Axis::of(most, Wanted { from_zero: true, ..Wanted::default() })?;
            let ends = [borders.first(), borders.last()].into_iter().flatten().copied();
            let x = Axis::of(ends, Wanted { tight: true, ..Wanted::default() })?;
            let alpha = if counts.len() > 1 { 0.5 } else { 0.85 };
            let shapes = |i: usize| Shapes::Bars { borders, counts: &counts[i].1, alpha };
            let names: Vec<&str> = counts.iter().map(|(name, _)| name.as_str()).collect();
            chart(plot, area, axes, (x, y), &names, &shapes)?;
        }
        Content::Images(_) => {}
    }
    area.present().map_err(drawing)
}

/// The shapes of one colour.
enum Shapes<'a> {
    Curve { curve: &'a Curve, lines: bool, room: usize },
    Bars { borders: &'a [f64], counts: &'a [u64], alpha: f64 },
}

fn chart<'a, B: DrawingBackend>(
    plot: &Plot,
    area: &DrawingArea<B, Shift>,
    axes: &Axes,
    (x, y): (Axis, Axis),
    names: &[&str],
    shapes: &dyn Fn(usize) -> Shapes<'a>,
) -> Result<(), DrawError> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(12).margin_right(24);
    if !plot.title.is_empty() {
        builder.caption(clean(&plot.title, LENGTHS.0), (FONT, TEXT + 5));
    }
    let beside = 16 + y.widest() * TEXT / 2 + if axes.y.is_empty() { 0 } else { TEXT + 8 };
    builder.x_label_area_size(TEXT + 12 + if axes.x.is_empty() { 0 } else { TEXT + 4 });
    builder.y_label_area_size(beside);
    let (on_x, on_y) = (x.clone(), y.clone());
    let mut chart = builder.build_cartesian_2d(x, y).map_err(drawing)?;
    chart
        .configure_mesh()
        .x_labels(30)
        .y_labels(30)
        .max_light_lines(0)
        .bold_line_style(GREY)
        .light_line_style(WHITE.mix(0.0))
        .axis_style(DARK)
        .label_style((FONT, TEXT).into_font().color(&DARK))
        .axis_desc_style((FONT, TEXT).into_font().color(&BLACK))
        .x_desc(clean(&axes.x, LENGTHS.0))
        .y_desc(clean(&axes.y, LENGTHS.0))
        .x_label_formatter(&|value| on_x.label(*value))
        .y_label_formatter(&|value| on_y.label(*value))
        .draw()
        .map_err(drawing)?;
    for (i, name) in names.iter().enumerate() {
        let color = COLORS[i % COLORS.len()];
        let mut alpha = 1.0;
        match shapes(i) {
            Shapes::Curve { curve, lines: true, room } => {
                for part in curve.points.split(|(x, at)| !(on_x.holds(*x) && on_y.holds(*at))) {
                    let part = thinned(part, room);
                    if let [alone] = part.as_slice() {
                        chart.draw_series([Circle::new(*alone, 2, color.filled())]).map_err(drawing)?;
                    } else if !part.is_empty() {
                        let line = PathElement::new(part, color.stroke_width(2));
                        chart.draw_series([line]).map_err(drawing)?;
                    }
                }
            }
            Shapes::Curve { curve, .. } => {
                let shown = curve.points.iter().filter(|(x, at)| on_x.holds(*x) && on_y.holds(*at));
                let points = shown.map(|point| Circle::new(*point, 3, color.mix(0.8).filled()));
                chart.draw_series(points).map_err(drawing)?;
            }
            Shapes::Bars { borders, counts, alpha: own } => {
                alpha = own;
                let bars = borders.windows(2).zip(counts).filter(|(_, count)| **count > 0);
                let bars = bars.map(|(ends, count)| {
                    let mut bar =
                        Rectangle::new([(ends[0], 0.0), (ends[1], *count as f64)], color.mix(own).filled());
                    // A gap between neighbours.
                    bar.set_margin(0, 0, 0, 1);
                    bar
                });
                chart.draw_series(bars).map_err(drawing)?;
            }
        }
        if !name.is_empty() {
            // An empty series has the name: a curve may have many parts.
            let none: [Circle<(f64, f64), i32>; 0] = [];
            chart.draw_series(none).map_err(drawing)?.label(clean(name, LENGTHS.1)).legend(move |(x, y)| {
                Rectangle::new([(x, y - 1), (x + 18, y + 1)], color.mix(alpha.max(0.7)).filled())
            });
        }
    }
    if names.iter().any(|name| !name.is_empty()) {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .margin(10)
            .background_style(WHITE.mix(0.85))
            .border_style(GREY)
            .label_font((FONT, TEXT))
            .draw()
            .map_err(drawing)?;
    }
    Ok(())
}

/// The points, or if there are many more than pixels, the first, the lowest, the highest and the last of each run.
fn thinned(points: &[(f64, f64)], room: usize) -> Vec<(f64, f64)> {
    if points.len() <= 4 * room {
        return points.to_vec();
    }
    let run = points.len().div_ceil(room);
    let mut kept = Vec::with_capacity(4 * room);
    for run in points.chunks(run) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let ends = [run.iter().min_by(by_height), run.iter().max_by(by_height)];
        kept.extend(run.first());
        kept.extend(ends.into_iter().flatten());
        kept.extend(run.last());
    }
    kept
}
