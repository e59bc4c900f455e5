//! Arrays through which the iterations of a parallel loop keep what is read again: by the loops that gather it, or by
//! themselves on their way back.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affines, ArrayId, Binary, Block, Indices, Literal, Loop, LoopId, LoopKind, Op, Par, Program, Range, Role,
    Stmt, Type, ValueId, depends_on_arguments_alone,
};

use crate::analysis::iteration_number::{Level, Numbered, Ranges, Step};
use crate::analysis::polynomial::{Atom, Polynomial};
use crate::normalize::early::early;
use crate::writer::Writer;

/// The arrays there are. Nothing reads what one parallel loop kept after the loops that gather it: all loops of one shape
/// share their arrays. Whatever reads a place has written it before, or a loop before it has.
#[derive(Clone, Default)]
pub(crate) struct ScratchArrays {
    /// By type and extents.
    arrays: BTreeMap<(Type, Vec<Extent>), Vec<ArrayId>>,
    /// By type and extents, for windows.
    windows: BTreeMap<(Type, Vec<Polynomial>), ArrayId>,
    /// By type and extents, for sums in lanes.
    lanes: BTreeMap<(Type, Vec<ValueId>), Vec<ArrayId>>,
    /// Their declarations, before everything that is done.
    pub declared: Block,
}

/// How many values an iteration keeps in an array, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    One,
    /// As many for each iteration: the first dimension tells them apart.
    Slots(i64),
    /// For each iteration its part of [`SHARED`], and no fewer than so many: the first dimension tells them apart.
    Share(i64),
    /// One for each iteration of loops in it. All iterations have as many: the first dimension tells them apart.
    Each(Numbered),
    /// One for each iteration of loops in it. Iterations have different numbers of them: the array has one dimension, and
    /// inner iterations are numbered over all iterations.
    Packed(Numbered),
}

impl Places {
    /// The number of an inner iteration, where inner iterations are numbered.
    pub fn number(&self) -> Option<&Polynomial> {
        match self {
            Places::Each(numbered) | Places::Packed(numbered) => Some(&numbered.number),
            Places::One | Places::Slots(_) | Places::Share(_) => None,
        }
    }
}

/// The extent of an array in one dimension.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Extent {
    Sum(Polynomial),
    /// What one of as many as there are iterations gets of so many places, and no less than that.
    Share {
        all: i64,
        least: i64,
    },
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
        let extents = domain.shape(places);
        let key = (ty, extents.clone());
        let have = self.arrays.get(&key).map_or(0, Vec::len);
        for _ in have..=number {
            w.begin();
            let shape: Vec<ValueId> = extents.iter().map(|extent| domain.write(w, extent)).collect();
            self.declared.extend(w.end());
            let name = format!("kept{}", self.arrays.values().map(Vec::len).sum::<usize>());
            let array = w.array(name, ty, shape.len(), Role::Temp(shape));
            w.program.undefined.insert(array);
            self.declared.push(Stmt::Temp(array));
            self.arrays.entry(key.clone()).or_default().push(array);
        }
        self.arrays[&key][number]
    }
}

/// Each iteration of a loop has at least this many places in a window.
const WINDOW: i64 = 64;
/// All iterations of a loop together have at least this many.
const WINDOWS: i64 = 1 << 18;
/// All iterations of a loop together have at least this many places for each local that inner loops of unknown length carry.
const SHARED: i64 = 1 << 16;

impl ScratchArrays {
    /// The array of this type with a window for each iteration of a loop: the first dimension tells its places apart.
    pub fn window(&mut self, w: &mut Writer, ty: Type, domain: &Domain<'_>) -> ArrayId {
        let key = (ty, domain.extents.clone());
        if let Some(array) = self.windows.get(&key) {
            return *array;
        }
        w.begin();
        let iterations = domain.iterations(w);
        let length = share(w, iterations, (WINDOWS, WINDOW));
        self.declared.extend(w.end());
        let name = format!("window{}", self.windows.len());
        let array = w.array(name, ty, 2, Role::Temp(vec![length, iterations]));
        w.program.undefined.insert(array);
        self.declared.push(Stmt::Temp(array));
        self.windows.insert(key, array);
        array
    }
}

impl ScratchArrays {
    /// The `number`th array with this many places for each element of a shadow.
    pub fn lanes(&mut self, w: &mut Writer, shadow: ArrayId, lanes: i64, number: usize) -> Option<ArrayId> {
        let decl = w.program.array(shadow).clone();
        let mut shape = match decl.role {
            Role::Temp(shape) => shape,
            _ => {
                w.begin();
                let shape = (0..decl.rank).map(|k| w.dim(shadow, k)).collect();
                self.declared.extend(w.end());
                shape
            }
        };
        let key = (decl.ty, shape.clone());
        let have = self.lanes.get(&key).map_or(0, Vec::len);
        for _ in have..=number {
            w.begin();
            shape.truncate(decl.rank);
            shape.push(w.index(lanes));
            self.declared.extend(w.end());
            let name = format!("lanes{}", self.lanes.values().map(Vec::len).sum::<usize>());
            let array = w.array(name, decl.ty, shape.len(), Role::Temp(shape.clone()));
            w.program.undefined.insert(array);
            self.declared.push(Stmt::Temp(array));
            self.lanes.entry(key.clone()).or_default().push(array);
        }
        self.lanes.get(&key)?.get(number).copied()
    }
}

/// The domain of a parallel loop of the source. Its extents are known before the program starts, or bounded by what is.
#[derive(Clone)]
pub(crate) struct Domain<'a> {
    pub source: &'a Program,
    pub affines: &'a Affines,
    pub ranges: &'a [Range],
    extents: Vec<Polynomial>,
}

impl<'a> Domain<'a> {
    /// The domain of a loop; `None` where its bounds are data.
    pub fn of(source: &'a Program, affines: &'a Affines, ranges: &'a [Range]) -> Option<Domain<'a>> {
        let known = Ranges::new(source, affines);
        Domain::with(source, affines, ranges, |r| known.longest(&level(r)))
    }

    /// The domain of a loop that has run without a fault. Where its bounds are data, an array that it goes through may bound it.
    pub fn of_ended(source: &'a Program, affines: &'a Affines, par: &'a Par) -> Option<Domain<'a>> {
        let known = Ranges::new(source, affines);
        let bounded = |r: &Range| bounded_by_array(source, affines, par, r);
        Domain::with(source, affines, &par.ranges, |r| known.longest(&level(r)).or_else(|| bounded(r)))
    }

    fn with(
        source: &'a Program,
        affines: &'a Affines,
        ranges: &'a [Range],
        extent: impl Fn(&Range) -> Option<Polynomial>,
    ) -> Option<Domain<'a>> {
        let extents: Option<Vec<Polynomial>> = ranges.iter().map(extent).collect();
        Some(Domain { source, affines, ranges, extents: extents? })
    }

    /// Places for iterations of loops in an iteration, one loop inside the other; `None` where bounds are data.
    pub fn places(&self, loops: &[Step]) -> Option<Places> {
        let own: Vec<Step> = self.ranges.iter().map(|r| Step::Numbered(level(r))).collect();
        let known = Ranges::new(self.source, self.affines);
        // Where all iterations have as many inner iterations, neighbours among them have neighbouring places.
        match are_alike(self.affines, self.ranges.iter().map(|r| r.var).collect(), loops) {
            true => known.number(loops).map(Places::Each),
            false => known.number(&[&own, loops].concat()).map(Places::Packed),
        }
    }

    /// Places for inner iterations of loops of the source, one inside the other; `None` where their number is not known.
    pub fn places_in(&self, loops: &[&Loop]) -> Option<Places> {
        let steps = loops.iter().map(|l| Some(Step::Numbered(Level::of(l)?))).collect::<Option<Vec<_>>>()?;
        self.places(&steps).filter(|places| self.has_room(places))
    }

    /// May an array with these places have as many dimensions?
    pub fn has_room(&self, places: &Places) -> bool {
        matches!(places, Places::Packed(_)) || self.ranges.len() < Indices::MAX_RANK
    }

    pub fn extents(&self) -> &[Polynomial] {
        &self.extents
    }

    fn shape(&self, places: &Places) -> Vec<Extent> {
        let lead = match places {
            Places::Packed(numbered) => return vec![Extent::Sum(numbered.count.clone())],
            Places::One => None,
            Places::Slots(n) => Some(Extent::Sum(Polynomial::constant((*n).into()))),
            Places::Share(least) => Some(Extent::Share { all: SHARED, least: *least }),
            Places::Each(numbered) => Some(Extent::Sum(numbered.count.clone())),
        };
        lead.into_iter().chain(self.extents.iter().cloned().map(Extent::Sum)).collect()
    }

    /// Writes an extent, before everything that is done.
    fn write(&self, w: &mut Writer, extent: &Extent) -> ValueId {
        match extent {
            Extent::Sum(sum) => write(w, sum, &mut |w, v| early(self.source, w, v)),
            Extent::Share { all, least } => {
                let iterations = self.iterations(w);
                share(w, iterations, (*all, *least))
            }
        }
    }

    /// Writes how many iterations there are.
    fn iterations(&self, w: &mut Writer) -> ValueId {
        let mut iterations = w.index(1);
        for extent in &self.extents {
            let extent = write(w, extent, &mut |w, v| early(self.source, w, v));
            iterations = w.mul(iterations, extent);
        }
        iterations
    }
}

/// What each of as many iterations gets of so many places, and no less than that.
fn share(w: &mut Writer, iterations: ValueId, (all, least): (i64, i64)) -> ValueId {
    let (one, least, all) = (w.index(1), w.index(least), w.index(all));
    let some = w.binary(Binary::Max, iterations, one);
    let share = w.div(all, some);
    w.binary(Binary::Max, share, least)
}

/// A loop that has run without a fault found all elements that it names. So it has no more iterations than an array is long
/// in a dimension of which each of them takes another element.
fn bounded_by_array(source: &Program, affines: &Affines, par: &Par, range: &Range) -> Option<Polynomial> {
    let mut bound = None;
    always_accessed(source, &par.body, &mut |array, index| {
        for (k, v) in index.as_slice().iter().enumerate() {
            if matches!(affines.form(*v).terms.as_slice(), [(var, _)] if *var == range.var) {
                bound = bound.or_else(|| extent_of(source, array, k));
            }
        }
    });
    bound.map(|v| Polynomial::atom(Atom::Value(v)))
}

/// The extent of an array, where it is a value that is known before the program starts.
fn extent_of(source: &Program, array: ArrayId, k: usize) -> Option<ValueId> {
    match &source.array(array).role {
        Role::Temp(shape) => shape.get(k).copied().filter(|v| depends_on_arguments_alone(source, *v)),
        _ => source.values.iter().position(|v| v.op == Op::Dim(array, k as u8)).map(ValueId::from_index),
    }
}

/// Calls `see` for each element that every iteration loads or stores.
fn always_accessed(source: &Program, block: &Block, see: &mut dyn FnMut(ArrayId, &Indices)) {
    for stmt in block {
        match stmt {
            Stmt::Let(v) => {
                if let Op::Load(array, index) = source.op(*v) {
                    see(*array, index);
                }
            }
            Stmt::Store(s) | Stmt::Update(_, s) => see(s.array, &s.index),
            Stmt::Loop(l) => match &l.kind {
                LoopKind::For { from, to, .. } => {
                    let number = |v: &ValueId| source.literal(*v).and_then(Literal::to_i64);
                    if matches!((number(from), number(to)), (Some(from), Some(to)) if from < to) {
                        always_accessed(source, &l.body, see);
                    }
                }
                LoopKind::While { head, .. } => always_accessed(source, head, see),
                LoopKind::Forever => always_accessed(source, &l.body, see),
            },
            _ => {}
        }
    }
}

/// Are the numbers of inner iterations of all loops by which places are told apart the same in all iterations with these variables?
fn are_alike(affines: &Affines, mut varying: Vec<ValueId>, loops: &[Step]) -> bool {
    for step in loops {
        let (Step::Numbered(level) | Step::Around(level)) = step;
        let varies = |v: ValueId| varying.iter().any(|var| affines.form(v).coefficient(*var) != 0);
        let varies = varies(level.from) || varies(level.to);
        let numbered = matches!(step, Step::Numbered(_));
        if varies && numbered {
            return false;
        }
        varying.extend((varies || numbered).then_some(level.var));
    }
    true
}

/// A range of a parallel loop as a loop that counts.
pub(crate) fn level(range: &Range) -> Level {
    Level { var: range.var, from: range.from, to: range.to }
}

/// Writes a polynomial; `known` has its values.
pub(crate) fn write(
    w: &mut Writer,
    polynomial: &Polynomial,
    known: &mut dyn FnMut(&mut Writer, ValueId) -> ValueId,
) -> ValueId {
    let number = |c: i128| i64::try_from(c).unwrap_or(i64::MAX);
    let mut total: Option<ValueId> = None;
    for (monomial, c) in &polynomial.terms {
        let mut product: Option<ValueId> = None;
        for atom in monomial {
            let factor = match atom {
                Atom::Value(v) => known(w, *v),
                Atom::Extent(terms, constant) => {
                    let length = write_sum(w, terms, *constant, known);
                    // A loop that runs backwards does not run.
                    let zero = w.index(0);
                    w.binary(Binary::Max, length, zero)
                }
            };
            product = Some(product.map_or(factor, |product| w.mul(product, factor)));
        }
        total = Some(match (total, product) {
            (None, None) => w.index(number(*c)),
            (None, Some(product)) if *c == 1 => product,
            (Some(total), Some(product)) if *c == 1 => w.add(total, product),
            (Some(total), Some(product)) if *c == -1 => w.sub(total, product),
            (total, product) => {
                let factor = w.index(number(*c));
                let term = product.map_or(factor, |product| w.mul(product, factor));
                total.map_or(term, |total| w.add(total, term))
            }
        });
    }
    let total = total.unwrap_or_else(|| w.index(0));
    if polynomial.divisor == 1 {
        return total;
    }
    let divisor = w.index(number(polynomial.divisor));
    w.div(total, divisor)
}

fn write_sum(
    w: &mut Writer,
    terms: &[(ValueId, i64)],
    constant: i64,
    known: &mut dyn FnMut(&mut Writer, ValueId) -> ValueId,
) -> ValueId {
    let mut total: Option<ValueId> = None;
    for (v, c) in terms {
        let value = known(w, *v);
        total = Some(match (total, c) {
            (None, 1) => value,
            (Some(total), 1) => w.add(total, value),
            (Some(total), -1) => w.sub(total, value),
            (total, c) => {
                let factor = w.index(*c);
                let term = w.mul(value, factor);
                total.map_or(term, |total| w.add(total, term))
            }
        });
    }
    let offset = (constant != 0 || total.is_none()).then(|| w.index(constant));
    match (total, offset) {
        (Some(total), Some(offset)) => w.add(total, offset),
        (total, offset) => total.or(offset).unwrap_or_else(|| w.index(0)),
    }
}

/// The arrays in which the iterations of one parallel loop keep what they find.
#[derive(Default)]
pub(crate) struct Tapes {
    /// Of each iteration they hold the same from when it is over.
    pub lasting: BTreeSet<ArrayId>,
    /// They are written again and again.
    pub passing: BTreeSet<ArrayId>,
    /// Loops of the adjoint that take the inner iterations of a loop backwards: that loop in the source.
    pub loops: BTreeMap<LoopId, Level>,
}
