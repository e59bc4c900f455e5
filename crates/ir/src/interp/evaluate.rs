//! What each operation computes, on bits. The interpreter and constant folding share it.

use crate::syntax::*;

pub use crate::syntax::OVERFLOW;

/// The bits of a value, in the low bytes.
pub type Bits = u64;

/// An integer division by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DivisionByZero;

/// The bits of an operation on constants, where it depends on nothing else; `None` for what needs a machine.
pub fn evaluate(
    program: &Program,
    id: ValueId,
    bits: impl Fn(ValueId) -> Bits,
) -> Option<Result<Bits, DivisionByZero>> {
    let ty = program.ty(id);
    let result = match *program.op(id) {
        Op::Literal(l) => l.bits(),
        Op::Unary(op, a) => unary(op, ty, bits(a)),
        Op::Binary(op, a, b) => return Some(binary(op, ty, bits(a), bits(b))),
        Op::Compare(op, a, b) => Bits::from(compare(op, program.ty(a), bits(a), bits(b))),
        Op::Select(c, a, b) => bits(if bits(c) != 0 { a } else { b }),
        Op::Fma(a, b, c) => fma(ty, bits(a), bits(b), bits(c)),
        Op::Cast(a) => cast(program.ty(a), ty, bits(a)),
        Op::Math(f, a, b) => math(f, ty, bits(a), bits(b)),
        Op::Rand(seed, counter) => rand(ty, bits(seed) as i64, bits(counter) as i64),
        Op::Scalar(_) | Op::Dim(..) | Op::LoopVar | Op::Get(_) | Op::Load(..) => return None,
    };
    Some(Ok(result))
}

fn f32_of(bits: Bits) -> f32 {
    f32::from_bits(bits as u32)
}

fn f64_of(bits: Bits) -> f64 {
    f64::from_bits(bits)
}

fn of_f32(x: f32) -> Bits {
    Bits::from(x.to_bits())
}

/// Applies one of two functions by float type.
fn float1(ty: Type, a: Bits, single: impl Fn(f32) -> f32, double: impl Fn(f64) -> f64) -> Bits {
    if ty == Type::F32 { of_f32(single(f32_of(a))) } else { double(f64_of(a)).to_bits() }
}

fn float2(
    ty: Type,
    a: Bits,
    b: Bits,
    single: impl Fn(f32, f32) -> f32,
    double: impl Fn(f64, f64) -> f64,
) -> Bits {
    if ty == Type::F32 {
        of_f32(single(f32_of(a), f32_of(b)))
    } else {
        double(f64_of(a), f64_of(b)).to_bits()
    }
}

/// The bits of an integer result, cut to the width of its type.
fn wrap(ty: Type, value: i64) -> Bits {
    Literal::from_bits(ty, value as u64).bits()
}

/// The value of an integer or bool, widened by its own sign.
fn int(ty: Type, bits: Bits) -> i64 {
    match ty {
        Type::I32 => i64::from(bits as u32 as i32),
        _ => bits as i64,
    }
}

/// An operation on one value.
pub fn unary(op: Unary, ty: Type, a: Bits) -> Bits {
    match op {
        Unary::Neg if ty.is_float() => float1(ty, a, |x| -x, |x| -x),
        Unary::Neg => wrap(ty, int(ty, a).wrapping_neg()),
        Unary::Not if ty == Type::Bool => a ^ 1,
        Unary::Not if ty == Type::Index && a as i64 == OVERFLOW => a,
        Unary::Not => wrap(ty, !int(ty, a)),
        Unary::Abs if ty.is_float() => float1(ty, a, f32::abs, f64::abs),
        Unary::Abs => wrap(ty, int(ty, a).wrapping_abs()),
        Unary::Sqrt | Unary::Norm => float1(ty, a, f32::sqrt, f64::sqrt),
        Unary::Floor => float1(ty, a, f32::floor, f64::floor),
        Unary::Ceil => float1(ty, a, f32::ceil, f64::ceil),
        Unary::Round => float1(ty, a, f32::round, f64::round),
        Unary::Trunc => float1(ty, a, f32::trunc, f64::trunc),
    }
}

/// An operation on two values of one type.
pub fn binary(op: Binary, ty: Type, a: Bits, b: Bits) -> Result<Bits, DivisionByZero> {
    if ty.is_float() {
        return Ok(match op {
            Binary::Add => float2(ty, a, b, |x, y| x + y, |x, y| x + y),
            Binary::Sub => float2(ty, a, b, |x, y| x - y, |x, y| x - y),
            Binary::Mul => float2(ty, a, b, |x, y| x * y, |x, y| x * y),
            Binary::Div => float2(ty, a, b, |x, y| x / y, |x, y| x / y),
            Binary::Rem => float2(ty, a, b, |x, y| x % y, |x, y| x % y),
            Binary::Min => min_max(ty, a, b, Compare::Lt),
            Binary::Max => min_max(ty, a, b, Compare::Gt),
            // The verifier does not let bit operations on floats through.
            Binary::RemEuclid | Binary::And | Binary::Or | Binary::Xor | Binary::Shl | Binary::Shr => a,
        });
    }
    let (x, y) = (int(ty, a), int(ty, b));
    if ty == Type::Index {
        return index(op, x, y).map(|value| value as Bits);
    }
    let width = 8 * ty.size() as u32;
    Ok(wrap(
        ty,
        match op {
            Binary::Add => x.wrapping_add(y),
            Binary::Sub => x.wrapping_sub(y),
            Binary::Mul => x.wrapping_mul(y),
            Binary::Div | Binary::Rem | Binary::RemEuclid if y == 0 => return Err(DivisionByZero),
            Binary::Div => x.wrapping_div(y),
            Binary::Rem => x.wrapping_rem(y),
            Binary::RemEuclid => x.wrapping_rem_euclid(y),
            Binary::Min => x.min(y),
            Binary::Max => x.max(y),
            Binary::And => x & y,
            Binary::Or => x | y,
            Binary::Xor => x ^ y,
            Binary::Shl => x << (y as u32 % width),
            Binary::Shr => x >> (y as u32 % width),
        },
    ))
}

/// Law 4: an operation on `usize` is exact, or gives [`OVERFLOW`], and so does one on [`OVERFLOW`].
fn index(op: Binary, x: i64, y: i64) -> Result<i64, DivisionByZero> {
    if matches!(op, Binary::Div | Binary::Rem | Binary::RemEuclid) && y == 0 {
        return Err(DivisionByZero);
    }
    if x == OVERFLOW || y == OVERFLOW {
        return Ok(OVERFLOW);
    }
    let exact = match op {
        Binary::Add => x.checked_add(y),
        Binary::Sub => x.checked_sub(y),
        Binary::Mul => x.checked_mul(y),
        Binary::Div => x.checked_div(y),
        Binary::Rem => x.checked_rem(y),
        Binary::RemEuclid => x.checked_rem_euclid(y),
        Binary::Min => Some(x.min(y)),
        Binary::Max => Some(x.max(y)),
        Binary::And => Some(x & y),
        Binary::Or => Some(x | y),
        Binary::Xor => Some(x ^ y),
        Binary::Shl => {
            let by = y as u32 % 64;
            Some(x << by).filter(|shifted| shifted >> by == x)
        }
        Binary::Shr => Some(x >> (y as u32 % 64)),
    };
    Ok(exact.unwrap_or(OVERFLOW))
}

/// Law 4: a number beats NaN, and zeros are ordered by sign.
fn min_max(ty: Type, a: Bits, b: Bits, wins: Compare) -> Bits {
    let is_nan = |x| compare(Compare::Ne, ty, x, x);
    if is_nan(b) || (!is_nan(a) && compare(wins, ty, a, b)) {
        return a;
    }
    if is_nan(a) || !compare(Compare::Eq, ty, a, b) {
        return b;
    }
    // Equal: only zeros of different sign differ in bits, and `-0.0` has the larger bits.
    if wins == Compare::Lt { a.max(b) } else { a.min(b) }
}

/// A comparison.
pub fn compare(op: Compare, ty: Type, a: Bits, b: Bits) -> bool {
    let order = match ty {
        Type::F32 => f32_of(a).partial_cmp(&f32_of(b)),
        Type::F64 => f64_of(a).partial_cmp(&f64_of(b)),
        _ => Some(int(ty, a).cmp(&int(ty, b))),
    };
    match (op, order) {
        (Compare::Ne, None) => true,
        (_, None) => false,
        (Compare::Eq, Some(o)) => o.is_eq(),
        (Compare::Ne, Some(o)) => o.is_ne(),
        (Compare::Lt, Some(o)) => o.is_lt(),
        (Compare::Le, Some(o)) => o.is_le(),
        (Compare::Gt, Some(o)) => o.is_gt(),
        (Compare::Ge, Some(o)) => o.is_ge(),
    }
}

/// `a * b + c`, rounded once.
pub fn fma(ty: Type, a: Bits, b: Bits, c: Bits) -> Bits {
    match ty {
        Type::F32 => of_f32(f32_of(a).mul_add(f32_of(b), f32_of(c))),
        _ => f64_of(a).mul_add(f64_of(b), f64_of(c)).to_bits(),
    }
}

/// Rust's `as`; `usize` is signed here, and what did not fit becomes a value that is conspicuous.
pub fn cast(from: Type, to: Type, a: Bits) -> Bits {
    match (from, to) {
        (Type::Index, _) if a as i64 == OVERFLOW => match to {
            Type::F32 => of_f32(f32::NAN),
            Type::F64 => f64::NAN.to_bits(),
            Type::I32 => wrap(to, i64::from(i32::MIN)),
            Type::U32 => wrap(to, i64::from(u32::MAX)),
            Type::I64 | Type::Index => a,
            Type::Bool => 1,
        },
        (Type::F32, Type::F64) => f64::from(f32_of(a)).to_bits(),
        (Type::F64, Type::F32) => of_f32(f64_of(a) as f32),
        (Type::F32 | Type::F64, _) => {
            let x = if from == Type::F32 { f64::from(f32_of(a)) } else { f64_of(a) };
            match to {
                Type::I32 => wrap(to, i64::from(x as i32)),
                Type::U32 => wrap(to, i64::from(x as u32)),
                Type::I64 | Type::Index => x as i64 as Bits,
                Type::Bool => Bits::from(x != 0.0),
                Type::F32 | Type::F64 => a,
            }
        }
        (_, Type::F32) => of_f32(if from == Type::U32 { a as u32 as f32 } else { int(from, a) as f32 }),
        (_, Type::F64) => (int(from, a) as f64).to_bits(),
        (_, Type::Bool) => Bits::from(int(from, a) != 0),
        _ => wrap(to, int(from, a)),
    }
}

/// Combines an element with a value.
pub fn combine(how: Combine, ty: Type, element: Bits, value: Bits) -> Bits {
    let op = match how {
        Combine::Add => Binary::Add,
        Combine::Min => Binary::Min,
        Combine::Max => Binary::Max,
    };
    // Sums, minima and maxima do not divide.
    binary(op, ty, element, value).unwrap_or(element)
}

/// The neutral element of a combination (law 8).
pub fn neutral(how: Combine, ty: Type) -> Bits {
    match (how, ty) {
        (Combine::Add, Type::F32 | Type::F64) => Literal::of(ty, -0.0).bits(),
        (Combine::Min | Combine::Max, Type::F32 | Type::F64) => Literal::of(ty, f64::NAN).bits(),
        (Combine::Add, _) => 0,
        (Combine::Min, Type::I32) => wrap(ty, i64::from(i32::MAX)),
        (Combine::Min, Type::U32) => wrap(ty, i64::from(u32::MAX)),
        (Combine::Min, _) => i64::MAX as Bits,
        (Combine::Max, Type::I32) => wrap(ty, i64::from(i32::MIN)),
        (Combine::Max, Type::U32) => 0,
        (Combine::Max, _) => i64::MIN as Bits,
    }
}

/// An elementary function, as `ebbtide-math` defines it.
pub fn math(f: Function, ty: Type, a: Bits, b: Bits) -> Bits {
    let Some(function) = f.definition() else {
        // `powi` alone takes an integer.
        let n = b as u32 as i32;
        return float1(ty, a, |x| ebbtide_math::powi_f32(x, n), |x| ebbtide_math::powi_f64(x, n));
    };
    let count = f.arity();
    let single = |x: f32, y: f32| function.eval_f32(&[x, y][..count]).unwrap_or(f32::NAN);
    let double = |x: f64, y: f64| function.eval_f64(&[x, y][..count]).unwrap_or(f64::NAN);
    float2(ty, a, b, single, double)
}

/// A uniform random number in [0, 1).
pub fn rand(ty: Type, seed: i64, counter: i64) -> Bits {
    match ty {
        Type::F32 => of_f32(ebbtide_math::rand_f32(seed, counter)),
        _ => ebbtide_math::rand_f64(seed, counter).to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(op: Binary, a: i64, b: i64) -> i64 {
        binary(op, Type::Index, a as Bits, b as Bits).map_or(0, |bits| bits as i64)
    }

    #[test]
    fn index_arithmetic_is_exact_or_no_number() {
        assert_eq!(of(Binary::Add, i64::MAX - 1, 1), i64::MAX);
        assert_eq!(of(Binary::Sub, 3, 5), -2);
        assert_eq!(of(Binary::Shl, 1, 62), 1 << 62);
        for (op, a, b) in [
            (Binary::Add, i64::MAX, 1),
            (Binary::Sub, -2, i64::MAX),
            (Binary::Mul, 2, 1 << 62),
            (Binary::Mul, 3, i64::MAX / 2),
            (Binary::Shl, 1, 63),
            (Binary::Shl, 3, 62),
        ] {
            assert_eq!(of(op, a, b), OVERFLOW, "{op:?} {a} {b}");
        }
    }

    #[test]
    fn what_is_computed_from_no_number_is_none() {
        use Binary::*;
        for op in [Add, Sub, Mul, Div, Rem, RemEuclid, Min, Max, And, Or, Xor, Shl, Shr] {
            for x in [1, 2, 7, -1, i64::MAX] {
                assert_eq!((of(op, OVERFLOW, x), of(op, x, OVERFLOW)), (OVERFLOW, OVERFLOW), "{op:?} {x}");
            }
        }
        assert_eq!(of(Mul, OVERFLOW, 0), OVERFLOW);
        assert_eq!(binary(Rem, Type::Index, OVERFLOW as Bits, 0), Err(DivisionByZero));
        assert_eq!(unary(Unary::Not, Type::Index, OVERFLOW as Bits) as i64, OVERFLOW);
    }

    #[test]
    fn a_cast_shows_what_is_no_number() {
        let to = |ty| cast(Type::Index, ty, OVERFLOW as Bits);
        assert!(f64_of(to(Type::F64)).is_nan() && f32_of(to(Type::F32)).is_nan());
        assert_eq!((to(Type::I32) as i32, to(Type::U32) as u32), (i32::MIN, u32::MAX));
        assert_eq!((to(Type::I64) as i64, to(Type::Bool)), (i64::MIN, 1));
        assert_eq!(cast(Type::I64, Type::F64, OVERFLOW as Bits), (i64::MIN as f64).to_bits());
    }
}
