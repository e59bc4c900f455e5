//! The loops around the iterations of a parallel loop, as CUDA C. It follows the tree ([`crate::kernel::grid`]) and decides nothing.

use ebbtide_ir::{Combine, Par, Store};

use crate::analysis::names::always_combines;
use crate::kernel::expr::Expr;
use crate::kernel::grid::{
    Added, Barrier, Cut, For, Grid, Iterations, Kind, Node, Often, Over, Runs, Safe, When, visit,
};
use crate::kernel::machine::LONG_CHAIN;
use crate::kernel::name::{Name, Ty};
use crate::kernel::segment::{Manner, ProductId};
use crate::print::body_sums::most_sums;
use crate::print::c_types::{c_type, neutral, to_bits};
use crate::print::emitter::{Emitter, line};
use crate::print::grid_reduction::result_of_leaf;
use crate::print::interior::narrowing;
use crate::print::interior_on_entry::names_on_entry;
use crate::print::statements::{Context, Lanes};
use crate::transform::lower::Team;

/// A tree, and what its text needs to know besides.
pub(crate) struct Printed<'a> {
    pub grid: &'a Grid,
    pub par: &'a Par,
    /// The elements of its reductions, by number.
    pub reductions: &'a [(Combine, &'a Store)],
    /// The text of the names that the interval of a row needs, and the text that narrows it.
    pub names: String,
    pub narrowing: String,
    /// The number of the interval that all rows share, where it was computed on entry to the segment.
    pub on_entry: Option<usize>,
    /// The product to whose blocks it keeps.
    pub product: Option<ProductId>,
}

impl Printed<'_> {
    /// The name of the innermost variable.
    pub fn innermost(&self) -> Name {
        Name::value(self.grid.ranges[self.grid.ranges.len() - 1].var)
    }
}

/// Where nodes stand.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub cx: Context,
    /// The loop around them.
    around: Option<&'a For>,
    /// Where an iteration keeps its terms.
    place: &'a str,
    /// How many iterations of a window or batch have done so.
    count: &'a str,
    /// Does another window or batch follow?
    again: &'a str,
}

impl Emitter<'_> {
    /// Prints a tree; the ranges of the loop are printed.
    pub fn grid_nest(&mut self, grid: &Grid, par: &Par, manner: Manner, reductions: &[(Combine, &Store)]) {
        let mut exit = 0;
        visit(&grid.body, &mut |node| {
            if let Node::Label(label) = node {
                exit = *label;
            }
        });
        let (mut names, mut narrowing_text, mut on_entry) = (String::new(), String::new(), None);
        if let Safe::Interior(found) = &grid.safe {
            names = self.before_interior(grid.ranges.len(), found);
            narrowing_text = narrowing(self.program, &found.narrowings);
            on_entry = self.interior_on_entry(par, found, (&names, &narrowing_text));
            if let Some(number) = on_entry {
                names = names_on_entry(found, number);
            }
        }
        let product = if let Manner::Tiles(product) = manner { Some(product) } else { None };
        let printed = Printed { grid, par, reductions, names, narrowing: narrowing_text, on_entry, product };
        let at = At { cx: Context::often(exit), around: None, place: "at", count: "noted", again: "0" };
        self.in_global_memory(par);
        if grid.cut == Cut::Bands {
            self.dealt_bands(&printed);
            self.nodes(&printed, at, &grid.body);
            if product.is_some() {
                line!(self, "}}");
            }
            return;
        }
        line!(self, "if (rows > 0 && row > 0) {{");
        (0..reductions.len()).for_each(|k| line!(self, "int seen{k} = 0;"));
        self.safe(&printed);
        match grid.cut {
            Cut::Leaves => {
                let leaves = self.cut_into_leaves(par);
                line!(self, "const eb_leaves &cut = {leaves};");
            }
            _ => line!(self, "const i64 iterations = eb_times(rows, row);"),
        }
        self.open_runs();
        let alone = grid.tables.is_empty() && !self.counting.arrays.is_empty();
        if alone {
            self.begin_counting();
        }
        self.nodes(&printed, at, &grid.body);
        if alone {
            self.end_counting();
        }
        for (k, (_, s)) in reductions.iter().enumerate() {
            // Whether any iteration combined at all decides whether the element is touched.
            if !always_combines(par, s) {
                line!(self, "if (seen{k}) {} = 1;", result_of_leaf(k, "EB_SEEN"));
            }
        }
        line!(self, "}}");
    }

    /// The depth of recursion is that of the tree.
    fn nodes(&mut self, printed: &Printed, at: At, nodes: &[Node]) {
        nodes.iter().for_each(|node| self.node(printed, at, node));
    }

    fn node(&mut self, printed: &Printed, at: At, node: &Node) {
        let reductions = printed.reductions;
        match node {
            Node::For(l) => self.grid_loop(printed, At { around: Some(l), ..at }, l),
            Node::If { when, then, otherwise } => self.either(printed, at, when, (then, otherwise)),
            Node::Iterations(Iterations { often, runs, body }) => {
                let team = if *runs == Runs::Team { Team::Lanes } else { Team::Alone };
                let cx = Context { team, ..at.cx };
                self.body(if *often == Often::Seldom { cx.seldom() } else { cx }, body);
            }
            Node::Keep(nodes) => {
                self.no_terms(reductions);
                let cx = Context { lanes: Lanes::Later, ..at.cx };
                self.nodes(printed, At { cx, ..at }, nodes);
                self.keep_terms(reductions, at.place);
            }
            Node::AddTerms(Added::First) => self.add_terms(reductions, "1"),
            Node::AddTerms(Added::All) => match at.around.map(|l| &l.over) {
                Some(Over::Tiles(_)) => self.add_tile(reductions),
                _ => self.add_terms(reductions, at.count),
            },
            Node::EndLeaf => match at.around.map(|l| l.kind) {
                Some(Kind::Teams) => self.end_leaf_of_team(reductions),
                Some(Kind::Blocks) => self.end_leaf_of_block(reductions),
                _ => self.end_leaf(reductions),
            },
            Node::Count(body, exit) => self.count_terms(printed, (body, *exit), at.cx),
            Node::CombineNoted => self.combine_tables(printed.par, printed.grid, at.around),
            Node::Label(exit) => line!(self, "exit{exit}: ;"),
            Node::FaultsAside(exit) => {
                line!(self, "goto exit{exit};");
                line!(self, "fault{exit}: eb_out_of_bounds(f, oops, oops_index, oops_extent);");
            }
            Node::Barrier(Barrier::Block) => line!(self, "__syncthreads();"),
            Node::Barrier(Barrier::BlockUnlessFault) => line!(self, "if (__syncthreads_or(f->bad)) break;"),
            Node::Barrier(Barrier::Grid) => self.barrier(),
            Node::Barrier(Barrier::GridBetween) => {
                if let Some(For { over: Over::CountedBatches, .. }) = at.around {
                    self.next_counted_batch(reductions);
                }
                line!(self, "if ({} && eb_barrier(f)) goto leave;", at.again);
            }
            Node::SkipOne => {
                if !self.counting.arrays.is_empty() {
                    line!(self, "carries = 1;");
                }
                line!(self, "batch++; continue;");
            }
        }
    }

    fn either(&mut self, printed: &Printed, at: At, when: &When, ways: (&[Node], &[Node])) {
        let condition = match when {
            When::Proved => "proved".to_string(),
            When::Interior => "j >= lo && j < hi".to_string(),
            When::WarpInterior => "__all_sync(__activemask(), j >= lo && j < hi)".to_string(),
            When::WarpFar { conditions, are } => {
                line!(self, "{{");
                conditions.iter().for_each(|body| self.body(at.cx, body));
                let are = are.iter().map(|(name, holds)| format!("{}{name}", if *holds { "" } else { "!" }));
                format!("__all_sync(__activemask(), {})", are.collect::<Vec<_>>().join(" && "))
            }
            When::FewIterations => "iterations < f->threads".to_string(),
            When::ShortRows(columns) => {
                format!("row == {columns} && proved && iterations < f->threads")
            }
            When::LongChains(ranges) => {
                let long = |[from, to]: &[Expr; 2]| {
                    let [from, to] = [from, to].map(|e| self.expr(e, at.cx.pace));
                    format!("eb_extent({from}, {to}) >= {LONG_CHAIN}")
                };
                let long: Vec<String> = ranges.iter().map(long).collect();
                format!("proved && eb_times(eb_times(rows, row), 4) <= f->threads && ({})", long.join(" || "))
            }
            When::NoRoom => "done->iterations == 0".to_string(),
        };
        line!(self, "if ({condition}) {{");
        self.nodes(printed, at, ways.0);
        if !ways.1.is_empty() {
            line!(self, "}} else {{");
            self.nodes(printed, at, ways.1);
        }
        line!(self, "}}");
        match when {
            When::WarpFar { .. } => line!(self, "}}"),
            When::NoRoom => {
                line!(self, "const i64 noted = done->iterations;");
                if !self.counting.arrays.is_empty() {
                    line!(self, "carries |= noted < iterations;");
                }
            }
            _ => {}
        }
    }

    fn grid_loop(&mut self, printed: &Printed, at: At, l: &For) {
        const IN_ORDER: &str = "const i64 r = at / row, j = jf + at % row;";
        const OF_BATCH: &str = "const i64 r = (batch + at) / row, j = jf + (batch + at) % row;";
        match &l.over {
            Over::Bands => self.bands(printed, at, l),
            Over::NarrowBands { .. } => self.narrow_bands(printed, at, l),
            Over::Iterations if l.kind == Kind::Teams => {
                line!(
                    self,
                    "enum {{ SUMS = {} }}; const int team = eb_team_for(f, iterations, SUMS);",
                    most_sums(&l.body)
                );
                line!(
                    self,
                    "EB_LOOP for (i64 at = eb_first_of_team(team); at < iterations; at += eb_teams(f, team)) {{ {IN_ORDER}"
                );
                self.of_iteration(printed, at, l);
                line!(self, "}}");
            }
            Over::IterationsWithChains => {
                line!(self, "const i64 iterations = eb_times(rows, row);");
                line!(self, "const int team = eb_team_for_chains(f, iterations);");
                line!(
                    self,
                    "EB_LOOP for (i64 at = eb_first_of_team(team); at < iterations; at += eb_teams(f, team)) {{ {IN_ORDER}"
                );
                self.of_iteration(printed, at, l);
                line!(self, "}}");
            }
            Over::ShortRows(columns) => {
                line!(
                    self,
                    "enum {{ SUMS = {} }}; const int team = eb_team_for(f, rows, SUMS);",
                    most_sums(&l.body)
                );
                line!(
                    self,
                    "EB_LOOP for (i64 r = eb_first_of_team(team); r < rows; r += eb_teams(f, team)) {{"
                );
                self.row(printed);
                for side in 0..*columns {
                    let name = Name { side: Some(side), ..printed.innermost() };
                    line!(self, "const i64 {name} = jf + {side};");
                }
                self.nodes(printed, at, &l.body);
                line!(self, "}}");
            }
            Over::Iterations => {
                line!(
                    self,
                    "EB_LOOP for (i64 at = iterations < f->threads ? eb_spread() : f->thread; at < iterations; at += f->threads) {{ {IN_ORDER}"
                );
                self.of_iteration(printed, at, l);
                line!(self, "}}");
            }
            Over::Leaves | Over::LeavesInTiles(_) => self.grid_leaves(printed, at, l),
            Over::Rows => {
                line!(self, "EB_LOOP for (i64 r = first; r < end; r++) {{");
                self.row(printed);
                self.nodes(printed, at, &l.body);
                line!(self, "}}");
            }
            Over::Columns { at_once } => self.columns(printed, at, (l, *at_once)),
            Over::Tiles(tile) => {
                line!(self, "EB_LOOP for (i64 tile = 0; tile < all; tile += {tile}) {{");
                line!(self, "const i64 last = eb_min(all, tile + {tile});");
                self.nodes(printed, At { place: "at - tile", ..at }, &l.body);
                line!(self, "}}");
            }
            Over::OfTile { at_once } => {
                // A thread has so few iterations of most tiles.
                const FEW: usize = 2;
                if at_once.is_some_and(|n| n > FEW) {
                    line!(self, "if (last - tile <= {FEW} * (i64)blockDim.x) {{");
                    self.iterations_of_tile(printed, at, l, Some(FEW));
                    line!(self, "}} else {{");
                }
                self.iterations_of_tile(printed, at, l, *at_once);
                if at_once.is_some_and(|n| n > FEW) {
                    line!(self, "}}");
                }
            }
            Over::Windows => {
                self.kept_terms(printed.reductions);
                line!(self, "for (i64 batch = 0; batch < iterations; batch += EB_WINDOW) {{");
                line!(self, "const i64 here = eb_min(iterations - batch, EB_WINDOW);");
                let at = At { count: "here", again: "batch + EB_WINDOW < iterations", ..at };
                self.nodes(printed, at, &l.body);
                line!(self, "}}");
            }
            Over::OfWindow => {
                line!(
                    self,
                    "EB_LOOP for (i64 at = here < f->threads ? eb_spread() : f->thread; at < here; at += f->threads) {{ {OF_BATCH}"
                );
                self.of_iteration(printed, at, l);
                line!(self, "}}");
            }
            Over::Batches(each) => {
                self.begin_batches(printed, each);
                self.nodes(printed, At { again: "batch + most < iterations", ..at }, &l.body);
                line!(self, "}}");
                self.end_carried();
            }
            Over::CountedBatches => {
                self.begin_counted_batches(printed);
                self.nodes(printed, At { again: "batch < iterations", ..at }, &l.body);
                line!(self, "}}");
                self.end_carried();
            }
            Over::OfBatch(_) | Over::OfCountedBatch => {
                match &l.over {
                    Over::OfBatch(each) => self.places(each),
                    _ => self.counted_places(printed.grid.tables.len()),
                }
                line!(self, "{OF_BATCH}");
                self.of_iteration(printed, at, l);
                // The room that is left has no terms.
                for n in 0..printed.grid.tables.len() {
                    line!(self, "for (; next{n} < end{n}; next{n}++) keys{n}[next{n}] = -1;");
                }
                line!(self, "}}");
            }
            Over::FirstOfBatch { exit } => {
                line!(self, "if (f->thread == 0) {{ const i64 r = batch / row, j = jf + batch % row;");
                self.outer_variables(&printed.grid.ranges, "i64", "r", None);
                line!(self, "const i64 {} = j;", printed.innermost());
                let cx = Context { exit: *exit, ..at.cx };
                self.nodes(printed, At { place: "0", cx, ..at }, &l.body);
                line!(self, "}} exit{exit}: ;");
            }
        }
    }

    /// The iterations of a tile that a block has, some of each thread at once.
    fn iterations_of_tile(&mut self, printed: &Printed, at: At, l: &For, at_once: Option<usize>) {
        let every = at_once.map_or("EB_LOOP".to_string(), |n| format!("EB_AT_ONCE({n})"));
        line!(
            self,
            "{every} for (i64 at = tile + threadIdx.x; at < last; at += blockDim.x) {{ const i64 line = eb_line(at, width), r = first + line, j = left + at - line * width;"
        );
        self.of_iteration(printed, at, l);
        line!(self, "}}");
    }

    /// The body of a loop that gives an iteration its row `r` and its column `j`.
    fn of_iteration(&mut self, printed: &Printed, at: At, l: &For) {
        self.row(printed);
        line!(self, "const i64 {} = j;", printed.innermost());
        self.nodes(printed, at, &l.body);
    }

    /// Each thread takes a column, and as many rows as it must.
    fn bands(&mut self, printed: &Printed, at: At, l: &For) {
        line!(self, "{{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first);");
        // Without rows there is nothing to do, however many columns there are.
        line!(
            self,
            "if (first < end) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) {{ const i64 j = jf + column;"
        );
        line!(self, "for (i64 r = first; r < end; r++) {{");
        self.of_iteration(printed, at, l);
        line!(self, "}} }} }}");
    }

    /// The same, in narrow arithmetic and with several rows at a time.
    fn narrow_bands(&mut self, printed: &Printed, at: At, l: &For) {
        let Over::NarrowBands { bounds, together } = &l.over else { return };
        self.narrow_bounds(bounds);
        let rows = together.as_ref().map_or(1, |(rows, _)| *rows);
        line!(
            self,
            "const nx band = (nx)deal.band, first = (nx)deal.base + deal.nth * band, few_rows = (nx)deal.end;"
        );
        line!(
            self,
            "const nx end = few_rows - first > band ? first + band : few_rows, few_columns = (nx)deal.last;"
        );
        line!(
            self,
            "for (nx column = deal.column; column < few_columns; column += deal.columns) {{ const nx j = (nx)jf + column;"
        );
        self.first_digits(printed);
        line!(self, "for (nx r = first; r < end; r += {rows}) {{");
        if let Some((rows, nodes)) = together {
            line!(self, "if (r + {} < end) {{", rows - 1);
            (0..*rows).for_each(|side| self.narrow_variables(printed, &format!("(r + {side})"), Some(side)));
            self.nodes(printed, at, nodes);
            line!(self, "}} else for (nx rest = r; rest < end; rest++) {{ const nx r = rest;");
        } else {
            line!(self, "{{");
        }
        self.narrow_variables(printed, "r", None);
        self.nodes(printed, at, &l.body);
        line!(self, "}} }} }}");
    }

    /// Where there are several outer variables, a thread goes from row to row by counting, and divides once: in the digits of the
    /// number of a row.
    fn first_digits(&mut self, printed: &Printed) {
        let outer = printed.grid.ranges.len() - 1;
        if outer < 2 {
            return;
        }
        let mut rest = "first".to_string();
        for d in (1..outer).rev() {
            line!(self, "nx digit{d} = first < end ? ({rest}) % (nx)e{d} : 0;");
            rest = format!("({rest}) / (nx)e{d}");
        }
        line!(self, "nx digit0 = first < end ? {rest} : 0;");
    }

    /// The outer variables of the next row.
    fn counted_variables(&mut self, printed: &Printed, side: Option<usize>) {
        let outer = printed.grid.ranges.len() - 1;
        for (d, range) in printed.grid.ranges[..outer].iter().enumerate().rev() {
            line!(self, "const nx {} = (nx)f{d} + digit{d};", Name { side, ..Name::value(range.var) });
        }
        for d in (1..outer).rev() {
            line!(self, "if (++digit{d} == (nx)e{d}) {{ digit{d} = 0;");
        }
        line!(self, "digit0++;{}", "}".repeat(outer - 1));
    }

    /// The variables of an iteration in narrow arithmetic. They are not below where their ranges begin, and the compiler is told:
    /// conditions that follow from that go.
    fn narrow_variables(&mut self, printed: &Printed, row: &str, side: Option<usize>) {
        let ranges = &printed.grid.ranges;
        match ranges.len() {
            0..=2 => self.outer_variables(ranges, "nx", row, side),
            _ => self.counted_variables(printed, side),
        }
        line!(self, "const nx {} = j;", Name { side, ..printed.innermost() });
        for range in ranges.iter().filter(|range| self.program.literal(range.from).is_some()) {
            let variable = Name { side, ..Name::value(range.var) };
            line!(self, "__builtin_assume({variable} >= (nx){});", self.value(range.from));
        }
    }

    fn grid_leaves(&mut self, printed: &Printed, at: At, l: &For) {
        let reductions = printed.reductions;
        if let Over::LeavesInTiles(tile) = l.over {
            for (k, (_, s)) in reductions.iter().enumerate() {
                let t = c_type(self.program.array(s.array).ty);
                line!(self, "{t} *const kept{k} = ({t} *)(eb_block_memory() + {});", k * tile);
            }
        }
        let (every, lanes) = match l.kind {
            Kind::Teams => {
                line!(
                    self,
                    "const int lane = threadIdx.x & 15; const u32 sixteen = 0xffffu << (threadIdx.x & 16);"
                );
                // Leaves are few: each block takes some.
                let from = "(threadIdx.x >> 4) * gridDim.x + blockIdx.x";
                let every =
                    format!("EB_LOOP for (i64 leaf = {from}; leaf < cut.count; leaf += f->threads >> 4) {{");
                (every, Lanes::InThreads)
            }
            Kind::Blocks => {
                let every = "EB_LOOP for (i64 leaf = blockIdx.x; leaf < cut.count; leaf += gridDim.x) {";
                (every.to_string(), Lanes::InThreads)
            }
            _ => {
                let every = "if (f->thread == 0) for (i64 leaf = 0; leaf < cut.count; leaf++) {";
                (every.to_string(), Lanes::InTable)
            }
        };
        line!(self, "{every}");
        self.leaf();
        if l.kind == Kind::Blocks {
            line!(self, "const i64 width = right - left, all = eb_times(end - first, width);");
        }
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let (t, neutral) = (c_type(ty), neutral(*how, ty));
            if lanes == Lanes::InThreads {
                line!(self, "{t} r{k} = {neutral};");
            } else {
                line!(self, "struct {{ {t} lane[16]; }} r{k};");
                line!(self, "for (int k = 0; k < 16; k++) r{k}.lane[k] = {neutral};");
            }
        }
        let cx = Context { lanes, ..at.cx };
        self.nodes(printed, At { cx, ..at }, &l.body);
        line!(self, "}}");
    }

    /// The iterations of a row of a leaf: of one lane, or all of them.
    fn columns(&mut self, printed: &Printed, at: At, (l, at_once): (&For, Option<usize>)) {
        match (l.kind, at_once) {
            (Kind::OfTeam, Some(n)) => {
                line!(self, "EB_AT_ONCE({n}) for (i64 j = left + lane; j < right; j += 16) {{");
            }
            // Where columns may be near the end of their type, the distance from the first one is counted instead.
            (Kind::OfTeam, None) => line!(
                self,
                "EB_LOOP for (i64 away = lane; away < right - left; away += 16) {{ const i64 j = left + away;"
            ),
            _ => line!(
                self,
                "for (i64 j = left; j < right; j++) {{ const int lane = (int)((j - jf) & 15); (void)lane;"
            ),
        }
        line!(self, "const i64 {} = j;", printed.innermost());
        self.nodes(printed, at, &l.body);
        line!(self, "}}");
    }

    /// The sums of a leaf whose lanes are those of sixteen threads.
    fn end_leaf_of_team(&mut self, reductions: &[(Combine, &Store)]) {
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let combined = self.combine(*how, Ty::One(ty), &format!("r{k}"), "other");
            line!(
                self,
                "for (int w = 8; w > 0; w /= 2) {{ const {} other = __shfl_down_sync(sixteen, r{k}, w, 16); r{k} = {combined}; }}",
                c_type(ty)
            );
            let bits = to_bits(ty, &format!("r{k}"));
            line!(self, "if (lane == 0) {} = {bits};", result_of_leaf(k, "leaf"));
        }
    }
}
