//! Pictures of `(plot ...)`, ready to be drawn.

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The text above it.
    pub title: String,
    /// Its size in pixels; `None` for the usual one.
    pub width: Option<u32>,
    /// As `width`.
    pub height: Option<u32>,
    /// Its content.
    pub content: Content,
}

/// The content of a picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Curves or points on axes.
    Curves {
        /// The curves, each in its colour.
        curves: Vec<Curve>,
        /// True if the points are joined by lines.
        lines: bool,
        /// True if the y axis is logarithmic.
        log_y: bool,
        /// The axes.
        axes: Axes,
    },
    /// Counts of numbers in intervals of equal width.
    Histogram {
        /// The intervals' borders, ascending: one more than intervals.
        borders: Vec<f64>,
        /// A name, and the count of each interval.
        counts: Vec<(String, Vec<u64>)>,
        /// The axes.
        axes: Axes,
    },
    /// Images of one size, in rows.
    Images(Images),
}

/// The texts at the axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    /// Below the x axis.
    pub x: String,
    /// Beside the y axis.
    pub y: String,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name; empty for a single curve.
    pub name: String,
    /// Its points. A NaN interrupts it.
    pub points: Vec<(f64, f64)>,
}

/// Images of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Pixels of a row.
    pub width: usize,
    /// Rows of an image.
    pub height: usize,
    /// 1 for grey, 3 for red, green and blue.
    pub channels: usize,
    /// Images side by side.
    pub columns: usize,
    /// The images one after another, each row by row, a byte per channel. `None` for a number that is NaN.
    pub pixels: Vec<Option<u8>>,
}
