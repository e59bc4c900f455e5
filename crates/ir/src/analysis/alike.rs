//! Parameters that look as if they had one shape, by how loops go through them.
//!
//! `let n = h.dim(0)` bounds the loops over `h`, `u` and `v`, and only their launch knows that all three have that shape. A gradient
//! is made for arrays that are alike, and once more where a launch finds that they are not.

use std::collections::BTreeSet;

use crate::analysis::affine::is_zero;
use crate::syntax::*;

/// An extent of an array.
type Extent = (ArrayId, usize);

/// Pairs of parameters that look alike: a loop over the extents of the one goes through the elements of the other, and never beyond.
pub fn alike_shapes(program: &Program) -> Vec<(ArrayId, ArrayId)> {
    let mut found = Found { program, through: BTreeSet::new(), beyond: BTreeSet::new() };
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
}

impl Found<'_> {
    fn are_alike(&self, a: ArrayId, b: ArrayId) -> bool {
        let rank = self.program.array(a).rank;
        rank > 0
            && rank == self.program.array(b).rank
            && (0..rank).all(|d| self.through.contains(&((b, d), (a, d))))
            && (0..rank).all(|d| !self.beyond.contains(&((b, d), (a, d))))
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
        let number = |v: ValueId| self.program.literal(v).and_then(Literal::to_i64);
        match *self.program.op(index) {
            _ if index == var => Some(0),
            Op::Binary(Binary::Add, a, b) if a == var => number(b),
            Op::Binary(Binary::Add, a, b) if b == var => number(a),
            _ => None,
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
