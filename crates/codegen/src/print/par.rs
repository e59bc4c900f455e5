//! Parallel loops: the split between threads, leaves of reductions, the careful and the interior form.

use std::collections::BTreeSet;

use ebbtide_ir::{ArrayId, Asked, Combine, Literal, Par, Stmt, Store, ValueId, walk};

use crate::analysis::bounds_proof::{Proof, Prover, Test};
use crate::analysis::flat_rows::flat_rows;
use crate::analysis::interior::Rows;
use crate::analysis::names::{reductions, scatters, values_inside};
use crate::analysis::varying::vector_element;
use crate::analysis::vector_costs::VectorCosts;
use crate::analysis::vectors::{Vectors, refusal};
use crate::analysis::work::{Passes, Work, is_light, keeps_order, work};
use crate::kernel::machine::Family;
use crate::kernel::name::{Name, Ty};
use crate::print::c_types::{c_type, neutral, to_bits};
use crate::print::emitter::{Emitter, line};
use crate::print::interior::narrowing;
use crate::print::operation::vector_type;
use crate::print::statements::Context;
use crate::transform::forms::{InVectors, Iterations, innermost};
use crate::transform::lower::{Shared, Team};

impl Emitter<'_> {
    /// How much a block computes, as a C expression. The depth of recursion is that of nesting in the source.
    pub fn work_text(&self, work: &Work) -> String {
        let blocks = work.blocks.iter().map(|(passes, work)| {
            let passes = match passes {
                Passes::Once => "1.0".to_string(),
                Passes::Guessed(passes) => format!("{passes}.0"),
                Passes::Between(from, to) => {
                    format!("(f64)eb_max({} - {}, 0)", self.value(*to), self.value(*from))
                }
            };
            format!("{passes} * ({})", self.work_text(work))
        });
        [format!("{}.0", work.own)].into_iter().chain(blocks).collect::<Vec<_>>().join(" + ")
    }

    /// What a proof about the loop being printed may speak of.
    pub fn prover(&self) -> Prover<'_> {
        Prover { program: self.program, inside: &self.inside }
    }

    /// Prints a parallel loop.
    pub fn par(&mut self, par: &Par) {
        let reductions = reductions(self.facts, par);
        let scatters = scatters(self.facts, par);
        self.inside = values_inside(par);
        self.reductions = self.reductions.max(reductions.len());
        // An element is claimed at the place that it has in its own array.
        walk(&par.body, &mut |stmt| {
            if let Stmt::Claim(claim) = stmt {
                self.same_shape(claim.array, claim.taken);
            }
        });
        let bounds: Vec<ValueId> = par.ranges.iter().flat_map(|r| [r.from, r.to]).collect();
        self.check_bounds(&bounds);
        line!(
            self,
            "{{ /* {} */",
            par.site.as_ref().map_or("parallel loop".to_string(), |s| format!("line {}", s.line))
        );
        self.domain(par);
        self.requirements(par);
        if self.family == Family::Cuda {
            return self.kernel_par(par, &reductions);
        }
        self.before_loop(par);
        let exit = self.fresh();
        let stores: Vec<&Store> = reductions.iter().map(|r| r.1).collect();
        let work = self.work_text(&work(self.program, &self.inside, &par.body));
        // Ordered sums at shared elements are taken by one thread: to note terms for the threads that own the elements, and to
        // combine them after a barrier, took longer on 4 to 16 threads where an iteration does little else.
        let split = if scatters { "0".to_string() } else { format!("eb_split(f, rows, row, {work})") };
        line!(self, "const int split = {split};");
        line!(self, "const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;");
        line!(self, "if ((split || f->thread == 0) && rows > 0 && row > 0) {{");
        if reductions.is_empty() {
            self.pieces(par, exit);
        } else {
            self.leaves(par, &reductions, &stores, exit);
        }
        line!(self, "}}");
        line!(self, "exit{exit}: ;");
        if reductions.is_empty() {
            let safe = self.prover().proof(par, &[]).map(|proof| proved(&proof, &[]));
            line!(self, "i64 wild = 0; (void)wild;");
            self.after_loop(par, safe.as_deref());
        } else {
            self.meet();
            self.finish_reductions(&reductions);
            self.after_leaves(reductions.iter().map(|r| r.1.array));
        }
        line!(self, "}}");
        self.inside.clear();
    }

    /// Asks what must hold so that no two iterations meet. All threads come to the same answer.
    fn requirements(&mut self, par: &Par) {
        for requirement in par.requires.iter().filter(|r| r.asked == Asked::OnEntry) {
            let known = self.requirements.iter().position(|(r, _)| r == requirement);
            let number = known.unwrap_or_else(|| {
                self.requirements.push((requirement.clone(), par.site.clone()));
                self.requirements.len() - 1
            });
            line!(
                self,
                "if (rows > 0 && row > 0 && !{}) {{ eb_fault(f, EB_MEET, {number}, 0, 0, 0); eb_barrier(f); goto leave; }}",
                self.value(requirement.condition)
            );
        }
    }

    /// The first value and the extent of each range; the rows of the domain and the length of one.
    pub fn domain(&mut self, par: &Par) {
        let dimensions = par.ranges.len();
        for (d, r) in par.ranges.iter().enumerate() {
            line!(
                self,
                "const i64 f{d} = {}, e{d} = eb_extent(f{d}, {});",
                self.value(r.from),
                self.value(r.to)
            );
        }
        let row = format!("e{}", dimensions - 1);
        let rows = (0..dimensions - 1).fold("1".to_string(), |rows, d| match rows.as_str() {
            "1" => format!("e{d}"),
            _ => format!("eb_times({rows}, e{d})"),
        });
        line!(self, "const i64 rows = {rows}, row = {row};");
    }

    /// Without reductions each thread takes a run of rows, or of the one row.
    fn pieces(&mut self, par: &Par, exit: usize) {
        let last = par.ranges.len() - 1;
        let flat = self.flat_rows(par);
        if flat.is_none()
            && let Some(columns) = self.by_columns(par)
        {
            // The same thread runs an iteration as ever.
            line!(self, "const i64 from[2] = {{f1, f0}}, extent[2] = {{e1, e0}};");
            line!(self, "{{ const i64 f0 = from[0], e0 = extent[0], f1 = from[1], e1 = extent[1];");
            line!(self, "const i64 first = 0, end = e0, jf = f1 + eb_share(e1, part, parts);");
            line!(self, "const i64 jt = f1 + eb_share(e1, part + 1, parts);");
            self.rows((&columns, None), &[], &[], exit);
            return line!(self, "}}");
        }
        if last == 0 {
            line!(
                self,
                "const i64 first = 0, end = 1, jf = f0 + eb_column(row, part, parts), jt = f0 + eb_column(row, part + 1, parts);"
            );
        } else {
            line!(
                self,
                "const i64 first = eb_share(rows, part, parts), jf = f{last}; i64 end = eb_share(rows, part + 1, parts), jt = f{last} + row;"
            );
        }
        self.rows((par, flat), &[], &[], exit);
    }

    /// With reductions each thread takes whole leaves.
    fn leaves(&mut self, par: &Par, reductions: &[(Combine, &Store)], stores: &[&Store], exit: usize) {
        let last = par.ranges.len() - 1;
        line!(self, "eb_leaves cut = eb_cut(rows, row);");
        line!(self, "int reached = 1;");
        for (k, (_, s)) in reductions.iter().enumerate() {
            line!(self, "int seen{k} = 0;");
            line!(self, "{{");
            self.outer_offset(s, |_, _, _| "reached = 0;".to_string());
            line!(self, "}}");
        }
        line!(
            self,
            "for (i64 leaf = eb_share(cut.count, part, parts); leaf < eb_share(cut.count, part + 1, parts); leaf++) {{"
        );
        self.rows_of_leaf();
        line!(
            self,
            "const i64 jf = f{last} + piece * cut.size, jt = jf + eb_min(cut.size, row - piece * cut.size);"
        );
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let lanes = if ty.is_float() { self.target.vector_bytes / ty.size() } else { 1 };
            let neutral = neutral(*how, ty);
            line!(
                self,
                "union {{ {0} lane[16]; {1} vector[{2}]; }} r{k};",
                c_type(ty),
                vector_type(ty, lanes),
                16 / lanes
            );
            line!(self, "for (int k = 0; k < 16; k++) r{k}.lane[k] = {neutral};");
        }
        self.rows((par, None), reductions, stores, exit);
        self.end_leaf(reductions);
        line!(self, "}}");
        for (k, _) in reductions.iter().enumerate() {
            // Whether any iteration combined at all decides whether the element is touched.
            line!(
                self,
                "if (seen{k}) __atomic_store_n(&f->partials[{k} * EB_PARTIALS + EB_SEEN], 1, __ATOMIC_RELAXED);"
            );
        }
    }

    /// The rows `first..end` of a leaf, and which piece of them it has.
    pub fn rows_of_leaf(&mut self) {
        line!(self, "const i64 group = leaf / cut.pieces, piece = leaf % cut.pieces;");
        line!(
            self,
            "const i64 first = group * cut.rows_per_leaf, end = first + eb_min(cut.rows_per_leaf, rows - first);"
        );
    }

    /// The sums of a leaf, from those of its lanes.
    pub fn end_leaf(&mut self, reductions: &[(Combine, &Store)]) {
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let combined =
                self.combine(*how, Ty::One(ty), &format!("r{k}.lane[k]"), &format!("r{k}.lane[k + w]"));
            line!(
                self,
                "for (int w = 8; w > 0; w /= 2) for (int k = 0; k < w; k++) r{k}.lane[k] = {combined};"
            );
            line!(self, "f->partials[{k} * EB_PARTIALS + leaf] = {};", to_bits(ty, &format!("r{k}.lane[0]")));
        }
    }

    pub fn finish_reductions(&mut self, reductions: &[(Combine, &Store)]) {
        line!(
            self,
            "if (f->thread == 0 && rows > 0 && row > 0) {{ const i64 count = eb_cut(rows, row).count;"
        );
        for (k, (how, s)) in reductions.iter().enumerate() {
            let ty = self.program.array(s.array).ty;
            let t = c_type(ty);
            let partial =
                crate::print::c_types::from_bits(ty, &format!("f->partials[{k} * EB_PARTIALS + leaf]"));
            let exit = self.fresh();
            line!(
                self,
                "if (f->partials[{k} * EB_PARTIALS + EB_SEEN]) {{ f->partials[{k} * EB_PARTIALS + EB_SEEN] = 0;"
            );
            let neutral = neutral(*how, ty);
            line!(self, "{t} total = {neutral};");
            let combined = self.combine(*how, Ty::One(ty), "total", &partial);
            line!(self, "for (i64 leaf = 0; leaf < count; leaf++) total = {combined};");
            self.combine_total(*how, s, exit);
            line!(self, "exit{exit}: ; }}");
        }
        line!(self, "}}");
    }

    /// Combines `total` into the element that a reduction is about.
    pub fn combine_total(&mut self, how: Combine, s: &Store, exit: usize) {
        let access = self.access(Some(s.array), &s.site);
        let offset = self.outer_offset(s, |k, index, extent| {
            format!("eb_fault(f, EB_BOUNDS, {access}, {k}, {index}, {extent}); goto exit{exit};")
        });
        let name = format!("a{}[{offset}]", s.array.index());
        let combined = self.combine(how, Ty::One(self.program.array(s.array).ty), &name, "total");
        line!(self, "{name} = {combined};");
    }

    /// The outer variables of row `r`, for one of the iterations side by side where there are several.
    pub fn outer_variables(&mut self, par: &Par, ty: &str, row: &str, side: Option<usize>) {
        let mut rest = row.to_string();
        for d in (0..par.ranges.len() - 1).rev() {
            let var = Name { side, ..Name::value(par.ranges[d].var) };
            if d == 0 {
                line!(self, "const {ty} {var} = ({ty})f0 + {rest};");
            } else {
                line!(self, "const {ty} {var} = ({ty})f{d} + ({rest}) % ({ty})e{d};");
                rest = format!("({rest}) / ({ty})e{d}");
            }
        }
    }

    /// The rows `first..end` and columns `jf..jt` of the iteration space, to be taken as one row where these arrays have it so.
    fn rows(
        &mut self,
        (par, flat): (&Par, Option<BTreeSet<ArrayId>>),
        reductions: &[(Combine, &Store)],
        stores: &[&Store],
        exit: usize,
    ) {
        let last = par.ranges.len() - 1;
        let j = par.ranges[last].var.index();
        let interior = self.interior(par);
        let before = self.before_interior(par, &interior);
        let narrowing = narrowing(self.program, &interior);
        let alike = last > 0 && interior.rows == Rows::Corners;
        let flat = flat.filter(|_| alike);
        if alike {
            self.rows_alike(par, (&before, &narrowing));
        }
        if let Some(arrays) = &flat {
            self.rows_as_one(par, arrays);
        }
        line!(self, "for (i64 r = first; r < end; r++) {{");
        self.outer_variables(par, "i64", "r", None);
        line!(self, "i64 lo = jf, hi = jt;");
        self.out.push_str(&before);
        if alike {
            line!(self, "if (!alike) {{");
        }
        self.out.push_str(&narrowing);
        line!(self, "lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);");
        // The interior is known with small numbers alone: then nothing above can have wrapped, and nothing below can.
        line!(self, "if (__builtin_expect(wild, 0)) lo = hi = jt;");
        if alike {
            line!(self, "}}");
        }
        if !reductions.is_empty() {
            // An element out of bounds is an error only if some iteration combines: lanes cannot tell.
            line!(self, "if (!reached) hi = lo;");
        }
        let facts = self.facts.pars.get(&par.id).cloned().unwrap_or_default();
        let element = vector_element(self.program, &interior.varying, par)
            .filter(|_| keeps_order(&facts, par))
            .filter(|e| reductions.iter().all(|(_, s)| self.program.array(s.array).ty == *e));
        let cx = Context::often(exit);
        let it = Iterations { par, reductions: stores, shared: &Shared::default(), team: Team::Alone };
        let careful = self.forms.checked_at_once(&it);
        let inside = self.forms.hoisted(&it, &interior);
        let vectors = element.and_then(|element| {
            let lanes = self.target.vector_bytes / element.size();
            let costs = VectorCosts::of(self.program, par, &interior, lanes);
            let least = if last == 0 { 0 } else { costs.short_row() };
            // Rows that may be taken as one are not as short as the program says.
            let row = self.row_length(par).filter(|_| flat.is_none());
            if !costs.pay() || row.is_some_and(|row| row < least as i64) {
                return None;
            }
            let vectors = self.forms.vectors(&it, &interior, &inside, (element, lanes))?;
            if row.is_none() && least > 1 {
                // What is taken as one row has no form but that of the interior.
                let unless = if flat.is_some() { " && !as_one" } else { "" };
                line!(self, "if (jt - jf < {least}{unless}) lo = hi = jt;");
            }
            Some(vectors)
        });
        let lane = if reductions.is_empty() { "" } else { "const int lane = (int)((j - f0_lane) & 15);" };
        line!(self, "i64 j = jf;");
        if !reductions.is_empty() {
            // Vectors begin where the lanes of a leaf begin.
            line!(
                self,
                "const i64 f0_lane = f{last}; lo = eb_min(f0_lane + ((lo - f0_lane + 15) & -16), jt); hi = eb_max(hi, lo);"
            );
            line!(self, "if (__builtin_expect(wild, 0)) lo = hi = jt;");
        }
        line!(self, "for (int side = 0; side < 2; side++) {{");
        line!(self, "for (const i64 stop = side ? jt : lo; j < stop; j++) {{ const i64 v{j} = j; {lane}");
        self.body(cx.seldom(), &careful);
        line!(self, "}}");
        line!(self, "if (side) break;");
        match vectors {
            Some(vectors) => self.vectors(par, cx, &vectors, reductions.len()),
            None => {
                line!(self, "for (; j < hi; j++) {{ const i64 v{j} = j; {lane}");
                self.body(cx, &inside);
                line!(self, "}}");
            }
        }
        line!(self, "}} }}");
    }

    /// A loop over short rows with its ranges exchanged, where that has vectors and pays: iterations may come in any order.
    fn by_columns(&self, par: &Par) -> Option<Par> {
        let [outer, inner] = &par.ranges[..] else { return None };
        let row = usize::try_from(self.row_length(par)?).ok()?;
        let columns = Par { ranges: vec![*inner, *outer], ..par.clone() };
        let [of_rows, of_columns] = [par, &columns].map(|par| self.interior(par));
        let element = vector_element(self.program, &of_columns.varying, &columns)?;
        let lanes = self.target.vector_bytes / element.size();
        let vectors = refusal(self.program, &of_columns, (element, Vectors::One), &[], &par.body).is_none();
        let [rows, by_columns] =
            [&of_rows, &of_columns].map(|interior| VectorCosts::of(self.program, par, interior, lanes));
        let pays = row < lanes && rows.more_than(&by_columns, row);
        (vectors && !scatters(self.facts, par) && pays).then_some(columns)
    }

    /// How long a row is, where the program says so.
    fn row_length(&self, par: &Par) -> Option<i64> {
        let range = par.ranges.last()?;
        let number = |v: ValueId| self.program.literal(v).and_then(Literal::to_i64);
        number(range.to)?.checked_sub(number(range.from)?)
    }

    /// Prints whether all iterations of all rows are in the interior: rows need not ask then, each for itself. Everything is a
    /// sum, so that the rows at the corners tell.
    fn rows_alike(&mut self, par: &Par, (before, narrowing): (&str, &str)) {
        let last = par.ranges.len() - 1;
        line!(self, "int alike = 1;");
        line!(self, "for (int corner = 0; corner < {}; corner++) {{", 1 << last);
        for (d, range) in par.ranges[..last].iter().enumerate() {
            let v = Name::value(range.var);
            line!(self, "const i64 {v} = corner >> {d} & 1 ? f{d} + e{d} - 1 : f{d};");
        }
        line!(self, "i64 lo = jf, hi = jt;");
        self.out.push_str(before);
        self.out.push_str(narrowing);
        line!(self, "alike &= !wild && lo <= jf && hi >= jt; }}");
    }

    /// The arrays whose rows a loop goes through, where these may be taken as one. An assertion says where it failed.
    fn flat_rows(&self, par: &Par) -> Option<BTreeSet<ArrayId>> {
        let asserts = values_inside(par).iter().any(|v| self.forms.assertions.contains_key(v));
        flat_rows(self.program, par, &self.inside).filter(|_| !asserts)
    }

    /// Takes rows that lie one behind the other as one row: short rows would be shorter than vectors.
    fn rows_as_one(&mut self, par: &Par, arrays: &BTreeSet<ArrayId>) {
        let dimensions = 1..par.ranges.len();
        let begins = dimensions.clone().map(|d| format!("f{d} == 0"));
        let ends = arrays.iter().flat_map(|a| {
            let a = a.index();
            dimensions.clone().map(move |d| format!("d{a}_{d} == e{d}"))
        });
        let tests: Vec<String> = begins.chain(ends).collect();
        line!(self, "const int as_one = alike && first < end && {};", tests.join(" && "));
        line!(self, "if (as_one) {{ jt = jf + (end - first) * row; end = first + 1; }}");
    }

    /// Begins the loop over `j..hi` that takes so many iterations at a time, a power of two, as long as there are so many.
    fn whole_vectors(&mut self, iterations: usize, pragma: Option<&str>) {
        if let Some(pragma) = pragma {
            line!(self, "{pragma}");
        }
        line!(
            self,
            "for (const i64 whole = j + ((hi - j) & -{iterations}); j < whole; j += {iterations}) {{"
        );
    }

    /// Prints the interior in vectors, with so many reductions.
    fn vectors(&mut self, par: &Par, cx: Context, vectors: &InVectors, reductions: usize) {
        let (j, lanes, count) = (innermost(par), vectors.lanes, vectors.whole.len());
        let vector = vector_type(vectors.element, lanes);
        line!(self, "{{");
        for k in 0..reductions {
            (0..count).for_each(|u| line!(self, "{vector} r{k}_{u} = r{k}.vector[{u}];"));
        }
        if let Some((sides, jammed)) = &vectors.jammed {
            self.whole_vectors(sides * lanes, None);
            for side in 0..*sides {
                line!(self, "const i64 {} = j + {};", Name { side: Some(side), ..j }, side * lanes);
            }
            self.body(cx, jammed);
            line!(self, "}}");
        }
        self.whole_vectors(lanes * count, is_light(self.program, par).then_some("#pragma GCC unroll 2"));
        for (u, body) in vectors.whole.iter().enumerate() {
            line!(self, "{{ const i64 {j} = j + {};", u * lanes);
            self.body(cx, body);
            line!(self, "}}");
        }
        line!(self, "}}");
        for k in 0..reductions {
            (0..count).for_each(|u| line!(self, "r{k}.vector[{u}] = r{k}_{u};"));
        }
        if let Some(tail) = &vectors.tail {
            line!(self, "if (j < hi) {{ const i64 tail = hi - j, {j} = j;");
            self.body(cx.seldom(), tail);
            line!(self, "j = hi; }}");
        }
        line!(self, "}}");
    }
}

/// The condition that all these tests hold, and that nothing they compute overflows.
pub(crate) fn proved(proof: &Proof, others: &[String]) -> String {
    let tests: BTreeSet<String> =
        proof.tests.iter().map(Test::to_string).chain(others.iter().cloned()).collect();
    tests.iter().map(|test| format!("{test} && ")).collect::<String>() + "!wild"
}
