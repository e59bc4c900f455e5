//! Methods, construction and indexing of small values.

use ebbtide_ir::{Binary, Combine, Compare, Literal, Op, Program, Unary, ValueId};

use super::arithmetic::sum_of_products;
use super::{div, mul, neg, sub};
use crate::cx::Cx;
use crate::handle::{Indexed, Shaped, Stored, Writable};
use crate::scalar::{Float, Number, Scalar};
use crate::small::{
    Mat2, Mat3, Mat4, Sequence, Solvable, Tuple, Value, Vec2, Vec3, Vec4, constant, from_ids, ids,
    types as small_types, variables,
};
use crate::value::{Expr, Local, Readable, Same};

/// `(a, b)`.
pub fn tuple<P: Tuple>(parts: P) -> Expr<P::Value> {
    parts.value()
}

/// `[a, b, c]`.
pub fn array_of<T: Value, const N: usize>(items: [Expr<T>; N]) -> Expr<[T; N]> {
    Expr::new(items)
}

/// `[x; N]`.
pub fn repeated<T: Value, const N: usize>(item: Expr<T>) -> Expr<[T; N]> {
    Expr::new([item; N])
}

/// The parts of a tuple: `let (a, .., b) = t;`.
pub fn parts<T: Value>(value: Expr<T>) -> T::Exprs {
    value.id
}

/// The items of an array of a fixed length: `let [a, b] = list;`.
pub fn items<T: Value, const N: usize>(value: Expr<[T; N]>) -> [Expr<T>; N] {
    value.id
}

/// A vector.
#[diagnostic::on_unimplemented(message = "this needs a vector, not `{Self}`", label = "this is `{Self}`")]
pub trait Vector: Value {
    /// The type of its components.
    type Item: Scalar;
    /// The square matrix with such rows.
    type Square: Value;

    /// `a.dot(b)`.
    #[track_caller]
    fn dot(cx: &Cx, a: Expr<Self>, b: Expr<Self>) -> Expr<Self::Item>;

    /// `a.outer(b)`.
    #[track_caller]
    fn outer(cx: &Cx, a: Expr<Self>, b: Expr<Self>) -> Expr<Self::Square>;
}

/// A square matrix.
#[diagnostic::on_unimplemented(message = "this needs a matrix, not `{Self}`", label = "this is `{Self}`")]
pub trait Matrix: Value {
    /// The type of its elements.
    type Item: Scalar;

    /// `m.transpose()`.
    fn transpose(m: Expr<Self>) -> Expr<Self>;

    /// `m.trace()`.
    #[track_caller]
    fn trace(cx: &Cx, m: Expr<Self>) -> Expr<Self::Item>;
}

/// A matrix that has a determinant and an inverse.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no `determinant` and `inverse`",
    label = "this is `{Self}`",
    note = "`Mat2`, `Mat3` and `Mat4` have them"
)]
pub trait Invertible: Matrix {
    /// `m.determinant()`.
    #[track_caller]
    fn determinant(cx: &Cx, m: Expr<Self>) -> Expr<Self::Item>;

    /// `m.inverse()`.
    #[track_caller]
    fn inverse(cx: &Cx, m: Expr<Self>) -> Expr<Self>;
}

macro_rules! vectors_and_matrices {
    ($($vector:ident, $matrix:ident, $n:literal;)*) => {$(
        impl<T: Number> Vector for $vector<T> {
            type Item = T;
            type Square = $matrix<T>;

            #[track_caller]
            fn dot(cx: &Cx, a: Expr<$vector<T>>, b: Expr<$vector<T>>) -> Expr<T> {
                sum_of_products(cx, a.id.to_array(), b.id.to_array())
            }

            #[track_caller]
            fn outer(cx: &Cx, a: Expr<$vector<T>>, b: Expr<$vector<T>>) -> Expr<$matrix<T>> {
                let b = b.id.to_array();
                let row = |a: Expr<T>| $vector::from_array(b.map(|b| mul(cx, a, b)));
                Expr::new($matrix { rows: a.id.to_array().map(row) })
            }
        }

        impl<T: Number> Matrix for $matrix<T> {
            type Item = T;

            fn transpose(m: Expr<$matrix<T>>) -> Expr<$matrix<T>> {
                Expr::new(m.id.transpose())
            }

            #[track_caller]
            fn trace(cx: &Cx, m: Expr<$matrix<T>>) -> Expr<T> {
                let rows = m.id.rows;
                (1..$n).fold(rows[0][0], |sum, k| super::add(cx, sum, rows[k][k]))
            }
        }
    )*};
}

vectors_and_matrices! { Vec2, Mat2, 2; Vec3, Mat3, 3; Vec4, Mat4, 4; }

impl<T: Float> Invertible for Mat2<T> {
    #[track_caller]
    fn determinant(cx: &Cx, m: Expr<Mat2<T>>) -> Expr<T> {
        let [a, b, c, d] = m.id.to_elements();
        sub(cx, mul(cx, a, d), mul(cx, b, c))
    }

    #[track_caller]
    fn inverse(cx: &Cx, m: Expr<Mat2<T>>) -> Expr<Mat2<T>> {
        let [a, b, c, d] = m.id.to_elements();
        let scale = div(cx, constant(cx, T::of(1.0)), <Self as Invertible>::determinant(cx, m));
        let (minus_b, minus_c) = (neg(cx, b), neg(cx, c));
        Expr::new(Mat2::from_elements([d, minus_b, minus_c, a].map(|element| mul(cx, element, scale))))
    }
}

impl<T: Float> Invertible for Mat3<T> {
    #[track_caller]
    fn determinant(cx: &Cx, m: Expr<Mat3<T>>) -> Expr<T> {
        let [a, b, c] = m.id.rows.map(Expr::new);
        dot(cx, a, cross(cx, b, c))
    }

    #[track_caller]
    fn inverse(cx: &Cx, m: Expr<Mat3<T>>) -> Expr<Mat3<T>> {
        let [a, b, c] = m.id.rows.map(Expr::<Vec3<T>>::new);
        let scale = div(cx, constant(cx, T::of(1.0)), <Self as Invertible>::determinant(cx, m));
        let rows = [(b, c), (c, a), (a, b)].map(|(p, q)| mul(cx, cross(cx, p, q), scale).id);
        Expr::new(Mat3 { rows }.transpose())
    }
}

/// `a.dot(b)`.
#[track_caller]
pub fn dot<V: Vector, B: Value + Same<V>>(cx: &Cx, a: Expr<V>, b: Expr<B>) -> Expr<V::Item> {
    V::dot(cx, a, from_ids(&ids(&b)))
}

/// `a.cross(b)`.
#[track_caller]
pub fn cross<T: Number>(cx: &Cx, a: Expr<Vec3<T>>, b: Expr<Vec3<T>>) -> Expr<Vec3<T>> {
    let (a, b) = (a.id, b.id);
    let minor = |p: Expr<T>, q: Expr<T>, r: Expr<T>, s: Expr<T>| sub(cx, mul(cx, p, q), mul(cx, r, s));
    Expr::new(Vec3 {
        x: minor(a.y, b.z, a.z, b.y),
        y: minor(a.z, b.x, a.x, b.z),
        z: minor(a.x, b.y, a.y, b.x),
    })
}

/// `a.norm_squared()`.
#[track_caller]
pub fn norm_squared<V: Vector>(cx: &Cx, a: Expr<V>) -> Expr<V::Item> {
    V::dot(cx, a, a)
}

/// `a.norm()`.
#[track_caller]
pub fn norm<V: Vector<Item: Float>>(cx: &Cx, a: Expr<V>) -> Expr<V::Item> {
    length(cx, V::dot(cx, a, a))
}

/// The length of a vector, of its square. Its slope is zero where it is zero; that of `sqrt` is infinite.
#[track_caller]
pub fn length<T: Float>(cx: &Cx, squared: Expr<T>) -> Expr<T> {
    Expr::new(cx.emit(|b| b.unary(Unary::Norm, squared.id)))
}

/// `a.normalize()`.
#[track_caller]
pub fn normalize<V: Vector<Item: Float + super::Div<V, Output = V>>>(cx: &Cx, a: Expr<V>) -> Expr<V> {
    div(cx, a, norm(cx, a))
}

/// `a.outer(b)`.
#[track_caller]
pub fn outer<V: Vector, B: Value + Same<V>>(cx: &Cx, a: Expr<V>, b: Expr<B>) -> Expr<V::Square> {
    V::outer(cx, a, from_ids(&ids(&b)))
}

/// `m.transpose()`.
pub fn transpose<M: Matrix>(_: &Cx, m: Expr<M>) -> Expr<M> {
    M::transpose(m)
}

/// `m.trace()`.
#[track_caller]
pub fn trace<M: Matrix>(cx: &Cx, m: Expr<M>) -> Expr<M::Item> {
    M::trace(cx, m)
}

/// `m.determinant()`.
#[track_caller]
pub fn determinant<M: Invertible>(cx: &Cx, m: Expr<M>) -> Expr<M::Item> {
    M::determinant(cx, m)
}

/// `m.inverse()`.
#[track_caller]
pub fn inverse<M: Invertible>(cx: &Cx, m: Expr<M>) -> Expr<M> {
    M::inverse(cx, m)
}

/// `m.solve(b)`.
#[track_caller]
pub fn solve<M: Solvable, B: Value + Same<M::Row>>(cx: &Cx, m: Expr<M>, b: Expr<B>) -> Expr<M::Row> {
    M::solve(cx, m, from_ids(&ids(&b)))
}

/// `m.cholesky()`.
#[track_caller]
pub fn cholesky<M: Solvable>(cx: &Cx, m: Expr<M>) -> Expr<M> {
    M::cholesky(cx, m)
}

/// The number that an index is, where it is made of constants.
pub(super) fn constant_index(program: &Program, index: ValueId) -> Option<i64> {
    match *program.op(index) {
        Op::Literal(literal) => literal.to_i64(),
        Op::Binary(op, a, b) => {
            let (a, b) = (constant_index(program, a)?, constant_index(program, b)?);
            match op {
                Binary::Add => a.checked_add(b),
                Binary::Sub => a.checked_sub(b),
                Binary::Mul => a.checked_mul(b),
                Binary::Div => a.checked_div(b),
                Binary::Rem => a.checked_rem(b),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Which of `n` items an index means.
enum Which {
    Item(usize),
    /// It is computed: for each item, a `bool` that says whether it is this one.
    Computed(Vec<ValueId>),
}

#[track_caller]
fn which(cx: &Cx, n: usize, index: ValueId) -> Which {
    match cx.emit(|b| constant_index(b.program(), index)) {
        Some(k) if (0..n as i64).contains(&k) => return Which::Item(k as usize),
        // A run error and not a flaw: in an unrolled loop a branch that is never taken may say so.
        Some(k) => {
            cx.emit(|b| {
                let never = b.literal(Literal::from(false));
                b.assert(never, format!("index {k} is out of bounds: there are {n} items"));
            });
            return Which::Item(0);
        }
        None => {}
    }
    cx.note_computed_index(index);
    cx.emit(|b| {
        let (zero, end) = (b.literal(Literal::index(0)), b.literal(Literal::index(n as i64)));
        let (low, high) = (b.compare(Compare::Ge, index, zero), b.compare(Compare::Lt, index, end));
        let inside = b.binary(Binary::And, low, high);
        b.assert(inside, format!("a computed index is out of bounds: there are {n} items"));
        Which::Computed(
            (0..n as i64)
                .map(|k| {
                    let k = b.literal(Literal::index(k));
                    b.compare(Compare::Eq, index, k)
                })
                .collect(),
        )
    })
}

/// One of the items, chosen by a chain of `select`s where the index is computed.
#[track_caller]
fn pick<T: Value>(cx: &Cx, items: &[Expr<T>], index: ValueId) -> Expr<T> {
    let Some((last, rest)) = items.split_last() else {
        cx.emit(|b| b.flaw("10", "nothing has no items"));
        return super::zero(cx);
    };
    match which(cx, items.len(), index) {
        Which::Item(k) => items[k],
        Which::Computed(here) => {
            let mut chosen = ids(last);
            for (item, here) in rest.iter().zip(here).rev() {
                let item = ids(item);
                for (chosen, item) in chosen.iter_mut().zip(item) {
                    *chosen = cx.emit(|b| b.select(here, item, *chosen));
                }
            }
            from_ids(&chosen)
        }
    }
}

impl<S: Sequence> Indexed<1> for Expr<S> {
    type Elem = S::Item;

    #[track_caller]
    fn load(self, cx: &Cx, [index]: [ValueId; 1]) -> Expr<S::Item> {
        pick(cx, &S::items(&self.id), index)
    }
}

impl<S: Sequence<Item: Sequence>> Indexed<2> for Expr<S> {
    type Elem = <S::Item as Sequence>::Item;

    #[track_caller]
    fn load(self, cx: &Cx, [i, j]: [ValueId; 2]) -> Expr<Self::Elem> {
        pick(cx, &S::items(&self.id), i).load(cx, [j])
    }
}

impl<S: Sequence> Indexed<1> for Local<S> {
    type Elem = S::Item;

    #[track_caller]
    fn load(self, cx: &Cx, [index]: [ValueId; 1]) -> Expr<S::Item> {
        let all: Vec<_> = S::variables(&self.id).iter().map(|item| item.read(cx)).collect();
        pick(cx, &all, index)
    }
}

impl<S: Sequence<Item: Sequence>> Indexed<2> for Local<S> {
    type Elem = <S::Item as Sequence>::Item;

    #[track_caller]
    fn load(self, cx: &Cx, index: [ValueId; 2]) -> Expr<Self::Elem> {
        self.read(cx).load(cx, index)
    }
}

/// A table of constants.
impl<T: Value, const N: usize> Indexed<1> for [T; N] {
    type Elem = T;

    #[track_caller]
    fn load(self, cx: &Cx, [index]: [ValueId; 1]) -> Expr<T> {
        match cx.emit(|b| constant_index(b.program(), index)) {
            // Only the constant that is asked for stands in the program.
            Some(k) if (0..N as i64).contains(&k) => constant(cx, self[k as usize]),
            _ => pick(cx, &self.map(|item| constant(cx, item)), index),
        }
    }
}

/// What is assigned: values for some of the scalars of a variable, and how they are combined with what is there.
#[derive(Clone, Copy)]
struct Assigned<'a> {
    parts: &'a [usize],
    values: &'a [ValueId],
    how: Option<Combine>,
}

/// Sets parts of a variable to values, or combines them, where `here` holds, or everywhere.
#[track_caller]
fn assign<T: Value>(
    cx: &Cx,
    to: &Local<T>,
    Assigned { parts, values, how }: Assigned<'_>,
    here: Option<ValueId>,
) {
    let variables = variables(to);
    for (local, value) in parts.iter().filter_map(|part| variables.get(*part).copied()).zip(values) {
        cx.emit(|b| {
            let old = (how.is_some() || here.is_some()).then(|| b.get(local));
            let mut new = *value;
            if let (Some(how), Some(old)) = (how, old) {
                let op = match how {
                    Combine::Add => Binary::Add,
                    Combine::Min => Binary::Min,
                    Combine::Max => Binary::Max,
                };
                new = b.binary(op, old, new);
            }
            if let (Some(here), Some(old)) = (here, old) {
                new = b.select(here, new, old);
            }
            b.set(local, new);
        });
    }
}

impl<S: Sequence> Stored<1> for Local<S> {
    #[track_caller]
    fn store(
        self,
        cx: &Cx,
        [index]: [ValueId; 1],
        parts: &[usize],
        values: &[ValueId],
        how: Option<Combine>,
    ) {
        let (items, new) = (S::variables(&self.id), Assigned { parts, values, how });
        match which(cx, items.len(), index) {
            Which::Item(k) => items.get(k).into_iter().for_each(|item| assign(cx, item, new, None)),
            Which::Computed(here) => {
                items.iter().zip(here).for_each(|(item, here)| assign(cx, item, new, Some(here)));
            }
        }
    }

    #[track_caller]
    fn store_item(
        self,
        cx: &Cx,
        [index]: [ValueId; 1],
        item: &[ValueId],
        values: &[ValueId],
        how: Option<Combine>,
    ) {
        let [inner] = item else {
            cx.emit(|b| {
                b.flaw("10", "an item of an item of a variable is `a[i][j]`: copy it to a variable first")
            });
            return;
        };
        let n = S::variables(&self.id).len();
        // The scalars of an item, cut into as many as an assignment takes.
        let width = values.len();
        let of_item = small_types::<S::Item>().len();
        for (k, here) in chosen(cx, n, index) {
            for (j, there) in chosen(cx, of_item / width.max(1), *inner) {
                let Some(item) = S::variables(&self.id).get(k).copied() else { continue };
                let parts: Vec<usize> = (j * width..(j + 1) * width).collect();
                let both = match (here, there) {
                    (Some(here), Some(there)) => Some(cx.emit(|b| b.binary(Binary::And, here, there))),
                    (one, None) | (None, one) => one,
                };
                assign(cx, &item, Assigned { parts: &parts, values, how }, both);
            }
        }
    }
}

/// The items that an index may mean, each with the condition that it is meant.
#[track_caller]
fn chosen(cx: &Cx, n: usize, index: ValueId) -> Vec<(usize, Option<ValueId>)> {
    match which(cx, n, index) {
        Which::Item(k) => vec![(k, None)],
        Which::Computed(here) => here.into_iter().map(Some).enumerate().collect(),
    }
}

impl<S: Sequence<Item: Sequence>> Stored<2> for Local<S> {
    #[track_caller]
    fn store(self, cx: &Cx, [i, j]: [ValueId; 2], _: &[usize], values: &[ValueId], how: Option<Combine>) {
        self.store_item(cx, [i], &[j], values, how);
    }

    #[track_caller]
    fn store_item(self, cx: &Cx, _: [ValueId; 2], _: &[ValueId], _: &[ValueId], _: Option<Combine>) {
        cx.emit(|b| {
            b.flaw("10", "an item of an item of a variable is `a[i][j]`: copy it to a variable first")
        });
    }
}

impl<T: Value> Writable for Local<T> {}

macro_rules! shaped {
    ($($t:ty),*) => {$(
        impl<T: Value, const N: usize> Shaped for $t {
            #[track_caller]
            fn dim(self, cx: &Cx, k: usize) -> Expr<usize> {
                if k > 0 {
                    cx.emit(|b| b.flaw("2", format!("there is no dimension {k}: this has one")));
                }
                self.len(cx)
            }

            #[track_caller]
            fn len(self, cx: &Cx) -> Expr<usize> {
                super::lit(cx, N)
            }
        }
    )*};
}

shaped! { [T; N], Expr<[T; N]>, Local<[T; N]> }
