//! What may be pending between threads: what each statement of a segment touches, and by which threads. `transform::segment` puts a
//! barrier before a statement that touches what another thread may still read or has just written.
//!
//! The blocks of a grid meet in about a microsecond, the threads of a CPU in a tenth of one, so a segment has a barrier only there.
//! None is needed for elements that one thread alone touches: what thread 0 does, or the thread that owns an element in loops over
//! the same domain (see [`crate::analysis::thread_ownership`]).

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affines, ArrayId, Facts, Op, Par, Program, Role, Stmt, ValueId, walk};

use crate::kernel::segment::{By, MappingId, ProductId};

/// What memory goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Array(ArrayId),
    /// What is on the tape of an array.
    Tape(ArrayId),
}

/// What elements are touched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Touch {
    Read,
    Write,
}

/// What happened since all threads met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    pub touches: BTreeSet<(Name, Touch, By)>,
    /// Does thread 0 take the sum of leaves?
    pub leaves: bool,
}

impl Pending {
    pub fn is_empty(&self) -> bool {
        *self == Pending::default()
    }

    /// What may have happened where two ways meet.
    pub fn or(mut self, other: &Pending) -> Pending {
        self.touches.extend(&other.touches);
        self.leaves |= other.leaves;
        self
    }

    /// Two arrays exchange their names.
    pub fn swap(&mut self, a: ArrayId, b: ArrayId) {
        let (a, b) = (Name::Array(a), Name::Array(b));
        let renamed = |name: Name| match name {
            name if name == a => b,
            name if name == b => a,
            name => name,
        };
        self.touches = self.touches.iter().map(|(name, touch, by)| (renamed(*name), *touch, *by)).collect();
    }

    /// Memory changes hands between these names: each may have had what another has now.
    pub fn mix(&mut self, names: &[Name]) {
        let touched: Vec<(Touch, By)> =
            self.touches.iter().filter(|(name, ..)| names.contains(name)).map(|t| (t.1, t.2)).collect();
        for name in names {
            self.touches.extend(touched.iter().map(|(touch, by)| (*name, *touch, *by)));
        }
    }

    pub fn of(&self, array: ArrayId) -> impl Iterator<Item = (Touch, By)> {
        self.touches.iter().filter(move |t| t.0 == Name::Array(array)).map(|t| (t.1, t.2))
    }

    /// The products of whose elements blocks had what they touched of this array.
    pub fn products(&self, array: ArrayId) -> impl Iterator<Item = ProductId> {
        self.of(array).filter_map(|(_, by)| if let By::Block(product) = by { Some(product) } else { None })
    }

    /// Did other threads touch what goes by these names?
    pub fn has_others(&self, names: &[Name], by: By) -> bool {
        self.touches.iter().any(|(name, _, who)| names.contains(name) && *who != by)
    }

    /// Would this touch of what is on a packed tape meet another one?
    pub fn conflicts_on_tape(&self, array: ArrayId, touch: Touch, by: By) -> bool {
        let on_tape = self.touches.iter().filter(|t| t.0 == Name::Tape(array));
        let mut others = on_tape.map(|t| (t.1, t.2));
        others.any(|(other, who)| (touch == Touch::Write || other == Touch::Write) && meet(by, who))
    }

    pub fn note_on_tape(&mut self, array: ArrayId, touch: Touch, by: By) {
        self.touches.insert((Name::Tape(array), touch, by));
    }

    /// Would this touch meet another one?
    pub fn conflicts(&self, array: ArrayId, touch: Touch, by: By) -> bool {
        self.of(array).any(|(other, who)| (touch == Touch::Write || other == Touch::Write) && meet(by, who))
    }

    /// Where this touch would meet others: nowhere, only in a block where blocks keep to the leaves of a domain, or anywhere. `domain`
    /// says which mappings are over one.
    pub fn meets(
        &self,
        (array, touch, by): Touched,
        domain: &dyn Fn(MappingId) -> Option<MappingId>,
    ) -> Meets {
        let domain = |by: By| match by {
            By::Owner(mapping) => domain(mapping),
            By::Leaf(mapping) => Some(mapping),
            _ => None,
        };
        let others = self
            .of(array)
            .filter(|(other, who)| (touch == Touch::Write || *other == Touch::Write) && meet(by, *who));
        let one = |(_, who): (Touch, By)| match (domain(by), domain(who)) {
            (Some(a), Some(b)) if a == b => Meets::InBlock(a),
            _ => Meets::Anywhere,
        };
        others.map(one).max().unwrap_or(Meets::Nowhere)
    }

    pub fn note(&mut self, array: ArrayId, touch: Touch, by: By) {
        self.touches.insert((Name::Array(array), touch, by));
    }
}

/// Where touches meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meets {
    Nowhere,
    /// In a block, where blocks keep to the leaves of this domain.
    InBlock(MappingId),
    Anywhere,
}

/// May threads of both kinds touch the same element?
fn meet(by: By, other: By) -> bool {
    by != other || by == By::Anyone
}

/// The arrays that iterations touch, how, and whether each iteration touches its own element alone: the one whose index is
/// the iteration's.
pub(crate) fn touches(
    program: &Program,
    affines: &Affines,
    par: &Par,
) -> BTreeMap<ArrayId, (BTreeSet<Touch>, bool)> {
    let own = |index: &[ValueId]| {
        index.len() == par.ranges.len()
            && par.ranges.iter().zip(index).all(|(r, v)| affines.form(*v).as_atom() == Some(r.var))
    };
    let mut touched: BTreeMap<ArrayId, (BTreeSet<Touch>, bool)> = BTreeMap::new();
    let mut note = |array: ArrayId, touch: &[Touch], own: bool| {
        let entry = touched.entry(array).or_insert_with(|| (BTreeSet::new(), true));
        entry.0.extend(touch);
        entry.1 &= own;
    };
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => {
            if let Op::Load(array, index) = program.op(*v) {
                note(*array, &[Touch::Read], own(index.as_slice()));
            }
        }
        Stmt::Store(s) => note(s.array, &[Touch::Write], own(s.index.as_slice())),
        Stmt::Update(_, s) => note(s.array, &[Touch::Read, Touch::Write], own(s.index.as_slice())),
        Stmt::Claim(claim) => note(claim.taken, &[Touch::Read, Touch::Write], false),
        _ => {}
    });
    touched
}

/// An array, how it is touched, and by which threads.
pub(crate) type Touched = (ArrayId, Touch, By);

/// What a loop touches, and by which threads, where an iteration is run by these.
pub(crate) fn touched_by(program: &Program, facts: &Facts, par: &Par, runs: By) -> Vec<Touched> {
    let each = touches(program, &facts.affines, par).into_iter().flat_map(|(array, (touches, own))| {
        let by = if own { runs } else { By::Anyone };
        touches.into_iter().map(move |touch| (array, touch, by))
    });
    each.collect()
}

/// The names among which the memory of an array changes hands where its tape is used.
pub(crate) fn exchanged_with(program: &Program, array: ArrayId) -> Vec<Name> {
    let olds = program.array_ids().filter(|a| program.array(*a).role == Role::Old(array));
    olds.map(Name::Array).chain([Name::Array(array), Name::Tape(array)]).collect()
}
