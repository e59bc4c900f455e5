//! Placeholder.
use std::marker::PhantomData;
use crate::scalar::Element;

/// An array.
#[derive(Debug)]
pub struct Array<T: Element, const R: usize> { shape: [usize; R], elements: Vec<T> }
/// A
pub type Array0<T> = Array<T, 0>;
/// A
pub type Array1<T> = Array<T, 1>;
/// A
pub type Array2<T> = Array<T, 2>;
/// A
pub type Array3<T> = Array<T, 3>;
/// A
pub type Array4<T> = Array<T, 4>;

/// An argument.
#[derive(Debug)]
pub enum Arg<'a> { /// r
    Read(PhantomData<&'a ()>), /// w
    Write(PhantomData<&'a ()>), /// s
    Scalar(ebbtide_ir::Literal) }
