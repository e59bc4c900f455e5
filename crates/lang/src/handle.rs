//! Arrays of a program that is being built, and structs of them.

use std::marker::PhantomData;
use std::path::Path;

use ebbtide_ir::{Access, ArrayId, Binary, Bound, Combine, Literal, ValueId};
use ebbtide_runtime::{Arg, Array, Element as RuntimeElement, Result};

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
    label = "not a value, an array nor a struct of arrays"
)]
pub trait Lent {
    /// What stands for it in the function.
    type Handle: Handle;
}

impl<T: Value> Lent for T {
    type Handle = Local<T>;
}

impl<T: Item, const R: usize> Lent for Array<T, R> {
    type Handle = ArrayHandle<T, R, ByMut>;
}

/// What can be a parameter of a program or a field of a struct of arrays: an array, a scalar, such a struct.
#[diagnostic::on_unimplemented(
    message = "programs cannot see a `{Self}`",
    label = "not an array, a scalar, or a struct of them",
    note = "arrays are `Array0<T>` to `Array4<T>`; a struct of arrays has `#[derive(Arrays)]`; a field of one that \
            programs need not see is marked `#[arrays(skip)]`"
)]
pub trait Field: 'static {
    /// What stands for it while a program is being built.
    type Handle<B: Borrow>: Handle;

    /// The names of its members, for a struct.
    type Names: Send + Sync;

    /// The names of its members, where it has this name itself.
    fn names(name: &'static str) -> Self::Names;

    /// The paths of its arrays and scalars, in the order of its arguments.
    fn paths(name: &str, paths: &mut Vec<String>);

    /// Gives its scalars these values, in the order of its arguments.
    fn set_scalars(&mut self, values: &mut dyn Iterator<Item = Literal>);

    /// Declares it as the next parameter of the program.
    fn declare<B: Borrow>(cx: &Cx, name: &str) -> Self::Handle<B>;

    /// Adds it to the arguments of a launch that reads it.
    fn read_args<'a>(&'a self, args: &mut Vec<Arg<'a>>);

    /// Adds it to the arguments of a launch that writes it.
    fn write_args<'a>(&'a mut self, args: &mut Vec<Arg<'a>>);
}

/// What is passed to programs by reference: arrays, and structs that derive it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a program by reference",
    label = "not an array nor a struct of arrays",
    note = "arrays are `Array0<T>` to `Array4<T>`; a struct of arrays has `#[derive(Arrays)]`; scalars are passed by \
            value, and what a program computes goes into an array: `loss: &mut Array0<f64>`"
)]
pub trait Arrays: Field + Sized {
    /// Writes all arrays and scalars to a file (`safetensors`), each under its path: `grid.u`. Fields with
    /// `#[arrays(skip)]` are not in it.
    ///
    /// The file is complete, and safe against a power cut, when this returns; one that has this name already is
    /// replaced in one move.
    fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut args = Vec::new();
        self.read_args(&mut args);
        let members: Vec<(String, Arg<'_>)> = paths::<Self>().into_iter().zip(args).collect();
        ebbtide_runtime::save(path.as_ref(), &members)
    }

    /// Reads back what [`Arrays::save`] wrote. Names, types and shapes in the file must be those of `self`, all of them: the
    /// error lists what is not, and nothing has changed then. Fields with `#[arrays(skip)]` are left alone.
    fn load(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let mut args = Vec::new();
        self.write_args(&mut args);
        let mut members: Vec<(String, Arg<'_>)> = paths::<Self>().into_iter().zip(args).collect();
        let scalars = ebbtide_runtime::load(path.as_ref(), &mut members)?;
        self.set_scalars(&mut scalars.into_iter());
        Ok(())
    }
}

fn paths<F: Field>() -> Vec<String> {
    let mut paths = Vec::new();
    F::paths("", &mut paths);
    // An array by itself has no name of its own.
    paths.into_iter().map(|path| if path.is_empty() { "array".to_string() } else { path }).collect()
}

/// The path of a member.
pub fn member(of: &str, name: &str) -> String {
    if of.is_empty() { name.to_string() } else { format!("{of}.{name}") }
}

impl<T: Item, const R: usize> Field for Array<T, R> {
    type Handle<B: Borrow> = ArrayHandle<T, R, B>;
    type Names = ();

    fn names(_: &'static str) {}

    fn paths(name: &str, paths: &mut Vec<String>) {
        paths.push(name.to_string());
    }

    fn set_scalars(&mut self, _: &mut dyn Iterator<Item = Literal>) {}

    fn declare<B: Borrow>(cx: &Cx, name: &str) -> ArrayHandle<T, R, B> {
        let (ty, rank) = (<T::Scalar as RuntimeElement>::TYPE, R + T::EXTENTS.len());
        ArrayHandle::new(cx.emit(|b| b.array(name, ty, rank, B::ACCESS)))
    }

    fn read_args<'a>(&'a self, args: &mut Vec<Arg<'a>>) {
        args.push(Arg::Read(self.any()));
    }

    fn write_args<'a>(&'a mut self, args: &mut Vec<Arg<'a>>) {
        args.push(Arg::Write(self.any_mut()));
    }
}

impl<T: Item, const R: usize> Arrays for Array<T, R> {}

/// Values as members: constant during a launch, with one argument for each of their scalars.
#[doc(hidden)]
pub mod values {
    use super::*;

    pub fn paths<T: Value>(name: &str, paths: &mut Vec<String>) {
        T::names(name, &mut |name| paths.push(name));
    }

    /// Where there are no more, or one of another type, the old scalar stays.
    pub fn set_scalars<T: Value>(value: &mut T, new: &mut dyn Iterator<Item = Literal>) {
        let mut old = Vec::new();
        value.literals(&mut |literal| old.push(literal));
        let mut old = old.into_iter();
        *value = T::of_literals(&mut || match (new.next(), old.next()) {
            (Some(new), Some(old)) if new.ty() == old.ty() => new,
            (_, Some(old)) => old,
            _ => unreachable!("a value has as many literals as scalars"),
        });
    }

    pub fn args<T: Value>(value: T, args: &mut Vec<Arg<'_>>) {
        value.literals(&mut |literal| args.push(Arg::Scalar(literal)));
    }
}

// One by one: a blanket implementation would blame a struct of arrays for not being a value.
macro_rules! value_fields {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        impl<$($generics)*> Field for $t {
            type Handle<Borrowed: Borrow> = Expr<$t>;
            type Names = ();

            fn names(_: &'static str) {}

            fn paths(name: &str, paths: &mut Vec<String>) {
                values::paths::<$t>(name, paths);
            }

            fn set_scalars(&mut self, new: &mut dyn Iterator<Item = Literal>) {
                values::set_scalars(self, new);
            }

            fn declare<Borrowed: Borrow>(cx: &Cx, name: &str) -> Expr<$t> {
                <$t as Value>::declare(cx, name)
            }

            fn read_args<'a>(&'a self, args: &mut Vec<Arg<'a>>) {
                values::args(*self, args);
            }

            fn write_args<'a>(&'a mut self, args: &mut Vec<Arg<'a>>) {
                values::args(*self, args);
            }
        }
    )*};
}

crate::small::all_values! { value_fields }

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
