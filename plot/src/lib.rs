//! Pictures of numbers: curves, histograms and image grids as PNG or SVG.
//!
//! The text is set in a font that this crate holds, so that a picture needs nothing of the system. An SVG names the
//! system's sans serif for its texts.

mod axis;
mod chart;
mod grid;
mod text;

use sheaf_lang::plot::{Content, Plot};

/// Format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Pixels.
    Png,
    /// Shapes.
    Svg,
}

impl Format {
    /// The format that the extension of a path names.
    pub fn of(path: &str) -> Option<Format> {
        let (_, extension) = path.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "png" => Some(Format::Png),
            "svg" => Some(Format::Svg),
            _ => None,
        }
    }
}

/// A picture that cannot be drawn.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    /// The numbers of an axis are too far apart.
    #[error("the numbers from {0:e} to {1:e} are too far apart for one axis")]
    Range(f64, f64),
    /// The drawing library refused.
    #[error("the picture cannot be drawn: {0}")]
    Drawing(String),
}

/// The bytes of the file of a picture.
pub fn draw(plot: &Plot, format: Format) -> Result<Vec<u8>, DrawError> {
    text::register();
    match &plot.content {
        Content::Images(images) => grid::draw(plot, images, format),
        _ => chart::draw(plot, format),
    }
}

/// An error of the drawing library.
fn drawing(error: impl std::fmt::Display) -> DrawError {
    DrawError::Drawing(error.to_string())
}

/// The PNG of rows of red, green and blue.
fn png(width: u32, height: u32, pixels: &[u8]) -> Result<Vec<u8>, DrawError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header().map_err(drawing)?;
    writer.write_image_data(pixels).map_err(drawing)?;
    writer.finish().map_err(drawing)?;
    Ok(bytes)
}
