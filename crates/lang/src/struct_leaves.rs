//! The float leaves of a struct of arrays: what derivatives with respect to it are made of, and what an optimiser changes.
//!
//! Input: an array, a scalar, or a struct that derives `Arrays`. Output: its arrays and scalars of `f32` and `f64`, in the
//! order of its fields. Fields of other types and those with `#[arrays(skip)]` are no leaves.

use std::marker::PhantomData;

use ebbtide_ir::{Literal, Type};
use ebbtide_runtime::{Array, Device, Element as RuntimeElement, Error, Result, interpreter};

use crate::gradient::{DifferentiableLeaf, Gradients, MakeOutput, make_output};
use crate::scalar::Item;
use crate::small::{Value, names, types};

/// The leaves that a gradient is asked for.
#[derive(Default)]
pub struct Wanted {
    pub(crate) leaves: Vec<(String, MakeOutput)>,
}

impl Wanted {
    pub(crate) fn add<T: DifferentiableLeaf>(&mut self, name: &str) {
        self.leaves.push((name.to_string(), make_output::<T>));
    }
}

/// The elements of a leaf.
#[derive(Debug)]
pub enum Floats<'a> {
    /// Elements of `f32`.
    F32(&'a [f32]),
    /// Elements of `f64`.
    F64(&'a [f64]),
}

/// The elements of a leaf, to be changed.
#[derive(Debug)]
pub enum FloatsMut<'a> {
    /// Elements of `f32`.
    F32(&'a mut [f32]),
    /// Elements of `f64`.
    F64(&'a mut [f64]),
}

/// What has float leaves: arrays, scalars, and structs that derive `Arrays`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no leaves: it is neither an array, nor a scalar, nor a struct of them",
    label = "not an array, a scalar, or a struct of them",
    note = "a field that programs need not see is marked `#[arrays(skip)]`"
)]
pub trait Leaves: Sized + 'static {
    /// Asks for the derivatives with respect to all leaves.
    #[doc(hidden)]
    fn want(name: &str, wanted: &mut Wanted);

    /// A struct of these derivatives.
    #[doc(hidden)]
    fn of_gradients(name: &str, from: &Gradients) -> Result<Self>;

    /// Adds the leaves, by their paths.
    #[doc(hidden)]
    fn add_leaves<'a>(&'a self, name: &str, leaves: &mut Vec<(String, Floats<'a>)>);

    /// Adds the leaves, by their paths, to be changed.
    #[doc(hidden)]
    fn add_leaves_mut<'a>(&'a mut self, name: &str, leaves: &mut Vec<(String, FloatsMut<'a>)>);

    /// The leaves by their paths: `grid.u`.
    fn leaves(&self) -> Vec<(String, Floats<'_>)> {
        let mut leaves = Vec::new();
        self.add_leaves("", &mut leaves);
        leaves
    }

    /// The leaves by their paths, to be changed. They are in the memory of the host while they are looked at.
    fn leaves_mut(&mut self) -> Vec<(String, FloatsMut<'_>)> {
        let mut leaves = Vec::new();
        self.add_leaves_mut("", &mut leaves);
        leaves
    }

    /// Gives every element of every leaf a new value. `f32` is computed in `f64` and rounded.
    fn map_leaves(&mut self, mut f: impl FnMut(f64) -> f64) {
        for (_, leaf) in self.leaves_mut() {
            match leaf {
                FloatsMut::F32(elements) => elements.iter_mut().for_each(|x| *x = f(f64::from(*x)) as f32),
                FloatsMut::F64(elements) => elements.iter_mut().for_each(|x| *x = f(*x)),
            }
        }
    }

    /// Gives every element of every leaf a new value, from its own and that of the same element of `other`: a step of an
    /// optimiser is `w.zip_leaves(&dw, |w, dw| w - 0.1 * dw)?`. Shapes that differ are an error, and nothing has changed then.
    fn zip_leaves(&mut self, other: &Self, mut f: impl FnMut(f64, f64) -> f64) -> Result<()> {
        let length = |floats: &Floats<'_>| match floats {
            Floats::F32(elements) => elements.len(),
            Floats::F64(elements) => elements.len(),
        };
        let others = other.leaves();
        for ((_, own), (_, other)) in self.leaves().iter().zip(&others) {
            if length(own) != length(other) {
                return Err(Error::ShapesDiffer { left: vec![length(own)], right: vec![length(other)] });
            }
        }
        for ((_, own), (_, other)) in self.leaves_mut().into_iter().zip(others) {
            match (own, other) {
                (FloatsMut::F32(own), Floats::F32(other)) => {
                    own.iter_mut().zip(other).for_each(|(x, y)| *x = f(f64::from(*x), f64::from(*y)) as f32);
                }
                (FloatsMut::F64(own), Floats::F64(other)) => {
                    own.iter_mut().zip(other).for_each(|(x, y)| *x = f(*x, *y));
                }
                // The leaves of one type have one order.
                _ => {}
            }
        }
        Ok(())
    }
}

/// The leaf of an array of small values has their components as elements, one after the other.
impl<T: Item, const R: usize> Leaves for Array<T, R> {
    fn want(name: &str, wanted: &mut Wanted) {
        if <T::Scalar as RuntimeElement>::TYPE.is_float() {
            wanted.add::<Array<T, R>>(name);
        }
    }

    fn of_gradients(name: &str, from: &Gradients) -> Result<Self> {
        if <T::Scalar as RuntimeElement>::TYPE.is_float() {
            return from.get_named::<Array<T, R>>(name)?.try_clone();
        }
        // What has no derivative has no elements either.
        let device: Device = interpreter();
        device.zeros([0; R])
    }

    fn add_leaves<'a>(&'a self, name: &str, leaves: &mut Vec<(String, Floats<'a>)>) {
        if let Some(elements) = self.any().as_slice::<f32>() {
            leaves.push((name.to_string(), Floats::F32(elements)));
        } else if let Some(elements) = self.any().as_slice::<f64>() {
            leaves.push((name.to_string(), Floats::F64(elements)));
        }
    }

    fn add_leaves_mut<'a>(&'a mut self, name: &str, leaves: &mut Vec<(String, FloatsMut<'a>)>) {
        if <T::Scalar as RuntimeElement>::TYPE == Type::F32 {
            if let Some(elements) = self.any_mut().into_mut_slice() {
                leaves.push((name.to_string(), FloatsMut::F32(elements)));
            }
        } else if let Some(elements) = self.any_mut().into_mut_slice() {
            leaves.push((name.to_string(), FloatsMut::F64(elements)));
        }
    }
}

/// The leaves of a value are its floats, each by its path: `gravity.x`.
#[doc(hidden)]
pub mod values {
    use super::*;

    pub fn want<T: Value>(name: &str, wanted: &mut Wanted) {
        for (name, ty) in names::<T>(name).iter().zip(types::<T>()) {
            match ty {
                Type::F32 => wanted.add::<f32>(name),
                Type::F64 => wanted.add::<f64>(name),
                _ => {}
            }
        }
    }

    pub fn of_gradients<T: Value>(name: &str, from: &Gradients) -> Result<T> {
        let mut literals = Vec::new();
        for (name, ty) in names::<T>(name).iter().zip(types::<T>()) {
            literals.push(match ty {
                Type::F32 => Literal::from(from.get_named::<f32>(name)?),
                Type::F64 => Literal::from(from.get_named::<f64>(name)?),
                other => Literal::zero(other),
            });
        }
        let mut next = literals.into_iter();
        Ok(T::of_literals(&mut || match next.next() {
            Some(literal) => literal,
            None => unreachable!("a value has as many literals as scalars"),
        }))
    }

    pub fn add_leaves<'a, T: Value>(value: &'a T, name: &str, leaves: &mut Vec<(String, Floats<'a>)>) {
        let mut paths = names::<T>(name).into_iter();
        value.scalars(&mut |scalar| {
            let path = paths.next().unwrap_or_default();
            if let Some(x) = scalar.downcast_ref::<f32>() {
                leaves.push((path, Floats::F32(std::slice::from_ref(x))));
            } else if let Some(x) = scalar.downcast_ref::<f64>() {
                leaves.push((path, Floats::F64(std::slice::from_ref(x))));
            }
        });
    }

    pub fn add_leaves_mut<'a, T: Value>(
        value: &'a mut T,
        name: &str,
        leaves: &mut Vec<(String, FloatsMut<'a>)>,
    ) {
        let mut paths = names::<T>(name).into_iter();
        value.scalars_mut(&mut |scalar| {
            let path = paths.next().unwrap_or_default();
            if scalar.is::<f32>() {
                if let Some(x) = scalar.downcast_mut::<f32>() {
                    leaves.push((path, FloatsMut::F32(std::slice::from_mut(x))));
                }
            } else if let Some(x) = scalar.downcast_mut::<f64>() {
                leaves.push((path, FloatsMut::F64(std::slice::from_mut(x))));
            }
        });
    }
}

macro_rules! value_leaves {
    ($([$($generics:tt)*] $t:ty;)*) => {$(
        impl<$($generics)*> Leaves for $t {
            fn want(name: &str, wanted: &mut Wanted) {
                values::want::<$t>(name, wanted);
            }

            fn of_gradients(name: &str, from: &Gradients) -> Result<$t> {
                values::of_gradients(name, from)
            }

            fn add_leaves<'a>(&'a self, name: &str, leaves: &mut Vec<(String, Floats<'a>)>) {
                values::add_leaves(self, name, leaves);
            }

            fn add_leaves_mut<'a>(&'a mut self, name: &str, leaves: &mut Vec<(String, FloatsMut<'a>)>) {
                values::add_leaves_mut(self, name, leaves);
            }
        }
    )*};
}

crate::small::all_values! { value_leaves }

/// The value of a field that programs do not see, in a struct of derivatives: its default, where it has one.
#[doc(hidden)]
#[derive(Debug)]
pub struct Skipped<T>(PhantomData<T>);

impl<T> Skipped<T> {
    pub fn new() -> Self {
        Skipped(PhantomData)
    }
}

impl<T> Default for Skipped<T> {
    fn default() -> Self {
        Skipped::new()
    }
}

/// Method resolution takes this one where the type has a default.
#[doc(hidden)]
pub trait WithDefault<T> {
    fn make(&self, field: &str) -> Result<T>;
}

impl<T: Default> WithDefault<T> for Skipped<T> {
    fn make(&self, _: &str) -> Result<T> {
        Ok(T::default())
    }
}

/// And this one, a reference further away, where it has none.
#[doc(hidden)]
pub trait WithoutDefault<T> {
    fn make(&self, field: &str) -> Result<T>;
}

impl<T> WithoutDefault<T> for &Skipped<T> {
    fn make(&self, field: &str) -> Result<T> {
        Err(Error::NoDefault { field: field.to_string() })
    }
}
