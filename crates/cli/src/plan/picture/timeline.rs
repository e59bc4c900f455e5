//! The schedule as the field draws it: step number across, time down, slots as vertical lines.

use std::collections::HashMap;

use ebbtide_schedule::{Action, Slot, Tier};

use super::Frame;
use super::svg::{Anchor, Svg, ticks};
use crate::plan::outcome::{Outcome, Request};
use crate::plan::report::grouped;

/// More blocks, or more time, cannot be told apart.
const MOST_BLOCKS: u64 = 400;
const MOST_TIME: u128 = 4000;

pub fn is_drawable(request: &Request, outcome: &Outcome) -> bool {
    let (totals, block) = (&outcome.totals, outcome.block.max(1));
    let time = totals.executions() + totals.reversals;
    (1..=MOST_BLOCKS).contains(&request.steps.div_ceil(block)) && time <= MOST_TIME * u128::from(block)
}

/// What is drawn, from back to front.
#[derive(Default)]
struct Layers {
    kept: Vec<Line>,
    moves: Vec<Line>,
    dots: Vec<(&'static str, f64, f64)>,
    turn: Option<f64>,
}

/// A class, and two points in steps and time.
type Line = (&'static str, (f64, f64), (f64, f64));

pub fn draw(svg: &mut Svg, frame: Frame, request: &Request, outcome: &Outcome) {
    let (layers, time) = layers(request.actions(outcome));
    let (dx, dy) = (frame.width / request.steps as f64, frame.height / time.max(1.0));
    let place = |(step, time): (f64, f64)| (frame.left + step * dx, frame.top + time * dy);
    let bottom = frame.top + frame.height;
    let right = frame.left + frame.width;

    svg.text(frame.left, frame.top - 34.0, Anchor::Start, "heading", "The schedule");
    for tick in ticks(request.steps as f64, 8.0) {
        let x = frame.left + tick * dx;
        svg.line("grid", 1.0, (x, frame.top), (x, bottom));
        svg.text(x, frame.top - 8.0, Anchor::Middle, "label", &grouped(tick as u128));
    }
    for tick in ticks(time, 8.0) {
        let y = frame.top + tick * dy;
        svg.line("axis", 1.0, (frame.left - 5.0, y), (frame.left, y));
        svg.text(frame.left - 9.0, y + 4.0, Anchor::End, "label", &grouped(tick as u128));
    }
    svg.line("axis", 1.0, (frame.left, frame.top), (right, frame.top));
    svg.line("axis", 1.0, (frame.left, frame.top), (frame.left, bottom));
    svg.text(
        right,
        bottom + 22.0,
        Anchor::End,
        "label",
        "step across, time down (one step run or reversed = 1)",
    );

    // Thin where blocks are narrow, so that neighbours stay apart.
    let dx = dx * outcome.block.max(1) as f64;
    let width = (dx * 0.35).clamp(0.9, 2.6);
    for (class, from, to) in &layers.kept {
        svg.line(class, width, place(*from), place(*to));
    }
    for (class, from, to) in &layers.moves {
        let width = if *class == "advance" { width * 0.75 } else { width * 1.15 };
        svg.line(class, width, place(*from), place(*to));
    }
    for &(class, step, time) in &layers.dots {
        svg.circle(class, place((step, time)), (dx * 0.4).clamp(1.3, 3.2));
    }
    if let Some(time) = layers.turn {
        let y = frame.top + time * dy;
        svg.line("turn", 1.2, (frame.left, y), (right + 8.0, y));
        svg.text(right + 12.0, y + 4.0, Anchor::Start, "label", "turn");
    }
}

/// Goes through the actions and says what to draw, and how long it takes.
fn layers(actions: impl Iterator<Item = Action>) -> (Layers, f64) {
    let mut layers = Layers::default();
    let mut time = 0.0;
    let mut held: HashMap<Slot, (f64, f64)> = HashMap::new();
    let mut tape: Vec<(f64, f64, f64)> = Vec::new();
    for action in actions {
        match action {
            Action::Advance { from, to } | Action::Record { from, to } => {
                let (from, to) = (from as f64, to as f64);
                let end = time + to - from;
                if let Action::Record { .. } = action {
                    layers.moves.push(("record", (from, time), (to, end)));
                    tape.push((from, to, end));
                } else {
                    layers.moves.push(("advance", (from, time), (to, end)));
                }
                time = end;
            }
            Action::Reverse { from, to } => {
                let (from, to) = (from as f64, to as f64);
                // A tape that waited is drawn as a bar in the middle of its steps.
                if let Some((first, last, since)) = tape.pop().filter(|&(_, _, since)| since < time) {
                    let middle = (first + last) / 2.0;
                    layers.kept.push(("tape", (middle, since), (middle, time)));
                }
                layers.moves.push(("reverse", (to, time), (from, time + to - from)));
                time += to - from;
            }
            Action::Store { step, slot } => {
                held.insert(slot, (step as f64, time));
                layers.dots.push((class(slot, "store", "store-disk"), step as f64, time));
            }
            Action::Load { step, slot } => {
                layers.dots.push((class(slot, "load", "load-disk"), step as f64, time));
            }
            Action::Drop { slot } => {
                if let Some((step, since)) = held.remove(&slot) {
                    layers.kept.push((class(slot, "memory", "disk"), (step, since), (step, time)));
                }
            }
            Action::Turn => layers.turn = Some(time),
        }
    }
    (layers, time)
}

fn class(slot: Slot, memory: &'static str, disk: &'static str) -> &'static str {
    match slot.tier {
        Tier::Memory => memory,
        Tier::Disk => disk,
    }
}

/// What the lines and dots mean.
pub fn legend(svg: &mut Svg, left: f64, top: f64, outcome: &Outcome) {
    let mut entries = vec![
        ("advance", "advance: run, keep nothing"),
        ("record", "record: run, keep the tape"),
        ("reverse", "reverse: consume the tape"),
        ("memory", "a state held in memory, stored ● and loaded ○"),
    ];
    if outcome.totals.disk.stores > 0 {
        entries.push(("disk", "a state held on disk"));
    }
    if outcome.schedule.kind() == "mixed" {
        entries.push(("tape", "a tape held in a slot"));
    }
    for (i, (class, meaning)) in entries.into_iter().enumerate() {
        let y = top + 21.0 * i as f64;
        svg.line(class, 3.0, (left, y), (left + 26.0, y));
        svg.text(left + 36.0, y + 4.0, Anchor::Start, "label", meaning);
    }
}
