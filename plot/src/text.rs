//! Texts and their font.

use std::sync::Once;

use epaint_default_fonts::UBUNTU_LIGHT;
use plotters::style::{FontStyle, register_font};

/// The name of the font; an SVG names it, too.
pub const FONT: &str = "sans-serif";

/// Makes the font known to the drawing library.
pub fn register() {
    static ONCE: Once = Once::new();
    // All styles, or a bold text would have no font.
    ONCE.call_once(|| {
        for style in [FontStyle::Normal, FontStyle::Bold, FontStyle::Italic, FontStyle::Oblique] {
            let _ = register_font(FONT, style, UBUNTU_LIGHT);
        }
    });
}

/// A text without control characters, which an SVG must not hold, of at most `length` characters.
pub fn clean(text: &str, length: usize) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    if text.chars().count() <= length {
        return text.chars().map(shown).collect();
    }
    text.chars().take(length.saturating_sub(3)).map(shown).chain("...".chars()).collect()
}
