//! What differs where a grid of CUDA threads runs a segment: entry and exit, tapes, the split of parallel loops.
//!
//! A segment is one cooperative kernel: every thread runs program-level statements alike and keeps scalars and addresses
//! in variables of its own; a barrier of the whole grid stands where the threads of a CPU meet. All threads share the
//! tables of the launch: thread 0 alone writes them, at the end, when all have read them.

use std::collections::BTreeSet;

use ebbtide_ir::{After, ArrayId, Combine, Op, Par, Push, Stmt, Store, ValueId, walk};

use crate::analysis::grid_form::{GridForm, grid_form};
use crate::analysis::ordered_updates::batch_of;
use crate::analysis::term_runs::term_runs;
use crate::analysis::work::rows_together;
use crate::kernel::bounds_test::Test;
use crate::kernel::machine::{Family, Width};
use crate::kernel::segment::{Manner, Step};
use crate::kernel::term_runs::TermRuns;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;
use crate::print::grid_safe::narrow;
use crate::print::par::proved;
use crate::transform::grid_nest::GridLoop;

impl Emitter<'_> {
    /// A value that another piece of the program computed, or the host.
    pub fn handed_in(&self, v: ValueId) -> String {
        match self.family {
            Family::C => format!("f->values[{}]", v.index()),
            Family::Cuda => format!("eb_value(launch, {})", v.index()),
        }
    }

    /// An extent of an array, by its number in the table.
    pub fn extent(&self, number: usize) -> String {
        match self.family {
            Family::C => format!("eb_of_array(f->shape[{number}])"),
            Family::Cuda => format!("extents.of[{number}]"),
        }
    }

    pub fn enter_kernel(&mut self, k: usize, width: Width, taped: &BTreeSet<ArrayId>) {
        let threads = match width {
            Width::Full => "EB_THREADS",
            Width::Half | Width::Apart => "EB_THREADS / 2",
        };
        line!(self, "EB_SEGMENT(segment_{k}, {threads}) {{");
        line!(self, "eb_thread me = eb_enter(launch), *const f = &me;");
        line!(self, "if (f->shared->ended) return;");
        for a in taped {
            line!(self, "eb_tape t{0} = eb_open(f, {0});", a.index());
        }
    }

    /// The kernel whose single block runs one segment after the other, where the text is compiled for that.
    pub fn batch_kernel(&mut self, segments: usize) {
        line!(self, "#ifdef EB_BATCH");
        line!(
            self,
            "extern \"C\" __global__ void __launch_bounds__(EB_THREADS / 4, 1) eb_run_batch(const __grid_constant__ eb_batch batch, const __grid_constant__ eb_extents extents) {{"
        );
        line!(self, "eb_begin_batch(batch);");
        line!(self, "for (i64 k = 0; k < batch.steps; k++) switch (eb_begin_step(batch, k)) {{");
        for k in 0..segments {
            line!(self, "case {k}: segment_{k}(batch.launch, extents); break;");
        }
        line!(self, "}}");
        line!(self, "eb_leave(&batch.launch); }}");
        line!(self, "#endif");
    }

    /// Up to where thread 0 alone writes tables: all have read them by then.
    pub fn leave_kernel(&mut self, taped: &BTreeSet<ArrayId>) {
        line!(self, "if (f->epoch == EB_BEGIN) eb_barrier(f);");
        for a in taped {
            line!(self, "eb_close(f, &t{0}, {0});", a.index());
        }
        line!(self, "if (f->thread == 0) {{");
        line!(self, "eb_keep(launch);");
        line!(self, "f->shared->ended = f->shared->fault != 0;");
    }

    pub fn kernel_push(&mut self, push: &Push, steps: &[Step]) {
        let a = push.array.index();
        let t = c_type(self.program.array(push.array).ty);
        line!(self, "if (t{a}.depth >= t{a}.capacity) eb_fault(f, EB_TAPE, 0, 0, 0, 0);");
        line!(self, "else {{");
        match push.after {
            After::Same => {
                line!(self, "{t} *kept = ({t} *)eb_place(f, &t{a}, t{a}.depth++);");
                self.steps(steps);
            }
            After::Anything(old) => line!(
                self,
                "{t} *t = a{a}; a{a} = ({t} *)eb_exchange(f, &t{a}, t{a}.depth++, t); a{} = t;",
                old.index()
            ),
        }
        line!(self, "}}");
    }

    pub fn kernel_pop(&mut self, array: ArrayId) {
        let (a, t) = (array.index(), c_type(self.program.array(array).ty));
        line!(self, "if (t{a}.depth == 0) eb_fault(f, EB_TAPE, 0, 0, 0, 0);");
        line!(self, "else a{a} = ({t} *)eb_exchange(f, &t{a}, --t{a}.depth, a{a});");
    }

    /// Addresses come from tables: the compiler cannot know that all are of global memory. What is printed until the next
    /// closing brace knows.
    pub fn in_global_memory(&mut self, par: &Par) {
        let mut arrays = BTreeSet::new();
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Let(v) => {
                if let Op::Load(array, _) = self.program.op(*v) {
                    arrays.insert(*array);
                }
            }
            Stmt::Store(s) | Stmt::Update(_, s) => drop(arrays.insert(s.array)),
            Stmt::Claim(claim) => drop(arrays.insert(claim.taken)),
            _ => {}
        });
        let types: Vec<(usize, &str)> =
            arrays.iter().map(|a| (a.index(), c_type(self.program.array(*a).ty))).collect();
        for (a, t) in &types {
            line!(self, "{t} *const g{a} = eb_global(a{a});");
        }
        line!(self, "{{");
        for (a, t) in &types {
            line!(self, "{t} *const a{a} = g{a};");
        }
    }

    /// The iterations of a parallel loop, dealt out between threads; its ranges are printed.
    pub fn kernel_iterations(&mut self, par: &Par, manner: Manner, reductions: &[(Combine, &Store)]) {
        let (program, facts) = (self.program, self.facts);
        let terms = self.forms.terms();
        let form = &grid_form((program, facts), par, manner, terms);
        if let GridForm::Noted(notes) = form {
            self.noted.insert(par.id, notes.terms());
        }
        if let GridForm::Chains(chains) = form {
            self.chained.insert(par.id, chains.bounds.clone());
        }
        let grid = GridLoop { program, facts, par, form }.nest(&mut self.forms);
        let batch = match form {
            GridForm::Noted(notes) => batch_of(notes, !reductions.is_empty()),
            _ => None,
        };
        let counted = TermRuns { batch, ..term_runs(program, facts, par) };
        self.counts_runs(par, &counted);
        self.grid_nest(&grid, par, manner, reductions);
        self.counting = TermRuns::default();
    }

    /// How many rows a thread takes at once.
    pub fn rows_together(&self, par: &Par) -> usize {
        rows_together(self.program, par)
    }

    /// What each thread takes of a loop whose last range begins here: as it was computed on entry, or computed now.
    pub fn deal(&mut self, par: &Par, from: &str) {
        let number = par.id.index();
        match self.is_dealt_on_entry(number) {
            true => line!(
                self,
                "const eb_deal deal = {{column{number}, plan{number}.columns, nth{number}, plan{number}.band, plan{number}.base, plan{number}.end, plan{number}.last}};"
            ),
            false => {
                let share = self.share(self.mapping(par), ["rows", "row", from], self.rows_together(par));
                line!(self, "const eb_deal deal = {share};")
            }
        }
    }

    fn is_dealt_on_entry(&self, number: usize) -> bool {
        self.entry.contains(Known::Plan(number))
    }

    /// The number of what each thread takes of a loop, where its domain is known on entry to the segment: it is computed
    /// there, once, and so is whether the loop needs checks, if that is known there too.
    pub fn dealt_on_entry(&mut self, par: &Par, tests: Option<&BTreeSet<Test>>) -> Option<usize> {
        let (domain, rows) = self.domain_on_entry(par)?;
        let (last, number) = (par.ranges.len() - 1, par.id.index());
        if self.is_dealt_on_entry(number) {
            return Some(number);
        }
        let mut entry =
            format!("__shared__ eb_plan plan{number}; i32 column{number}, nth{number}; {{\n{domain}");
        let tests = tests.filter(|tests| self.is_known_on_entry(tests));
        let tests = tests.map_or("1".to_string(), |tests| proved(tests, &narrow(last)));
        entry.push_str(&format!("i64 wild = 0; const b8 proved = {tests}; (void)wild;\n"));
        entry.push_str(&format!(
            "const eb_deal deal = eb_share_once({rows}, e{last}, f{last}, {}, {}, proved, &plan{number});\n",
            self.rows_together(par),
            u8::from(self.mapping(par).is_some_and(|mapping| self.beside_sums(mapping).is_some()))
        ));
        entry.push_str(&format!("column{number} = deal.column; nth{number} = deal.nth; }}\n"));
        self.entry.add(Known::Plan(number), entry);
        Some(number)
    }

    /// The text of the ranges of a loop whose domain is known on entry to the segment, and of how many rows it has.
    fn domain_on_entry(&self, par: &Par) -> Option<(String, String)> {
        let ranges = self.known_on_entry.ranges(self.program, self.facts, par)?;
        let range = |(d, (from, to)): (usize, &(_, _))| {
            format!("const i64 f{d} = {from}, e{d} = eb_extent(f{d}, {to});\n")
        };
        let rows = (0..ranges.len() - 1).fold("1".to_string(), |rows, d| format!("eb_times({rows}, e{d})"));
        Some((ranges.iter().enumerate().map(range).collect(), rows))
    }

    /// How a loop is cut into leaves: as it was computed on entry, by one of the warps, or computed now.
    pub fn cut_into_leaves(&mut self, par: &Par) -> String {
        let number = par.id.index();
        let Some((domain, rows)) = self.domain_on_entry(par) else { return "eb_cut(rows, row)".to_string() };
        let last = par.ranges.len() - 1;
        let text = format!(
            "__shared__ eb_leaves leaves{number}; if (threadIdx.x == {} % blockDim.x) {{\n{domain}leaves{number} = eb_cut({rows}, e{last}); }}\n",
            32 * number
        );
        self.entry.add(Known::Leaves(number), text);
        format!("leaves{number}")
    }
}
