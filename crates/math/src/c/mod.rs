//! The functions as C and CUDA C text.
//!
//! ```
//! use ebbtide_math::c::{Dialect, Item, Shape, library};
//! use ebbtide_math::{Format, Function, Kernel};
//!
//! let shape = Shape::new(Format::F64, 8)?;
//! let text = library(Dialect::C, &[Item { kernel: Kernel::Function(Function::Tanh), shape }])?;
//! assert!(text.contains("f64x8 eb_tanh_f64x8(f64x8 x0)"));
//! # Ok::<(), ebbtide_math::MathError>(())
//! ```
//!
//! The text needs a compiler that neither contracts nor reorders: for C `-ffp-contract=off` and nothing of
//! `-ffast-math`; for CUDA C `--fmad=false`, `--ftz=false`, and correct division and square root (the defaults).
//! It speaks GCC's vector extensions, which clang has too, and takes intrinsics where the target has them. Functions
//! are inlined always; a text that defines `EB_FUNCTION` before decides otherwise. GCC remarks on vectors wider than
//! the target's registers unless told `-Wno-psabi`.

mod prelude;
mod text;
mod vector;

use std::collections::BTreeSet;
use std::fmt;

pub use prelude::prelude;
pub use text::{CText, Double, Int, Mask, Single, Value, Width};

use crate::ops::Format;
use crate::{Kernel, MathError};

/// A language of the C family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// GNU C11, scalar or with vector types.
    C,
    /// CUDA C, one thread per element, so scalar.
    Cuda,
}

/// A format and a number of lanes; one lane is a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    format: Format,
    lanes: usize,
}

impl Shape {
    /// The shape with so many lanes.
    ///
    /// # Errors
    ///
    /// [`MathError::WrongShape`] unless there is one lane, or the vector has 16, 32 or 64 bytes.
    pub fn new(format: Format, lanes: usize) -> Result<Shape, MathError> {
        let shape = Shape { format, lanes };
        let fits = lanes == 1 || (lanes <= 16 && [16, 32, 64].contains(&shape.bytes()));
        if fits { Ok(shape) } else { Err(MathError::WrongShape { lanes }) }
    }

    /// A plain number.
    pub fn scalar(format: Format) -> Shape {
        Shape { format, lanes: 1 }
    }

    /// The format of each lane.
    pub fn format(self) -> Format {
        self.format
    }

    /// The number of lanes.
    pub fn lanes(self) -> usize {
        self.lanes
    }

    /// The bytes of one value.
    pub fn bytes(self) -> usize {
        self.lanes * self.bits() / 8
    }

    /// The bits of one lane.
    fn bits(self) -> usize {
        match self.format {
            Format::F32 => 32,
            Format::F64 => 64,
        }
    }

    /// What stands after the letter in the names of this shape's types: `64`, `32x16`.
    fn suffix(self) -> String {
        if self.lanes == 1 { self.bits().to_string() } else { format!("{}x{}", self.bits(), self.lanes) }
    }

    /// The `f64` shape that holds the lower half of the lanes of this `f32` shape, or its one lane.
    fn widened(self) -> Shape {
        Shape { format: Format::F64, lanes: (self.lanes / 2).max(1) }
    }
}

/// The name of the float type: `f64`, `f32x16`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "f{}", self.suffix())
    }
}

/// A kernel in a shape: one function of the printed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item {
    /// What it computes.
    pub kernel: Kernel,
    /// On what.
    pub shape: Shape,
}

impl Item {
    /// The name of the C function: `eb_exp_f64x8`.
    pub fn name(self) -> String {
        format!("eb_{}_{}", self.kernel.name(), self.shape)
    }
}

/// The text of the wanted functions and of all that they call, each once and after what it calls, with the
/// [`prelude`] before.
///
/// # Errors
///
/// [`MathError::WrongFormat`] or [`MathError::WrongShape`] for an item that cannot be printed.
pub fn library(dialect: Dialect, wanted: &[Item]) -> Result<String, MathError> {
    let printed = functions(wanted)?;
    let mut shapes: Vec<Shape> = wanted.iter().map(|item| item.shape).collect();
    shapes.extend(printed.shapes);
    Ok(prelude(dialect, &shapes)? + &printed.text)
}

struct Printed {
    text: String,
    shapes: BTreeSet<Shape>,
}

fn functions(wanted: &[Item]) -> Result<Printed, MathError> {
    let mut printed = Printed { text: String::new(), shapes: BTreeSet::new() };
    let mut done = BTreeSet::new();
    // An item comes up twice: first it is printed and what it needs is put on top of it, then it is added.
    let mut open: Vec<(Item, Option<String>)> = wanted.iter().rev().map(|&item| (item, None)).collect();
    while let Some((item, text)) = open.pop() {
        if done.contains(&item) {
            continue;
        }
        match text {
            Some(text) => {
                printed.shapes.insert(item.shape);
                printed.text.push_str(&text);
                done.insert(item);
            }
            None => {
                let (text, needs) = text::function(item)?;
                open.push((item, Some(text)));
                open.extend(needs.into_iter().filter(|need| !done.contains(need)).map(|need| (need, None)));
            }
        }
    }
    Ok(printed)
}
