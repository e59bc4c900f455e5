//! The program: its form and its laws.
//!
//! `ir` is the only crate that says what a program means. Devices may be faster than the interpreter; they may
//! not be different. The laws, which the verifier's errors cite:
//!
//! 1. **Scope.** A program is a tree of statements. A value is computed by exactly one `let`, at the place
//!    where it stands, and is known from there to the end of its block; a local variable likewise. What a
//!    `while` computes for its condition is known in the condition alone; what a loop body computes is known in
//!    its closing `if … { break; }` too.
//! 2. **Arrays** have rank 0 to 6 and elements of type `f32 f64 i32 i64 u32 bool`. A parameter is read (`&`) or
//!    read and written (`&mut`). A temporary has a shape that depends on shapes and scalar arguments alone,
//!    exists once per launch, and is zeroed where it is declared, but for those of derivative programs that are written before they
//!    are read (`Program::undefined`). `swap` exchanges the names of two arrays of
//!    equal type and shape; at every exit the caller's handle shows what the program calls by its name.
//! 3. **Types.** Operands of one operation have one type; only a cast converts, as Rust's `as` does
//!    (saturating from floats, truncating between integers).
//! 4. **Arithmetic.** Floats follow IEEE 754 with round to nearest even; nothing is contracted or reassociated.
//!    Integers other than `usize` wrap. `usize` is exact, and its values lie between −2⁶³ and 2⁶³, both excluded: they may
//!    pass through negative ones, and a negative index is out of bounds. Arithmetic on `usize` whose result lies outside
//!    *overflows*: its result is no number, and so is that of every operation on `usize` (a shift to the left is a product)
//!    with such an operand, except that `select` passes on the operand that it chooses. What overflowed is out of bounds
//!    as an index, a run error as a bound of a loop, and a launch error as an extent, as negative extents are. It compares as
//!    less than every number. A cast makes it NaN, the least `i32` or `i64`, the greatest `u32`, or `true`. It is an
//!    error to use it as an index or bound, not to compute it; so a value may be computed earlier, or not at all.
//!    Integer division by zero is a run error (an assertion is such a division, by its condition, with a text: see
//!    [`Assertion`]); the quotient truncates and `MIN / -1` wraps. `min` and `max` of a number
//!    and NaN give the number, of two zeros `min` the negative and `max` the positive one. Elementary functions have one
//!    definition, in `ebbtide-math`.
//! 5. **Sequential loops.** Bounds of a `for` are evaluated once, on entry. `if c { break; }` may close a body.
//! 6. **Parallel loops** have one to six dimensions and hold no other parallel loop, region, call, `swap`,
//!    `fill`, `copy` or library operation.
//! 7. **Races** are build errors: no two iterations of a parallel loop may touch the same element, one of them
//!    writing, unless all that the loop does with the element is to combine into it in one way. The verifier proves
//!    that from bounds, guards and indices. What it cannot prove becomes a requirement on scalars and shapes, which is
//!    checked when the loop begins ([`Requirement`]): a run error where it does not hold. Or the iteration claims what it
//!    touches: an element that is claimed twice in one loop is a run error.
//! 8. **Order.** Combining into one element that is the same in all iterations is a reduction. The iterations,
//!    last dimension fastest, are cut into *leaves* (see [`leaf`]): a leaf has 16 lanes, an iteration combines
//!    into the lane given by its distance from the first iteration of its innermost row, modulo 16; the lanes
//!    of a leaf are combined in a tree (8, 4, 2, 1), the leaves in order, and the whole with the element, each
//!    update statement on its own. The start of a lane is the neutral element: `-0.0` for sums, NaN for minima
//!    and maxima of floats. All other combining is done in iteration order. `#[relaxed]` loops may combine in
//!    any order.
//! 9. **Regions** do not nest and a label stands once in one source program. The flag is a parameter of rank 0
//!    and type `i32`, `u32` or `bool`. It is read once, at the end of the region. If it is not zero, the
//!    program yields: nothing more runs, and every enclosing loop is left. A run that is resumed at a region begins
//!    with that region, in the iterations of the enclosing loops that were left, and continues from there. Conditions
//!    at the head of these iterations are not evaluated again. The bounds of these loops, local variables, temporaries
//!    and elements that were read have the values that they had at the yield. Shapes and scalar arguments are those of the
//!    resume. What is computed from all these is computed again. `undo` restores, before the yield, what the region wrote,
//!    except the flag: the arrays named, or all arrays and local variables that it writes.
//! 10. **Bounds.** An element outside its array is never touched: it is a run error that names array, index and
//!     line. Which of several errors of one run is reported is not defined; written arrays are then unspecified
//!     but intact.
//! 11. **Library operations** work on whole arrays: `matmul(a, b, c)`, `scan(x, out)`, `compact(flags, out, count)`.
//!     The array that an operation writes is none of its other arguments. Their order is law like that of reductions, so that their bits
//!     are the same on every device, for every number of threads: the terms of an element of a product are
//!     cut into chunks of [`MATMUL_CHUNK`], in ascending `k`; each chunk is a chain of fused multiplications and additions
//!     that begins at zero (the first one at the element, where the product is added to it), and later chunks are added to
//!     the first one in order; a scan adds one element after the other;
//!     `compact` writes the indices of what is not zero in ascending order, none beyond the end of `out`, and counts
//!     all of them. Shapes that do not fit together are a run error. See [`LibraryOp`]. A custom operation is a pure
//!     function of its arguments on the host, among them what it finds in the arrays that it writes: it may run again.
//!     It is known by its name, which is part of the program's meaning. See [`Operation`].
//!     A line that a program prints ([`Print`]) is no part of its meaning. It is a branch that is never taken; only the
//!     interpreter reads it, to print the line.
//! 12. **Rules.** A called program or custom operation that brings its own derivatives ([`Rules`]) is differentiated by
//!     these alone; its body is not differentiated. What it declares as saved is for its derivatives only: no derivative
//!     flows through it.
//! 13. **Derivatives** are those of the operations that a run executes, at the values that it computes. Where an
//!     operation has none, or more than one:
//!     - `abs` has slope 0 at 0; `norm`, `hypot` and `atan2` have slope 0 at the origin; a power has slope 0 in its base
//!       where the exponent is 0, and slope 0 in its exponent where the power is 0. Other slopes that grow without
//!       bound are infinite (`sqrt` and `cbrt` at 0, `ln` at 0) or what IEEE arithmetic makes of their formula.
//!     - `min` and `max` of equal operands pass the derivative to the first one. Zeros are equal whatever their signs;
//!       of a number and NaN the number has the derivative.
//!     - An element that is combined by `min_assign` or `max_assign` depends in equal shares on all that attain the
//!       result: what it held before, and each update; in a parallel loop, all updates of that loop share. In a loop that
//!       also reads or writes the array in another way, an update of an element that no other iteration has is
//!       `a[i] = a[i].min(x)` or `max`, with the derivative of that.
//!     - `x % y` has slope 1 in `x` and minus the truncated quotient in `y`, also where the quotient jumps.
//!     - `floor`, `ceil`, `round` and `trunc` have slope 0. Comparisons, random numbers and casts from or to integers and
//!       `bool` carry no derivative. A cast between floats has slope 1. What is made of these follows: `signum` has
//!       slope 0, `clamp` slope 1 where it changes nothing, bounds included, else that of the bound.
//!     - A branch that is not taken, an operand that `select` does not choose, an element that is overwritten and an
//!       iteration that does not run contribute nothing, however steep their slopes.
//!     - What the host changes at a yield is constant: an element whose bits differ afterwards depends on nothing.
//!
//!     A second derivative is the derivative of the first where that has one; elsewhere it is not specified.
//!
//! Generated programs obey one more:
//!
//! 14. **Tapes.** Each array has a tape. Along every path of a program, what is pushed on it is popped exactly once, in
//!     the mirrored order: a branch pops what the same arm of its mirror pushed, an iteration of a loop what an iteration of
//!     its mirror pushed, the reverse half of a loop what its forward half recorded. Iterations that keep nothing, and
//!     conditions of loops, leave every tape as it is. A loop that is run to be reversed is reversed once.
//!
//! Programs that run on the parts of a grid obey one more:
//!
//! 15. **Parts.** A collective ([`parts::Collective`]) is executed by all parts together, each the same statement in the same
//!     iterations. Its meaning follows from the numbers of the parts: sums over all parts, and what neighbours add to the
//!     elements of an owner, are in ascending order of these numbers. The derivative of `exchange` is its transpose,
//!     `exchange_add`, and the other way round; `all_sum` is its own transpose; the derivative of an extreme flows to the least
//!     part that attains it. The gradient is that of the value on part 0, which must be the same on all parts; derivatives
//!     with respect to scalars, and to arrays that `shared` names, are summed over all parts. What was scattered into a halo
//!     must not be overwritten by an exchange: `exchange_add` comes first.
#![forbid(unsafe_code)]

mod analysis;
mod builder;
mod interp;
pub mod parts;
pub mod passes;
mod syntax;
mod verify;

pub use analysis::affine::{Affine, Affines, is_zero};
pub use analysis::alike::alike_shapes;
pub use analysis::dataflow;
pub use analysis::dependence::{ParFacts, RUN, Sharing, apart, loads_own};
pub use analysis::entry::{Derivation, Entry, Made, loop_bounds};
pub use analysis::leaf;
pub use builder::{Builder, Mark};
pub use interp::evaluate;
pub use interp::{
    Bytes, Checks, Dead, HostArray, IterationOrder, Machine, Modes, Outcome, Races, Scalars, Tape, poison,
};
pub use syntax::*;
pub use verify::{Facts, depends_on_arguments_alone, verify, verify_source};

/// The version of the laws above.
///
/// It changes with every change of the laws that can change a bit of a result: the order of a sum, the rounding of an
/// operation, the definition of a function. It is part of a program's hash, of the key of compiled code, of stored yields
/// and of the identity of a durable run, so that no run begun under one version is continued under another.
pub const LAWS: u32 = 5;
