//! The types and numbers of programs, in C.

use ebbtide_ir::{Combine, Literal, Type, evaluate};
use ebbtide_math::Format;

/// The format of a float type.
pub(crate) fn format(ty: Type) -> Format {
    if ty == Type::F32 { Format::F32 } else { Format::F64 }
}

/// The C type of a value.
pub(crate) fn c_type(ty: Type) -> &'static str {
    match ty {
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::I32 => "i32",
        Type::I64 | Type::Index => "i64",
        Type::U32 => "u32",
        Type::Bool => "b8",
    }
}

/// A constant.
pub(crate) fn c_literal(literal: Literal) -> String {
    let bits = literal.bits();
    match literal.ty() {
        Type::F64 => c_float(f64::from_bits(bits), format!("{:?}", f64::from_bits(bits)), ""),
        Type::F32 => {
            let x = f32::from_bits(bits as u32);
            c_float(f64::from(x), format!("{x:?}"), "f")
        }
        Type::I32 => match bits as u32 as i32 {
            i32::MIN => "INT32_MIN".to_string(),
            x if x < 0 => format!("({x})"),
            x => format!("{x}"),
        },
        Type::I64 | Type::Index => match bits as i64 {
            i64::MIN => "INT64_MIN".to_string(),
            x if x < 0 => format!("(INT64_C({x}))"),
            x => format!("INT64_C({x})"),
        },
        Type::U32 => format!("{}u", bits as u32),
        Type::Bool => format!("{bits}"),
    }
}

/// The word for a way of combining in the names of functions.
pub(crate) fn word(how: Combine) -> &'static str {
    match how {
        Combine::Add => "add",
        Combine::Min => "min",
        Combine::Max => "max",
    }
}

/// What adds nothing to a sum, or changes no minimum or maximum.
pub(crate) fn neutral(how: Combine, ty: Type) -> String {
    c_literal(Literal::from_bits(ty, evaluate::neutral(how, ty)))
}

fn c_float(value: f64, digits: String, suffix: &str) -> String {
    match value {
        x if x.is_nan() => "EB_NAN".to_string(),
        x if x.is_infinite() && x > 0.0 => "EB_INFINITY".to_string(),
        x if x.is_infinite() => "(-EB_INFINITY)".to_string(),
        x if x.is_sign_negative() => format!("({digits}{suffix})"),
        _ => format!("{digits}{suffix}"),
    }
}

/// The bits of a value as C takes them from the tables of the frame.
pub(crate) fn from_bits(ty: Type, bits: &str) -> String {
    match ty {
        Type::F32 => format!("eb_f32_bits({bits})"),
        Type::F64 => format!("eb_f64_bits({bits})"),
        _ => format!("({}){bits}", c_type(ty)),
    }
}

/// The bits of a value as C puts them into the tables of the frame.
pub(crate) fn to_bits(ty: Type, value: &str) -> String {
    match ty {
        Type::F32 => format!("eb_bits_f32({value})"),
        Type::F64 => format!("eb_bits_f64({value})"),
        Type::I32 => format!("(u64)(u32){value}"),
        _ => format!("(u64){value}"),
    }
}
