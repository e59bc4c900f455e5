//! Arrays through which the iterations of a parallel loop keep what is read again: by the loops that gather it, or by
//! themselves on their way back.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affines, ArrayId, Binary, Block, LoopId, Program, Range, Role, Stmt, Type, ValueId, is_zero,
};

use crate::normalize::early::early;
use crate::writer::Writer;

/// The arrays there are. Nobody reads what one parallel loop kept after the loops that gather it: all loops of one shape
/// share their arrays.
#[derive(Clone, Default)]
pub(crate) struct ScratchArrays {
    arrays: BTreeMap<Key, Vec<ArrayId>>,
    /// By type and extents, for sums in lanes.
    lanes: BTreeMap<(Type, Vec<ValueId>), Vec<ArrayId>>,
    /// Their declarations, before everything that is done.
    pub declared: Block,
}

/// The type of an array, the places that each iteration has in it, and the bounds of the loop.
type Key = (Type, Option<Bounds>, Bounds);

/// Bounds of loops, as sums.
type Bounds = Vec<Vec<(ValueId, i64)>>;

/// How many values an iteration keeps in an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    One,
    /// One for each pass of the loops with these bounds, all known before the program starts.
    Passes(Vec<(ValueId, ValueId)>),
    /// So many.
    Slots(i64),
}

impl ScratchArrays {
    /// The `number`th array of this type for a loop over this domain. With more than one place for each iteration the
    /// first dimension tells the places apart.
    pub fn array(
        &mut self,
        w: &mut Writer,
        ty: Type,
        domain: &Domain<'_>,
        places: &Places,
        number: usize,
    ) -> ArrayId {
        let key = (ty, domain.places(places), domain.bounds());
        let have = self.arrays.get(&key).map_or(0, Vec::len);
        for _ in have..=number {
            w.begin();
            let mut shape: Vec<ValueId> = domain.lead(w, places).into_iter().collect();
            shape.extend(domain.ranges.iter().map(|r| domain.extent(w, r.from, r.to)));
            self.declared.extend(w.end());
            let name = format!("kept{}", self.arrays.values().map(Vec::len).sum::<usize>());
            let array = w.array(name, ty, shape.len(), Role::Temp(shape));
            self.declared.push(Stmt::Temp(array));
            self.arrays.entry(key.clone()).or_default().push(array);
        }
        self.arrays[&key][number]
    }
}

impl ScratchArrays {
    /// The `number`th array with so many places for each element of a shadow.
    pub fn lanes(&mut self, w: &mut Writer, shadow: ArrayId, lanes: i64, number: usize) -> Option<ArrayId> {
        let decl = w.program.array(shadow).clone();
        let Role::Temp(mut shape) = decl.role else { return None };
        let key = (decl.ty, shape.clone());
        let have = self.lanes.get(&key).map_or(0, Vec::len);
        for _ in have..=number {
            w.begin();
            shape.truncate(decl.rank);
            shape.push(w.index(lanes));
            self.declared.extend(w.end());
            let name = format!("lanes{}", self.lanes.values().map(Vec::len).sum::<usize>());
            let array = w.array(name, decl.ty, shape.len(), Role::Temp(shape.clone()));
            self.declared.push(Stmt::Temp(array));
            self.lanes.entry(key.clone()).or_default().push(array);
        }
        self.lanes.get(&key)?.get(number).copied()
    }
}

/// The domain of a parallel loop of the source whose bounds are known before the program starts.
#[derive(Clone, Copy)]
pub(crate) struct Domain<'a> {
    pub source: &'a Program,
    pub affines: &'a Affines,
    pub ranges: &'a [Range],
}

impl<'a> Domain<'a> {
    /// The domain of a loop; `None` where its bounds are data.
    pub fn of(source: &'a Program, affines: &'a Affines, ranges: &'a [Range]) -> Option<Domain<'a>> {
        let known = |v: ValueId| ebbtide_ir::depends_on_arguments_alone(source, v);
        ranges.iter().all(|r| known(r.from) && known(r.to)).then_some(Domain { source, affines, ranges })
    }

    fn sum(&self, v: ValueId) -> Vec<(ValueId, i64)> {
        let form = self.affines.form(v);
        form.terms.iter().copied().chain([(ValueId::from_index(0), form.constant)]).collect()
    }

    fn bounds(&self) -> Bounds {
        self.ranges.iter().flat_map(|r| [self.sum(r.from), self.sum(r.to)]).collect()
    }

    fn places(&self, places: &Places) -> Option<Bounds> {
        match places {
            Places::One => None,
            Places::Passes(loops) => {
                Some(loops.iter().flat_map(|(from, to)| [self.sum(*from), self.sum(*to)]).collect())
            }
            Places::Slots(n) => Some(vec![vec![(ValueId::from_index(0), *n)]]),
        }
    }

    /// How many places there are, where it is not one.
    fn lead(&self, w: &mut Writer, places: &Places) -> Option<ValueId> {
        match places {
            Places::One => None,
            Places::Slots(n) => Some(w.index(*n)),
            Places::Passes(loops) => {
                let mut all: Option<ValueId> = None;
                for (from, to) in loops {
                    let extent = self.extent(w, *from, *to);
                    all = Some(all.map_or(extent, |all| w.mul(all, extent)));
                }
                all
            }
        }
    }

    fn extent(&self, w: &mut Writer, from: ValueId, to: ValueId) -> ValueId {
        let (first, end) = (early(self.source, w, from), early(self.source, w, to));
        let whole = if is_zero(self.source, from) { end } else { w.sub(end, first) };
        // A loop that runs backwards does not run.
        let zero = w.index(0);
        w.binary(Binary::Max, whole, zero)
    }
}

/// The arrays in which the iterations of one parallel loop keep what they find.
#[derive(Default)]
pub(crate) struct Tapes {
    /// Of each iteration they hold the same from when it is over.
    pub lasting: BTreeSet<ArrayId>,
    /// They are written again and again.
    pub passing: BTreeSet<ArrayId>,
    /// Loops of the adjoint that take the passes of a loop backwards: the bounds of that loop in the source.
    pub loops: BTreeMap<LoopId, (ValueId, ValueId)>,
}
