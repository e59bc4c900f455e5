//! Law 3: the types of operations.

use crate::syntax::*;

/// Is `ty` a right type for the result of `op`?
pub(super) fn op_type(p: &Program, op: &Op, ty: Type) -> Result<(), String> {
    let same = |operands: &[ValueId]| match operands.iter().find(|v| p.ty(**v) != ty) {
        Some(v) => {
            Err(format!("the operands of this operation are `{ty}` and `{}`: cast one of them", p.ty(*v)))
        }
        None => Ok(()),
    };
    let need = |holds: bool, what: &str| {
        if holds { Ok(()) } else { Err(format!("this operation needs {what}, not `{ty}`")) }
    };
    match *op {
        Op::Literal(l) => need(l.ty() == ty, "a literal of its own type"),
        Op::Scalar(s) => need(p.scalars[s.index()].ty == ty, "the parameter's type"),
        Op::Dim(..) | Op::LoopVar => need(ty == Type::Index, "`usize`"),
        Op::Get(l) => need(p.locals[l.index()].ty == ty, "the local's type"),
        Op::Load(a, _) => need(p.array(a).ty == ty, "the element type"),
        Op::Unary(op, a) => {
            same(&[a])?;
            match op {
                Unary::Neg | Unary::Abs => {
                    need(ty.is_float() || matches!(ty, Type::I32 | Type::I64), "a signed number")
                }
                Unary::Not => need(ty.is_integer() || ty == Type::Bool, "an integer or bool"),
                _ => need(ty.is_float(), "a float"),
            }
        }
        Op::Binary(op, a, b) => {
            same(&[a, b])?;
            match op {
                Binary::And | Binary::Or | Binary::Xor => {
                    need(ty.is_integer() || ty == Type::Bool, "integers or bools")
                }
                Binary::Shl | Binary::Shr | Binary::RemEuclid => need(ty.is_integer(), "integers"),
                _ => need(ty != Type::Bool, "numbers"),
            }
        }
        Op::Compare(op, a, b) => {
            need(ty == Type::Bool, "`bool` as its result")?;
            if p.ty(a) != p.ty(b) {
                return Err(format!("`{}` and `{}` cannot be compared: cast one of them", p.ty(a), p.ty(b)));
            }
            let ordered = !matches!(op, Compare::Eq | Compare::Ne);
            if ordered && p.ty(a) == Type::Bool { Err("bools have no order".to_string()) } else { Ok(()) }
        }
        Op::Select(c, a, b) => {
            same(&[a, b])?;
            if p.ty(c) == Type::Bool {
                Ok(())
            } else {
                Err("the condition of `select` must be `bool`".to_string())
            }
        }
        Op::Fma(a, b, c) => {
            same(&[a, b, c])?;
            need(ty.is_float(), "floats")
        }
        Op::Cast(_) => Ok(()),
        Op::Math(f, a, b) => {
            need(ty.is_float(), "a float")?;
            same(&[a])?;
            match f {
                Function::Powi if p.ty(b) == Type::I32 => Ok(()),
                Function::Powi => Err("the exponent of `powi` must be `i32`".to_string()),
                _ => same(&[b]),
            }
        }
        Op::Rand(seed, counter) => {
            need(ty.is_float(), "a float")?;
            let fine = p.ty(seed) == Type::I64 && p.ty(counter) == Type::I64;
            if fine { Ok(()) } else { Err("seed and counter of `rand` must be `i64`".to_string()) }
        }
    }
}
