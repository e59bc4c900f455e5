//! The loops around iterations. Input: a parallel loop and what analyses say of it; output: a tree.
//!
//! For the threads of a CPU: each takes a share of the rows, of the columns of the one row, or of the leaves of sums; a row has an
//! interior, in vectors where `analysis::row_form` says so.

use std::collections::BTreeSet;

use ebbtide_ir::{Combine, Facts, Par, Program, Store, ValueId};

use crate::analysis::bounds_proof::Prover;
use crate::analysis::bucket_scatter::{BucketScatter, bucket_scatter};
use crate::analysis::gathers::Gathers;
use crate::analysis::interior::Interior;
use crate::analysis::kept_terms::threads_keep_terms;
use crate::analysis::lane_order::in_lane_order;
use crate::analysis::names::{scatters, values_inside};
use crate::analysis::row_ends::{RowEnds, row_ends};
use crate::analysis::row_form::{RowForm, VectorForm, row_form};
use crate::analysis::rows_side_by_side::rows_side_by_side;
use crate::analysis::term_runs::term_runs;
use crate::analysis::work::{is_arithmetic, is_light, work};
use crate::kernel::machine::{Target, Threads, WIDEST};
use crate::kernel::nest::{
    Buckets, Ends, First, For, Interiors, Iterations as Run, Kind, Nest, Node, Order, Over, Proved, Row,
    Together,
};
use crate::kernel::stmt::Body;
use crate::transform::forms::{Forms, InVectors, Iterations, RowsInVectors};
use crate::transform::lower::{Shared, Team};
use crate::transform::peel::peel;
use crate::transform::step::Step;

/// The columns of the one row are dealt out in pieces of so many, so that no cache line is written by two threads.
const ALIGNED: usize = 64;

/// A parallel loop, and what its nest is made from.
#[derive(Clone, Copy)]
pub(crate) struct ParallelLoop<'a> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    pub target: Target,
    pub par: &'a Par,
    /// The sums, minima and maxima over its iterations, in source order.
    pub reductions: &'a [(Combine, &'a Store)],
}

impl ParallelLoop<'_> {
    /// Its nest for the threads of a CPU.
    pub fn nest(&self, forms: &mut Forms) -> Nest {
        let ParallelLoop { program, facts, par, reductions, .. } = *self;
        let inside = values_inside(par);
        let counted = term_runs(program, facts, par);
        if let Some(buckets) = self.buckets(forms, &inside) {
            let (ranges, order) = (par.ranges.clone(), Order::OfProgram);
            let nest = Nest {
                ranges,
                order,
                reductions: Vec::new(),
                body: Vec::new(),
                buckets: Some(buckets),
                counted,
            };
            forms.made(&nest);
            return nest;
        }
        let exit = forms.fresh.next();
        // Ordered sums at shared elements are taken by one thread.
        let kind = match scatters(facts, par) {
            true => Kind::Seq,
            false => Kind::Threads(work(program, &inside, &par.body)),
        };
        let assertions = |v: ValueId| forms.assertions.contains_key(&v);
        let form = row_form((program, facts), par, &inside, &assertions, self.target.vector_bytes);
        let (order, exchanged) = match &form.exchanged {
            Some(columns) => (Order::Exchanged, columns),
            None => (Order::OfProgram, par),
        };
        let mut shared = Shared { counted_runs: counted.updates.clone(), ..Shared::default() };
        // Lanes add to one component after the other: an element has then more terms than another of its group.
        if form.vectors.is_err() {
            shared.counted_groups.clone_from(&counted.groups);
            shared.riders.clone_from(&counted.riders);
        }
        let rows = self.rows(forms, (exchanged, &shared), &form);
        let over = match (reductions, order, &par.ranges[..]) {
            ([], Order::OfProgram, [_]) => Over::Columns { aligned: ALIGNED },
            ([], Order::OfProgram, _) => Over::Rows(Interiors::OfEach),
            // The same thread runs an iteration as ever.
            ([], Order::Exchanged, _) => Over::Columns { aligned: 1 },
            _ if self.keeps_terms() && !forms.leaves_out(Step::KeptTerms) => Over::Terms,
            _ => Over::Leaves,
        };
        let shares = For { kind, over, body: vec![Node::For(rows)] };
        let nest = Nest {
            ranges: exchanged.ranges.clone(),
            order,
            reductions: reductions.iter().map(|(how, s)| (*how, program.array(s.array).ty)).collect(),
            body: vec![Node::For(shares), Node::Label(exit)],
            buckets: None,
            counted,
        };
        forms.made(&nest);
        nest
    }

    /// The loop where several threads may share it in buckets.
    fn buckets(&self, forms: &mut Forms, inside: &BTreeSet<ValueId>) -> Option<Buckets> {
        let ParallelLoop { program, facts, par, .. } = *self;
        let wanted = self.target.threads == Threads::Several && !forms.leaves_out(Step::Buckets);
        let scatter = bucket_scatter(program, facts, par).filter(|_| wanted)?;
        let BucketScatter { tables, updates, terms, bytes } = scatter;
        let shared = Shared { in_buckets: updates, ..Shared::default() };
        let it = Iterations { par, shared: &shared, team: Team::Alone };
        let assertions = |v: ValueId| forms.assertions.contains_key(&v);
        let form = row_form((program, facts), par, inside, &assertions, self.target.vector_bytes);
        // Terms of several lanes are noted in order where all of them are for one element.
        let by_lanes = in_lane_order((program, facts), par, &form.interior);
        let vectors = form.vectors.ok().filter(|_| tables.iter().all(|(array, _)| by_lanes.contains(array)));
        let careful = forms.checked_at_once(&it);
        let row = self.row(forms, &it, (&form.interior, &form.gathers), careful, vectors);
        let work = work(program, inside, &par.body);
        Some(Buckets { tables, work, terms, bytes, row, exit: forms.fresh.next() })
    }

    /// Do iterations keep their terms, so that several threads share a leaf?
    fn keeps_terms(&self) -> bool {
        self.target.threads == Threads::Several && threads_keep_terms(self.program, self.facts, self.par)
    }

    /// The loop over the rows of a share.
    fn rows(&self, forms: &mut Forms, (par, shared): (&Par, &Shared), form: &RowForm) -> For {
        let it = Iterations { par, shared, team: Team::Alone };
        let careful = forms.checked_at_once(&it);
        let of = (&form.interior, &form.gathers);
        let mut row = self.row(forms, &it, of, careful, form.vectors.ok());
        let interiors = match forms.leaves_out(Step::Interior) {
            true => Interiors::OfEach,
            false => form.interiors.clone(),
        };
        if interiors == Interiors::AtCorners && form.exchanged.is_none() {
            row.together = form.vectors.ok().and_then(|vectors| self.together(forms, &it, vectors));
        }
        if form.exchanged.is_none() && self.reductions.is_empty() {
            row.proved = self.proved(forms, &it, form);
        }
        For { kind: Kind::Seq, over: Over::Rows(interiors), body: vec![Node::Row(row)] }
    }

    /// A row with this interior, in these vectors, if any.
    fn row(
        &self,
        forms: &mut Forms,
        it: &Iterations,
        (interior, gathers): (&Interior, &Gathers),
        careful: Body,
        vectors: Option<VectorForm>,
    ) -> Row {
        let one = forms.hoisted(it, interior);
        let vectors = vectors.and_then(|vectors| {
            let shape = (vectors.element, vectors.lanes);
            let bodies = match gathers.accesses.is_empty() {
                true => forms.vectors(it, interior, &one, shape)?,
                false => forms.vectors_with_gathers(it, interior, &one, shape, gathers)?,
            };
            Some((vectors.least, bodies))
        });
        let (least, inside) = match vectors {
            Some((least, vectors)) => {
                let unrolled = if is_light(self.program, it.par) { 2 } else { 1 };
                let inside = in_vectors(vectors, unrolled);
                let peels = is_arithmetic(self.program, it.par) && !forms.leaves_out(Step::Peel);
                (least, if peels { peel(inside) } else { inside })
            }
            None => {
                let one = forms.with_lanes_of_sums(one, self.target.vector_bytes);
                let over = Over::Interior { step: 1, unrolled: 1 };
                let body = vec![Node::Iterations(Run { first: First::At(0), body: one })];
                (0, vec![For { kind: Kind::Seq, over, body }])
            }
        };
        Row { interval: forms.interval(interior), least, careful, inside, together: None, proved: None }
    }

    /// What is known of the rows where the accesses of the loop are proved: of loops over several rows, each with an interval that is
    /// less than all of it.
    fn proved(&self, forms: &mut Forms, it: &Iterations, form: &RowForm) -> Option<Proved> {
        let (program, facts, par) = (self.program, self.facts, self.par);
        let wanted = par.ranges.len() > 1
            && !form.interior.takes_all()
            && ![Step::Interior, Step::ProvedRows].iter().any(|step| forms.leaves_out(*step));
        let vectors = form.vectors.ok().filter(|_| wanted && form.gathers.accesses.is_empty())?;
        let inside = values_inside(par);
        let proof = Prover { program, facts, inside: &inside }.proof(par)?;
        let narrowings = form.interior.narrowings_where_proved(&proof.exact);
        let mut proved = Proved { tests: proof.tests.clone(), narrowings, ends: None };
        // In shorter vectors there are as many masks for fewer iterations.
        if self.target.vector_bytes < WIDEST || forms.leaves_out(Step::RowEnds) {
            return Some(proved);
        }
        if let Some(RowEnds { interior, tests }) = row_ends((program, facts), par, &inside, &proof)
            && let Some(body) = forms.ends_of_rows(it, &interior, (vectors.element, vectors.lanes))
        {
            let known = form.interior.interval().before;
            let mut before = interior.interval().before;
            before.retain(|before| !known.contains(before));
            proved.tests.extend(tests);
            proved.ends = Some(Ends { lanes: vectors.lanes, least: vectors.least.max(1), before, body });
        }
        Some(proved)
    }

    /// Several rows at a time, in these vectors.
    fn together(&self, forms: &mut Forms, it: &Iterations, vectors: VectorForm) -> Option<Together> {
        let VectorForm { element, lanes, least } = vectors;
        let of = (self.program, self.facts);
        let (interior, shape) = rows_side_by_side(of, it.par, element, self.target.vector_bytes)?;
        let RowsInVectors { rows, before, jammed, whole, tail } =
            forms.rows_side_by_side(it, &interior, shape, (element, lanes))?;
        let vectors = InVectors { lanes, jammed: vec![jammed], whole: vec![whole], tail: Some(tail) };
        let inside = in_vectors(vectors, 1);
        Some(Together { rows, least: least.max(lanes), interval: interior.interval(), before, inside })
    }
}

/// The loops over the interval of a row, in vectors: several side by side, one or as many as make up the lanes of a leaf, and a
/// part of one. So many iterations of the second loop are printed as one.
fn in_vectors(vectors: InVectors, unrolled: usize) -> Vec<For> {
    let lanes = vectors.lanes;
    let kind = || Kind::Lanes(lanes);
    let iterations = |first, body| Node::Iterations(Run { first, body });
    let jammed = vectors.jammed.into_iter().map(|(sides, body)| For {
        kind: kind(),
        over: Over::Interior { step: sides * lanes, unrolled: 1 },
        body: vec![iterations(First::Sides(sides), body)],
    });
    let step = lanes * vectors.whole.len();
    let each = vectors.whole.into_iter().enumerate();
    let whole = For {
        kind: kind(),
        over: Over::Interior { step, unrolled },
        body: each.map(|(u, body)| iterations(First::At(u * lanes), body)).collect(),
    };
    let tail = vectors.tail.map(|body| For {
        kind: kind(),
        over: Over::Tail,
        body: vec![iterations(First::At(0), body)],
    });
    jammed.chain([whole]).chain(tail).collect()
}
