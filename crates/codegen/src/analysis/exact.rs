//! Which indices are proved to be numbers (law 4). Input: a value and what is proved; output: whether it may be no number.

use std::collections::BTreeSet;
use std::rc::Rc;

use ebbtide_ir::{Op, Program, Type, ValueId};

/// The values that are proved to be numbers where they are printed.
pub(crate) type Exact = Rc<BTreeSet<ValueId>>;

/// Can the value be no number?
pub(crate) fn may_overflow(program: &Program, exact: &BTreeSet<ValueId>, v: ValueId) -> bool {
    match *program.op(v) {
        Op::Literal(literal) => literal.to_i64() == Some(i64::MIN),
        Op::LoopVar | Op::Dim(..) => false,
        Op::Cast(a) => !matches!(program.ty(a), Type::I32 | Type::U32 | Type::Bool),
        _ => !exact.contains(&v),
    }
}
