//! What calls bring with them: their arguments, and derivatives of their own.

use super::{Access, Program};
use crate::syntax::error::Error;
use crate::syntax::ids::{ArrayId, ValueId};

/// What a called program or operation gets for one of its parameters, structs taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// An array, and what is done with it.
    Array(ArrayId, Access),
    /// A scalar.
    Scalar(ValueId),
}

impl Bound {
    /// The array, if it is one.
    pub fn array(self) -> Option<ArrayId> {
        match self {
            Bound::Array(array, _) => Some(array),
            Bound::Scalar(_) => None,
        }
    }

    /// The scalar, if it is one.
    pub fn scalar(self) -> Option<ValueId> {
        match self {
            Bound::Array(..) => None,
            Bound::Scalar(value) => Some(value),
        }
    }
}

/// A program that is a derivative of another one, built when it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Builds it.
    pub build: fn() -> Result<Program, Error>,
    /// The derivatives that it brings itself.
    pub rules: fn() -> Rules,
}

/// The arguments that a program or operation writes for its derivatives alone, by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved(u64);

impl Saved {
    /// Those at these positions; of a position beyond 63 it is not remembered.
    pub fn at(positions: impl IntoIterator<Item = usize>) -> Saved {
        let bit =
            |position: usize| u32::try_from(position).ok().and_then(|p| 1u64.checked_shl(p)).unwrap_or(0);
        Saved(positions.into_iter().fold(0, |all, position| all | bit(position)))
    }

    /// Is the argument at this position one of them?
    pub fn contains(self, position: usize) -> bool {
        position < 64 && self.0 >> position & 1 == 1
    }
}

/// The derivatives that a program or operation brings. Both take its parameters, as they are after the call and only
/// to be read, then one array more for each of its float arrays, in order, but for saved ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Adds to the cotangents of arrays that the operation reads, and turns those of arrays that it writes from
    /// cotangents of what it left there into cotangents of what it found there.
    pub adjoint: Option<Rule>,
    /// Turns tangents of what was found in written arrays into tangents of what was left there.
    pub tangent: Option<Rule>,
    /// What it saves for them: constants for everyone else.
    pub saved: Saved,
}

impl Rules {
    /// No derivatives.
    pub fn none() -> Rules {
        Rules::default()
    }

    /// Does it bring any?
    pub fn any(&self) -> bool {
        self.adjoint.is_some() || self.tangent.is_some()
    }
}

/// A call of a program that brings its own derivatives: what it was called with.
#[derive(Clone, Debug)]
pub struct Ruled {
    /// The arguments, in order.
    pub arguments: Vec<Bound>,
    /// The derivatives.
    pub rules: Rules,
}
