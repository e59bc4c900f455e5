//! SVG for the pictures of the demo, in light and in dark.

use std::fmt::Write as _;

/// Where a text stands relative to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

const STYLE: &str = "\
text { font-family: Inter, -apple-system, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif; fill: #16323f; }
.heading { font-size: 15px; font-weight: 600; }
.label { font-size: 12px; fill: #4d6672; }
.on-image { font-size: 12px; font-weight: 600; fill: #ffffff; stroke: #10202c; stroke-width: 3; stroke-opacity: 0.55; paint-order: stroke; }
.frame { fill: none; stroke: #4d6672; stroke-opacity: 0.6; }
.axis { stroke: #9fb0b7; stroke-width: 1; fill: none; }
.grid { stroke: #e3e8ea; stroke-width: 1; fill: none; }
.bar { stroke: #ffffff; stroke-width: 3; }
.bar-halo { stroke: #10202c; stroke-width: 5; stroke-opacity: 0.55; }
.source { fill: #c2405b; }
.curve { stroke: #2474a8; stroke-width: 2.4; fill: none; stroke-linejoin: round; stroke-linecap: round; }
.under { fill: #2474a8; fill-opacity: 0.08; stroke: none; }
.dot { fill: #2474a8; stroke: #ffffff; stroke-width: 1.5; }
.end { fill: #c2405b; stroke: #ffffff; stroke-width: 2; }
.strong { font-size: 13px; font-weight: 600; fill: #b4304c; }
@media (prefers-color-scheme: dark) {
text { fill: #e4eef2; }
.label { fill: #9db3bd; }
.on-image { fill: #ffffff; }
.grid { stroke: #26404c; }
.axis { stroke: #56707c; }
.curve { stroke: #62b3e4; }
.under, .dot { fill: #62b3e4; }
.dot, .end { stroke: #12222b; }
.strong { fill: #ff8aa2; }
.source, .end { fill: #ff7d97; }
}
";

/// A picture under construction, on no ground of its own.
pub struct Canvas {
    text: String,
}

impl Canvas {
    pub fn new(width: f64, height: f64) -> Canvas {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>\n{STYLE}</style>"
        );
        Canvas { text }
    }

    pub fn raw(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.text,
            "<line class=\"{class}\" x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\"/>"
        );
    }

    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let _ =
            writeln!(self.text, "<circle class=\"{class}\" cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius:.2}\"/>");
    }

    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.2} {y:.2}")).collect();
        let _ = writeln!(self.text, "<path class=\"{class}\" d=\"M{}\"/>", points.join(" L"));
    }

    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, content: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.text,
            "<text class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\">{}</text>",
            escape(content)
        );
    }

    /// A label that reads upwards.
    pub fn upright(&mut self, (x, y): (f64, f64), content: &str) {
        let _ = writeln!(
            self.text,
            "<text class=\"label\" transform=\"translate({x:.2} {y:.2}) rotate(-90)\">{}</text>",
            escape(content)
        );
    }

    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// Text that stands in SVG and HTML as it is.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

/// Bytes as base64.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - group.len()));
        for k in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * k)) as usize & 63];
            text.push(if k <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_the_standards_examples() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[255, 254, 253]), "//79");
    }
}
