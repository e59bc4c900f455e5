//! What memory buys: runs of each step against slots, or against bytes where the sizes are known.

use ebbtide_schedule::{Sizes, revolve};

use super::Frame;
use super::svg::{Anchor, Svg};
use crate::plan::outcome::{Outcome, Request};
use crate::plan::report::grouped;
use crate::size::Human;

/// Logarithmic axes.
struct Axes {
    frame: Frame,
    x: (f64, f64),
    y: (f64, f64),
}

impl Axes {
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let part = |value: f64, (low, high): (f64, f64)| {
            ((value.max(low) / low).ln() / (high / low).ln().max(1e-9)).clamp(0.0, 1.0)
        };
        (
            self.frame.left + self.frame.width * part(x, self.x),
            self.frame.top + self.frame.height * (1.0 - part(y, self.y)),
        )
    }
}

/// Where an outcome lies: its slots or bytes, and its runs of each step.
fn position(sizes: Option<Sizes>, outcome: &Outcome) -> (f64, f64) {
    let totals = &outcome.totals;
    let room = match (sizes, outcome.peak_bytes) {
        (Some(_), Some(bytes)) => bytes as f64,
        _ => totals.records.min(outcome.slots as u128) as f64,
    };
    (room.max(1.0), totals.recompute_factor())
}

pub fn draw(
    svg: &mut Svg,
    frame: Frame,
    request: &Request,
    outcome: &Outcome,
    neighbours: &[Option<Outcome>; 2],
) {
    svg.text(frame.left, frame.top - 34.0, Anchor::Start, "heading", "What memory buys");
    svg.text(frame.left, frame.top - 14.0, Anchor::Start, "label", "runs of each step");
    let curve = optimum(request, outcome);
    let here = position(request.sizes, outcome);
    let others: Vec<(f64, f64)> = neighbours.iter().flatten().map(|n| position(request.sizes, n)).collect();
    let axes = axes(frame, &curve, here, &others);
    grid(svg, &axes, request.sizes);

    let visible: Vec<(f64, f64)> =
        curve.iter().filter(|(_, y)| *y <= axes.y.1).map(|&(x, y)| axes.place(x, y)).collect();
    if let (Some(first), Some(last)) = (visible.first(), visible.last()) {
        let bottom = frame.top + frame.height;
        let mut area = visible.clone();
        area.extend([(last.0, bottom), (first.0, bottom)]);
        svg.path("under", &area);
        svg.path("curve", &visible);
    }
    for &(x, y) in &others {
        svg.circle("neighbour", axes.place(x, y), 4.5);
    }
    let (x, y) = axes.place(here.0, here.1);
    svg.circle("point", (x, y), 7.0);
    let label = format!("this plan: {:.3}", here.1);
    // Off the falling curve: above it to the right, or below it if the plan does better than the curve.
    let below = curve.iter().take_while(|p| p.0 <= here.0).last().is_some_and(|p| here.1 < p.1 * 0.98);
    let rightmost = x > frame.left + frame.width * 0.78;
    let (anchor, dx) = if rightmost { (Anchor::End, -4.0) } else { (Anchor::Start, 12.0) };
    let (anchor, dx, dy) = if below { (Anchor::Middle, 0.0, 30.0) } else { (anchor, dx, -14.0) };
    let dx = if below { (frame.left + 56.0 - x).max(0.0) } else { dx };
    svg.text(x + dx, (y + dy).max(frame.top + 14.0), anchor, "strong halo", &label);
    svg.text(
        frame.left,
        frame.top + frame.height + 58.0,
        Anchor::Start,
        "label",
        "curve: the optimum (Revolve); ○ half and double the room",
    );
}

/// The least runs of each step for every amount of room, by formula.
fn optimum(request: &Request, outcome: &Outcome) -> Vec<(f64, f64)> {
    match request.sizes {
        Some(sizes) => optimum_in_bytes(request, outcome, sizes),
        None => optimum_in_slots(request, outcome.block),
    }
}

fn optimum_in_slots(request: &Request, block: u64) -> Vec<(f64, f64)> {
    let slots = std::iter::successors(Some(1_u64), |slots| Some(slots + (slots / 12).max(1)));
    slots
        .take_while(|&slots| slots <= request.steps.max(1))
        .filter_map(|slots| Some((slots as f64, runs(request, slots, block)?)))
        .collect()
}

/// With the best block for each number of bytes, unless one was asked for.
fn optimum_in_bytes(request: &Request, outcome: &Outcome, sizes: Sizes) -> Vec<(f64, f64)> {
    let blocks: Vec<u64> = match request.block {
        Some(block) => vec![block.min(request.steps.max(1))],
        None => std::iter::successors(Some(1_u64), |block| Some(block + (block / 8).max(1)))
            .take_while(|&block| block <= request.steps.max(1))
            .collect(),
    };
    let least_runs = |bytes: f64| {
        let runs = blocks.iter().filter_map(|&block| {
            let slots = (bytes - sizes.bytes(0, block) as f64) / (sizes.state as f64).max(1.0);
            let all = !request.is_primal_first() && bytes >= sizes.bytes(0, request.steps) as f64;
            if all { Some(1.0) } else { runs(request, (slots >= 1.0).then_some(slots as u64)?, block) }
        });
        runs.fold(f64::INFINITY, f64::min)
    };
    let here = outcome.peak_bytes.unwrap_or(0) as f64;
    let most = (here * 8.0).min(sizes.bytes(1, request.steps) as f64).max(here * 2.0);
    let first = (sizes.bytes(1, 1) as f64).max(1.0);
    std::iter::successors(Some(first), |bytes| Some(bytes * 1.03))
        .take_while(|&bytes| bytes <= most)
        .map(|bytes| (bytes, least_runs(bytes)))
        .filter(|(_, runs)| runs.is_finite())
        .collect()
}

/// The runs of each step with Revolve.
fn runs(request: &Request, slots: u64, block: u64) -> Option<f64> {
    let steps = request.steps.max(1);
    let virtual_steps = if request.is_primal_first() { steps + block } else { steps };
    let slots = usize::try_from(slots).unwrap_or(usize::MAX);
    let advances = revolve::advances_in_blocks(virtual_steps, slots, block)?;
    Some(1.0 + advances as f64 / steps as f64)
}

fn axes(frame: Frame, curve: &[(f64, f64)], here: (f64, f64), others: &[(f64, f64)]) -> Axes {
    // Nobody works on the steep part: show it up to twice the plan, or twelve runs.
    let top = (others.iter().map(|p| p.1).fold(here.1, f64::max) * 1.6).max(12.0);
    let shown = curve.iter().filter(|(_, y)| *y <= top);
    let rooms = || shown.clone().map(|p| p.0).chain([here.0]).chain(others.iter().map(|p| p.0));
    let (low, high) = (rooms().fold(f64::INFINITY, f64::min), rooms().fold(0.0, f64::max));
    Axes { frame, x: (low, high.max(low * 2.0)), y: (1.0, top) }
}

fn grid(svg: &mut Svg, axes: &Axes, sizes: Option<Sizes>) {
    let frame = axes.frame;
    let (right, bottom) = (frame.left + frame.width, frame.top + frame.height);
    let mut last = f64::INFINITY;
    for decade in [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8] {
        for factor in [1.0, 1.5, 2.0, 3.0, 5.0, 7.0] {
            let value = decade * factor;
            let (_, y) = axes.place(axes.x.0, value);
            if value <= axes.y.1 && last - y > 24.0 {
                svg.line("grid", 1.0, (frame.left, y), (right, y));
                svg.text(frame.left - 8.0, y + 4.0, Anchor::End, "label", &format!("{value}"));
                last = y;
            }
        }
    }
    let base: f64 = if sizes.is_some() { 2.0 } else { 10.0 };
    let mut last = f64::NEG_INFINITY;
    let first = axes.x.0.log(base).floor().max(0.0) as i32;
    for exponent in first..=(axes.x.1.log(base).ceil() as i32) {
        for factor in if sizes.is_some() { &[1.0][..] } else { &[1.0, 2.0, 5.0][..] } {
            let value = factor * base.powi(exponent);
            let (x, _) = axes.place(value, 1.0);
            if value >= axes.x.0 * 0.999 && value <= axes.x.1 * 1.001 && x - last > 58.0 {
                svg.line("grid", 1.0, (x, frame.top), (x, bottom));
                let label = match sizes {
                    Some(_) => Human(value as u128).to_string(),
                    None => grouped(value as u128),
                };
                svg.text(x, bottom + 18.0, Anchor::Middle, "label", &label);
                last = x;
            }
        }
    }
    svg.line("axis", 1.0, (frame.left, frame.top), (frame.left, bottom));
    svg.line("axis", 1.0, (frame.left, bottom), (right, bottom));
    let name = if sizes.is_some() { "memory for states and tape" } else { "slots" };
    svg.text(right, bottom + 36.0, Anchor::End, "label", name);
}
