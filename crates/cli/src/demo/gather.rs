//! What one shot's receivers heard, and what the model leaves unexplained of it: shot gathers beside each other, in one
//! range of colours.

use super::canvas::{Anchor, Canvas, base64};
use super::earth::Grid;
use super::field::{Palette, encode};
use crate::Failure;

/// The gathers of one shot, row by row of time, all of one size.
pub struct Gathers<'a> {
    pub heard: &'a [f32],
    /// What the model at the start, and the one at the end, make the receivers hear.
    pub start: &'a [f32],
    pub result: &'a [f32],
    /// Where it was fired.
    pub column: usize,
}

/// The pixels of a gather, at most.
const HEIGHT: usize = 320;

impl Gathers<'_> {
    /// The picture; colours end where all but one in a hundred of the heard values lie.
    pub fn svg(&self, grid: Grid) -> Result<String, Failure> {
        let mut sizes: Vec<f32> = self.heard.iter().map(|v| v.abs()).collect();
        sizes.sort_by(f32::total_cmp);
        let large = sizes.get(sizes.len() * 99 / 100).copied().unwrap_or(1.0).max(f32::MIN_POSITIVE);
        let rest = |model: &[f32]| -> Vec<f32> {
            self.heard.iter().zip(model).map(|(heard, model)| heard - model).collect()
        };
        let panels = [
            ("heard", self.heard.to_vec()),
            ("unexplained at the start", rest(self.start)),
            ("unexplained at the end", rest(self.result)),
        ];
        let (left, top, width, height, gap) = (58.0, 62.0, 250.0, 300.0, 26.0);
        let bottom = top + height;
        let mut canvas = Canvas::new(left + 3.0 * width + 2.0 * gap + 70.0, bottom + 50.0);
        canvas.text(
            (left, 20.0),
            Anchor::Start,
            "heading",
            "One shot: pressure along the receivers, over time",
        );
        let steps = self.heard.len() / grid.columns.max(1);
        let seconds = steps as f64 * grid.time_step();
        for (k, (title, values)) in panels.iter().enumerate() {
            let x = left + k as f64 * (width + gap);
            self.panel(&mut canvas, grid, (x, top, width, height), (title, values, large))?;
        }
        let every = if seconds > 1.0 { 0.5 } else { 0.1 };
        for k in 0..=(seconds / every + 1e-9) as usize {
            let (time, y) = (every * k as f64, top + height * every * k as f64 / seconds);
            canvas.line("axis", (left - 5.0, y), (left, y));
            canvas.text((left - 9.0, y + 4.0), Anchor::End, "label", &format!("{time:.1}"));
        }
        canvas.upright((14.0, bottom), "time (s)");
        let x = left + 3.0 * width + 2.0 * gap + 12.0;
        Palette::Sign.bar(&mut canvas, (x, top, height), (-1.0, 1.0), "of the 99th percentile");
        Ok(canvas.finish())
    }

    fn panel(
        &self,
        canvas: &mut Canvas,
        grid: Grid,
        (x, top, width, height): (f64, f64, f64, f64),
        (title, values, large): (&str, &[f32], f32),
    ) -> Result<(), Failure> {
        let edge = grid.edge();
        let columns = grid.columns - 2 * edge;
        let steps = values.len() / grid.columns.max(1);
        let rows = steps.clamp(1, HEIGHT);
        let mut colours = Vec::new();
        for r in 0..rows {
            let row = &values[(r * steps / rows) * grid.columns..][..grid.columns];
            colours.extend(
                row[edge..edge + columns].iter().map(|v| Palette::Sign.colour(0.5 + 0.5 * v / large)),
            );
        }
        let png = encode(columns, rows, &colours)?;
        canvas.text((x, top - 10.0), Anchor::Start, "label", title);
        canvas.raw(&format!(
            "<image x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
             href=\"data:image/png;base64,{}\"/>\n\
             <rect class=\"frame\" x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{height}\"/>\n",
            base64(&png)
        ));
        let kilometre = width / (columns as f64 * grid.cell());
        let source = x + (self.column as f64 + 0.5 - edge as f64) * grid.cell() * kilometre;
        canvas.raw(&format!("<path class=\"source\" d=\"M{source:.1} {:.1} l-4 -7 h8 z\"/>\n", top - 1.0));
        for k in 0..=(width / kilometre) as usize {
            let at = x + k as f64 * kilometre;
            canvas.line("axis", (at, top + height), (at, top + height + 5.0));
            canvas.text((at, top + height + 19.0), Anchor::Middle, "label", &k.to_string());
        }
        canvas.text((x + width, top + height + 38.0), Anchor::End, "label", "distance along the line (km)");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_shot_can_be_drawn() {
        let grid = Grid { rows: 30, columns: 40 };
        for steps in [1, 7, 1000] {
            let silence = vec![0.0; steps * grid.columns];
            let noise: Vec<f32> = (0..steps * grid.columns).map(|k| (k as f32).sin()).collect();
            for heard in [&silence, &noise] {
                let gathers = Gathers { heard, start: &silence, result: &noise, column: 20 };
                let svg = gathers.svg(grid).ok().unwrap();
                // An image is text in which any three letters may stand together.
                let numbers: String = svg
                    .split("base64,")
                    .enumerate()
                    .map(|(k, piece)| if k == 0 { piece } else { piece.split_once('"').unwrap().1 })
                    .collect();
                assert!(
                    numbers.ends_with("</svg>\n") && !numbers.contains("NaN") && !numbers.contains("inf"),
                    "{steps}"
                );
                assert_eq!(svg.matches("<image").count(), 3);
            }
        }
    }
}
