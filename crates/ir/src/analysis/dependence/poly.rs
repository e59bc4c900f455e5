//! Integer polynomials over atoms: the form in which indices, bounds and guards are compared.

use std::collections::BTreeMap;

/// A quantity into which the analysis does not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Atom(pub u32);

/// The factors of a term in increasing order; none for the constant.
pub type Monomial = Vec<Atom>;

/// `Σ coefficient · monomial`, with coefficients that are not zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Poly {
    pub terms: BTreeMap<Monomial, i128>,
}

/// Coefficients beyond this are not computed with.
const LARGEST: i128 = 1 << 80;

/// Monomials with more factors than this are not looked at.
const DEGREE: usize = 5;

impl Poly {
    pub fn constant(c: i128) -> Poly {
        let mut terms = BTreeMap::new();
        if c != 0 {
            terms.insert(Monomial::new(), c);
        }
        Poly { terms }
    }

    pub fn atom(atom: Atom) -> Poly {
        Poly { terms: BTreeMap::from([(vec![atom], 1)]) }
    }

    pub fn as_constant(&self) -> Option<i128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Monomial::new()).copied(),
            _ => None,
        }
    }

    /// The atom, where the polynomial is one atom and nothing else.
    pub fn as_atom(&self) -> Option<Atom> {
        let (monomial, c) = self.terms.iter().next()?;
        match monomial.as_slice() {
            [atom] if *c == 1 && self.terms.len() == 1 => Some(*atom),
            _ => None,
        }
    }

    pub fn constant_part(&self) -> i128 {
        self.terms.get(&Monomial::new()).copied().unwrap_or(0)
    }

    /// The coefficient of the monomial that is this atom alone.
    pub fn coefficient(&self, atom: Atom) -> i128 {
        self.terms.get([atom].as_slice()).copied().unwrap_or(0)
    }

    /// `self + scale · other`; `None` where coefficients grow too large.
    pub fn add_scaled(&self, other: &Poly, scale: i128) -> Option<Poly> {
        let mut sum = self.clone();
        for (monomial, c) in &other.terms {
            sum.add_term(monomial.clone(), c.checked_mul(scale)?)?;
        }
        Some(sum)
    }

    fn add_term(&mut self, monomial: Monomial, c: i128) -> Option<()> {
        let entry = self.terms.entry(monomial);
        let at = entry.or_insert(0);
        *at = at.checked_add(c).filter(|c| c.abs() < LARGEST)?;
        if *at == 0 {
            self.terms.retain(|_, c| *c != 0);
        }
        Some(())
    }

    pub fn mul(&self, other: &Poly) -> Option<Poly> {
        let mut product = Poly::default();
        for (a, c) in &self.terms {
            for (b, d) in &other.terms {
                let mut factors: Monomial = a.iter().chain(b).copied().collect();
                if factors.len() > DEGREE {
                    return None;
                }
                factors.sort_unstable();
                product.add_term(factors, c.checked_mul(*d)?)?;
            }
        }
        Some(product)
    }

    /// `self + c`.
    pub fn plus(&self, c: i128) -> Option<Poly> {
        self.add_scaled(&Poly::constant(c), 1)
    }

    /// The polynomial with another one in place of an atom.
    pub fn substitute(&self, atom: Atom, with: &Poly) -> Option<Poly> {
        let mut result = Poly::default();
        for (monomial, c) in &self.terms {
            let rest: Monomial = monomial.iter().copied().filter(|a| *a != atom).collect();
            let times = monomial.len() - rest.len();
            let mut term = Poly { terms: BTreeMap::from([(rest, *c)]) };
            for _ in 0..times {
                term = term.mul(with)?;
            }
            result = result.add_scaled(&term, 1)?;
        }
        Some(result)
    }

    /// All atoms, in increasing order, each as often as it occurs.
    pub fn atoms(&self) -> impl Iterator<Item = Atom> {
        self.terms.keys().flatten().copied()
    }
}

pub fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
