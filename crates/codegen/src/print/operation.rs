//! Expressions of values as C, one element at a time or in vectors.

use std::collections::BTreeSet;

use ebbtide_ir::{Binary, Combine, Compare, Type, Unary, ValueId};
use ebbtide_math::c::{Item, Shape};

use crate::kernel::expr::{Expr, Overflow};
use crate::kernel::machine::Family;
use crate::kernel::name::Ty;
use crate::print::c_types::{c_literal, c_type, format, from_bits};
use crate::print::emitter::{Emitter, Pace};
use crate::transform::lower::operation;

impl Emitter<'_> {
    /// The operation that computes a value of program level, where no index is proved to be a number.
    pub fn operation(&mut self, v: ValueId) -> String {
        let operation = operation(self.program, &BTreeSet::new(), v);
        self.expr(&operation, Pace::Often)
    }

    /// An expression. The depth of recursion is that of the expression.
    pub fn expr(&mut self, e: &Expr, pace: Pace) -> String {
        let operands: Vec<String> = e.operands().iter().map(|operand| self.expr(operand, pace)).collect();
        let (a, b, c) = match operands.as_slice() {
            [a, b, c] => (a.as_str(), b.as_str(), c.as_str()),
            [a, b] => (a.as_str(), b.as_str(), ""),
            [a] => (a.as_str(), "", ""),
            _ => ("", "", ""),
        };
        match e {
            Expr::Literal(literal) => c_literal(*literal),
            Expr::Variable(name) => name.to_string(),
            Expr::Scalar(s, ty) => from_bits(*ty, &format!("f->scalars[{}]", s.index())),
            Expr::Extent(array, k) => format!("d{}_{k}", array.index()),
            Expr::Index(index) => index.to_string(),
            Expr::Linear { coefficient, variable, base } => {
                format!("(INT64_C({coefficient}) * {variable} + {base})")
            }
            Expr::Unary(op, ty @ (Ty::Vector(..) | Ty::Mask(..)), _, _) => self.vector_unary(*op, *ty, a),
            Expr::Unary(Unary::Sqrt | Unary::Norm, Ty::One(Type::F32), ..) if pace == Pace::Quick => {
                format!("eb_quick_sqrt({a}, odd)")
            }
            Expr::Unary(op, ty, overflow, _) => {
                let text = self.scalar_unary(*op, one(*ty), a);
                match overflow {
                    Overflow::Marked => format!("({a} == INT64_MIN ? {a} : {text})"),
                    Overflow::Wraps => text,
                }
            }
            Expr::Binary(op, ty @ (Ty::Vector(..) | Ty::Mask(..)), ..) => self.vector_binary(*op, *ty, a, b),
            Expr::Binary(op, _, Overflow::Marked, _) => format!("eb_index_{}({a}, {b})", marked(*op)),
            Expr::Binary(op, Ty::Narrow, ..) => {
                let sign = if *op == Binary::Add { '+' } else { '-' };
                format!("({a} {sign} {b})")
            }
            Expr::Binary(Binary::Div, Ty::One(Type::F32), ..) if pace == Pace::Quick => {
                format!("eb_quick_quotient({a}, {b}, odd)")
            }
            Expr::Binary(op, ty, ..) => self.scalar_binary(*op, one(*ty), a, b),
            Expr::Compare(op, Ty::Vector(ty, lanes), _) => {
                let m = c_ty(Ty::Mask(*ty, *lanes));
                match op {
                    Compare::Eq => format!("op_eq_{m}({a}, {b})"),
                    Compare::Ne => format!("op_not_{m}(op_eq_{m}({a}, {b}))"),
                    Compare::Lt => format!("op_lt_{m}({a}, {b})"),
                    Compare::Le => format!("op_le_{m}({a}, {b})"),
                    Compare::Gt => format!("op_lt_{m}({b}, {a})"),
                    Compare::Ge => format!("op_le_{m}({b}, {a})"),
                }
            }
            Expr::Compare(op, ..) => format!("({a} {} {b})", sign(*op)),
            Expr::Select(ty @ Ty::Mask(..), _) => {
                let m = c_ty(*ty);
                format!("op_or_{m}(op_and_{m}({a}, {b}), op_and_{m}(op_not_{m}({a}), {c}))")
            }
            Expr::Select(ty @ Ty::Vector(..), _) => format!("op_select_{}({a}, {b}, {c})", c_ty(*ty)),
            Expr::Select(..) => format!("({a} ? {b} : {c})"),
            Expr::Fma(ty, _) => format!("op_fma_{}({a}, {b}, {c})", c_ty(*ty)),
            Expr::Cast { from: Ty::Vector(Type::Bool, _), to: to @ Ty::Vector(..), .. } => {
                format!("eb_truths_{}({a})", c_ty(*to))
            }
            Expr::Cast { from: Ty::Vector(..), to: to @ Ty::Vector(..), .. } => {
                format!("__builtin_convertvector({a}, {})", c_ty(*to))
            }
            Expr::Cast { to: to @ Ty::Vector(..), .. } => {
                let f = c_ty(*to);
                format!("op_select_{f}({a}, op_float_{f}(1), op_float_{f}(0))")
            }
            Expr::Cast { from, to, overflow, .. } => cast(one(*from), one(*to), *overflow, a),
            Expr::Math(function, ty, _) => {
                let (ty, lanes) = shape(*ty);
                let name = self.function(*function, ty, lanes, pace);
                format!("{name}({})", operands.join(", "))
            }
            Expr::Random(ty, _) => {
                let name = self.random(*ty);
                format!("({}){name}({a}, {b})", c_type(*ty))
            }
            Expr::All(_) => format!("({})", operands.join(" && ")),
            Expr::Within(ty @ Ty::Vector(..), _) => format!("eb_all_within_{}({a}, {b}, {c})", c_ty(*ty)),
            Expr::Within(..) => format!("({b} <= {a} && {a} < {c})"),
            Expr::OneStep(ty, _) => format!("eb_one_step_{}({a}, {b})", c_ty(*ty)),
            Expr::Nearest(operand) => match **operand {
                Expr::Literal(_) => format!("(nx){a}"),
                _ => format!("eb_narrow({a})"),
            },
            Expr::Splat(ty @ Ty::Mask(..), _) => format!("eb_splat_{}({a})", c_ty(*ty)),
            Expr::Splat(ty @ Ty::Vector(Type::I32 | Type::I64, _), _) => {
                format!("(({0}){{0}} + {a})", c_ty(*ty))
            }
            Expr::Splat(ty, _) => format!("op_float_{}({a})", c_ty(*ty)),
            Expr::Multiples { ty, coefficient } => {
                let each: Vec<String> =
                    (0..shape(*ty).1 as i64).map(|lane| (coefficient * lane).to_string()).collect();
                format!("({}){{{}}}", c_ty(*ty), each.join(", "))
            }
            Expr::Ramp { ty, coefficient, variable, base } => {
                let (element, lanes) = shape(*ty);
                let each = |lane| {
                    format!("({})(INT64_C({coefficient}) * ({variable} + {lane}) + {base})", c_type(element))
                };
                let each: Vec<String> = (0..lanes).map(each).collect();
                format!("({}){{{}}}", c_ty(*ty), each.join(", "))
            }
        }
    }

    fn scalar_unary(&mut self, op: Unary, ty: Type, a: &str) -> String {
        let t = c_type(ty);
        match op {
            Unary::Neg if ty.is_float() => format!("(-{a})"),
            Unary::Neg => self.negated(ty, a),
            Unary::Not if ty == Type::Bool => format!("(!{a})"),
            Unary::Not => format!("(({t})~{a})"),
            Unary::Abs if ty.is_float() => format!("op_abs_{t}({a})"),
            Unary::Abs => format!("({a} < 0 ? {} : {a})", self.negated(ty, a)),
            Unary::Sqrt | Unary::Norm => format!("op_sqrt_{t}({a})"),
            Unary::Floor => format!("op_floor_{t}({a})"),
            Unary::Ceil => format!("op_ceil_{t}({a})"),
            Unary::Trunc => format!("op_trunc_{t}({a})"),
            Unary::Round => format!("{}({a})", self.plain_function("round", ty, 1)),
        }
    }

    fn vector_unary(&mut self, op: Unary, ty: Ty, a: &str) -> String {
        let (f, (element, lanes)) = (c_ty(ty), shape(ty));
        match op {
            Unary::Not => format!("op_not_{f}({a})"),
            Unary::Neg => format!("op_neg_{f}({a})"),
            Unary::Abs => format!("op_abs_{f}({a})"),
            Unary::Sqrt | Unary::Norm => format!("op_sqrt_{f}({a})"),
            Unary::Floor => format!("op_floor_{f}({a})"),
            Unary::Ceil => format!("op_ceil_{f}({a})"),
            Unary::Trunc => format!("op_trunc_{f}({a})"),
            Unary::Round => format!("{}({a})", self.plain_function("round", element, lanes)),
        }
    }

    /// The negative of an integer, which wraps.
    fn negated(&self, ty: Type, a: &str) -> String {
        match self.family {
            Family::C => format!("(({})-{a})", c_type(ty)),
            Family::Cuda => self.wrapping(ty, "0", "-", a),
        }
    }

    /// A sum, difference or product; those of integers wrap, which GNU C is told by a flag.
    fn wrapping(&self, ty: Type, a: &str, sign: &str, b: &str) -> String {
        let t = c_type(ty);
        match (self.family, ty) {
            (Family::C, _) | (_, Type::F32 | Type::F64) => format!("({a} {sign} {b})"),
            (_, Type::I32 | Type::U32) => format!("(({t})((u32){a} {sign} (u32){b}))"),
            _ => format!("(({t})((u64){a} {sign} (u64){b}))"),
        }
    }

    fn scalar_binary(&mut self, op: Binary, ty: Type, a: &str, b: &str) -> String {
        let t = c_type(ty);
        let bits = 8 * ty.size() - 1;
        match op {
            Binary::Add => self.wrapping(ty, a, "+", b),
            Binary::Sub => self.wrapping(ty, a, "-", b),
            Binary::Mul => self.wrapping(ty, a, "*", b),
            Binary::Div if ty.is_float() => format!("({a} / {b})"),
            Binary::Rem if ty.is_float() => {
                let name = if ty == Type::F32 { "fmodf" } else { "fmod" };
                let builtin = if self.family == Family::C { "__builtin_" } else { "" };
                format!("{builtin}{name}({a}, {b})")
            }
            Binary::Div => format!("eb_div_{t}({a}, {b})"),
            Binary::Rem => format!("eb_rem_{t}({a}, {b})"),
            Binary::RemEuclid if ty == Type::U32 => format!("({a} % {b})"),
            Binary::RemEuclid => format!("(({t})eb_rem_euclid({a}, {b}))"),
            Binary::Min | Binary::Max if ty.is_float() => {
                format!("{}({a}, {b})", self.extreme(op, ty, 1))
            }
            Binary::Min => format!("({a} < {b} ? {a} : {b})"),
            Binary::Max => format!("({a} > {b} ? {a} : {b})"),
            Binary::And => format!("({a} & {b})"),
            Binary::Or => format!("({a} | {b})"),
            Binary::Xor => format!("({a} ^ {b})"),
            Binary::Shl => format!("(({t})((u64){a} << ({b} & {bits})))"),
            Binary::Shr => format!("({a} >> ({b} & {bits}))"),
        }
    }

    /// An operation of which `transform::vectorise` says that it has a vector form.
    fn vector_binary(&mut self, op: Binary, ty: Ty, a: &str, b: &str) -> String {
        let (f, (element, lanes)) = (c_ty(ty), shape(ty));
        match op {
            Binary::Add => format!("({a} + {b})"),
            Binary::Sub => format!("({a} - {b})"),
            Binary::Mul => format!("({a} * {b})"),
            Binary::Min | Binary::Max => format!("{}({a}, {b})", self.extreme(op, element, lanes)),
            Binary::And => format!("op_and_{f}({a}, {b})"),
            Binary::Or => format!("op_or_{f}({a}, {b})"),
            Binary::Xor => {
                format!("op_or_{f}(op_and_{f}({a}, op_not_{f}({b})), op_and_{f}(op_not_{f}({a}), {b}))")
            }
            _ => format!("({a} / {b})"),
        }
    }

    fn extreme(&mut self, op: Binary, ty: Type, lanes: usize) -> String {
        self.plain_function(if op == Binary::Min { "min" } else { "max" }, ty, lanes)
    }

    /// One of the functions that are operations of the program.
    fn plain_function(&mut self, name: &str, ty: Type, lanes: usize) -> String {
        let function = ebbtide_math::Function::from_name(name);
        let shape = Shape::new(format(ty), lanes).ok();
        if let (Some(function), Some(shape)) = (function, shape) {
            self.items.insert(Item { kernel: ebbtide_math::Kernel::Function(function), shape });
        }
        format!("eb_{name}_{}", vector_type(ty, lanes))
    }

    /// An element combined with a value, both as text.
    pub fn combine(&mut self, how: Combine, ty: Ty, element: &str, value: &str) -> String {
        let op = match how {
            Combine::Add => Binary::Add,
            Combine::Min => Binary::Min,
            Combine::Max => Binary::Max,
        };
        match ty {
            Ty::Vector(..) => self.vector_binary(op, ty, element, value),
            ty => self.scalar_binary(op, one(ty), element, value),
        }
    }
}

/// The C type of a variable.
pub(crate) fn c_ty(ty: Ty) -> String {
    match ty {
        Ty::One(ty) => c_type(ty).to_string(),
        Ty::Narrow => "nx".to_string(),
        Ty::Vector(ty, lanes) => vector_type(ty, lanes),
        Ty::Mask(ty, lanes) => format!("m{}x{lanes}", 8 * ty.size()),
        Ty::Address(ty) => format!("{} *", c_type(ty)),
    }
}

/// `f64x8`, or `f64` for one lane.
pub(crate) fn vector_type(ty: Type, lanes: usize) -> String {
    if lanes == 1 { c_type(ty).to_string() } else { format!("{}x{lanes}", c_type(ty)) }
}

/// The type of one lane.
fn one(ty: Ty) -> Type {
    shape(ty).0
}

fn shape(ty: Ty) -> (Type, usize) {
    match ty {
        Ty::One(ty) | Ty::Address(ty) => (ty, 1),
        Ty::Narrow => (Type::Index, 1),
        Ty::Vector(ty, lanes) | Ty::Mask(ty, lanes) => (ty, lanes),
    }
}

pub(crate) fn sign(op: Compare) -> &'static str {
    match op {
        Compare::Eq => "==",
        Compare::Ne => "!=",
        Compare::Lt => "<",
        Compare::Le => "<=",
        Compare::Gt => ">",
        Compare::Ge => ">=",
    }
}

/// What the function of an operation on indices ends in whose result may be no number.
fn marked(op: Binary) -> &'static str {
    match op {
        Binary::Add => "add",
        Binary::Sub => "sub",
        Binary::Mul => "mul",
        Binary::Shl => "shl",
        Binary::Div => "div",
        Binary::Rem => "rem",
        Binary::RemEuclid => "rem_euclid",
        Binary::Min => "min",
        Binary::Max => "max",
        Binary::And => "and",
        Binary::Or => "or",
        Binary::Xor => "xor",
        Binary::Shr => "shr",
    }
}

/// A number as one of another type; `overflow` says whether an index may be no number.
fn cast(from: Type, to: Type, overflow: Overflow, a: &str) -> String {
    let text = match (from, to) {
        _ if from == to => a.to_string(),
        (_, Type::Bool) => format!("({a} != 0)"),
        (Type::F32 | Type::F64, Type::I32 | Type::U32) => format!("eb_{}_{}({a})", c_type(to), c_type(from)),
        (Type::F32 | Type::F64, Type::I64 | Type::Index) => format!("eb_i64_{}({a})", c_type(from)),
        _ => format!("(({}){a})", c_type(to)),
    };
    let overflowed = match to {
        _ if overflow == Overflow::Wraps => return text,
        Type::F32 => "(f32)EB_NAN",
        Type::F64 => "EB_NAN",
        Type::I32 => "INT32_MIN",
        Type::U32 => "UINT32_MAX",
        Type::I64 | Type::Index | Type::Bool => return text,
    };
    format!("({a} == INT64_MIN ? {overflowed} : {text})")
}
