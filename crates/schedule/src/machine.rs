use std::collections::HashMap;
use std::fmt;

use crate::{Action, Slot, Tier, Totals};

/// How large a state and the tape of one step are, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// The bytes of one state.
    pub state: u64,
    /// The bytes of the tape of one step.
    pub tape: u64,
}

impl Sizes {
    /// The bytes of a number of states and of the tape of a number of steps.
    pub fn bytes(&self, states: u64, tape_steps: u64) -> u128 {
        u128::from(self.state) * u128::from(states) + u128::from(self.tape) * u128::from(tape_steps)
    }
}

/// What a schedule may not exceed. By default there is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// States in memory at one time.
    pub memory_slots: usize,
    /// States on disk at one time.
    pub disk_slots: usize,
    /// Steps whose tape is live at one time.
    pub tape_steps: u64,
    /// Bytes of states in memory and of tape at one time.
    pub bytes: u128,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_slots: usize::MAX, disk_slots: usize::MAX, tape_steps: u64::MAX, bytes: u128::MAX }
    }
}

/// An action that breaks the contract of [`Schedule`](crate::Schedule).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// How many actions were legal.
    pub position: u64,
    /// The action; `None` if the schedule stopped too early.
    pub action: Option<Action>,
    /// What is wrong with it.
    pub why: &'static str,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Some(action) => write!(f, "action {} ({action}) is illegal: {}", self.position, self.why),
            None => write!(f, "the schedule stops after {} actions: {}", self.position, self.why),
        }
    }
}

impl std::error::Error for Illegal {}

/// A machine that carries out actions on nothing: it checks that they are legal and counts what they cost.
///
/// ```
/// use ebbtide_schedule::{Machine, Revolve};
///
/// let totals = Machine::new(10).run(Revolve::new(10, 3)?)?;
/// assert_eq!(totals.advances, 15);
/// assert_eq!(totals.memory.peak_slots, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    steps: u64,
    sizes: Sizes,
    limits: Limits,
    /// The state at hand.
    at: Option<u64>,
    slots: HashMap<Slot, u64>,
    full: [u64; 2],
    /// Recorded steps that are not reversed yet, as ranges in the order of recording.
    tape: Vec<(u64, u64)>,
    tape_steps: u64,
    /// Steps from here on are reversed.
    reversed: u64,
    turned: bool,
    actions: u64,
    totals: Totals,
    peak_bytes: u128,
}

impl Machine {
    /// A machine for a loop of `steps` steps, with the initial state at hand.
    pub fn new(steps: u64) -> Machine {
        Machine {
            steps,
            sizes: Sizes::default(),
            limits: Limits::default(),
            at: Some(0),
            slots: HashMap::new(),
            full: [0, 0],
            tape: Vec::new(),
            tape_steps: 0,
            reversed: steps,
            turned: false,
            actions: 0,
            totals: Totals::default(),
            peak_bytes: 0,
        }
    }

    /// A machine on which a run was interrupted: these states survive, no state is at hand, the turn is
    /// over and the steps from `reversed` on are reversed.
    pub fn interrupted(steps: u64, reversed: u64, survivors: &[(u64, Slot)]) -> Machine {
        let mut machine = Machine { at: None, reversed, turned: true, ..Machine::new(steps) };
        for &(step, slot) in survivors {
            machine.slots.insert(slot, step);
            machine.full[slot.tier as usize] += 1;
        }
        machine.note_peaks();
        machine
    }

    /// The same run, interrupted before its turn.
    pub fn before_turn(self) -> Machine {
        Machine { turned: false, ..self }
    }

    /// Sets the sizes, for [`peak_bytes`](Machine::peak_bytes) and the limit of bytes.
    pub fn sizes(self, sizes: Sizes) -> Machine {
        Machine { sizes, ..self }
    }

    /// Sets the limits.
    pub fn limits(self, limits: Limits) -> Machine {
        Machine { limits, ..self }
    }

    /// Carries out all actions and returns the totals.
    pub fn run(mut self, actions: impl IntoIterator<Item = Action>) -> Result<Totals, Illegal> {
        for action in actions {
            self.step(action)?;
        }
        self.finish()
    }

    /// Carries out one action.
    pub fn step(&mut self, action: Action) -> Result<(), Illegal> {
        let position = self.actions;
        self.apply(action)
            .and_then(|()| {
                self.note_peaks();
                self.check_limits()
            })
            .map_err(|why| Illegal { position, action: Some(action), why })?;
        self.actions += 1;
        Ok(())
    }

    /// The totals, if the work is complete.
    pub fn finish(&self) -> Result<Totals, Illegal> {
        let why = if self.reversed > 0 {
            "some steps are not reversed"
        } else if !self.turned {
            "there was no turn"
        } else if !self.slots.is_empty() {
            "some slots are not dropped"
        } else if !self.tape.is_empty() {
            "some tape is left"
        } else {
            return Ok(self.totals);
        };
        Err(Illegal { position: self.actions, action: None, why })
    }

    /// What was counted so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The most bytes of states in memory and of tape that were live at one time.
    pub fn peak_bytes(&self) -> u128 {
        self.peak_bytes
    }

    fn apply(&mut self, action: Action) -> Result<(), &'static str> {
        match action {
            Action::Advance { from, to } => {
                self.forward(from, to)?;
                self.totals.advances += u128::from(to - from);
            }
            Action::Record { from, to } => {
                self.forward(from, to)?;
                self.totals.records += u128::from(to - from);
                self.tape.push((from, to));
                self.tape_steps += to - from;
            }
            Action::Store { step, slot } => {
                if self.at != Some(step) {
                    return Err("the state at hand is another one");
                }
                if self.slots.insert(slot, step).is_some() {
                    return Err("the slot is full");
                }
                self.full[slot.tier as usize] += 1;
                self.totals.tier_mut(slot.tier).stores += 1;
            }
            Action::Load { step, slot } => {
                match self.slots.get(&slot) {
                    None => return Err("the slot is empty"),
                    Some(&held) if held != step => return Err("the slot holds another state"),
                    Some(_) => self.at = Some(step),
                }
                self.totals.tier_mut(slot.tier).loads += 1;
            }
            Action::Drop { slot } => {
                self.slots.remove(&slot).ok_or("the slot is empty")?;
                self.full[slot.tier as usize] -= 1;
            }
            Action::Reverse { from, to } => self.reverse(from, to)?,
            Action::Turn => {
                let taped_to_end = self.tape.last().is_some_and(|&(_, to)| to == self.steps);
                if self.turned {
                    return Err("there was a turn already");
                }
                if self.at != Some(self.steps) && !taped_to_end {
                    return Err("the forward sweep has not reached its end");
                }
                (self.turned, self.at) = (true, None);
            }
        }
        Ok(())
    }

    fn forward(&mut self, from: u64, to: u64) -> Result<(), &'static str> {
        if from >= to {
            return Err("the range is empty");
        }
        if self.at != Some(from) {
            return Err("the state at hand is another one");
        }
        // A step that is reversed already, or recorded and waiting, need not be run again.
        if to > self.reversed {
            return Err("it runs over steps that are reversed already, or past the end");
        }
        self.at = Some(to);
        Ok(())
    }

    fn reverse(&mut self, from: u64, to: u64) -> Result<(), &'static str> {
        if !self.turned {
            return Err("the turn has not come yet");
        }
        if to != self.reversed || from >= to {
            return Err("it does not continue the reversed steps downwards");
        }
        match self.tape.pop() {
            Some((first, last)) if last == to && first <= from => {
                if first < from {
                    self.tape.push((first, from));
                }
            }
            _ => return Err("these steps are not on the tape"),
        }
        self.tape_steps -= to - from;
        (self.reversed, self.at) = (from, None);
        self.totals.reversals += u128::from(to - from);
        Ok(())
    }

    fn note_peaks(&mut self) {
        for tier in [Tier::Memory, Tier::Disk] {
            let full = self.full[tier as usize];
            let traffic = self.totals.tier_mut(tier);
            traffic.peak_slots = traffic.peak_slots.max(full);
        }
        self.totals.peak_tape = self.totals.peak_tape.max(self.tape_steps);
        let bytes = self.sizes.bytes(self.full[Tier::Memory as usize], self.tape_steps);
        self.peak_bytes = self.peak_bytes.max(bytes);
    }

    fn check_limits(&self) -> Result<(), &'static str> {
        if self.full[Tier::Memory as usize] > self.limits.memory_slots as u64 {
            return Err("there are not so many slots in memory");
        }
        if self.full[Tier::Disk as usize] > self.limits.disk_slots as u64 {
            return Err("there are not so many slots on disk");
        }
        if self.tape_steps > self.limits.tape_steps {
            return Err("the tape is longer than its limit");
        }
        if self.peak_bytes > self.limits.bytes {
            return Err("there are not so many bytes");
        }
        Ok(())
    }
}
