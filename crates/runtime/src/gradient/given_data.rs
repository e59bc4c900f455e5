//! Bounds of loops that are read from data: from arrays that a launch is given and does not change.
//!
//! - Input: a value of a gradient program, the variables of the loops around it, and the arguments of a launch.
//! - Output: a formula, which computes the value for any iteration of these loops.
//! - Invariant: what a formula computes is what the program computes there. Where that ends in a fault (an element that does not
//!   exist, a division by zero), it has no value: no loop with such a bound is reached.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ebbtide_autodiff::{InnerLoop, Pushes};
use ebbtide_ir::evaluate::{Bits, evaluate};
use ebbtide_ir::{Access, ArrayId, Literal, Op, Program, Role, ValueId};

use crate::device::Device;
use crate::device::frame::View;
use crate::device::frame::extents::from_arguments;
use crate::error::Result;

/// The elements of an array, as they are when a launch begins.
struct Elements<'a> {
    bytes: Cow<'a, [u8]>,
    size: usize,
    shape: Vec<i64>,
}

impl Elements<'_> {
    /// The bits of an element; `None` where there is none.
    fn at(&self, index: impl Iterator<Item = i64>) -> Option<Bits> {
        let mut place = 0;
        for (k, extent) in index.zip(&self.shape) {
            if !(0..*extent).contains(&k) {
                return None;
            }
            place = place * extent + k;
        }
        let first = usize::try_from(place).ok()?.checked_mul(self.size)?;
        let mut word = [0; 8];
        word[..self.size].copy_from_slice(self.bytes.get(first..first.checked_add(self.size)?)?);
        Some(Bits::from_le_bytes(word))
    }
}

/// What one step of a formula finds. Operands are earlier steps.
enum Step<'a> {
    Known(Bits),
    /// The variable of a loop around it, by level.
    Variable(usize),
    Element(Rc<Elements<'a>>, Vec<usize>),
    Operation(ValueId, Vec<(ValueId, usize)>),
}

/// A value as a function of the variables of loops.
pub(crate) struct Formula<'a> {
    program: &'a Program,
    steps: Vec<Step<'a>>,
    levels: BTreeSet<usize>,
}

impl std::fmt::Debug for Formula<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a formula of {} steps in {:?}", self.steps.len(), self.levels)
    }
}

impl Formula<'_> {
    /// Does it depend on the variable of this level?
    pub fn uses(&self, level: usize) -> bool {
        self.levels.contains(&level)
    }

    /// The value for these variables.
    pub fn at(&self, variables: &[i128]) -> Option<i128> {
        let mut found: Vec<Bits> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let bits = match step {
                Step::Known(bits) => *bits,
                Step::Variable(level) => i64::try_from(variables[*level]).ok()? as Bits,
                Step::Element(elements, index) => elements.at(index.iter().map(|k| found[*k] as i64))?,
                Step::Operation(v, operands) => {
                    let operand = |v: ValueId| {
                        operands.iter().find(|(operand, _)| *operand == v).map_or(0, |(_, k)| found[*k])
                    };
                    evaluate(self.program, *v, operand)?.ok()?
                }
            };
            found.push(bits);
        }
        found.last().map(|bits| i128::from(*bits as i64))
    }
}

/// What a launch is given, to be read before it begins.
pub(crate) struct GivenData<'a> {
    program: &'a Program,
    views: &'a [View],
    scalars: &'a [Literal],
    device: &'a Device,
}

impl<'a> GivenData<'a> {
    pub fn new(
        program: &'a Program,
        (views, scalars): (&'a [View], &'a [Literal]),
        device: &'a Device,
    ) -> GivenData<'a> {
        GivenData { program, views, scalars, device }
    }

    /// A value as a formula of these variables, by level; `None` where it is made of anything else that the run computes.
    pub fn formula(&self, value: ValueId, variables: &[Option<ValueId>]) -> Result<Option<Formula<'a>>> {
        let mut places: BTreeMap<ValueId, usize> = BTreeMap::new();
        let mut arrays: BTreeMap<ArrayId, Rc<Elements<'a>>> = BTreeMap::new();
        let mut formula = Formula { program: self.program, steps: Vec::new(), levels: BTreeSet::new() };
        let mut work = vec![value];
        while let Some(v) = work.last().copied() {
            if places.contains_key(&v) {
                work.pop();
                continue;
            }
            let level = variables.iter().position(|variable| *variable == Some(v));
            let step = if let Some(level) = level {
                formula.levels.insert(level);
                Step::Variable(level)
            } else if let Some(bits) = from_arguments(self.program, v, self.views, self.scalars) {
                Step::Known(bits)
            } else {
                let op = self.program.op(v);
                if matches!(op, Op::LoopVar | Op::Get(_) | Op::Dim(..) | Op::Scalar(_)) {
                    return Ok(None);
                }
                let missing: Vec<ValueId> = op.operands().filter(|o| !places.contains_key(o)).collect();
                if !missing.is_empty() {
                    work.extend(missing);
                    continue;
                }
                match op {
                    Op::Load(array, index) => {
                        if !is_given(self.program, *array) {
                            return Ok(None);
                        }
                        if !arrays.contains_key(array) {
                            arrays.insert(*array, Rc::new(self.elements(*array)?));
                        }
                        let index = index.as_slice().iter().map(|k| places[k]).collect();
                        Step::Element(arrays[array].clone(), index)
                    }
                    op => Step::Operation(v, op.operands().map(|o| (o, places[&o])).collect()),
                }
            };
            places.insert(v, formula.steps.len());
            formula.steps.push(step);
            work.pop();
        }
        Ok(Some(formula))
    }

    fn elements(&self, array: ArrayId) -> Result<Elements<'a>> {
        let decl = self.program.array(array);
        let shape = self.views[array.index()].shape[..decl.rank].to_vec();
        Ok(Elements { bytes: self.bytes(array)?, size: decl.ty.size(), shape })
    }

    /// What an array holds that is given.
    pub fn bytes(&self, array: ArrayId) -> Result<Cow<'a, [u8]>> {
        let view = self.views[array.index()];
        if view.bytes == 0 || view.address.is_null() {
            return Ok(Cow::Borrowed(&[]));
        }
        match self.device.backend().memory() {
            Some(memory) => {
                let mut bytes = vec![0; view.bytes];
                // SAFETY (*Bounds*): a view's memory is borrowed by the launch and has `bytes` bytes.
                unsafe { memory.download(view.address, &mut bytes)? };
                Ok(Cow::Owned(bytes))
            }
            // SAFETY (*Liveness*, *Bounds*): as above; nothing writes an array that the launch only borrows.
            None => Ok(Cow::Borrowed(unsafe { std::slice::from_raw_parts(view.address, view.bytes) })),
        }
    }
}

/// Does the array hold throughout a launch what the launch was given?
fn is_given(program: &Program, array: ArrayId) -> bool {
    matches!(program.array(array).role, Role::Param(Access::Read))
}

/// The arrays that the bounds of loops around pushes are read from.
pub(crate) fn arrays_that_count<'p>(
    program: &Program,
    pushes: impl Iterator<Item = &'p Pushes>,
) -> BTreeSet<ArrayId> {
    let mut work: Vec<ValueId> = Vec::new();
    for around in pushes.flat_map(|pushes| &pushes.within) {
        if let InnerLoop::Counted(l) = around {
            work.extend([l.from, l.to]);
        }
    }
    let (mut met, mut arrays) = (BTreeSet::new(), BTreeSet::new());
    while let Some(v) = work.pop() {
        if !met.insert(v) {
            continue;
        }
        if let Op::Load(array, _) = program.op(v)
            && is_given(program, *array)
        {
            arrays.insert(*array);
        }
        work.extend(program.op(v).operands());
    }
    arrays
}
