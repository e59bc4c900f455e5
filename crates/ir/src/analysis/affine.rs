//! Index arithmetic as sums: which values are the same, and which are affine in what.

use std::collections::{BTreeSet, HashMap, HashSet};

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
    /// Looks at every value once, in the order of the program's table (operands come before their uses), but at what temporaries
    /// are declared with before all others: an extent is that, wherever it stands in the table.
    pub fn of(program: &Program) -> Affines {
        let mut known: HashMap<(Op, Type, Option<Stretch>), ValueId> = HashMap::new();
        let ids = || (0..program.values.len()).map(ValueId::from_index);
        let mut this = Affines {
            representative: ids().collect(),
            forms: ids().map(Affine::atom).collect(),
            shapes: equal_shapes(program),
        };
        let reads = equal_reads(program);
        let changing = changing_shapes(program);
        let stretches = stretches(program, &changing);
        let shapes = values_of_shapes(program);
        let others = ids().filter(|id| !shapes.contains(id));
        for id in shapes.iter().copied().chain(others) {
            let value = program.value(id);
            let representative = if value.op.is_pure() && value.op != Op::LoopVar {
                let mut op = value.op.map(|v| this.representative[v.index()]);
                if let Op::Dim(array, k) = op {
                    op = Op::Dim(this.shapes[array.index()], k);
                }
                match this.declared_extent(program, &changing, op) {
                    Some(extent) => extent,
                    None => *known.entry((op, value.ty, stretches.get(&id).copied())).or_insert(id),
                }
            } else {
                reads.get(&id).copied().unwrap_or(id)
            };
            this.representative[id.index()] = representative;
            this.forms[id.index()] = this.form_of(program, id, representative);
        }
        this
    }

    /// The value that a temporary was declared with, where this is an extent of it.
    fn declared_extent(&self, program: &Program, changing: &HashSet<ArrayId>, op: Op) -> Option<ValueId> {
        let Op::Dim(array, k) = op else { return None };
        match &program.array(array).role {
            Role::Temp(shape) if !changing.contains(&array) => {
                shape.get(k as usize).map(|extent| self.representative[extent.index()])
            }
            _ => None,
        }
    }

    fn form_of(&self, program: &Program, id: ValueId, representative: ValueId) -> Affine {
        if representative != id {
            return self.form(representative).clone();
        }
        let form = |v: ValueId| self.form(v);
        let sum = match *program.op(id) {
            _ if program.ty(id) != Type::Index => None,
            Op::Literal(l) => l.to_i64().map(Affine::constant),
            Op::Binary(Binary::Add, a, b) => form(a).add_scaled(form(b), 1),
            Op::Binary(Binary::Sub, a, b) => form(a).add_scaled(form(b), -1),
            Op::Binary(Binary::Mul, a, b) => match (form(a).as_constant(), form(b).as_constant()) {
                (_, Some(c)) => Affine::default().add_scaled(form(a), c),
                (Some(c), _) => Affine::default().add_scaled(form(b), c),
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

/// What temporaries are declared with, and what that is computed from.
fn values_of_shapes(program: &Program) -> BTreeSet<ValueId> {
    let declared = program.arrays.iter().filter_map(|array| match &array.role {
        Role::Temp(shape) => Some(shape.as_slice()),
        _ => None,
    });
    let mut work: Vec<ValueId> = declared.flatten().copied().collect();
    let mut found = BTreeSet::new();
    while let Some(v) = work.pop() {
        if found.insert(v) {
            work.extend(program.op(v).operands());
        }
    }
    found
}

/// For each array the first one that is certain to have the same shape: swapped arrays and those that look alike, where the launch
/// compares them.
fn equal_shapes(program: &Program) -> Vec<ArrayId> {
    let mut first: Vec<ArrayId> = program.array_ids().collect();
    let swaps = match program.swapped {
        SwappedShapes::Equal => program.swaps(),
        SwappedShapes::Unknown => Vec::new(),
    };
    for (a, b) in swaps.iter().chain(&program.alike) {
        let (a, b) = (first[a.index()], first[b.index()]);
        let (keep, replace) = (a.min(b), a.max(b));
        first.iter_mut().filter(|f| **f == replace).for_each(|f| *f = keep);
    }
    first
}

/// A part of a program in which the host does nothing, by number.
type Stretch = u32;

/// May the host give arrays other shapes here, or in blocks of this statement?
fn lets_host_in(block: &[Stmt]) -> bool {
    let mut found = false;
    walk(block, &mut |inner| found |= matches!(inner, Stmt::Region(_) | Stmt::Host(..)));
    found
}

/// For each extent that the host may change the stretch in which it is read.
fn stretches(program: &Program, changing: &HashSet<ArrayId>) -> HashMap<ValueId, Stretch> {
    /// The depth of recursion is that of nesting in the source.
    fn visit(
        block: &Block,
        (reads, hosted): (&dyn Fn(ValueId) -> bool, bool),
        at: &mut Stretch,
        found: &mut HashMap<ValueId, Stretch>,
    ) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) if reads(*v) => drop(found.insert(*v, *at)),
                _ => {}
            }
            // Only programs that yield are gone through once more for each of their loops.
            let step = u32::from(hosted && lets_host_in(std::slice::from_ref(stmt)));
            *at += step;
            for block in stmt.blocks() {
                visit(block, (reads, hosted), at, found);
                *at += step;
            }
        }
    }
    let reads = |v: ValueId| match *program.op(v) {
        Op::Dim(array, _) => changing.contains(&array) || matches!(program.array(array).role, Role::Param(_)),
        _ => false,
    };
    let mut found = HashMap::new();
    visit(&program.body, (&reads, lets_host_in(&program.body)), &mut 0, &mut found);
    found
}

/// Temporaries that may have another shape than they were declared with: those that are swapped where nobody compares them, and
/// all of them where a driver repeats what the host did.
fn changing_shapes(program: &Program) -> HashSet<ArrayId> {
    let mut hosted = false;
    walk_program_level(&program.body, &mut |stmt| hosted |= matches!(stmt, Stmt::Host(..)));
    if hosted {
        return program.array_ids().collect();
    }
    match program.swapped {
        SwappedShapes::Unknown => program.swaps().into_iter().flat_map(|(a, b)| [a, b]).collect(),
        SwappedShapes::Equal => HashSet::new(),
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    /// The values of a program with these names.
    fn named<const N: usize>(text: &str, names: [&str; N]) -> (Affines, [ValueId; N]) {
        let program = parse(text).unwrap();
        let find = |name: &str| {
            let at = program.values.iter().position(|v| v.name.as_deref() == Some(name)).unwrap();
            ValueId::from_index(at)
        };
        (Affines::of(&program), names.map(find))
    }

    #[test]
    fn the_extent_of_a_temporary_is_what_it_was_declared_with() {
        let text = "program p(x: &mut Array1<f64>) {
            let n = x.len();
            let mut y = Array2::<f64>::zeros([n + 1, n]);
            let a = y.dim(1);
            let b = y.dim(0);
            for i in par(0..a) { x[i] = y[[b - 1, i]]; }
        }";
        let (affines, [n, a, b]) = named(text, ["n", "a", "b"]);
        assert_eq!(affines.representative(a), n);
        assert_eq!(affines.form(b).add_scaled(affines.form(n), -1).and_then(|d| d.as_constant()), Some(1));
    }

    #[test]
    fn extents_are_not_those_from_before_the_host_stepped_in() {
        let text = "program p(x: &mut Array1<f64>, full: &mut Array0<i32>, steps: usize) {
            let n = x.len();
            let mut y = Array1::<f64>::zeros([n]);
            for t in 0..steps {
                let before = x.len();
                let again = x.len();
                #[checkpoint(Stage::List, yield_on = full)]
                {
                    full[[]] = 0i32;
                }
                let after = x.len();
                let own = y.len();
                for i in par(0..before) { x[i] = 1.0; }
                for i in par(0..again) { x[i] = 1.0; }
                for i in par(0..after) { x[i] = 1.0; }
                for i in par(0..own) { y[i] = 1.0; }
            }
        }";
        let (affines, [n, before, again, after, own]) = named(text, ["n", "before", "again", "after", "own"]);
        let same = |a, b| affines.representative(a) == affines.representative(b);
        assert!(same(before, again), "nothing happens between them");
        assert!(!same(n, before), "the iteration before may have yielded");
        assert!(!same(before, after));
        assert!(!same(n, after));
        assert!(same(n, own), "nobody changes the shape of a temporary");
    }
}
