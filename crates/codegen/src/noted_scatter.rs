//! Ordered sums at shared elements, by several threads of a CPU.
//!
//! The threads take consecutive runs of a batch of iterations. What an iteration would combine is noted, in a list of the
//! thread for each thread that owns elements. Then each thread combines what all have noted for its own elements: the list of
//! the first thread first, each from its beginning. So each element sees its terms in the order of the iterations, whatever
//! the number of threads, and the bits are those of one thread.

use ebbtide_ir::{ArrayId, Combine, Par, Sharing, Stmt, Store, Type, walk};

use crate::body::{Body, Form, Part};
use crate::c_types::{from_bits, to_bits};
use crate::unit::{Text, line};

/// An array at whose shared elements a loop combines, and how.
pub(crate) struct Noted {
    array: ArrayId,
    how: Combine,
}

impl Text<'_> {
    /// The arrays whose terms a loop can note; none where it takes sums leaf by leaf as well, or combines in two ways.
    pub fn note_terms(&mut self, par: &Par) -> Vec<Noted> {
        self.noted.clear();
        let Some(facts) = self.facts.pars.get(&par.id) else { return Vec::new() };
        let (mut arrays, mut fine): (Vec<Noted>, bool) = (Vec::new(), true);
        let mut noted = std::collections::BTreeMap::new();
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Update(how, s) => match facts.of(s) {
                Sharing::Scatter => {
                    let known = arrays.iter().position(|n| n.array == s.array);
                    let at = known.unwrap_or(arrays.len());
                    if known.is_none() {
                        arrays.push(Noted { array: s.array, how: *how });
                    }
                    fine &= arrays[at].how == *how && self.program.array(s.array).ty != Type::Bool;
                    noted.insert(std::ptr::from_ref(s), at);
                }
                Sharing::Reduce => fine = false,
                Sharing::Own => {}
            },
            // What is taken is looked at by all threads at once.
            Stmt::Claim(_) => fine = false,
            _ => {}
        });
        if !fine {
            return Vec::new();
        }
        self.noted = noted;
        self.noted_arrays = self.noted_arrays.max(arrays.len());
        arrays
    }

    /// The iterations of a loop that notes its terms where several threads share it.
    pub fn noted_pieces(&mut self, par: &Par, arrays: &[Noted], exit: usize) {
        let last = par.ranges.len() - 1;
        line!(self, "const i64 all = {};", if last == 0 { "row" } else { "rows" });
        let together = if last == 0 { "EB_BATCH" } else { "eb_max(EB_BATCH / row, f->threads)" };
        line!(self, "const i64 together = noting ? {together} : all;");
        for (n, Noted { array, .. }) in arrays.iter().enumerate() {
            let rank = self.program.array(*array).rank;
            let extents = (0..rank).map(|d| format!("d{}_{d}", array.index()));
            let elements =
                extents.reduce(|a, b| format!("eb_times({a}, {b})")).unwrap_or_else(|| "1".to_string());
            line!(
                self,
                "const eb_owners owners{n} = noting ? eb_deal(f, {n}, {elements}) : (eb_owners){{0}};"
            );
        }
        line!(self, "for (i64 batch = 0; batch < all; batch += together) {{");
        line!(self, "const i64 here = eb_min(together, all - batch);");
        if last == 0 {
            line!(
                self,
                "const i64 first = 0, end = 1, jf = f0 + batch + eb_column(here, part, parts), jt = f0 + batch + eb_column(here, part + 1, parts);"
            );
        } else {
            line!(
                self,
                "const i64 first = batch + eb_share(here, part, parts), end = batch + eb_share(here, part + 1, parts), jf = f{last}, jt = f{last} + row;"
            );
        }
        self.rows(par, &[], &[], exit);
        line!(self, "exit{exit}: ;");
        line!(self, "if (!noting) break;");
        line!(self, "if (eb_barrier(f)) goto leave;");
        for (n, Noted { array, how }) in arrays.iter().enumerate() {
            let ty = self.program.array(*array).ty;
            let element = format!("a{}[list->notes[k].at]", array.index());
            let term = from_bits(ty, "list->notes[k].bits");
            let combined = self.combine(*how, ty, 1, &element, &term);
            line!(self, "for (i64 from = 0; from < f->threads; from++) {{");
            line!(self, "eb_list *const list = eb_list_of(f, {n}, from, f->thread);");
            line!(self, "for (i64 k = 0; k < list->count; k++) {element} = {combined};");
            line!(self, "list->count = 0; }}");
        }
        line!(self, "if (eb_barrier(f)) goto leave;");
        line!(self, "}}");
    }

    /// Notes the term of an update instead of combining it, where the loop does so; what is printed next does it otherwise.
    pub fn note(
        &mut self,
        body: &Body,
        s: &Store,
        offset: &str,
        (stride, mask): (Option<&str>, Option<&str>),
    ) {
        let Some(n) = self.noted.get(&std::ptr::from_ref(s)).copied() else { return };
        let ty = self.program.array(s.array).ty;
        let left = format!("goto exit{};", body.exit);
        match body.form {
            Form::Vector { lanes, part, .. } => {
                // Lanes that are not here note nothing.
                self.failed |= mask.is_some();
                let (_, value) = self.operand(body, s.value, ty, true);
                let count = if part == Part::Tail { "tail".to_string() } else { lanes.to_string() };
                let (stride, term) = (stride.unwrap_or("1"), to_bits(ty, &format!("({value})[k]")));
                line!(
                    self,
                    "if (noting) {{ for (i64 k = 0; k < {count}; k++) if (!eb_note_term(f, &owners{n}, {offset} + k * {stride}, {term})) {left} }} else"
                );
            }
            _ => {
                let value = self.known(body, s.value);
                let term = to_bits(ty, &format!("({value})"));
                line!(
                    self,
                    "if (noting) {{ if (!eb_note_term(f, &owners{n}, {offset}, {term})) {left} }} else"
                );
            }
        }
    }
}
