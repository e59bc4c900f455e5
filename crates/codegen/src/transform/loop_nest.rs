//! The loops around iterations. Input: a parallel loop and what analyses say of it; output: a tree.
//!
//! For the threads of a CPU: each takes a share of the rows, of the columns of the one row, or of the leaves of sums; a row has an
//! interior, in vectors where `analysis::vectors` names no reason against and `analysis::vector_costs` says that they pay.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Combine, Facts, Literal, Par, Program, Store, Type, ValueId};

use crate::analysis::bucket_scatter::{BucketScatter, bucket_scatter};
use crate::analysis::flat_rows::flat_rows;
use crate::analysis::interior::{Decide, Interior, interior};
use crate::analysis::kept_terms::threads_keep_terms;
use crate::analysis::names::{scatters, values_inside};
use crate::analysis::varying::vector_element;
use crate::analysis::vector_costs::VectorCosts;
use crate::analysis::vectors::{Vectors, refusal};
use crate::analysis::work::{is_light, keeps_order, work};
use crate::kernel::interval;
use crate::kernel::machine::{Target, Threads};
use crate::kernel::nest::{
    Buckets, First, For, Interiors, Iterations as Run, Kind, Nest, Node, Order, Over, Row,
};
use crate::transform::forms::{Forms, InVectors, Iterations};
use crate::transform::lower::{Shared, Team};
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
        if let Some(buckets) = self.buckets(forms, &inside) {
            let (ranges, order) = (par.ranges.clone(), Order::OfProgram);
            let nest =
                Nest { ranges, order, reductions: Vec::new(), body: Vec::new(), buckets: Some(buckets) };
            forms.made(&nest);
            return nest;
        }
        let exit = forms.fresh.next();
        // Ordered sums at shared elements are taken by one thread.
        let kind = match scatters(facts, par) {
            true => Kind::Seq,
            false => Kind::Threads(work(program, &inside, &par.body)),
        };
        let as_one = self.rows_as_one(forms, &inside);
        let columns = if as_one.is_none() && reductions.is_empty() { self.by_columns(&inside) } else { None };
        let (order, exchanged) = match &columns {
            Some(columns) => (Order::Exchanged, ParallelLoop { par: columns, ..*self }),
            None => (Order::OfProgram, *self),
        };
        let rows = exchanged.rows(forms, &inside, as_one);
        let over = match (reductions, order, &par.ranges[..]) {
            ([], Order::OfProgram, [_]) => Over::Columns { aligned: ALIGNED },
            ([], Order::OfProgram, _) => Over::Rows(Interiors::OfEach),
            // The same thread runs an iteration as ever.
            ([], Order::Exchanged, _) => Over::Columns { aligned: 1 },
            _ if self.keeps_terms() => Over::Terms,
            _ => Over::Leaves,
        };
        let shares = For { kind, over, body: vec![Node::For(rows)] };
        let nest = Nest {
            ranges: exchanged.par.ranges.clone(),
            order,
            reductions: reductions.iter().map(|(how, s)| (*how, program.array(s.array).ty)).collect(),
            body: vec![Node::For(shares), Node::Label(exit)],
            buckets: None,
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
        let it = Iterations { par, reductions: &[], shared: &shared, team: Team::Alone };
        let interior = interior(program, par, inside, Decide::Columns);
        let body = vec![Node::Iterations(Run { first: First::At(0), body: forms.hoisted(&it, &interior) })];
        let inside_row = For { kind: Kind::Seq, over: Over::Interior { step: 1, unrolled: 1 }, body };
        let careful = forms.checked_at_once(&it);
        let row = Row { interval: interior.interval(), least: 0, careful, inside: vec![inside_row] };
        let work = work(program, inside, &par.body);
        Some(Buckets { tables, work, terms, bytes, row, exit: forms.fresh.next() })
    }

    /// Do iterations keep their terms, so that several threads share a leaf?
    fn keeps_terms(&self) -> bool {
        self.target.threads == Threads::Several && threads_keep_terms(self.program, self.facts, self.par)
    }

    /// The loop over the rows of a share.
    fn rows(&self, forms: &mut Forms, inside: &BTreeSet<ValueId>, as_one: Option<BTreeSet<ArrayId>>) -> For {
        let ParallelLoop { program, par, .. } = *self;
        let several = par.ranges.len() > 1;
        let interior = interior(program, par, inside, Decide::Columns);
        let at_corners = several && interior.rows == interval::Rows::Corners;
        let as_one = as_one.filter(|_| at_corners);
        let stores: Vec<&Store> = self.reductions.iter().map(|r| r.1).collect();
        let it = Iterations { par, reductions: &stores, shared: &Shared::default(), team: Team::Alone };
        let careful = forms.checked_at_once(&it);
        let one = forms.hoisted(&it, &interior);
        let (mut least, mut vectors) = (0, None);
        if let Some((element, lanes)) = self.vector_type(&interior) {
            let costs = VectorCosts::of(program, par, &interior, lanes);
            let short = if several { costs.short_row() } else { 0 };
            // Rows that may be taken as one are not as short as the program says.
            let row = row_length(program, par).filter(|_| as_one.is_none());
            if costs.pay() && row.is_none_or(|row| row >= short as i64) {
                vectors = forms.vectors(&it, &interior, &one, (element, lanes));
                least = if row.is_none() && vectors.is_some() { short } else { 0 };
            }
        }
        let loops = match vectors {
            Some(vectors) => in_vectors(vectors, if is_light(program, par) { 2 } else { 1 }),
            None => {
                let over = Over::Interior { step: 1, unrolled: 1 };
                let body = vec![Node::Iterations(Run { first: First::At(0), body: one })];
                vec![For { kind: Kind::Seq, over, body }]
            }
        };
        let row = Row { interval: interior.interval(), least, careful, inside: loops };
        let interiors = match (at_corners, as_one) {
            (_, Some(arrays)) => Interiors::AtCornersOrAsOne(arrays),
            (true, None) => Interiors::AtCorners,
            (false, None) => Interiors::OfEach,
        };
        For { kind: Kind::Seq, over: Over::Rows(interiors), body: vec![Node::Row(row)] }
    }

    /// The type and the number of lanes of vectors, where all that varies has one type and lanes may combine side by side.
    fn vector_type(&self, interior: &Interior) -> Option<(Type, usize)> {
        let facts = self.facts.pars.get(&self.par.id).cloned().unwrap_or_default();
        let element = vector_element(self.program, &interior.varying, self.par)
            .filter(|_| keeps_order(&facts, self.par))
            .filter(|e| self.reductions.iter().all(|(_, s)| self.program.array(s.array).ty == *e))?;
        Some((element, self.target.vector_bytes / element.size()))
    }

    /// The arrays whose rows a loop goes through, where these may be taken as one. An assertion says where it failed.
    fn rows_as_one(&self, forms: &Forms, inside: &BTreeSet<ValueId>) -> Option<BTreeSet<ArrayId>> {
        let asserts = inside.iter().any(|v| forms.assertions.contains_key(v));
        let fits = self.reductions.is_empty() && !asserts;
        flat_rows(self.program, self.par, inside).filter(|_| fits)
    }

    /// A loop over short rows with its ranges exchanged, where that has vectors and pays: iterations may come in any order.
    fn by_columns(&self, inside: &BTreeSet<ValueId>) -> Option<Par> {
        let ParallelLoop { program, par, .. } = *self;
        let [outer, inner] = &par.ranges[..] else { return None };
        let row = usize::try_from(row_length(program, par)?).ok()?;
        let columns = Par { ranges: vec![*inner, *outer], ..par.clone() };
        let [of_rows, of_columns] =
            [par, &columns].map(|par| interior(program, par, inside, Decide::Columns));
        let element = vector_element(program, &of_columns.varying, &columns)?;
        let lanes = self.target.vector_bytes / element.size();
        let vectors = refusal(program, &of_columns, (element, Vectors::One), &[], &par.body).is_none();
        let [rows, by_columns] =
            [&of_rows, &of_columns].map(|interior| VectorCosts::of(program, par, interior, lanes));
        let pays = row < lanes && rows.more_than(&by_columns, row);
        (vectors && !scatters(self.facts, par) && pays).then_some(columns)
    }
}

/// How many iterations a row has, where the program says.
fn row_length(program: &Program, par: &Par) -> Option<i64> {
    let range = par.ranges.last()?;
    let number = |v: ValueId| program.literal(v).and_then(Literal::to_i64);
    number(range.to)?.checked_sub(number(range.from)?)
}

/// The loops over the interval of a row, in vectors: several side by side, one or as many as make up the lanes of a leaf, and a
/// part of one. So many passes of the second loop are printed as one.
fn in_vectors(vectors: InVectors, unrolled: usize) -> Vec<For> {
    let lanes = vectors.lanes;
    let kind = || Kind::Lanes(lanes);
    let iterations = |first, body| Node::Iterations(Run { first, body });
    let jammed = vectors.jammed.map(|(sides, body)| For {
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
    jammed.into_iter().chain([whole]).chain(tail).collect()
}
