//! What programs take as parameters, and structs of arrays have as fields.

use std::path::Path;

use ebbtide_ir::Literal;
use ebbtide_runtime::{Arg, Array, Element as RuntimeElement, Result};

use crate::cx::Cx;
use crate::handle::{ArrayHandle, Borrow, Handle};
use crate::scalar::Item;
use crate::small::Value;
use crate::value::Expr;

/// What can be a parameter of a program or a field of a struct of arrays: an array, a scalar, such a struct.
#[diagnostic::on_unimplemented(
    message = "programs cannot see a `{Self}`",
    label = "not an array, a scalar, or a struct of them",
    note = "arrays are `Array0<T>` to `Array4<T>`; a struct of arrays has `#[derive(Arrays)]`; a field of one that \
            programs need not see is marked `#[arrays(skip)]`"
)]
pub trait Field: 'static {
    /// That it is part of the language: see [`Known`](crate::Known).
    #[doc(hidden)]
    const IS_KNOWN: bool = true;

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
