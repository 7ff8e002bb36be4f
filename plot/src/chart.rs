//! Curves, points and histograms.

use plotters::backend::{BitMapBackend, SVGBackend};
use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::{BLACK, Color, IntoFont, RGBColor, WHITE};
use sheaf_lang::plot::{Axes, Content, Curve, Plot};

use crate::axis::{Axis, MAX_MARKS, Wanted};
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

/// Least width and height of a picture with texts at its axes.
const LEAST: (u32, u32) = (240, 150);

/// Height of a name beside its colour.
const NAME: u32 = TEXT + 4;

/// Pieces of a curve that are looked at to find where it leaves room.
const LOOKED_AT: usize = 200;

/// Maximum characters of a title, and of the name of a curve.
const LENGTHS: (usize, usize) = (100, 40);

/// Maximum pixels of a PNG that is drawn twice as large and made smaller, so that its edges are smooth.
const SMOOTHED: u32 = 6_000_000;

/// Room of a mark beside its label across, and of a mark down.
const MARK: (u32, u32) = (18, 2 * TEXT);

/// Characters of a text of `TEXT` pixels in so many pixels.
fn characters(pixels: u32) -> usize {
    (pixels * 2 / TEXT) as usize
}

/// The surface of a picture.
#[derive(Clone, Copy)]
struct Page {
    width: u32,
    height: u32,
    /// The pixels that are drawn for one of the picture, on a side.
    scale: u32,
}

pub fn draw(plot: &Plot, format: Format) -> Result<Vec<u8>, DrawError> {
    let (width, height) = (plot.width.unwrap_or(SIZE.0), plot.height.unwrap_or(SIZE.1));
    match format {
        Format::Svg => {
            let mut text = String::new();
            let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
            paint(plot, Page { width, height, scale: 1 }, &area)?;
            drop(area);
            Ok(text.into_bytes())
        }
        Format::Png => {
            let scale = if width * height <= SMOOTHED { 2 } else { 1 };
            let size = (width * scale, height * scale);
            let mut pixels = vec![0; 3 * size.0 as usize * size.1 as usize];
            let area = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
            paint(plot, Page { width, height, scale }, &area)?;
            drop(area);
            let pixels = if scale == 2 { halved(&pixels, size.0 as usize) } else { pixels };
            png(width, height, &pixels)
        }
    }
}

/// The pixels of a picture of half the width and height: the mean of four for each.
fn halved(pixels: &[u8], width: usize) -> Vec<u8> {
    let mut half = Vec::with_capacity(pixels.len() / 4);
    for rows in pixels.chunks_exact(6 * width) {
        let (above, below) = rows.split_at(3 * width);
        for (above, below) in above.chunks_exact(6).zip(below.chunks_exact(6)) {
            for i in 0..3 {
                let sum = [above[i], above[i + 3], below[i], below[i + 3]].map(u16::from).iter().sum::<u16>();
                half.push(((sum + 2) / 4) as u8);
            }
        }
    }
    half
}

fn paint<B: DrawingBackend>(plot: &Plot, page: Page, area: &DrawingArea<B, Shift>) -> Result<(), DrawError> {
    area.fill(&WHITE).map_err(drawing)?;
    let usual = Wanted::default();
    let chart = match &plot.content {
        Content::Curves { curves, lines, log_y, axes } => {
            let shown = |y: f64| y.is_finite() && !(*log_y && y <= 0.0);
            let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
            Chart {
                axes,
                x: points().filter(|(_, y)| shown(*y)).map(|(x, _)| x).collect(),
                y: points().map(|(_, y)| y).collect(),
                on_x: Wanted { tight: *lines, ..usual },
                on_y: Wanted { log: *log_y, ..usual },
                names: curves.iter().map(|curve| curve.name.as_str()).collect(),
                shapes: curves.iter().map(|curve| Shapes::Curve { curve, lines: *lines }).collect(),
            }
        }
        Content::Histogram { borders, counts, axes } => {
            let alpha = if counts.len() > 1 { 0.5 } else { 0.85 };
            let ends = [borders.first(), borders.last()];
            Chart {
                axes,
                x: ends.into_iter().flatten().copied().collect(),
                y: counts.iter().flat_map(|(_, counts)| counts).map(|n| *n as f64).collect(),
                on_x: Wanted { tight: true, ..usual },
                on_y: Wanted { from_zero: true, ..usual },
                names: counts.iter().map(|(name, _)| name.as_str()).collect(),
                shapes: counts.iter().map(|(_, counts)| Shapes::Bars { borders, counts, alpha }).collect(),
            }
        }
        Content::Images(_) => return area.present().map_err(drawing),
    };
    chart.paint(&plot.title, page, area)?;
    area.present().map_err(drawing)
}

/// Shapes on axes.
struct Chart<'a> {
    axes: &'a Axes,
    /// The numbers that the axes have room for.
    x: Vec<f64>,
    y: Vec<f64>,
    on_x: Wanted,
    on_y: Wanted,
    /// For each of the shapes; empty for the only one.
    names: Vec<&'a str>,
    shapes: Vec<Shapes<'a>>,
}

/// The colour of the shapes at a place; when all have been used, they come again darker.
fn color(place: usize) -> RGBColor {
    let RGBColor(red, green, blue) = COLORS[place % COLORS.len()];
    let parts = if (place / COLORS.len()).is_multiple_of(2) { 5 } else { 3 };
    let shade = |part: u8| (u16::from(part) * parts / 5) as u8;
    RGBColor(shade(red), shade(green), shade(blue))
}

/// The shapes of one colour.
enum Shapes<'a> {
    Curve { curve: &'a Curve, lines: bool },
    Bars { borders: &'a [f64], counts: &'a [u64], alpha: f64 },
}

/// The axis with as many marks as have room: `room` pixels, of which a mark with a label of so many characters takes some.
fn fitted(
    numbers: &[f64],
    wanted: Wanted,
    room: u32,
    of_mark: impl Fn(u32) -> u32,
) -> Result<Axis, DrawError> {
    let mut shown = None;
    for marks in (1..=MAX_MARKS).rev() {
        let axis = Axis::of(numbers.iter().copied(), Wanted { marks, ..wanted })?;
        if axis.count() == 0 {
            continue;
        }
        let fits = axis.count() * of_mark(axis.widest()) <= room;
        shown = Some(axis);
        if fits {
            break;
        }
    }
    shown.map_or_else(|| Axis::of(numbers.iter().copied(), wanted), Ok)
}

/// The width of a text of so many characters.
fn width_of(characters: u32) -> u32 {
    characters * TEXT * 9 / 16
}

impl Chart<'_> {
    fn paint<B: DrawingBackend>(
        &self,
        title: &str,
        page: Page,
        area: &DrawingArea<B, Shift>,
    ) -> Result<(), DrawError> {
        let scale = page.scale;
        let text = (TEXT * scale) as i32;
        let title = if page.width < LEAST.0 / 3 || page.height < LEAST.1 * 2 / 3 { "" } else { title };
        let own = Axes::default();
        let axes = if page.width < LEAST.0 || page.height < LEAST.1 { &own } else { self.axes };
        let below = TEXT + 12 + if axes.x.is_empty() { 0 } else { TEXT + 4 };
        let above = if title.is_empty() { 0 } else { TEXT + 16 };
        let down = page.height.saturating_sub(below + above + 24);
        let y = fitted(&self.y, self.on_y, down, |_| MARK.1)?;
        let beside = 16 + width_of(y.widest()) + if axes.y.is_empty() { 0 } else { TEXT + 8 };
        let across = page.width.saturating_sub(beside + 36);
        let x = fitted(&self.x, self.on_x, across, |widest| width_of(widest) + MARK.0)?;

        let mut builder = ChartBuilder::on(area);
        builder.margin(12 * scale).margin_right(24 * scale);
        if !title.is_empty() {
            let length = LENGTHS.0.min(characters(page.width.saturating_sub(48)) * 3 / 4);
            builder.caption(clean(title, length), (FONT, text + 5 * scale as i32));
        }
        builder.x_label_area_size(below * scale);
        builder.y_label_area_size(beside * scale);
        let (on_x, on_y) = (x.clone(), y.clone());
        let mut chart = builder.build_cartesian_2d(x, y).map_err(drawing)?;
        chart
            .configure_mesh()
            .x_labels(30)
            .y_labels(30)
            .max_light_lines(0)
            .bold_line_style(GREY.stroke_width(scale))
            .light_line_style(WHITE.mix(0.0))
            .axis_style(DARK.stroke_width(scale))
            .set_all_tick_mark_size(5 * scale as i32)
            .label_style((FONT, text).into_font().color(&DARK))
            .axis_desc_style((FONT, text).into_font().color(&BLACK))
            .x_desc(clean(&axes.x, LENGTHS.0.min(characters(across))))
            .y_desc(clean(&axes.y, LENGTHS.0.min(characters(down))))
            .x_label_formatter(&|value| on_x.label(*value))
            .y_label_formatter(&|value| on_y.label(*value))
            .draw()
            .map_err(drawing)?;
        // As many names as there is room for, the last of which counts the others.
        let room = (down.saturating_sub(20) / NAME) as usize;
        let named = if self.names.len() <= room { self.names.len() } else { room.saturating_sub(1) };
        for (i, (shapes, name)) in self.shapes.iter().zip(&self.names).enumerate() {
            let color = color(i);
            let mut alpha = 1.0;
            match shapes {
                Shapes::Curve { curve, lines: true } => {
                    for part in curve.points.split(|(x, at)| !(on_x.holds(*x) && on_y.holds(*at))) {
                        let part = thinned(part, (page.width * scale) as usize);
                        if let [alone] = part.as_slice() {
                            let dot = Circle::new(*alone, 2 * scale, color.filled());
                            chart.draw_series([dot]).map_err(drawing)?;
                        } else if !part.is_empty() {
                            let line = PathElement::new(part, color.stroke_width(2 * scale));
                            chart.draw_series([line]).map_err(drawing)?;
                        }
                    }
                }
                Shapes::Curve { curve, .. } => {
                    let shown = curve.points.iter().filter(|(x, at)| on_x.holds(*x) && on_y.holds(*at));
                    let points = shown.map(|point| Circle::new(*point, 3 * scale, color.mix(0.8).filled()));
                    chart.draw_series(points).map_err(drawing)?;
                }
                Shapes::Bars { borders, counts, alpha: own } => {
                    alpha = *own;
                    let bars = borders.windows(2).zip(*counts).filter(|(_, count)| **count > 0);
                    let bars = bars.map(|(ends, count)| {
                        let corners = [(ends[0], 0.0), (ends[1], *count as f64)];
                        let mut bar = Rectangle::new(corners, color.mix(*own).filled());
                        // A gap between neighbours.
                        bar.set_margin(0, 0, 0, scale);
                        bar
                    });
                    chart.draw_series(bars).map_err(drawing)?;
                }
            }
            if !name.is_empty() && i < named {
                // An empty series has the name: a curve may have many parts.
                let none: [Circle<(f64, f64), u32>; 0] = [];
                let style = color.mix(alpha.max(0.7)).filled();
                let half = scale as i32;
                chart
                    .draw_series(none)
                    .map_err(drawing)?
                    .label(clean(name, LENGTHS.1))
                    .legend(move |(x, y)| Rectangle::new([(x, y - half), (x + 18 * half, y + half)], style));
            }
        }
        if named == 0 || self.names.iter().all(|name| name.is_empty()) {
            return Ok(());
        }
        if named < self.names.len() {
            let none: [Circle<(f64, f64), u32>; 0] = [];
            let label = format!("... {} more", self.names.len() - named);
            chart.draw_series(none).map_err(drawing)?.label(label);
        }
        let widest = self.names.iter().map(|name| name.chars().count().min(LENGTHS.1)).max().unwrap_or(0);
        let width = f64::from(width_of(widest as u32) + 60) / f64::from(across.max(1));
        let height = (named as f64 + 1.0) * f64::from(NAME) / f64::from(down.max(1));
        chart
            .configure_series_labels()
            .position(self.free_corner(&on_x, &on_y, width, height))
            .margin(10 * scale as i32)
            .legend_area_size(30 * scale as i32)
            .background_style(WHITE.mix(0.85))
            .border_style(GREY.stroke_width(scale))
            .label_font((FONT, text))
            .draw()
            .map_err(drawing)
    }

    /// The corner where a box of this width and height, as parts of the whole, covers the least.
    fn free_corner(&self, on_x: &Axis, on_y: &Axis, width: f64, height: f64) -> SeriesLabelPosition {
        use SeriesLabelPosition::{LowerLeft, LowerRight, UpperLeft, UpperRight};
        let mut covered = [(UpperRight, 0), (UpperLeft, 0), (LowerRight, 0), (LowerLeft, 0)];
        let mut add = |x: f64, y: f64| {
            let (left, right, low, high) = (x < width, x > 1.0 - width, y < height, y > 1.0 - height);
            for (count, is_in) in
                covered.iter_mut().zip([right && high, left && high, right && low, left && low])
            {
                count.1 += usize::from(is_in);
            }
        };
        for shapes in &self.shapes {
            match shapes {
                Shapes::Curve { curve, lines } => {
                    let points = thinned(&curve.points, LOOKED_AT);
                    let held: Vec<(f64, f64)> = (points.iter())
                        .filter(|(x, y)| on_x.holds(*x) && on_y.holds(*y))
                        .map(|(x, y)| (on_x.part(*x), on_y.part(*y)))
                        .collect();
                    held.iter().for_each(|(x, y)| add(*x, *y));
                    for pair in held.windows(2).filter(|_| *lines) {
                        let between = |a: f64, b: f64, i: u32| a + (b - a) * f64::from(i) / 8.0;
                        for i in 1..8 {
                            add(between(pair[0].0, pair[1].0, i), between(pair[0].1, pair[1].1, i));
                        }
                    }
                }
                Shapes::Bars { borders, counts, .. } => {
                    for (ends, count) in borders.windows(2).zip(*counts).filter(|(_, count)| **count > 0) {
                        let (x, top) = (on_x.part(ends[0] / 2.0 + ends[1] / 2.0), on_y.part(*count as f64));
                        (0..=8).for_each(|i| add(x, top * f64::from(i) / 8.0));
                    }
                }
            }
        }
        let least = covered.iter().map(|(_, count)| *count).min();
        covered.into_iter().find(|(_, count)| Some(*count) == least).map_or(UpperRight, |(corner, _)| corner)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(curves: Vec<Curve>, width: u32, height: u32) -> Plot {
        let content = Content::Curves { curves, lines: true, log_y: false, axes: Axes::default() };
        Plot { title: "Title".into(), width: Some(width), height: Some(height), content }
    }

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve { name: name.into(), points: points.to_vec() }
    }

    fn svg(plot: &Plot) -> String {
        String::from_utf8(crate::draw(plot, Format::Svg).expect("a picture")).expect("text")
    }

    /// Place of a text in a picture.
    fn place(svg: &str, text: &str) -> (f64, f64) {
        let before = svg.split(&format!(">\n{text}\n")).next().expect("the text");
        let tag = before.rsplit("<text ").next().expect("a tag");
        let number = |name: &str| {
            let rest = tag.split(&format!("{name}=\"")).nth(1).expect("an attribute");
            rest.split('"').next().and_then(|n| n.parse().ok()).expect("a number")
        };
        (number("x"), number("y"))
    }

    #[test]
    fn names_stand_in_the_corner_that_is_free() {
        let falls = [(0.0, 9.0), (1.0, 3.0), (2.0, 1.0), (3.0, 0.0)];
        let rises = [(0.0, 0.0), (1.0, 1.0), (2.0, 3.0), (3.0, 9.0)];
        let at = |points: &[(f64, f64)]| {
            place(&svg(&plot(vec![curve("name", points), curve("b", points)], 800, 500)), "name")
        };
        let (right, left) = (at(&falls), at(&rises));
        assert!(right.0 > 600.0 && right.1 < 100.0, "{right:?}");
        assert!(left.0 < 200.0 && left.1 < 100.0, "{left:?}");
        let bowl = [(0.0, 9.0), (1.0, 9.0), (2.0, 0.0), (3.0, 9.0)];
        let low = at(&bowl);
        assert!(low.0 > 600.0 && low.1 > 300.0, "{low:?}");
    }

    #[test]
    fn many_names_are_counted_and_small_pictures_leave_texts_out() {
        let many =
            (0..60).map(|i| curve(&format!("curve-{i}"), &[(0.0, f64::from(i)), (1.0, 0.0)])).collect();
        let shown = svg(&plot(many, 800, 500));
        assert!(shown.contains("curve-10") && !shown.contains("curve-50"), "{shown}");
        let named = shown.matches("curve-").count();
        assert!(shown.contains(&format!("... {} more", 60 - named)), "{shown}");
        for (width, height) in [(16, 16), (40, 30), (100, 60), (2000, 16), (16, 2000), (160, 100)] {
            let small = plot(vec![curve("a", &[(0.0, 1.0), (1.0, 0.0)])], width, height);
            assert_eq!(svg(&small).contains("Title"), width >= 80 && height >= 100, "{width} {height}");
            let png = crate::draw(&small, Format::Png).expect("a picture");
            assert_eq!(png[16..24], [width.to_be_bytes(), height.to_be_bytes()].concat());
        }
    }

    #[test]
    fn a_smaller_picture_has_the_means() {
        let pixels = [[0, 0, 0], [4, 8, 255], [4, 0, 255], [0, 8, 255]].concat();
        assert_eq!(halved(&pixels, 2), [2, 4, 191]);
    }

    #[test]
    fn long_curves_keep_their_extremes() {
        let points: Vec<(f64, f64)> =
            (0..100_000).map(|i| (f64::from(i), if i == 54_321 { 7.0 } else { 0.0 })).collect();
        let thin = thinned(&points, 100);
        assert!(thin.len() <= 400 && thin.contains(&(54_321.0, 7.0)), "{}", thin.len());
        assert_eq!((thin.first(), thin.last()), (points.first(), points.last()));
    }
}
