//! Sums over a grid of CUDA threads, in the order of leaves.

use ebbtide_ir::{Combine, Store, Type};

use crate::analysis::narrow_index::Narrow;
use crate::analysis::work::at_once_in_lane;
use crate::kernel::name::Ty;
use crate::print::c_types::{c_type, from_bits, neutral, to_bits, word};
use crate::print::emitter::{Emitter, line};
use crate::print::grid::Inside;
use crate::print::statements::{Context, Lanes};
use crate::transform::forms::{Iterations, Proved};

/// The words of memory that the threads of a block share; `EB_BLOCK_WORDS` of the prelude.
const BLOCK_WORDS: usize = 4096;

impl Emitter<'_> {
    /// Sixteen threads take a leaf, each the sums of one lane. Leaves are few: each block takes some.
    pub fn leaf_by_leaf(&mut self, it: &Iterations, cx: Context, reductions: &[(Combine, &Store)]) {
        let inside = self.interval(it.par);
        line!(self, "const eb_leaves cut = eb_cut(rows, row);");
        line!(self, "const int lane = threadIdx.x & 15; const u32 sixteen = 0xffffu << (threadIdx.x & 16);");
        line!(
            self,
            "EB_LOOP for (i64 leaf = (threadIdx.x >> 4) * gridDim.x + blockIdx.x; leaf < cut.count; leaf += f->threads >> 4) {{"
        );
        self.leaf();
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            line!(self, "{} r{k} = {};", c_type(ty), neutral(*how, ty));
        }
        line!(self, "EB_LOOP for (i64 r = first; r < end; r++) {{");
        self.row(it.par, &inside);
        self.lane_of_row(it, Context { lanes: Lanes::InThreads, ..cx }, &inside);
        line!(self, "}}");
        // Who met a fault comes here: the others wait for its part of the sums.
        line!(self, "exit{}: ;", cx.exit);
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let combined = self.combine(*how, Ty::One(ty), &format!("r{k}"), "other");
            line!(
                self,
                "for (int w = 8; w > 0; w /= 2) {{ const {} other = __shfl_down_sync(sixteen, r{k}, w, 16); r{k} = {combined}; }}",
                c_type(ty)
            );
            let bits = to_bits(ty, &format!("r{k}"));
            line!(self, "if (lane == 0) f->partials[{k} * EB_PARTIALS + leaf] = {bits};");
        }
        line!(self, "}}");
    }

    /// A block takes a leaf: its threads take iterations and leave their terms in memory that they share, and sixteen of them add
    /// these, each those of one lane.
    pub fn leaf_by_block(&mut self, it: &Iterations, cx: Context, reductions: &[(Combine, &Store)]) {
        let inside = self.interval(it.par);
        let tile = BLOCK_WORDS / reductions.len();
        line!(self, "const eb_leaves cut = eb_cut(rows, row);");
        for (k, (_, s)) in reductions.iter().enumerate() {
            let t = c_type(self.program.array(s.array).ty);
            line!(self, "{t} *const kept{k} = ({t} *)(eb_block_memory() + {});", k * tile);
        }
        line!(self, "EB_LOOP for (i64 leaf = blockIdx.x; leaf < cut.count; leaf += gridDim.x) {{");
        self.leaf();
        line!(self, "const i64 width = right - left, all = (end - first) * width;");
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            line!(self, "{} r{k} = {};", c_type(ty), neutral(*how, ty));
        }
        line!(self, "EB_LOOP for (i64 tile = 0; tile < all; tile += {tile}) {{");
        line!(self, "const i64 last = eb_min(all, tile + {tile});");
        line!(self, "__syncthreads();");
        self.terms_of_tile(it, Context { lanes: Lanes::Later, ..cx }, &inside, reductions);
        // Who met a fault comes here: the others wait for it.
        line!(self, "exit{}: __syncthreads();", cx.exit);
        self.by_groups(reductions, |k, _, _, combine| {
            format!("r{k} = eb_add_lane(kept{k} - tile, tile, last, width, r{k}, {combine});")
        });
        line!(self, "}}");
        self.by_groups(reductions, |k, t, bits, combine| {
            format!(
                "const {t} sum = eb_add_lanes(r{k}, {combine}); if ((threadIdx.x & 15) == 0) f->partials[{k} * EB_PARTIALS + leaf] = {bits};"
            )
        });
        line!(self, "}}");
    }

    /// A function object that combines two numbers: the same for all, so that what it is given to is compiled once.
    pub fn combiner(&mut self, how: Combine, ty: Type) -> String {
        let t = c_type(ty);
        let name = format!("eb_combine_{}_{t}", word(how));
        let combined = self.combine(how, Ty::One(ty), "sum", "term");
        let text = format!(
            "struct {name} {{ EB_IN {t} operator()({t} sum, {t} term) const {{ return {combined}; }} }};\n"
        );
        self.combiners.insert(name.clone(), text);
        name + "()"
    }

    /// Sixteen threads do something for each sum, others for others: the text of what they do, from its number, its type, the bits
    /// of `sum` and the function that combines.
    fn by_groups(
        &mut self,
        reductions: &[(Combine, &Store)],
        text: impl Fn(usize, &str, &str, &str) -> String,
    ) {
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let t = c_type(ty);
            let text = text(k, t, &to_bits(ty, "sum"), &self.combiner(*how, ty));
            line!(self, "if ((threadIdx.x >> 4) == {k} % (blockDim.x >> 4)) {{ {text} }}");
        }
    }

    /// The iterations `tile..last` of a leaf leave their terms: where they need no checks, several at a time, since each waits for
    /// what it loads.
    fn terms_of_tile(
        &mut self,
        it: &Iterations,
        cx: Context,
        inside: &Inside,
        reductions: &[(Combine, &Store)],
    ) {
        const EACH: &str = "for (i64 at = tile + threadIdx.x; at < last; at += blockDim.x) { const i64 line = eb_line(at, width), r = first + line, j = left + at - line * width;";
        let at_once = at_once_in_lane(self.program, it.par);
        if !inside.proved {
            line!(self, "EB_LOOP {EACH}");
            self.row(it.par, inside);
            self.no_terms(reductions);
            self.iteration(it, cx, inside);
            self.keep_terms(reductions, "at - tile");
            return line!(self, "}}");
        }
        let j = it.par.ranges[it.par.ranges.len() - 1].var.index();
        line!(self, "if (proved) {{ EB_AT_ONCE({at_once}) {EACH} const i64 v{j} = j;");
        self.row(it.par, inside);
        self.no_terms(reductions);
        self.unchecked(it, cx, Proved { exact: &inside.exact, narrow: &Narrow::new() }, 1);
        self.keep_terms(reductions, "at - tile");
        line!(self, "}} }} else EB_LOOP {EACH} const i64 v{j} = j;");
        self.row(it.par, inside);
        self.no_terms(reductions);
        let body = self.forms.careful(it);
        self.body(cx.seldom(), &body);
        self.keep_terms(reductions, "at - tile");
        line!(self, "}}");
    }

    /// All threads take iterations, which keep their terms; then sixteen threads add those of a leaf.
    pub fn terms_first(&mut self, it: &Iterations, cx: Context, reductions: &[(Combine, &Store)]) {
        let inside = self.interval(it.par);
        line!(self, "const i64 iterations = eb_times(rows, row);");
        self.kept_terms(reductions);
        line!(self, "for (i64 batch = 0; batch < iterations; batch += EB_WINDOW) {{");
        line!(self, "const i64 here = eb_min(iterations - batch, EB_WINDOW);");
        line!(self, "EB_LOOP for (i64 at = f->thread; at < here; at += f->threads) {{");
        line!(self, "const i64 r = (batch + at) / row, j = jf + (batch + at) % row;");
        self.row(it.par, &inside);
        self.no_terms(reductions);
        self.iteration(it, Context { lanes: Lanes::Later, ..cx }, &inside);
        self.keep_terms(reductions, "at");
        line!(self, "}}");
        line!(self, "exit{}: if (eb_barrier(f)) goto leave;", cx.exit);
        self.add_terms(reductions, "here");
        line!(self, "if (batch + EB_WINDOW < iterations && eb_barrier(f)) goto leave;");
        line!(self, "}}");
    }

    /// Where the terms of sums are kept.
    pub fn kept_terms(&mut self, reductions: &[(Combine, &Store)]) {
        self.kept_terms = self.kept_terms.max(reductions.len());
        if !reductions.is_empty() {
            line!(self, "int turn = 0;");
        }
        for (k, (_, s)) in reductions.iter().enumerate() {
            let t = c_type(self.program.array(s.array).ty);
            line!(self, "{t} *const kept{k} = ({t} *)eb_terms(f, {k});");
        }
    }

    /// An iteration has no terms so far.
    pub fn no_terms(&mut self, reductions: &[(Combine, &Store)]) {
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            line!(self, "{} term{k} = {};", c_type(ty), neutral(*how, ty));
        }
    }

    /// Keeps the terms of an iteration in this place.
    pub fn keep_terms(&mut self, reductions: &[(Combine, &Store)], place: &str) {
        (0..reductions.len()).for_each(|k| line!(self, "kept{k}[{place}] = term{k};"));
    }

    /// Adds the terms of so many iterations, from `batch` on, to the sums of their leaves.
    pub fn add_terms(&mut self, reductions: &[(Combine, &Store)], count: &str) {
        if reductions.is_empty() {
            return;
        }
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let (t, neutral, bits) = (c_type(ty), neutral(*how, ty), to_bits(ty, "sum"));
            let combiner = self.combiner(*how, ty);
            line!(
                self,
                "eb_add_terms(f, {k}, rows, row, batch, {count}, turn, kept{k}, ({t}){neutral}, [](const {t} sum) {{ return {bits}; }}, {combiner});"
            );
        }
        line!(self, "turn ^= 1;");
    }

    /// The iterations of one lane in a row: where they need no checks, several at a time, since each waits for what it loads.
    fn lane_of_row(&mut self, it: &Iterations, cx: Context, inside: &Inside) {
        const EACH: &str = "for (i64 j = left + lane; j < right; j += 16) {";
        // Where columns may be near the end of their type, the distance from the first one is counted instead.
        const ANY: &str =
            "for (i64 away = lane; away < right - left; away += 16) { const i64 j = left + away;";
        if !inside.proved {
            line!(self, "EB_LOOP {ANY}");
            self.iteration(it, cx, inside);
            return line!(self, "}}");
        }
        let j = it.par.ranges[it.par.ranges.len() - 1].var.index();
        line!(
            self,
            "if (proved) {{ EB_AT_ONCE({}) {EACH} const i64 v{j} = j;",
            at_once_in_lane(self.program, it.par)
        );
        self.unchecked(it, cx, Proved { exact: &inside.exact, narrow: &Narrow::new() }, 1);
        line!(self, "}} }} else EB_LOOP {ANY} const i64 v{j} = j;");
        let body = self.forms.careful(it);
        self.body(cx.seldom(), &body);
        line!(self, "}}");
    }

    /// The rows `first..end` and columns `left..right` of a leaf.
    pub fn leaf(&mut self) {
        self.rows_of_leaf();
        line!(
            self,
            "const i64 left = jf + piece * cut.size, right = left + eb_min(cut.size, row - piece * cut.size);"
        );
    }

    /// Combines the results of leaves, in their order, into the elements that are summed to.
    pub fn combine_leaves(&mut self, reductions: &[(Combine, &Store)]) {
        line!(
            self,
            "if (f->thread < 32 && rows > 0 && row > 0) {{ const i64 count = eb_cut(rows, row).count;"
        );
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let (t, exit) = (c_type(ty), self.fresh());
            let partials = format!("f->partials + {k} * EB_PARTIALS");
            let partial = from_bits(ty, "bits");
            let combiner = self.combiner(*how, ty);
            line!(self, "if (({partials})[EB_SEEN]) {{");
            line!(
                self,
                "const {t} total = eb_in_order({partials}, count, ({t}){}, [](u64 bits) {{ return {partial}; }}, {combiner});",
                neutral(*how, ty)
            );
            line!(self, "if (f->thread == 0) {{ ({partials})[EB_SEEN] = 0;");
            self.combine_total(*how, s, exit);
            line!(self, "exit{exit}: ; }} }}");
        }
        line!(self, "}}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_prelude_knows_as_many_words() {
        let prelude = include_str!("../prelude/prelude.cu");
        assert!(prelude.contains(&format!("EB_BLOCK_WORDS = {} ", super::BLOCK_WORDS)));
    }
}
