//! The forms of an iteration, each made from the program by a list of steps. A body is verified after each step in debug
//! builds, and shown where `EBBTIDE_DUMP=kernel` asks for it.
//!
//! A loop without checks may have conditions over its indices: they tell what happens at boundaries, and far from them each
//! is always true or always false. Nearly all iterations are such, so these have a text of their own, in which the
//! conditions are decided: no predicates, and no values for what is not loaded. A warp takes it where all its iterations
//! are of that kind.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Block, Par, Store, ValueId};

use crate::analysis::address_reuse::always_touched;
use crate::analysis::boundary_conditions::{Usual, statements_of, usual_conditions};
use crate::analysis::interior::Interior;
use crate::analysis::narrow_index::{Narrow, compared_with};
use crate::analysis::work::all_values;
use crate::kernel::machine::Family;
use crate::kernel::name::{Fresh, Name, Variable};
use crate::kernel::show::show;
use crate::kernel::stmt::Body;
use crate::kernel::verify::verify;
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;
use crate::print::statements::Context;
use crate::transform::address_reuse::{addresses, reuse_addresses};
use crate::transform::checks::{faults_aside, faults_at_end, without_checks};
use crate::transform::hold_elements::hold_elements;
use crate::transform::interior::{hoist_invariants, in_interior};
use crate::transform::lower::{Lowering, Shared};
use crate::transform::narrow_index::narrow_index;
use crate::transform::predicate::predicate;
use crate::transform::sides::{PerSide, jam, of_side};
use crate::transform::sink_stores::sink_stores;
use crate::transform::specialise::specialise;
use crate::transform::step::Step;
use crate::transform::vectorise::{Vectors, vectorise};

/// A parallel loop whose iterations are printed in several forms: what these have in common.
#[derive(Clone, Copy)]
pub(crate) struct Iterations<'a> {
    pub par: &'a Par,
    /// The reductions, in source order.
    pub reductions: &'a [&'a Store],
    pub shared: &'a Shared<'a>,
    pub cx: Context,
}

/// What is known of iterations without checks.
#[derive(Clone, Copy)]
pub(crate) struct Proved<'a> {
    /// The index values that are numbers.
    pub exact: &'a BTreeSet<ValueId>,
    /// The index values that fit the narrow type, where it is used.
    pub narrow: &'a Narrow,
}

impl Emitter<'_> {
    /// Makes a step: the body after it, or the same where the step is left out.
    fn step(&mut self, step: Step, body: Body, make: impl FnOnce(Body, &mut Fresh) -> Body) -> Body {
        if self.left_out.contains(&step) {
            return body;
        }
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

    /// The statements of an iteration in which every index is checked at once.
    pub fn lowered(&mut self, it: &Iterations, block: &Block, exact: &BTreeSet<ValueId>) -> Body {
        let Iterations { reductions, shared, cx, .. } = *it;
        let lowering = Lowering { program: self.program, exact, reductions, shared, team: cx.team };
        self.step(Step::Lower, Body::new(), |_, fresh| lowering.body(block, fresh))
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
        let body = self
            .step(Step::Interior, body, |body, _| in_interior(body, program, interior, innermost(it.par)));
        match self.family {
            Family::C => self.step(Step::HoistInvariants, body, |body, _| {
                hoist_invariants(body, program, interior, &it.par.body)
            }),
            Family::Cuda => body,
        }
    }

    /// A body of the interior in vectors, where it has such a form.
    pub fn in_vectors(&mut self, body: &Body, form: Vectors) -> Option<Body> {
        if self.left_out.contains(&Step::Vectorise) {
            return None;
        }
        let body = vectorise(body, form, &mut self.fresh)?;
        self.after(Step::Vectorise, &body);
        Some(body)
    }

    /// So many vectors of iterations side by side.
    pub fn jammed(&mut self, body: &Body, own: &PerSide, sides: usize) -> Option<Body> {
        if self.left_out.contains(&Step::Jam) {
            return None;
        }
        let body = jam(body.clone(), own, sides);
        self.after(Step::Jam, &body);
        Some(body)
    }

    /// One iteration without checks, as it stands in the source but for jumps.
    pub fn in_order(&mut self, it: &Iterations, proved: Proved) -> Body {
        let body = self.lowered(it, &it.par.body, proved.exact);
        let body = self.step(Step::WithoutChecks, body, |body, _| without_checks(body));
        self.step(Step::Predicate, body, predicate)
    }

    /// One iteration of a parallel loop inside which a time loop runs: elements of these arrays at its own index are in
    /// variables.
    pub fn holding(
        &mut self,
        it: &Iterations,
        held: &BTreeSet<ArrayId>,
        proved: Option<&BTreeSet<ValueId>>,
    ) -> Body {
        let facts = self.facts;
        let variables: Vec<ValueId> = it.par.ranges.iter().map(|r| r.var).collect();
        let body = self.lowered(it, &it.par.body, proved.unwrap_or(&BTreeSet::new()));
        let body =
            self.step(Step::HoldElements, body, |body, _| hold_elements(body, facts, held, &variables));
        if proved.is_none() {
            return body;
        }
        let body = self.step(Step::WithoutChecks, body, |body, _| without_checks(body));
        self.step(Step::Predicate, body, predicate)
    }

    /// Prints so many iterations side by side, without checks: where conditions tell boundaries, in two texts, of which one is
    /// for iterations far from them.
    pub fn unchecked(&mut self, it: &Iterations, proved: Proved, sides: usize) {
        let program = self.program;
        let usual = match self.left_out.contains(&Step::Specialise) {
            true => Usual::new(),
            false => usual_conditions(program, &self.inside, it.par),
        };
        let own = match sides {
            1 => PerSide::default(),
            _ => all_values(it.par).into(),
        };
        if usual.is_empty() {
            let body = self.proved_form(it, proved, (&own, sides), &usual);
            return self.body(it.cx, &body);
        }
        let lets = statements_of(program, &self.inside, it.par, &usual);
        let mut tests = Vec::new();
        line!(self, "{{");
        for side in 0..sides {
            let body = self.lowered(it, &lets, proved.exact);
            let body = narrow_index(body, program, proved.narrow, &self.inside);
            self.body(it.cx, &of_side(body, &own, side));
            tests.extend(usual.iter().map(|(v, holds)| {
                let not = if *holds { "" } else { "!" };
                format!("{not}{}", own.name(Name::value(*v), side))
            }));
        }
        line!(self, "if (__all_sync(__activemask(), {})) {{", tests.join(" && "));
        let far = self.proved_form(it, proved, (&own, sides), &usual);
        self.body(it.cx, &far);
        line!(self, "}} else {{");
        let any = self.proved_form(it, proved, (&own, sides), &Usual::new());
        self.body(it.cx, &any);
        line!(self, "}} }}");
    }

    /// So many iterations side by side, without checks, in which these conditions are decided.
    fn proved_form(
        &mut self,
        it: &Iterations,
        proved: Proved,
        (own, sides): (&PerSide, usize),
        usual: &Usual,
    ) -> Body {
        let (program, facts, inside) = (self.program, self.facts, self.inside.clone());
        let touched = match self.left_out.contains(&Step::AddressReuse) {
            true => Vec::new(),
            false => always_touched(program, usual, &it.par.body),
        };
        let (mut body, near) = addresses((program, facts), it.par, &touched, (own, sides), &mut self.fresh);
        let one = self.lowered(it, &it.par.body, proved.exact);
        let one = self.step(Step::WithoutChecks, one, |one, _| without_checks(one));
        let one = self.step(Step::Specialise, one, |one, _| specialise(one, usual));
        let one =
            self.step(Step::NarrowIndex, one, |one, _| narrow_index(one, program, proved.narrow, &inside));
        let mut each = Vec::new();
        for side in 0..sides {
            let one = self.step(Step::Sides, one.clone(), |one, _| of_side(one, own, side));
            let one = self.step(Step::Predicate, one, predicate);
            each.push(reuse_addresses(one, facts, &near, side));
        }
        match self.left_out.contains(&Step::SinkStores) {
            true => body.extend(each.into_iter().flatten()),
            false => body.extend(sink_stores(each, &mut self.fresh)),
        }
        self.after(Step::SinkStores, &body);
        body
    }

    /// Prints the narrow values that those of a loop are compared with: on entry to the segment, where they are known there.
    pub fn narrow_bounds(&mut self, par: &Par, narrow: &Narrow) {
        for v in compared_with(self.program, narrow, &self.inside, par) {
            let name = Name::from(Variable::Bound(v));
            match self.on_entry(v) {
                Some(value) => {
                    let (known, v) = (Known::Bound(v), v.index());
                    let text = format!(
                        "__shared__ nx bound{v}; if (threadIdx.x == 0) bound{v} = eb_narrow({value});\n"
                    );
                    self.entry.add(known, text);
                    line!(self, "const nx {name} = bound{v};");
                }
                None => line!(self, "const nx {name} = eb_narrow({});", self.value(v)),
            }
        }
    }
}

/// The name of the innermost variable of a parallel loop.
pub(crate) fn innermost(par: &Par) -> Name {
    Name::value(par.ranges[par.ranges.len() - 1].var)
}
