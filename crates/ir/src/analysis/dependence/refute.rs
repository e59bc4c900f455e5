//! Is a set of conditions on integers impossible?
//!
//! - Input: polynomials that are zero or at least zero, and alternatives of which one holds.
//! - Output: that they are impossible, or what they say about the atoms that are the same in all iterations.
//! - Invariant: everything derived follows from the input, so "impossible" is a proof. The converse is not claimed.
//!
//! Equalities are solved for an atom with coefficient ±1; others are tested by the greatest common divisor of their
//! coefficients. Inequalities are eliminated by the method of Fourier and Motzkin, tightened to integers at each step, as
//! in Pugh's Omega test (1991) without its exact splinters. A product of atoms is a variable of its own; what is known of
//! it are inequalities multiplied by an atom that is not negative, which is enough for flat indices `i * m + j`.

use std::collections::{BTreeMap, BTreeSet};

use super::formula::Formula;
use super::poly::{Atom, Monomial, Poly, gcd};
use super::remember::{self, Answer};
use super::system::{Condition, Origin, Residual, System};

/// Refutes systems, with a limit to the work.
pub struct Refuter<'a> {
    /// Does the atom differ between iterations?
    pub varies: &'a dyn Fn(Atom) -> bool,
    /// How many projections may still be computed.
    pub budget: usize,
}

/// A variable between more pairs of bounds than this is not eliminated: what is said of it is forgotten.
const MOST_PAIRS: usize = 48;

/// Whether inequalities are multiplied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Products {
    Unknown,
    Bounded,
}

/// How many inequalities are kept at most; the others are forgotten, which loses proofs and makes none.
const MOST_ROWS: usize = 60;

impl Refuter<'_> {
    /// The ways in which the system can hold; none where it cannot. `None` where the limit was reached.
    pub fn ways(&mut self, system: &System) -> Option<Vec<Residual>> {
        let answer = remember::answer(system, self.varies, self.budget, |question| {
            let varies = |atom: Atom| question.varies[atom.0 as usize];
            let mut refuter = Refuter { varies: &varies, budget: question.budget };
            let mut ways = Vec::new();
            let ways = refuter.search(&question.system, &mut ways).then_some(ways);
            Answer { ways, budget: refuter.budget }
        });
        self.budget = answer.budget;
        answer.ways
    }

    /// Is the system certain not to hold?
    pub fn refutes(&mut self, system: &System) -> bool {
        self.ways(system).is_some_and(|ways| ways.is_empty())
    }

    /// The depth of recursion is the number of alternatives.
    fn search(&mut self, system: &System, ways: &mut Vec<Residual>) -> bool {
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        let Some(residual) = self.project(system, Products::Unknown) else { return true };
        let mut rest = system.clone();
        let Some(alternatives) = (!rest.any.is_empty()).then(|| rest.any.remove(0)) else {
            let products = system.all.iter().any(|c| c.poly.terms.keys().any(|m| m.len() > 1));
            let residual = if products { self.project(system, Products::Bounded) } else { Some(residual) };
            ways.extend(residual);
            return ways.len() <= 16;
        };
        for alternative in &alternatives {
            let mut one = rest.clone();
            one.add(alternative, Origin::Meeting);
            if !self.search(&one, ways) {
                return false;
            }
        }
        true
    }

    /// What the conditions say about invariant atoms; `None` where they cannot hold.
    fn project(&self, system: &System, products: Products) -> Option<Residual> {
        if system.impossible {
            return None;
        }
        let mut all = system.all.clone();
        let varies = |atom: Atom| (self.varies)(atom);
        solve(&mut all, &varies)?;
        if products == Products::Bounded {
            self.multiply(&mut all);
            solve(&mut all, &varies)?;
        }
        let mut rows = Rows::of(&all, &varies)?;
        rows.eliminate_varying()?;
        let residual = rows.invariant();
        // Do they hold together with what is known of invariants?
        let mut invariant: Vec<Condition> = all
            .iter()
            .filter(|c| c.zero && c.poly.atoms().all(|a| !varies(a)))
            .cloned()
            .chain(residual.iter().cloned())
            .collect();
        let nothing_varies = |_: Atom| true;
        solve(&mut invariant, &nothing_varies)?;
        Rows::of(&invariant, &nothing_varies)?.eliminate_varying()?;
        let equalities = all.iter().filter(|c| c.zero && c.poly.atoms().all(|a| !varies(a)));
        let left = equalities.chain(residual.iter()).filter(|c| c.from == Origin::Meeting);
        let mut formulas: Vec<Formula> = Vec::new();
        for condition in left {
            let formula = match condition.zero {
                true => Formula::Zero(condition.poly.clone()),
                false => Formula::AtLeastZero(condition.poly.clone()),
            };
            if !formulas.contains(&formula) {
                formulas.push(formula);
            }
        }
        Some(formulas)
    }

    /// Adds what follows for products from inequalities and from factors that are not negative.
    fn multiply(&self, all: &mut Vec<Condition>) {
        for _ in 0..2 {
            let mut products: BTreeSet<&Monomial> = BTreeSet::new();
            all.iter().for_each(|c| products.extend(c.poly.terms.keys().filter(|m| m.len() > 1)));
            let mut wanted: BTreeMap<Atom, BTreeSet<Monomial>> = BTreeMap::new();
            for product in products {
                for (k, factor) in product.iter().enumerate() {
                    let mut rest = product.clone();
                    rest.remove(k);
                    wanted.entry(*factor).or_default().insert(rest);
                }
            }
            let mut more = Vec::new();
            for (factor, rests) in wanted {
                let Some(known) = self.is_not_negative(all, factor) else { continue };
                for condition in all.iter().filter(|c| c.poly.terms.keys().any(|m| rests.contains(m))) {
                    if let Some(poly) = condition.poly.mul(&Poly::atom(factor)) {
                        more.push(Condition { poly, zero: condition.zero, from: condition.from.and(known) });
                    }
                }
            }
            more.retain(|m| !all.iter().any(|c| c.zero == m.zero && c.poly == m.poly));
            more.truncate(24);
            if more.is_empty() {
                return;
            }
            all.extend(more);
        }
    }

    /// Does a condition say that an invariant atom is not negative? The sign of a stride is always one of the alternatives.
    fn is_not_negative(&self, all: &[Condition], atom: Atom) -> Option<Origin> {
        if (self.varies)(atom) {
            return None;
        }
        let says = |c: &&Condition| {
            let alone = c.poly.terms.keys().all(|m| m.is_empty() || m.as_slice() == [atom].as_slice());
            !c.zero && alone && c.poly.coefficient(atom) > 0 && c.poly.constant_part() <= 0
        };
        all.iter().filter(says).map(|c| c.from).min()
    }
}

/// Replaces atoms that follow from equalities; `None` where an equality cannot hold.
fn solve(all: &mut Vec<Condition>, replaceable: &dyn Fn(Atom) -> bool) -> Option<()> {
    loop {
        for c in all.iter().filter(|c| c.zero) {
            let divisor = c.poly.terms.iter().filter(|(m, _)| !m.is_empty()).fold(0, |g, (_, c)| gcd(g, *c));
            let constant = c.poly.constant_part();
            if (divisor == 0 && constant != 0) || (divisor != 0 && constant % divisor != 0) {
                return None;
            }
        }
        all.retain(|c| !c.poly.terms.is_empty());
        // Short equalities first: they say most.
        let mut order: Vec<usize> = (0..all.len()).filter(|k| all[*k].zero).collect();
        order.sort_by_key(|k| all[*k].poly.terms.len());
        let solvable = order.into_iter().find_map(|k| {
            let poly = &all[k].poly;
            let alone = |atom: Atom| poly.atoms().filter(|a| *a == atom).count() == 1;
            let fits = |a: &Atom| replaceable(*a) && poly.coefficient(*a).abs() == 1 && alone(*a);
            poly.atoms().filter(fits).max().map(|atom| (k, atom))
        });
        let Some((k, atom)) = solvable else { return Some(()) };
        let equality = all.swap_remove(k);
        // 0 = c·atom + rest, so atom = -c·rest.
        let c = equality.poly.coefficient(atom);
        let rest = equality.poly.add_scaled(&Poly::atom(atom), -c)?;
        let with = Poly::default().add_scaled(&rest, -c)?;
        let mut kept = Vec::with_capacity(all.len());
        for mut condition in std::mem::take(all) {
            if condition.poly.atoms().any(|a| a == atom) {
                // A condition that grows too large is forgotten.
                let Some(poly) = condition.poly.substitute(atom, &with) else { continue };
                condition.poly = poly;
                condition.from = condition.from.and(equality.from);
                if let Some(value) = condition.poly.as_constant() {
                    if (condition.zero && value != 0) || value < 0 {
                        return None;
                    }
                    continue;
                }
            }
            kept.push(condition);
        }
        *all = kept;
    }
}

/// Linear inequalities over monomials.
struct Rows {
    columns: Vec<Monomial>,
    varies: Vec<bool>,
    /// Coefficients, the constant and where it comes from: at least zero.
    rows: BTreeMap<Vec<i128>, (i128, Origin)>,
}

impl Rows {
    fn of(all: &[Condition], varies: &dyn Fn(Atom) -> bool) -> Option<Rows> {
        let mut columns: BTreeSet<Monomial> = BTreeSet::new();
        for c in all {
            columns.extend(c.poly.terms.keys().filter(|m| !m.is_empty()).cloned());
        }
        let columns: Vec<Monomial> = columns.into_iter().collect();
        let varies = columns.iter().map(|m| m.iter().any(|a| varies(*a))).collect();
        let mut rows = Rows { columns, varies, rows: BTreeMap::new() };
        for c in all {
            let signs: &[i128] = if c.zero { &[1, -1] } else { &[1] };
            for sign in signs {
                let coefficients: Vec<i128> =
                    rows.columns.iter().map(|m| sign * c.poly.terms.get(m).copied().unwrap_or(0)).collect();
                rows.insert(coefficients, sign * c.poly.constant_part(), c.from)?;
            }
        }
        Some(rows)
    }

    /// Adds an inequality, tightened to integers; `None` where it cannot hold.
    fn insert(&mut self, mut coefficients: Vec<i128>, mut constant: i128, from: Origin) -> Option<()> {
        let divisor = coefficients.iter().fold(0, |g, c| gcd(g, *c));
        if divisor == 0 {
            return (constant >= 0).then_some(());
        }
        if coefficients.iter().any(|c| c.abs() > 1 << 60) {
            return Some(());
        }
        coefficients.iter_mut().for_each(|c| *c /= divisor);
        constant = constant.div_euclid(divisor);
        let entry = self.rows.entry(coefficients).or_insert((constant, from));
        if (constant, from) < *entry {
            *entry = (constant, from);
        }
        // Two opposite inequalities that leave no room.
        Some(())
    }

    fn eliminate_varying(&mut self) -> Option<()> {
        loop {
            let candidates = (0..self.columns.len()).filter(|k| self.varies[*k]);
            let counted = candidates.filter_map(|k| {
                let above = self.rows.keys().filter(|row| row[k] > 0).count();
                let below = self.rows.keys().filter(|row| row[k] < 0).count();
                (above + below > 0).then_some((above * below, k))
            });
            let Some((pairs, k)) = counted.min() else { return Some(()) };
            if pairs > MOST_PAIRS {
                return Some(());
            }
            let rows = std::mem::take(&mut self.rows);
            let (with, without): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(row, _)| row[k] != 0);
            self.rows = without.into_iter().collect();
            let (above, below): (Vec<_>, Vec<_>) = with.into_iter().partition(|(row, _)| row[k] > 0);
            for (a, (x, from)) in &above {
                for (b, (y, other)) in &below {
                    if self.rows.len() > MOST_ROWS {
                        break;
                    }
                    let (p, q) = (-b[k], a[k]);
                    let sum = a.iter().zip(b).map(|(a, b)| a.checked_mul(p)?.checked_add(b.checked_mul(q)?));
                    let constant = x.checked_mul(p).and_then(|x| x.checked_add(y.checked_mul(q)?));
                    if let (Some(sum), Some(constant)) = (sum.collect::<Option<Vec<i128>>>(), constant) {
                        self.insert(sum, constant, from.and(*other))?;
                    }
                }
            }
        }
    }

    /// The inequalities over invariant monomials alone.
    fn invariant(&self) -> Vec<Condition> {
        let alone = |row: &&Vec<i128>| row.iter().zip(&self.varies).all(|(c, varies)| *c == 0 || !varies);
        let mut found = Vec::new();
        for row in self.rows.keys().filter(alone) {
            let (constant, from) = self.rows[row];
            let terms = self.columns.iter().cloned().zip(row.iter().copied()).filter(|t| t.1 != 0);
            let mut poly = Poly { terms: terms.collect() };
            if constant != 0 {
                poly.terms.insert(Monomial::new(), constant);
            }
            found.push(Condition { poly, zero: false, from });
        }
        found
    }
}
