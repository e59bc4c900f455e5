//! The forms of an iteration. Input: a parallel loop and what analyses say of it; output: the body of an iteration in one form,
//! made from the program by some of the steps of its target, in the order of its list (`transform::pipeline`).
//!
//! A body is verified after each step in debug builds, and shown where `EBBTIDE_DUMP=kernel` asks for it. Which forms a loop has,
//! and which iterations run in which, the targets decide.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::leaf::LANES;
use ebbtide_ir::{ArrayId, Block, Facts, Par, Program, Stmt as Source, Type, ValueId};

use crate::analysis::address_reuse::{always_touched, own_elements};
use crate::analysis::assertions::Around;
use crate::analysis::boundary_conditions::{
    FarFromBoundaries, conditions_far_from_boundaries, statements_of,
};
use crate::analysis::bounds_proof::Proof;
use crate::analysis::columns_side_by_side::ColumnsSideBySide;
use crate::analysis::gathers::Gathers;
use crate::analysis::grid_form::Terms;
use crate::analysis::interior::{Interior, Unproved};
use crate::analysis::lane_order::in_lane_order;
use crate::analysis::names::{reductions, sharing, values_inside};
use crate::analysis::narrow_index::Narrow;
use crate::analysis::remainders::Remainders;
use crate::analysis::rows_side_by_side::RowsSideBySide;
use crate::analysis::vectors::{more_side_by_side, side_by_side};
use crate::kernel::grid::{self, Grid};
use crate::kernel::interchange::{self, Interchanged};
use crate::kernel::interval::{Before, Interval, Narrowing, Rows};
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::nest::{self, Nest};
use crate::kernel::show::{is_wanted, show};
use crate::kernel::stmt::{Body, Check, Part, Stmt, visit_mut};
use crate::kernel::verify::verify;
use crate::transform::address_reuse::{addresses, reuse_addresses};
use crate::transform::ahead::ahead;
use crate::transform::checks::{faults_aside, faults_at_end, without_checks};
use crate::transform::hold_elements::hold_elements;
use crate::transform::interior::{hoist_invariants, in_interior};
use crate::transform::join_updates::join_updates;
use crate::transform::lanes_of_sums::lanes_of_sums;
use crate::transform::lower::{Lowering, Shared, Team};
use crate::transform::narrow_index::narrow_index;
use crate::transform::predicate::predicate;
use crate::transform::remainders::choose_remainders;
use crate::transform::row_tiles::row_tiles;
use crate::transform::sides::{PerSide, jam, jam_columns, jam_rows, of_side};
use crate::transform::sink_stores::sink_stores;
use crate::transform::specialise::specialise;
use crate::transform::step::Step;
use crate::transform::vectorise::{Idle, Iterations as Neighbours, Vectors, vectorise};
use crate::transform::windows::windows;

/// A parallel loop whose iterations have several forms: what these have in common.
#[derive(Clone, Copy)]
pub(crate) struct Iterations<'a> {
    pub par: &'a Par,
    pub shared: &'a Shared,
    pub team: Team,
}

/// What is known of iterations without checks.
#[derive(Clone, Copy)]
pub(crate) struct Proved<'a> {
    /// The index values that are numbers.
    pub exact: &'a BTreeSet<ValueId>,
    /// The index values that fit the narrow type, where it is used.
    pub narrow: &'a Narrow,
    /// The remainders whose divisors are not zero.
    pub remainders: &'a Remainders,
}

impl<'a> Proved<'a> {
    /// What a proof says, where the narrow type is not used.
    pub fn wide(proof: &'a Proof) -> Proved<'a> {
        static NONE: Narrow = Narrow::new();
        Proved { exact: &proof.exact, narrow: &NONE, remainders: &proof.remainders }
    }
}

/// The interior of a loop in vectors.
pub(crate) struct InVectors {
    pub lanes: usize,
    /// So many vectors of iterations side by side, where the body has loops: the most first.
    pub jammed: Vec<(usize, Body)>,
    /// One vector, or those that make up the lanes of a leaf.
    pub whole: Vec<Body>,
    /// The first lanes of one, for the iterations that are left; leaves have whole vectors alone.
    pub tail: Option<Body>,
}

/// The interior of several rows in vectors.
pub(crate) struct RowsInVectors {
    pub rows: usize,
    /// What is computed before the innermost loop.
    pub before: Body,
    /// So many vectors of each row side by side.
    pub jammed: (usize, Body),
    pub whole: Body,
    pub tail: Body,
}

/// Makes the forms of iterations.
pub(crate) struct Forms<'p> {
    program: &'p Program,
    facts: &'p Facts,
    pub fresh: Fresh,
    /// The steps of the target, in order.
    steps: &'static [Step],
    /// Those of them that are left out.
    left_out: BTreeSet<Step>,
    /// The last step of the body that is being made.
    reached: Step,
    /// Are bodies shown after each step?
    shows: bool,
    /// The loops around each assertion of the segment.
    pub assertions: BTreeMap<ValueId, Around>,
}

impl<'p> Forms<'p> {
    /// The forms of a program's iterations for a target with these steps; `EBBTIDE_WITHOUT` names those that are left out.
    pub fn of(program: &'p Program, facts: &'p Facts, steps: &'static [Step]) -> Forms<'p> {
        let left_out =
            std::env::var("EBBTIDE_WITHOUT").map_or(BTreeSet::new(), |names| Step::left_out(&names));
        Forms {
            program,
            facts,
            fresh: Fresh::default(),
            steps,
            left_out,
            reached: Step::Lower,
            shows: is_wanted(),
            assertions: BTreeMap::new(),
        }
    }
}

impl Forms<'_> {
    /// Is a step left out, or none of this target?
    pub fn leaves_out(&self, step: Step) -> bool {
        !self.steps.contains(&step) || self.left_out.contains(&step)
    }

    /// A body goes through the steps of its target in their order. Some steps make several bodies of one.
    fn comes_to(&mut self, step: Step) {
        let place = |step: Step| self.steps.iter().position(|other| *other == step);
        let begins = matches!(
            step,
            Step::Lower | Step::Vectorise | Step::Sides | Step::Windows | Step::RowTiles | Step::Ahead
        );
        debug_assert!(begins || place(self.reached) < place(step), "{step:?} after {:?}", self.reached);
        self.reached = step;
    }

    /// What iterations on a grid may do with terms.
    pub fn terms(&self) -> Terms {
        Terms {
            kept: !self.leaves_out(Step::KeptTerms),
            noted: !self.leaves_out(Step::NotedTerms),
            chained: !self.leaves_out(Step::SumChains),
        }
    }

    /// The interval of a row in which iterations are in the interior: nothing, where that step is left out.
    pub fn interval(&self, interior: &Interior) -> Interval {
        match self.leaves_out(Step::Interior) {
            true => Interval { before: Vec::new(), narrowings: vec![Narrowing::Empty], rows: Rows::Each },
            false => interior.interval(),
        }
    }

    /// Makes a step: the body after it, or the same where the step is left out.
    fn step(&mut self, step: Step, body: Body, make: impl FnOnce(Body, &mut Fresh) -> Body) -> Body {
        if self.leaves_out(step) {
            return body;
        }
        self.comes_to(step);
        let body = make(body, &mut self.fresh);
        self.after(step, &body);
        body
    }

    /// Looks at what a step has made.
    fn after(&self, step: Step, body: &Body) {
        debug_assert_eq!(
            verify(self.program, body),
            Ok(()),
            "after {}:\n{}",
            step.name(),
            show(self.program, body)
        );
        if self.shows {
            eprintln!("// after {}:\n{}", step.name(), show(self.program, body));
        }
    }

    /// Looks at the loops around iterations.
    pub fn made(&self, nest: &Nest) {
        debug_assert_eq!(nest::verify::verify(nest), Ok(()), "{}", nest::show::show(self.program, nest));
        if self.shows {
            eprintln!("// the loops around iterations:\n{}", nest::show::show(self.program, nest));
        }
    }

    /// Looks at the loops around iterations on a grid.
    pub fn made_grid(&self, grid: &Grid) {
        debug_assert_eq!(grid::verify::verify(grid), Ok(()), "{}", grid::show::show(self.program, grid));
        if self.shows {
            eprintln!("// the loops around iterations:\n{}", grid::show::show(self.program, grid));
        }
    }

    /// Looks at a loop inside its parallel loops.
    pub fn made_interchanged(&self, tree: &Interchanged) {
        let shown = || interchange::show::show(self.program, tree);
        debug_assert_eq!(interchange::verify::verify(self.program, tree), Ok(()), "{}", shown());
        if self.shows {
            eprintln!("// loop {} inside its parallel loops:\n{}", tree.source.id.index(), shown());
        }
    }

    /// The statements of an iteration in which every index is checked at once.
    pub fn lowered(&mut self, it: &Iterations, block: &Block, exact: &BTreeSet<ValueId>) -> Body {
        let (Iterations { shared, team, .. }, sharing) = (*it, sharing(self.facts, it.par));
        let assertions = std::mem::take(&mut self.assertions);
        let lowering = Lowering {
            program: self.program,
            exact,
            sharing: &sharing,
            shared,
            team,
            assertions: &assertions,
        };
        let body = self.step(Step::Lower, Body::new(), |_, fresh| lowering.body(block, fresh));
        self.assertions = assertions;
        body
    }

    /// One iteration, every index checked at once.
    pub fn checked_at_once(&mut self, it: &Iterations) -> Body {
        self.lowered(it, &it.par.body, &BTreeSet::new())
    }

    /// One iteration, every index checked: at the end, where that is legal.
    pub fn careful(&mut self, it: &Iterations) -> Body {
        let body = self.checked_at_once(it);
        self.step(Step::FaultsAtEnd, body, |body, fresh| faults_at_end(&body, fresh).unwrap_or(body))
    }

    /// One iteration, every index checked, whose faults are reported behind the loop.
    pub fn careful_aside(&mut self, it: &Iterations) -> Body {
        let body = self.checked_at_once(it);
        self.step(Step::FaultsAside, body, |body, _| faults_aside(body))
    }

    /// One iteration of the interior.
    pub fn of_interior(&mut self, it: &Iterations, interior: &Interior) -> Body {
        let program = self.program;
        let body = self.lowered(it, &it.par.body, &interior.exact);
        self.step(Step::Interior, body, |body, _| in_interior(body, program, interior, innermost(it.par)))
    }

    /// One iteration of the interior, what is left to check checked at the end, where that is legal.
    pub fn of_interior_at_end(&mut self, it: &Iterations, interior: &Interior) -> Body {
        let body = self.of_interior(it, interior);
        self.step(Step::FaultsAtEnd, body, |body, fresh| faults_at_end(&body, fresh).unwrap_or(body))
    }

    /// Are most elements that the interior touches checked all the same, since data say which they are?
    pub fn is_mostly_checked(&mut self, it: &Iterations, interior: &Interior) -> bool {
        let (mut body, mut checked, mut all) = (self.of_interior(it, interior), 0, 0);
        visit_mut(&mut body, &mut |stmt| {
            if let Some(element) = stmt.element_mut() {
                all += 1;
                checked += usize::from(element.check == Check::AtOnce);
            }
        });
        2 * checked >= all.max(1)
    }

    /// One iteration of the interior, with what is the same in all iterations of a loop before the loop, and updates
    /// of one element together.
    pub fn hoisted(&mut self, it: &Iterations, interior: &Interior) -> Body {
        let (program, facts, body) = (self.program, self.facts, self.of_interior(it, interior));
        let body = self.step(Step::HoistInvariants, body, |body, _| {
            hoist_invariants(body, program, &interior.unproved, &it.par.body)
        });
        self.step(Step::JoinUpdates, body, |body, _| join_updates(body, &facts.affines))
    }

    /// A body of the interior whose loops with sums take their iterations in vectors of so many bytes, where that pays.
    pub fn with_lanes_of_sums(&mut self, body: Body, vector_bytes: usize) -> Body {
        self.step(Step::LanesOfSums, body, |body, fresh| lanes_of_sums(body, vector_bytes, fresh))
    }

    /// A body of the interior in so many lanes of this type, where `analysis::vectors` has no reason against it.
    pub fn vectors(
        &mut self,
        it: &Iterations,
        interior: &Interior,
        body: &Body,
        (element, lanes): (Type, usize),
    ) -> Option<InVectors> {
        let (program, facts, par) = (self.program, self.facts, it.par);
        if self.leaves_out(Step::Vectorise) {
            return None;
        }
        let along = Neighbours { program, interior, innermost: innermost(par) };
        let (idle, gathers) = (Idle::Present, &Gathers::default());
        let form = |part, vector| Vectors {
            along: &along,
            element,
            lanes,
            part,
            vector,
            at_once: lanes,
            idle,
            gathers,
        };
        let sums = !reductions(facts, par).is_empty();
        let count = if sums { LANES / lanes } else { 1 };
        let whole: Option<Vec<Body>> =
            (0..count).map(|u| self.in_vector(body, form(Part::Whole, u))).collect();
        let whole = whole?;
        let (jammed, tail) = match (sums, &whole[..]) {
            (false, [whole]) => {
                let by_lanes = in_lane_order((program, facts), par, interior);
                let sides = side_by_side((program, facts), par, interior, element, &by_lanes);
                let jammed = match sides.filter(|_| !self.leaves_out(Step::Jam)) {
                    None => Vec::new(),
                    Some(sides) => {
                        let at_once = Vectors { at_once: sides * lanes, ..form(Part::Whole, 0) };
                        let one = match is_partly(whole) {
                            true => self.in_vector(body, at_once)?,
                            false => whole.clone(),
                        };
                        let varying = &interior.varying;
                        let own = PerSide::from((varying.values.clone(), varying.locals.clone()));
                        self.comes_to(Step::Jam);
                        let more = more_side_by_side(par, lanes * element.size());
                        let more = more.filter(|more| *more > sides && !is_partly(whole));
                        let all = more.into_iter().chain([sides]);
                        let all: Vec<(usize, Body)> =
                            all.map(|sides| (sides, jam(one.clone(), &own, sides))).collect();
                        for (_, body) in &all {
                            self.after(Step::Jam, body);
                        }
                        all
                    }
                };
                (jammed, Some(self.in_vector(body, form(Part::Tail, 0))?))
            }
            _ => (Vec::new(), None),
        };
        let ty = Ty::Vector(element, lanes);
        let mut in_tiles = |body| {
            let body = self.step(Step::Windows, body, |body, fresh| windows(body, &facts.affines, ty, fresh));
            let body =
                self.step(Step::RowTiles, body, |body, fresh| row_tiles(body, &facts.affines, ty, fresh));
            self.step(Step::Ahead, body, |body, fresh| ahead(body, ty, fresh))
        };
        let count = jammed.len();
        let in_tiles_too = jammed.into_iter().enumerate().filter_map(|(k, (sides, body))| {
            let tiled = in_tiles(body.clone());
            // What loops hand on or turn round needs the registers that more vectors would have.
            (k + 1 == count || tiled == body).then_some((sides, tiled))
        });
        let jammed = in_tiles_too.collect();
        let whole = whole.into_iter().map(in_tiles).collect();
        Some(InVectors { lanes, jammed, whole, tail })
    }

    /// A body of the interior in so many lanes of this type, with loads at indices from data: whole vectors alone.
    pub fn vectors_with_gathers(
        &mut self,
        it: &Iterations,
        interior: &Interior,
        body: &Body,
        (element, lanes): (Type, usize),
        gathers: &Gathers,
    ) -> Option<InVectors> {
        if [Step::Vectorise, Step::Gathers].iter().any(|step| self.leaves_out(*step)) {
            return None;
        }
        let along = Neighbours { program: self.program, interior, innermost: innermost(it.par) };
        let (part, idle) = (Part::Whole, Idle::Present);
        let form = Vectors { along: &along, element, lanes, part, vector: 0, at_once: lanes, idle, gathers };
        self.comes_to(Step::Vectorise);
        let whole = vectorise(body, form, &mut self.fresh)?;
        self.after(Step::Gathers, &whole);
        Some(InVectors { lanes, jammed: Vec::new(), whole: vec![whole], tail: None })
    }

    /// The first lanes of a vector of iterations anywhere in a row, for loops whose accesses are proved.
    pub fn ends_of_rows(
        &mut self,
        it: &Iterations,
        interior: &Interior,
        (element, lanes): (Type, usize),
    ) -> Option<Body> {
        let program = self.program;
        let body = self.lowered(it, &it.par.body, &interior.exact);
        let body = in_interior(body, program, interior, innermost(it.par));
        let along = Neighbours { program, interior, innermost: innermost(it.par) };
        let idle = Idle::Absent(Variable::Mask(self.fresh.next()).into());
        let (part, vector, at_once) = (Part::Tail, 0, lanes);
        self.comes_to(Step::RowEnds);
        let body = vectorise(
            &body,
            Vectors {
                along: &along,
                element,
                lanes,
                part,
                vector,
                at_once,
                idle,
                gathers: &Gathers::default(),
            },
            &mut self.fresh,
        )?;
        self.after(Step::RowEnds, &body);
        Some(body)
    }

    /// Iterations of several rows side by side, in the interior of the whole domain, in so many lanes of this type: where
    /// `analysis::rows_side_by_side` says that it pays, and no other step has a better form.
    pub fn rows_side_by_side(
        &mut self,
        it: &Iterations,
        interior: &Interior,
        shape: RowsSideBySide,
        (element, lanes): (Type, usize),
    ) -> Option<RowsInVectors> {
        let (program, facts, par) = (self.program, self.facts, it.par);
        if [Step::Interior, Step::Vectorise, Step::Jam, Step::JamRows].iter().any(|s| self.leaves_out(*s)) {
            return None;
        }
        let RowsSideBySide { rows, columns, between } = shape;
        let one = self.hoisted(it, interior);
        let along = Neighbours { program, interior, innermost: innermost(par) };
        let (idle, gathers) = (Idle::Present, &Gathers::default());
        let form =
            |part| Vectors { along: &along, element, lanes, part, vector: 0, at_once: lanes, idle, gathers };
        let whole = self.in_vector(&one, form(Part::Whole))?;
        let tail = self.in_vector(&one, form(Part::Tail))?;
        let varying = &interior.varying;
        let jammed = jam(whole.clone(), &(varying.values.clone(), varying.locals.clone()).into(), columns);
        let mut own = PerSide::from((between.values, between.locals));
        let early = interior.interval().before.into_iter();
        let lets = early.filter_map(|before| match before {
            Before::Value(v) => Some(Source::Let(v)),
            Before::Wrapped { .. } => None,
        });
        let before = self.lowered(it, &lets.collect(), &interior.exact);
        self.comes_to(Step::Vectorise);
        self.comes_to(Step::JamRows);
        let [before, whole, tail] = [before, whole, tail].map(|body| jam_rows(body, &own, rows));
        own.within = columns;
        let jammed = jam_rows(jammed, &own, rows);
        let (before, whole, tail, jammed) = (before?, whole?, tail?, jammed?);
        for body in [&before, &whole, &tail, &jammed] {
            self.after(Step::JamRows, body);
        }
        // Rows whose loops hand elements on, or turn squares of them round, have their best form one by one.
        let ty = Ty::Vector(element, lanes);
        let others = windows(whole.clone(), &facts.affines, ty, &mut self.fresh);
        let others = row_tiles(others, &facts.affines, ty, &mut self.fresh);
        let plain = ahead(others, ty, &mut self.fresh) == whole;
        plain.then_some(RowsInVectors { rows, before, jammed: (columns, jammed), whole, tail })
    }

    fn in_vector(&mut self, body: &Body, form: Vectors) -> Option<Body> {
        self.comes_to(Step::Vectorise);
        let body = vectorise(body, form, &mut self.fresh)?;
        self.after(Step::Vectorise, &body);
        Some(body)
    }

    /// One iteration without checks, as it stands in the source but for jumps.
    pub fn in_order(&mut self, it: &Iterations, proved: Proved) -> Body {
        let body = self.lowered(it, &it.par.body, proved.exact);
        let body = self.without_checks(it, body);
        let body = self.remainders_chosen(body, proved);
        self.step(Step::Predicate, body, predicate)
    }

    /// A body without checks, in which what is the same in all iterations of a loop inside another one stands before it.
    fn without_checks(&mut self, it: &Iterations, body: Body) -> Body {
        let program = self.program;
        let body = self.step(Step::WithoutChecks, body, |body, _| without_checks(body));
        self.step(Step::HoistInvariants, body, |mut body, _| {
            // Before the outermost loop it would wait in registers that this one needs.
            for block in body.iter_mut().flat_map(Stmt::blocks_mut) {
                *block = hoist_invariants(std::mem::take(block), program, &Unproved::new(), &it.par.body);
            }
            body
        })
    }

    /// The iterations of a short row, without checks, side by side.
    pub fn columns_in_order(&mut self, it: &Iterations, proved: Proved, shape: &ColumnsSideBySide) -> Body {
        let ColumnsSideBySide { columns, between, decided, .. } = shape;
        let own = PerSide::from((between.values.clone(), between.locals.clone()));
        let body = self.lowered(it, &it.par.body, proved.exact);
        let body = self.without_checks(it, body);
        let body = self.step(Step::Specialise, body, |body, _| specialise(body, decided));
        let body = self.remainders_chosen(body, proved);
        let body = self.step(Step::JamColumns, body, |body, _| jam_columns(body, &own, *columns));
        self.step(Step::Predicate, body, predicate)
    }

    fn remainders_chosen(&mut self, body: Body, proved: Proved) -> Body {
        let (program, Proved { narrow, remainders, .. }) = (self.program, proved);
        self.step(Step::Remainders, body, |body, _| choose_remainders(body, program, remainders, narrow))
    }

    /// One iteration of a parallel loop inside which a time loop runs: elements of these arrays at its own index are in
    /// variables.
    pub fn holding(&mut self, it: &Iterations, held: &BTreeSet<ArrayId>, proved: Option<&Proof>) -> Body {
        let facts = self.facts;
        let variables: Vec<ValueId> = it.par.ranges.iter().map(|r| r.var).collect();
        let body = self.lowered(it, &it.par.body, proved.map_or(&BTreeSet::new(), |proof| &proof.exact));
        let body =
            self.step(Step::HoldElements, body, |body, _| hold_elements(body, facts, held, &variables));
        let Some(proof) = proved else { return body };
        let body = self.step(Step::WithoutChecks, body, |body, _| without_checks(body));
        let body = self.remainders_chosen(body, Proved::wide(proof));
        self.step(Step::Predicate, body, predicate)
    }

    /// What conditions are far from boundaries, where they tell boundaries.
    pub fn far_from_boundaries(&self, par: &Par) -> FarFromBoundaries {
        match self.leaves_out(Step::Specialise) {
            true => FarFromBoundaries::new(),
            false => conditions_far_from_boundaries(self.program, &values_inside(par), par),
        }
    }

    /// The statements that compute these conditions for the iteration with this number.
    pub fn conditions(
        &mut self,
        it: &Iterations,
        proved: Proved,
        decided: &FarFromBoundaries,
        (own, side): (&PerSide, usize),
    ) -> Body {
        let (program, inside) = (self.program, values_inside(it.par));
        let body = self.lowered(it, &statements_of(program, &inside, it.par, decided), proved.exact);
        let body =
            self.step(Step::NarrowIndex, body, |body, _| narrow_index(body, program, proved.narrow, &inside));
        let body = self.remainders_chosen(body, proved);
        self.step(Step::Sides, body, |body, _| of_side(body, own, side))
    }

    /// So many iterations side by side, without checks, in which these conditions are decided.
    pub fn proved_form(
        &mut self,
        it: &Iterations,
        proved: Proved,
        (own, sides): (&PerSide, usize),
        decided: &FarFromBoundaries,
    ) -> Body {
        let (program, facts, inside) = (self.program, self.facts, values_inside(it.par));
        let touched = match self.leaves_out(Step::AddressReuse) {
            true => Vec::new(),
            false => {
                let mut touched = always_touched(program, decided, &it.par.body);
                touched.extend(own_elements(program, &facts.affines, it.par));
                touched
            }
        };
        let (mut body, near) = addresses((program, facts), it.par, &touched, (own, sides), &mut self.fresh);
        let one = self.lowered(it, &it.par.body, proved.exact);
        let one = self.step(Step::WithoutChecks, one, |one, _| without_checks(one));
        let one = self.step(Step::Specialise, one, |one, _| specialise(one, decided));
        let one =
            self.step(Step::NarrowIndex, one, |one, _| narrow_index(one, program, proved.narrow, &inside));
        let one = self.remainders_chosen(one, proved);
        let mut each = Vec::new();
        for side in 0..sides {
            let one = self.step(Step::Sides, one.clone(), |one, _| of_side(one, own, side));
            let one = self.step(Step::Predicate, one, predicate);
            each.push(reuse_addresses(one, facts, &near, side));
        }
        match self.leaves_out(Step::SinkStores) {
            true => body.extend(each.into_iter().flatten()),
            false => body.extend(sink_stores(each, &mut self.fresh)),
        }
        self.after(Step::SinkStores, &body);
        body
    }
}

/// Has a body loops of which lanes have different iterations? The depth of recursion is that of nesting in the source.
fn is_partly(body: &Body) -> bool {
    let own = |stmt: &Stmt| matches!(stmt, Stmt::Loop(l) if l.partly.is_some());
    body.iter().any(|stmt| own(stmt) || stmt.blocks().into_iter().any(is_partly))
}

/// The name of the innermost variable of a parallel loop.
pub(crate) fn innermost(par: &Par) -> Name {
    Name::value(par.ranges[par.ranges.len() - 1].var)
}
