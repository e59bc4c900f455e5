//! Polynomials with rational coefficients over values of a program, for the numbers of iterations of nests.

use std::collections::BTreeMap;

use ebbtide_ir::{Affine, Affines, Binary, Op, Program, ValueId};

/// What a polynomial is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Atom {
    Value(ValueId),
    /// A sum of values, or zero where it is negative: terms and constant.
    Extent(Vec<(ValueId, i64)>, i64),
}

/// Factors of a term in increasing order; none for the constant.
type Monomial = Vec<Atom>;

/// Terms with more factors than this are not computed with.
const DEGREE: usize = 6;

/// `Σ coefficient · monomial / divisor`, with coefficients that are not zero and a positive divisor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Polynomial {
    pub terms: BTreeMap<Monomial, i128>,
    pub divisor: i128,
}

impl Polynomial {
    pub fn constant(c: i128) -> Polynomial {
        let terms = if c == 0 { BTreeMap::new() } else { BTreeMap::from([(Monomial::new(), c)]) };
        Polynomial { terms, divisor: 1 }
    }

    pub fn atom(atom: Atom) -> Polynomial {
        Polynomial { terms: BTreeMap::from([(vec![atom], 1)]), divisor: 1 }
    }

    pub fn affine(form: &Affine) -> Option<Polynomial> {
        let constant = Polynomial::constant(form.constant.into());
        form.terms.iter().try_fold(constant, |sum, (atom, c)| {
            sum.add_scaled(&Polynomial::atom(Atom::Value(*atom)), (*c).into())
        })
    }

    /// Index arithmetic with its products multiplied out. The depth of recursion is that of one index.
    pub fn expanded(source: &Program, affines: &Affines, form: &Affine) -> Option<Polynomial> {
        let mut sum = Polynomial::constant(form.constant.into());
        for (atom, c) in &form.terms {
            let factor = |v: ValueId| Polynomial::expanded(source, affines, affines.form(v));
            let term = match *source.op(*atom) {
                Op::Binary(Binary::Mul, a, b) => factor(a)?.mul(&factor(b)?)?,
                _ => Polynomial::atom(Atom::Value(*atom)),
            };
            sum = sum.add_scaled(&term, (*c).into())?;
        }
        Some(sum)
    }

    /// Is it certain to be less than another?
    pub fn is_below(&self, other: &Polynomial) -> bool {
        let apart = self.add_scaled(other, -1);
        apart.is_some_and(|apart| {
            apart.terms.iter().all(|(monomial, c)| monomial.is_empty() && *c < 0) && !apart.terms.is_empty()
        })
    }

    /// `self + scale · other`; `None` on overflow, here and below.
    pub fn add_scaled(&self, other: &Polynomial, scale: i128) -> Option<Polynomial> {
        let divisor = self.divisor.checked_mul(other.divisor)?;
        let mut terms: BTreeMap<Monomial, i128> = BTreeMap::new();
        for (monomial, c) in &self.terms {
            terms.insert(monomial.clone(), c.checked_mul(other.divisor)?);
        }
        for (monomial, c) in &other.terms {
            let c = c.checked_mul(scale)?.checked_mul(self.divisor)?;
            let at = terms.entry(monomial.clone()).or_insert(0);
            *at = at.checked_add(c)?;
        }
        terms.retain(|_, c| *c != 0);
        Some(Polynomial { terms, divisor }.reduced())
    }

    pub fn mul(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut terms: BTreeMap<Monomial, i128> = BTreeMap::new();
        for (a, c) in &self.terms {
            for (b, d) in &other.terms {
                let mut factors: Monomial = a.iter().chain(b).cloned().collect();
                if factors.len() > DEGREE {
                    return None;
                }
                factors.sort_unstable();
                let at = terms.entry(factors).or_insert(0);
                *at = at.checked_add(c.checked_mul(*d)?)?;
            }
        }
        terms.retain(|_, c| *c != 0);
        Some(Polynomial { terms, divisor: self.divisor.checked_mul(other.divisor)? }.reduced())
    }

    fn divided(mut self, by: i128) -> Option<Polynomial> {
        self.divisor = self.divisor.checked_mul(by)?;
        Some(self.reduced())
    }

    fn reduced(mut self) -> Polynomial {
        let common = self.terms.values().fold(self.divisor, |common, c| gcd(common, *c));
        if common > 1 {
            self.terms.values_mut().for_each(|c| *c /= common);
            self.divisor /= common;
        }
        self
    }

    /// `Σ self` for the variable from `from` to below `to`, which is not less than `from`.
    pub fn sum_over(&self, variable: ValueId, from: &Polynomial, to: &Polynomial) -> Option<Polynomial> {
        let variable = Atom::Value(variable);
        let mut total = Polynomial::constant(0);
        for (monomial, c) in &self.terms {
            let rest: Monomial = monomial.iter().filter(|a| **a != variable).cloned().collect();
            let power = monomial.len() - rest.len();
            let rest = Polynomial { terms: BTreeMap::from([(rest, *c)]), divisor: self.divisor };
            let (high, low) = (power_sum(power, to)?, power_sum(power, from)?);
            total = total.add_scaled(&high.add_scaled(&low, -1)?.mul(&rest)?, 1)?;
        }
        Some(total)
    }
}

/// `Σ v^power` for `v` from 0 to below `x`: `x^(p + 1) = Σ C(p + 1, k) · sum of v^k` for `k` from 0 to `p`.
fn power_sum(power: usize, x: &Polynomial) -> Option<Polynomial> {
    let mut sums: Vec<Polynomial> = Vec::new();
    let mut raised = Polynomial::constant(1);
    for p in 0..=power {
        raised = raised.mul(x)?;
        let mut sum = raised.clone();
        let mut binomial: i128 = 1;
        for (k, lower) in sums.iter().enumerate() {
            sum = sum.add_scaled(lower, -binomial)?;
            binomial = binomial * (p + 1 - k) as i128 / (k + 1) as i128;
        }
        sums.push(sum.divided(p as i128 + 1)?);
    }
    sums.pop()
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
