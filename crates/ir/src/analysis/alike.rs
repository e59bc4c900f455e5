//! Parameters that look as if they had one shape, by how loops go through them.
//!
//! `let n = h.dim(0)` bounds the loops over `h`, `u` and `v`, and only their launch knows that all three have that shape. A gradient
//! is made for arrays that are alike, and once more where a launch finds that they are not.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::affine::is_zero;
use crate::syntax::*;

/// An extent of an array.
type Extent = (ArrayId, usize);

/// Pairs of parameters that look alike: a loop over the extents of the one goes through the elements of the other, and never beyond. Of
/// trajectories, it goes through rows that both name alike (`u[[t + 1, i]]`, `v[[t + 1, i]]`).
pub fn alike_shapes(program: &Program) -> Vec<(ArrayId, ArrayId)> {
    let mut found =
        Found { program, through: BTreeSet::new(), beyond: BTreeSet::new(), rows: BTreeMap::new() };
    walk_program_level(&program.body, &mut |stmt| {
        if let Stmt::Par(par) = stmt {
            found.see(par);
        }
    });
    let is_param = |a: &ArrayId| matches!(program.array(*a).role, Role::Param(_));
    let params: Vec<ArrayId> = program.array_ids().filter(is_param).collect();
    let pairs = params.iter().flat_map(|a| params.iter().map(|b| (*a, *b)));
    pairs.filter(|(a, b)| a != b && found.are_alike(*a, *b)).map(|(a, b)| (a.min(b), a.max(b))).collect()
}

struct Found<'p> {
    program: &'p Program,
    /// Loops over the second extent go through the first one.
    through: BTreeSet<(Extent, Extent)>,
    /// They go beyond it, so that it must be larger.
    beyond: BTreeSet<(Extent, Extent)>,
    /// By extent, and by a value that no such loop changes: the farthest from it that loops read or write.
    rows: BTreeMap<Extent, BTreeMap<ValueId, i64>>,
}

impl Found<'_> {
    fn are_alike(&self, a: ArrayId, b: ArrayId) -> bool {
        let rank = self.program.array(a).rank;
        rank > 0
            && rank == self.program.array(b).rank
            && (0..rank).any(|d| self.through.contains(&((b, d), (a, d))))
            && (0..rank)
                .all(|d| self.through.contains(&((b, d), (a, d))) || self.have_the_same_rows((a, d), (b, d)))
            && (0..rank).all(|d| !self.beyond.contains(&((b, d), (a, d))))
    }

    /// Do loops go equally far in both from each value that they count from in both?
    fn have_the_same_rows(&self, a: Extent, b: Extent) -> bool {
        let (Some(a), Some(b)) = (self.rows.get(&a), self.rows.get(&b)) else { return false };
        let mut common = a.iter().filter_map(|(base, far)| Some((far, b.get(base)?))).peekable();
        common.peek().is_some() && common.all(|(a, b)| a == b)
    }

    fn see(&mut self, par: &Par) {
        let mut accesses: Vec<(ArrayId, Indices)> = Vec::new();
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Let(v) => {
                if let Op::Load(array, index) = self.program.op(*v) {
                    accesses.push((*array, *index));
                }
            }
            Stmt::Store(s) | Stmt::Update(_, s) => accesses.push((s.array, s.index)),
            _ => {}
        });
        for (array, index) in accesses {
            for (d, at) in index.as_slice().iter().enumerate() {
                let (base, far) = self.base(*at);
                if par.ranges.iter().all(|range| range.var != base) {
                    let rows = self.rows.entry((array, d)).or_default();
                    let farthest = rows.entry(base).or_insert(far);
                    *farthest = far.max(*farthest);
                }
                for range in par.ranges.iter().filter(|range| is_zero(self.program, range.from)) {
                    let Some(extent) = self.extent(range.to) else { continue };
                    match self.step(*at, range.var) {
                        Some(0) => drop(self.through.insert(((array, d), extent))),
                        Some(step) if step > 0 => drop(self.beyond.insert(((array, d), extent))),
                        _ => {}
                    }
                }
            }
        }
    }

    /// How far an index is from a variable.
    fn step(&self, index: ValueId, var: ValueId) -> Option<i64> {
        let (base, far) = self.base(index);
        (base == var).then_some(far)
    }

    /// The value that an index counts from, and how far it is from there.
    fn base(&self, index: ValueId) -> (ValueId, i64) {
        let number = |v: ValueId| self.program.literal(v).and_then(Literal::to_i64);
        let Op::Binary(Binary::Add, a, b) = *self.program.op(index) else { return (index, 0) };
        match (number(a), number(b)) {
            (None, Some(far)) => (a, far),
            (Some(far), None) => (b, far),
            _ => (index, 0),
        }
    }

    /// The extent of a parameter that a value is; temporaries have theirs from others.
    fn extent(&self, v: ValueId) -> Option<Extent> {
        let Op::Dim(array, k) = *self.program.op(v) else { return None };
        match &self.program.array(array).role {
            Role::Param(_) => Some((array, k as usize)),
            Role::Temp(shape) => self.extent(*shape.get(k as usize)?),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    /// The names of the pairs that look alike.
    fn pairs(text: &str) -> Vec<(String, String)> {
        let program = parse(text).unwrap();
        let name = |a: ArrayId| program.array(a).name.clone();
        let mut pairs: Vec<_> = alike_shapes(&program).into_iter().map(|(a, b)| (name(a), name(b))).collect();
        pairs.sort();
        pairs.dedup();
        pairs
    }

    #[test]
    fn arrays_that_one_loop_goes_through_look_alike() {
        let text = "program p(h: &mut Array2<f64>, u: &Array2<f64>, row: &Array1<f64>) {
            let n = h.dim(0);
            let m = h.dim(1);
            for (i, j) in par(0..n, 0..m) {
                h[[i, j]] = u[[i, j]] + u[[i, (j + 1) % m]] + row[j];
            }
        }";
        assert_eq!(pairs(text), [("h".to_string(), "u".to_string())]);
    }

    #[test]
    fn trajectories_that_loops_fill_row_by_row_look_alike() {
        let text = |more: &str| {
            format!(
                "program p(u: &mut Array2<f64>, v: &mut Array2<f64>, seen: &Array2<f64>) {{
            let steps = u.dim(0) - 1;
            let n = u.dim(1);
            for t in 0..steps {{
                for i in par(0..n) {{
                    u[[t + 1, i]] = u[[t, i]] * v[[t, i]];
                    v[[t + 1, i]] = v[[t, i]] + seen[[t, i]]{more};
                }}
            }}
        }}"
            )
        };
        assert_eq!(pairs(&text("")), [("u".to_string(), "v".to_string())]);
        // What is seen has a row less, or a column more.
        assert_eq!(pairs(&text(" + v[[t, i + 1]]")), []);
    }

    #[test]
    fn an_array_with_one_more_element_does_not_look_alike() {
        let text = "program p(h: &mut Array1<f64>, u: &Array1<f64>, transposed: &Array2<f64>) {
            let n = h.len();
            for i in par(0..n) {
                h[i] = u[i + 1] - u[i];
            }
        }";
        assert_eq!(pairs(text), []);
    }

    #[test]
    fn the_extents_of_a_temporary_are_those_of_others() {
        let text = "program p(x: &mut Array1<f64>, y: &Array1<f64>) {
            let n = x.len();
            let mut t = Array1::<f64>::zeros([n]);
            let m = t.len();
            for i in par(0..m) {
                t[i] = y[i];
            }
        }";
        assert_eq!(pairs(text), [("x".to_string(), "y".to_string())]);
    }
}
