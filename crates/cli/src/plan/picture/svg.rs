//! SVG, written by hand.

use std::fmt::Write as _;

/// Where a text stands relative to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

const STYLE: &str = "\
text { font-family: Inter, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif; fill: #16323f; }
.title { font-size: 24px; font-weight: 600; }
.subtitle { font-size: 14px; fill: #4d6672; }
.heading { font-size: 14px; font-weight: 600; }
.label { font-size: 12px; fill: #4d6672; }
.strong { font-size: 12px; font-weight: 600; fill: #b4304c; }
.axis { stroke: #9fb0b7; stroke-width: 1; fill: none; }
.grid { stroke: #e3e8ea; stroke-width: 1; fill: none; }
.turn { stroke: #16323f; stroke-width: 1.2; stroke-dasharray: 5 4; fill: none; }
.memory { stroke: #1f9e89; fill: none; stroke-linecap: round; }
.disk { stroke: #8a6d3b; fill: none; stroke-linecap: round; }
.advance { stroke: #3c78a8; fill: none; stroke-linecap: round; }
.record { stroke: #e08e2b; fill: none; stroke-linecap: round; }
.reverse { stroke: #c2405b; fill: none; stroke-linecap: round; }
.tape { stroke: #e08e2b; stroke-opacity: 0.45; fill: none; }
.curve { stroke: #3c78a8; stroke-width: 2.2; fill: none; stroke-linejoin: round; }
.under { fill: #3c78a8; fill-opacity: 0.07; stroke: none; }
.point { fill: #c2405b; stroke: #ffffff; stroke-width: 2; }
.neighbour { fill: #ffffff; stroke: #c2405b; stroke-width: 2; }
.store { fill: #1f9e89; stroke: none; }
.store-disk { fill: #8a6d3b; stroke: none; }
.load { fill: #ffffff; stroke: #1f9e89; stroke-width: 1.2; }
.load-disk { fill: #ffffff; stroke: #8a6d3b; stroke-width: 1.2; }
.halo { stroke: #ffffff; stroke-width: 4; stroke-linejoin: round; paint-order: stroke; }
";

/// A picture under construction.
pub struct Svg {
    text: String,
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Svg {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\">\n<style>\n{STYLE}</style>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
        );
        Svg { text }
    }

    pub fn line(&mut self, class: &str, width: f64, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.text,
            "<line class=\"{class}\" stroke-width=\"{width:.2}\" x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub fn circle(&mut self, class: &str, center: (f64, f64), radius: f64) {
        let _ = writeln!(
            self.text,
            "<circle class=\"{class}\" cx=\"{:.2}\" cy=\"{:.2}\" r=\"{radius:.2}\"/>",
            center.0, center.1
        );
    }

    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.2} {y:.2}")).collect();
        let _ = writeln!(self.text, "<path class=\"{class}\" d=\"M{}\"/>", points.join(" L"));
    }

    pub fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, content: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let content = content.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(
            self.text,
            "<text class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" text-anchor=\"{anchor}\">{content}</text>"
        );
    }

    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// Round numbers up to `most`, about `count` of them.
pub fn ticks(most: f64, count: f64) -> Vec<f64> {
    let raw = (most / count).max(1.0);
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|&step| step >= raw);
    let step = step.unwrap_or(raw);
    (0..).map(|i| f64::from(i) * step).take_while(|&tick| tick <= most * 1.0001).collect()
}
