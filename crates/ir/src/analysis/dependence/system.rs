//! Sets of conditions on polynomials.

use super::formula::Formula;
use super::poly::Poly;

/// Where a condition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// It holds wherever the loop stands.
    Context,
    /// It holds if two accesses meet.
    Meeting,
}

impl Origin {
    pub fn and(self, other: Origin) -> Origin {
        self.max(other)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    pub poly: Poly,
    pub zero: bool,
    pub from: Origin,
}

/// A set of conditions, all of which hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct System {
    pub all: Vec<Condition>,
    /// One of each list holds.
    pub any: Vec<Vec<Formula>>,
    /// Something that cannot hold was added.
    pub impossible: bool,
}

impl System {
    /// Adds a formula.
    pub fn add(&mut self, formula: &Formula, from: Origin) {
        match formula {
            Formula::AtLeastZero(p) => self.push(p.clone(), false, from),
            Formula::Zero(p) => self.push(p.clone(), true, from),
            Formula::All(parts) => parts.iter().for_each(|part| self.add(part, from)),
            Formula::Any(parts) if parts.is_empty() => self.impossible = true,
            Formula::Any(parts) if parts.len() == 1 => self.add(&parts[0], from),
            Formula::Any(parts) => {
                if !parts.contains(&Formula::Unknown) {
                    self.any.push(parts.clone());
                }
            }
            Formula::Unknown => {}
        }
    }

    /// Calls `f` with every polynomial.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Poly)) {
        self.all.iter().for_each(|condition| f(&condition.poly));
        self.any.iter().flatten().for_each(|formula| formula.visit(f));
    }

    /// The system with every polynomial replaced.
    pub fn map(&self, f: &mut dyn FnMut(&Poly) -> Poly) -> System {
        let all = self.all.iter().map(|c| Condition { poly: f(&c.poly), ..*c }).collect();
        let any = self.any.iter().map(|ways| ways.iter().map(|way: &Formula| way.map(f)).collect()).collect();
        System { all, any, impossible: self.impossible }
    }

    fn push(&mut self, poly: Poly, zero: bool, from: Origin) {
        match poly.as_constant() {
            Some(c) if (zero && c != 0) || (!zero && c < 0) => self.impossible = true,
            Some(_) => {}
            None => self.all.push(Condition { poly, zero, from }),
        }
    }
}

/// What is left of one way to meet: conditions on invariant atoms, all of which hold there.
pub type Residual = Vec<Formula>;
