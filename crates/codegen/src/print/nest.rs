//! The loops around iterations, for the threads of a CPU, as C. Everything is decided (see [`crate::transform::loop_nest`]).

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Combine, Range, Store};

use crate::kernel::name::Name;
use crate::kernel::nest::{
    Ends, First, For, Interiors, Iterations, Kind, Nest, Node, Order, Over, Row, Together,
};
use crate::print::c_types::{c_type, neutral};
use crate::print::emitter::{Emitter, line};
use crate::print::grid_safe::narrow;
use crate::print::interior::narrowing;
use crate::print::operation::vector_type;
use crate::print::par::proved;
use crate::print::statements::{Context, Lanes};

/// A nest, and what its text needs to know besides.
struct Printed<'a> {
    nest: &'a Nest,
    /// The elements of its reductions, by number.
    reductions: &'a [(Combine, &'a Store)],
    cx: Context,
}

impl Printed<'_> {
    /// The number of the innermost range.
    fn last(&self) -> usize {
        self.nest.ranges.len() - 1
    }

    /// The name of the innermost variable.
    fn innermost(&self) -> Name {
        Name::value(self.nest.ranges[self.last()].var)
    }

    /// What an iteration declares in which a lane of a leaf has the sum.
    fn lane(&self) -> &'static str {
        match self.nest.reductions.is_empty() || self.cx.lanes == Lanes::Later {
            true => "",
            false => "const int lane = (int)((j - f0_lane) & 15);",
        }
    }
}

impl Emitter<'_> {
    /// Prints a nest; its ranges are printed.
    pub fn nest(&mut self, nest: &Nest, reductions: &[(Combine, &Store)]) {
        let label = |node: &Node| if let Node::Label(exit) = node { Some(*exit) } else { None };
        let exit = nest.body.iter().find_map(label).unwrap_or_default();
        let printed = Printed { nest, reductions, cx: Context::often(exit) };
        self.begin_runs(&nest.counted);
        if let Some(buckets) = &nest.buckets {
            let noting = Printed { cx: Context::often(buckets.exit), ..printed };
            self.batches(buckets, printed.last(), |text| {
                text.rows(&noting, &Interiors::OfEach, &buckets.row)
            });
        }
        let keeps = nest.body.iter().any(|node| matches!(node, Node::For(For { over: Over::Terms, .. })));
        for node in &nest.body {
            match node {
                Node::For(l) => self.shares(&printed, l),
                // Windows have it inside.
                Node::Label(_) if keeps => {}
                Node::Label(exit) => line!(self, "exit{exit}: ;"),
                // Rows and iterations stand in loops.
                Node::Row(_) | Node::Iterations(_) => {}
            }
        }
        if nest.buckets.is_none() {
            self.end_runs(&nest.counted);
        }
    }

    /// The loop that threads share, or that one of them takes.
    fn shares(&mut self, printed: &Printed, l: &For) {
        let split = match &l.kind {
            Kind::Threads(work) => format!("eb_split(f, rows, row, {})", self.work_text(work)),
            Kind::Seq | Kind::Lanes(_) => "0".to_string(),
        };
        line!(self, "const int split = {split};");
        line!(self, "const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;");
        line!(self, "if ((split || f->thread == 0) && rows > 0 && row > 0) {{");
        let last = printed.last();
        match (&l.over, printed.nest.order) {
            (Over::Leaves, _) => self.leaves(printed, l),
            (Over::Terms, _) => self.terms(printed, l),
            (_, Order::Exchanged) => {
                line!(self, "const i64 from[2] = {{f1, f0}}, extent[2] = {{e1, e0}};");
                line!(self, "{{ const i64 f0 = from[0], e0 = extent[0], f1 = from[1], e1 = extent[1];");
                line!(self, "const i64 first = 0, end = e0, jf = f1 + eb_share(e1, part, parts);");
                line!(self, "const i64 jt = f1 + eb_share(e1, part + 1, parts);");
                self.rows_of(printed, l);
                line!(self, "}}");
            }
            (Over::Columns { .. }, Order::OfProgram) => {
                line!(
                    self,
                    "const i64 first = 0, end = 1, jf = f0 + eb_column(row, part, parts), jt = f0 + eb_column(row, part + 1, parts);"
                );
                self.rows_of(printed, l);
            }
            (_, Order::OfProgram) => {
                line!(
                    self,
                    "const i64 first = eb_share(rows, part, parts), jf = f{last}; i64 end = eb_share(rows, part + 1, parts), jt = f{last} + row;"
                );
                self.rows_of(printed, l);
            }
        }
        line!(self, "}}");
    }

    /// The loops over rows in a loop over shares or leaves.
    fn rows_of(&mut self, printed: &Printed, l: &For) {
        for node in &l.body {
            if let Node::For(For { over: Over::Rows(interiors), body, .. }) = node {
                let rows =
                    body.iter().filter_map(|node| if let Node::Row(row) = node { Some(row) } else { None });
                rows.for_each(|row| self.rows(printed, interiors, row));
            }
        }
    }

    /// The leaves of a share.
    fn leaves(&mut self, printed: &Printed, l: &For) {
        let (last, reductions) = (printed.last(), printed.reductions);
        line!(self, "eb_leaves cut = eb_cut(rows, row);");
        self.begin_sums(reductions);
        line!(
            self,
            "for (i64 leaf = eb_share(cut.count, part, parts); leaf < eb_share(cut.count, part + 1, parts); leaf++) {{"
        );
        self.rows_of_leaf();
        line!(
            self,
            "const i64 jf = f{last} + piece * cut.size, jt = jf + eb_min(cut.size, row - piece * cut.size);"
        );
        for (k, (how, ty)) in printed.nest.reductions.iter().enumerate() {
            let lanes = if ty.is_float() { self.target.vector_bytes / ty.size() } else { 1 };
            let neutral = neutral(*how, *ty);
            line!(
                self,
                "union {{ {0} lane[16]; {1} vector[{2}]; }} r{k};",
                c_type(*ty),
                vector_type(*ty, lanes),
                16 / lanes
            );
            line!(self, "for (int k = 0; k < 16; k++) r{k}.lane[k] = {neutral};");
        }
        self.rows_of(printed, l);
        self.end_leaf(reductions);
        line!(self, "}}");
        self.end_sums(reductions);
    }

    /// The iterations of a share, which keep their terms, and the leaves that add them.
    fn terms(&mut self, printed: &Printed, l: &For) {
        let cx = Context { lanes: Lanes::Later, ..printed.cx };
        let keeping = Printed { cx, ..*printed };
        self.begin_sums(printed.reductions);
        self.windows(printed.reductions, (printed.last(), cx.exit), |text| text.rows_of(&keeping, l));
        self.end_sums(printed.reductions);
    }

    /// Whether the elements of reductions exist, and whether any iteration had a term so far.
    fn begin_sums(&mut self, reductions: &[(Combine, &Store)]) {
        line!(self, "int reached = 1;");
        for (k, (_, s)) in reductions.iter().enumerate() {
            line!(self, "int seen{k} = 0;");
            line!(self, "{{");
            self.outer_offset(s, |_, _, _| "reached = 0;".to_string());
            line!(self, "}}");
        }
    }

    /// Whether any iteration combined at all decides whether the element is touched.
    fn end_sums(&mut self, reductions: &[(Combine, &Store)]) {
        for k in 0..reductions.len() {
            line!(
                self,
                "if (seen{k}) __atomic_store_n(&f->partials[{k} * EB_PARTIALS + EB_SEEN], 1, __ATOMIC_RELAXED);"
            );
        }
    }

    /// The rows `first..end` and columns `jf..jt` of the iteration space.
    fn rows(&mut self, printed: &Printed, interiors: &Interiors, row: &Row) {
        let (last, ranges) = (printed.last(), &printed.nest.ranges);
        let sums = !printed.nest.reductions.is_empty();
        let before = self.before_interior(ranges.len(), &row.interval);
        let narrowings = narrowing(self.program, &row.interval.narrowings);
        let at_corners = *interiors != Interiors::OfEach;
        if at_corners {
            self.rows_alike("alike", &ranges[..last], (&before, &narrowings));
        }
        // What is taken as one row has no form but that of the interior.
        let mut unless = "";
        if let Interiors::AtCornersOrAsOne(arrays) = interiors {
            self.rows_as_one(ranges.len(), arrays);
            unless = " && !as_one";
        }
        if let Some(proof) = &row.proved {
            let tests = proved(&proof.tests, &narrow(last));
            line!(self, "int proved; {{ i64 wild = 0; proved = {tests}; }}");
        }
        let ends = row.proved.as_ref().and_then(|proof| proof.ends.as_ref());
        if let Some(Ends { least, .. }) = ends {
            let unless = if at_corners { " && !alike" } else { "" };
            line!(self, "const int ends = proved{unless} && jt - jf >= {least};");
        }
        match &row.together {
            Some(together) => {
                line!(self, "i64 r = first;");
                self.rows_side_by_side(printed, together);
                line!(self, "for (; r < end; r++) {{");
            }
            None => line!(self, "for (i64 r = first; r < end; r++) {{"),
        }
        self.outer_variables(ranges, "i64", "r", None);
        line!(self, "i64 lo = jf, hi = jt;");
        self.out.push_str(&before);
        if at_corners {
            line!(self, "if (!alike) {{");
        }
        match &row.proved {
            Some(proof) => {
                line!(self, "if (proved) {{");
                self.out.push_str(&narrowing(self.program, &proof.narrowings));
                line!(self, "}} else {{");
                self.out.push_str(&narrowings);
                line!(self, "}}");
            }
            None => self.out.push_str(&narrowings),
        }
        line!(self, "lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);");
        // The interior is known with small numbers alone: then nothing above can have wrapped, and nothing below can.
        line!(self, "if (__builtin_expect(wild, 0)) lo = hi = jt;");
        if at_corners {
            line!(self, "}}");
        }
        if sums {
            // An element out of bounds is an error only if some iteration combines: lanes cannot tell.
            line!(self, "if (!reached) hi = lo;");
        }
        if row.least > 1 {
            line!(self, "if (jt - jf < {}{unless}) lo = hi = jt;", row.least);
        }
        line!(self, "i64 j = jf;");
        if sums {
            // Vectors begin where the lanes of a leaf begin.
            line!(
                self,
                "const i64 f0_lane = f{last}; lo = eb_min(f0_lane + ((lo - f0_lane + 15) & -16), jt); hi = eb_max(hi, lo);"
            );
            line!(self, "if (__builtin_expect(wild, 0)) lo = hi = jt;");
        }
        let (j, lane) = (printed.innermost(), printed.lane());
        if row.falls_back() {
            let again = self.fresh();
            let printed = Printed { cx: Context { again, ..printed.cx }, ..*printed };
            line!(self, "i64 stop = lo;");
            line!(self, "for (;;) {{");
            line!(self, "for (; j < stop; j++) {{ const i64 {j} = j;");
            self.body(printed.cx.seldom(), &row.careful);
            line!(self, "}}");
            line!(self, "if (j == jt) break;");
            self.interior_loops(&printed, &row.inside, "");
            line!(self, "stop = jt; again{again}: ; }}");
            return line!(self, "}}");
        }
        line!(self, "for (int side = 0; side < 2; side++) {{");
        if let Some(Ends { lanes, before, body, .. }) = ends {
            line!(self, "if (ends) for (const i64 stop = side ? jt : lo; j < stop; ) {{");
            line!(self, "const i64 {j} = j, tail = eb_min(jt - j, {lanes});");
            let before = self.names_before(before);
            self.out.push_str(&before);
            self.body(printed.cx, body);
            line!(self, "j += tail; }}");
        }
        line!(self, "for (const i64 stop = side ? jt : lo; j < stop; j++) {{ const i64 {j} = j; {lane}");
        self.keeping(printed, |text| text.body(printed.cx.seldom(), &row.careful));
        line!(self, "}}");
        line!(self, "if (side) break;");
        self.interior_loops(printed, &row.inside, if ends.is_some() { " && !ends" } else { "" });
        line!(self, "}} }}");
    }

    /// Several rows at a time, as long as there are so many.
    fn rows_side_by_side(&mut self, printed: &Printed, together: &Together) {
        let (last, ranges) = (printed.last(), &printed.nest.ranges);
        let before = self.before_interior(ranges.len(), &together.interval);
        let narrowing = narrowing(self.program, &together.interval.narrowings);
        let Together { rows, least, .. } = together;
        self.rows_alike("together", &ranges[..last], (&before, &narrowing));
        line!(self, "if (together && jt - jf >= {least}) for (; end - r >= {rows}; r += {rows}) {{");
        for side in 0..*rows {
            self.outer_variables(ranges, "i64", &format!("(r + {side})"), Some(side));
        }
        self.body(printed.cx, &together.before);
        line!(self, "const i64 hi = jt; i64 j = jf;");
        self.interior_loops(printed, &together.inside, "");
        line!(self, "}}");
    }

    /// The loops over the interval of a row; what is less than a vector is left under a condition alone, which begins with `&&`.
    fn interior_loops(&mut self, printed: &Printed, loops: &[For], tails: &str) {
        let vectors = loops.iter().any(|l| l.kind != Kind::Seq);
        if vectors {
            line!(self, "{{");
        }
        loops.iter().for_each(|l| self.interior_loop(printed, l, tails));
        if vectors {
            line!(self, "}}");
        }
    }

    fn interior_loop(&mut self, printed: &Printed, l: &For, tails: &str) {
        let j = printed.innermost();
        let iterations: Vec<&Iterations> = l
            .body
            .iter()
            .filter_map(|node| if let Node::Iterations(it) = node { Some(it) } else { None })
            .collect();
        match (&l.kind, &l.over) {
            (Kind::Lanes(lanes), Over::Interior { step, unrolled }) => {
                let sums = printed.cx.lanes != Lanes::Later;
                if sums {
                    self.sums_to_vectors(printed, *lanes, iterations.len());
                }
                if *unrolled > 1 {
                    line!(self, "#pragma GCC unroll {unrolled}");
                }
                // A step is a power of two.
                line!(self, "for (const i64 whole = j + ((hi - j) & -{step}); j < whole; j += {step}) {{");
                iterations.iter().for_each(|it| self.vector(printed, *lanes, it));
                line!(self, "}}");
                if sums {
                    self.sums_from_vectors(printed, iterations.len());
                }
            }
            (Kind::Lanes(lanes), Over::Peeled { stored, least }) => {
                line!(self, "{{ const i64 {j} = j;");
                let (array, bytes) = (stored.array.index(), self.program.array(stored.array).ty.size());
                let at = format!("(uintptr_t)(a{array} + {})", self.offset(printed.cx.seldom(), stored));
                let inside = lanes * bytes - 1;
                line!(self, "const i64 tail = hi - j >= {least} ? (i64)(-{at} & {inside}) / {bytes} : 0;");
                line!(self, "if (tail) {{");
                iterations.iter().for_each(|it| self.body(printed.cx.seldom(), &it.body));
                line!(self, "j += tail; }} }}");
            }
            (_, Over::Tail) => {
                line!(self, "if (j < hi{tails}) {{ const i64 tail = hi - j, {j} = j;");
                iterations.iter().for_each(|it| self.body(printed.cx.seldom(), &it.body));
                line!(self, "j = hi; }}");
            }
            _ => {
                line!(self, "for (; j < hi; j++) {{ const i64 {j} = j; {}", printed.lane());
                self.keeping(printed, |text| {
                    iterations.iter().for_each(|it| text.body(printed.cx, &it.body));
                });
                line!(self, "}}");
            }
        }
    }

    /// One iteration, which keeps its terms where they are added later.
    fn keeping(&mut self, printed: &Printed, print: impl FnOnce(&mut Self)) {
        if printed.cx.lanes != Lanes::Later {
            return print(self);
        }
        self.no_terms(printed.reductions);
        print(self);
        self.keep_terms(printed.reductions, "j - origin");
    }

    /// One vector of iterations, or several side by side.
    fn vector(&mut self, printed: &Printed, lanes: usize, it: &Iterations) {
        let j = printed.innermost();
        match it.first {
            First::At(first) => {
                line!(self, "{{ const i64 {j} = j + {first};");
                self.body(printed.cx, &it.body);
                line!(self, "}}");
            }
            First::Sides(sides) => {
                for side in 0..sides {
                    line!(self, "const i64 {} = j + {};", Name { side: Some(side), ..j }, side * lanes);
                }
                self.body(printed.cx, &it.body);
            }
        }
    }

    /// The sums of a leaf, in so many vectors of variables.
    fn sums_to_vectors(&mut self, printed: &Printed, lanes: usize, count: usize) {
        for (k, (_, ty)) in printed.nest.reductions.iter().enumerate() {
            let vector = vector_type(*ty, lanes);
            (0..count).for_each(|u| line!(self, "{vector} r{k}_{u} = r{k}.vector[{u}];"));
        }
    }

    fn sums_from_vectors(&mut self, printed: &Printed, count: usize) {
        for k in 0..printed.nest.reductions.len() {
            (0..count).for_each(|u| line!(self, "r{k}.vector[{u}] = r{k}_{u};"));
        }
    }

    /// Prints under this name whether all iterations of all rows are in the interior: rows need not ask then, each for itself.
    /// Everything is a sum, so that the rows at the corners tell.
    fn rows_alike(&mut self, alike: &str, outer: &[Range], (before, narrowing): (&str, &str)) {
        line!(self, "int {alike} = 1;");
        line!(self, "for (int corner = 0; corner < {}; corner++) {{", 1 << outer.len());
        for (d, range) in outer.iter().enumerate() {
            let v = Name::value(range.var);
            line!(self, "const i64 {v} = corner >> {d} & 1 ? f{d} + e{d} - 1 : f{d};");
        }
        line!(self, "i64 lo = jf, hi = jt;");
        self.out.push_str(before);
        self.out.push_str(narrowing);
        line!(self, "{alike} &= !wild && lo <= jf && hi >= jt; }}");
    }

    /// Takes rows that lie one behind the other as one row: short rows would be shorter than vectors.
    fn rows_as_one(&mut self, ranges: usize, arrays: &BTreeSet<ArrayId>) {
        let begins = (1..ranges).map(|d| format!("f{d} == 0"));
        let ends = arrays.iter().flat_map(|a| {
            let a = a.index();
            (1..ranges).map(move |d| format!("d{a}_{d} == e{d}"))
        });
        let tests: Vec<String> = begins.chain(ends).collect();
        line!(self, "const int as_one = alike && first < end && {};", tests.join(" && "));
        line!(self, "if (as_one) {{ jt = jf + (end - first) * row; end = first + 1; }}");
    }
}
