//! The checkpoint schedule of the gradient as a picture, with the pen of `ebbtide plan`.

use ebbtide_schedule::{AnySchedule, Method, Options, Revolve, Sizes, StoreAll};

use crate::plan::outcome::{Outcome, Request, Share};
use crate::plan::picture;

/// The schedule and the curve of recomputation against memory.
pub struct Pictures {
    pub schedule: Option<String>,
    pub curve: String,
}

/// Draws the one loop of a plan; `None` if the plan has several, or a schedule of another kind.
pub fn draw(plan: &ebbtide::Plan) -> Option<Pictures> {
    let [one] = &plan.loops[..] else { return None };
    let (totals, block) = (one.totals, one.totals.peak_tape);
    let slots = usize::try_from(totals.memory.peak_slots).ok()?;
    let schedule: AnySchedule = match one.schedule {
        "revolve" => Revolve::with(one.steps?, slots, Options::new().block(block)).ok()?.into(),
        "store-all" => StoreAll::new(one.steps?).ok()?.into(),
        _ => return None,
    };
    // The plan tells what its schedule does, not the schedule itself: only the very same may be drawn.
    if schedule.totals()? != totals {
        return None;
    }
    let memory = plan.budget.unwrap_or(plan.store_all_bytes).saturating_sub(plan.fixed_bytes);
    let sizes = Sizes { state: one.state_bytes, tape: one.tape_bytes };
    let request = Request::of_loop(one.steps?, sizes, memory);
    let peak_bytes = Some(one.peak_bytes.into());
    let outcome = Outcome { schedule, slots, block, totals, method: Method::Exact, loss: None, peak_bytes };
    let neighbours = [Share::Half, Share::Double].map(|share| request.plan(share).ok());
    Some(Pictures {
        schedule: picture::draw_schedule(&request, &outcome),
        curve: picture::draw_curve(&request, &outcome, &neighbours),
    })
}
