//! What a gradient program needs and does: bytes of states and tapes, and work of iterations.

use std::collections::BTreeSet;

use ebbtide_autodiff::Pushes;
use ebbtide_ir::parts::has_collectives;
use ebbtide_ir::{self as ir, ArrayId, Block, Length, Literal, Loop, LoopId, LoopKind, Role, Stmt, ValueId};

use crate::device::frame::View;
use crate::device::frame::extents::{extents, from_arguments};
use crate::error::{Error, Result};
use crate::gradient::compile::Variant;
use crate::gradient::counts::{Known, Nest};
use crate::gradient::given_data::GivenData;
use crate::gradient::last_needs::Needs;
use crate::gradient::planner::Need;
use crate::gradient::steps::{Step, Sweep};

/// Iterations that are assumed of an inner loop whose number of iterations is data.
const UNKNOWN_ITERATIONS: f64 = 100.0;

impl Variant {
    /// What has to be planned: the loops, and the bytes that every plan needs.
    pub fn needs(&self, views: &[View], scalars: &[Literal]) -> Result<Needs> {
        let data = GivenData::new(&self.program, (views, scalars), &self.device);
        self.last_needs.remembered(views, scalars, &data, || self.needs_from(views, scalars))
    }

    fn needs_from(&self, views: &[View], scalars: &[Literal]) -> Result<Needs> {
        let mut sizes = vec![0u64; self.program.arrays.len()];
        let mut fixed = 0;
        for id in self.program.array_ids() {
            let decl = self.program.array(id);
            sizes[id.index()] = match decl.role {
                Role::Temp(_) => {
                    let shape = extents(&self.program, id, views, scalars)?;
                    let bytes =
                        shape.iter().fold(decl.ty.size() as u64, |all, n| all.saturating_mul(*n as u64));
                    fixed = bytes.saturating_add(fixed);
                    bytes
                }
                // Elements are pushed.
                Role::Tape(_) => decl.ty.size() as u64,
                _ => views[id.index()].bytes as u64,
            };
        }
        for pushes in &self.pushes_outside {
            let bytes = sizes[pushes.array.index()].saturating_mul(self.times(pushes, views, scalars)?);
            fixed = bytes.saturating_add(fixed);
        }
        let value = |v| from_arguments(&self.program, v, views, scalars).map(|bits| bits as i64);
        let size = |array: ArrayId| self.program.array(array).ty.size() as u64;
        let elements = |array: ArrayId| sizes[array.index()] / size(array);
        let scratch = self.device.backend().scratch_bytes(&self.program, &self.facts, &value, &elements);
        fixed = fixed.saturating_add(scratch);
        fixed = self.undone.iter().fold(fixed, |all, a| all.saturating_add(sizes[a.index()]));
        for segment in self.reversing_segments(&self.steps.steps) {
            for pushes in &self.steps.pushes[segment] {
                let bytes = sizes[pushes.array.index()].saturating_mul(self.times(pushes, views, scalars)?);
                fixed = bytes.saturating_add(fixed);
            }
        }
        Ok((self.needs_of(&self.steps.steps, &sizes, views, scalars)?, fixed))
    }

    /// Segments of reverse sweeps; where one of them runs a region again, it has a tape of its own.
    fn reversing_segments(&self, steps: &[Step]) -> Vec<usize> {
        let mut segments = Vec::new();
        let mut work: Vec<(&Step, bool)> = steps.iter().map(|step| (step, false)).collect();
        while let Some((step, reversing)) = work.pop() {
            match step {
                Step::Run(segment) => segments.extend(reversing.then_some(*segment)),
                Step::Forward(_) | Step::Host(..) => {}
                Step::Backward(_, inner) => work.extend(inner.iter().map(|s| (s, true))),
                Step::For { body, .. } => work.extend(body.iter().map(|s| (s, reversing))),
                Step::If { then, otherwise, .. } => {
                    work.extend(then.iter().chain(otherwise).map(|s| (s, reversing)));
                }
            }
        }
        segments
    }

    /// The depth of recursion is that of nesting in the source.
    fn needs_of(
        &self,
        steps: &[Step],
        sizes: &[u64],
        views: &[View],
        scalars: &[Literal],
    ) -> Result<Vec<Need>> {
        let mut needs: Vec<Need> = Vec::new();
        for step in steps {
            match step {
                Step::Run(_) | Step::Host(..) => {}
                Step::Forward(sweep) => needs.push(self.need(sweep, sizes, views, scalars)?),
                Step::Backward(id, reverse) => {
                    let mut inner = self.needs_of(reverse, sizes, views, scalars)?;
                    inner.iter_mut().for_each(|need| need.reused = self.reused(*id, need.id, sizes));
                    if let Some(need) = needs.iter_mut().find(|need| need.id == *id) {
                        need.inner = inner;
                    }
                }
                Step::For { body, .. } => needs.extend(self.needs_of(body, sizes, views, scalars)?),
                Step::If { then, otherwise, .. } => {
                    needs.extend(self.needs_of(then, sizes, views, scalars)?);
                    needs.extend(self.needs_of(otherwise, sizes, views, scalars)?);
                }
            }
        }
        Ok(needs)
    }

    fn need(&self, sweep: &Sweep, sizes: &[u64], views: &[View], scalars: &[Literal]) -> Result<Need> {
        let steps = match sweep.length {
            Length::Unknown { .. } => None,
            Length::Known(from, to) => Some(self.iterations(from, to, views, scalars).unwrap_or(0)),
        };
        let (mut tape, mut tapes): (u64, u64) = (0, 0);
        let range = match sweep.length {
            Length::Unknown { .. } => None,
            Length::Known(from, to) => self.range(from, to, views, scalars),
        };
        let pushes = self.pushes.get(&sweep.id).map_or(&[][..], Vec::as_slice);
        for (array, count) in self.counts(pushes, range.unwrap_or((0, 0)), views, scalars)? {
            let bytes = sizes[array.index()];
            tape = tape.saturating_add(bytes.saturating_mul(count.most));
            tapes = tapes.saturating_add(bytes.saturating_mul(count.all));
        }
        let state = sweep.carried.iter().map(|a| sizes[a.index()]).sum();
        let mut work = 1.0;
        for stmt in &self.steps.segments[sweep.advance] {
            if let Stmt::Loop(Loop { body, .. }) = stmt {
                work = self.work(body, views, scalars);
            }
        }
        Ok(Need {
            id: sweep.id,
            steps,
            state,
            tape,
            tapes,
            work,
            hint: sweep.hint,
            reused: 0,
            inner: Vec::new(),
        })
    }

    /// What a loop pushes was pushed before it by the iteration around it, and has been popped when the loop is swept.
    fn reused(&self, outer: LoopId, inner: LoopId, sizes: &[u64]) -> u64 {
        let pushed =
            |id| self.pushes.get(&id).into_iter().flatten().map(|p| p.array).collect::<BTreeSet<_>>();
        pushed(outer).intersection(&pushed(inner)).map(|a| sizes[a.index()]).sum()
    }

    /// The work of a block: its own is 1, loops in it count with their iterations.
    fn work(&self, block: &Block, views: &[View], scalars: &[Literal]) -> f64 {
        let mut work = 1.0;
        for stmt in block {
            match stmt {
                Stmt::Par(_) => {}
                Stmt::Loop(l) => {
                    let iterations = match l.kind {
                        LoopKind::For { from, to, .. } => self.iterations(from, to, views, scalars),
                        _ => None,
                    };
                    let iterations = iterations.map_or(UNKNOWN_ITERATIONS, |n| n as f64);
                    work += iterations * self.work(&l.body, views, scalars);
                }
                _ => work += stmt.blocks().map(|b| self.work(b, views, scalars) - 1.0).sum::<f64>(),
            }
        }
        work
    }

    /// The number of iterations of a loop with these bounds, where it follows from the arguments. Bounds that cannot be
    /// computed (a division by zero) belong to a loop that is not reached, or fail where it is: it has no iterations.
    fn iterations(&self, from: ValueId, to: ValueId, views: &[View], scalars: &[Literal]) -> Option<u64> {
        self.range(from, to, views, scalars).map(|(from, to)| to.saturating_sub(from).max(0) as u64)
    }

    /// The bounds of a loop, where they follow from the arguments.
    fn range(&self, from: ValueId, to: ValueId, views: &[View], scalars: &[Literal]) -> Option<(i64, i64)> {
        let value = |v: ValueId| from_arguments(&self.program, v, views, scalars).map(|bits| bits as i64);
        let alone = |v: ValueId| ir::depends_on_arguments_alone(&self.program, v);
        match (value(from), value(to)) {
            (Some(from), Some(to)) => Some((from, to)),
            _ => (alone(from) && alone(to)).then_some((0, 0)),
        }
    }

    /// How often each push is made in these iterations. Pushes side by side are counted once: data are asked for each iteration.
    pub fn counts(
        &self,
        pushes: &[Pushes],
        (from, to): (i64, i64),
        views: &[View],
        scalars: &[Literal],
    ) -> Result<Vec<(ArrayId, Count)>> {
        let mut counts = Vec::new();
        let mut last: Option<(&Pushes, (Count, Counted))> = None;
        for pushes in pushes {
            let beside = last.filter(|(other, _)| {
                let of_elements = self.is_of_elements(other.array) == self.is_of_elements(pushes.array);
                of_elements && (other.counted, &other.within) == (pushes.counted, &pushes.within)
            });
            let (count, counted) = match beside {
                Some((_, count)) => count,
                None => self.count(pushes, (from, to), views, scalars)?,
            };
            last = Some((pushes, (count, counted)));
            counts.push((pushes.array, self.guessed(pushes.array, count, counted)?));
        }
        Ok(counts)
    }

    /// How often a push is made, or how often the loop around it begins whose iterations the run counts.
    fn count(
        &self,
        pushes: &Pushes,
        (from, to): (i64, i64),
        views: &[View],
        scalars: &[Literal],
    ) -> Result<(Count, Counted)> {
        // What the host may change in a run, or other parts hold otherwise, counts nothing beforehand.
        let given = self.hosted.is_empty() && !has_collectives(&self.program);
        let data = GivenData::new(&self.program, (views, scalars), &self.device);
        let look = |v: ValueId, variables: &[Option<ValueId>]| {
            Ok(match from_arguments(&self.program, v, views, scalars) {
                Some(bits) => Known::Number(bits as i64),
                None if ir::depends_on_arguments_alone(&self.program, v) => Known::Never,
                None if given => data.formula(v, variables)?.map_or(Known::No, Known::Data),
                None => Known::No,
            })
        };
        let nest = Nest::of(pushes, &self.facts.affines, &look)?;
        let known = nest.all(from, to).zip(nest.most(from, to));
        let (all, most) = known.ok_or_else(|| self.uncounted())?;
        let counted = match nest.is_open || self.is_of_elements(pushes.array) {
            true if given => Counted::Beginnings,
            true => return Err(self.uncounted()),
            false => Counted::Pushes,
        };
        Ok((Count { all, most }, counted))
    }

    /// Pushes, where beginnings of the loop around them are known. Elements alone are guessed: whole arrays take too much memory.
    fn guessed(&self, array: ArrayId, count: Count, counted: Counted) -> Result<Count> {
        if counted == Counted::Pushes {
            return Ok(count);
        }
        let guess = |beginnings| match self.program.array(array).rank == 0 || self.is_of_elements(array) {
            true => self.guesses.pushes(array, beginnings).ok_or_else(|| self.uncounted()),
            false => Err(self.uncounted()),
        };
        Ok(Count { all: guess(count.all)?, most: guess(count.most)? })
    }

    /// Is the array a tape of elements, of which only the run knows how many loops put there?
    fn is_of_elements(&self, array: ArrayId) -> bool {
        matches!(self.program.array(array).role, Role::Tape(_))
    }

    /// The arrays whose pushes have to be guessed in a launch with these arguments.
    pub fn guessed_arrays(&self, views: &[View], scalars: &[Literal]) -> Vec<ArrayId> {
        let loops = self.pushes.values().flatten().chain(&self.pushes_outside);
        let is_guessed = |pushes: &&Pushes| {
            self.count(pushes, (0, 1), views, scalars)
                .is_ok_and(|(_, counted)| counted == Counted::Beginnings)
        };
        let mut arrays: Vec<ArrayId> = loops.filter(is_guessed).map(|pushes| pushes.array).collect();
        arrays.sort_unstable();
        arrays.dedup();
        arrays
    }

    fn uncounted(&self) -> Error {
        self.internal("the number of iterations of an inner loop is data: its tape has no known size")
    }

    /// How often the push is made, where no loop with a variable is around its loops.
    pub fn times(&self, pushes: &Pushes, views: &[View], scalars: &[Literal]) -> Result<u64> {
        self.times_in(pushes, (0, 1), views, scalars)
    }

    /// How often the push is made in these iterations.
    pub fn times_in(
        &self,
        pushes: &Pushes,
        iterations: (i64, i64),
        views: &[View],
        scalars: &[Literal],
    ) -> Result<u64> {
        let (count, counted) = self.count(pushes, iterations, views, scalars)?;
        Ok(self.guessed(pushes.array, count, counted)?.all)
    }
}

/// How often a push is made.
#[derive(Clone, Copy)]
pub(crate) struct Count {
    /// In all iterations.
    pub all: u64,
    /// In any one of them, at most.
    most: u64,
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Pushes,
    /// How often the loop around the push begins whose iterations nobody can count.
    Beginnings,
}
