//! Sums over iterations that take long, by the threads of a CPU (see [`crate::analysis::kept_terms`]), as C.

use ebbtide_ir::{Combine, Store};

use crate::kernel::name::Ty;
use crate::print::c_types::{c_type, neutral, to_bits, word};
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// Prints the windows of a loop; `row` prints the rows `first..end` and columns `jf..jt`, whose terms are kept at `j - origin`.
    pub fn windows(
        &mut self,
        reductions: &[(Combine, &Store)],
        (last, exit): (usize, usize),
        row: impl FnOnce(&mut Self),
    ) {
        let sums = reductions.len();
        self.kept_terms = self.kept_terms.max(sums);
        line!(self, "const i64 window = eb_window(f, {sums});");
        // There is room for the terms of sixteen iterations wherever one runs.
        line!(self, "if (window < 16) eb_fault(f, EB_TAPE, 0, 0, 0, 0);");
        line!(self, "const i64 iterations = window < 16 ? 0 : eb_times(rows, row);");
        for (k, (_, s)) in reductions.iter().enumerate() {
            let t = c_type(self.program.array(s.array).ty);
            line!(self, "{t} *const kept{k} = ({t} *)(f->staging + {k} * (8 * window + EB_OPEN));");
        }
        line!(self, "for (i64 batch = 0, turn = 0; batch < iterations; batch += window, turn ^= 1) {{");
        line!(self, "const i64 here = eb_min(window, iterations - batch);");
        line!(self, "const i64 stop = batch + eb_column(here, part + 1, parts);");
        line!(self, "for (i64 at = batch + eb_column(here, part, parts); at < stop;) {{");
        line!(self, "const i64 first = at / row, end = first + 1, jf = f{last} + at % row;");
        line!(self, "const i64 jt = jf + eb_min(row - at % row, stop - at), origin = jf - (at - batch);");
        line!(self, "at += jt - jf;");
        row(self);
        line!(self, "}}");
        line!(self, "exit{exit}: if (split ? eb_barrier(f) : f->shared->fault) break;");
        for (k, (how, s)) in reductions.iter().enumerate() {
            let add = self.add_kept(*how, s);
            line!(
                self,
                "{add}(f->partials + {k} * EB_PARTIALS, rows, row, batch, here, part, parts, kept{k}, kept{k} + 8 * window / sizeof *kept{k}, turn);"
            );
        }
        line!(self, "if (split && batch + window < iterations && eb_barrier(f)) break;");
        line!(self, "}}");
    }

    /// The function that adds kept terms to the sums of leaves, wanted from now on.
    fn add_kept(&mut self, how: Combine, s: &Store) -> String {
        let ty = self.program.array(s.array).ty;
        let t = c_type(ty);
        let name = format!("eb_{}_kept_{t}", word(how));
        let text = include_str!("../prelude/kept_terms.c")
            .replace("$NAME", &name)
            .replace("$NEUTRAL", &neutral(how, ty))
            .replace("$TERM", &self.combine(how, Ty::One(ty), "sum", "kept[at + k]"))
            .replace("$LANE", &self.combine(how, Ty::One(ty), "lanes[k]", "lanes[k + w]"))
            .replace("$BITS", &to_bits(ty, "lanes[0]"))
            .replace("$TYPE", t);
        self.adding.insert(name.clone(), text);
        name
    }
}
