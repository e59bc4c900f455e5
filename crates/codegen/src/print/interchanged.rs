//! The text of a loop that runs inside the parallel loops of its iterations, on CUDA.
//!
//! Before the loop, all threads look whether it can run there: everything is in bounds, the domain is the whole of what it must be, and
//! the tapes have room. Where not, the steps of the loop outside run, and report what is wrong. Then each thread takes its iterations of
//! the parallel loops through all iterations of the loop. What it pops is on its way some iterations before it is wanted, and a few of
//! them are printed as one, so that only what one iteration hands to the next makes anybody wait.

use std::collections::BTreeSet;

use ebbtide_ir::{Block, Loop, LoopKind, Par};

use crate::analysis::block_width::block_width;
use crate::analysis::interchange::{Interchange, interchange};
use crate::analysis::sum_chains::sum_chains;
use crate::kernel::interchange::{Guard, Interchanged, Tape};
use crate::kernel::machine::Width;
use crate::kernel::segment::Step;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::print::statements::{Context, flatten};
use crate::transform::interchange::TimeLoop;
use crate::transform::step::Step as Optional;

impl Emitter<'_> {
    /// How a loop runs inside the parallel loops of its iterations, where it does.
    pub fn interchange<'l>(&self, l: &'l Loop) -> Option<Interchange<'l>> {
        match self.yields || self.forms.leaves_out(Optional::Interchange) {
            true => None,
            false => interchange(self.program, self.facts, l).ok(),
        }
    }

    /// How many threads a block of a segment may have.
    pub fn width(&self, block: &Block) -> Width {
        let has_chains = |par: &Par| {
            let chains = || sum_chains(self.program, self.facts, par);
            !self.forms.leaves_out(Optional::SumChains) && !chains().locals.is_empty()
        };
        block_width(self.program, block, &|l| self.interchange(l).is_some(), &has_chains)
    }

    /// Prints a loop inside its parallel loops where it can be there, and elsewhere these steps.
    pub fn interchanged(&mut self, l: &Loop, elsewhere: &[Step]) {
        let Some(plan) = self.interchange(l) else { return self.steps(elsewhere) };
        let time_loop = TimeLoop { program: self.program, facts: self.facts, source: l, plan };
        let Some(tree) = time_loop.tree(&mut self.forms) else { return self.steps(elsewhere) };
        line!(self, "{{ /* loop {}, inside its parallel loops */", l.id.index());
        // What the steps outside compute on entry, those inside use.
        let (outside, ()) = self.apart(|text| text.steps(elsewhere));
        self.guards(&tree);
        line!(self, "if (inner) {{");
        self.iterations_inside(&tree);
        line!(self, "}} else {{");
        self.out.push_str(&outside);
        line!(self, "}} }}");
    }

    /// Prints the domain, the number of iterations, and whether the loop can run inside its parallel loops.
    fn guards(&mut self, tree: &Interchanged) {
        let LoopKind::For { from, to, .. } = tree.source.kind else { return };
        for v in &tree.early {
            let text = self.operation(*v);
            line!(self, "v{} = {text};", v.index());
        }
        line!(self, "const i64 begin = {}, passes = eb_extent(begin, {});", self.value(from), self.value(to));
        self.domain(tree.domain);
        let tests: BTreeSet<String> = tree.guards.iter().flat_map(|guard| self.guard(guard)).collect();
        line!(self, "i64 wild = 0;");
        line!(
            self,
            "const b8 inner = passes > 0 && {}!wild;",
            tests.iter().map(|test| format!("{test} && ")).collect::<String>()
        );
    }

    /// A guard as conditions of C.
    fn guard(&self, guard: &Guard) -> Vec<String> {
        let extent = |array: &ebbtide_ir::ArrayId, k: &usize| format!("d{}_{k}", array.index());
        match guard {
            Guard::Proof(test) => vec![test.to_string()],
            Guard::Number(v) => vec![format!("{} != INT64_MIN", self.value(*v))],
            Guard::Whole(array, k) => vec![format!("f{k} == 0 && e{k} == {}", extent(array, k))],
            Guard::Within(array, k) => {
                vec![format!("f{k} >= 0"), format!("f{k} + e{k} <= {}", extent(array, k))]
            }
            Guard::Places(array, tape) => {
                let t = format!("t{}", array.index());
                let room = match tape {
                    Tape::Pushes(_) => format!("{t}.capacity - {t}.depth"),
                    Tape::Pops(_) => format!("{t}.depth"),
                };
                vec![format!("eb_times(passes, {}) <= eb_min({room}, INT32_MAX)", tape.places())]
            }
        }
    }

    fn iterations_inside(&mut self, tree: &Interchanged) {
        let LoopKind::For { var, .. } = tree.source.kind else { return };
        let exit = self.fresh();
        let (cx, domain, var) = (Context::often(exit), tree.domain, var.index());
        for array in tree.tapes.keys() {
            line!(self, "eb_settle(f, &t{});", array.index());
        }
        for array in &tree.arrays {
            line!(self, "__builtin_assume(__isGlobal(a{}));", array.index());
        }
        line!(self, "if (rows > 0 && row > 0) {{");
        let last = domain.ranges.len() - 1;
        self.deal(domain, &format!("f{last}"));
        line!(self, "const i64 begun = eb_first_row(deal), ended = eb_end_row(deal, begun);");
        line!(
            self,
            "if (begun < ended) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) {{"
        );
        line!(self, "for (i64 r = begun; r < ended; r++) {{");
        line!(self, "const i64 v{} = f{last} + column;", domain.ranges[last].var.index());
        self.outer_variables(&domain.ranges, "i64", "r", None);
        for (other, is) in &tree.same {
            line!(self, "const i64 v{} = v{};", other.index(), is.index());
        }
        self.take_elements(tree);
        line!(self, "for (i64 pass = 0; pass < passes;) {{");
        if self.outer_loops == 0 {
            line!(self, "f->pass = pass; if (column == 0 && r == 0) eb_tell(f);");
        }
        line!(self, "if (pass > 0 && eb_stopped(f)) goto exit{exit};");
        line!(self, "const i64 until = eb_until(pass, passes);");
        let together = tree.together;
        if tree.tapes.is_empty() {
            line!(self, "#pragma unroll {together}");
            line!(self, "for (; pass < until; pass++) {{ v{var} = begin + pass;");
            self.body(cx, &tree.body);
            line!(self, "}} }}");
        } else {
            let tapes: Vec<usize> = tree.tapes.keys().map(|array| array.index()).collect();
            line!(self, "while (pass + {together} <= until) {{");
            tapes.iter().for_each(|a| line!(self, "q{a}.ahead();"));
            line!(self, "#pragma unroll");
            line!(self, "for (int nth = 0; nth < {together}; nth++, pass++) {{ v{var} = begin + pass;");
            self.body(cx, &tree.body);
            line!(self, "}}");
            tapes.iter().for_each(|a| line!(self, "q{a}.turn();"));
            line!(self, "}}");
            if together > 1 {
                line!(self, "#pragma unroll");
                // What the rest needs is there.
                line!(self, "for (int nth = 0; nth < {}; nth++, pass++) {{", together - 1);
                line!(self, "if (pass >= until) break;");
                line!(self, "v{var} = begin + pass;");
                self.body(cx, &tree.body);
                line!(self, "}}");
            }
            line!(self, "}}");
        }
        for (array, _) in tree.held.iter().filter(|(_, held)| held.written) {
            line!(self, "a{0}[at{0}] = h{0};", array.index());
        }
        line!(self, "}} }}");
        line!(self, "exit{exit}: ;");
        line!(self, "}}");
        for (array, tape) in &tree.tapes {
            match tape {
                Tape::Pushes(count) => line!(self, "t{}.depth += passes * {count};", array.index()),
                Tape::Pops(count) => line!(self, "t{}.depth -= passes * {count};", array.index()),
            }
        }
        self.barrier();
        // After all: another thread tells of iterations on their way.
        if self.outer_loops == 0 {
            self.tell("passes");
        }
    }

    /// The elements of an iteration, before the first one of the loop, and its places of tapes.
    fn take_elements(&mut self, tree: &Interchanged) {
        let index: Vec<String> =
            tree.domain.ranges.iter().map(|r| format!("(nx)v{}", r.var.index())).collect();
        for (array, held) in &tree.held {
            let (a, t) = (array.index(), c_type(self.program.array(*array).ty));
            line!(self, "const nx at{a} = {};", flatten(*array, &index, "(nx)"));
            match held.old {
                true => line!(self, "{t} h{a} = 0;"),
                false => line!(self, "{t} h{a} = a{a}[at{a}];"),
            }
        }
        for (array, tape) in &tree.tapes {
            let (a, t) = (array.index(), c_type(self.program.array(*array).ty));
            let kind = match tape {
                Tape::Pushes(_) => "eb_pushes",
                Tape::Pops(_) => "eb_pops",
            };
            let (count, places) = (tape.places(), tape.places() as usize * tree.together);
            line!(self, "{kind}<{t}, {places}> q{a}; q{a}.begin(t{a}, at{a}, passes * {count});");
        }
    }
}
