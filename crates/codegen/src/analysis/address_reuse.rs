//! Elements near to each other.
//!
//! Where an iteration without checks touches elements whose indices differ by constants, it computes the address of one of
//! them, and the others are so many elements away: neighbours in a row cost nothing, those in other rows an addition. The
//! one is touched under no condition, or it is the iteration's own and the loop runs over all of the array, so that its address is
//! one of an element.

use ebbtide_ir::{Affines, ArrayId, Block, Indices, Op, Par, Program, Role, Stmt, ValueId, is_zero, walk};

use crate::analysis::boundary_conditions::FarFromBoundaries;

/// The elements whose addresses the iterations being printed know.
#[derive(Debug, Default)]
pub(crate) struct KnownAddresses {
    pub known: Vec<Known>,
    /// The variable that is one greater in the next of the iterations side by side, where nothing else differs.
    pub row: Option<ValueId>,
}

/// An element whose address is known.
#[derive(Debug)]
pub(crate) struct Known {
    pub array: ArrayId,
    /// By dimension.
    pub index: Vec<Place>,
    /// The number of its address.
    pub number: usize,
    /// Of which of the iterations side by side.
    pub side: usize,
}

/// An index that is a variable, if any, and a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub variable: Option<ValueId>,
    pub constant: i64,
}

/// Constants are not further from zero.
const FAR: i64 = 1 << 20;

impl KnownAddresses {
    /// Nothing is known, of the iterations of this loop.
    pub fn of(par: &Par) -> KnownAddresses {
        KnownAddresses { known: Vec::new(), row: Some(par.ranges[0].var).filter(|_| par.ranges.len() == 2) }
    }

    /// An element of this array whose index differs by constants.
    pub fn find(&self, array: ArrayId, index: &[Place], side: usize) -> Option<&Known> {
        self.known.iter().find(|known| {
            known.array == array
                && (known.side == side || self.row.is_some())
                && known.index.iter().zip(index).all(|(a, b)| a.variable == b.variable)
        })
    }

    /// The number of an address, and how far away this element is from it, by dimension.
    pub fn away(&self, array: ArrayId, index: &[Place], side: usize) -> Option<(usize, Vec<i64>)> {
        let known = self.find(array, index, side)?;
        let rows = side as i64 - known.side as i64;
        let away = index.iter().zip(&known.index).map(|(to, from)| {
            let further = if to.variable.is_some() && to.variable == self.row { rows } else { 0 };
            to.constant - from.constant + further
        });
        Some((known.number, away.collect()))
    }
}

/// May the address of this element be computed before the iteration, whose loop has these variables?
pub(crate) fn is_own(par: &Par, index: &[Place]) -> bool {
    let mut variables = index.iter().filter_map(|place| place.variable).peekable();
    variables.peek().is_some() && variables.all(|v| par.ranges.iter().any(|r| r.var == v))
}

/// What iterations touch under no condition but those that are decided.
pub(crate) fn always_touched(
    program: &Program,
    decided: &FarFromBoundaries,
    body: &Block,
) -> Vec<(ArrayId, Indices)> {
    let mut touched = Vec::new();
    let mut blocks = vec![body];
    while let Some(block) = blocks.pop() {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    if let Op::Load(array, index) = *program.op(*v) {
                        touched.push((array, index));
                    }
                }
                Stmt::Store(s) | Stmt::Update(_, s) => touched.push((s.array, s.index)),
                Stmt::If(branch) => {
                    blocks.extend(decided.get(&branch.condition).map(|holds| branch_arm(branch, *holds)))
                }
                _ => {}
            }
        }
    }
    touched
}

/// The elements of the iterations themselves, where a loop runs over all of an array: they exist, whatever touches them.
pub(crate) fn own_elements(program: &Program, affines: &Affines, par: &Par) -> Vec<(ArrayId, Indices)> {
    let mut own = Vec::new();
    // A temporary has the extents that it was declared with, whatever it was exchanged for since.
    let declared = |array: ArrayId, k: usize| match &program.array(array).role {
        Role::Temp(shape) => shape.get(k).map(|extent| affines.form(*extent)),
        _ => None,
    };
    let is_extent = |array: ArrayId, k: usize, v: ValueId| match affines
        .form(v)
        .as_atom()
        .map(|atom| *program.op(atom))
    {
        Some(Op::Dim(of, d)) if d as usize == k => {
            affines.same_shape(array, of)
                || declared(array, k).is_some_and(|extent| declared(of, k) == Some(extent))
        }
        _ => declared(array, k) == Some(affines.form(v)),
    };
    let runs_over = |array: ArrayId| {
        par.ranges.len() == program.array(array).rank
            && (par.ranges.iter().enumerate())
                .all(|(k, range)| is_zero(program, range.from) && is_extent(array, k, range.to))
    };
    let is_own = |index: &Indices| {
        let variables = par.ranges.iter().map(|range| Some(range.var));
        index.as_slice().iter().map(|v| affines.form(*v).as_atom()).eq(variables)
    };
    walk(&par.body, &mut |stmt| {
        let touched = match stmt {
            Stmt::Let(v) => match *program.op(*v) {
                Op::Load(array, index) => Some((array, index)),
                _ => None,
            },
            Stmt::Store(s) | Stmt::Update(_, s) => Some((s.array, s.index)),
            _ => None,
        };
        own.extend(touched.filter(|(array, index)| is_own(index) && runs_over(*array)));
    });
    own
}

fn branch_arm(branch: &ebbtide_ir::Branch, holds: bool) -> &Block {
    if holds { &branch.then } else { &branch.otherwise }
}

/// An index as variables and constants, where it is no more than that.
pub(crate) fn places(affines: &Affines, index: Indices) -> Option<Vec<Place>> {
    let place = |v: &ValueId| {
        let form = affines.form(*v);
        let variable = match *form.terms.as_slice() {
            [] => None,
            [(atom, 1)] => Some(atom),
            _ => return None,
        };
        Some(Place { variable, constant: form.constant })
    };
    let near = |place: &Place| place.constant.unsigned_abs() <= FAR as u64;
    index.as_slice().iter().map(|v| place(v).filter(near)).collect()
}
