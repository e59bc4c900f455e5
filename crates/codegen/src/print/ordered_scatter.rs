//! Ordered sums at shared elements, by all threads of a grid (see [`crate::kernel::grid`]), as CUDA C.
//!
//! Iterations note their terms in batches. Where they note the same number at most, each has its place in a table from the
//! beginning. Elsewhere the terms of a batch are counted first, by statements that do nothing else, and the sums of these
//! counts are the places.

use ebbtide_ir::{ArrayId, Combine, Par, Store};

use crate::kernel::grid::{For, Grid, Over};
use crate::kernel::stmt::Body;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;
use crate::print::grid_nest::Printed;
use crate::print::statements::Context;

/// How many iterations a batch has, where there is room for the terms of so many.
fn most(room: &str, reductions: &[(Combine, &Store)]) -> String {
    if reductions.is_empty() { room.to_string() } else { format!("eb_min({room}, EB_WINDOW)") }
}

impl Emitter<'_> {
    /// The head of a loop over batches whose iterations have room for so many terms in each table.
    pub fn begin_batches(&mut self, printed: &Printed, each: &[usize]) {
        self.kept_terms(printed.reductions);
        let total = each.iter().sum::<usize>().max(1);
        line!(self, "const i64 most = {};", most(&format!("EB_ROOM / {total}"), printed.reductions));
        let mut before = 0;
        for (n, ((array, _), each)) in printed.grid.tables.iter().zip(each).enumerate() {
            self.table(n, *array, &format!("most * {before}"));
            before += each;
        }
        self.begin_carried("iterations > most");
        line!(self, "for (i64 batch = 0; batch < iterations; batch += most) {{");
        line!(self, "const i64 noted = eb_min(iterations - batch, most);");
    }

    /// The head of the loop over the iterations of such a batch.
    pub fn places(&mut self, each: &[usize]) {
        line!(self, "for (i64 at = f->thread; at < noted; at += f->threads) {{");
        for (n, each) in each.iter().enumerate() {
            line!(self, "i64 next{n} = at * {each}; const i64 end{n} = next{n} + {each};");
        }
    }

    /// The head of a loop over batches whose terms are counted before they are noted. A block counts and notes the same iterations,
    /// neighbours in the order of all; those whose terms find no room begin the next batch.
    pub fn begin_counted_batches(&mut self, printed: &Printed) {
        self.kept_terms(printed.reductions);
        let tables = printed.grid.tables.len();
        line!(self, "const i64 room = EB_ROOM / {tables};");
        for (n, (array, _)) in printed.grid.tables.iter().enumerate() {
            self.table(n, *array, &format!("room * {n}"));
            line!(self, "i64 *const ends{n} = (i64 *)(f->stage + 2 * EB_STAGE) + room * {n};");
            line!(self, "i64 *const totals{n} = (i64 *)(f->stage + 3 * EB_STAGE) + {n} * gridDim.x;");
        }
        line!(self, "eb_noted *const done = eb_noted_by(f);");
        line!(self, "i64 most = {};", most("room", printed.reductions));
        self.begin_carried("0");
        line!(self, "for (i64 batch = 0; batch < iterations;) {{");
        line!(self, "const eb_part part = eb_part_of_batch(eb_min(iterations - batch, most));");
        line!(self, "if (f->thread == 0) done->iterations = 0;");
    }

    /// The head of the loop over the iterations of such a batch.
    pub fn counted_places(&mut self, tables: usize) {
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
    }

    /// The next of such batches. What found no room is counted again: little of it, if iterations have many terms.
    pub fn next_counted_batch(&mut self, reductions: &[(Combine, &Store)]) {
        let most = most("room", reductions);
        line!(self, "batch += noted; most = eb_min({most}, eb_max(4 * noted, f->threads));");
    }

    /// The memory of a table, from this place on.
    fn table(&mut self, n: usize, array: ArrayId, first: &str) {
        let t = c_type(self.program.array(array).ty);
        line!(self, "nx *const keys{n} = (nx *)f->stage + {first};");
        line!(self, "{t} *const terms{n} = ({t} *)(f->stage + EB_STAGE + {first});");
    }

    /// The sums of the terms of a block's iterations, up to each and of all of them. An iteration that meets a fault meets it
    /// again when it notes, and raises it there.
    pub fn count_terms(&mut self, printed: &Printed, (body, exit): (&Body, usize), cx: Context) {
        let tables = printed.grid.tables.len();
        (0..tables).for_each(|n| line!(self, "i64 counted{n} = 0;"));
        line!(self, "for (i64 round = part.begin; round < part.end; round += blockDim.x) {{");
        line!(self, "const i64 at = round + threadIdx.x;");
        (0..tables).for_each(|n| line!(self, "i64 count{n} = 0;"));
        line!(self, "if (at < part.end) {{ const i64 r = (batch + at) / row, j = jf + (batch + at) % row;");
        self.outer_variables(&printed.grid.ranges, "i64", "r", None);
        line!(self, "const i64 {} = j;", printed.innermost());
        self.body(Context { exit, raises: false, ..cx }, body);
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

    /// Combines the noted terms of a batch into the elements of their arrays.
    pub fn combine_tables(&mut self, par: &Par, grid: &Grid, batches: Option<&For>) {
        let number = par.id.index();
        let meet: String = (0..grid.tables.len()).map(|n| format!("b8 meet{number}_{n} = 0;\n")).collect();
        self.entry.add(Known::Meet(number), meet);
        for (n, (array, how)) in grid.tables.iter().enumerate() {
            let count = match batches.map(|l| &l.over) {
                Some(Over::Batches(each)) => format!("noted * {}", each[n]),
                _ => format!("done->terms[{n}]"),
            };
            let (a, ty) = (array.index(), self.program.array(*array).ty);
            let length: String =
                (0..self.program.array(*array).rank).map(|d| format!(" * d{a}_{d}")).collect();
            let combiner = self.combiner(*how, ty);
            if let Some(k) = self.counted_number(*array) {
                line!(
                    self,
                    "if (eb_add_noted(f, runs{k}, carries, keys{n}, terms{n}, {count}, {combiner}, &meet{number}_{n})) goto leave;"
                );
                continue;
            }
            line!(
                self,
                "if (eb_combine_noted(f, a{a}, (i64)1{length}, keys{n}, terms{n}, {count}, {combiner}, &meet{number}_{n})) goto leave;"
            );
        }
    }

    /// Where the open runs of the elements are, and their finished ones.
    pub fn open_runs(&mut self) {
        let arrays = self.counting.arrays.clone();
        if !arrays.is_empty() {
            line!(self, "i64 words = 0;");
        }
        for (k, array) in arrays.iter().enumerate() {
            let (a, t) = (array.index(), c_type(self.program.array(*array).ty));
            let extents: String =
                (0..self.program.array(*array).rank).map(|d| format!(" * d{a}_{d}")).collect();
            line!(self, "const eb_runs<{t}> runs{k} = eb_runs_of(f, ({t} *)a{a}, (i64)1{extents}, &words);");
        }
    }

    /// Before a loop that takes its iterations in batches: whether open runs go from one to the next. Where data tell, they may.
    fn begin_carried(&mut self, carries: &str) {
        let arrays = self.counting.arrays.len();
        if arrays > 0 {
            line!(self, "b8 carries = {carries}; const b8 counts = 1; (void)counts;");
            let may = if carries == "0" { "" } else { "if (carries) " };
            (0..arrays).for_each(|k| line!(self, "{may}eb_begin_runs(f, runs{k});"));
        }
    }

    /// Behind such a loop.
    pub fn end_carried(&mut self) {
        let arrays = self.counting.arrays.len();
        if arrays > 0 {
            line!(self, "if (carries) {{");
            self.barrier();
            (0..arrays).for_each(|k| line!(self, "eb_end_runs(f, runs{k});"));
            line!(self, "}}");
        }
    }

    /// Before a loop whose iterations one thread runs.
    pub fn begin_counting(&mut self) {
        let iterations = "eb_times(rows, row)";
        let most = match self.counting.each {
            Some(each) => format!("eb_times({iterations}, {each})"),
            None => "INT64_MAX".to_string(),
        };
        line!(self, "const b8 counts = {most} > EB_RUN;");
        line!(self, "if (counts) {{");
        (0..self.counting.arrays.len()).for_each(|k| line!(self, "eb_begin_runs(f, runs{k});"));
        self.barrier();
        line!(self, "}}");
    }

    /// Behind such a loop.
    pub fn end_counting(&mut self) {
        line!(self, "if (counts) {{");
        self.barrier();
        (0..self.counting.arrays.len()).for_each(|k| line!(self, "eb_end_runs(f, runs{k});"));
        line!(self, "}}");
    }
}
