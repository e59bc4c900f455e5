//! Misfit and model error as they fell, on a logarithmic scale.

use super::canvas::{Anchor, Canvas};

/// Draws numbers of the accepted points, relative to the first.
pub fn draw(title: &str, misfits: &[f64]) -> String {
    let (left, top, width, height) = (58.0, 58.0, 440.0, 236.0);
    let (right, bottom) = (left + width, top + height);
    let mut canvas = Canvas::new(right + 22.0, bottom + 48.0);
    canvas.text((left, 20.0), Anchor::Start, "heading", title);
    let first = misfits.first().copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
    let parts: Vec<f64> = misfits.iter().map(|misfit| (misfit / first).max(1e-12)).collect();
    let least = parts.iter().copied().fold(1.0, f64::min);
    // Down to the next of 50 %, 20 %, 10 %, 5 %, …
    let lines: Vec<f64> = (0..)
        .map(|k| [1.0, 0.5, 0.2][k % 3] * 0.1_f64.powi((k / 3) as i32))
        .scan(false, |passed, line| (!std::mem::replace(passed, line < least * 0.999)).then_some(line))
        .collect();
    let low = lines.last().copied().unwrap_or(0.5).min(0.5);
    let last = (parts.len().max(2) - 1) as f64;
    let place = |k: usize, part: f64| {
        (left + width * k as f64 / last, top + height * (part.ln() / low.ln()).clamp(0.0, 1.0))
    };
    for &line in &lines {
        let (_, y) = place(0, line);
        canvas.line("grid", (left, y), (right, y));
        canvas.text((left - 8.0, y + 4.0), Anchor::End, "label", &percent(line));
    }
    let every = parts.len().div_ceil(9).max(1);
    for k in (0..parts.len()).step_by(every) {
        let (x, _) = place(k, 1.0);
        canvas.line("axis", (x, bottom), (x, bottom + 5.0));
        canvas.text((x, bottom + 19.0), Anchor::Middle, "label", &k.to_string());
    }
    canvas.line("axis", (left, bottom), (right, bottom));
    canvas.text((right, bottom + 38.0), Anchor::End, "label", "iterations of L-BFGS");
    canvas.text((left, 40.0), Anchor::Start, "label", "part of the first value, logarithmic");
    let points: Vec<(f64, f64)> = parts.iter().enumerate().map(|(k, &part)| place(k, part)).collect();
    if let (Some(begin), Some(end)) = (points.first(), points.last()) {
        let mut area = points.clone();
        area.extend([(end.0, bottom), (begin.0, bottom)]);
        canvas.path("under", &area);
        canvas.path("curve", &points);
        for point in &points[..points.len() - 1] {
            canvas.circle("dot", *point, 3.6);
        }
        canvas.circle("end", *end, 6.0);
        let label = parts.last().map_or(String::new(), |part| percent(*part));
        canvas.text((end.0 - 14.0, end.1 + 9.0), Anchor::End, "strong", &label);
    }
    canvas.finish()
}

/// A part as a percentage with two digits that say something.
pub fn percent(part: f64) -> String {
    let value = 100.0 * part;
    let digits = if value >= 10.0 { 0 } else { (-value.log10().floor()).clamp(0.0, 6.0) as usize + 1 };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_read_well() {
        for (part, text) in
            [(1.0, "100 %"), (0.5, "50 %"), (0.0672, "6.7 %"), (0.05, "5 %"), (0.00123, "0.12 %")]
        {
            assert_eq!(percent(part), text);
        }
    }

    #[test]
    fn any_history_can_be_drawn() {
        for misfits in [&[][..], &[0.0], &[3.0], &[4.0, 1.0], &[5.0, 1e-30, 0.0]] {
            let svg = draw("misfit", misfits);
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{misfits:?}");
        }
    }
}
