//! Values of a program as polynomials, and conditions as formulas.
//!
//! Index arithmetic is exact (law 4), so sums and products are followed. Quotients, remainders, minima and maxima are
//! atoms of which the defining conditions are known; everything else is an atom without any.

use std::collections::{BTreeSet, HashMap};

use super::formula::Formula;
use super::poly::{Atom, Poly};
use super::refute::Refuter;
use super::system::{Origin, System};
use crate::analysis::affine::Affines;
use crate::syntax::*;

/// What an atom is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A value of the program.
    Value(ValueId),
    /// What a local variable holds; the number tells assignments apart.
    Local(LocalId, u32),
    Scalar(ScalarId),
    /// The extent of an array, the first one that is certain to have it.
    Dim(ArrayId, u8),
    /// An element of an array; the number tells contents apart that it has at different times.
    Element(ArrayId, u32, Vec<Poly>),
    /// Quotient and remainder of index arithmetic, truncated.
    Quotient(Poly, Poly),
    Remainder(Poly, Poly),
    Least(Poly, Poly),
    Greatest(Poly, Poly),
    /// The atom in one of the two iterations that may meet.
    Copy(u8, Atom),
}

struct Known {
    key: Key,
    varies: bool,
}

/// All atoms of one program, and the values that are known in terms of them.
pub struct Terms<'p> {
    pub program: &'p Program,
    pub affines: &'p Affines,
    atoms: Vec<Known>,
    numbers: HashMap<Key, Atom>,
    values: HashMap<ValueId, Poly>,
    /// Values of the parallel loop that is looked at which may differ between its iterations.
    varying: BTreeSet<ValueId>,
    versions: u32,
    depth: usize,
}

/// How deep the analysis looks into values that it has not met.
const DEPTH: usize = 60;

impl<'p> Terms<'p> {
    pub fn new(program: &'p Program, affines: &'p Affines) -> Terms<'p> {
        Terms {
            program,
            affines,
            atoms: Vec::new(),
            numbers: HashMap::new(),
            values: HashMap::new(),
            varying: BTreeSet::new(),
            versions: 0,
            depth: 0,
        }
    }

    pub fn key(&self, atom: Atom) -> &Key {
        &self.atoms[atom.0 as usize].key
    }

    pub fn varies(&self, atom: Atom) -> bool {
        self.atoms[atom.0 as usize].varies
    }

    pub fn poly_varies(&self, poly: &Poly) -> bool {
        poly.atoms().any(|a| self.varies(a))
    }

    pub fn atom(&mut self, key: Key, varies: bool) -> Atom {
        if let Some(atom) = self.numbers.get(&key) {
            return *atom;
        }
        let atom = Atom(self.atoms.len() as u32);
        self.atoms.push(Known { key: key.clone(), varies });
        self.numbers.insert(key, atom);
        atom
    }

    /// A number that no content of a variable or an array has yet.
    pub fn version(&mut self) -> u32 {
        self.versions += 1;
        self.versions
    }

    /// An unknown content of a local variable.
    pub fn fresh(&mut self, local: LocalId, varies: bool) -> Poly {
        let version = self.version();
        Poly::atom(self.atom(Key::Local(local, version), varies))
    }

    /// Begins to look at another parallel loop: what its iterations compute is computed anew.
    pub fn enter(&mut self, inside: &BTreeSet<ValueId>) {
        inside.iter().for_each(|v| drop(self.values.remove(v)));
        self.varying.clear();
    }

    /// A loop variable; `varies` in the iterations of the parallel loop that is looked at.
    pub fn loop_variable(&mut self, var: ValueId, varies: bool) -> Poly {
        if varies {
            self.varying.insert(var);
        }
        let poly = Poly::atom(self.atom(Key::Value(var), varies));
        self.values.insert(var, poly.clone());
        poly
    }

    /// A value that is this.
    pub fn set(&mut self, v: ValueId, poly: Poly) {
        if self.poly_varies(&poly) {
            self.varying.insert(v);
        }
        self.values.insert(v, poly);
    }

    /// A value into which the analysis does not look.
    pub fn set_opaque(&mut self, v: ValueId, varies: bool) {
        if varies {
            self.varying.insert(v);
        }
        let poly = Poly::atom(self.atom(Key::Value(v), varies));
        self.values.insert(v, poly);
    }

    /// Takes note of a value that a `let` computes.
    pub fn define(&mut self, v: ValueId) {
        let op = *self.program.op(v);
        if op.operands().any(|o| self.varying.contains(&o)) {
            self.varying.insert(v);
        }
        let ty = self.program.ty(v);
        if ty.is_integer() {
            let poly = self.poly_of(v, op);
            self.values.insert(v, poly);
        }
    }

    /// The polynomial that a value is. Recursion goes into what was not defined before, and no deeper than [`DEPTH`].
    pub fn value(&mut self, v: ValueId) -> Poly {
        if let Some(poly) = self.values.get(&v) {
            return poly.clone();
        }
        let op = *self.program.op(v);
        let looks = self.program.ty(v).is_integer() && self.depth < DEPTH;
        self.depth += 1;
        let poly = match op {
            op if looks && op.is_pure() && op != Op::LoopVar => self.poly_of(v, op),
            _ => Poly::atom(self.opaque(v)),
        };
        self.depth -= 1;
        self.values.insert(v, poly.clone());
        poly
    }

    /// The values that are this atom and nothing else, in the order of the program.
    pub fn values_that_are(&self, atom: Atom) -> Vec<ValueId> {
        let mut values: Vec<ValueId> =
            self.values.iter().filter(|(_, poly)| poly.as_atom() == Some(atom)).map(|(v, _)| *v).collect();
        values.sort_unstable();
        values
    }

    fn opaque(&mut self, v: ValueId) -> Atom {
        let varies = self.varying.contains(&v);
        // Equal values are one atom, but for those that may differ from one place to another.
        let pure = self.program.op(v).is_pure() && *self.program.op(v) != Op::LoopVar;
        let name = if pure { self.affines.representative(v) } else { v };
        self.atom(Key::Value(name), varies)
    }

    fn poly_of(&mut self, v: ValueId, op: Op) -> Poly {
        let index = self.program.ty(v) == Type::Index;
        let made = match op {
            Op::Literal(l) => l.to_i64().map(|c| Poly::constant(c.into())),
            Op::Scalar(s) => Some(Poly::atom(self.atom(Key::Scalar(s), false))),
            Op::Dim(array, k) => Some(self.dim(array, k)),
            Op::Cast(a) if keeps_value(self.program.ty(a), self.program.ty(v)) => Some(self.value(a)),
            Op::Binary(op, a, b) if index => {
                let (a, b) = (self.value(a), self.value(b));
                match op {
                    Binary::Add => a.add_scaled(&b, 1),
                    Binary::Sub => a.add_scaled(&b, -1),
                    Binary::Mul => a.mul(&b),
                    Binary::Div => Some(self.compound(Key::Quotient(a, b))),
                    Binary::Rem => Some(self.compound(Key::Remainder(a, b))),
                    Binary::Min => Some(self.compound(Key::Least(a, b))),
                    Binary::Max => Some(self.compound(Key::Greatest(a, b))),
                    _ => None,
                }
            }
            _ => None,
        };
        made.unwrap_or_else(|| Poly::atom(self.opaque(v)))
    }

    /// An element of an array that is not written while its atom is in use.
    pub fn element(&mut self, array: ArrayId, version: u32, index: Vec<Poly>) -> Poly {
        let varies = index.iter().any(|p| self.poly_varies(p));
        Poly::atom(self.atom(Key::Element(array, version, index), varies))
    }

    pub fn dim(&mut self, array: ArrayId, k: u8) -> Poly {
        if let Role::Temp(shape) = &self.program.array(array).role
            && let Some(extent) = shape.get(k as usize)
        {
            return self.value(*extent);
        }
        let first = self.program.array_ids().find(|a| self.affines.same_shape(*a, array));
        Poly::atom(self.atom(Key::Dim(first.unwrap_or(array), k), false))
    }

    /// Is the polynomial an extent of an array, or one divided by a positive number?
    pub fn is_extent(&self, poly: &Poly) -> bool {
        match poly.as_atom().map(|atom| self.key(atom)) {
            Some(Key::Dim(..)) => true,
            Some(Key::Quotient(a, b)) => b.as_constant().is_some_and(|c| c > 0) && self.is_extent(a),
            _ => false,
        }
    }

    /// A quotient, remainder, minimum or maximum, or the number that it is.
    pub fn compound(&mut self, key: Key) -> Poly {
        let (Key::Quotient(a, b) | Key::Remainder(a, b) | Key::Least(a, b) | Key::Greatest(a, b)) = &key
        else {
            return Poly::atom(self.atom(key, true));
        };
        if let (Some(x), Some(y)) = (a.as_constant(), b.as_constant()) {
            match key {
                Key::Quotient(..) if y != 0 => return Poly::constant(x / y),
                Key::Remainder(..) if y != 0 => return Poly::constant(x % y),
                Key::Least(..) => return Poly::constant(x.min(y)),
                Key::Greatest(..) => return Poly::constant(x.max(y)),
                _ => {}
            }
        }
        let varies = self.poly_varies(a) || self.poly_varies(b);
        Poly::atom(self.atom(key, varies))
    }

    /// The polynomial in one of two iterations.
    pub fn copy(&mut self, poly: &Poly, side: u8) -> Poly {
        let atoms: BTreeSet<Atom> = poly.atoms().filter(|a| self.varies(*a)).collect();
        let mut copied = poly.clone();
        for atom in atoms {
            let with = match self.key(atom).clone() {
                Key::Quotient(a, b) => self.copied(side, a, b, Key::Quotient),
                Key::Remainder(a, b) => self.copied(side, a, b, Key::Remainder),
                Key::Least(a, b) => self.copied(side, a, b, Key::Least),
                Key::Greatest(a, b) => self.copied(side, a, b, Key::Greatest),
                Key::Element(array, version, index) => {
                    let index = index.iter().map(|p| self.copy(p, side)).collect();
                    Poly::atom(self.atom(Key::Element(array, version, index), true))
                }
                _ => Poly::atom(self.atom(Key::Copy(side, atom), true)),
            };
            // The copy has the form of the original: it cannot grow.
            copied = copied.substitute(atom, &with).unwrap_or(copied);
        }
        copied
    }

    fn copied(&mut self, side: u8, a: Poly, b: Poly, key: fn(Poly, Poly) -> Key) -> Poly {
        let (a, b) = (self.copy(&a, side), self.copy(&b, side));
        self.compound(key(a, b))
    }

    /// What a `bool` says.
    pub fn formula(&mut self, v: ValueId) -> Formula {
        let known = |ty: Type| ty.is_integer();
        match *self.program.op(v) {
            Op::Literal(l) => {
                let holds = l.to_i64() == Some(1) || l == Literal::from(true);
                if holds { Formula::All(Vec::new()) } else { Formula::Any(Vec::new()) }
            }
            Op::Binary(Binary::And, a, b) => Formula::All(vec![self.formula(a), self.formula(b)]),
            Op::Binary(Binary::Or, a, b) => Formula::Any(vec![self.formula(a), self.formula(b)]),
            Op::Unary(Unary::Not, a) => self.formula(a).not(),
            Op::Compare(op, a, b) if known(self.program.ty(a)) => {
                let (a, b) = (self.value(a), self.value(b));
                match op {
                    Compare::Eq => Formula::equal(&a, &b),
                    Compare::Ne => Formula::equal(&a, &b).not(),
                    Compare::Lt => Formula::above(&b, &a),
                    Compare::Le => Formula::at_least(&b, &a),
                    Compare::Gt => Formula::above(&a, &b),
                    Compare::Ge => Formula::at_least(&a, &b),
                }
            }
            // A bit: one where it holds.
            _ => {
                let bit = self.value(v);
                Formula::equal(&bit, &Poly::constant(1))
            }
        }
    }

    /// Adds what is known of the atoms in a system.
    pub fn define_atoms(&mut self, system: &mut System) {
        let mut seen: BTreeSet<Atom> = BTreeSet::new();
        let mut quotients: Vec<(Atom, Poly)> = Vec::new();
        loop {
            let mut atoms: BTreeSet<Atom> = system.all.iter().flat_map(|c| c.poly.atoms()).collect();
            system.any.iter().flatten().for_each(|f| f.visit(&mut |p| atoms.extend(p.atoms())));
            let Some(atom) = atoms.into_iter().find(|a| !seen.contains(a)) else { break };
            seen.insert(atom);
            let origin = if self.varies(atom) { Origin::Meeting } else { Origin::Context };
            let here = Poly::atom(atom);
            match self.key(atom).clone() {
                Key::Dim(..) => system.add(&Formula::AtLeastZero(here), origin),
                Key::Least(a, b) => {
                    [&a, &b].iter().for_each(|p| system.add(&Formula::at_least(p, &here), origin));
                }
                Key::Greatest(a, b) => {
                    [&a, &b].iter().for_each(|p| system.add(&Formula::at_least(&here, p), origin));
                }
                Key::Quotient(a, b) | Key::Remainder(a, b) => {
                    let quotient = self.compound(Key::Quotient(a.clone(), b.clone()));
                    let remainder = self.compound(Key::Remainder(a.clone(), b.clone()));
                    seen.extend(quotient.as_atom());
                    seen.extend(remainder.as_atom());
                    self.divide(system, origin, [&a, &b, &quotient, &remainder]);
                    if let (Some(quotient), None) = (quotient.as_atom(), b.as_constant()) {
                        quotients.push((quotient, b));
                    }
                }
                _ => {}
            }
        }
        // The sign of a stride decides about products with it.
        let mut strides: BTreeSet<Atom> = BTreeSet::new();
        for condition in &system.all {
            for monomial in condition.poly.terms.keys().filter(|m| m.len() > 1) {
                strides.extend(monomial.iter().filter(|a| !self.varies(**a)));
            }
        }
        for stride in strides.into_iter().take(3) {
            let (stride, zero) = (Poly::atom(stride), Poly::constant(0));
            let ways = vec![Formula::above(&stride, &zero), Formula::at_least(&zero, &stride)];
            system.add(&Formula::Any(ways), Origin::Meeting);
        }
        // Quotients by one divisor: which is larger decides about their products with it.
        for (k, (a, divisor)) in quotients.iter().enumerate() {
            for (b, _) in quotients[k + 1..].iter().filter(|other| other.1 == *divisor).take(2) {
                let (a, b) = (Poly::atom(*a), Poly::atom(*b));
                let ways = vec![Formula::equal(&a, &b), Formula::above(&a, &b), Formula::above(&b, &a)];
                system.add(&Formula::Any(ways), Origin::Meeting);
            }
        }
    }

    /// `a = b · quotient + remainder`, the remainder smaller than `b` and with the sign of `a`.
    fn divide(&self, system: &mut System, origin: Origin, [a, b, quotient, remainder]: [&Poly; 4]) {
        let whole = b.mul(quotient).and_then(|product| product.add_scaled(remainder, 1));
        if let Some(whole) = whole {
            system.add(&Formula::equal(a, &whole), origin);
        }
        let zero = Poly::constant(0);
        let follows = |system: &System, formula: &Formula| {
            let mut opposite = System { any: Vec::new(), ..system.clone() };
            opposite.add(&formula.not(), Origin::Meeting);
            Refuter { varies: &|a| self.varies(a), budget: 8 }.refutes(&opposite)
        };
        let Some(minus_b) = Poly::default().add_scaled(b, -1) else { return };
        let (dividend, divisor) = (Formula::at_least(a, &zero), Formula::above(b, &zero));
        // What is proved from the system at hand holds wherever two accesses meet.
        let not_negative = follows(system, &dividend);
        let positive = b.as_constant().map_or_else(|| follows(system, &divisor), |c| c > 0);
        let minus = |p: &Poly| Poly::default().add_scaled(p, -1).unwrap_or_default();
        let sign = |up: bool| match up {
            true => Formula::at_least(remainder, &zero),
            false => Formula::at_least(&zero, remainder),
        };
        let size = |bound: &Poly| {
            Formula::All(vec![Formula::above(bound, remainder), Formula::above(bound, &minus(remainder))])
        };
        let known =
            if a.as_constant().is_some() || not_negative { origin.max(Origin::Meeting) } else { origin };
        if not_negative {
            system.add(&sign(true), known);
        } else {
            let ways = vec![
                Formula::All(vec![dividend.clone(), sign(true)]),
                Formula::All(vec![dividend.not(), sign(false)]),
            ];
            system.add(&Formula::Any(ways), origin);
        }
        if positive {
            system.add(&size(b), if b.as_constant().is_some() { origin } else { Origin::Meeting });
        } else {
            let ways = vec![
                Formula::All(vec![divisor.clone(), size(b)]),
                Formula::All(vec![divisor.not(), size(&minus_b)]),
            ];
            system.add(&Formula::Any(ways), origin);
        }
    }
}

/// Does a cast between these types keep every number?
fn keeps_value(from: Type, to: Type) -> bool {
    match to {
        Type::Index | Type::I64 => matches!(from, Type::I32 | Type::I64 | Type::U32 | Type::Index),
        _ => from == to && from.is_integer(),
    }
}
