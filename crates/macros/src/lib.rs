//! The macros of the language: Rust syntax becomes calls that build a program.
//!
//! Every operator, index, loop and call of a body is rewritten to a call of a typed function of `ebbtide-lang`,
//! spanned at the user's own tokens, so that rustc infers and checks the types and its errors, like the places
//! that a run-time error names, are the user's. `macros` knows syntax alone; it knows no types.
#![forbid(unsafe_code)]

mod arrays;
mod body;
mod errors;
mod item;
mod jumps;
mod known;
mod label;
mod methods;
mod signature;
mod surroundings;
mod types;
mod unparsed;
mod value;
mod yields;

use proc_macro::TokenStream;

/// Makes a function over arrays and scalars a program.
///
/// `#[program] fn step(..)` emits, under one name, `fn step() -> Program<step>` and an empty type `step` with one
/// typed constant per parameter (`step::loss: Name<Array0<f64>>`).
///
/// - Parameters are arrays and structs of arrays, by `&` or `&mut`, and scalars, by value. Arrays and structs are
///   passed on by their bare name: `misfit(u, target, loss);`.
/// - `for i in par(0..n)` is a parallel loop, every other loop is sequential: `for t in a..b`, `while c`,
///   `loop { … }`, with `break` and `continue`; `return` leaves early; `match` chooses by integers.
/// - Elements are `u[i]`, `u[[i, j]]`, `loss[[]]`; shapes `u.len()`, `u.dim(k)`; temporaries
///   `let mut t = Array2::<f64>::zeros([n, m]);`.
/// - Programs call programs and `#[func]`s.
///
/// `#[program(adjoint = solve_adjoint)]` names the adjoint of the program: another program, which takes the same parameters, as
/// they are after the call, arrays by `&`; then one array for each float array among them, in order, by `&mut`: its
/// cotangent. The adjoint adds to the cotangent of an array that the program reads. The cotangent of an array that the
/// program writes belongs to its contents after the call, and the adjoint replaces it with that of the contents before
/// the call. `tangent = …` names the tangent in the same way. `saved = [pivots]` names arrays that the program writes only for
/// these rules: the rules receive them, they have no cotangent, and everywhere else they are constants.
///
/// `#[program(args = StepArgs)]` also defines a struct with one field for each parameter, for launches with many arguments:
/// `step.launch(StepArgs { u: &mut u, dt: 0.1 }.into())`.
#[proc_macro_attribute]
pub fn program(attr: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(item::Kind::Program, attr.into(), item.into()).into()
}

/// Makes methods of a struct of arrays programs.
///
/// It stands before an `impl` block of a struct with `#[derive(Arrays)]`. Its methods with `#[program]`, which take `&self` or
/// `&mut self`, are programs: `World::step()` returns the program, whose type is `World_step` (`World_step::dt` is the name of a
/// parameter); a launch takes the struct as its first argument; programs call it as a method, `w.step(dt);`. Other functions of
/// the block are unchanged.
#[proc_macro_attribute]
pub fn programs(attr: TokenStream, item: TokenStream) -> TokenStream {
    methods::expand(attr.into(), item.into()).into()
}

/// Makes a function usable inside programs; Rust can still call it as a plain function.
///
/// It computes values from scalars, small values and elements of arrays (`fn lap(u: &Array2<f64>, i: usize, j: usize) ->
/// f64`), may change what it takes by `&mut`, may be generic over `T: Float` and over constants, and is expanded where a
/// program calls it, inside and outside parallel loops.
#[proc_macro_attribute]
pub fn func(attr: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(item::Kind::Func, attr.into(), item.into()).into()
}

/// Makes a plain function of Rust an operation that programs call, at program level.
///
/// Its parameters are arrays, by `&` or `&mut`, and scalars. Its body is any Rust; arrays are views of host memory in
/// it (`HostView`, `HostViewMut`): `x[i]`, `x.shape()`, `x.as_slice()`. It returns nothing, or a `Result<(), E>` whose error
/// becomes a run error. It must be a pure function of its arguments, since it is run again when a program is
/// differentiated.
///
/// `#[operation(adjoint = …, tangent = …)]` gives it derivatives, as for a `#[program]`.
#[proc_macro_attribute]
pub fn operation(attr: TokenStream, item: TokenStream) -> TokenStream {
    item::expand(item::Kind::Operation, attr.into(), item.into()).into()
}

/// Makes a struct of arrays a parameter of programs: `fn step(w: &mut World)`, `w.pos[[i, k]]`.
///
/// Its fields are arrays, scalars and other such structs; a field with `#[arrays(skip)]` exists only on the host.
#[proc_macro_derive(Arrays, attributes(arrays))]
pub fn derive_arrays(item: TokenStream) -> TokenStream {
    arrays::derive(item.into()).into()
}

/// Makes a struct of values, or an enum without fields, a value of programs: `let p = Particle { pos, mass: 1.0 };`,
/// `match kind { Kind::Wall => …, Kind::Open => … }`.
///
/// The fields are scalars, vectors, matrices, tuples, arrays of a fixed length and other such structs. It is `Copy`:
/// `#[derive(Clone, Copy, Value)]`.
#[proc_macro_derive(Value)]
pub fn derive_value(item: TokenStream) -> TokenStream {
    value::derive(item.into()).into()
}

/// Makes the variants of an enum labels of checkpoints: `#[checkpoint(Stage::Solve)]`.
#[proc_macro_derive(Label)]
pub fn derive_label(item: TokenStream) -> TokenStream {
    label::derive(item.into()).into()
}

/// Labels a region of a program, at which it can yield to the host and be resumed.
///
/// It stands before a block inside a `#[program]`:
///
/// - `#[checkpoint(Stage::Solve)] { … }` labels the region: a launch can be resumed there;
/// - `yield_on = w.overflow` leaves the program after the region if that flag (an `Array0` of `i32`, `u32` or `bool`)
///   is not zero;
/// - `undo` restores all that the region wrote if it yields, `undo = [w.pairs]` the arrays named.
///
/// Labels are variants of an enum with `#[derive(Label)]`. Regions do not nest.
#[proc_macro_attribute]
pub fn checkpoint(attr: TokenStream, item: TokenStream) -> TokenStream {
    errors::outside("checkpoint", "a block", attr.into(), item.into()).into()
}

/// Chooses how a sequential loop of a program is reversed when the program is differentiated.
///
/// It stands before a `for`, `while` or `loop` inside a `#[program]`:
///
/// - `#[reverse(store_all)]` keeps the tape of every iteration;
/// - `#[reverse(periodic = 32)]` keeps the state of every 32nd iteration;
/// - `#[reverse(revolve = 10)]` keeps at most ten states, placed so that the least is recomputed;
/// - `#[reverse(online = 10)]` does so without knowing the number of iterations;
/// - `#[reverse(mixed = 10)]` lets states and tapes of single iterations share ten slots: less is recomputed where tapes are not
///   larger than states.
#[proc_macro_attribute]
pub fn reverse(attr: TokenStream, item: TokenStream) -> TokenStream {
    errors::outside("reverse", "a sequential loop", attr.into(), item.into()).into()
}

/// Lets a parallel loop of a program add into data-dependent elements in any order.
///
/// It stands before a `for … in par(..)` inside a `#[program]`. The loop may then use atomics; its sums are no longer
/// the same from run to run.
#[proc_macro_attribute]
pub fn relaxed(attr: TokenStream, item: TokenStream) -> TokenStream {
    errors::outside("relaxed", "a parallel loop", attr.into(), item.into()).into()
}
