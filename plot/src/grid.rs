//! Image grids.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plotters::backend::BitMapBackend;
use plotters::drawing::IntoDrawingArea;
use plotters::element::Text;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, Color, IntoFont, WHITE};
use sheaf_lang::plot::{Images, Plot};

use crate::text::{FONT, clean};
use crate::{DrawError, Format, drawing, png};

/// The usual size that the grid is enlarged to, in pixels of a side.
const SIZE: usize = 800;

/// Maximum pixels of a side of an image's pixel.
const MAX_SCALE: usize = 32;

/// Space around the grid.
const MARGIN: usize = 12;

/// Height of the title, and of the space it stands in.
const TITLE: (u32, usize) = (20, 36);

/// The colour of NaN.
const NAN: [u8; 3] = [220, 30, 30];

pub fn draw(plot: &Plot, images: &Images, format: Format) -> Result<Vec<u8>, DrawError> {
    let of_one = images.width * images.height * images.channels;
    let count = images.pixels.len() / of_one.max(1);
    let rows = count.div_ceil(images.columns);
    let title = if plot.title.is_empty() { 0 } else { TITLE.1 };
    let wanted =
        |given: Option<u32>, own: usize| given.map_or(SIZE, |n| n as usize).saturating_sub(2 * MARGIN + own);
    let (across, down) = (images.columns * (images.width + 1), rows * (images.height + 1));
    let scale = (wanted(plot.width, 0) / across).min(wanted(plot.height, title) / down).clamp(1, MAX_SCALE);
    let gap = (scale / 2).clamp(1, 6);
    let (cell_x, cell_y) = (images.width * scale + gap, images.height * scale + gap);
    let width = (images.columns * cell_x - gap + 2 * MARGIN).max(title * 4);
    let height = rows * cell_y - gap + 2 * MARGIN + title;

    let mut pixels = vec![255; 3 * width * height];
    if title > 0 {
        let area = BitMapBackend::with_buffer(&mut pixels, (width as u32, height as u32)).into_drawing_area();
        let style = (FONT, TITLE.0).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Center));
        let at = (width as i32 / 2, (MARGIN + title / 2) as i32);
        area.fill(&WHITE.to_rgba()).map_err(drawing)?;
        area.draw(&Text::new(clean(&plot.title, width / 10), at, style)).map_err(drawing)?;
        area.present().map_err(drawing)?;
    }
    for (i, image) in images.pixels.chunks_exact(of_one).enumerate() {
        let left = MARGIN + i % images.columns * cell_x;
        let top = MARGIN + title + i / images.columns * cell_y;
        for (at, channels) in image.chunks_exact(images.channels).enumerate() {
            let color = match channels {
                [Some(grey)] => [*grey; 3],
                [Some(red), Some(green), Some(blue)] => [*red, *green, *blue],
                _ => NAN,
            };
            let (x, y) = (left + at % images.width * scale, top + at / images.width * scale);
            for row in y..y + scale {
                let from = 3 * (row * width + x);
                for pixel in pixels[from..from + 3 * scale].chunks_exact_mut(3) {
                    pixel.copy_from_slice(&color);
                }
            }
        }
    }
    let png = png(width as u32, height as u32, &pixels)?;
    Ok(match format {
        Format::Png => png,
        Format::Svg => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
             {height}\">\n<image width=\"{width}\" height=\"{height}\" href=\"data:image/png;base64,{}\"/>\n</svg>\n",
            BASE64_STANDARD.encode(png)
        )
        .into_bytes(),
    })
}

#[cfg(test)]
mod tests {
    use sheaf_lang::plot::Content;

    use super::*;

    #[test]
    fn images_stand_in_rows_and_nan_is_red() {
        let images =
            Images { width: 1, height: 1, channels: 1, columns: 2, pixels: vec![Some(0), Some(128), None] };
        let plot = Plot {
            title: String::new(),
            width: Some(64),
            height: Some(64),
            content: Content::Images(images.clone()),
        };
        let bytes = draw(&plot, &images, Format::Png).expect("a picture");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("pixels");
        let width = info.width as usize;
        let at = |x: usize, y: usize| &pixels[3 * (y * width + x)..][..3];
        let end = (width - 1 - MARGIN, info.height as usize - 1 - MARGIN);
        assert_eq!(at(MARGIN, MARGIN), [0; 3]);
        assert_eq!(at(end.0, MARGIN), [128; 3]);
        assert_eq!(at(MARGIN, end.1), NAN);
        assert_eq!(at(end.0, end.1), [255; 3]);
    }
}
