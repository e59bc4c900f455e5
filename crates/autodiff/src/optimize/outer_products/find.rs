//! Which products can wait.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affines, After, ArrayId, Binary, Combine, Loop, LoopKind, Op, Par, Program, Stmt, Store, SwappedShapes,
    ValueId, walk, written,
};

/// A loop in an iteration of a parallel loop that does nothing but add products to matrices.
pub(super) struct Product {
    /// Its place among the statements of the iteration.
    pub at: usize,
    pub var: ValueId,
    pub from: ValueId,
    pub to: ValueId,
    pub matrices: Vec<Matrix>,
}

/// A matrix to which nothing else adds.
pub(super) struct Matrix {
    pub array: ArrayId,
    /// The dimension that goes with the variable of the parallel loop.
    pub along: usize,
    /// The coordinate in the other one.
    pub across: ValueId,
    /// In order.
    pub terms: Vec<Term>,
}

/// A product of a value of the iteration and one that all iterations share.
pub(super) struct Term {
    pub row: ValueId,
    pub column: ValueId,
    pub row_first: bool,
}

/// What is known of a loop around parallel loops.
pub(super) struct Finding<'a> {
    program: &'a Program,
    affines: &'a Affines,
    shadows: &'a BTreeSet<ArrayId>,
    /// How many statements of the loop touch each array.
    touched: BTreeMap<ArrayId, usize>,
    /// Values that the loop computes.
    inside: BTreeSet<ValueId>,
    /// Arrays whose shapes the loop may change.
    exchanged: BTreeSet<ArrayId>,
}

impl<'a> Finding<'a> {
    pub fn new(
        program: &'a Program,
        affines: &'a Affines,
        shadows: &'a BTreeSet<ArrayId>,
        l: &Loop,
    ) -> Finding<'a> {
        let mut touched = BTreeMap::new();
        let mut exchanged = BTreeSet::new();
        let mut inside = BTreeSet::new();
        walk(&l.body, &mut |stmt| {
            for array in touches(program, stmt) {
                *touched.entry(array).or_default() += 1;
            }
            if let Stmt::Swap(a, b) = stmt
                && program.swapped != SwappedShapes::Equal
            {
                exchanged.extend([*a, *b]);
            }
            inside.extend(computed_by(stmt));
        });
        if let LoopKind::For { var, .. } = l.kind {
            inside.insert(var);
        }
        Finding { program, affines, shadows, touched, inside, exchanged }
    }

    /// The products of a parallel loop that can wait.
    pub fn products(&self, par: &Par) -> Vec<Product> {
        let [range] = par.ranges.as_slice() else { return Vec::new() };
        if ![range.from, range.to].iter().all(|v| self.is_fixed(*v, None)) {
            return Vec::new();
        }
        let iteration = Iteration {
            finding: self,
            own: range.var,
            inside: computed_in(par),
            written: written(&par.body).into_iter().collect(),
        };
        let loops = par.body.iter().enumerate().filter_map(|(at, stmt)| match stmt {
            Stmt::Loop(l) => iteration.product(at, l),
            _ => None,
        });
        loops.collect()
    }

    /// Is a value the same in all iterations of the loop, but for what a variable makes of it? The depth of recursion is that
    /// of one expression.
    fn is_fixed(&self, v: ValueId, var: Option<ValueId>) -> bool {
        if !self.inside.contains(&v) || Some(v) == var {
            return true;
        }
        let op = self.program.op(v);
        let fails = matches!(op, Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, ..));
        let shape = matches!(op, Op::Dim(array, _) if self.exchanged.contains(array));
        let computed = op.is_pure() && *op != Op::LoopVar && !fails && !shape;
        computed && op.operands().all(|o| self.is_fixed(o, var))
    }
}

/// What is known of the iterations of a parallel loop.
struct Iteration<'a> {
    finding: &'a Finding<'a>,
    own: ValueId,
    inside: BTreeSet<ValueId>,
    written: BTreeSet<ArrayId>,
}

impl Iteration<'_> {
    /// The loop as one that adds products and does nothing else.
    fn product(&self, at: usize, l: &Loop) -> Option<Product> {
        let LoopKind::For { var, from, to } = l.kind else { return None };
        let fixed = [from, to].iter().all(|v| self.finding.is_fixed(*v, None));
        if !fixed || l.until.is_some() || !l.sums.is_empty() {
            return None;
        }
        let mut matrices: BTreeMap<ArrayId, Matrix> = BTreeMap::new();
        let mut computed: BTreeSet<ValueId> = [var].into();
        for stmt in &l.body {
            match stmt {
                Stmt::Let(v) => drop(computed.insert(*v)),
                Stmt::Update(Combine::Add, s) => {
                    let (along, across) = self.place(s, var)?;
                    let none = || Matrix { array: s.array, along, across, terms: Vec::new() };
                    let matrix = matrices.entry(s.array).or_insert_with(none);
                    if (matrix.along, matrix.across) != (along, across) {
                        return None;
                    }
                    matrix.terms.push(self.term(s.value, var, &computed)?);
                }
                _ => return None,
            }
        }
        let touched = &self.finding.touched;
        let alone = matrices.values().all(|m| touched.get(&m.array) == Some(&m.terms.len()));
        let matrices: Vec<Matrix> = matrices.into_values().collect();
        (alone && !matrices.is_empty()).then_some(Product { at, var, from, to, matrices })
    }

    /// Where a shadow is added to: the dimension that goes with the parallel loop, and the coordinate in the other.
    fn place(&self, s: &Store, var: ValueId) -> Option<(usize, ValueId)> {
        let [a, b] = *s.index.as_slice() else { return None };
        let (along, across) = match (a == self.own, b == self.own) {
            (true, false) => (0, b),
            (false, true) => (1, a),
            _ => return None,
        };
        let step = self.finding.affines.form(across).coefficient(var);
        let known = self.finding.shadows.contains(&s.array) && self.finding.is_fixed(across, Some(var));
        (known && step.abs() == 1).then_some((along, across))
    }

    fn term(&self, v: ValueId, var: ValueId, computed: &BTreeSet<ValueId>) -> Option<Term> {
        let Op::Binary(Binary::Mul, a, b) = *self.finding.program.op(v) else { return None };
        let (row, column, row_first) = match (computed.contains(&a), computed.contains(&b)) {
            (false, true) => (a, b, true),
            (true, false) => (b, a, false),
            _ => return None,
        };
        self.is_shared(column, var).then_some(Term { row, column, row_first })
    }

    /// Is a value the same in all iterations of the parallel loop, but for what a variable makes of it? The depth of recursion
    /// is that of one expression.
    fn is_shared(&self, v: ValueId, var: ValueId) -> bool {
        if v == var || !self.inside.contains(&v) {
            return true;
        }
        let op = self.finding.program.op(v);
        let computed = match op {
            Op::LoopVar | Op::Get(_) => false,
            Op::Load(array, _) => !self.written.contains(array),
            _ => true,
        };
        computed && op.operands().all(|o| self.is_shared(o, var))
    }
}

/// The values that the iterations of a parallel loop compute.
pub(super) fn computed_in(par: &Par) -> BTreeSet<ValueId> {
    let mut values: BTreeSet<ValueId> = par.ranges.iter().map(|range| range.var).collect();
    walk(&par.body, &mut |stmt| values.extend(computed_by(stmt)));
    values
}

/// The values that a statement itself computes.
fn computed_by(stmt: &Stmt) -> Vec<ValueId> {
    match stmt {
        Stmt::Let(v) => vec![*v],
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => vec![*var],
        Stmt::Par(par) => par.ranges.iter().map(|range| range.var).collect(),
        _ => Vec::new(),
    }
}

/// The arrays that a statement itself touches.
fn touches(program: &Program, stmt: &Stmt) -> Vec<ArrayId> {
    match stmt {
        Stmt::Let(v) => match program.op(*v) {
            Op::Load(array, _) => vec![*array],
            _ => Vec::new(),
        },
        Stmt::Store(s) | Stmt::Update(_, s) => vec![s.array],
        Stmt::Claim(claim) => vec![claim.array, claim.taken],
        Stmt::Swap(a, b) | Stmt::Copy { from: a, to: b, .. } => vec![*a, *b],
        Stmt::Fill(a, ..) | Stmt::Temp(a) | Stmt::Pop(a) => vec![*a],
        Stmt::Push(push) => match push.after {
            After::Anything(old) => vec![push.array, old],
            After::Same => vec![push.array],
        },
        Stmt::Library(call) => call.arrays().collect(),
        // What the host or a region may touch is not known; such programs are left as they are.
        Stmt::Region(_) | Stmt::Host(..) => Vec::new(),
        Stmt::Declare(..) | Stmt::Set(..) | Stmt::If(_) | Stmt::Loop(_) | Stmt::Par(_) | Stmt::Call(_) => {
            Vec::new()
        }
        Stmt::Forward(_) | Stmt::Backward(_) => Vec::new(),
    }
}
