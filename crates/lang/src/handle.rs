//! Arrays of a program that is being built: what stands for them, what is passed for them, and their elements.

use std::marker::PhantomData;

use ebbtide_ir::{Access, ArrayId, Binary, Bound, Combine, Literal, ValueId};
use ebbtide_runtime::Array;

use crate::cx::Cx;
use crate::scalar::Item;
use crate::small::{self, Value};
use crate::value::{Expr, Local, Readable};
use crate::view::View;

/// How a parameter is borrowed: [`ByRef`] or [`ByMut`].
pub trait Borrow: Copy + 'static {
    /// What the program may do with it.
    const ACCESS: Access;
}

/// Borrowed with `&`: may be read.
#[derive(Clone, Copy, Debug)]
pub struct ByRef;

/// Borrowed with `&mut`: may be read and written.
#[derive(Clone, Copy, Debug)]
pub struct ByMut;

impl Borrow for ByRef {
    const ACCESS: Access = Access::Read;
}

impl Borrow for ByMut {
    const ACCESS: Access = Access::Write;
}

/// An array of rank `R` of the program being built, borrowed as `B` says.
#[derive(Debug)]
pub struct ArrayHandle<T, const R: usize, B> {
    pub(crate) id: ArrayId,
    /// The part of the array that it stands for.
    pub(crate) view: View,
    types: PhantomData<(T, B)>,
}

impl<T, const R: usize, B> ArrayHandle<T, R, B> {
    /// A handle of this whole array, which must have this type and rank.
    #[doc(hidden)]
    pub fn new(id: ArrayId) -> ArrayHandle<T, R, B> {
        ArrayHandle::of_view(id, View::whole())
    }

    pub(crate) fn of_view(id: ArrayId, view: View) -> ArrayHandle<T, R, B> {
        ArrayHandle { id, view, types: PhantomData }
    }

    /// The array, and the part of it that the handle stands for.
    #[doc(hidden)]
    pub fn part(self) -> (ArrayId, View) {
        (self.id, self.view)
    }
}

impl<T: Item, const R: usize, B> ArrayHandle<T, R, B> {
    /// The number of its first dimension in the array: those before it are fixed by the view.
    fn first(&self) -> usize {
        self.view.fixed()
    }

    /// Gives an element a value.
    #[track_caller]
    pub(crate) fn store_all(&self, cx: &Cx, index: [ValueId; R], values: &[ValueId]) {
        for (at, value) in self.scalars(cx, &index).iter().zip(values) {
            cx.emit(|b| b.store(self.id, at, *value));
        }
    }

    /// The indices of the scalars of an element, in the order of its parts.
    #[track_caller]
    pub(crate) fn scalars(&self, cx: &Cx, index: &[ValueId]) -> Vec<Vec<ValueId>> {
        let mut all = vec![self.view.place(cx, index)];
        for extent in T::EXTENTS {
            let mut longer = Vec::new();
            for at in all {
                for k in 0..*extent {
                    let k = cx.emit(|b| b.literal(Literal::index(k as i64)));
                    longer.push([&at[..], &[k]].concat());
                }
            }
            all = longer;
        }
        all
    }
}

/// All indices of an array of these extents, last dimension fastest.
fn places(extents: &[usize]) -> Vec<Vec<usize>> {
    extents.iter().fold(vec![Vec::new()], |places, extent| {
        places.iter().flat_map(|place| (0..*extent).map(move |k| [&place[..], &[k]].concat())).collect()
    })
}

/// Something behind a parameter: an array, perhaps a part of it, or a scalar.
#[derive(Clone, Copy, Debug)]
pub struct Behind {
    /// The array or scalar.
    pub bound: Bound,
    /// The part of the array.
    pub view: View,
}

impl<T, const R: usize, B> Clone for ArrayHandle<T, R, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const R: usize, B> Copy for ArrayHandle<T, R, B> {}

/// What stands for a parameter while a program is being built.
pub trait Handle: Copy + 'static {
    /// Visits the arrays and scalars behind it, in order.
    fn bound(&self, visit: &mut dyn FnMut(Behind));
}

impl<T: Item, const R: usize, B: Borrow> Handle for ArrayHandle<T, R, B> {
    fn bound(&self, visit: &mut dyn FnMut(Behind)) {
        visit(Behind { bound: Bound::Array(self.id, B::ACCESS), view: self.view });
    }
}

impl<T: Value> Handle for Expr<T> {
    fn bound(&self, visit: &mut dyn FnMut(Behind)) {
        T::each_expr(&self.id, &mut |id| visit(Behind { bound: Bound::Scalar(id), view: View::whole() }));
    }
}

/// A variable that is lent to a function.
impl<T: Value> Handle for Local<T> {
    fn bound(&self, _: &mut dyn FnMut(Behind)) {}
}

/// What a `#[func]` can take by `&mut`: variables, whose handle is the variable itself, arrays and structs of arrays.
#[diagnostic::on_unimplemented(
    message = "a `#[func]` cannot take a `{Self}` by `&mut`",
    label = "not a value, an array nor a struct of arrays",
    note = "a struct of values has `#[derive(Clone, Copy, Value)]`, a struct of arrays `#[derive(Arrays)]`"
)]
pub trait Lent {
    /// That it is part of the language: see [`Known`](crate::Known).
    #[doc(hidden)]
    const IS_KNOWN: bool = true;

    /// What stands for it in the function.
    type Handle: Handle;
}

impl<T: Value> Lent for T {
    type Handle = Local<T>;
}

impl<T: Item, const R: usize> Lent for Array<T, R> {
    type Handle = ArrayHandle<T, R, ByMut>;
}

macro_rules! scalar_arguments {
    ($($t:ty)*) => {$(
        impl Argument<Expr<$t>> for $t {
            #[track_caller]
            fn pass(&self, cx: &Cx) -> Expr<$t> {
                self.read(cx)
            }
        }
    )*};
}

scalar_arguments! { f32 f64 i32 i64 u32 bool usize }

/// What can be passed for a parameter `P` of a called program or function.
#[diagnostic::on_unimplemented(
    message = "the parameter is `{P}`, this argument is `{Self}`",
    label = "this is `{Self}`, the parameter is `{P}`",
    note = "where the called program writes an array, the caller's parameter must be `&mut` too; scalars are not \
            converted by themselves: write `x as f64`"
)]
pub trait Argument<P> {
    /// The argument as the callee sees it.
    #[track_caller]
    fn pass(&self, cx: &Cx) -> P;
}

impl<T: Item, const R: usize, B: Borrow> Argument<ArrayHandle<T, R, ByRef>> for ArrayHandle<T, R, B> {
    fn pass(&self, _: &Cx) -> ArrayHandle<T, R, ByRef> {
        ArrayHandle::of_view(self.id, self.view)
    }
}

impl<T: Item, const R: usize> Argument<ArrayHandle<T, R, ByMut>> for ArrayHandle<T, R, ByMut> {
    fn pass(&self, _: &Cx) -> ArrayHandle<T, R, ByMut> {
        *self
    }
}

impl<T: Value> Argument<Expr<T>> for Expr<T> {
    fn pass(&self, _: &Cx) -> Expr<T> {
        *self
    }
}

impl<T: Value> Argument<Expr<T>> for Local<T> {
    #[track_caller]
    fn pass(&self, cx: &Cx) -> Expr<T> {
        self.read(cx)
    }
}

impl<T: Value> Argument<Local<T>> for Local<T> {
    fn pass(&self, _: &Cx) -> Local<T> {
        *self
    }
}

/// What can be indexed with `K` indices: an array of rank `K`, a vector, a matrix, an array of a fixed length.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not indexed with {K} indices",
    label = "indexed with {K} indices",
    note = "an array of rank 0 is indexed `a[[]]`, of rank 1 `a[i]`, of rank 2 `a[[i, j]]`, and so on to rank 4; vectors \
            `v[k]`, matrices `m[[i, j]]`"
)]
pub trait Indexed<const K: usize>: Copy {
    /// The type of the elements.
    type Elem: Value;

    /// An element, as it is here.
    #[track_caller]
    fn load(self, cx: &Cx, index: [ValueId; K]) -> Expr<Self::Elem>;
}

/// What has elements that can be assigned to.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not indexed with {K} indices",
    label = "indexed with {K} indices",
    note = "an array of rank 0 is indexed `a[[]]`, of rank 1 `a[i]`, of rank 2 `a[[i, j]]`, and so on to rank 4; a component \
            of an element is `a[i].x`, `a[i][k]` or `a[i][[r, c]]`"
)]
pub trait Stored<const K: usize>: Indexed<K> {
    /// Gives parts of an element values, or combines them; `parts` are the numbers of its scalars.
    #[track_caller]
    fn store(self, cx: &Cx, index: [ValueId; K], parts: &[usize], values: &[ValueId], how: Option<Combine>);

    /// Gives an item of an element a value, or combines the two: `a[i][k] = x`, `a[i][[r, c]] = x`.
    #[track_caller]
    fn store_item(
        self,
        cx: &Cx,
        index: [ValueId; K],
        item: &[ValueId],
        values: &[ValueId],
        how: Option<Combine>,
    );
}

/// An array of rank `K`.
pub trait OfRank<const K: usize>: Indexed<K> {
    /// Gives an element a value, where all indices of a parallel loop differ.
    #[track_caller]
    fn store_unique(self, cx: &Cx, index: [ValueId; K], value: ValueId);
}

impl<T: Item, const R: usize, B: Borrow> Indexed<R> for ArrayHandle<T, R, B> {
    type Elem = T;

    #[track_caller]
    fn load(self, cx: &Cx, index: [ValueId; R]) -> Expr<T> {
        let mut all = Vec::new();
        // A loop and not an iterator: the place in the source is the caller's, which a closure does not pass on.
        for at in self.scalars(cx, &index) {
            all.push(cx.emit(|b| b.load(self.id, &at)));
        }
        small::from_ids(&all)
    }
}

impl<T: Item, const R: usize, B: Borrow> Stored<R> for ArrayHandle<T, R, B> {
    #[track_caller]
    fn store(self, cx: &Cx, index: [ValueId; R], parts: &[usize], values: &[ValueId], how: Option<Combine>) {
        let scalars = self.scalars(cx, &index);
        let at = |part: &usize| scalars.get(*part);
        for (at, value) in parts.iter().map(at).zip(values) {
            let Some(at) = at else { continue };
            cx.emit(|b| match how {
                None => b.store(self.id, at, *value),
                Some(how) => b.update(how, self.id, at, *value),
            });
        }
    }

    #[track_caller]
    fn store_item(
        self,
        cx: &Cx,
        index: [ValueId; R],
        item: &[ValueId],
        values: &[ValueId],
        how: Option<Combine>,
    ) {
        let rest = T::EXTENTS.get(item.len()..).unwrap_or(&[]);
        let element = self.view.place(cx, &index);
        for (place, value) in places(rest).into_iter().zip(values) {
            cx.emit(|b| {
                let place: Vec<_> = place.into_iter().map(|k| b.literal(Literal::index(k as i64))).collect();
                let at = [&element[..], item, &place].concat();
                match how {
                    None => b.store(self.id, &at, *value),
                    Some(how) => b.update(how, self.id, &at, *value),
                }
            });
        }
    }
}

impl<T: Item, const R: usize, B: Borrow> OfRank<R> for ArrayHandle<T, R, B> {
    #[track_caller]
    fn store_unique(self, cx: &Cx, index: [ValueId; R], value: ValueId) {
        let at = self.view.place(cx, &index);
        cx.emit(|b| b.store_unique(self.id, &at, value));
    }
}

/// An array of any rank, or of a fixed length: what has `len()` and `dim(k)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array: only arrays have `len()` and `dim(k)`",
    label = "not an array"
)]
pub trait Shaped: Copy {
    /// An extent.
    #[track_caller]
    fn dim(self, cx: &Cx, k: usize) -> Expr<usize>;

    /// The number of elements.
    #[track_caller]
    fn len(self, cx: &Cx) -> Expr<usize>;
}

impl<T: Item, const R: usize, B: Borrow> Shaped for ArrayHandle<T, R, B> {
    #[track_caller]
    fn dim(self, cx: &Cx, k: usize) -> Expr<usize> {
        Expr::new(cx.emit(|b| {
            if k >= R {
                let name = b.program().array(self.id).name.clone();
                b.flaw("2", format!("`{name}` has rank {R}: there is no dimension {k}"));
                return b.literal(Literal::index(0));
            }
            match self.view.extent() {
                Some(extent) if k == 0 => extent,
                _ => b.dim(self.id, self.first() + k),
            }
        }))
    }

    #[track_caller]
    fn len(self, cx: &Cx) -> Expr<usize> {
        let mut extents = Vec::new();
        for k in 0..R {
            extents.push(self.dim(cx, k).id);
        }
        Expr::new(cx.emit(|b| {
            let product = extents.into_iter().reduce(|a, e| b.binary(Binary::Mul, a, e));
            product.unwrap_or_else(|| b.literal(Literal::index(1)))
        }))
    }
}

/// An array that may be written.
#[diagnostic::on_unimplemented(
    message = "this cannot be written: declare a parameter `&mut`, a variable `let mut`",
    label = "`{Self}` cannot be written",
    note = "a parameter that is written is `&mut`, a temporary that is written `let mut`"
)]
pub trait Writable: Copy {}

impl<T, const R: usize> Writable for ArrayHandle<T, R, ByMut> {}

/// An array that can make a program yield.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a flag",
    label = "not a flag",
    note = "a flag is an `Array0` of `i32`, `u32` or `bool`"
)]
pub trait Flag: Copy {
    /// The array.
    fn array(self) -> ArrayId;
}

macro_rules! flags {
    ($($t:ty)*) => {$(
        impl<B: Borrow> Flag for ArrayHandle<$t, 0, B> {
            fn array(self) -> ArrayId {
                self.id
            }
        }
    )*};
}

flags! { i32 u32 bool }
