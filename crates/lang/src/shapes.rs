//! Shapes of the arrays of an operation, checked where it is called, with the names of the caller's arrays.

use ebbtide_ir::{Binary, Builder, Compare, Literal, ValueId};

use crate::cx::Cx;
use crate::view::Part;

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

/// Asserts that shapes fit; `rule` says which shapes there should be: `"[n, n], [n] and [n]"`.
#[track_caller]
pub fn check(cx: &Cx, operation: &str, rule: &str, parts: &[Part], fits: &[Fit]) {
    cx.emit(|b| assert_fit(b, operation, rule, parts, fits));
}

fn assert_fit(b: &mut Builder, operation: &str, rule: &str, parts: &[Part], fits: &[Fit]) {
    let names: Vec<String> = parts.iter().map(|part| described(b, part)).collect();
    let text = format!("the shapes of {} do not fit `{operation}`: they must be {rule}", names.join(", "));
    let extent = |b: &mut Builder, (array, k): Extent| parts[array].1.dim(b, parts[array].0, k);
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

/// An array by its name, or a part of it.
fn described(b: &Builder, (array, view): &Part) -> String {
    let name = &b.program().array(*array).name;
    if view.is_whole() { format!("`{name}`") } else { format!("a part of `{name}`") }
}

/// What an operation writes it uses in no other place: a build error, or, of two parts of one array whose places are computed, a
/// run error.
#[track_caller]
pub fn written_once(cx: &Cx, operation: &str, written: Part, others: &[Part]) {
    for other in others.iter().filter(|other| other.0 == written.0) {
        cx.emit(|b| {
            let name = described(b, &written);
            let text = format!("`{operation}` writes {name}, which it uses in another place too");
            match written.1.is_apart(&other.1, b) {
                Some(apart) => b.assert(apart, text),
                None => b.flaw("11", format!("{text}: give it an array of its own")),
            }
        });
    }
}
