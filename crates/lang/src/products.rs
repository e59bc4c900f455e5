//! Products of matrices and vectors: [`matmul`](fn@matmul) with transposes and batches.
//!
//! Input: two factors, each an array or [`transposed`], and the array of the product. Output: one library operation for
//! whole matrices, a parallel loop for parts of arrays, vectors and batches. Invariant: an element is made of chains of `mul_add`s
//! over ascending `k`, begun at zero: for matrices one for each [`ebbtide_ir::MATMUL_CHUNK`] terms, for the others one in all.

use std::marker::PhantomData;

use ebbtide_ir::{
    ArrayId, Assign, Binary, Builder, Layout, LibraryOp, Literal, LocalId, MATMUL_CHUNK, Type, ValueId,
};
use ebbtide_runtime::{AnyArray, Array, Result};

use crate::cx::Cx;
use crate::handle::{Argument, ArrayHandle, Borrow, ByMut, ByRef};
use crate::library::run_alone;
use crate::scalar::Float;
use crate::shapes::{Fit, check, written_once};
use crate::view::{Part, View};

/// The product of two matrices, of a matrix and a vector, or of batches of these: `c = a · b`.
///
/// | `a` | `b` | `c` |
/// |---|---|---|
/// | `[m, k]` | `[k, n]` | `[m, n]` |
/// | `[m, k]` | `[k]` | `[m]` |
/// | `[k]` | `[k, n]` | `[n]` |
/// | `[l, m, k]` | `[l, k, n]` | `[l, m, n]`: a product for each of `l` |
/// | `[l, m, k]` | `[k, n]` | `[l, m, n]` |
/// | `[m, k]` | `[l, k, n]` | `[l, m, n]` |
/// | `[l, m, k]` | `[l, k]` | `[l, m]` |
///
/// A factor of rank 2 or 3 may be [`transposed`](fn@transposed): `matmul(transposed(a), b, c)`.
///
/// An element of `c` is the sum of its products in ascending order, each step a `mul_add`, of matrices in chunks of
/// [`MATMUL_CHUNK`] that are added in order, so its bits are the same on every device and for
/// every number of threads. `c` must be neither of the factors.
pub fn matmul<T: Float, const L: usize, const R: usize, const O: usize>(
    a: impl HostFactor<T, L>,
    b: impl HostFactor<T, R>,
    c: &mut Array<T, O>,
) -> Result<()>
where
    Ranks<L, R, O>: Multiply,
{
    let ((a, left), (b, right)) = (a.array(), b.array());
    run_alone("matmul", &[a, b], &mut [c.any_mut()], |reads, writes| {
        let whole = |id: ArrayId| (id, View::whole());
        let (a, b) = ((whole(reads[0]), left), (whole(reads[1]), right));
        Ranks::<L, R, O>::FORM.emit(&Cx::current(), a, b, whole(writes[0]));
    })
}

/// Inside programs: [`matmul`](fn@matmul).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum matmul {}

impl matmul {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Float, const L: usize, const R: usize, const O: usize>(
        a: impl Factor<T, L>,
        b: impl Factor<T, R>,
        c: impl Argument<ArrayHandle<T, O, ByMut>>,
    ) where
        Ranks<L, R, O>: Multiply,
    {
        let cx = &Cx::current();
        Ranks::<L, R, O>::FORM.emit(cx, a.factor(), b.factor(), c.pass(cx).part());
    }
}

/// A matrix, or each of a batch of them, with rows and columns exchanged, as a factor of [`matmul`](fn@matmul). Nothing is
/// moved.
pub fn transposed<T: Float, const R: usize>(a: &Array<T, R>) -> Transposed<&Array<T, R>>
where
    OfMatrices<R>: Rank,
{
    Transposed(a)
}

/// Inside programs: [`transposed`](fn@transposed).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum transposed {}

impl transposed {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Float, const R: usize>(
        a: impl Argument<ArrayHandle<T, R, ByRef>>,
    ) -> Transposed<ArrayHandle<T, R, ByRef>>
    where
        OfMatrices<R>: Rank,
    {
        Transposed(a.pass(&Cx::current()))
    }
}

/// A factor with rows and columns exchanged: [`transposed`](fn@transposed).
#[derive(Clone, Copy, Debug)]
pub struct Transposed<A>(A);

/// A number of dimensions.
#[derive(Debug)]
pub struct OfMatrices<const R: usize>(PhantomData<()>);

/// The ranks of what can be transposed: 2 and 3.
#[diagnostic::on_unimplemented(
    message = "only matrices and batches of them, of rank 2 and 3, can be transposed",
    note = "a vector needs no transposing: `matmul(x, a, y)` and `matmul(a, x, y)` are both defined"
)]
pub trait Rank {}

impl Rank for OfMatrices<2> {}
impl Rank for OfMatrices<3> {}

/// A factor of a product inside programs: an array, or a transposed one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a factor of `matmul`",
    label = "not an array of floats",
    note = "factors are arrays of `f32` or `f64`, or `transposed(a)`"
)]
pub trait Factor<T, const R: usize> {
    /// The array, the part of it, and how it is read.
    fn factor(&self) -> (Part, Layout);
}

impl<T: Float, const R: usize, B: Borrow> Factor<T, R> for ArrayHandle<T, R, B> {
    fn factor(&self) -> (Part, Layout) {
        (self.part(), Layout::Plain)
    }
}

impl<T: Float, const R: usize> Factor<T, R> for Transposed<ArrayHandle<T, R, ByRef>> {
    fn factor(&self) -> (Part, Layout) {
        (self.0.part(), Layout::Transposed)
    }
}

/// A factor of a product outside programs: a reference to an array, or a transposed one.
pub trait HostFactor<T, const R: usize> {
    /// The array, and how it is read.
    fn array(&self) -> (&AnyArray, Layout);
}

impl<T: Float, const R: usize> HostFactor<T, R> for &Array<T, R> {
    fn array(&self) -> (&AnyArray, Layout) {
        (self.any(), Layout::Plain)
    }
}

impl<T: Float, const R: usize> HostFactor<T, R> for Transposed<&Array<T, R>> {
    fn array(&self) -> (&AnyArray, Layout) {
        (self.0.any(), Layout::Transposed)
    }
}

/// The ranks of two factors and their product.
#[derive(Debug)]
pub struct Ranks<const L: usize, const R: usize, const O: usize>(PhantomData<()>);

/// The ranks that [`matmul`](fn@matmul) knows.
#[diagnostic::on_unimplemented(
    message = "`matmul` has no product of such ranks: `{Self}`",
    label = "these ranks do not make a product",
    note = "ranks are 2, 2, 2 (matrices); 2, 1, 1 and 1, 2, 1 (a vector); 3, 3, 3, 3, 2, 3, 2, 3, 3 and 3, 2, 2 (batches). \
            The product of two vectors is `dot(x, y)`"
)]
pub trait Multiply {
    /// Which dimensions there are.
    const FORM: Form;
}

/// Which dimensions a product and its factors have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    rows: bool,
    columns: bool,
    /// Whether the left and the right factor have a dimension of batches.
    batches: [bool; 2],
    rule: &'static str,
}

impl Form {
    const MATRICES: Form = Form::new(true, true, [false, false], "[m, k]; [k, n]; [m, n]");

    const fn new(rows: bool, columns: bool, batches: [bool; 2], rule: &'static str) -> Form {
        Form { rows, columns, batches, rule }
    }

    /// The dimensions of the factor on one side: its rows or columns, and that of the sum.
    fn factor(self, side: usize, layout: Layout) -> (Option<usize>, usize) {
        let first = usize::from(self.batches[side]);
        let plain = layout == Layout::Plain;
        match [self.rows, self.columns][side] {
            false => (None, first),
            // The left factor is [rows, k], the right one [k, columns].
            true if plain == (side == 0) => (Some(first), first + 1),
            true => (Some(first + 1), first),
        }
    }

    /// Writes the product. Of whole matrices it is one operation; of parts, of vectors and of batches it is a loop, which adds
    /// the products of matrices in the same chunks.
    #[track_caller]
    fn emit(self, cx: &Cx, left: (Part, Layout), right: (Part, Layout), c: Part) {
        let sides = [left, right];
        let matrices = self == Form::MATRICES;
        if matrices && [left.0, right.0, c].iter().all(|(_, view)| view.is_whole()) {
            let op = LibraryOp::Matmul { left: left.1, right: right.1, into: Assign::Replace };
            return cx.emit(|b| b.library(op, &[left.0.0, right.0.0], &[c.0]));
        }
        written_once(cx, "matmul", c, &[left.0, right.0]);
        let batch = self.batches.contains(&true);
        // The dimensions of the product, in order: batch, row, column.
        let (mut ranges, mut fits, mut at) = (Vec::new(), Vec::new(), 0);
        let mut batch_at = None;
        if batch {
            batch_at = Some(at);
            ranges.push("l");
            for side in [0, 1].into_iter().filter(|side| self.batches[*side]) {
                fits.push(Fit::Equal((side, 0), (2, at)));
            }
            at += 1;
        }
        let mut own_at = [None, None];
        for (side, name) in [(0, "i"), (1, "j")] {
            if let (Some(k), _) = self.factor(side, sides[side].1) {
                own_at[side] = Some(at);
                ranges.push(name);
                fits.push(Fit::Equal((side, k), (2, at)));
                at += 1;
            }
        }
        let terms = [0, 1].map(|side| (side, self.factor(side, sides[side].1).1));
        fits.push(Fit::Equal(terms[0], terms[1]));
        check(cx, "matmul", &self.rule_for(left.1, right.1), &[left.0, right.0, c], &fits);

        let (zero, count, ty, vars) = cx.emit(|b| {
            let zero = b.literal(Literal::index(0));
            let ends: Vec<ValueId> = (0..ranges.len()).map(|k| c.1.dim(b, c.0, k)).collect();
            let count = left.0.1.dim(b, left.0.0, terms[0].1);
            let ranges: Vec<(&str, ValueId, ValueId)> =
                ranges.into_iter().zip(ends).map(|(name, end)| (name, zero, end)).collect();
            (zero, count, b.program().array(c.0).ty, b.begin_par(&ranges))
        });
        let (chunks, from, to) = match matrices {
            true => {
                let (chunks, from, to) = cx.emit(|b| begin_chunks(b, zero, count, ty));
                (Some(chunks), from, to)
            }
            false => (None, zero, count),
        };
        let (sum, k) = cx.emit(|b| {
            let start = b.literal(Literal::zero(ty));
            (b.local("sum", start), b.begin_for("k", from, to))
        });
        let mut factors = Vec::new();
        for (side, ((array, view), layout)) in sides.into_iter().enumerate() {
            let (own, term) = self.factor(side, layout);
            let mut index = Vec::new();
            if let (true, Some(at)) = (self.batches[side], batch_at) {
                index.push(vars[at]);
            }
            let mut rest = vec![(term, k)];
            if let (Some(own), Some(at)) = (own, own_at[side]) {
                rest.push((own, vars[at]));
            }
            rest.sort_by_key(|(dimension, _)| *dimension);
            index.extend(rest.into_iter().map(|(_, var)| var));
            let place = view.place_within(cx, &index);
            factors.push(cx.emit(|b| b.load(array, &place)));
        }
        let value = cx.emit(|b| {
            let before = b.get(sum);
            let after = b.fma(factors[0], factors[1], before);
            b.set(sum, after);
            b.end_loop(None);
            match chunks {
                Some(total) => end_chunks(b, total, sum),
                None => b.get(sum),
            }
        });
        let place = c.1.place_within(cx, &vars);
        cx.emit(|b| {
            b.store(c.0, &place, value);
            b.end_par();
        });
    }

    /// The shapes that fit, for messages.
    fn rule_for(self, left: Layout, right: Layout) -> String {
        let parts: Vec<&str> = self.rule.split("; ").collect();
        let transposed = |part: &str, layout: Layout| match layout {
            Layout::Plain => part.to_string(),
            Layout::Transposed => format!("{part} transposed"),
        };
        match parts[..] {
            [a, b, c] => format!("{}, {} and {c}", transposed(a, left), transposed(b, right)),
            _ => self.rule.to_string(),
        }
    }
}

/// Begins a loop over the chunks of `count` terms: the sum of all, and the bounds of a chunk. There is one at least.
fn begin_chunks(b: &mut Builder, zero: ValueId, count: ValueId, ty: Type) -> (LocalId, ValueId, ValueId) {
    let (one, size, last) = (
        b.literal(Literal::index(1)),
        b.literal(Literal::index(MATMUL_CHUNK)),
        b.literal(Literal::index(MATMUL_CHUNK - 1)),
    );
    // Adding to it changes no bit of the first chunk.
    let start = b.literal(Literal::of(ty, -0.0));
    let total = b.local("total", start);
    let raised = b.binary(Binary::Add, count, last);
    let full = b.binary(Binary::Div, raised, size);
    let chunks = b.binary(Binary::Max, full, one);
    let chunk = b.begin_for("chunk", zero, chunks);
    let from = b.binary(Binary::Mul, chunk, size);
    let end = b.binary(Binary::Add, from, size);
    (total, from, b.binary(Binary::Min, end, count))
}

/// Adds a chunk and ends the loop: the sum of all.
fn end_chunks(b: &mut Builder, total: LocalId, chunk: LocalId) -> ValueId {
    let (before, chunk) = (b.get(total), b.get(chunk));
    let after = b.binary(Binary::Add, before, chunk);
    b.set(total, after);
    b.end_loop(None);
    b.get(total)
}

macro_rules! ranks {
    ($($l:literal $r:literal $o:literal: $rows:literal $columns:literal $batches:expr, $rule:literal;)*) => {$(
        impl Multiply for Ranks<$l, $r, $o> {
            const FORM: Form = Form::new($rows, $columns, $batches, $rule);
        }
    )*};
}

ranks! {
    2 2 2: true true [false, false], "[m, k]; [k, n]; [m, n]";
    2 1 1: true false [false, false], "[m, k]; [k]; [m]";
    1 2 1: false true [false, false], "[k]; [k, n]; [n]";
    3 3 3: true true [true, true], "[l, m, k]; [l, k, n]; [l, m, n]";
    3 2 3: true true [true, false], "[l, m, k]; [k, n]; [l, m, n]";
    2 3 3: true true [false, true], "[m, k]; [l, k, n]; [l, m, n]";
    3 2 2: true false [true, true], "[l, m, k]; [l, k]; [l, m]";
}

crate::never_yields! { matmul transposed }
