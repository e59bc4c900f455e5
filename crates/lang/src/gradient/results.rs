//! What gradients give: derivatives and values, by the types of the parameters that they belong to.

use std::any::Any;
use std::fmt;

use ebbtide_runtime::{AnyMut, Array, Array0, Device, Error, Ran, Result};

use crate::named::Named;
use crate::program::Name;
use crate::scalar::{Float, Item};
use crate::small::{Mat2, Mat3, Mat4, Value, Vec2, Vec3, Vec4};
use crate::struct_leaves::{Leaves, Wanted};

/// A parameter that can have a derivative: an array, a scalar, a vector or matrix, or a struct that derives `Arrays` or `Value`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no derivative",
    note = "f32 and f64, vectors and matrices of them, arrays of these, and structs have"
)]
pub trait Differentiable: Sized + 'static {
    /// How its derivative is given to the user: an array by reference, a scalar by value, a struct as a struct of its own.
    type Derivative<'a>;

    /// Asks for the derivatives with respect to all that it is made of.
    #[doc(hidden)]
    fn want(name: &str, wanted: &mut Wanted);

    /// The derivative, put together.
    #[doc(hidden)]
    fn derivative<'a>(from: &'a Gradients, name: &str) -> Result<Self::Derivative<'a>>;
}

impl<T: Item, const R: usize> Differentiable for Array<T, R> {
    type Derivative<'a> = &'a Array<T, R>;

    fn want(name: &str, wanted: &mut Wanted) {
        wanted.add::<Array<T, R>>(name);
    }

    fn derivative<'a>(from: &'a Gradients, name: &str) -> Result<&'a Array<T, R>> {
        from.get_named::<Array<T, R>>(name)
    }
}

/// A small value has derivatives of the same type; a part that is no float has a zero there.
macro_rules! differentiable_values {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        impl<$($generics)*> Differentiable for $t {
            type Derivative<'a> = $t;

            fn want(name: &str, wanted: &mut Wanted) {
                <$t as Leaves>::want(name, wanted);
            }

            fn derivative(from: &Gradients, name: &str) -> Result<$t> {
                <$t as Leaves>::of_gradients(name, from)
            }
        }
    )*};
}

differentiable_values! {
    [T: Float] Vec2<T>;
    [T: Float] Vec3<T>;
    [T: Float] Vec4<T>;
    [T: Float] Mat2<T>;
    [T: Float] Mat3<T>;
    [T: Float] Mat4<T>;
    [T: Value + Differentiable, const N: usize] [T; N];
    [A: Value, B: Value] (A, B);
    [A: Value, B: Value, C: Value] (A, B, C);
    [A: Value, B: Value, C: Value, D: Value] (A, B, C, D);
    [A: Value, B: Value, C: Value, D: Value, E: Value] (A, B, C, D, E);
    [A: Value, B: Value, C: Value, D: Value, E: Value, F: Value] (A, B, C, D, E, F);
}

/// An array or a scalar that can have a derivative.
pub trait DifferentiableLeaf: Sized + 'static {
    /// What holds the derivative.
    type Holder: Any + Send + Sync;
    /// How it is given to the user.
    type Derivative<'a>;

    /// An empty holder for a parameter of this shape.
    fn holder(device: &Device, shape: &[usize]) -> Result<Self::Holder>;
    /// The array in the holder.
    fn array(holder: &mut Self::Holder) -> AnyMut<'_>;
    /// The derivative in the holder.
    fn derivative(holder: &Self::Holder) -> Self::Derivative<'_>;
}

impl<T: Item, const R: usize> DifferentiableLeaf for Array<T, R> {
    type Holder = Array<T, R>;
    type Derivative<'a> = &'a Array<T, R>;

    fn holder(device: &Device, shape: &[usize]) -> Result<Array<T, R>> {
        let mut extents = [0; R];
        extents.iter_mut().zip(shape).for_each(|(e, s)| *e = *s);
        device.zeros(extents)
    }

    fn array(holder: &mut Array<T, R>) -> AnyMut<'_> {
        holder.any_mut()
    }

    fn derivative(holder: &Array<T, R>) -> &Array<T, R> {
        holder
    }
}

macro_rules! differentiable_scalars {
    ($($t:ty)*) => {$(
        impl Differentiable for $t {
            type Derivative<'a> = $t;

            fn want(name: &str, wanted: &mut Wanted) {
                wanted.add::<$t>(name);
            }

            fn derivative(from: &Gradients, name: &str) -> Result<$t> {
                from.get_named::<$t>(name)
            }
        }

        impl DifferentiableLeaf for $t {
            type Holder = Array0<$t>;
            type Derivative<'a> = $t;

            fn holder(device: &Device, _: &[usize]) -> Result<Array0<$t>> {
                device.zeros([])
            }

            fn array(holder: &mut Array0<$t>) -> AnyMut<'_> {
                holder.any_mut()
            }

            fn derivative(holder: &Array0<$t>) -> $t {
                holder.value()
            }
        }
    )*};
}

differentiable_scalars! { f32 f64 }

/// Something that a gradient run fills.
pub(crate) trait Output: Send + Sync {
    fn array(&mut self) -> AnyMut<'_>;
    fn holder(&self) -> &dyn Any;
}

struct Held<T: DifferentiableLeaf>(T::Holder);

impl<T: DifferentiableLeaf> Output for Held<T> {
    fn array(&mut self) -> AnyMut<'_> {
        T::array(&mut self.0)
    }

    fn holder(&self) -> &dyn Any {
        &self.0
    }
}

pub(crate) type MakeOutput = fn(&Device, &[usize]) -> Result<Box<dyn Output>>;

pub(crate) fn make_output<T: DifferentiableLeaf>(
    device: &Device,
    shape: &[usize],
) -> Result<Box<dyn Output>> {
    Ok(Box::new(Held::<T>(T::holder(device, shape)?)))
}

/// What a gradient run gives.
pub struct Gradients {
    pub(super) values: Vec<(String, Box<dyn Output>)>,
    pub(super) derivatives: Vec<(String, Box<dyn Output>)>,
    pub(super) ran: Ran,
}

impl Gradients {
    pub(crate) fn new(derivatives: Vec<(String, Box<dyn Output>)>, ran: Ran) -> Gradients {
        Gradients { values: Vec::new(), derivatives, ran }
    }

    /// The derivative with respect to a parameter: an array by reference, a scalar or small value by value, a struct as a struct of
    /// copies (its fields that have no derivative are empty arrays, zeros and defaults).
    pub fn get<T: Differentiable>(&self, name: impl Named<T>) -> Result<T::Derivative<'_>> {
        T::derivative(self, name.name().as_str())
    }

    /// The derivative with respect to a member of a struct, by its path.
    pub fn get_named<T: DifferentiableLeaf>(&self, name: &str) -> Result<T::Derivative<'_>> {
        find::<T>(&self.derivatives, name).map(T::derivative)
    }

    /// The value of an output at the end of the program.
    pub fn value<T: Item, const R: usize>(&self, name: Name<Array<T, R>>) -> Result<&Array<T, R>> {
        find::<Array<T, R>>(&self.values, name.as_str())
    }

    /// What the run did.
    pub fn ran(&self) -> Ran {
        self.ran
    }
}

fn find<'a, T: DifferentiableLeaf>(
    outputs: &'a [(String, Box<dyn Output>)],
    name: &str,
) -> Result<&'a T::Holder> {
    let found =
        outputs.iter().find(|(n, _)| n == name).and_then(|(_, o)| o.holder().downcast_ref::<T::Holder>());
    found.ok_or_else(|| {
        let mut known: Vec<String> = outputs.iter().map(|(n, _)| format!("`{n}`")).collect();
        if known.is_empty() {
            known.push(
                "no such thing: `.wrt(..)` asks for a derivative, `.value(..)` for a value".to_string(),
            );
        }
        Error::NotAskedFor { name: name.to_string(), known: known.join(", ") }
    })
}

impl fmt::Debug for Gradients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.derivatives.iter().map(|(n, _)| n.as_str()).collect();
        write!(f, "Gradients({})", names.join(", "))
    }
}
