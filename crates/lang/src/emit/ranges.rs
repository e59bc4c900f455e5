//! Ranges that do not run upwards by ones: `(0..n).rev()`, `(0..n).step_by(2)`.
//!
//! A loop counts upwards from zero; its variable is `first + stride * counter`, which index arithmetic understands.

use ebbtide_ir::{Binary, Literal, ValueId};

use crate::cx::Cx;
use crate::value::Expr;

/// The values `first`, `first + stride`, …, `count` of them.
#[derive(Clone, Copy, Debug)]
pub struct Strided {
    first: ValueId,
    count: ValueId,
    stride: Stride,
}

#[derive(Clone, Copy, Debug)]
enum Stride {
    One,
    MinusOne,
    By(ValueId),
    MinusBy(ValueId),
}

impl Strided {
    /// How many values there are.
    pub fn count(&self) -> Expr<usize> {
        Expr::new(self.count)
    }
}

/// `from..to`.
#[track_caller]
pub fn plain_range(cx: &Cx, from: Expr<usize>, to: Expr<usize>) -> Strided {
    let count = cx.emit(|b| match b.program().literal(from.id) {
        Some(zero) if zero.bits() == 0 => to.id,
        _ => b.binary(Binary::Sub, to.id, from.id),
    });
    Strided { first: from.id, count, stride: Stride::One }
}

/// `range.rev()`.
#[track_caller]
pub fn reversed_range(cx: &Cx, range: Strided) -> Strided {
    let Strided { first, count, stride } = range;
    cx.emit(|b| {
        let one = b.literal(Literal::index(1));
        let last = b.binary(Binary::Sub, count, one);
        let (step, stride) = match stride {
            Stride::One => (last, Stride::MinusOne),
            Stride::MinusOne => (last, Stride::One),
            Stride::By(k) => (b.binary(Binary::Mul, k, last), Stride::MinusBy(k)),
            Stride::MinusBy(k) => (b.binary(Binary::Mul, k, last), Stride::By(k)),
        };
        let first = match stride {
            Stride::MinusOne | Stride::MinusBy(_) => b.binary(Binary::Add, first, step),
            Stride::One | Stride::By(_) => b.binary(Binary::Sub, first, step),
        };
        Strided { first, count, stride }
    })
}

/// `range.step_by(step)`; a step of zero is a run error.
#[track_caller]
pub fn stepped_range(cx: &Cx, range: Strided, step: Expr<usize>) -> Strided {
    let Strided { first, count, stride } = range;
    cx.emit(|b| {
        let one = b.literal(Literal::index(1));
        let raised = b.binary(Binary::Add, count, step.id);
        let raised = b.binary(Binary::Sub, raised, one);
        let count = b.binary(Binary::Div, raised, step.id);
        let stride = match stride {
            Stride::One => Stride::By(step.id),
            Stride::MinusOne => Stride::MinusBy(step.id),
            Stride::By(k) => Stride::By(b.binary(Binary::Mul, k, step.id)),
            Stride::MinusBy(k) => Stride::MinusBy(b.binary(Binary::Mul, k, step.id)),
        };
        Strided { first, count, stride }
    })
}

/// The value number `counter`.
#[track_caller]
pub fn strided_value(cx: &Cx, range: Strided, counter: Expr<usize>) -> Expr<usize> {
    let first = range.first;
    Expr::new(cx.emit(|b| match range.stride {
        Stride::One => b.binary(Binary::Add, first, counter.id),
        Stride::MinusOne => b.binary(Binary::Sub, first, counter.id),
        Stride::By(k) => {
            let step = b.binary(Binary::Mul, k, counter.id);
            b.binary(Binary::Add, first, step)
        }
        Stride::MinusBy(k) => {
            let step = b.binary(Binary::Mul, k, counter.id);
            b.binary(Binary::Sub, first, step)
        }
    }))
}
