//! A field over the ground as a picture: colours in a PNG, and around it axes, a colour bar and a scale bar in SVG.

use super::canvas::{Anchor, Canvas, base64};
use super::earth::Grid;
use crate::Failure;

/// The colours of a field, from its least to its greatest value.
#[derive(Clone, Copy)]
pub enum Palette {
    /// Viridis: equal steps look equal, also without colours and for the colour-blind.
    Speed,
    /// Blue below zero, red above.
    Sign,
}

impl Palette {
    fn anchors(self) -> &'static [[f32; 3]] {
        match self {
            Palette::Speed => &[
                [68.0, 1.0, 84.0],
                [71.0, 45.0, 123.0],
                [59.0, 82.0, 139.0],
                [44.0, 114.0, 142.0],
                [33.0, 145.0, 140.0],
                [39.0, 173.0, 129.0],
                [92.0, 200.0, 99.0],
                [170.0, 220.0, 50.0],
                [253.0, 231.0, 37.0],
            ],
            Palette::Sign => &[
                [22.0, 64.0, 122.0],
                [74.0, 140.0, 190.0],
                [176.0, 209.0, 228.0],
                [248.0, 246.0, 242.0],
                [244.0, 196.0, 170.0],
                [212.0, 106.0, 84.0],
                [132.0, 22.0, 44.0],
            ],
        }
    }

    /// The colour at a part between 0 and 1.
    pub fn colour(self, part: f32) -> [u8; 3] {
        let anchors = self.anchors();
        let at = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.5 } * (anchors.len() - 1) as f32;
        let first = (at as usize).min(anchors.len() - 2);
        let share = at - first as f32;
        std::array::from_fn(|c| {
            let (a, b) = (anchors[first][c], anchors[first + 1][c]);
            (a + share * (b - a)).round() as u8
        })
    }
}

/// A field by cell, and how it is shown.
pub struct Field<'a> {
    pub title: &'a str,
    pub values: &'a [f32],
    pub range: (f32, f32),
    pub palette: Palette,
    /// The unit of the colour bar.
    pub unit: &'a str,
    /// Where it was fired.
    pub sources: &'a [usize],
}

impl Field<'_> {
    /// The cells inside the edges as PNG.
    pub fn png(&self, grid: Grid) -> Result<Vec<u8>, Failure> {
        let edge = grid.edge();
        let (low, high) = self.range;
        let mut colours = Vec::new();
        for row in self.values.chunks_exact(grid.columns).skip(edge).take(grid.rows - 2 * edge) {
            for value in &row[edge..grid.columns - edge] {
                colours.push(self.palette.colour((value - low) / (high - low).max(f32::MIN_POSITIVE)));
            }
        }
        encode(grid.columns - 2 * edge, grid.rows - 2 * edge, &colours)
    }

    /// The whole picture.
    pub fn svg(&self, grid: Grid, png: &[u8]) -> String {
        let (columns, rows) = (grid.columns - 2 * grid.edge(), grid.rows - 2 * grid.edge());
        let (width, height) = (410.0, 410.0 * rows as f64 / columns as f64);
        let (left, top) = (48.0, 42.0);
        let (right, bottom) = (left + width, top + height);
        let pixel = width / columns as f64;
        let kilometre = pixel / grid.cell();
        let mut canvas = Canvas::new(right + 76.0, bottom + 46.0);
        canvas.text((left, 20.0), Anchor::Start, "heading", self.title);
        canvas.raw(&format!(
            "<image x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height:.2}\" preserveAspectRatio=\"none\" \
             href=\"data:image/png;base64,{}\"/>\n",
            base64(png)
        ));
        canvas.raw(&format!(
            "<rect class=\"frame\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height:.2}\"/>\n"
        ));
        for column in self.sources {
            let x = left + (*column as f64 + 0.5 - grid.edge() as f64) * pixel;
            canvas.raw(&format!("<path class=\"source\" d=\"M{x:.1} {:.1} l-4 -7 h8 z\"/>\n", top - 1.0));
        }
        for k in 0..=(width / kilometre * 2.0) as usize {
            let x = left + 0.5 * k as f64 * kilometre;
            canvas.line("axis", (x, bottom), (x, bottom + if k % 2 == 0 { 6.0 } else { 3.0 }));
            if k % 2 == 0 {
                canvas.text((x, bottom + 20.0), Anchor::Middle, "label", &format!("{}", k / 2));
            }
        }
        for k in 0..=(height / kilometre * 2.0 + 1e-9) as usize {
            let y = top + 0.5 * k as f64 * kilometre;
            canvas.line("axis", (left - 5.0, y), (left, y));
            canvas.text((left - 9.0, y + 4.0), Anchor::End, "label", &format!("{}", 0.5 * k as f64));
        }
        canvas.text((right, bottom + 38.0), Anchor::End, "label", "distance along the line (km)");
        canvas.upright((14.0, bottom), "depth (km)");
        // A scale bar of 500 m.
        let (from, to) = (left + 12.0, left + 12.0 + 0.5 * kilometre);
        canvas.line("bar-halo", (from, bottom - 12.0), (to, bottom - 12.0));
        canvas.line("bar", (from, bottom - 12.0), (to, bottom - 12.0));
        canvas.text(((from + to) / 2.0, bottom - 18.0), Anchor::Middle, "on-image", "500 m");
        self.palette.bar(&mut canvas, (right + 12.0, top, height), self.range, self.unit);
        canvas.finish()
    }
}

/// So many colours by so many as PNG.
pub fn encode(width: usize, height: usize, colours: &[[u8; 3]]) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(colours.as_flattened())?;
    writer.finish()?;
    Ok(bytes)
}

impl Palette {
    /// A bar of all colours with what they stand for.
    pub fn bar(self, canvas: &mut Canvas, (x, top, height): (f64, f64, f64), range: (f32, f32), unit: &str) {
        let cells = 48;
        for k in 0..cells {
            let [r, g, b] = self.colour(1.0 - (k as f32 + 0.5) / cells as f32);
            let y = top + height * f64::from(k) / f64::from(cells);
            canvas.raw(&format!(
                "<rect x=\"{x}\" y=\"{y:.2}\" width=\"11\" height=\"{:.2}\" fill=\"rgb({r},{g},{b})\"/>\n",
                height / f64::from(cells) + 0.4
            ));
        }
        let (low, high) = (f64::from(range.0), f64::from(range.1));
        for k in 0..=4 {
            let part = f64::from(k) / 4.0;
            let y = top + height * (1.0 - part);
            let value = low + part * (high - low);
            canvas.text((x + 16.0, y + 4.0), Anchor::Start, "label", &format!("{value:.1}"));
        }
        canvas.upright((x + 58.0, top + height), unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_holds_the_cells_inside_the_edges() {
        let grid = Grid { rows: 30, columns: 40 };
        let values: Vec<f32> = (0..30 * 40).map(|k| k as f32).collect();
        let field = Field {
            title: "a < b",
            values: &values,
            range: (0.0, 1200.0),
            palette: Palette::Speed,
            unit: "km/s",
            sources: &[5],
        };
        let png = field.png(grid).unwrap();
        let reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (34, 24));
        let svg = field.svg(grid, &png);
        assert!(svg.contains("a &lt; b") && svg.contains("500 m") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn the_ends_of_a_palette_are_its_ends_and_nothing_falls_outside() {
        assert_eq!(Palette::Speed.colour(0.0), [68, 1, 84]);
        assert_eq!(Palette::Speed.colour(2.0), [253, 231, 37]);
        assert_eq!(Palette::Sign.colour(0.5), [248, 246, 242]);
        assert_eq!(Palette::Sign.colour(f32::NAN), [248, 246, 242]);
    }
}
