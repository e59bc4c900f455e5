//! Index arithmetic as sums: which values are the same, and which are affine in what.

use std::collections::{HashMap, HashSet};

use crate::syntax::*;

/// `Σ coefficient · atom + constant`; atoms are values into which the analysis does not look.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Affine {
    /// Atoms in increasing order, with coefficients that are not zero.
    pub terms: Vec<(ValueId, i64)>,
    /// The constant.
    pub constant: i64,
}

impl Affine {
    fn constant(constant: i64) -> Affine {
        Affine { terms: Vec::new(), constant }
    }

    fn atom(value: ValueId) -> Affine {
        Affine { terms: vec![(value, 1)], constant: 0 }
    }

    /// `self + scale · other`; `None` on overflow.
    pub fn add_scaled(&self, other: &Affine, scale: i64) -> Option<Affine> {
        let mut terms = self.terms.clone();
        for &(atom, c) in &other.terms {
            let c = c.checked_mul(scale)?;
            match terms.binary_search_by_key(&atom, |t| t.0) {
                Ok(at) => terms[at].1 = terms[at].1.checked_add(c)?,
                Err(at) => terms.insert(at, (atom, c)),
            }
        }
        terms.retain(|t| t.1 != 0);
        Some(Affine { terms, constant: self.constant.checked_add(other.constant.checked_mul(scale)?)? })
    }

    /// The coefficient of an atom; zero where it does not occur.
    pub fn coefficient(&self, atom: ValueId) -> i64 {
        self.terms.binary_search_by_key(&atom, |t| t.0).map_or(0, |at| self.terms[at].1)
    }

    /// The same sum without one atom.
    pub fn without(&self, atom: ValueId) -> Affine {
        let terms = self.terms.iter().copied().filter(|t| t.0 != atom).collect();
        Affine { terms, constant: self.constant }
    }

    /// The atom, where the sum is one atom and nothing else.
    pub fn as_atom(&self) -> Option<ValueId> {
        match *self.terms.as_slice() {
            [(atom, 1)] if self.constant == 0 => Some(atom),
            _ => None,
        }
    }

    /// The constant, where the sum is one.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }
}

/// What is known of every value of a program: a representative among equal ones, and its sum.
#[derive(Debug)]
pub struct Affines {
    representative: Vec<ValueId>,
    forms: Vec<Affine>,
    shapes: Vec<ArrayId>,
}

impl Affines {
    /// Looks at every value once, in the order of the program's table (operands come before their uses).
    pub fn of(program: &Program) -> Affines {
        let mut known: HashMap<(Op, Type), ValueId> = HashMap::new();
        let mut this =
            Affines { representative: Vec::new(), forms: Vec::new(), shapes: equal_shapes(program) };
        let reads = equal_reads(program);
        for (i, value) in program.values.iter().enumerate() {
            let id = ValueId(i as u32);
            let representative = if value.op.is_pure() && value.op != Op::LoopVar {
                let mut op = value.op.map(|v| this.representative.get(v.index()).copied().unwrap_or(v));
                if let Op::Dim(array, k) = op {
                    op = Op::Dim(this.shapes[array.index()], k);
                }
                *known.entry((op, value.ty)).or_insert(id)
            } else {
                reads.get(&id).copied().unwrap_or(id)
            };
            this.representative.push(representative);
            let form = this.form_of(program, representative);
            this.forms.push(form);
        }
        this
    }

    fn form_of(&self, program: &Program, id: ValueId) -> Affine {
        if let Some(form) = self.forms.get(id.index()) {
            return form.clone();
        }
        let form = |v: ValueId| self.forms.get(v.index()).cloned().unwrap_or_else(|| Affine::atom(v));
        let sum = match *program.op(id) {
            _ if program.ty(id) != Type::Index => None,
            Op::Literal(l) => l.to_i64().map(Affine::constant),
            Op::Binary(Binary::Add, a, b) => form(a).add_scaled(&form(b), 1),
            Op::Binary(Binary::Sub, a, b) => form(a).add_scaled(&form(b), -1),
            Op::Binary(Binary::Mul, a, b) => match (form(a).as_constant(), form(b).as_constant()) {
                (_, Some(c)) => Affine::default().add_scaled(&form(a), c),
                (Some(c), _) => Affine::default().add_scaled(&form(b), c),
                _ => None,
            },
            _ => None,
        };
        sum.unwrap_or_else(|| Affine::atom(id))
    }

    /// The first value that is certain to be equal to this one.
    pub fn representative(&self, value: ValueId) -> ValueId {
        self.representative[value.index()]
    }

    /// The sum that a value is.
    pub fn form(&self, value: ValueId) -> &Affine {
        &self.forms[value.index()]
    }

    /// Are two arrays certain to have the same shape?
    pub fn same_shape(&self, a: ArrayId, b: ArrayId) -> bool {
        self.shapes[a.index()] == self.shapes[b.index()]
    }

    /// The dividend and divisor, where the value is a remainder of index arithmetic.
    pub fn remainder(&self, program: &Program, value: ValueId) -> Option<(ValueId, ValueId)> {
        match *program.op(value) {
            Op::Binary(Binary::Rem, a, b) if program.ty(value) == Type::Index => Some((a, b)),
            _ => None,
        }
    }
}

/// For each array the first one that is certain to have the same shape: swapped arrays, where the launch compares them.
fn equal_shapes(program: &Program) -> Vec<ArrayId> {
    let mut first: Vec<ArrayId> = program.array_ids().collect();
    if program.swapped == SwappedShapes::Unknown {
        return first;
    }
    for (a, b) in program.swaps() {
        let (a, b) = (first[a.index()], first[b.index()]);
        let (keep, replace) = (a.min(b), a.max(b));
        first.iter_mut().filter(|f| **f == replace).for_each(|f| *f = keep);
    }
    first
}

/// For each read of a variable in a parallel loop around which it was declared, the first one in that loop: no iteration
/// sets it.
fn equal_reads(program: &Program) -> HashMap<ValueId, ValueId> {
    let mut equal = HashMap::new();
    walk_program_level(&program.body, &mut |stmt| {
        let Stmt::Par(par) = stmt else { return };
        let mut own: HashSet<LocalId> = HashSet::new();
        let mut reads: HashMap<LocalId, Vec<ValueId>> = HashMap::new();
        walk(&par.body, &mut |inner| match inner {
            Stmt::Declare(local, _) => drop(own.insert(*local)),
            Stmt::Let(v) => {
                if let Op::Get(local) = program.op(*v) {
                    reads.entry(*local).or_default().push(*v);
                }
            }
            _ => {}
        });
        for (local, values) in reads {
            if let (false, Some(first)) = (own.contains(&local), values.iter().min()) {
                equal.extend(values.iter().map(|v| (*v, *first)));
            }
        }
    });
    equal
}

/// Is this a literal zero?
pub fn is_zero(program: &Program, value: ValueId) -> bool {
    program.literal(value).and_then(Literal::to_i64) == Some(0)
}
