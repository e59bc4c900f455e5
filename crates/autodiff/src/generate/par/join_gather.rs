//! One sweep over memory: the loop over a step's own iterations joins the loop that gathers.
//!
//! The adjoint of a stencil reads the shadow of what the step wrote at neighbours, while its own iterations give that
//! shadow what it holds before the step. Both in one loop is right where the new contents go beside the old ones: every
//! element is written, and the two exchange names. That saves a sweep over memory and a meeting of all threads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{ArrayId, Branch, Indices, Op, Par, Role, Stmt, ValueId, walk};

use crate::analysis::effects::swap_classes;
use crate::analysis::index_inverse::identity;
use crate::generate::par::iterations::push_own;
use crate::generate::par::{Gather, ParAdjoint};
use crate::writer::rename::rename;
use crate::writer::{Writer, both, within};

/// Memory beside shadows, one for all arrays that are swapped with one another: they are of one shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShadowDoubleBuffer {
    /// By the first array of a class: the shadow that the spare is declared after, and the spare.
    by_class: BTreeMap<ArrayId, (ArrayId, ArrayId)>,
}

impl ShadowDoubleBuffer {
    /// Each spare, and the shadow after whose declaration it is declared.
    pub fn declarations(&self) -> impl Iterator<Item = (ArrayId, ArrayId)> {
        self.by_class.values().copied()
    }
}

impl ParAdjoint<'_> {
    /// Writes the loops that gather, and the one over the own iterations, inside the last of them where that is right.
    pub(crate) fn write_loops(
        &mut self,
        w: &mut Writer,
        par: &Par,
        mut gathers: Vec<Gather>,
        own: Option<Par>,
        all: &[(ValueId, ArrayId, Indices)],
    ) {
        let last = gathers.pop();
        gathers.into_iter().for_each(|gather| w.push(Stmt::Par(gather.par)));
        let (gather, own) = match (last, own) {
            (Some(gather), Some(own)) => (gather, own),
            (gather, own) => {
                gather.into_iter().for_each(|gather| w.push(Stmt::Par(gather.par)));
                own.into_iter().for_each(|own| push_own(w, own));
                return;
            }
        };
        match self.fits(w, par, &gather, &own, all) {
            Some(anew) => self.join(w, par, gather, own, &anew),
            None => {
                w.push(Stmt::Par(gather.par));
                push_own(w, own);
            }
        }
    }

    /// The shadows that the own iterations write and the gathering ones read, where both can be one loop.
    fn fits(
        &self,
        w: &Writer,
        par: &Par,
        gather: &Gather,
        own: &Par,
        all: &[(ValueId, ArrayId, Indices)],
    ) -> Option<BTreeSet<ArrayId>> {
        self.double_buffer.as_ref()?;
        // Every iteration reads its own element: then there is an element for every iteration.
        let unconditional = |v: ValueId| par.body.iter().any(|s| matches!(s, Stmt::Let(l) if *l == v));
        let reads_own = all.iter().any(|(v, array, index)| {
            *array == gather.array && identity(self.affines, par, *index) && unconditional(*v)
        });
        if !reads_own || gather.par.ranges.len() != own.ranges.len() || gather.par.ordering != own.ordering {
            return None;
        }
        let element: Vec<ValueId> = own.ranges.iter().map(|r| r.var).collect();
        let (mut fits, mut writes) = (true, BTreeMap::<ArrayId, usize>::new());
        walk(&own.body, &mut |stmt| match stmt {
            Stmt::Store(s) | Stmt::Update(_, s) => {
                fits &= s.index.as_slice() == element;
                *writes.entry(s.array).or_default() += 1;
            }
            Stmt::Claim(_) => fits = false,
            _ => {}
        });
        let mut read = BTreeSet::new();
        walk(&gather.par.body, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && let Op::Load(array, _) = w.program.op(*v)
            {
                read.insert(*array);
            }
        });
        let anew: BTreeSet<ArrayId> = writes.keys().copied().filter(|a| read.contains(a)).collect();
        // Written once in every iteration, and not read after that.
        let once = |array: &ArrayId| {
            let is_store = |s: &Stmt| matches!(s, Stmt::Store(s) if s.array == *array);
            let Some(at) = own.body.iter().position(is_store) else { return false };
            let mut read_after = false;
            walk(&own.body[at..], &mut |stmt| {
                read_after |=
                    matches!(stmt, Stmt::Let(v) if matches!(w.program.op(*v), Op::Load(a, _) if a == array));
            });
            writes[array] == 1 && !read_after
        };
        // A result has no memory beside it.
        let same_shape = |shadow: &ArrayId| {
            matches!(w.program.array(*shadow).role, Role::Temp(_))
                && self.shadowed(*shadow).is_some_and(|array| self.affines.same_shape(array, gather.array))
        };
        (fits && anew.iter().all(|shadow| once(shadow) && same_shape(shadow))).then_some(anew)
    }

    /// Writes one loop over all elements: what flows to each, then the iteration that it belongs to, if there is one.
    fn join(&mut self, w: &mut Writer, source: &Par, gather: Gather, own: Par, anew: &BTreeSet<ArrayId>) {
        let mut par = gather.par;
        let spares: BTreeMap<ArrayId, ArrayId> =
            anew.iter().filter_map(|shadow| Some((*shadow, self.spare(w, *shadow)?))).collect();
        let element: Vec<ValueId> = par.ranges.iter().map(|r| r.var).collect();
        let mut to_element: HashMap<ValueId, ValueId> =
            own.ranges.iter().zip(&element).map(|(range, k)| (range.var, *k)).collect();
        let mut then = rename(w, own.body, &mut to_element);
        for stmt in &mut then {
            if let Stmt::Store(s) = stmt
                && let Some(spare) = spares.get(&s.array)
            {
                s.array = *spare;
            }
        }
        let inside: Vec<(ValueId, ValueId, ValueId)> = own
            .ranges
            .iter()
            .zip(&element)
            .enumerate()
            .filter(|(d, _)| !self.runs_over(&source.ranges[*d], gather.array, *d))
            .map(|(_, (range, k))| (*k, range.from, range.to))
            .collect();
        let Some(index) = Indices::new(&element) else { return };
        w.begin();
        let mut condition: Option<ValueId> = None;
        for (k, from, to) in inside {
            let inside = within(w, k, from, to);
            condition = Some(both(w, condition, inside));
        }
        match condition {
            Some(condition) => {
                let otherwise = w.block(|w| {
                    for (shadow, spare) in &spares {
                        let kept = w.load(*shadow, index, None);
                        w.store(*spare, index, kept, None);
                    }
                });
                w.push(Stmt::If(Branch { condition, then, otherwise }));
            }
            None => then.into_iter().for_each(|stmt| w.push(stmt)),
        }
        par.body.extend(w.end());
        w.push(Stmt::Par(par));
        for (shadow, spare) in spares {
            w.push(Stmt::Swap(shadow, spare));
        }
    }

    /// The array that a shadow shadows.
    fn shadowed(&self, shadow: ArrayId) -> Option<ArrayId> {
        self.shadows.arrays.iter().find(|(_, s)| **s == shadow).map(|(array, _)| *array)
    }

    /// The memory beside a shadow.
    fn spare(&mut self, w: &mut Writer, shadow: ArrayId) -> Option<ArrayId> {
        let array = self.shadowed(shadow)?;
        let class = *swap_classes(self.source).get(&array)?;
        let spares = self.double_buffer.as_mut()?;
        if let Some((_, spare)) = spares.by_class.get(&class) {
            return Some(*spare);
        }
        let decl = w.program.array(shadow).clone();
        let Role::Temp(shape) = decl.role else { return None };
        let name = format!("{}_next'", decl.name.trim_end_matches('\''));
        let spare = w.array(name, decl.ty, decl.rank, Role::Temp(shape));
        // It is written as a whole before it takes the place of a shadow.
        w.program.undefined.insert(spare);
        spares.by_class.insert(class, (shadow, spare));
        Some(spare)
    }
}
