//! Shapes of the arrays of an operation, checked where it is called, with the names of the caller's arrays.

use ebbtide_ir::{ArrayId, Binary, Builder, Compare, Literal, ValueId};

use crate::cx::Cx;
use crate::view::{View, all_whole};

/// An extent: which of the arrays, which dimension.
pub type Extent = (usize, usize);

/// What extents must be.
#[derive(Clone, Copy, Debug)]
pub enum Fit {
    /// Two extents are equal.
    Equal(Extent, Extent),
    /// An extent is a power of two.
    PowerOfTwo(Extent),
}

/// The arrays of an operation that takes whole ones; a part of one is a build error.
#[track_caller]
pub fn whole<const N: usize>(cx: &Cx, operation: &str, parts: [(ArrayId, View); N]) -> Option<[ArrayId; N]> {
    all_whole(cx, operation, &parts.map(|(_, view)| view)).then(|| parts.map(|(id, _)| id))
}

/// Asserts that shapes fit; `rule` says which shapes there should be: `"[n, n], [n] and [n]"`.
#[track_caller]
pub fn check(cx: &Cx, operation: &str, rule: &str, arrays: &[ArrayId], fits: &[Fit]) {
    cx.emit(|b| assert_fit(b, operation, rule, arrays, fits));
}

pub(crate) fn assert_fit(b: &mut Builder, operation: &str, rule: &str, arrays: &[ArrayId], fits: &[Fit]) {
    let names: Vec<String> = arrays.iter().map(|a| format!("`{}`", b.program().array(*a).name)).collect();
    let text = format!("the shapes of {} do not fit `{operation}`: they must be {rule}", names.join(", "));
    let extent = |b: &mut Builder, (array, k): Extent| b.dim(arrays[array], k);
    let mut whole: Option<ValueId> = None;
    for fit in fits {
        let holds = match *fit {
            Fit::Equal(one, other) => {
                let (one, other) = (extent(b, one), extent(b, other));
                b.compare(Compare::Eq, one, other)
            }
            Fit::PowerOfTwo(of) => {
                // n > 0 and n & (n - 1) = 0.
                let (n, zero, one) =
                    (extent(b, of), b.literal(Literal::index(0)), b.literal(Literal::index(1)));
                let less = b.binary(Binary::Sub, n, one);
                let common = b.binary(Binary::And, n, less);
                let (single, some) = (b.compare(Compare::Eq, common, zero), b.compare(Compare::Gt, n, zero));
                b.binary(Binary::And, single, some)
            }
        };
        whole = Some(match whole {
            Some(before) => b.binary(Binary::And, before, holds),
            None => holds,
        });
    }
    if let Some(condition) = whole {
        b.assert(condition, text);
    }
}

/// A build error where an operation writes an array that it uses in another place too.
#[track_caller]
pub fn written_once(cx: &Cx, operation: &str, written: ArrayId, others: &[ArrayId]) {
    if others.contains(&written) {
        cx.emit(|b| {
            let name = b.program().array(written).name.clone();
            b.flaw(
                "11",
                format!("`{operation}` writes `{name}`, which it uses in another place too: give it an array of its own"),
            );
        });
    }
}
