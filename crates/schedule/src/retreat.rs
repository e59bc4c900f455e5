//! The retreat: what all schedules that keep states have in common.
//!
//! There is a stack of held states, the last one nearest to the steps that are reversed already. The steps
//! between a state and the reversed ones are a *gap*. A gap of at most one block is recorded and reversed; a
//! longer one is advanced into, and the state reached is held too if a slot is free. How far to advance is
//! what tells one schedule from another.

use std::fmt;

use crate::pool::Pool;
use crate::text::{Fields, Writer, bad, number};
use crate::{Action, Error, MAX_STEPS, Options, Shape, Slot, Tier, revolve};

/// A state in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub step: u64,
    pub slot: Slot,
}

/// What the driver has at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The state before this step.
    At(u64),
    /// The tape of the steps from this one to the reversed ones.
    Taped(u64),
    /// Nothing: a state must be loaded.
    Empty,
}

/// Whether the forward sweep is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Ahead,
    Done,
}

/// The steps from the state at hand to the reversed ones: more than one block.
pub(crate) struct Gap {
    pub from: u64,
    pub turn: Turn,
    /// The number of steps, plus a block if a plain forward sweep has yet to reach its end.
    pub length: u64,
    /// Where the state at hand is held, if it is.
    pub base: Option<Tier>,
    /// The free slots.
    pub free_memory: usize,
    pub free_disk: usize,
    /// Whether any state below is held in memory.
    pub in_memory: bool,
    pub block: u64,
}

/// What to do with a gap.
pub(crate) enum Move {
    /// Keep the state at hand.
    Keep(Tier),
    /// Go so many steps into the gap.
    Advance(u64),
}

impl Gap {
    /// Keeps the state in memory if there is room, then advances as is optimal for the slots in memory.
    pub fn revolve(&self) -> Move {
        self.in_memory_by(|slots| {
            revolve::split_with_fewest_stores(self.length, slots, self.block)
                .unwrap_or(self.length - self.block)
        })
    }

    /// Keeps the state in memory if there is room, then advances as far as `advance` says for the slots
    /// that the gap has, the one of its first state included.
    pub fn in_memory_by(&self, advance: impl FnOnce(usize) -> u64) -> Move {
        let own = match self.base {
            Some(Tier::Memory) => 1,
            _ if self.free_memory > 0 => return Move::Keep(Tier::Memory),
            // With no slot for this state, the one below it is all that the gap has.
            _ => 1,
        };
        Move::Advance(advance(self.free_memory.saturating_add(own)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Retreat {
    options: Options,
    /// Steps from here on are reversed, or do not exist.
    end: u64,
    turn: Turn,
    phase: Phase,
    held: Vec<Held>,
    pool: Pool,
    disk: Pool,
}

impl Retreat {
    /// Starts with the state before step 0 at hand and nothing held.
    pub fn forward(steps: u64, slots: usize, options: Options) -> Retreat {
        Retreat::resume(steps, Turn::Ahead, Phase::At(0), Vec::new(), Pool::new(slots), options)
    }

    /// Starts anywhere. `held` is in the order of steps; its memory slots are taken from `pool`.
    pub fn resume(
        end: u64,
        turn: Turn,
        phase: Phase,
        held: Vec<Held>,
        pool: Pool,
        options: Options,
    ) -> Retreat {
        Retreat { options, end, turn, phase, held, pool, disk: Pool::new(0) }
    }

    /// With slots on disk that are still free.
    pub fn with_disk(self, slots: usize) -> Retreat {
        Retreat { disk: Pool::new(slots), ..self }
    }

    pub fn disk_slots(&self) -> usize {
        self.disk.limit()
    }

    pub fn options(&self) -> Options {
        self.options
    }

    pub fn slots(&self) -> usize {
        self.pool.limit()
    }

    /// The next action, where `decide` says what to do with a gap that is longer than a block.
    pub fn next_action(&mut self, decide: impl Fn(&Gap) -> Move) -> Option<Action> {
        match self.phase {
            Phase::At(step) if step >= self.end => match self.turn {
                Turn::Ahead => {
                    (self.turn, self.phase) = (Turn::Done, Phase::Empty);
                    Some(Action::Turn)
                }
                Turn::Done => self.load_or_drop(),
            },
            Phase::At(step) => Some(self.enter(step, decide)),
            Phase::Taped(_) if self.turn == Turn::Ahead => {
                self.turn = Turn::Done;
                Some(Action::Turn)
            }
            Phase::Taped(from) => {
                let to = std::mem::replace(&mut self.end, from);
                self.phase = Phase::Empty;
                Some(Action::Reverse { from, to })
            }
            Phase::Empty => self.load_or_drop(),
        }
    }

    /// Continues from the state before `step`, which is at hand.
    fn enter(&mut self, step: u64, decide: impl Fn(&Gap) -> Move) -> Action {
        let length = self.gap_length(step);
        if length <= self.options.block {
            self.phase = Phase::Taped(step);
            return Action::Record { from: step, to: self.end };
        }
        let gap = Gap {
            from: step,
            turn: self.turn,
            length,
            base: self.held.last().filter(|held| held.step == step).map(|held| held.slot.tier),
            free_memory: self.pool.free(),
            free_disk: self.disk.free(),
            in_memory: self.held.last().is_some_and(|held| held.slot.tier == Tier::Memory),
            block: self.options.block,
        };
        let distance = match decide(&gap) {
            Move::Keep(tier) => match self.pool_of(tier).take() {
                Some(index) => {
                    let slot = Slot { tier, index };
                    self.held.push(Held { step, slot });
                    return Action::Store { step, slot };
                }
                None => length - self.options.block,
            },
            Move::Advance(distance) => distance,
        };
        let to = step + distance.clamp(1, self.end - step);
        self.phase = Phase::At(to);
        Action::Advance { from: step, to }
    }

    fn pool_of(&mut self, tier: Tier) -> &mut Pool {
        match tier {
            Tier::Memory => &mut self.pool,
            Tier::Disk => &mut self.disk,
        }
    }

    /// The steps from the state before `step` to the reversed ones. A plain forward sweep ends where a
    /// recorded last block would start, so it is as if one more block followed.
    fn gap_length(&self, step: u64) -> u64 {
        match (self.turn, self.options.shape) {
            (Turn::Ahead, Shape::PrimalFirst) if self.end > 0 => self.end - step + self.options.block,
            _ => self.end - step,
        }
    }

    fn load_or_drop(&mut self) -> Option<Action> {
        let Held { step, slot } = *self.held.last()?;
        if step < self.end || self.turn == Turn::Ahead {
            self.phase = Phase::At(step);
            return Some(Action::Load { step, slot });
        }
        self.held.pop();
        if slot.tier == Tier::Memory || self.disk.limit() > 0 {
            self.pool_of(slot.tier).give_back(slot.index);
        }
        self.phase = Phase::Empty;
        Some(Action::Drop { slot })
    }

    pub fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.field("block", self.options.block)?;
        out.field("shape", self.options.shape)?;
        self.pool.write(out)?;
        self.disk.write(out)?;
        out.field("end", self.end)?;
        out.field("turn", if self.turn == Turn::Ahead { "ahead" } else { "done" })?;
        match self.phase {
            Phase::At(step) => out.field("phase", format_args!("at:{step}"))?,
            Phase::Taped(step) => out.field("phase", format_args!("taped:{step}"))?,
            Phase::Empty => out.field("phase", "empty")?,
        }
        out.list("held", &self.held)
    }

    /// Reads what `write` has written, for a loop of `steps` steps.
    pub fn read(fields: &mut Fields<'_>, steps: u64) -> Result<Retreat, Error> {
        let options = Options { block: fields.number("block")?, shape: fields.number("shape")? };
        if steps > MAX_STEPS || options.check(steps)? != options {
            return Err(bad("the block does not fit the steps"));
        }
        let pool = Pool::read(fields)?;
        let disk = Pool::read(fields)?;
        let end: u64 = fields.number("end")?;
        let turn = match fields.text("turn")? {
            "ahead" => Turn::Ahead,
            "done" => Turn::Done,
            _ => return Err(bad("the turn is neither ahead nor done")),
        };
        let phase = match fields.text("phase")?.split_once(':') {
            Some(("at", step)) => Phase::At(number(step, "phase")?),
            Some(("taped", step)) => Phase::Taped(number(step, "phase")?),
            None => Phase::Empty,
            Some(_) => return Err(bad("the phase is unknown")),
        };
        let held = fields.list("held", Held::read)?;
        let retreat = Retreat { options, end, turn, phase, held, pool, disk };
        retreat.check(steps)?;
        Ok(retreat)
    }

    /// Whether the retreat can continue to its end from here.
    pub fn check(&self, steps: u64) -> Result<(), Error> {
        let sound = self.end <= steps
            && (self.turn == Turn::Done || self.end == steps)
            && self.held.is_sorted_by(Held::may_lie_below)
            && self.held.last().is_none_or(|last| last.step <= steps);
        if !sound {
            return Err(bad("the positions contradict each other"));
        }
        let indices = |tier| {
            self.held
                .iter()
                .map(|held| held.slot)
                .filter(move |slot| slot.tier == tier)
                .map(|slot| slot.index)
        };
        self.pool.check(indices(Tier::Memory).collect())?;
        if self.disk.limit() > 0 {
            self.disk.check(indices(Tier::Disk).collect())?;
        } else if has_duplicates(indices(Tier::Disk).collect()) {
            return Err(bad("two states share a slot"));
        }
        let last = self.held.last().map_or(0, |held| held.step);
        let at_hand = match self.phase {
            Phase::At(step) => (last..=self.end).contains(&step),
            Phase::Taped(step) => (last..self.end).contains(&step) && self.end - step <= self.options.block,
            Phase::Empty => self.turn == Turn::Done || !self.held.is_empty(),
        };
        // Below the state or tape at hand there must be a way down to step 0.
        let lowest = match self.phase {
            Phase::At(step) | Phase::Taped(step) => step,
            Phase::Empty => self.end,
        };
        let grounded = lowest == 0 || self.held.first().is_some_and(|held| held.step == 0);
        let needs_slot = self.phase == Phase::At(0) && self.gap_length(0) > self.options.block;
        let fits = !needs_slot || !self.held.is_empty() || self.pool.free() > 0 || self.disk.free() > 0;
        if at_hand && grounded && fits {
            Ok(())
        } else {
            Err(bad("the steps below cannot be reached from it"))
        }
    }
}

fn has_duplicates(mut indices: Vec<usize>) -> bool {
    indices.sort_unstable();
    indices.windows(2).any(|pair| pair[0] == pair[1])
}

impl Held {
    /// A state on disk may have a copy in memory, which is used first.
    fn may_lie_below(&self, other: &Held) -> bool {
        let copy = (self.slot.tier, other.slot.tier) == (Tier::Disk, Tier::Memory);
        self.step < other.step || (self.step == other.step && copy)
    }

    fn read(text: &str) -> Result<Held, Error> {
        let (step, place) = text.split_once('@').ok_or_else(|| bad("a held state has no slot"))?;
        let tier = match place.get(..1) {
            Some("m") => Tier::Memory,
            Some("d") => Tier::Disk,
            _ => return Err(bad("a held state has no tier")),
        };
        Ok(Held { step: number(step, "held")?, slot: Slot { tier, index: number(&place[1..], "held")? } })
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tier = match self.slot.tier {
            Tier::Memory => 'm',
            Tier::Disk => 'd',
        };
        write!(f, "{}@{tier}{}", self.step, self.slot.index)
    }
}
