//! From the command line to a schedule and its totals.

use ebbtide_schedule::*;

use super::{Args, Kind};
use crate::Failure;

/// An online schedule has no formula: it is walked, up to this many blocks.
const MOST_WALKED: u64 = 2_000_000;

/// What was asked for.
pub struct Request {
    pub steps: u64,
    pub sizes: Option<Sizes>,
    pub options: Options,
    pub block: Option<u64>,
    room: Room,
    kind: Kind,
    pub disk: Option<Disk>,
}

/// The room that was offered.
#[derive(Clone, Copy)]
enum Room {
    Slots(usize),
    Memory(u64),
}

/// How much of the offered room to plan for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Share {
    Half,
    Whole,
    Double,
}

/// A planned schedule.
pub struct Outcome {
    pub schedule: AnySchedule,
    pub slots: usize,
    pub block: u64,
    pub totals: Totals,
    pub method: Method,
    /// What an approximate plan costs at most over the optimum, where that is known.
    pub loss: Option<f64>,
    /// `None` if the sizes are not known.
    pub peak_bytes: Option<u128>,
}

impl Request {
    pub fn new(args: &Args) -> Result<Request, Failure> {
        let usage = |why: &str| Err(Failure::Usage(why.to_string()));
        let room = match (args.slots, args.memory) {
            (Some(slots), None) => Room::Slots(slots),
            (None, Some(memory)) => Room::Memory(memory.0),
            _ => return usage("give either --slots or --memory"),
        };
        let disk = args.disk_slots.map(|slots| Disk {
            slots,
            write_cost: args.write_cost,
            read_cost: args.read_cost,
        });
        let kind = match (args.schedule, &disk, room) {
            (Kind::Auto, Some(_), _) => Kind::Multistage,
            (Kind::Auto, None, Room::Slots(_)) => Kind::Revolve,
            (Kind::Auto, None, Room::Memory(_)) if args.block.is_some() => Kind::Revolve,
            (Kind::Multistage, None, _) => return usage("a multistage schedule needs --disk-slots"),
            (Kind::Multistage, Some(_), _) => Kind::Multistage,
            (_, Some(_), _) => return usage("--disk-slots is for the multistage schedule"),
            (kind, None, _) => kind,
        };
        if kind == Kind::Periodic && args.block.is_some() {
            return usage("a periodic schedule records a period at once: it takes no --block");
        }
        let sizes = args
            .state_bytes
            .map(|state| Sizes { state: state.0, tape: args.tape_bytes.map_or(state.0, |tape| tape.0) });
        let shape = if args.primal_first { Shape::PrimalFirst } else { Shape::RecordLast };
        let options = Options::new().block(args.block.unwrap_or(1)).shape(shape);
        if args.block == Some(0) {
            return usage("--block must be at least 1");
        }
        Ok(Request { steps: args.steps, sizes, options, block: args.block, room, kind, disk })
    }

    /// For a schedule that was planned elsewhere, so that it can be drawn.
    pub fn of_loop(steps: u64, sizes: Sizes, memory: u64) -> Request {
        Request {
            steps,
            sizes: Some(sizes),
            options: Options::new(),
            block: None,
            room: Room::Memory(memory),
            kind: Kind::Auto,
            disk: None,
        }
    }

    /// Plans for a share of the room.
    pub fn plan(&self, share: Share) -> Result<Outcome, Failure> {
        match (self.room, self.kind) {
            (Room::Memory(memory), Kind::Auto) => self.cheapest(scaled(memory, share)),
            (Room::Memory(memory), _) => self.with_slots(self.slots_in(scaled(memory, share))?),
            (Room::Slots(slots), _) => {
                let slots = scaled(slots as u64, share);
                self.with_slots(usize::try_from(slots).unwrap_or(usize::MAX))
            }
        }
    }

    fn cheapest(&self, budget: u64) -> Result<Outcome, Failure> {
        let sizes = self.sizes.unwrap_or_default();
        let shape = if self.is_primal_first() { Shape::PrimalFirst } else { Shape::RecordLast };
        let plan = best_plan(&Problem { shape, ..Problem::new(self.steps, sizes) }, budget)?.plan;
        Ok(Outcome {
            schedule: plan.schedule()?,
            slots: plan.slots,
            block: plan.block(),
            totals: plan.totals,
            method: Method::Exact,
            loss: None,
            peak_bytes: Some(plan.peak_bytes),
        })
    }

    /// The slots that fit a number of bytes beside the tape of a block.
    fn slots_in(&self, memory: u64) -> Result<usize, Failure> {
        let sizes = self.sizes.unwrap_or_default();
        let block = self.block.unwrap_or(1).min(self.steps.max(1));
        let tape = sizes.bytes(0, block);
        let slot = match self.kind {
            Kind::Mixed => u128::from(sizes.state).max(tape),
            _ => sizes.state.into(),
        };
        if self.kind == Kind::Periodic {
            return self.periodic_slots_in(memory, &sizes);
        }
        let left = u128::from(memory).checked_sub(tape);
        let slots = left.map(|left| left.checked_div(slot).unwrap_or(u128::MAX)).unwrap_or(0);
        let enough = slots > 0 || (left.is_some() && self.steps <= block && !self.is_primal_first());
        if !enough && self.steps > 0 {
            return Err(Error::BudgetTooSmall { budget: memory, minimum: slot + tape }.into());
        }
        Ok(usize::try_from(slots.min(self.steps.into())).unwrap_or(usize::MAX))
    }

    /// The most states whose period still fits beside them.
    fn periodic_slots_in(&self, memory: u64, sizes: &Sizes) -> Result<usize, Failure> {
        let bytes = |slots: u64| sizes.bytes(slots, self.steps.div_ceil(slots.max(1)));
        // The bytes fall and then rise with the slots: around the least, √(n·tape/state), look for the most.
        let least = (self.steps as f64 * sizes.tape as f64 / (sizes.state as f64).max(1.0)).sqrt();
        let least = (least as u64).clamp(1, self.steps.max(1));
        if bytes(least) > memory.into() {
            return Err(Error::BudgetTooSmall { budget: memory, minimum: bytes(least) }.into());
        }
        let (mut fits, mut too_many) = (least, self.steps.max(1) + 1);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if bytes(middle) <= memory.into() { fits = middle } else { too_many = middle }
        }
        Ok(usize::try_from(fits).unwrap_or(usize::MAX))
    }

    fn with_slots(&self, slots: usize) -> Result<Outcome, Failure> {
        let (steps, options) = (self.steps, self.options);
        let (mut method, mut loss) = (Method::Exact, None);
        let schedule: AnySchedule = match self.kind {
            Kind::Auto | Kind::Revolve => Revolve::with(steps, slots, options)?.into(),
            Kind::Mixed => {
                let schedule = Mixed::with(steps, slots, options)?;
                method = schedule.method();
                schedule.into()
            }
            Kind::Multistage => {
                let disk = self.disk.ok_or_else(|| Failure::Usage("no --disk-slots".into()))?;
                let schedule = Multistage::with(steps, slots, disk, options)?;
                (method, loss) = (schedule.method(), schedule.loss());
                schedule.into()
            }
            Kind::Periodic => {
                if slots == 0 {
                    return Err(Error::TooFewSlots { slots, minimum: 1 }.into());
                }
                let period = steps.div_ceil(slots as u64).max(1);
                Periodic::with(steps, period, options.block(period))?.into()
            }
            Kind::Online => {
                method = Method::Approximate;
                Online::with(slots, options)?.into()
            }
        };
        let totals = match schedule.totals() {
            Some(totals) => totals,
            None => self.walk(schedule.clone())?,
        };
        let block = match self.kind {
            Kind::Periodic => steps.div_ceil(slots.max(1) as u64).max(1),
            _ => self.block.unwrap_or(1),
        };
        let peak_bytes = self.sizes.map(|sizes| match self.kind {
            Kind::Mixed => {
                let block = block.min(steps);
                let room = u128::from(sizes.state).max(sizes.bytes(0, block));
                room * (slots as u64).min(steps.div_ceil(block.max(1))) as u128 + sizes.bytes(0, block)
            }
            _ => sizes.bytes(totals.memory.peak_slots, totals.peak_tape),
        });
        Ok(Outcome { schedule, slots, block, totals, method, loss, peak_bytes })
    }

    /// Carries out a schedule that has no formula on the abstract machine.
    fn walk(&self, schedule: AnySchedule) -> Result<Totals, Failure> {
        if self.steps / self.block.unwrap_or(1) > MOST_WALKED {
            return Err(Failure::Other(format!(
                "an online schedule has no formula and is walked block by block: at most {MOST_WALKED} blocks \
                 (take a larger --block, or --schedule revolve, which costs a few per cent less)"
            )));
        }
        Ok(Machine::new(self.steps).run(Walk { schedule, steps: self.steps })?)
    }

    /// All actions of a schedule, those of an online one up to its end included.
    pub fn actions(&self, outcome: &Outcome) -> impl Iterator<Item = Action> {
        Walk { schedule: outcome.schedule.clone(), steps: self.steps }
    }

    pub fn is_primal_first(&self) -> bool {
        self.options == self.options.primal_first()
    }
}

/// Drives a schedule that may be online: tells it the end when the loop comes there.
struct Walk {
    schedule: AnySchedule,
    steps: u64,
}

impl Iterator for Walk {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        if self.schedule.steps().is_none() && self.steps == 0 {
            self.schedule.end(0).ok()?;
        }
        let action = self.schedule.next()?;
        match action {
            Action::Advance { from, to } if self.schedule.steps().is_none() && to >= self.steps => {
                self.schedule.end(self.steps).ok()?;
                Some(Action::Advance { from, to: self.steps })
            }
            action => Some(action),
        }
    }
}

fn scaled(amount: u64, share: Share) -> u64 {
    match share {
        Share::Half => amount / 2,
        Share::Whole => amount,
        Share::Double => amount.saturating_mul(2),
    }
}
