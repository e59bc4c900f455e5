//! Ordered sums at shared elements, by all threads of a grid (see [`crate::analysis::ordered_updates`]), as CUDA C.

use ebbtide_ir::ValueId;

use crate::analysis::ordered_updates::{Place, STAGE, notes};
use crate::kernel::name::{Name, Ty};
use crate::kernel::stmt::Term;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::print::statements::Context;
use crate::transform::forms::Iterations;
use crate::transform::lower::Shared;

impl Emitter<'_> {
    /// Prints a loop whose sums at shared elements keep their order; says so where it cannot.
    pub fn staged(&mut self, it: &Iterations, cx: Context) -> bool {
        let (par, exit) = (it.par, cx.exit);
        let Some(notes) = notes(self.program, self.facts, par) else { return false };
        self.notes = true;
        let total: usize = notes.iter().map(|n| n.each).sum();
        let most = STAGE / total.max(1);
        let (mut before, mut shared) = (0, Shared::default());
        for (n, note) in notes.iter().enumerate() {
            let (t, each) = (c_type(self.program.array(note.array).ty), note.each);
            line!(self, "nx *const keys{n} = (nx *)f->stage + {};", most * before);
            line!(self, "{t} *const terms{n} = ({t} *)(f->stage + EB_STAGE + {});", most * before);
            for (update, place) in &note.updates {
                shared.noted.push((update, n, each, term(place)));
            }
            before += each;
        }
        let inside = self.interval(par, &[]);
        line!(self, "const i64 iterations = eb_times(rows, row);");
        line!(self, "for (i64 batch = 0; batch < iterations; batch += {most}) {{");
        line!(self, "const i64 noted = eb_min(iterations - batch, {most});");
        line!(self, "for (i64 at = f->thread; at < noted; at += f->threads) {{");
        line!(self, "const i64 r = (batch + at) / row, j = jf + (batch + at) % row;");
        for (n, note) in notes.iter().enumerate().filter(|(_, note)| note.fewer) {
            line!(self, "for (int k = 0; k < {0}; k++) keys{n}[at * {0} + k] = -1;", note.each);
        }
        self.row(par, &inside);
        self.iteration(&Iterations { shared: &shared, ..*it }, cx, &inside);
        line!(self, "}}");
        line!(self, "exit{exit}: if (eb_barrier(f)) goto leave;");
        for (n, note) in notes.iter().enumerate() {
            let (a, ty) = (note.array.index(), self.program.array(note.array).ty);
            let (t, each) = (c_type(ty), note.each);
            let length: Vec<String> =
                (0..self.program.array(note.array).rank).map(|d| format!(" * d{a}_{d}")).collect();
            let combined = self.combine(note.how, Ty::One(ty), "sum", "term");
            line!(
                self,
                "if (eb_combine_noted(f, a{a}, (i64)1{}, keys{n}, terms{n}, noted * {each}, [](const {t} sum, const {t} term) {{ return {combined}; }})) goto leave;",
                length.concat()
            );
        }
        // The next batch is noted where this one was.
        line!(self, "if (batch + {most} < iterations && eb_barrier(f)) goto leave;");
        line!(self, "}}");
        true
    }
}

/// The place of a term, with loops by the names of their variables.
fn term(place: &Place) -> Term {
    let named = |(v, begin, each): &(ValueId, i64, usize)| (Name::value(*v), *begin, *each);
    Term { loops: place.loops.iter().map(named).collect(), first: place.first }
}
