//! Charts as SVG text: bars and lines on logarithmic axes.

use std::fmt::Write as _;

/// A line of a chart.
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// A group of bars.
pub struct Group {
    pub name: String,
    pub bars: Vec<(String, f64)>,
}

/// Colours that can be told apart, also without colour vision (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"];

const WIDTH: f64 = 760.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 46.0;

/// A logarithmic axis between two round numbers.
struct Axis {
    low: f64,
    high: f64,
}

/// The round numbers from one power of ten to the next.
const ROUND: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

impl Axis {
    fn of(values: impl Iterator<Item = f64>) -> Axis {
        let values: Vec<f64> = values.filter(|v| *v > 0.0 && v.is_finite()).collect();
        let least = values.iter().fold(f64::INFINITY, |a, b| a.min(*b));
        let most = values.iter().fold(0.0f64, |a, b| a.max(*b));
        if values.is_empty() {
            return Axis { low: 1.0, high: 10.0 };
        }
        let power = |v: f64| 10f64.powf(v.log10().floor());
        let below =
            |v: f64| ROUND.map(|r| r * power(v)).into_iter().filter(|r| *r <= v * 1.001).fold(0.0, f64::max);
        let above = |v: f64| ROUND.map(|r| r * power(v)).into_iter().find(|r| *r >= v * 0.999).unwrap_or(v);
        let low = below(least);
        Axis { low, high: above(most).max(2.0 * low) }
    }

    /// Where a value is, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        ((value / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Powers of ten; on a short axis 2 and 5 times them as well.
    fn ticks(&self) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let steps = if last - first <= 2 { &ROUND[..3] } else { &ROUND[..1] };
        let every = ((last - first) / 7).max(1) as usize;
        let all = (first..=last).step_by(every).flat_map(|p| steps.iter().map(move |s| s * 10f64.powi(p)));
        all.filter(|t| *t >= self.low * 0.999 && *t <= self.high * 1.001).collect()
    }
}

/// A number on an axis: 1, 10, 1k, 1M; or 0.1, 0.01.
fn label(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.0}G", v / 1e9),
        v if v >= 1e6 => format!("{:.0}M", v / 1e6),
        v if v >= 1e3 => format!("{:.0}k", v / 1e3),
        v if v >= 1.0 => format!("{v:.0}"),
        v if v >= 1e-4 => format!("{v:.4}").trim_end_matches('0').to_string(),
        v => format!("{v:.0e}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ = writeln!(svg, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#, escaped(words));
}

fn begin(title: &str, height: f64) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let _ = writeln!(
        svg,
        r#"<text x="{LEFT}" y="22" font-size="15" font-weight="bold">{}</text>"#,
        escaped(title)
    );
    svg
}

/// Lines on two logarithmic axes.
pub fn lines(title: &str, x_name: &str, y_name: &str, series: &[Series]) -> String {
    let plot = 300.0;
    let legend = 18.0 * series.len() as f64;
    let mut svg = begin(title, TOP + plot + 50.0 + legend);
    let x_axis = Axis::of(series.iter().flat_map(|s| s.points.iter().map(|p| p.0)));
    let y_axis = Axis::of(series.iter().flat_map(|s| s.points.iter().map(|p| p.1)));
    let x = |value: f64| LEFT + x_axis.place(value) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| TOP + (1.0 - y_axis.place(value)) * plot;
    for tick in x_axis.ticks() {
        let at = x(tick);
        let _ = writeln!(svg, r##"<path d="M{at:.1} {TOP}V{:.1}" stroke="#ddd" fill="none"/>"##, TOP + plot);
        text(&mut svg, at, TOP + plot + 16.0, "middle", &label(tick));
    }
    for tick in y_axis.ticks() {
        let at = y(tick);
        let _ =
            writeln!(svg, r##"<path d="M{LEFT} {at:.1}H{:.1}" stroke="#ddd" fill="none"/>"##, WIDTH - RIGHT);
        text(&mut svg, LEFT - 6.0, at + 4.0, "end", &label(tick));
    }
    text(&mut svg, WIDTH - RIGHT, TOP + plot + 32.0, "end", x_name);
    text(&mut svg, LEFT, TOP - 8.0, "start", y_name);
    for (k, one) in series.iter().enumerate() {
        let colour = COLOURS[k % COLOURS.len()];
        let points: Vec<(f64, f64)> = one.points.iter().copied().filter(|p| p.0 > 0.0 && p.1 > 0.0).collect();
        let path: Vec<String> = points.iter().map(|p| format!("{:.1} {:.1}", x(p.0), y(p.1))).collect();
        if path.is_empty() {
            continue;
        }
        let _ = writeln!(
            svg,
            r#"<path d="M{}" stroke="{colour}" stroke-width="2" fill="none"/>"#,
            path.join("L")
        );
        for point in &points {
            let _ = writeln!(
                svg,
                r#"<circle cx="{:.1}" cy="{:.1}" r="3" fill="{colour}"/>"#,
                x(point.0),
                y(point.1)
            );
        }
        let at = TOP + plot + 46.0 + 18.0 * k as f64;
        let _ = writeln!(
            svg,
            r#"<path d="M{LEFT} {:.1}h22" stroke="{colour}" stroke-width="3" fill="none"/>"#,
            at - 4.0
        );
        text(&mut svg, LEFT + 28.0, at, "start", &one.name);
    }
    svg + "</svg>\n"
}

/// Horizontal bars on a logarithmic axis, from `base` on.
pub fn bars(title: &str, x_name: &str, groups: &[Group]) -> String {
    let (bar, gap, left) = (16.0, 26.0, 230.0);
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = TOP + bar * rows as f64 + gap * groups.len() as f64 + 30.0;
    let mut svg = begin(title, height);
    let axis = Axis::of(groups.iter().flat_map(|group| group.bars.iter().map(|b| b.1)).chain([1.0]));
    let x = |value: f64| left + axis.place(value) * (WIDTH - left - 70.0);
    for tick in axis.ticks() {
        let at = x(tick);
        let _ =
            writeln!(svg, r##"<path d="M{at:.1} {TOP}V{:.1}" stroke="#ddd" fill="none"/>"##, height - 30.0);
        text(&mut svg, at, height - 14.0, "middle", &label(tick));
    }
    text(&mut svg, WIDTH - RIGHT, TOP - 8.0, "end", x_name);
    let mut y = TOP;
    for group in groups {
        y += gap - 8.0;
        let _ =
            writeln!(svg, r#"<text x="10" y="{y:.1}" font-weight="bold">{}</text>"#, escaped(&group.name));
        y += 8.0;
        for (name, value) in &group.bars {
            let colour = if name.starts_with("Ebbtide") { COLOURS[0] } else { "#b5b5b5" };
            text(&mut svg, left - 8.0, y + 12.0, "end", name);
            let width = (x(*value) - left).max(1.0);
            let _ = writeln!(
                svg,
                r#"<rect x="{left}" y="{:.1}" width="{width:.1}" height="{:.1}" fill="{colour}"/>"#,
                y + 2.0,
                bar - 4.0
            );
            text(&mut svg, left + width + 5.0, y + 12.0, "start", &short(*value));
            y += bar;
        }
    }
    svg + "</svg>\n"
}

/// A number with two or three digits that matter.
pub fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
