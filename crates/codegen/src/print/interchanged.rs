//! The text of a loop that runs inside the parallel loops of its passes, on CUDA.
//!
//! Before the loop, all threads look whether everything is in bounds, the domain is the whole of what it must be, and the
//! tapes have room; where not, the passes stay outside, and report what is wrong. Then each thread takes its iterations
//! through all passes. What it pops is on its way some passes before it is wanted, and a few passes are printed as one,
//! so that only what one pass hands to the next makes anybody wait.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{After, ArrayId, Block, Loop, LoopKind, Op, Par, Stmt, ValueId};

use crate::analysis::block_width::block_width;
use crate::analysis::interchange::{Interchange, Tape, interchange};
use crate::kernel::bounds_test::Test;
use crate::kernel::machine::{Family, Width};
use crate::kernel::segment::Step;
use crate::kernel::stmt::Check;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::print::statements::{Context, flatten};
use crate::transform::forms::Iterations;
use crate::transform::lower::{Shared, Team, element, operation};
use crate::transform::step::Step as Optional;

impl Emitter<'_> {
    /// How a loop runs inside the parallel loops of its passes, where it does.
    pub fn interchange<'l>(&self, l: &'l Loop) -> Option<Interchange<'l>> {
        match (self.family, self.yields || self.forms.leaves_out(Optional::Interchange)) {
            (Family::Cuda, false) => interchange(self.program, self.facts, l).ok(),
            _ => None,
        }
    }

    /// How many threads a block of a segment may have.
    pub fn width(&self, block: &Block) -> Width {
        block_width(self.program, block, &|l| self.interchange(l).is_some())
    }

    /// Prints a loop with its passes inside where they can be there, and elsewhere these steps.
    pub fn interchanged(&mut self, l: &Loop, elsewhere: &[Step]) {
        let Some(plan) = self.interchange(l) else { return self.steps(elsewhere) };
        line!(self, "{{ /* loop {}, inside its parallel loops */", l.id.index());
        // What the passes outside compute on entry, those inside use.
        let (outside, ()) = self.apart(|text| text.steps(elsewhere));
        let proved = self.conditions(l, &plan);
        line!(self, "if (inner) {{");
        self.passes_inside(l, &plan, proved.as_ref());
        line!(self, "}} else {{");
        self.out.push_str(&outside);
        line!(self, "}} }}");
    }

    /// Prints the domain, the number of passes, and whether these can be inside; gives the index values that are numbers then,
    /// where no index needs a check.
    fn conditions(&mut self, l: &Loop, plan: &Interchange) -> Option<BTreeSet<ValueId>> {
        let LoopKind::For { from, to, .. } = l.kind else { return None };
        for v in &plan.early {
            let text = self.operation(*v);
            line!(self, "v{} = {text};", v.index());
        }
        line!(self, "const i64 begin = {}, passes = eb_extent(begin, {});", self.value(from), self.value(to));
        let first = plan.pars.first()?;
        self.domain(first);
        self.inside.clone_from(&plan.inside);
        let proof = self.prover().proof_of_passes(l);
        self.inside.clear();
        let mut tests: BTreeSet<String> = proof.iter().flat_map(|p| &p.tests).map(Test::to_string).collect();
        // A bound that is no number is a fault of the other form.
        for v in [from, to].into_iter().chain(first.ranges.iter().flat_map(|r| [r.from, r.to])) {
            if self.may_overflow(v) {
                tests.insert(format!("{} != INT64_MIN", self.value(v)));
            }
        }
        for (array, held) in &plan.held {
            for d in 0..self.program.array(*array).rank {
                let extent = format!("d{}_{d}", array.index());
                if held.whole {
                    tests.insert(format!("f{d} == 0 && e{d} == {extent}"));
                } else {
                    tests.insert(format!("f{d} >= 0"));
                    tests.insert(format!("f{d} + e{d} <= {extent}"));
                }
            }
        }
        for (array, tape) in &plan.tapes {
            let t = format!("t{}", array.index());
            let (count, room) = match tape {
                Tape::Pushes(count) => (count, format!("{t}.capacity - {t}.depth")),
                Tape::Pops(count) => (count, format!("{t}.depth")),
            };
            tests.insert(format!("eb_times(passes, {count}) <= eb_min({room}, INT32_MAX)"));
        }
        line!(self, "i64 wild = 0;");
        line!(
            self,
            "const b8 inner = passes > 0 && {}!wild;",
            tests.iter().map(|test| format!("{test} && ")).collect::<String>()
        );
        proof.map(|proof| proof.exact)
    }

    fn passes_inside(&mut self, l: &Loop, plan: &Interchange, proved: Option<&BTreeSet<ValueId>>) {
        let LoopKind::For { var, .. } = l.kind else { return };
        let Some(first) = plan.pars.first() else { return };
        let exit = self.fresh();
        let pass = Pass { plan, cx: Context::often(exit), proved };
        for array in plan.tapes.keys() {
            line!(self, "eb_settle(f, &t{});", array.index());
        }
        for array in &plan.arrays {
            line!(self, "__builtin_assume(__isGlobal(a{}));", array.index());
        }
        line!(self, "if (rows > 0 && row > 0) {{");
        self.deal(first, &format!("f{}", first.ranges.len() - 1));
        line!(self, "const i64 begun = eb_first_row(deal), ended = eb_end_row(deal, begun, rows);");
        line!(
            self,
            "if (begun < ended) for (i64 column = deal.column; column < row; column = eb_next(column, deal.columns, row)) {{"
        );
        line!(self, "for (i64 r = begun; r < ended; r++) {{");
        let last = first.ranges.len() - 1;
        line!(self, "const i64 v{} = f{last} + column;", first.ranges[last].var.index());
        self.outer_variables(&first.ranges, "i64", "r", None);
        for par in &plan.pars[1..] {
            for (range, same) in par.ranges.iter().zip(&first.ranges) {
                line!(self, "const i64 v{} = v{};", range.var.index(), same.var.index());
            }
        }
        let together = plan.passes_as_one(l);
        self.take_elements(plan, first, together);
        line!(self, "for (i64 pass = 0; pass < passes;) {{");
        if self.outer_loops == 0 {
            line!(self, "f->pass = pass; if (column == 0 && r == 0) eb_tell(f);");
        }
        line!(self, "if (pass > 0 && eb_stopped(f)) goto exit{exit};");
        line!(self, "const i64 until = eb_until(pass, passes);");
        let var = var.index();
        if plan.tapes.is_empty() {
            line!(self, "#pragma unroll {together}");
            line!(self, "for (; pass < until; pass++) {{ v{var} = begin + pass;");
            self.pass_of(l, &pass);
            line!(self, "}} }}");
        } else {
            let tapes: Vec<usize> = plan.tapes.keys().map(|array| array.index()).collect();
            line!(self, "while (pass + {together} <= until) {{");
            tapes.iter().for_each(|a| line!(self, "q{a}.ahead();"));
            line!(self, "#pragma unroll");
            line!(self, "for (int nth = 0; nth < {together}; nth++, pass++) {{ v{var} = begin + pass;");
            self.pass_of(l, &pass);
            line!(self, "}}");
            tapes.iter().for_each(|a| line!(self, "q{a}.turn();"));
            line!(self, "}}");
            if together > 1 {
                line!(self, "#pragma unroll");
                // What the rest needs is there.
                line!(self, "for (int nth = 0; nth < {}; nth++, pass++) {{", together - 1);
                line!(self, "if (pass >= until) break;");
                line!(self, "v{var} = begin + pass;");
                self.pass_of(l, &pass);
                line!(self, "}}");
            }
            line!(self, "}}");
        }
        for (array, held) in &plan.held {
            if held.written {
                line!(self, "a{0}[at{0}] = h{0};", array.index());
            }
        }
        line!(self, "}} }}");
        line!(self, "exit{exit}: ;");
        line!(self, "}}");
        for (array, tape) in &plan.tapes {
            match tape {
                Tape::Pushes(count) => line!(self, "t{}.depth += passes * {count};", array.index()),
                Tape::Pops(count) => line!(self, "t{}.depth -= passes * {count};", array.index()),
            }
        }
        self.barrier();
        // After all: another thread tells of passes on their way.
        if self.outer_loops == 0 {
            self.tell("passes");
        }
    }

    /// One pass, on the elements that an iteration holds.
    fn pass_of(&mut self, l: &Loop, pass: &Pass) {
        let mut places = pass.plan.tapes.iter().map(|(array, tape)| (*array, (0, tape.places()))).collect();
        self.pass(&l.body, pass, &mut places);
    }

    /// The elements of an iteration, before its first pass; so many passes go together.
    fn take_elements(&mut self, plan: &Interchange, first: &Par, together: usize) {
        let index: Vec<String> = first.ranges.iter().map(|r| format!("(nx)v{}", r.var.index())).collect();
        for (array, held) in &plan.held {
            let (a, t) = (array.index(), c_type(self.program.array(*array).ty));
            line!(self, "const nx at{a} = {};", flatten(*array, &index, "(nx)"));
            match held.old {
                true => line!(self, "{t} h{a} = 0;"),
                false => line!(self, "{t} h{a} = a{a}[at{a}];"),
            }
        }
        for (array, tape) in &plan.tapes {
            let (a, t) = (array.index(), c_type(self.program.array(*array).ty));
            let kind = match tape {
                Tape::Pushes(_) => "eb_pushes",
                Tape::Pops(_) => "eb_pops",
            };
            let (count, places) = (tape.places(), tape.places() as usize * together);
            line!(self, "{kind}<{t}, {places}> q{a}; q{a}.begin(t{a}, at{a}, passes * {count});");
        }
    }

    /// The statements of one pass, for one iteration. The depth of recursion is that of nesting in the source.
    fn pass(&mut self, block: &Block, pass: &Pass, places: &mut Places) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => self.pass_value(*v, pass),
                Stmt::Declare(local, v) | Stmt::Set(local, v) => {
                    line!(self, "l{} = {};", local.index(), self.value(*v))
                }
                Stmt::If(branch) => {
                    line!(self, "if ({}) {{", self.value(branch.condition));
                    self.pass(&branch.then, pass, places);
                    line!(self, "}} else {{");
                    self.pass(&branch.otherwise, pass, places);
                    line!(self, "}}");
                }
                Stmt::Call(call) => self.pass(&call.body, pass, places),
                Stmt::Par(par) => {
                    line!(self, "{{");
                    self.iteration_in_pass(par, pass);
                    line!(self, "}}");
                }
                Stmt::Swap(a, b) => {
                    let t = c_type(self.program.array(*a).ty);
                    line!(self, "{{ const {t} t = h{0}; h{0} = h{1}; h{1} = t; }}", a.index(), b.index());
                }
                Stmt::Fill(a, v, _) => line!(self, "h{} = {};", a.index(), self.value(*v)),
                Stmt::Copy { from, to, .. } => line!(self, "h{} = h{};", to.index(), from.index()),
                Stmt::Temp(a) => line!(self, "h{} = 0;", a.index()),
                Stmt::Push(push) => {
                    let place = next_place(places, push.array);
                    line!(self, "q{0}.push({place}, h{0});", push.array.index());
                    if let After::Anything(old) = push.after {
                        line!(self, "h{} = h{};", old.index(), push.array.index());
                    }
                }
                Stmt::Pop(a) => {
                    let place = next_place(places, *a);
                    line!(self, "h{0} = q{0}.pop({place});", a.index());
                }
                // The analysis has refused all others.
                _ => {}
            }
        }
    }

    /// The iteration of a parallel loop, with what it holds in variables.
    fn iteration_in_pass(&mut self, par: &Par, pass: &Pass) {
        let it = Iterations { par, shared: &Shared::default(), team: Team::Alone };
        let held = pass.plan.held.keys().copied().collect();
        let body = self.forms.holding(&it, &held, pass.proved);
        self.body(pass.cx, &body);
    }

    /// A value of program level, as each thread computes it for itself.
    fn pass_value(&mut self, v: ValueId, pass: &Pass) {
        let text = match *self.program.op(v) {
            Op::Literal(_) => return,
            Op::Load(array, index) => {
                let mut element = element(self.program, array, index, &self.program.value(v).site);
                if pass.proved.is_some() {
                    element.check = Check::Proved;
                }
                let text = self.element(pass.cx, &element);
                self.read(&element, text)
            }
            _ => {
                let value = operation(self.program, pass.proved.unwrap_or(&BTreeSet::new()), v);
                self.expr(&value, pass.cx.pace)
            }
        };
        line!(self, "v{} = {text};", v.index());
    }
}

/// A pass that runs inside the parallel loops.
struct Pass<'a> {
    plan: &'a Interchange<'a>,
    cx: Context,
    /// The index values that are numbers, where no index needs a check.
    proved: Option<&'a BTreeSet<ValueId>>,
}

/// By tape: how many of its places a pass has used so far, and how many it uses.
type Places = BTreeMap<ArrayId, (u32, u32)>;

/// Which of the places that are at hand the next push or pop uses.
fn next_place(places: &mut Places, array: ArrayId) -> String {
    let (used, all) = places.entry(array).or_insert((0, 1));
    *used += 1;
    match all {
        1 => "nth".to_string(),
        all => format!("{all} * nth + {}", *used - 1),
    }
}
