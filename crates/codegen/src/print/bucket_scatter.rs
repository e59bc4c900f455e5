//! Ordered sums at shared elements, by the threads of a CPU (see [`crate::kernel::nest::Buckets`]), as C.

use ebbtide_ir::{ArrayId, Combine};

use crate::kernel::name::Ty;
use crate::kernel::nest::Buckets;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// Prints a loop in batches, or as one batch of one thread; `row` prints the rows `first..end` and columns `jf..jt`.
    pub fn batches(&mut self, buckets: &Buckets, last: usize, row: impl FnOnce(&mut Self)) {
        let Buckets { tables, bytes, exit, .. } = buckets;
        let [work, terms] = [&buckets.work, &buckets.terms].map(|work| self.work_text(work));
        let narrow = |table: &(ArrayId, Combine)| format!(" && {} <= UINT32_MAX", self.length(table.0));
        let narrow: String = tables.iter().map(narrow).collect();
        line!(self, "const f64 terms = {terms};");
        line!(
            self,
            "const int noted = eb_pays_to_note(f, rows, row, {work}, terms, {}){narrow};",
            tables.len()
        );
        line!(
            self,
            "eb_notes *const notes = noted ? eb_begin_notes(f, {}, {bytes}.0 * terms) : 0;",
            tables.len()
        );
        line!(self, "const i64 mask = noted ? notes->buckets - 1 : 0;");
        for (k, (array, how)) in tables.iter().enumerate() {
            let (combine, length) = (self.combine_terms(*array, *how), self.length(*array));
            let t = c_type(self.program.array(*array).ty);
            let runs = match self.counted_number(*array) {
                Some(number) => format!("runs + {number}, eb_end_runs_{t}"),
                None => "0, 0".to_string(),
            };
            let begin =
                format!("eb_begin_table(notes, {k}, a{}, {length}, {combine}, {runs})", array.index());
            line!(self, "eb_bucket *const bucket{k} = noted ? {begin} : 0;");
            line!(self, "const i32 shift{k} = noted ? notes->table[{k}].shift : 0;");
        }
        line!(self, "const i64 iterations = noted || f->thread == 0 ? eb_times(rows, row) : 0;");
        line!(self, "for (i64 done = 0; done < iterations;) {{");
        line!(self, "i64 at = done, stop = iterations, batch = iterations;");
        line!(self, "if (noted) {{ batch = eb_min(eb_times(notes->share, f->threads), iterations - done);");
        line!(self, "at = done + eb_share(batch, f->thread, f->threads);");
        line!(self, "stop = done + eb_share(batch, f->thread + 1, f->threads); }}");
        line!(self, "while (at < stop) {{");
        line!(self, "const i64 first = at / row, end = first + 1, jf = f{last} + at % row;");
        line!(self, "const i64 jt = jf + eb_min(row - at % row, stop - at);");
        line!(self, "at += jt - jf;");
        row(self);
        line!(self, "}}");
        line!(
            self,
            "exit{exit}: if (noted && eb_combine_rounds(notes, 0, done + batch >= iterations)) break;"
        );
        line!(self, "done += batch; }}");
        for (array, _) in tables {
            if let Some(number) = self.counted_number(*array) {
                let (a, t) = (array.index(), c_type(self.program.array(*array).ty));
                line!(self, "if (!noted && f->thread == 0) eb_end_runs_{t}(f, runs + {number}, a{a}, 0, 0);");
            }
        }
    }

    /// How many elements an array has, as a C expression.
    pub fn length(&self, array: ArrayId) -> String {
        let a = array.index();
        (0..self.program.array(array).rank).fold("1".to_string(), |n, d| format!("eb_times({n}, d{a}_{d})"))
    }

    /// The function that combines noted terms with the elements of an array, wanted from now on.
    fn combine_terms(&mut self, array: ArrayId, how: Combine) -> String {
        let ty = self.program.array(array).ty;
        let t = c_type(ty);
        let counted = self.counted_number(array).is_some();
        let name = match how {
            Combine::Add if counted => format!("eb_count_terms_{t}"),
            Combine::Add => format!("eb_add_terms_{t}"),
            Combine::Min => format!("eb_min_terms_{t}"),
            Combine::Max => format!("eb_max_terms_{t}"),
        };
        let combined = self.combine(how, Ty::One(ty), "a[term->at]", "term->value");
        let (once, count) = match counted {
            true => (
                " const i32 kind = r->kind; uint16_t *const counts = r->counts;",
                format!(" if (eb_counted(&r, 0, kind, counts, term->at)) eb_finish_run_{t}(r, a, term->at);"),
            ),
            false => ("", String::new()),
        };
        let text = format!(
            "static void {name}(void *array, eb_runs *r, const char *at, const char *end) {{ {t} *const a = array; (void)r;{once} \
             for (const eb_term_{t} *term = (const void *)at; term != (const void *)end; term++) {{ a[term->at] = {combined};{count} }} }}\n"
        );
        self.combining.insert(name.clone(), text);
        name
    }
}
