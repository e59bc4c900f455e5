//! Sums over a grid of CUDA threads, in the order of leaves.

use ebbtide_ir::{Combine, Store, Type};

use crate::kernel::name::Ty;
use crate::print::c_types::{c_type, from_bits, neutral, to_bits, word};
use crate::print::emitter::{Emitter, line};

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
                "const {t} sum = eb_add_lanes(r{k}, {combine}); if ((threadIdx.x & 15) == 0) f->partials[{k} * EB_PARTIALS + leaf] = {bits};"
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
                "eb_add_terms(f, {k}, rows, row, batch, {count}, turn, kept{k}, ({t}){neutral}, [](const {t} sum) {{ return {bits}; }}, {combiner});"
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
