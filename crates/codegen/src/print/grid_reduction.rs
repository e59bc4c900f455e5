//! Sums over a grid of CUDA threads, in the order of leaves.

use ebbtide_ir::{Combine, Par, Store, Type};

use crate::analysis::names::always_combines;
use crate::kernel::name::Ty;
use crate::print::c_types::{c_type, from_bits, neutral, to_bits, word};
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;

/// The place of a result of sum `k` of the loop being printed: of a leaf, or what else is known of the sum.
pub(crate) fn result_of_leaf(k: usize, place: &str) -> String {
    format!("partials[{k} * EB_RESULTS + {place}]")
}

impl Emitter<'_> {
    /// Sixteen threads add the terms that the iterations of a tile left, each those of one lane.
    pub fn add_tile(&mut self, reductions: &[(Combine, &Store)]) {
        self.by_groups(reductions, |k, _, _, combine| {
            format!("r{k} = eb_add_lane(kept{k} - tile, tile, last, width, r{k}, {combine});")
        });
    }

    /// The sums of a leaf that a block took, from those of its lanes.
    pub fn end_leaf_of_block(&mut self, reductions: &[(Combine, &Store)]) {
        self.by_groups(reductions, |k, t, bits, combine| {
            format!(
                "const {t} sum = eb_add_lanes(r{k}, {combine}); if ((threadIdx.x & 15) == 0) {} = {bits};",
                result_of_leaf(k, "leaf")
            )
        });
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
                "eb_add_terms(f, {k}, &{}, rows, row, batch, {count}, turn, kept{k}, ({t}){neutral}, [](const {t} sum) {{ return {bits}; }}, {combiner});",
                result_of_leaf(k, "0")
            );
        }
        line!(self, "turn ^= 1;");
    }

    /// The rows `first..end` and columns `left..right` of a leaf.
    pub fn leaf(&mut self) {
        self.rows_of_leaf();
        line!(
            self,
            "const i64 left = jf + piece * cut.size, right = left + eb_min(cut.size, row - piece * cut.size);"
        );
    }

    /// Thread 0 combines the results of leaves; the others go on.
    pub fn combine_leaves(&mut self, par: &Par, reductions: &[(Combine, &Store)]) {
        self.combine_by(par, reductions, "f->thread < 32");
    }

    /// All threads meet, before the results of leaves are combined and behind it: the last ones that come combine, while the others wait.
    pub fn meet_and_combine(&mut self, par: &Par, reductions: &[(Combine, &Store)]) {
        line!(self, "{{ const i32 way = eb_begin_to_combine(f);");
        self.combine_by(par, reductions, "(way & EB_COMBINES)");
        line!(self, "if (eb_end_combining(f, way)) goto leave; }}");
    }

    /// Thread 0 asks what the elements hold that sums are for: nobody else is about them.
    pub fn ask_for_elements(&mut self, reductions: &[(Combine, &Store)]) {
        for (k, (_, s)) in reductions.iter().enumerate() {
            let (a, t) = (s.array.index(), c_type(self.program.array(s.array).ty));
            line!(self, "const {t} element{k} = f->thread == 0 ? a{a}[0] : ({t})0;");
        }
    }

    /// It says so, so that all threads can know it when they have met.
    pub fn tell_elements(&mut self, reductions: &[(Combine, &Store)]) {
        for (k, (_, s)) in reductions.iter().enumerate() {
            let bits = to_bits(self.program.array(s.array).ty, &format!("element{k}"));
            line!(self, "if (f->thread == 0) {} = {bits};", result_of_leaf(k, "EB_ELEMENT"));
        }
    }

    /// A warp of each block combines the results of leaves, in their order, and its block knows the sums. The first thread of all stores
    /// them in their elements.
    pub fn combine_for_all(&mut self, par: &Par, reductions: &[(Combine, &Store)]) {
        let (leaves, number) = (self.cut_into_leaves(par), par.id.index());
        line!(self, "if (threadIdx.x < 32) {{ const i64 count = rows > 0 && row > 0 ? {leaves}.count : 0;");
        for k in 0..reductions.len() {
            line!(self, "const u64 *const results{k} = &{};", result_of_leaf(k, "0"));
            line!(self, "const u64 before{k} = results{k}[EB_ELEMENT];");
            line!(self, "const u64 first{k} = eb_result_of_leaf(results{k}, 0, count);");
        }
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let (t, neutral, combiner) = (c_type(ty), neutral(*how, ty), self.combiner(*how, ty));
            let (partial, before) = (from_bits(ty, "bits"), from_bits(ty, &format!("before{k}")));
            line!(
                self,
                "const {t} total{k} = eb_in_order(results{k}, first{k}, count, ({t}){neutral}, [](u64 bits) {{ return {partial}; }}, {combiner});"
            );
            let combined = self.combine(*how, Ty::One(ty), &format!("old{k}"), &format!("total{k}"));
            line!(self, "if (threadIdx.x == 0) {{ const {t} old{k} = {before};");
            line!(self, "sum{number}_{k} = count > 0 ? {combined} : old{k};");
            line!(self, "if (blockIdx.x == 0) a{}[0] = sum{number}_{k}; }}", s.array.index());
        }
        line!(self, "}}");
        line!(self, "__syncthreads();");
        let place = |(k, (_, s)): (usize, &(Combine, &Store))| {
            format!("__shared__ {} sum{number}_{k};\n", c_type(self.program.array(s.array).ty))
        };
        let places = reductions.iter().enumerate().map(place).collect();
        self.entry.add(Known::Sums(number), places);
    }

    /// A warp combines the results of leaves, in their order, into the elements that are summed to. What is loaded for that is asked for
    /// before anything waits for it: others wait for all of it.
    fn combine_by(&mut self, par: &Par, reductions: &[(Combine, &Store)], who: &str) {
        let leaves = self.cut_into_leaves(par);
        line!(self, "if ({who} && rows > 0 && row > 0) {{ const i64 count = {leaves}.count;");
        let alone = |array| reductions.iter().filter(|(_, s)| s.array == array).count() == 1;
        for (k, (_, s)) in reductions.iter().enumerate() {
            let decl = self.program.array(s.array);
            if decl.rank == 0 && alone(s.array) {
                line!(self, "const {} old{k} = a{}[0];", c_type(decl.ty), s.array.index());
            }
            line!(self, "const u64 *const results{k} = &{};", result_of_leaf(k, "0"));
            if !always_combines(par, s) {
                line!(self, "const u64 any{k} = results{k}[EB_SEEN];");
            }
            line!(self, "const u64 first{k} = eb_result_of_leaf(results{k}, 0, count);");
        }
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let (t, exit) = (c_type(ty), self.fresh());
            let partial = from_bits(ty, "bits");
            let combiner = self.combiner(*how, ty);
            line!(
                self,
                "const {t} total{k} = eb_in_order(results{k}, first{k}, count, ({t}){}, [](u64 bits) {{ return {partial}; }}, {combiner});",
                neutral(*how, ty)
            );
            match always_combines(par, s) {
                true => line!(self, "if ((threadIdx.x & 31) == 0) {{"),
                false => line!(
                    self,
                    "if ((threadIdx.x & 31) == 0 && any{k}) {{ {} = 0;",
                    result_of_leaf(k, "EB_SEEN")
                ),
            }
            if self.program.array(s.array).rank == 0 && alone(s.array) {
                let combined = self.combine(*how, Ty::One(ty), &format!("old{k}"), &format!("total{k}"));
                line!(self, "a{}[0] = {combined}; }}", s.array.index());
            } else {
                line!(self, "const {t} total = total{k};");
                self.combine_total(*how, s, exit);
                line!(self, "exit{exit}: ; }}");
            }
        }
        line!(self, "}}");
    }
}
