//! What differs where a grid of CUDA threads runs a segment: entry and exit, tapes, the split of parallel loops.
//!
//! A segment is one cooperative kernel: every thread runs program-level statements alike and keeps scalars and addresses
//! in variables of its own; a barrier of the whole grid stands where the threads of a CPU meet. All threads share the
//! tables of the launch: thread 0 alone writes them, at the end, when all have read them.

use std::collections::BTreeSet;

use ebbtide_ir::{After, ArrayId, Combine, Op, Par, Push, Stmt, Store, ValueId, walk};

use crate::analysis::bounds_proof::Proof;
use crate::analysis::interior::Interior;
use crate::analysis::kept_terms::{SUMS, adds_once, keeps_terms};
use crate::analysis::narrow_index::{Narrow, narrow_values};
use crate::analysis::ordered_updates::scattered;
use crate::analysis::work::rows_together;
use crate::kernel::interval::Rows;
use crate::kernel::machine::{Family, Width};
use crate::kernel::name::Name;
use crate::kernel::segment::{Manner, Step};
use crate::print::c_types::{c_type, neutral};
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;
use crate::print::interior::narrowing;
use crate::print::par::proved;
use crate::print::statements::Context;
use crate::transform::forms::{Iterations, Proved, innermost};
use crate::transform::lower::{Shared, Team};

/// Rows so near to a boundary are looked at one by one.
const MARGIN: i64 = 4;

/// Where the interior form of a loop is right.
pub(crate) struct Inside {
    /// `None` where everything is proved before the loop starts, and where the interior would be checked as well.
    pub interior: Option<Interior>,
    /// Is there a proof to ask before the loop starts?
    pub proved: bool,
    /// The index values that are numbers where everything is proved.
    pub exact: BTreeSet<ValueId>,
    /// The text of the names that it needs in each row.
    names: String,
    /// The text that narrows its interval.
    narrowing: String,
}

impl Inside {
    /// Nothing but what a proof says, which is asked before the loop.
    fn proved(exact: BTreeSet<ValueId>) -> Inside {
        Inside { interior: None, proved: true, exact, names: String::new(), narrowing: String::new() }
    }

    /// Nowhere.
    fn nowhere() -> Inside {
        Inside { proved: false, ..Inside::proved(BTreeSet::new()) }
    }
}

impl Emitter<'_> {
    /// A value that another piece of the program computed, or the host.
    pub fn handed_in(&self, v: ValueId) -> String {
        match self.family {
            Family::C => format!("f->values[{}]", v.index()),
            Family::Cuda => format!("eb_value(launch, {})", v.index()),
        }
    }

    /// The table of extents.
    pub fn extents(&self) -> &'static str {
        match self.family {
            Family::C => "f->shape",
            Family::Cuda => "extents.of",
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
    fn in_global_memory(&mut self, par: &Par) {
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
        let exit = self.fresh();
        let (scattered, any_order) = scattered(self.program, self.facts, par);
        let atomics = if any_order { scattered } else { BTreeSet::new() };
        let shared = Shared { atomics, ..Shared::default() };
        let it = Iterations { par, shared: &shared, team: Team::Alone };
        let cx = Context::often(exit);
        self.in_global_memory(par);
        match manner {
            Manner::Teams => self.in_teams(&it, cx),
            Manner::Shares => self.all_threads(&it, cx),
            Manner::Leaves | Manner::Ordered => {
                line!(self, "if (rows > 0 && row > 0) {{");
                for k in 0..reductions.len() {
                    line!(self, "int seen{k} = 0;");
                }
                if manner == Manner::Leaves && keeps_terms(self.program, self.facts, par) {
                    self.terms_first(&it, cx, reductions);
                } else if manner == Manner::Leaves && adds_once(self.facts, par) && reductions.len() <= SUMS {
                    self.leaf_by_block(&it, cx, reductions);
                } else if manner == Manner::Leaves {
                    self.leaf_by_leaf(&it, cx, reductions);
                } else if !self.staged(&it, cx, reductions) {
                    self.one_thread(&it, cx, reductions);
                }
                for k in 0..reductions.len() {
                    // Whether any iteration combined at all decides whether the element is touched.
                    line!(self, "if (seen{k}) f->partials[{k} * EB_PARTIALS + EB_SEEN] = 1;");
                }
                line!(self, "}}");
            }
        }
    }

    /// Prints the interval of columns on which the interior form is right in all rows that are `margin` away from the
    /// boundaries, where there is one.
    pub fn interval(&mut self, par: &Par) -> Inside {
        let last = par.ranges.len() - 1;
        line!(self, "const i64 jf = f{last}, jt = f{last} + row;");
        if let Some(proof) = self.prover().proof(par) {
            line!(self, "i64 wild = 0;");
            line!(self, "const b8 proved = {};", proved(&proof, &narrow(par)));
            return Inside::proved(proof.exact);
        }
        let interior = self.interior(par);
        let it = Iterations { par, shared: &Shared::default(), team: Team::Alone };
        if self.forms.is_mostly_checked(&it, &interior) {
            // Two texts that do nearly the same would be one too many.
            line!(self, "(void)jt;");
            return Inside::nowhere();
        }
        let found = interior.interval();
        let names = self.before_interior(par.ranges.len(), &found);
        let narrowing = narrowing(self.program, &found);
        if interior.rows == Rows::Corners {
            // Rows at boundaries may be another matter.
            let margins = if last == 0 { &[0][..] } else { &[MARGIN, 0] };
            line!(self, "i64 from = jf, to = jf, margin = 0;");
            for margin in margins {
                line!(self, "{{ i64 left = jf, right = jt;");
                line!(self, "#pragma unroll");
                line!(self, "for (int corner = 0; corner < {}; corner++) {{", 1 << last);
                for (d, range) in par.ranges[..last].iter().enumerate() {
                    line!(
                        self,
                        "const i64 v{} = corner >> {d} & 1 ? f{d} + e{d} - 1 - {margin} : f{d} + {margin};",
                        range.var.index()
                    );
                }
                line!(self, "i64 lo = jf, hi = jt;");
                self.out.push_str(&names);
                self.out.push_str(&narrowing);
                line!(self, "left = eb_max(left, lo); right = eb_min(right, hi); }}");
                line!(self, "if (right > left) {{ from = left; to = right; margin = {margin}; }} }}");
            }
        }
        Inside { interior: Some(interior), names, narrowing, ..Inside::nowhere() }
    }

    /// The variables of row `r`, and its interval.
    pub fn row(&mut self, par: &Par, inside: &Inside) {
        self.outer_variables(&par.ranges, "i64", "r", None);
        let away: Vec<String> = par.ranges[..par.ranges.len() - 1]
            .iter()
            .enumerate()
            .map(|(d, range)| {
                let v = range.var.index();
                format!("v{v} >= f{d} + margin && v{v} < f{d} + e{d} - margin")
            })
            .collect();
        let Some(interior) = &inside.interior else { return };
        match interior.rows {
            Rows::Corners if away.is_empty() => {
                line!(self, "const i64 lo = from, hi = to;");
                self.out.push_str(&inside.names);
            }
            Rows::Corners => {
                line!(self, "i64 lo = from, hi = to;");
                self.out.push_str(&inside.names);
                line!(self, "if (!({})) {{ lo = jf; hi = jt;", away.join(" && "));
                self.out.push_str(&inside.narrowing);
                line!(self, "}}");
            }
            Rows::Each => {
                line!(self, "i64 lo = jf, hi = jt;");
                self.out.push_str(&inside.names);
                self.out.push_str(&inside.narrowing);
            }
        }
    }

    /// One iteration, at row `r` and column `j`, in the form that is right for it.
    pub fn iteration(&mut self, it: &Iterations, cx: Context, inside: &Inside) {
        line!(self, "const i64 {} = j;", innermost(it.par));
        if let Some(interior) = &inside.interior {
            // The careful form is right everywhere: a warp that needs it somewhere takes one path, not two.
            line!(self, "if (__all_sync(__activemask(), j >= lo && j < hi)) {{");
            let body = self.forms.of_interior_at_end(it, interior);
            self.body(cx, &body);
        } else if inside.proved {
            line!(self, "if (proved) {{");
            self.unchecked(it, cx, Proved { exact: &inside.exact, narrow: &Narrow::new() }, 1);
        } else {
            let body = self.forms.careful(it);
            line!(self, "{{");
            self.body(cx, &body);
            return line!(self, "}}");
        }
        line!(self, "}} else {{");
        let body = self.forms.careful(it);
        self.body(cx.seldom(), &body);
        line!(self, "}}");
    }

    /// Each thread takes a column, and as many rows as it must.
    fn all_threads(&mut self, it: &Iterations, cx: Context) {
        let (par, exit) = (it.par, cx.exit);
        let last = par.ranges.len() - 1;
        let (j, together) = (innermost(par), self.rows_together(par));
        let proof = self.prover().proof(par);
        let dealt = proof.as_ref().and_then(|proof| Some((proof, self.dealt_on_entry(par, Some(proof))?)));
        let inside = match dealt {
            Some((proof, number)) => {
                line!(self, "const i64 jf = f{last}; i64 wild = 0; (void)wild;");
                line!(
                    self,
                    "const eb_plan plan = plan{number}; const eb_deal deal = {{column{number}, plan.columns, nth{number}, plan.band}};"
                );
                line!(self, "const nx few_rows = plan.rows, few_columns = plan.row;");
                match self.is_known_on_entry(proof) {
                    true => line!(self, "const b8 proved = plan.proved;"),
                    false => line!(self, "const b8 proved = {};", proved(proof, &narrow(par))),
                }
                Inside::proved(proof.exact.clone())
            }
            None => {
                let inside = self.interval(par);
                self.dealt_on_entry(par, None);
                self.deal(par, "jf");
                line!(
                    self,
                    "const nx few_rows = (nx)rows, few_columns = (nx)row; (void)few_rows; (void)few_columns;"
                );
                inside
            }
        };
        if inside.proved {
            line!(self, "i32 oops = 0; i64 oops_index = 0, oops_extent = 0;");
            // Loops of their own: what careful iterations compute would slow these down.
            line!(self, "if (proved) {{");
            let narrow = narrow_values(self.program, par);
            let proved = Proved { exact: &inside.exact, narrow: &narrow };
            self.narrow_bounds(par, &narrow);
            line!(self, "const nx band = (nx)deal.band, first = deal.nth * band;");
            line!(self, "const nx end = few_rows - first > band ? first + band : few_rows;");
            line!(
                self,
                "for (nx column = deal.column; column < few_columns; column += deal.columns) {{ const nx j = (nx)jf + column;"
            );
            line!(self, "for (nx r = first; r < end; r += {together}) {{");
            if together > 1 {
                line!(self, "if (r + {} < end) {{", together - 1);
                for side in 0..together {
                    self.outer_variables(&par.ranges, "nx", &format!("(r + {side})"), Some(side));
                    line!(self, "const nx {} = j;", Name { side: Some(side), ..j });
                    self.not_below(par, Some(side));
                }
                self.unchecked(it, cx, proved, together);
                line!(self, "}} else for (nx rest = r; rest < end; rest++) {{ const nx r = rest;");
            } else {
                line!(self, "{{");
            }
            self.outer_variables(&par.ranges, "nx", "r", None);
            line!(self, "const nx {j} = j;");
            self.not_below(par, None);
            self.unchecked(it, cx, proved, 1);
            line!(self, "}} }} }}");
            line!(self, "}} else");
        }
        line!(self, "{{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first, rows);");
        // Without rows there is nothing to do, however many columns there are.
        line!(
            self,
            "if (first < end) for (i64 column = deal.column; column < row; column = eb_next(column, deal.columns, row)) {{ const i64 j = jf + column;"
        );
        line!(self, "for (i64 r = first; r < end; r++) {{");
        self.row(par, &inside);
        if !inside.proved {
            self.iteration(it, cx, &inside);
        } else {
            // Seldom run: what it computes should cost what is often run no registers.
            line!(self, "const i64 {j} = j;");
            let body = self.forms.careful_aside(it);
            self.body(cx.seldom(), &body);
        }
        line!(self, "}} }} }}");
        if inside.proved {
            line!(self, "goto exit{exit};");
            line!(self, "fault{exit}: eb_out_of_bounds(f, oops, oops_index, oops_extent);");
        }
        line!(self, "exit{exit}: ;");
    }

    /// Sixteen threads take an iteration, each a lane of its sums, where there are fewer iterations than threads.
    fn in_teams(&mut self, it: &Iterations, cx: Context) {
        let (par, exit) = (it.par, cx.exit);
        line!(self, "if (rows > 0 && row > 0) {{");
        let inside = self.interval(par);
        line!(self, "const i64 iterations = eb_times(rows, row);");
        line!(self, "const int lane = threadIdx.x & 15; const u32 team = 0xffffu << (threadIdx.x & 16);");
        line!(self, "if (iterations < f->threads)");
        line!(self, "EB_LOOP for (i64 at = f->thread >> 4; at < iterations; at += f->threads >> 4) {{");
        line!(self, "const i64 r = at / row, j = jf + at % row;");
        self.row(par, &inside);
        line!(self, "const i64 {} = j;", innermost(par));
        let team = Context { team: Team::Lanes, ..cx };
        let of_team = Iterations { team: Team::Lanes, ..*it };
        let mut pace = team.seldom();
        if let Some(interior) = &inside.interior {
            line!(self, "if (j >= lo && j < hi) {{");
            let body = self.forms.of_interior(&of_team, interior);
            self.body(team, &body);
            line!(self, "}} else {{");
        } else if inside.proved {
            line!(self, "if (proved) {{");
            let body = self.forms.in_order(&of_team, Proved { exact: &inside.exact, narrow: &Narrow::new() });
            self.body(team, &body);
            line!(self, "}} else {{");
        } else {
            pace = team;
            line!(self, "{{");
        }
        let body = self.forms.checked_at_once(&of_team);
        self.body(pace, &body);
        line!(self, "}} }} else");
        line!(self, "EB_LOOP for (i64 at = f->thread; at < iterations; at += f->threads) {{");
        line!(self, "const i64 r = at / row, j = jf + at % row;");
        self.row(par, &inside);
        self.iteration(it, cx, &inside);
        line!(self, "}}");
        line!(self, "exit{exit}: ; }}");
    }

    /// Tells the compiler that variables are not below where their ranges begin: conditions that follow from that go.
    fn not_below(&mut self, par: &Par, side: Option<usize>) {
        for range in &par.ranges {
            if self.program.literal(range.from).is_some() {
                let variable = Name { side, ..Name::value(range.var) };
                line!(self, "__builtin_assume({variable} >= (nx){});", self.value(range.from));
            }
        }
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
                "const eb_deal deal = {{column{number}, plan{number}.columns, nth{number}, plan{number}.band}};"
            ),
            false => {
                line!(self, "const eb_deal deal = eb_share(rows, row, {from}, {});", self.rows_together(par))
            }
        }
    }

    fn is_dealt_on_entry(&self, number: usize) -> bool {
        self.entry.contains(Known::Plan(number))
    }

    /// The number of what each thread takes of a loop, where its domain is known on entry to the segment: it is computed
    /// there, once, and so is whether the loop needs checks, if that is known there too.
    fn dealt_on_entry(&mut self, par: &Par, proof: Option<&Proof>) -> Option<usize> {
        let (ranges, number) = (self.known_on_entry.ranges(self.program, par)?, par.id.index());
        if self.is_dealt_on_entry(number) {
            return Some(number);
        }
        let last = ranges.len() - 1;
        let mut entry = format!("__shared__ eb_plan plan{number}; i32 column{number}, nth{number}; {{\n");
        for (d, (from, to)) in ranges.iter().enumerate() {
            entry.push_str(&format!("const i64 f{d} = {from}, e{d} = eb_extent(f{d}, {to});\n"));
        }
        let rows = (0..last).fold("1".to_string(), |rows, d| format!("eb_times({rows}, e{d})"));
        let proof = proof.filter(|proof| self.is_known_on_entry(proof));
        let tests = proof.map_or("1".to_string(), |proof| proved(proof, &narrow(par)));
        entry.push_str(&format!("i64 wild = 0; const b8 proved = {tests}; (void)wild;\n"));
        entry.push_str(&format!(
            "const eb_deal deal = eb_share_once({rows}, e{last}, f{last}, {}, proved, &plan{number});\n",
            self.rows_together(par)
        ));
        entry.push_str(&format!("column{number} = deal.column; nth{number} = deal.nth; }}\n"));
        self.entry.add(Known::Plan(number), entry);
        Some(number)
    }

    /// Ordered sums at shared elements, where iterations cannot note them for later: one thread takes all in order.
    fn one_thread(&mut self, it: &Iterations, cx: Context, reductions: &[(Combine, &Store)]) {
        let inside = self.interval(it.par);
        line!(self, "const eb_leaves cut = eb_cut(rows, row);");
        line!(self, "if (f->thread == 0) for (i64 leaf = 0; leaf < cut.count; leaf++) {{");
        self.leaf();
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            line!(self, "struct {{ {} lane[16]; }} r{k};", c_type(ty));
            line!(self, "for (int k = 0; k < 16; k++) r{k}.lane[k] = {};", neutral(*how, ty));
        }
        line!(self, "EB_LOOP for (i64 r = first; r < end; r++) {{");
        self.row(it.par, &inside);
        line!(
            self,
            "for (i64 j = left; j < right; j++) {{ const int lane = (int)((j - jf) & 15); (void)lane;"
        );
        self.iteration(it, cx, &inside);
        line!(self, "}} }}");
        self.end_leaf(reductions);
        line!(self, "}}");
        line!(self, "exit{}: ;", cx.exit);
    }
}

/// The tests that the variables of the loop are narrow.
fn narrow(par: &Par) -> Vec<String> {
    let far = |d: usize| {
        [format!("f{d} >= -EB_SMALL"), format!("e{d} <= EB_SMALL - f{d}"), format!("e{d} <= EB_SMALL")]
    };
    (0..par.ranges.len()).flat_map(far).collect()
}
