//! What the macros emit: one typed function for each thing that a program can do.
//!
//! They are public because expanded code calls them; nobody writes them by hand. Each takes the user's place in
//! the source from its caller.

mod arithmetic;
mod calls;
mod control;
mod elements;
mod math;
mod operators;
mod printing;
mod ranges;
mod regions;
mod slabs;
mod small;
mod variables;

pub use crate::parameter::{given, passed};
pub use crate::reductions::{max_over, min_over, sum_over};
pub use arithmetic::{Add, Div, Mul, Negated, Sub, add, div, mul, neg, sub};
pub use calls::{Callee, call_func, call_operation, call_program};
pub use control::{
    assert, begin_else, begin_for, begin_if, begin_loop, begin_par, begin_while, end_and, end_if, end_loop,
    end_loop_if, end_or, end_par, end_value_if, for_range, relaxed, reverse, truth, while_condition,
};
pub(crate) use control::{constant_range, index_literal};
pub use elements::{
    add_to_element, add_to_item, add_to_part, dim, index, len, load, max_into_element, min_into_element,
    store, store_item, store_part, subtract_from_element, subtract_from_item, subtract_from_part, temp,
    writable,
};
pub use math::*;
pub use operators::*;
pub use printing::{Shown, print, shown};
pub use ranges::{Strided, plain_range, reversed_range, stepped_range, strided_value};
pub use regions::{Undone, begin_region, end_region, flag};
pub use slabs::{Parted, part, ranged};
pub use small::{
    Invertible, Matrix, Vector, array_of, cholesky, cross, determinant, dot, inverse, items, length, norm,
    norm_squared, normalize, outer, parts, repeated, solve, trace, transpose, tuple,
};
pub use variables::{
    ascribe, change, constant, drawn, fresh, lit, local, named, negative, numbered_local, of_type_of, read,
    scalar, set, zero,
};
