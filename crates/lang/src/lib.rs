//! The typed layer of the language.
//!
//! A `#[program]` is ordinary Rust syntax over arrays and scalars. Its macro rewrites every operator, index and
//! loop to a call of a function of [`emit`], which is typed, so that rustc infers and checks the types of the
//! program, and which builds the program when it is called. `lang` knows types and names; it does not know
//! syntax (that is `macros`), nor what a program means (that is `ir`).
//!
//! What users name themselves: the items of [`items`] (`par`, `swap`, `fill`, `copy`, `select`, `rand`) and of
//! [`library`] (`matmul`, `transposed`, `scan`, `compact`), the traits
//! [`Float`], [`Arrays`] and [`Label`], and [`Program`].
#![deny(unsafe_code)]

mod compiled;
mod cx;
pub mod emit;
mod field;
mod gradient;
mod handle;
mod host;
mod host_arrays;
pub mod items;
pub mod library;
mod named;
pub mod operation;
mod parameter;
pub mod parts;
pub mod products;
mod program;
pub mod reductions;
mod scalar;
#[doc(hidden)]
pub mod shapes;
mod small;
#[doc(hidden)]
pub mod struct_leaves;
mod tangent;
mod value;
mod view;

pub use compiled::Compiled;
pub use cx::Cx;
#[doc(hidden)]
pub use ebbtide_autodiff as __autodiff;
pub use ebbtide_autodiff::Optimisation;
pub use ebbtide_ir::{
    Access, ArrayId, Bound, Format, HostArg, Literal, LocalId, ReverseHint, Rules, Stream, Type, Undo,
    ValueId,
};
pub use ebbtide_runtime::{Arg, Budget, Error, Label, Plan, Ran, Rate, Rates, Result, Status, Tiers};
pub use field::{Arrays, Field, member, values};
pub use gradient::{Bytes, CompiledGrad, Differentiable, DifferentiableLeaf, Gradient, Gradients};
pub use handle::{
    Argument, ArrayHandle, Behind, Borrow, ByMut, ByRef, Flag, Handle, Indexed, Lent, OfRank, Shaped, Stored,
    Writable,
};
pub use host_arrays::Host;
pub use named::{Loss, Named};
pub use parameter::{ByLoan, ByValue, Given, How, Known, Passed};
#[doc(hidden)]
pub use program::counted as __counted;
pub use program::{
    AskedOfPrograms, Callable, DEPTH_OF_CALLS, Done, Ended, Ending, Launchable, Method, Name, Program,
    Source, Yielding, name_of_member,
};
pub use scalar::{Bits, Element, Float, Integer, Item, Number, Scalar, Signed};
pub use small::{Mat2, Mat3, Mat4, Sequence, Summand, Tuple, Value, Vec2, Vec3, Vec4};
pub use struct_leaves::{Floats, FloatsMut, Leaves};
pub use tangent::{CompiledProduct, Direction, Product};
pub use value::{CastTarget, Expr, Index, Local, Readable, Returned, Same, Truth, Variable};
pub use view::Part;
