//! The plan as a picture: the schedule as the field draws it, and what memory buys.

mod curve;
mod svg;
mod timeline;

use super::outcome::{Outcome, Request};
use super::report::grouped;
use crate::size::Human;
use svg::{Anchor, Svg};

/// A picture, and what to tell the user about it.
pub struct Drawing {
    pub svg: String,
    pub note: String,
}

/// A rectangle of the picture.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// Draws the plan. `neighbours` are those with half and double the room.
pub fn draw(request: &Request, outcome: &Outcome, neighbours: &[Option<Outcome>; 2]) -> Drawing {
    let drawable = timeline::is_drawable(request, outcome);
    let mut svg = Svg::new(if drawable { 1240.0 } else { 800.0 }, 790.0);
    let kind = outcome.schedule.kind();
    svg.text(60.0, 52.0, Anchor::Start, "title", &format!("{kind}, {} steps", grouped(request.steps.into())));
    svg.text(60.0, 78.0, Anchor::Start, "subtitle", &subtitle(outcome));
    let curve_frame = if drawable {
        timeline::draw(
            &mut svg,
            Frame { left: 78.0, top: 160.0, width: 640.0, height: 560.0 },
            request,
            outcome,
        );
        Frame { left: 836.0, top: 160.0, width: 344.0, height: 360.0 }
    } else {
        Frame { left: 92.0, top: 160.0, width: 640.0, height: 500.0 }
    };
    curve::draw(&mut svg, curve_frame, request, outcome, neighbours);
    if drawable {
        timeline::legend(&mut svg, 836.0, 614.0, outcome);
    } else {
        svg.text(
            92.0,
            750.0,
            Anchor::Start,
            "label",
            "The schedule itself has too many actions to be drawn.",
        );
    }
    let note = if drawable {
        "The picture shows the schedule and the curve of recomputation against memory."
    } else {
        "The picture shows the curve alone: the schedule has too many actions to be drawn."
    };
    Drawing { svg: svg.finish(), note: note.to_string() }
}

/// The schedule alone, for a narrow page; `None` if it has too many actions to be told apart.
pub fn draw_schedule(request: &Request, outcome: &Outcome) -> Option<String> {
    timeline::is_drawable(request, outcome).then(|| {
        let mut svg = Svg::new(560.0, 640.0);
        let frame = Frame { left: 56.0, top: 52.0, width: 440.0, height: 440.0 };
        timeline::draw(&mut svg, frame, request, outcome);
        timeline::legend(&mut svg, 56.0, 548.0, outcome);
        svg.finish()
    })
}

/// The curve of recomputation against memory alone, for a narrow page.
pub fn draw_curve(request: &Request, outcome: &Outcome, neighbours: &[Option<Outcome>; 2]) -> String {
    let mut svg = Svg::new(560.0, 460.0);
    let frame = Frame { left: 56.0, top: 60.0, width: 460.0, height: 320.0 };
    curve::draw(&mut svg, frame, request, outcome, neighbours);
    svg.finish()
}

fn subtitle(outcome: &Outcome) -> String {
    let totals = &outcome.totals;
    let mut text = match outcome.schedule.kind() {
        "store-all" => String::from("all tapes kept"),
        _ => format!("{} slots", grouped(outcome.slots as u128)),
    };
    if totals.disk.peak_slots > 0 {
        text += &format!(" in memory and {} on disk", grouped(totals.disk.peak_slots.into()));
    }
    if outcome.block > 1 && outcome.schedule.kind() != "store-all" {
        text += &format!(", blocks of {}", grouped(outcome.block.into()));
    }
    if let Some(bytes) = outcome.peak_bytes {
        text += &format!(", {} at most", Human(bytes));
    }
    text + &format!(
        ": {} advances, each step runs {:.3} times",
        grouped(totals.advances),
        totals.recompute_factor()
    )
}
