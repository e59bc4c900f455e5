//! The forms of an iteration. Input: a parallel loop and what analyses say of it; output: the body of an iteration in one form,
//! made from the program by some of the steps of its target, in the order of its list (`transform::pipeline`).
//!
//! A body is verified after each step in debug builds, and shown where `EBBTIDE_DUMP=kernel` asks for it. Which forms a loop has,
//! and which iterations run in which, the targets decide.

mod in_vectors;

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Block, Facts, Par, Program, ValueId};

pub(crate) use self::in_vectors::{InVectors, RowsInVectors};
use crate::analysis::address_reuse::{always_touched, own_elements};
use crate::analysis::assertions::Around;
use crate::analysis::boundary_conditions::{
    FarFromBoundaries, conditions_far_from_boundaries, statements_of,
};
use crate::analysis::bounds_proof::Proof;
use crate::analysis::columns_side_by_side::ColumnsSideBySide;
use crate::analysis::grid_form::Terms;
use crate::analysis::interior::{Interior, Unproved};
use crate::analysis::names::{sharing, values_inside};
use crate::analysis::narrow_index::Narrow;
use crate::analysis::remainders::Remainders;
use crate::kernel::grid::{self, Grid};
use crate::kernel::interchange::{self, Interchanged};
use crate::kernel::interval::{Interval, Narrowing, Rows};
use crate::kernel::name::{Fresh, Name};
use crate::kernel::nest::{self, Nest};
use crate::kernel::show::{is_wanted, show};
use crate::kernel::stmt::{Body, Check, Stmt, visit_mut};
use crate::kernel::verify::verify;
use crate::transform::address_reuse::{addresses, reuse_addresses};
use crate::transform::checks::{faults_aside, faults_at_end, without_checks};
use crate::transform::hold_elements::hold_elements;
use crate::transform::interior::{hoist_invariants, in_interior};
use crate::transform::join_updates::join_updates;
use crate::transform::lanes_of_sums::lanes_of_sums;
use crate::transform::lower::{Lowering, Shared, Team};
use crate::transform::narrow_index::narrow_index;
use crate::transform::predicate::predicate;
use crate::transform::remainders::choose_remainders;
use crate::transform::sides::{PerSide, jam_columns, of_side};
use crate::transform::sink_stores::sink_stores;
use crate::transform::specialise::specialise;
use crate::transform::step::Step;

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

/// The name of the innermost variable of a parallel loop.
pub(crate) fn innermost(par: &Par) -> Name {
    Name::value(par.ranges[par.ranges.len() - 1].var)
}
