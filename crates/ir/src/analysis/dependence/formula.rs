//! Conditions on polynomials.

use super::poly::Poly;

/// A condition as far as the analysis understands it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Formula {
    /// The polynomial is at least zero.
    AtLeastZero(Poly),
    /// The polynomial is zero.
    Zero(Poly),
    /// All of these hold.
    All(Vec<Formula>),
    /// One of these holds.
    Any(Vec<Formula>),
    /// Nothing is known of it.
    Unknown,
}

impl Formula {
    /// `a ≥ b`.
    pub fn at_least(a: &Poly, b: &Poly) -> Formula {
        a.add_scaled(b, -1).map_or(Formula::Unknown, Formula::AtLeastZero)
    }

    /// `a > b`.
    pub fn above(a: &Poly, b: &Poly) -> Formula {
        a.add_scaled(b, -1).and_then(|d| d.plus(-1)).map_or(Formula::Unknown, Formula::AtLeastZero)
    }

    /// `a = b`.
    pub fn equal(a: &Poly, b: &Poly) -> Formula {
        a.add_scaled(b, -1).map_or(Formula::Unknown, Formula::Zero)
    }

    /// The opposite.
    pub fn not(&self) -> Formula {
        let below = |p: &Poly| Poly::constant(-1).add_scaled(p, -1);
        match self {
            Formula::AtLeastZero(p) => below(p).map_or(Formula::Unknown, Formula::AtLeastZero),
            Formula::Zero(p) => match (p.plus(-1), below(p)) {
                (Some(above), Some(below)) => {
                    Formula::Any(vec![Formula::AtLeastZero(above), Formula::AtLeastZero(below)])
                }
                _ => Formula::Unknown,
            },
            Formula::All(parts) => Formula::Any(parts.iter().map(Formula::not).collect()),
            Formula::Any(parts) => match equality(parts) {
                Some(p) => Formula::Zero(p),
                None => Formula::All(parts.iter().map(Formula::not).collect()),
            },
            Formula::Unknown => Formula::Unknown,
        }
    }

    /// The formula with every polynomial replaced.
    pub fn map(&self, f: &mut dyn FnMut(&Poly) -> Poly) -> Formula {
        match self {
            Formula::AtLeastZero(p) => Formula::AtLeastZero(f(p)),
            Formula::Zero(p) => Formula::Zero(f(p)),
            Formula::All(parts) => Formula::All(parts.iter().map(|part| part.map(f)).collect()),
            Formula::Any(parts) => Formula::Any(parts.iter().map(|part| part.map(f)).collect()),
            Formula::Unknown => Formula::Unknown,
        }
    }

    /// Calls `f` with every polynomial.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Poly)) {
        match self {
            Formula::AtLeastZero(p) | Formula::Zero(p) => f(p),
            Formula::All(parts) | Formula::Any(parts) => parts.iter().for_each(|part| part.visit(f)),
            Formula::Unknown => {}
        }
    }

    /// Whether it holds for these values of its polynomials; `None` where that is not known.
    pub fn evaluate(&self, value: &mut dyn FnMut(&Poly) -> Option<i128>) -> Option<bool> {
        match self {
            Formula::AtLeastZero(p) => value(p).map(|x| x >= 0),
            Formula::Zero(p) => value(p).map(|x| x == 0),
            Formula::All(parts) => {
                let mut all = Some(true);
                for part in parts {
                    match part.evaluate(value) {
                        Some(true) => {}
                        Some(false) => return Some(false),
                        None => all = None,
                    }
                }
                all
            }
            Formula::Any(parts) => {
                let mut any = Some(false);
                for part in parts {
                    match part.evaluate(value) {
                        Some(false) => {}
                        Some(true) => return Some(true),
                        None => any = None,
                    }
                }
                any
            }
            Formula::Unknown => None,
        }
    }
}

/// The polynomial that is not zero, where that is what these say together: it is above zero or below. Its opposite is an
/// equality, which says more of remainders than two inequalities do.
fn equality(parts: &[Formula]) -> Option<Poly> {
    let [Formula::AtLeastZero(above), Formula::AtLeastZero(below)] = parts else { return None };
    let apart = above.add_scaled(below, 1)?.as_constant()? == -2;
    if apart { above.plus(1) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opposite_of_an_opposite_is_the_condition() {
        let conditions = [Formula::Zero(Poly::constant(3)), Formula::AtLeastZero(Poly::constant(3))];
        for condition in conditions {
            assert_eq!(condition.not().not(), condition);
            let all = Formula::All(vec![condition.clone(), condition]);
            assert_eq!(all.not().not(), all);
        }
    }
}
