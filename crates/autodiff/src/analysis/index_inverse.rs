//! Stencil adjoints gather: an affine load is turned round, so that each element of the shadow collects what flows
//! to it instead of iterations scattering into shared elements.

use std::collections::BTreeSet;

use ebbtide_ir::{
    Affine, Affines, ArrayId, Indices, LoopKind, Op, Par, Program, Role, Stmt, ValueId, is_zero, walk,
};

use crate::analysis::effects::only_store;

/// How the iterations that read element `k` are found.
#[derive(Clone, Debug)]
pub(crate) struct Inverse {
    /// For each parallel variable how it follows from `k`.
    pub variables: Vec<Variable>,
    /// Dimensions whose index is the same in all iterations: the element must have it.
    pub fixed: Vec<(usize, ValueId)>,
}

/// How a parallel variable follows from an element's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// From `k[dimension] = sign · variable + rest`, and it must lie in the loop's range.
    Shifted { dimension: usize, sign: i64, rest: Affine },
    /// From `k[dimension] = (sign · variable + rest) mod modulus`, over exactly one period.
    Wrapped { dimension: usize, sign: i64, rest: Affine, modulus: ValueId },
    /// It does not: all iterations along it read the element.
    Free,
}

/// Values that differ between the iterations of a loop, or are not known before its body runs.
pub(crate) fn varying(source: &Program, par: &Par) -> BTreeSet<ValueId> {
    let mut varying: BTreeSet<ValueId> = par.ranges.iter().map(|r| r.var).collect();
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Let(v) => {
            let op = source.op(*v);
            if !op.is_pure() || op.operands().any(|o| varying.contains(&o)) {
                varying.insert(*v);
            }
        }
        Stmt::Loop(l) => {
            if let LoopKind::For { var, .. } = l.kind {
                varying.insert(var);
            }
        }
        _ => {}
    });
    varying
}

/// Turns a load round; `None` where its index is not affine and one to one in the sense above.
pub(crate) fn invert(
    source: &Program,
    affines: &Affines,
    par: &Par,
    varying: &BTreeSet<ValueId>,
    index: Indices,
) -> Option<Inverse> {
    let vars: Vec<ValueId> = par.ranges.iter().map(|r| r.var).collect();
    let mut variables = vec![Variable::Free; vars.len()];
    let mut fixed = Vec::new();
    for (dimension, v) in index.as_slice().iter().enumerate() {
        let form = affines.form(*v);
        if form.terms.iter().all(|t| !varying.contains(&t.0)) {
            fixed.push((dimension, *v));
            continue;
        }
        let wrapped =
            form.as_atom().filter(|a| varying.contains(a)).and_then(|a| affines.remainder(source, a));
        let wrapped = wrapped.or_else(|| match form.as_atom().map(|a| *source.op(a)) {
            Some(Op::Binary(ebbtide_ir::Binary::RemEuclid, a, b)) => Some((a, b)),
            _ => None,
        });
        let sum = wrapped.map_or(form, |(x, _)| affines.form(x));
        let here: Vec<usize> = (0..vars.len()).filter(|k| sum.coefficient(vars[*k]) != 0).collect();
        match *here.as_slice() {
            [k] if matches!(variables[k], Variable::Free) => {
                let sign = sum.coefficient(vars[k]);
                let rest = sum.without(vars[k]);
                if sign.abs() != 1 || rest.terms.iter().any(|t| varying.contains(&t.0)) {
                    return None;
                }
                variables[k] = match wrapped {
                    None => Variable::Shifted { dimension, sign, rest },
                    Some((_, modulus)) => {
                        let range = &par.ranges[k];
                        if !is_zero(source, range.from) || affines.form(range.to) != affines.form(modulus) {
                            return None;
                        }
                        Variable::Wrapped { dimension, sign, rest, modulus }
                    }
                };
            }
            _ => return None,
        }
    }
    Some(Inverse { variables, fixed })
}

/// Does the index tell all iterations apart, each by a dimension of its own?
pub(crate) fn is_own(inverse: &Inverse) -> bool {
    inverse.variables.iter().all(|v| !matches!(v, Variable::Free))
}

/// Does the body write every element of `array` exactly once, unconditionally, at its own index?
pub(crate) fn covers(source: &Program, affines: &Affines, par: &Par, array: ArrayId, index: Indices) -> bool {
    let decl = source.array(array);
    par.ranges.len() == decl.rank
        && identity(affines, par, index)
        && par
            .ranges
            .iter()
            .enumerate()
            .all(|(k, range)| is_zero(source, range.from) && is_dim(source, affines, array, k, range.to))
}

/// Does a parallel loop overwrite all of an array with its one write?
pub(crate) fn is_replaced(source: &Program, affines: &Affines, par: &Par, array: ArrayId) -> bool {
    let only = only_store(par, array);
    only.is_some_and(|store| covers(source, affines, par, array, store.index))
}

/// Is the index the parallel variables themselves, in order?
pub(crate) fn identity(affines: &Affines, par: &Par, index: Indices) -> bool {
    par.ranges.len() == index.as_slice().len()
        && par
            .ranges
            .iter()
            .zip(index.as_slice())
            .all(|(range, v)| affines.form(*v).as_atom() == Some(range.var))
}

/// Is the value the extent of the array in dimension `k`?
pub(crate) fn is_dim(source: &Program, affines: &Affines, array: ArrayId, k: usize, v: ValueId) -> bool {
    // A temporary's extents are known by the values that it was declared with.
    if let Role::Temp(shape) = &source.array(array).role
        && shape.get(k).is_some_and(|extent| affines.form(*extent) == affines.form(v))
    {
        return true;
    }
    let extent = affines.form(v).as_atom().map(|atom| *source.op(atom));
    matches!(extent, Some(Op::Dim(other, d)) if d as usize == k && affines.same_shape(array, other))
}
