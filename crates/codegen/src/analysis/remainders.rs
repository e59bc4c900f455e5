//! Remainders that take one step at most. Input: a value; output: the sum that it is the remainder of, without multiples of the
//! divisor.
//!
//! A place in a periodic grid is `(i + n - 1) % n`, or `(i - (n - 1)) rem n` in its adjoint: `i - 1` and `i + 1`, one period away
//! at most. Such a remainder is a choice between three sums: it takes no division, and no jump.

use std::collections::BTreeMap;

use ebbtide_ir::{Binary, Facts, Op, Program, Type, ValueId};

/// `variable + offset`, or `offset - variable`, modulo a divisor that is the same in all iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remainder {
    pub variable: ValueId,
    pub falls: bool,
    pub offset: i64,
    pub divisor: ValueId,
}

/// The remainders of a loop whose divisors are not zero, with those that take one step at most.
pub(crate) type Remainders = BTreeMap<ValueId, Option<Remainder>>;

/// Offsets are nearer to zero.
const FAR: i64 = 1 << 20;

/// What the value is the remainder of, where its divisor is known to be the same in all iterations.
pub(crate) fn remainder(program: &Program, facts: &Facts, v: ValueId) -> Option<Remainder> {
    let (mut sum, divisor) = divided(program, v)?;
    let of_divisor = facts.affines.form(divisor);
    let (mut sign, mut offset) = (1, 0i64);
    loop {
        let form = facts.affines.form(sum);
        // Of a literal no multiple is looked for: what is near has none.
        let form = of_divisor.as_atom().map_or_else(|| form.clone(), |atom| form.without(atom));
        let [(variable, coefficient @ (1 | -1))] = *form.terms.as_slice() else { return None };
        offset = offset.checked_add(form.constant.checked_mul(sign)?).filter(|offset| offset.abs() < FAR)?;
        sign *= coefficient;
        // The remainder of a sum with a remainder in it, by the same divisor.
        match divided(program, variable).filter(|(_, by)| facts.affines.form(*by) == of_divisor) {
            Some((inner, _)) => sum = inner,
            None => return Some(Remainder { variable, falls: sign < 0, offset, divisor }),
        }
    }
}

/// The sum of which an index is the remainder, and the divisor.
fn divided(program: &Program, v: ValueId) -> Option<(ValueId, ValueId)> {
    match *program.op(v) {
        Op::Binary(Binary::Rem | Binary::RemEuclid, sum, divisor) if program.ty(v) == Type::Index => {
            Some((sum, divisor))
        }
        _ => None,
    }
}
