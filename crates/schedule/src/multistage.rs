use std::fmt;
use std::sync::Arc;

use crate::disk_plan::{DiskPlan, Prices};
use crate::disk_totals::Counter;
use crate::placement::{Placement, Room};
use crate::retreat::{Gap, Move, Retreat, Turn};
use crate::schedule::same_end;
use crate::text::{Fields, Writer, bad, number};
use crate::{Action, Error, Method, Options, Schedule, Shape, Tier, Totals, revolve};

/// A plan that costs at most so much over the optimum is not improved.
const GOOD_ENOUGH: f64 = 1.005;

/// The slots on disk and what it costs to use them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disk {
    /// States on disk at one time; `usize::MAX` if there is no limit.
    pub slots: usize,
    /// The cost of writing one state, in plain advances of one step.
    pub write_cost: f64,
    /// The cost of reading one state, in plain advances of one step.
    pub read_cost: f64,
}

/// Reverses `steps` steps with states in memory and on disk, with the least cost of advances, writes and reads.
///
/// The lower states are on disk, nearly evenly spaced; what lies between two of them is reversed in memory as Revolve
/// does. The plan is exact
///
/// - up to 16384 steps (one block fewer with a plain forward sweep), if the disk has a slot for every state that is
///   worth one, or if `steps² × slots on disk` is at most 2³⁰: that is 10000 steps with 10 slots, 4000 with 64;
/// - at any length with up to 16384 slots on a disk that costs nothing.
///
/// Otherwise it is periodic, as a rule within 2 % of the optimum: [`Multistage::method`] says which, and
/// [`Multistage::loss`] has the bound that is proven for this very plan, which is larger where few states with high costs
/// go to disk.
///
/// ```
/// use ebbtide_schedule::{Disk, Multistage};
///
/// let disk = Disk { slots: 100, write_cost: 5.0, read_cost: 5.0 };
/// let totals = Multistage::new(1000, 3, disk)?.totals();
/// assert!(totals.executions() < 4 * 1000); // with memory alone 13155
/// # Ok::<(), ebbtide_schedule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Multistage {
    steps: u64,
    disk: Disk,
    method: Method,
    /// The steps between states on disk, where they were given.
    period: Option<u64>,
    /// The most that an approximate plan costs, all executions counted, over the least; where it is known.
    loss: Option<f64>,
    plan: Arc<Placement>,
    retreat: Retreat,
}

impl Multistage {
    /// Blocks of one step, the last one recorded on the way. `slots` are those in memory.
    pub fn new(steps: u64, slots: usize, disk: Disk) -> Result<Multistage, Error> {
        Multistage::with(steps, slots, disk, Options::new())
    }

    /// With a block size and a shape.
    pub fn with(steps: u64, slots: usize, disk: Disk, options: Options) -> Result<Multistage, Error> {
        match Multistage::exact(steps, slots, disk, options)? {
            Some(plan) => Ok(plan),
            None => Multistage::periodic(steps, slots, disk, options),
        }
    }

    /// Periodic whatever the length: planned in a time that hardly grows with it.
    pub fn periodic(steps: u64, slots: usize, disk: Disk, options: Options) -> Result<Multistage, Error> {
        let (room, retreat) = Multistage::room(steps, slots, disk, options)?;
        let with = |plan| Multistage {
            steps,
            disk,
            method: Method::Approximate,
            period: None,
            loss: None,
            plan: Arc::new(plan),
            retreat: retreat.clone(),
        };
        let ample = with(Placement::FirstSweep(DiskPlan::new(&room, Method::Approximate)));
        let unlimited = Multistage { disk: Disk { slots: usize::MAX, ..disk }, ..ample.clone() };
        let is_ample = unlimited.totals().disk.peak_slots <= disk.slots as u64;
        let least = ample.plan.bound(room.length);
        let mut best = ample.with_bound(least);
        if is_ample && least.is_some() {
            return Ok(best);
        }
        let tree = Placement::tree(room);
        let least = tree.as_ref().and_then(|plan| plan.bound(room.length)).or(least);
        // Few gaps are better placed by a table, whose states stand where the tree has none.
        let table = || Some(Placement::coarse_table(room));
        for plan in [&|| tree.clone(), &table as &dyn Fn() -> Option<Placement>] {
            let plan = plan().map(with).filter(|plan| plan.cost() < best.cost());
            best = plan.unwrap_or(best).with_bound(least);
            if best.loss.is_some_and(|loss| loss < GOOD_ENOUGH) {
                break;
            }
        }
        Ok(best)
    }

    /// A state on disk every `period` steps of the first sweep, as far as `disk_slots` go; what lies between two of them
    /// is reversed with the `slots` in memory, each state on disk being read once. For drivers that know what their
    /// disk costs better than two numbers say.
    ///
    /// A period shorter than a block means the block. With no slot in memory a period must be a block, and the disk
    /// must have a slot for every period.
    ///
    /// ```
    /// use ebbtide_schedule::{Multistage, Options};
    ///
    /// let totals = Multistage::spaced(1000, 50, 4, usize::MAX, Options::new().block(10))?.totals();
    /// assert_eq!((totals.disk.stores, totals.disk.loads), (19, 19));
    /// assert!(totals.executions() < 3 * 1000);
    /// # Ok::<(), ebbtide_schedule::Error>(())
    /// ```
    pub fn spaced(
        steps: u64,
        period: u64,
        slots: usize,
        disk_slots: usize,
        options: Options,
    ) -> Result<Multistage, Error> {
        let options = options.check(steps)?;
        if period == 0 {
            return Err(Error::ZeroLength { what: "period" });
        }
        let period = period.max(options.block);
        // A plain forward sweep must come to the end of the loop, which is a block before that of the plan.
        let tail = match options.shape {
            Shape::RecordLast => period,
            Shape::PrimalFirst => period.saturating_add(options.block - 1),
        };
        let periods = options.virtual_steps(steps).saturating_sub(tail).div_ceil(period);
        let longest = if periods > disk_slots as u64 { u64::MAX } else { tail };
        if slots == 0 && options.virtual_steps(steps) > options.block && longest > options.block {
            return Err(Error::TooFewSlots { slots, minimum: 1 });
        }
        let disk = Disk { slots: disk_slots, write_cost: 0.0, read_cost: 0.0 };
        let retreat = Retreat::forward(steps, slots, options).with_disk(disk_slots);
        let plan = DiskPlan::spaced(period, tail, slots, options.block);
        let plan = Arc::new(Placement::FirstSweep(plan));
        Ok(Multistage {
            steps,
            disk,
            method: Method::Approximate,
            period: Some(period),
            loss: None,
            plan,
            retreat,
        })
    }

    /// The exact plan, where it can be found in a bounded time.
    fn exact(steps: u64, slots: usize, disk: Disk, options: Options) -> Result<Option<Multistage>, Error> {
        let (room, retreat) = Multistage::room(steps, slots, disk, options)?;
        Ok(Placement::exact(room).map(|plan| Multistage {
            steps,
            disk,
            method: Method::Exact,
            period: None,
            loss: None,
            plan: Arc::new(plan),
            retreat,
        }))
    }

    /// What there is to plan, if it can be planned at all.
    fn room(steps: u64, slots: usize, disk: Disk, options: Options) -> Result<(Room, Retreat), Error> {
        let options = options.check(steps)?;
        for (what, cost) in [("write", disk.write_cost), ("read", disk.read_cost)] {
            if !(0.0..1e18).contains(&cost) {
                return Err(Error::BadCost { what });
            }
        }
        let (length, block) = (options.virtual_steps(steps), options.block);
        if slots == 0 && disk.slots == 0 && length > block {
            return Err(Error::TooFewSlots { slots, minimum: 1 });
        }
        let prices = Prices { write: disk.write_cost, read: disk.read_cost };
        let room = Room { length, memory_slots: slots, disk_slots: disk.slots, block, prices };
        Ok((room, Retreat::forward(steps, slots, options).with_disk(disk.slots)))
    }

    /// With the least cost of any plan but for records.
    fn with_bound(self, least: Option<f64>) -> Multistage {
        let loss = least.map(|least| (self.cost() / (least + self.steps as f64)).max(1.0));
        Multistage { loss, ..self }
    }

    /// All executions, writes and reads, in plain advances.
    fn cost(&self) -> f64 {
        let totals = self.totals();
        let moved =
            totals.disk.stores as f64 * self.disk.write_cost + totals.disk.loads as f64 * self.disk.read_cost;
        totals.executions() as f64 + moved
    }

    /// How the schedule was planned.
    pub fn method(&self) -> Method {
        self.method
    }

    /// How much the schedule costs at most over the cheapest one, all executions, writes and reads counted: 1 for
    /// an exact plan, a proven bound for an approximate one, `None` where none is known.
    pub fn loss(&self) -> Option<f64> {
        if self.method == Method::Exact { Some(1.0) } else { self.loss }
    }

    /// What the whole schedule costs. By formula.
    pub fn totals(&self) -> Totals {
        let (options, slots) = (self.retreat.options(), self.retreat.slots());
        let mut counter = Counter::new(&self.plan, slots, options);
        let mut totals = Totals::default();
        let (mut from, mut free) = (0, self.disk.slots);
        let (mut below, mut peak) = (0, 0);
        while let Some((length, times)) = self.first_advances(options.virtual_steps(self.steps - from), free)
        {
            let mut gap = counter.on_disk(length, free);
            // The last of these gaps has the most states below it.
            below += times;
            peak = peak.max(below - 1 + gap.disk.peak_slots.max(1));
            gap.advances += u128::from(length);
            gap.disk.stores += 1;
            gap.disk.loads += 1;
            totals.add(&gap.times(times));
            (from, free) = (from + length * times, free - times as usize);
        }
        totals.add(&revolve::totals(self.steps - from, slots, options).unwrap_or_default());
        totals.disk.peak_slots = peak;
        totals
    }

    /// How far the first sweep advances from a state that it writes, and how many such gaps follow each other; `None`
    /// if the rest is done in memory.
    fn first_advances(&self, length: u64, free: usize) -> Option<(u64, u64)> {
        match &*self.plan {
            Placement::FirstSweep(plan) => plan.first_advances(length, free),
            plan if length <= self.retreat.options().block || !plan.writes(length, free, true) => None,
            plan => plan.first_advance(length, free).map(|distance| (distance, 1)),
        }
    }

    /// What the steps between two states on disk cost once the first is read.
    pub(crate) fn between(&self, period: u64) -> Totals {
        let (options, slots) = (self.retreat.options(), self.retreat.slots());
        Counter::new(&self.plan, slots, options).on_disk(period, 1)
    }

    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.field("steps", self.steps)?;
        out.field("write", self.disk.write_cost)?;
        out.field("read", self.disk.read_cost)?;
        match self.period {
            Some(period) => out.field("method", format_args!("spaced:{period}"))?,
            None => out.field("method", self.method)?,
        }
        self.retreat.write(out)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Multistage, Error> {
        let steps = fields.number("steps")?;
        let (write_cost, read_cost) = (fields.number("write")?, fields.number("read")?);
        let method = fields.text("method")?;
        let retreat = Retreat::read(fields, steps)?;
        let disk = Disk { slots: retreat.disk_slots(), write_cost, read_cost };
        let fresh = match method.strip_prefix("spaced:") {
            Some(period) => {
                let period = number(period, "method")?;
                Multistage::spaced(steps, period, retreat.slots(), disk.slots, retreat.options())?
            }
            None => Multistage::read_planned(number(method, "method")?, steps, disk, &retreat)?,
        };
        if fresh.retreat.options() != retreat.options() {
            return Err(bad("the block does not fit the steps"));
        }
        Ok(Multistage { retreat, ..fresh })
    }

    fn read_planned(method: Method, steps: u64, disk: Disk, retreat: &Retreat) -> Result<Multistage, Error> {
        let (slots, options) = (retreat.slots(), retreat.options());
        match method {
            Method::Approximate => Multistage::periodic(steps, slots, disk, options),
            Method::Exact => Multistage::exact(steps, slots, disk, options)?
                .ok_or_else(|| bad("there are too many steps for an exact plan")),
        }
    }

    fn decide(plan: &Placement, gap: &Gap) -> Move {
        let first_sweep = gap.turn == Turn::Ahead;
        let distance = match gap.base {
            None if !gap.in_memory && plan.writes(gap.length, gap.free_disk, first_sweep) => {
                return Move::Keep(Tier::Disk);
            }
            // The state has just been written, or read: its slot is one of those that the distance depends on.
            Some(Tier::Disk) if first_sweep => {
                plan.first_advance(gap.length, gap.free_disk.saturating_add(1))
            }
            Some(Tier::Disk) => plan.advance(gap.length, gap.free_disk.saturating_add(1)),
            _ => None,
        };
        distance.map_or_else(|| gap.revolve(), Move::Advance)
    }
}

impl Iterator for Multistage {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        let plan = &self.plan;
        self.retreat.next_action(|gap| Multistage::decide(plan, gap))
    }
}

impl Schedule for Multistage {
    fn steps(&self) -> Option<u64> {
        Some(self.steps)
    }

    fn end(&mut self, steps: u64) -> Result<(), Error> {
        same_end(self.steps, steps)
    }
}
