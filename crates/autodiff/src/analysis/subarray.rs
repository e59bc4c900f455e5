//! Parts of an array that a loop runs through: a box, or stripes of a flat array.

use ebbtide_ir::{Affine, Affines, Program, Range, ValueId, depends_on_arguments_alone};

use crate::analysis::polynomial::{Atom, Polynomial};

/// A part of an array, by numbers that are known before the program starts.
#[derive(Clone, Debug)]
pub(crate) enum Subarray {
    /// What lies between bounds in these dimensions.
    Box(Vec<(usize, Bounds)>),
    /// Rows that lie one behind the other in an array of rank 1.
    Stripes(Stripes),
}

/// The bounds of a part of an array in one dimension: the first index, and the one behind the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub from: Affine,
    pub to: Affine,
}

/// The elements from `t * stride + low` to below `t * stride + high`, for each `t` of a range. None belongs to two stripes.
#[derive(Clone, Debug)]
pub(crate) struct Stripes {
    pub time: Range,
    pub stride: Polynomial,
    pub low: Polynomial,
    pub high: Polynomial,
}

impl Stripes {
    /// The stripes that an index runs through, if each iteration of a loop over `time` runs through one of them by the variable of
    /// `range`.
    pub fn of(
        source: &Program,
        affines: &Affines,
        (time, range): (&Range, &Range),
        index: ValueId,
    ) -> Option<Stripes> {
        let expanded = |v: ValueId| Polynomial::expanded(source, affines, affines.form(v));
        let (mut stride, mut rest) = (Polynomial::constant(0), Polynomial::constant(0));
        let mut runs = false;
        let whole = expanded(index)?;
        for (monomial, c) in &whole.terms {
            let has = |var: ValueId| monomial.contains(&Atom::Value(var));
            let factors = monomial.iter().filter(|atom| **atom != Atom::Value(time.var)).cloned();
            let product = factors
                .clone()
                .try_fold(Polynomial::constant(*c), |p, atom| p.mul(&Polynomial::atom(atom)))?;
            match (has(time.var), has(range.var)) {
                (true, false) if factors.count() + 1 == monomial.len() => {
                    stride = stride.add_scaled(&product, 1)?
                }
                (false, true) if monomial.len() == 1 && *c == 1 => runs = true,
                (false, false) => rest = rest.add_scaled(&product, 1)?,
                _ => return None,
            }
        }
        let (low, high) =
            (expanded(range.from)?.add_scaled(&rest, 1)?, expanded(range.to)?.add_scaled(&rest, 1)?);
        let stripes = Stripes { time: *time, stride, low, high };
        (runs && whole.divisor == 1 && stripes.is_known(source) && stripes.are_apart()).then_some(stripes)
    }

    /// Is everything known before the program starts?
    fn is_known(&self, source: &Program) -> bool {
        let known = |atom: &Atom| matches!(atom, Atom::Value(v) if depends_on_arguments_alone(source, *v));
        [&self.stride, &self.low, &self.high].iter().all(|p| p.terms.keys().flatten().all(known))
    }

    fn are_apart(&self) -> bool {
        self.low.add_scaled(&self.stride, 1).is_some_and(|next| is_at_most(&self.high, &next))
    }

    /// Both, where their bounds differ by numbers and they are apart still.
    pub fn joined(&self, other: &Stripes) -> Option<Stripes> {
        let low = if is_at_most(&self.low, &other.low) { &self.low } else { &other.low };
        let high = if is_at_most(&self.high, &other.high) { &other.high } else { &self.high };
        let within = [self, other].iter().all(|s| is_at_most(low, &s.low) && is_at_most(&s.high, high));
        let joined = Stripes { low: low.clone(), high: high.clone(), ..self.clone() };
        (within && self.stride == other.stride && joined.are_apart()).then_some(joined)
    }
}

/// Is a polynomial certain not to be greater than another?
pub(crate) fn is_at_most(a: &Polynomial, b: &Polynomial) -> bool {
    b.add_scaled(&Polynomial::constant(1), 1).is_some_and(|next| a.is_below(&next))
}
