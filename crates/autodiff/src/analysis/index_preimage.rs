//! The preimage of an element: the iterations of a parallel loop and of the loops inside it that come to it, in order.

use std::collections::BTreeSet;

use ebbtide_ir::{Affine, Affines, Binary, Indices, Loop, LoopKind, Op, Program, Range, ValueId, is_zero};

/// The variable of a loop that an element is reached through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub var: ValueId,
    pub from: ValueId,
    pub to: ValueId,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Parallel,
    Sequential,
}

impl Variable {
    /// A variable of the parallel loop.
    pub fn parallel(range: &Range) -> Variable {
        Variable { var: range.var, from: range.from, to: range.to, kind: Kind::Parallel }
    }

    /// The variable of a loop inside it, where its iterations are counted.
    pub fn sequential(l: &Loop) -> Option<Variable> {
        match l.kind {
            LoopKind::For { var, from, to } if l.until.is_none() => {
                Some(Variable { var, from, to, kind: Kind::Sequential })
            }
            _ => None,
        }
    }
}

/// One step towards the iterations that come to an element `k`.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Only where `k[dimension]` is this sum.
    Check { dimension: usize, sum: Affine },
    /// The variable follows from `k[dimension] = sign · variable + rest`; it must lie in its range.
    Follow { variable: Variable, dimension: usize, sign: i64, rest: Affine },
    /// The variable follows from `k[dimension] = (sign · variable + rest) mod modulus`, over exactly one period.
    Wrap { variable: Variable, dimension: usize, sign: i64, rest: Affine, modulus: ValueId },
    /// The variable follows from `k[dimension] = sign · variable + rest + offset` where the sum of the first two is beyond
    /// none of the bounds; all of its values beyond one come to the element at the bound.
    Clamp { variable: Variable, dimension: usize, sign: i64, rest: Affine, clamp: Clamp },
    /// The variable takes each value of its range, or of the part of it where another one can follow.
    Each { variable: Variable, within: Option<Within>, part: Part },
}

/// Which values of its range a variable takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// Every so manieth, beginning with that of the lane, as long as there is one for every lane.
    Lane(ValueId),
    /// Those that are left when all lanes have theirs.
    Rest,
}

/// What becomes of a sum in an index.
#[derive(Clone, Debug)]
pub(crate) struct Clamp {
    pub bounds: Vec<Bound>,
    /// What is added in the end.
    pub offset: Affine,
    /// The index.
    pub index: ValueId,
}

/// A bound of a clamped index.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// The index is at least this.
    Least(ValueId),
    /// The index is at most this.
    Most(ValueId),
}

/// Where the variable that follows next from `k[dimension] = sign · next + coefficient · variable + rest` is in range.
#[derive(Clone, Debug)]
pub(crate) struct Within {
    pub next: Variable,
    pub dimension: usize,
    pub sign: i64,
    pub coefficient: i64,
    pub rest: Affine,
}

/// The variables on which a value depends, where it can be computed from them; `None` where it cannot.
pub(crate) type Depends<'a> = &'a dyn Fn(ValueId) -> Option<BTreeSet<ValueId>>;

/// The index of one dimension: a sum, and what becomes of it.
struct Dimension {
    number: usize,
    sum: Affine,
    shape: Shape,
}

enum Shape {
    Plain,
    Wrapped(ValueId),
    Clamped(Clamp),
}

/// Looks through remainders, minima and maxima of index arithmetic.
fn shape(program: &Program, affines: &Affines, v: ValueId, depends: Depends<'_>) -> Option<(Affine, Shape)> {
    let form = affines.form(v);
    let varies = |t: &&(ValueId, i64)| depends(t.0).is_none_or(|on| !on.is_empty());
    let atom = match form.terms.iter().filter(varies).collect::<Vec<_>>().as_slice() {
        [(atom, 1)] => *atom,
        _ => return Some((form.clone(), Shape::Plain)),
    };
    let offset = form.without(atom);
    if let Some((x, modulus)) = affines.remainder(program, atom) {
        let known = depends(modulus)?.is_empty() && offset.as_constant() == Some(0);
        return known.then(|| (affines.form(x).clone(), Shape::Wrapped(modulus)));
    }
    let (mut side, mut bounds) = (atom, Vec::new());
    while let Some(x) = affines.form(side).as_atom()
        && let Op::Binary(op @ (Binary::Min | Binary::Max), a, b) = *program.op(x)
    {
        let bound = if depends(b)?.is_empty() { b } else { a };
        if !depends(bound)?.is_empty() {
            return None;
        }
        side = if bound == b { a } else { b };
        bounds.push(if op == Binary::Max { Bound::Least(bound) } else { Bound::Most(bound) });
    }
    match bounds.is_empty() {
        true => Some((form.clone(), Shape::Plain)),
        false => Some((affines.form(side).clone(), Shape::Clamped(Clamp { bounds, offset, index: v }))),
    }
}

/// The steps to the iterations that come to an element; `None` where the index is not affine in the variables.
pub(crate) fn preimage(
    program: &Program,
    affines: &Affines,
    variables: &[Variable],
    index: Indices,
    depends: Depends<'_>,
) -> Option<Vec<Step>> {
    let occurring = |sum: &Affine| variables.iter().filter(|v| sum.coefficient(v.var) != 0).count();
    let mut dimensions: Vec<Dimension> = Vec::new();
    for (number, v) in index.as_slice().iter().enumerate() {
        let (sum, shape) = match depends(*v)?.is_empty() {
            true => (affines.form(*v).clone(), Shape::Plain),
            false => shape(program, affines, *v, depends)?,
        };
        let is_variable = |atom: ValueId| variables.iter().any(|v| v.var == atom);
        let known = |v: ValueId| depends(v).is_some_and(|on| on.is_empty());
        if !sum.terms.iter().all(|t| is_variable(t.0) || known(t.0)) {
            return None;
        }
        dimensions.push(Dimension { number, sum, shape });
    }
    // Those with the fewest variables leave the least choice.
    dimensions.sort_by_key(|d| (occurring(&d.sum), d.number));
    let mut steps: Vec<Step> = Vec::new();
    let mut follows: BTreeSet<ValueId> = BTreeSet::new();
    for Dimension { number: dimension, sum, shape } in dimensions {
        // A parallel variable, the last one first: then neighbouring elements have neighbouring iterations.
        let free = |v: &&Variable| sum.coefficient(v.var).abs() == 1 && !follows.contains(&v.var);
        let (parallel, sequential): (Vec<&Variable>, Vec<&Variable>) =
            variables.iter().filter(free).partition(|v| v.kind == Kind::Parallel);
        let Some(variable) = parallel.into_iter().next_back().or(sequential.into_iter().next_back()).copied()
        else {
            let Shape::Plain = shape else { return None };
            steps.push(Step::Check { dimension, sum });
            continue;
        };
        follows.insert(variable.var);
        let (sign, rest) = (sum.coefficient(variable.var), sum.without(variable.var));
        steps.push(match shape {
            Shape::Plain => Step::Follow { variable, dimension, sign, rest },
            Shape::Wrapped(modulus) => {
                let period =
                    is_zero(program, variable.from) && affines.form(variable.to) == affines.form(modulus);
                if !period {
                    return None;
                }
                Step::Wrap { variable, dimension, sign, rest, modulus }
            }
            Shape::Clamped(clamp) => Step::Clamp { variable, dimension, sign, rest, clamp },
        });
    }
    let each = variables.iter().filter(|v| !follows.contains(&v.var));
    steps.extend(each.map(|variable| Step::Each { variable: *variable, within: None, part: Part::All }));
    in_order(steps, depends)
}

/// Puts each step behind those that it depends on; the variables that take each value come as late as they can.
fn in_order(mut steps: Vec<Step>, depends: Depends<'_>) -> Option<Vec<Step>> {
    let mut known: BTreeSet<ValueId> = BTreeSet::new();
    let mut ordered = Vec::new();
    while !steps.is_empty() {
        let ready = |step: &Step| step.needs(depends).is_some_and(|needs| needs.is_subset(&known));
        let each = |step: &Step| matches!(step, Step::Each { .. });
        let at =
            (steps.iter().position(|s| !each(s) && ready(s))).or_else(|| steps.iter().position(ready))?;
        let mut step = steps.remove(at);
        if let Step::Each { variable, within, .. } = &mut step {
            *within = steps.iter().find_map(|next| narrow(variable, next, &known, depends));
        }
        known.extend(step.variable().map(|v| v.var));
        ordered.push(step);
    }
    Some(ordered)
}

/// Where a variable has to be so that the next one can follow.
fn narrow(
    variable: &Variable,
    next: &Step,
    known: &BTreeSet<ValueId>,
    depends: Depends<'_>,
) -> Option<Within> {
    let Step::Follow { variable: next, dimension, sign, rest } = next else { return None };
    // Few iterations beside each other are better than the fewest.
    if next.kind == Kind::Parallel && variable.kind == Kind::Sequential {
        return None;
    }
    let coefficient = rest.coefficient(variable.var);
    let rest = rest.without(variable.var);
    let bounds = depends(next.from)?.union(&depends(next.to)?).copied().collect::<BTreeSet<_>>();
    let others = rest.terms.iter().filter_map(|t| depends(t.0)).all(|on| on.is_subset(known));
    (coefficient != 0 && others && bounds.is_subset(known)).then_some(Within {
        next: *next,
        dimension: *dimension,
        sign: *sign,
        coefficient,
        rest,
    })
}

impl Step {
    fn variable(&self) -> Option<&Variable> {
        match self {
            Step::Check { .. } => None,
            Step::Follow { variable, .. }
            | Step::Wrap { variable, .. }
            | Step::Clamp { variable, .. }
            | Step::Each { variable, .. } => Some(variable),
        }
    }

    /// The variables that must be known before.
    fn needs(&self, depends: Depends<'_>) -> Option<BTreeSet<ValueId>> {
        let sum = match self {
            Step::Check { sum, .. } => Some(sum),
            Step::Follow { rest, .. } | Step::Wrap { rest, .. } | Step::Clamp { rest, .. } => Some(rest),
            Step::Each { .. } => None,
        };
        let bounds = self.variable().into_iter().flat_map(|v| [v.from, v.to]);
        let atoms = sum.into_iter().flat_map(|sum| sum.terms.iter().map(|t| t.0));
        let mut needs = BTreeSet::new();
        for v in bounds.chain(atoms) {
            needs.extend(depends(v)?);
        }
        Some(needs)
    }
}
