//! What the build says of two accesses that meet, and what to write instead.

use super::context::{Access, Kind};
use super::terms::Key;
use super::verdict::Pairs;
use super::witness::Witness;
use crate::syntax::*;

impl Pairs<'_, '_> {
    /// The build error for a pair that meets.
    pub fn flaw(&mut self, a: usize, b: usize, witness: Option<Witness>) -> Flaw {
        // The write is named first.
        let (a, b) = if self.accesses[a].kind == Kind::Read { (b, a) } else { (a, b) };
        let (first, second) = (&self.accesses[a], &self.accesses[b]);
        let name = &self.terms.program.array(first.array).name;
        let how = |access: &Access| match access.kind {
            Kind::Read => "read",
            Kind::Write => "written",
            Kind::Combine(Combine::Add) => "added to",
            Kind::Combine(_) => "combined into",
        };
        let line = |access: &Access| match &access.site {
            Some(site) => format!("{} at {site}", how(access)),
            None => how(access).to_string(),
        };
        let both = match a == b {
            true => format!("it is {} by both", line(first)),
            false => format!("it is {} and {}", line(first), line(second)),
        };
        let meeting = match &witness {
            Some(w) => {
                let mut iterations = [w.first.clone(), w.second.clone()];
                iterations.sort();
                let [x, y] = iterations;
                let given = self.given(w);
                let may = if w.exact { "touch" } else { "may touch" };
                match x == y {
                    true => format!("iteration {x:?} of the parallel loop {may}es element {:?} of `{name}` in two ways{given}", w.element).replace("may touches", "may touch"),
                    false => format!("iterations {x:?} and {y:?} of the parallel loop {may} element {:?} of `{name}`{given}", w.element),
                }
            }
            None => format!("two iterations of the parallel loop may touch the same element of `{name}`"),
        };
        let message = format!("a race: {meeting}: {both}; {}", self.advice(a, b));
        Flaw { law: "7", message, site: self.accesses[a].site.clone() }
    }

    /// The scalars and extents of a witness.
    fn given(&self, witness: &Witness) -> String {
        let program = self.terms.program;
        let named = witness.given.iter().filter_map(|(key, value)| {
            let name = match key {
                Key::Scalar(s) => program.scalars[s.index()].name.clone(),
                Key::Dim(array, k) => match program.array(*array).rank {
                    1 => format!("{}.len()", program.array(*array).name),
                    _ => format!("{}.dim({k})", program.array(*array).name),
                },
                Key::Value(v) => program.value(*v).name.clone()?,
                Key::Local(local, _) => program.locals[local.index()].name.clone(),
                _ => return None,
            };
            Some(format!("`{name}` is {value}"))
        });
        let named: Vec<String> = named.collect();
        if named.is_empty() { String::new() } else { format!(" where {}", named.join(" and ")) }
    }

    fn advice(&self, a: usize, b: usize) -> String {
        let (first, second) = (&self.accesses[a], &self.accesses[b]);
        let combined = |access: &Access| matches!(access.kind, Kind::Combine(_));
        let name = &self.terms.program.array(first.array).name;
        if combined(first) || combined(second) {
            return "an element that iterations combine into (`+=`, `min_assign`, `max_assign`) may not be read, \
                    written or combined in another way in the same parallel loop"
                .to_string();
        }
        // A sum reads the element that it writes. Where another one is read, `+=` would be a race too.
        if first.index == second.index && (self.is_sum(first) || self.is_sum(second)) {
            return format!("write `{name}[…] += …`: a sum that iterations share is taken in order");
        }
        let data = |access: &Access| {
            let mut found = false;
            for poly in &access.index {
                let mut atoms: Vec<_> = poly.atoms().collect();
                while let Some(atom) = atoms.pop() {
                    match self.terms.key(atom) {
                        Key::Quotient(a, b)
                        | Key::Remainder(a, b)
                        | Key::Least(a, b)
                        | Key::Greatest(a, b) => {
                            atoms.extend(a.atoms().chain(b.atoms()));
                        }
                        Key::Element(..) => found = true,
                        Key::Value(v) => {
                            found |= self.terms.varies(atom) && *self.terms.program.op(*v) != Op::LoopVar
                        }
                        _ => {}
                    }
                }
            }
            found
        };
        let writes = |access: &Access| access.kind == Kind::Write;
        if (writes(first) && data(first)) || (writes(second) && data(second)) {
            return format!(
                "where all indices differ write `scatter_unique({name}, k, x)`, which is checked; where they are added up, `+=`"
            );
        }
        if self.is_fixed(a) && writes(first) {
            return "write the element outside the parallel loop, or combine into it with `+=`".to_string();
        }
        if !writes(second) {
            let whole =
                first.guards.is_empty()
                    && first.index.len() == self.variables.len()
                    && first.index.iter().zip(&self.variables).all(|(p, v)| {
                        p.as_atom().is_some_and(|atom| *self.terms.key(atom) == Key::Value(*v))
                    });
            return match whole {
                true => format!("read `{name}` and write another array, and `swap` the two after the loop"),
                false => format!("`copy` `{name}` before the loop and read the copy"),
            };
        }
        "write `a[i]` with `i` the parallel index, or let different iterations write different elements"
            .to_string()
    }

    /// Does the access store the sum of its own element and something else?
    fn is_sum(&self, access: &Access) -> bool {
        let program = self.terms.program;
        let Some(stored) = access.stored else { return false };
        let alike = |index: &Indices| {
            (0..self.accesses.len()).any(|k| {
                let read = &self.accesses[k];
                read.kind == Kind::Read && read.index == access.index && self.merged[k].contains(index)
            })
        };
        let own = |v: ValueId| matches!(program.op(v), Op::Load(array, index) if *array == access.array && alike(index));
        match *program.op(stored) {
            Op::Binary(Binary::Add, a, b) => own(a) || own(b),
            Op::Fma(_, _, c) => own(c),
            _ => false,
        }
    }
}
