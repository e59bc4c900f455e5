//! What the last launch needed: most launches have the shapes of the one before, and to go through a large program again
//! takes longer than to run it on small arrays.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Mutex, PoisonError};

use ebbtide_ir::{ArrayId, Literal, Op, Program, ScalarId, ValueId};

use crate::device::frame::{Extents, View};
use crate::error::Result;
use crate::gradient::given_data::GivenData;
use crate::gradient::planner::Need;

/// What has to be planned: the loops, and the bytes that every plan needs.
pub(super) type Needs = (Vec<Need>, u64);

/// What needs follow from: the shapes of arrays, their bytes, numbers, and what arrays hold that bound loops.
#[derive(PartialEq)]
struct Sizes {
    arrays: Vec<(Extents, usize)>,
    numbers: Vec<u64>,
    data: Vec<Vec<u8>>,
}

/// The needs of the last launch of one gradient program.
pub(crate) struct LastNeeds {
    /// The scalars that something is counted with. A factor that changes from launch to launch is none of them.
    counted_with: Vec<ScalarId>,
    /// The arrays that bounds of loops are read from.
    read: BTreeSet<ArrayId>,
    last: Mutex<Option<(Sizes, Needs)>>,
}

impl LastNeeds {
    pub fn of(program: &Program, read: BTreeSet<ArrayId>) -> LastNeeds {
        LastNeeds { counted_with: counted_with(program), read, last: Mutex::new(None) }
    }

    /// What was needed before says nothing any more.
    pub fn forget(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The needs of a launch with these arguments, computed where they are not those of the last one.
    pub fn remembered(
        &self,
        views: &[View],
        scalars: &[Literal],
        given: &GivenData<'_>,
        compute: impl FnOnce() -> Result<Needs>,
    ) -> Result<Needs> {
        let held = |array: &ArrayId| Ok(given.bytes(*array)?.into_owned());
        let sizes = Sizes {
            data: self.read.iter().map(held).collect::<Result<_>>()?,
            arrays: views.iter().map(|view| (view.shape, view.bytes)).collect(),
            numbers: self.counted_with.iter().map(|s| scalars[s.index()].bits()).collect(),
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, needs)) = &*last
            && *of == sizes
        {
            return Ok(needs.clone());
        }
        let needs = compute()?;
        *last = Some((sizes, needs.clone()));
        Ok(needs)
    }
}

/// The scalars that a number or a condition of the program is made of.
fn counted_with(program: &Program) -> Vec<ScalarId> {
    let counts = |v: &ValueId| !program.ty(*v).is_float();
    let mut work: Vec<ValueId> = (0..program.values.len()).map(ValueId::from_index).filter(counts).collect();
    let mut met: HashSet<ValueId> = work.iter().copied().collect();
    let mut scalars = Vec::new();
    while let Some(v) = work.pop() {
        if let Op::Scalar(s) = program.op(v) {
            scalars.push(*s);
        }
        work.extend(program.op(v).operands().filter(|operand| met.insert(*operand)));
    }
    scalars.sort_unstable();
    scalars.dedup();
    scalars
}

#[cfg(test)]
mod tests {
    use ebbtide_ir::parse;

    use super::*;

    /// A factor counts nothing; a bound, a number that is made of a float, what a condition asks, and what an array of bounds holds
    /// may.
    #[test]
    fn needs_are_those_of_the_last_launch_unless_a_number_that_counts_has_changed() {
        let source =
            "program p(u: &mut Array1<f64>, factor: f64, steps: usize, rough: f64, rows: &Array1<i32>) {
            for t in 0..steps {
                for i in par(0..(rough as i64) as usize) {
                    u[i] = u[i] * factor;
                }
            }
        }";
        let program = parse(source).unwrap();
        let last = LastNeeds::of(&program, program.find_array("rows").into_iter().collect());
        let device = crate::interpreter();
        let computed = |n: usize, (f, steps, rough): (f64, usize, f64), rows: &mut [u8]| {
            let views = [
                View::new(std::ptr::null_mut(), &[n], 8 * n),
                View::new(rows.as_mut_ptr(), &[rows.len() / 4], rows.len()),
            ];
            let scalars = [Literal::from(f), Literal::from(steps), Literal::from(rough)];
            let given = GivenData::new(&program, (&views, &scalars), &device);
            let mut computed = false;
            let needs = || {
                computed = true;
                Ok((Vec::new(), 0))
            };
            last.remembered(&views, &scalars, &given, needs).unwrap();
            computed
        };
        let (mut rows, mut others) = ([0; 8], [0, 0, 0, 0, 1, 0, 0, 0]);
        assert!(computed(4, (0.5, 3, 4.0), &mut rows));
        assert!(!computed(4, (0.25, 3, 4.0), &mut rows));
        assert!(computed(4, (0.25, 2, 4.0), &mut rows));
        assert!(computed(4, (0.25, 2, 3.0), &mut rows));
        assert!(computed(5, (0.25, 2, 3.0), &mut rows));
        assert!(!computed(5, (0.5, 2, 3.0), &mut rows));
        assert!(computed(5, (0.5, 2, 3.0), &mut others));
        assert!(!computed(5, (0.5, 2, 3.0), &mut others));
    }
}
