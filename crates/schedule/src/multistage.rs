use std::fmt;
use std::sync::Arc;

use crate::disk_plan::{DiskPlan, Prices, REACH};
use crate::retreat::{Gap, Move, Retreat, Turn};
use crate::schedule::same_end;
use crate::text::{Fields, Writer, bad, number};
use crate::{Action, Error, Method, Options, Schedule, Shape, Tier, Totals, revolve};

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
/// Disk states are written on the first sweep, nearly evenly; what lies between two of them is reversed in
/// memory as Revolve does. Exact by dynamic programming up to 16384 steps (one block fewer with a plain forward
/// sweep); beyond that periodic, within 2 % of the optimum: [`Multistage::method`] says which.
///
/// If there are too few slots on disk, the exact optimum is the one among plans that write on the first sweep
/// alone, and the periodic plan spreads the slots evenly, with no promise of how close that comes.
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
    plan: Arc<DiskPlan>,
    retreat: Retreat,
}

impl Multistage {
    /// Blocks of one step, the last one recorded on the way. `slots` are those in memory.
    pub fn new(steps: u64, slots: usize, disk: Disk) -> Result<Multistage, Error> {
        Multistage::with(steps, slots, disk, Options::new())
    }

    /// With a block size and a shape.
    pub fn with(steps: u64, slots: usize, disk: Disk, options: Options) -> Result<Multistage, Error> {
        let exact = options.check(steps)?.virtual_steps(steps) <= REACH;
        let method = if exact { Method::Exact } else { Method::Approximate };
        Multistage::by(method, steps, slots, disk, options)
    }

    /// Periodic whatever the length: planned in a time that does not grow with it.
    pub fn periodic(steps: u64, slots: usize, disk: Disk, options: Options) -> Result<Multistage, Error> {
        Multistage::by(Method::Approximate, steps, slots, disk, options)
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
        let plan = Arc::new(DiskPlan::spaced(period, tail, slots, options.block));
        Ok(Multistage { steps, disk, method: Method::Approximate, period: Some(period), plan, retreat })
    }

    fn by(
        method: Method,
        steps: u64,
        slots: usize,
        disk: Disk,
        options: Options,
    ) -> Result<Multistage, Error> {
        let options = options.check(steps)?;
        for (what, cost) in [("write", disk.write_cost), ("read", disk.read_cost)] {
            if !(0.0..1e18).contains(&cost) {
                return Err(Error::BadCost { what });
            }
        }
        if slots == 0 && disk.slots == 0 && options.virtual_steps(steps) > options.block {
            return Err(Error::TooFewSlots { slots, minimum: 1 });
        }
        let retreat = Retreat::forward(steps, slots, options).with_disk(disk.slots);
        let prices = Prices { write: disk.write_cost, read: disk.read_cost };
        let length = options.virtual_steps(steps);
        let plan = Arc::new(DiskPlan::new(length, slots, disk.slots, options.block, prices, method));
        Ok(Multistage { steps, disk, method, period: None, plan, retreat })
    }

    /// How the schedule was planned.
    pub fn method(&self) -> Method {
        self.method
    }

    /// What the whole schedule costs. By formula.
    pub fn totals(&self) -> Totals {
        let (options, slots) = (self.retreat.options(), self.retreat.slots());
        let recorded = options.shape(Shape::RecordLast);
        let mut totals = Totals::default();
        let (mut from, mut free) = (0, self.disk.slots);
        while let Some((length, times)) =
            self.plan.first_advances(options.virtual_steps(self.steps - from), free)
        {
            let mut gap = self.gap_totals(length, slots, recorded);
            gap.advances += u128::from(length);
            gap.disk.stores += 1;
            gap.disk.loads += 1;
            totals.add(&gap.times(times));
            totals.disk.peak_slots += times;
            (from, free) = (from + length * times, free - times as usize);
        }
        totals.add(&revolve::totals(self.steps - from, slots, options).unwrap_or_default());
        totals
    }

    /// What the steps between two states on disk cost once the first is read.
    pub(crate) fn between(&self, period: u64) -> Totals {
        self.gap_totals(period, self.retreat.slots(), self.retreat.options().shape(Shape::RecordLast))
    }

    /// What a gap costs once its first state is read from disk.
    fn gap_totals(&self, length: u64, slots: usize, options: Options) -> Totals {
        let (mut totals, mut length) = (Totals::default(), length);
        while let Some(distance) = self.plan.next_advance(length) {
            totals.advances += u128::from(distance);
            totals.disk.loads += 1;
            totals.add(&revolve::totals(length - distance, slots, options).unwrap_or_default());
            length = distance;
        }
        totals.add(&revolve::totals(length, slots, options).unwrap_or_default());
        totals
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
        if method == Method::Exact && retreat.options().virtual_steps(steps) > REACH {
            return Err(bad("there are too many steps for an exact plan"));
        }
        Multistage::by(method, steps, retreat.slots(), disk, retreat.options())
    }

    fn decide(plan: &DiskPlan, gap: &Gap) -> Move {
        let first_sweep = gap.turn == Turn::Ahead && !gap.in_memory;
        match gap.base {
            None if first_sweep && plan.first_advance(gap.length, gap.free_disk).is_some() => {
                Move::Keep(Tier::Disk)
            }
            // The state has just been written: its slot was free when the distance was decided.
            Some(Tier::Disk) if first_sweep => {
                match plan.first_advance(gap.length, gap.free_disk.saturating_add(1)) {
                    Some(distance) => Move::Advance(distance),
                    None => gap.revolve(),
                }
            }
            Some(Tier::Disk) => match plan.next_advance(gap.length) {
                Some(distance) => Move::Advance(distance),
                None => gap.revolve(),
            },
            _ => gap.revolve(),
        }
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
