//! Parallel loops: their domains, what they require, and what is left to do behind the loops around iterations.

use std::collections::BTreeSet;

use ebbtide_ir::{Asked, Combine, Par, Range, Stmt, Store, ValueId, walk};

use crate::analysis::bounds_proof::Prover;
use crate::analysis::names::{reductions, values_inside};
use crate::kernel::bounds_test::Test;
use crate::kernel::machine::Family;
use crate::kernel::name::{Name, Ty};
use crate::kernel::segment::{Barrier, Step};
use crate::kernel::term_runs::TermRuns;
use crate::kernel::work::{TripCount, Work};
use crate::print::c_types::{c_type, neutral, to_bits};
use crate::print::emitter::{Emitter, line};
use crate::print::grid_reduction::result_of_leaf;
use crate::transform::loop_nest::ParallelLoop;

impl Emitter<'_> {
    /// How much a block computes, as a C expression. The depth of recursion is that of nesting in the source.
    pub fn work_text(&self, work: &Work) -> String {
        let blocks = work.blocks.iter().map(|(trips, work)| {
            let trips = match trips {
                TripCount::Once => "1.0".to_string(),
                TripCount::Guessed(trips) => format!("{trips}.0"),
                TripCount::Between(from, to) => {
                    format!("(f64)eb_max({} - {}, 0)", self.value(*to), self.value(*from))
                }
            };
            format!("{trips} * ({})", self.work_text(work))
        });
        [format!("{}.0", work.own)].into_iter().chain(blocks).collect::<Vec<_>>().join(" + ")
    }

    /// What a proof about the loop being printed may speak of.
    pub fn prover(&self) -> Prover<'_> {
        Prover { program: self.program, facts: self.facts, inside: &self.inside }
    }

    /// Prints a parallel loop: its domain, what it requires, and its steps.
    pub fn par(&mut self, par: &Par, steps: &[Step]) {
        let reductions = reductions(self.facts, par);
        self.inside = values_inside(par);
        self.reductions = self.reductions.max(reductions.len());
        // An element is claimed at the place that it has in its own array.
        walk(&par.body, &mut |stmt| {
            if let Stmt::Claim(claim) = stmt {
                self.same_shape(claim.array, claim.taken);
            }
        });
        let bounds: Vec<ValueId> = par.ranges.iter().flat_map(|r| [r.from, r.to]).collect();
        self.check_bounds(&bounds);
        line!(
            self,
            "{{ /* {} */",
            par.site.as_ref().map_or("parallel loop".to_string(), |s| format!("line {}", s.line))
        );
        self.domain(par);
        self.requirements(par);
        if self.family == Family::Cuda && !reductions.is_empty() {
            line!(self, "u64 *const partials = eb_partials(f);");
        }
        let for_all = steps.iter().any(|step| matches!(step, Step::CombineForAll(_)));
        let mut steps = steps;
        while let Some((step, behind)) = steps.split_first() {
            if let [
                Step::Barrier(Barrier::Always),
                Step::CombineLeaves(_),
                Step::Barrier(Barrier::Always),
                rest @ ..,
            ] = steps
                && self.family == Family::Cuda
            {
                self.meet_and_combine(par, &reductions);
                steps = rest;
                continue;
            }
            steps = behind;
            match (step, self.family) {
                (Step::Iterations(..), Family::C) => self.iterations(par, &reductions),
                (Step::Iterations(_, manner), Family::Cuda) => {
                    // What it says is there long before the iterations are over.
                    if for_all {
                        self.ask_for_elements(&reductions);
                    }
                    self.kernel_iterations(par, *manner, &reductions);
                    if for_all {
                        self.tell_elements(&reductions);
                    }
                }
                (Step::CombineLeaves(_), Family::C) => self.finish_reductions(&reductions),
                (Step::CombineLeaves(_), Family::Cuda) => self.combine_leaves(par, &reductions),
                (Step::CombineForAll(_), _) => self.combine_for_all(par, &reductions),
                (Step::Barrier(Barrier::UnlessProved), _) => self.barrier_unless_proved(par),
                (step, _) => self.steps(std::slice::from_ref(step)),
            }
        }
        match self.family {
            Family::C => line!(self, "}}"),
            // What is known of addresses ends with it.
            Family::Cuda => line!(self, "}} }}"),
        }
        self.inside.clear();
    }

    /// The iterations of a parallel loop, for the threads of a CPU.
    fn iterations(&mut self, par: &Par, reductions: &[(Combine, &Store)]) {
        let (program, facts, target) = (self.program, self.facts, self.target);
        let nest = ParallelLoop { program, facts, target, par, reductions }.nest(&mut self.forms);
        let (domain, ()) = self.apart(|text| text.domain(par));
        let variables = par.ranges.iter().map(|r| (Name::value(r.var).to_string(), "i64".to_string()));
        self.loops.in_iteration = variables.collect();
        self.counts_runs(par, &nest.counted);
        let (text, ()) = self.apart(|text| text.nest(&nest, reductions));
        self.counting = TermRuns::default();
        self.loop_apart(domain, text);
        if reductions.is_empty() {
            line!(self, "i64 wild = 0; (void)wild;");
        }
    }

    /// Asks what must hold so that no two iterations meet. All threads come to the same answer.
    fn requirements(&mut self, par: &Par) {
        for requirement in par.requires.iter().filter(|r| r.asked == Asked::OnEntry) {
            let known = self.requirements.iter().position(|(r, _)| r == requirement);
            let number = known.unwrap_or_else(|| {
                self.requirements.push((requirement.clone(), par.site.clone()));
                self.requirements.len() - 1
            });
            line!(
                self,
                "if (rows > 0 && row > 0 && !{}) {{ eb_fault(f, EB_MEET, {number}, 0, 0, 0); eb_barrier(f); goto leave; }}",
                self.value(requirement.condition)
            );
        }
    }

    /// The first value and the extent of each range; the rows of the domain and the length of one.
    pub fn domain(&mut self, par: &Par) {
        let dimensions = par.ranges.len();
        for (d, r) in par.ranges.iter().enumerate() {
            line!(
                self,
                "const i64 f{d} = {}, e{d} = eb_extent(f{d}, {});",
                self.value(r.from),
                self.value(r.to)
            );
        }
        let row = format!("e{}", dimensions - 1);
        let rows = (0..dimensions - 1).fold("1".to_string(), |rows, d| match rows.as_str() {
            "1" => format!("e{d}"),
            _ => format!("eb_times({rows}, e{d})"),
        });
        line!(self, "const i64 rows = {rows}, row = {row};");
    }

    /// The rows `first..end` of a leaf, and which piece of them it has.
    pub fn rows_of_leaf(&mut self) {
        line!(
            self,
            "const i64 group = cut.pieces == 1 ? leaf : leaf / cut.pieces, piece = leaf - group * cut.pieces;"
        );
        line!(
            self,
            "const i64 first = group * cut.rows_per_leaf, end = first + eb_min(cut.rows_per_leaf, rows - first);"
        );
    }

    /// The sums of a leaf, from those of its lanes.
    pub fn end_leaf(&mut self, reductions: &[(Combine, &Store)]) {
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let combined =
                self.combine(*how, Ty::One(ty), &format!("r{k}.lane[k]"), &format!("r{k}.lane[k + w]"));
            line!(
                self,
                "for (int w = 8; w > 0; w /= 2) for (int k = 0; k < w; k++) r{k}.lane[k] = {combined};"
            );
            let place = match self.family {
                Family::C => format!("f->partials[{k} * EB_PARTIALS + leaf]"),
                Family::Cuda => result_of_leaf(k, "leaf"),
            };
            line!(self, "{place} = {};", to_bits(ty, &format!("r{k}.lane[0]")));
        }
    }

    pub fn finish_reductions(&mut self, reductions: &[(Combine, &Store)]) {
        line!(
            self,
            "if (f->thread == 0 && rows > 0 && row > 0) {{ const i64 count = eb_cut(rows, row).count;"
        );
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let t = c_type(ty);
            let partial =
                crate::print::c_types::from_bits(ty, &format!("f->partials[{k} * EB_PARTIALS + leaf]"));
            let exit = self.fresh();
            line!(
                self,
                "if (f->partials[{k} * EB_PARTIALS + EB_SEEN]) {{ f->partials[{k} * EB_PARTIALS + EB_SEEN] = 0;"
            );
            let neutral = neutral(*how, ty);
            line!(self, "{t} total = {neutral};");
            let combined = self.combine(*how, Ty::One(ty), "total", &partial);
            line!(self, "for (i64 leaf = 0; leaf < count; leaf++) total = {combined};");
            self.combine_total(*how, s, exit);
            line!(self, "exit{exit}: ; }}");
        }
        line!(self, "}}");
    }

    /// Combines `total` into the element that a reduction is about.
    pub fn combine_total(&mut self, how: Combine, s: &Store, exit: usize) {
        let access = self.access(Some(s.array), &s.site);
        let offset = self.outer_offset(s, |k, index, extent| {
            format!("eb_fault(f, EB_BOUNDS, {access}, {k}, {index}, {extent}); goto exit{exit};")
        });
        let name = format!("a{}[{offset}]", s.array.index());
        let combined = self.combine(how, Ty::One(self.program.array(s.array).ty), &name, "total");
        line!(self, "{name} = {combined};");
    }

    /// The outer variables of row `r`, for one of the iterations side by side where there are several.
    pub fn outer_variables(&mut self, ranges: &[Range], ty: &str, row: &str, side: Option<usize>) {
        let mut rest = row.to_string();
        for d in (0..ranges.len() - 1).rev() {
            let var = Name { side, ..Name::value(ranges[d].var) };
            if d == 0 {
                line!(self, "const {ty} {var} = ({ty})f0 + {rest};");
            } else {
                line!(self, "const {ty} {var} = ({ty})f{d} + ({rest}) % ({ty})e{d};");
                rest = format!("({rest}) / ({ty})e{d}");
            }
        }
    }
}

/// The condition that all these tests hold, and that nothing they compute overflows.
pub(crate) fn proved(tests: &BTreeSet<Test>, others: &[String]) -> String {
    let tests: BTreeSet<String> = tests.iter().map(Test::to_string).chain(others.iter().cloned()).collect();
    tests.iter().map(|test| format!("{test} && ")).collect::<String>() + "!wild"
}
