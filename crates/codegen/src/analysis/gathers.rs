//! Loads at indices from data, in the lanes of vectors. Input: a parallel loop whose interior cannot prove all accesses, and the float
//! type of its data; output: the index values that each lane computes for itself, and the loads that use them; or nothing, where
//! lanes cannot.
//!
//! A lane holds an index as an integer as wide as its numbers. Vectors test that indices from data are near zero and that elements
//! exist before any lane loads one. Where a test fails, the iterations of that vector run one by one, and compute and report what
//! they would without vectors. So stores wait for the last test, and nothing before that may load what they store.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Binary, Block, Indices, Literal, Op, Par, Program, Stmt, Type, ValueId};

use crate::analysis::interior::{Interior, taken};

/// Indices from data, divisors and offsets are nearer to zero.
pub(crate) const NEAR: i64 = 1 << 27;
/// Sums are not further from zero.
const MOST: i64 = i32::MAX as i64;

/// Loads at indices from data.
#[derive(Debug, Default)]
pub(crate) struct Gathers {
    /// The index values that each lane computes for itself.
    pub indices: BTreeSet<ValueId>,
    /// The loads, by index.
    pub accesses: BTreeSet<Vec<ValueId>>,
}

/// The loads at indices from data of a loop over this type.
pub(crate) fn find_gathers(
    program: &Program,
    par: &Par,
    interior: &Interior,
    element: Type,
) -> Option<Gathers> {
    let (bounds, stored) = (BTreeMap::new(), BTreeSet::new());
    let mut search = Search { program, interior, element, bounds, stored, is_loaded_again: false };
    let mut gathers = Gathers::default();
    search.block(&par.body, &mut gathers)?;
    gathers.indices = search.bounds.into_keys().collect();
    (!gathers.accesses.is_empty()).then_some(gathers)
}

struct Search<'a> {
    program: &'a Program,
    interior: &'a Interior,
    element: Type,
    /// How far index values are from zero, at most.
    bounds: BTreeMap<ValueId, i64>,
    /// The arrays that were stored so far.
    stored: BTreeSet<ArrayId>,
    /// Was one of them loaded behind the store, so that this cannot wait any longer?
    is_loaded_again: bool,
}

impl Search<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, gathers: &mut Gathers) -> Option<()> {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => self.value(*v, gathers)?,
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    (!self.interior.unproved.contains(s.index.as_slice())).then_some(())?;
                    self.stored.insert(s.array);
                }
                Stmt::Declare(..) | Stmt::Set(..) => {}
                Stmt::If(branch) => match taken(self.interior, branch) {
                    Some(block) => self.block(block, gathers)?,
                    None => return None,
                },
                // Lanes read the indices of inner loops from rows of their own, which takes longer than vectors save.
                _ => return None,
            }
        }
        Some(())
    }

    fn value(&mut self, v: ValueId, gathers: &mut Gathers) -> Option<()> {
        if let Op::Load(array, index) = *self.program.op(v) {
            self.is_loaded_again |= self.stored.contains(&array);
            if self.interior.unproved.contains(index.as_slice()) {
                let fits = !self.is_loaded_again && self.program.array(array).ty == self.element;
                (fits && self.is_gather(index)).then_some(())?;
                gathers.accesses.insert(index.as_slice().to_vec());
            }
            return Some(());
        }
        let is_integer = matches!(self.program.ty(v), Type::Index | Type::I64 | Type::I32);
        if !is_integer || !self.varies(v) {
            return Some(());
        }
        if self.interior.linear_here(self.program, v).is_some() {
            return Some(());
        }
        let bound = self.bound(v).filter(|bound| *bound <= MOST && !self.is_loaded_again)?;
        self.bounds.insert(v, bound);
        Some(())
    }

    fn varies(&self, v: ValueId) -> bool {
        !self.interior.varying.uniform(v)
    }

    /// Does each lane have its own index in some dimension, and the same one as all others elsewhere? In arrays of more dimensions
    /// elements are further apart than lanes count.
    fn is_gather(&self, index: Indices) -> bool {
        let index = index.as_slice();
        let fits = |v: &ValueId| !self.varies(*v) || self.bounds.contains_key(v);
        index.len() <= 2 && index.iter().all(fits) && index.iter().any(|v| self.varies(*v))
    }

    /// How far a value is from zero, at most, where its lanes pass their tests.
    fn bound(&self, v: ValueId) -> Option<i64> {
        let of = |v: ValueId| match self.program.literal(v).map(Literal::to_i64) {
            Some(number) => number?.checked_abs(),
            None if self.varies(v) => self.bounds.get(&v).copied(),
            None => Some(NEAR),
        };
        let literal = |v: ValueId| self.program.literal(v).is_some();
        match *self.program.op(v) {
            Op::Cast(a) => {
                let ty = self.program.ty(a);
                let loaded = ty == Type::I32 && matches!(self.program.op(a), Op::Load(..));
                if ty == self.element || loaded { Some(NEAR) } else { self.bounds.get(&a).copied() }
            }
            Op::Binary(Binary::Add | Binary::Sub, a, b) => of(a)?.checked_add(of(b)?),
            Op::Binary(Binary::Mul, a, b) if literal(a) || literal(b) => of(a)?.checked_mul(of(b)?),
            Op::Binary(Binary::Rem | Binary::RemEuclid, a, b) if !self.varies(b) => of(a).and(of(b)),
            _ => None,
        }
    }
}
