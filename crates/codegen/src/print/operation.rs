//! Operations as C expressions, one element at a time or in vectors.

use ebbtide_ir::{Binary, Combine, Compare, Function, Op, Type, Unary, ValueId};

use crate::kernel::machine::Family;
use crate::print::c_types::c_type;
use crate::print::emitter::Emitter;

impl Emitter<'_> {
    /// A pure operation on scalars, its operands given as text; integer divisors are known not to be zero.
    pub fn scalar_operation(&mut self, v: ValueId, operand: impl Fn(&Emitter, ValueId) -> String) -> String {
        let ty = self.program.ty(v);
        let op = *self.program.op(v);
        let at = |this: &Self, v| operand(this, v);
        match op {
            Op::Literal(_) | Op::LoopVar => self.value(v),
            Op::Scalar(s) => crate::print::c_types::from_bits(ty, &format!("f->scalars[{}]", s.index())),
            Op::Dim(array, k) => format!("d{}_{k}", array.index()),
            Op::Get(local) => self.local(local),
            Op::Unary(op, x) => {
                let a = at(self, x);
                let text = self.scalar_unary(op, ty, &a);
                if ty == Type::Index { self.index_unary(op, x, &a, text) } else { text }
            }
            Op::Binary(op, x, y) => {
                let (a, b) = (at(self, x), at(self, y));
                let looked = if ty == Type::Index { self.index_binary(v, op, [x, y], &a, &b) } else { None };
                looked.unwrap_or_else(|| self.scalar_binary(op, ty, &a, &b))
            }
            Op::Compare(op, a, b) => format!("({} {} {})", at(self, a), sign(op), at(self, b)),
            Op::Select(c, a, b) => format!("({} ? {} : {})", at(self, c), at(self, a), at(self, b)),
            Op::Fma(a, b, c) => {
                format!("op_fma_{}({}, {}, {})", c_type(ty), at(self, a), at(self, b), at(self, c))
            }
            Op::Cast(x) => {
                let (from, a) = (self.program.ty(x), at(self, x));
                let text = cast(from, ty, &a);
                if from == Type::Index { self.index_cast(x, ty, &a, text) } else { text }
            }
            Op::Math(f, a, b) => {
                let name = self.function(f, ty, 1);
                match f.arity() {
                    2 => format!("{name}({}, {})", at(self, a), at(self, b)),
                    _ => format!("{name}({})", at(self, a)),
                }
            }
            Op::Rand(seed, counter) => {
                let name = self.random(ty);
                format!("({}){name}({}, {})", c_type(ty), at(self, seed), at(self, counter))
            }
            // Loads are printed by whoever knows whether their index must be checked.
            Op::Load(..) => String::from("0"),
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
            Unary::Sqrt => format!("op_sqrt_{t}({a})"),
            Unary::Floor => format!("op_floor_{t}({a})"),
            Unary::Ceil => format!("op_ceil_{t}({a})"),
            Unary::Trunc => format!("op_trunc_{t}({a})"),
            Unary::Round => format!("{}({a})", self.plain_function("round", ty, 1)),
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
                let name = self.plain_function(if op == Binary::Min { "min" } else { "max" }, ty, 1);
                format!("{name}({a}, {b})")
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

    /// A pure operation on vectors of one float type, or on masks; `None` for what has no vector form.
    pub fn vector_operation(
        &mut self,
        v: ValueId,
        ty: Type,
        lanes: usize,
        operand: &dyn Fn(&Emitter, ValueId) -> String,
    ) -> Option<String> {
        let (f, m) = (vector_type(ty, lanes), mask_type(ty, lanes));
        let result = self.program.ty(v);
        let at = |this: &Self, v| operand(this, v);
        Some(match *self.program.op(v) {
            Op::Unary(Unary::Not, a) if result == Type::Bool => format!("op_not_{m}({})", at(self, a)),
            Op::Unary(op, a) if result == ty => {
                let a = at(self, a);
                match op {
                    Unary::Neg => format!("op_neg_{f}({a})"),
                    Unary::Abs => format!("op_abs_{f}({a})"),
                    Unary::Sqrt => format!("op_sqrt_{f}({a})"),
                    Unary::Floor => format!("op_floor_{f}({a})"),
                    Unary::Ceil => format!("op_ceil_{f}({a})"),
                    Unary::Trunc => format!("op_trunc_{f}({a})"),
                    Unary::Round => format!("{}({a})", self.plain_function("round", ty, lanes)),
                    Unary::Not => return None,
                }
            }
            Op::Binary(op, a, b) if result == ty => {
                let (a, b) = (at(self, a), at(self, b));
                match op {
                    Binary::Add => format!("({a} + {b})"),
                    Binary::Sub => format!("({a} - {b})"),
                    Binary::Mul => format!("({a} * {b})"),
                    Binary::Div => format!("({a} / {b})"),
                    Binary::Min => format!("{}({a}, {b})", self.plain_function("min", ty, lanes)),
                    Binary::Max => format!("{}({a}, {b})", self.plain_function("max", ty, lanes)),
                    _ => return None,
                }
            }
            Op::Binary(op, a, b) if result == Type::Bool => {
                let (a, b) = (at(self, a), at(self, b));
                match op {
                    Binary::And => format!("op_and_{m}({a}, {b})"),
                    Binary::Or => format!("op_or_{m}({a}, {b})"),
                    Binary::Xor => format!(
                        "op_or_{m}(op_and_{m}({a}, op_not_{m}({b})), op_and_{m}(op_not_{m}({a}), {b}))"
                    ),
                    _ => return None,
                }
            }
            Op::Compare(op, a, b) if self.program.ty(a) == ty => {
                let (a, b) = (at(self, a), at(self, b));
                match op {
                    Compare::Eq => format!("op_eq_{m}({a}, {b})"),
                    Compare::Ne => format!("op_not_{m}(op_eq_{m}({a}, {b}))"),
                    Compare::Lt => format!("op_lt_{m}({a}, {b})"),
                    Compare::Le => format!("op_le_{m}({a}, {b})"),
                    Compare::Gt => format!("op_lt_{m}({b}, {a})"),
                    Compare::Ge => format!("op_le_{m}({b}, {a})"),
                }
            }
            Op::Select(c, a, b) if result == ty => {
                format!("op_select_{f}({}, {}, {})", at(self, c), at(self, a), at(self, b))
            }
            Op::Fma(a, b, c) => format!("op_fma_{f}({}, {}, {})", at(self, a), at(self, b), at(self, c)),
            Op::Get(local) if result == ty || result == Type::Bool => self.local(local),
            Op::Cast(a) if result == ty && self.program.ty(a) == Type::Bool => {
                format!("op_select_{f}({}, op_float_{f}(1), op_float_{f}(0))", at(self, a))
            }
            Op::Select(c, a, b) if result == Type::Bool => {
                let (c, a, b) = (at(self, c), at(self, a), at(self, b));
                format!("op_or_{m}(op_and_{m}({c}, {a}), op_and_{m}(op_not_{m}({c}), {b}))")
            }
            Op::Math(Function::Powi, ..) => return None,
            Op::Math(function, a, b) => {
                let name = self.function(function, ty, lanes);
                match function.arity() {
                    2 => format!("{name}({}, {})", at(self, a), at(self, b)),
                    _ => format!("{name}({})", at(self, a)),
                }
            }
            _ => return None,
        })
    }

    /// One of the functions that are operations of the program.
    fn plain_function(&mut self, name: &str, ty: Type, lanes: usize) -> String {
        use ebbtide_math::c::{Item, Shape};
        let function = ebbtide_math::Function::from_name(name);
        let shape = Shape::new(crate::print::c_types::format(ty), lanes).ok();
        if let (Some(function), Some(shape)) = (function, shape) {
            self.items.insert(Item { kernel: ebbtide_math::Kernel::Function(function), shape });
        }
        format!("eb_{name}_{}", vector_type(ty, lanes))
    }

    /// An element combined with a value, in scalars or vectors of a float type.
    pub fn combine(&mut self, how: Combine, ty: Type, lanes: usize, element: &str, value: &str) -> String {
        let op = match how {
            Combine::Add if lanes == 1 => return self.wrapping(ty, element, "+", value),
            Combine::Add => return format!("({element} + {value})"),
            Combine::Min => Binary::Min,
            Combine::Max => Binary::Max,
        };
        if lanes == 1 {
            return self.scalar_binary(op, ty, element, value);
        }
        let name = self.plain_function(if op == Binary::Min { "min" } else { "max" }, ty, lanes);
        format!("{name}({element}, {value})")
    }
}

/// `f64x8`, or `f64` for one lane.
pub(crate) fn vector_type(ty: Type, lanes: usize) -> String {
    if lanes == 1 { c_type(ty).to_string() } else { format!("{}x{lanes}", c_type(ty)) }
}

/// The type of the masks that go with vectors of a float type.
pub(crate) fn mask_type(ty: Type, lanes: usize) -> String {
    format!("m{}x{lanes}", 8 * ty.size())
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

fn cast(from: Type, to: Type, a: &str) -> String {
    match (from, to) {
        _ if from == to => a.to_string(),
        (_, Type::Bool) => format!("({a} != 0)"),
        (Type::F32 | Type::F64, Type::I32 | Type::U32) => format!("eb_{}_{}({a})", c_type(to), c_type(from)),
        (Type::F32 | Type::F64, Type::I64 | Type::Index) => format!("eb_i64_{}({a})", c_type(from)),
        _ => format!("(({}){a})", c_type(to)),
    }
}
