//! Ordered sums at shared elements, by all threads of a grid (see [`crate::analysis::ordered_updates`]), as CUDA C.
//!
//! Iterations note their terms in batches. Where they note the same number at most, each has its place in a table from the
//! beginning. Elsewhere the terms of a batch are counted first, by statements that do nothing else, and the sums of these
//! counts are the places.

use ebbtide_ir::{ArrayId, Block, Combine, Store};

use crate::analysis::ordered_updates::{Counts, notes};
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::print::grid::Inside;
use crate::print::statements::{Context, Lanes};
use crate::transform::forms::{Iterations, innermost};
use crate::transform::lower::Shared;

impl Emitter<'_> {
    /// Prints a loop whose sums at shared elements keep their order, beside sums over the whole loop; says so where it cannot.
    pub fn staged(&mut self, it: &Iterations, cx: Context, sums: &[(Combine, &Store)]) -> bool {
        let Some(notes) = notes(self.program, self.facts, it.par) else { return false };
        self.noted.insert(it.par.id, notes.terms());
        let inside = self.interval(it.par);
        let cx = Context { lanes: Lanes::Later, ..cx };
        let shared = Shared { noted: notes.updates.clone(), ..Shared::default() };
        let it = Iterations { shared: &shared, ..*it };
        line!(self, "const i64 iterations = eb_times(rows, row);");
        self.kept_terms(sums);
        let noting = Noting { it: &it, cx, inside: &inside, tables: &notes.tables, sums };
        match &notes.counts {
            Counts::AtMost(each) => self.in_places(&noting, each),
            Counts::Computed(counting) => self.in_counted_places(&noting, counting),
        }
        true
    }

    /// Each iteration has room for so many terms in each table.
    fn in_places(&mut self, noting: &Noting, each: &[usize]) {
        let total = each.iter().sum::<usize>().max(1);
        line!(self, "const i64 most = {};", noting.most(&format!("EB_ROOM / {total}")));
        let mut before = 0;
        for (n, ((array, _), each)) in noting.tables.iter().zip(each).enumerate() {
            self.table(n, *array, &format!("most * {before}"));
            before += each;
        }
        line!(self, "for (i64 batch = 0; batch < iterations; batch += most) {{");
        line!(self, "const i64 noted = eb_min(iterations - batch, most);");
        line!(self, "for (i64 at = f->thread; at < noted; at += f->threads) {{");
        for (n, each) in each.iter().enumerate() {
            line!(self, "i64 next{n} = at * {each}; const i64 end{n} = next{n} + {each};");
        }
        self.note(noting);
        line!(self, "}}");
        line!(self, "exit{}: if (eb_barrier(f)) goto leave;", noting.cx.exit);
        self.add_terms(noting.sums, "noted");
        for (n, ((array, how), each)) in noting.tables.iter().zip(each).enumerate() {
            self.combine_noted(n, *array, *how, &format!("noted * {each}"));
        }
        // The next batch is noted where this one was.
        line!(self, "if (batch + most < iterations && eb_barrier(f)) goto leave;");
        line!(self, "}}");
    }

    /// The terms of a batch are counted before they are noted. A block counts and notes the same iterations, neighbours in the
    /// order of all; those whose terms find no room begin the next batch.
    fn in_counted_places(&mut self, noting: &Noting, counting: &Block) {
        let tables = noting.tables.len();
        line!(self, "const i64 room = EB_ROOM / {tables};");
        for (n, (array, _)) in noting.tables.iter().enumerate() {
            self.table(n, *array, &format!("room * {n}"));
            line!(self, "i64 *const ends{n} = (i64 *)(f->stage + 2 * EB_STAGE) + room * {n};");
            line!(self, "i64 *const totals{n} = (i64 *)(f->stage + 3 * EB_STAGE) + {n} * gridDim.x;");
        }
        line!(self, "eb_noted *const done = eb_noted_by(f);");
        line!(self, "i64 most = {};", noting.most("room"));
        line!(self, "for (i64 batch = 0; batch < iterations;) {{");
        line!(self, "const eb_part part = eb_part_of_batch(eb_min(iterations - batch, most));");
        line!(self, "if (f->thread == 0) done->iterations = 0;");
        self.count_terms(noting, counting);
        line!(self, "if (eb_barrier(f)) goto leave;");
        for n in 0..tables {
            line!(self, "const i64 before{n} = eb_of_earlier_blocks(totals{n});");
        }
        line!(self, "for (i64 at = part.begin + threadIdx.x; at < part.end; at += blockDim.x) {{");
        for n in 0..tables {
            line!(self, "const i64 end{n} = before{n} + ends{n}[at];");
            line!(self, "i64 next{n} = at == part.begin ? before{n} : before{n} + ends{n}[at - 1];");
        }
        let any = |test: &dyn Fn(usize) -> String| (0..tables).map(test).collect::<Vec<_>>().join(" || ");
        line!(self, "if ({}) break;", any(&|n| format!("end{n} > room")));
        // The last one that finds room says where the next batch begins. Counts start anew in each block.
        line!(
            self,
            "if (at + 1 == part.all || {}) {{ done->iterations = at + 1;",
            any(&|n| format!("(at + 1 == part.end ? end{n} : before{n}) + ends{n}[at + 1] > room"))
        );
        (0..tables).for_each(|n| line!(self, "done->terms[{n}] = end{n};"));
        line!(self, "}}");
        self.note(noting);
        line!(self, "}}");
        line!(self, "exit{}: if (eb_barrier(f)) goto leave;", noting.cx.exit);
        line!(self, "if (done->iterations == 0) {{");
        self.iteration_without_room(noting);
        line!(self, "if (eb_barrier(f)) goto leave;");
        self.add_terms(noting.sums, "1");
        line!(self, "batch++; continue; }}");
        line!(self, "const i64 noted = done->iterations;");
        self.add_terms(noting.sums, "noted");
        for (n, (array, how)) in noting.tables.iter().enumerate() {
            self.combine_noted(n, *array, *how, &format!("done->terms[{n}]"));
        }
        // What found no room is counted again: little of it, if iterations have many terms.
        line!(self, "batch += noted; most = eb_min({}, eb_max(4 * noted, f->threads));", noting.most("room"));
        line!(self, "if (batch < iterations && eb_barrier(f)) goto leave;");
        line!(self, "}}");
    }

    /// The memory of a table, from this place on.
    fn table(&mut self, n: usize, array: ArrayId, first: &str) {
        let t = c_type(self.program.array(array).ty);
        line!(self, "nx *const keys{n} = (nx *)f->stage + {first};");
        line!(self, "{t} *const terms{n} = ({t} *)(f->stage + EB_STAGE + {first});");
    }

    /// The iteration `at` of a batch notes its terms; the room that is left has none.
    fn note(&mut self, noting: &Noting) {
        line!(self, "const i64 r = (batch + at) / row, j = jf + (batch + at) % row;");
        self.row(noting.it.par, noting.inside);
        self.no_terms(noting.sums);
        self.iteration(noting.it, noting.cx, noting.inside);
        self.keep_terms(noting.sums, "at");
        for n in 0..noting.tables.len() {
            line!(self, "for (; next{n} < end{n}; next{n}++) keys{n}[next{n}] = -1;");
        }
    }

    /// The sums of the terms of a block's iterations, up to each and of all of them. An iteration that meets a fault meets it
    /// again when it notes, and raises it there.
    fn count_terms(&mut self, noting: &Noting, counting: &Block) {
        let (it, tables) = (noting.it, noting.tables.len());
        let shared = Shared { noted: it.shared.noted.clone(), counted: true, ..Shared::default() };
        let exit = self.fresh();
        let body = self.forms.lowered(&Iterations { shared: &shared, ..*it }, counting, &Default::default());
        (0..tables).for_each(|n| line!(self, "i64 counted{n} = 0;"));
        line!(self, "for (i64 round = part.begin; round < part.end; round += blockDim.x) {{");
        line!(self, "const i64 at = round + threadIdx.x;");
        (0..tables).for_each(|n| line!(self, "i64 count{n} = 0;"));
        line!(self, "if (at < part.end) {{ const i64 r = (batch + at) / row, j = jf + (batch + at) % row;");
        self.outer_variables(&it.par.ranges, "i64", "r", None);
        line!(self, "const i64 {} = j;", innermost(it.par));
        self.body(Context { exit, raises: false, ..noting.cx }, &body);
        line!(self, "}} exit{exit}: ;");
        for n in 0..tables {
            line!(
                self,
                "{{ const i64 end = eb_block_up_to(eb_min(count{n}, room + 1), &counted{n}); if (at < part.end) ends{n}[at] = end; }}"
            );
        }
        line!(self, "}}");
        for n in 0..tables {
            line!(self, "if (threadIdx.x == 0) totals{n}[blockIdx.x] = counted{n};");
        }
    }

    /// One thread runs the first iteration of a batch: it has more terms than can be noted.
    fn iteration_without_room(&mut self, noting: &Noting) {
        let (shared, exit) = (Shared::default(), self.fresh());
        let it = Iterations { shared: &shared, ..*noting.it };
        line!(self, "if (f->thread == 0) {{ const i64 r = batch / row, j = jf + batch % row;");
        self.outer_variables(&it.par.ranges, "i64", "r", None);
        line!(self, "const i64 {} = j;", innermost(it.par));
        self.no_terms(noting.sums);
        let body = self.forms.careful(&it);
        self.body(Context { exit, ..noting.cx.seldom() }, &body);
        self.keep_terms(noting.sums, "0");
        line!(self, "}} exit{exit}: ;");
    }

    /// Combines the noted terms of a table into the elements of its array.
    fn combine_noted(&mut self, n: usize, array: ArrayId, how: Combine, count: &str) {
        let (a, ty) = (array.index(), self.program.array(array).ty);
        let length: String = (0..self.program.array(array).rank).map(|d| format!(" * d{a}_{d}")).collect();
        let combiner = self.combiner(how, ty);
        line!(
            self,
            "if (eb_combine_noted(f, a{a}, (i64)1{length}, keys{n}, terms{n}, {count}, {combiner})) goto leave;"
        );
    }
}

/// Iterations that note terms of ordered sums.
struct Noting<'a> {
    it: &'a Iterations<'a>,
    cx: Context,
    inside: &'a Inside,
    /// Into which arrays, and how they are combined there.
    tables: &'a [(ArrayId, Combine)],
    /// The sums over the whole loop, whose terms are kept meanwhile.
    sums: &'a [(Combine, &'a Store)],
}

impl Noting<'_> {
    /// How many iterations a batch has, where there is room for the terms of so many.
    fn most(&self, room: &str) -> String {
        if self.sums.is_empty() { room.to_string() } else { format!("eb_min({room}, EB_WINDOW)") }
    }
}
