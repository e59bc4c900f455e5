//! What the requests for derivatives take as names, as traits: rustc then says what to write where something else is given.

use ebbtide_runtime::Array0;

use crate::program::Name;
use crate::scalar::{Element, Float};

/// The name of a parameter of type `T`: a constant of a program, as `step::u`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the name of a parameter",
    label = "write the program and the parameter, as in `step::u`",
    note = "`#[program] fn step(u: ..)` makes the constant `step::u`; a call takes one name: `.wrt(step::u).wrt(step::k)`; a \
            name that is a text goes to `wrt_named` and `get_named`"
)]
pub trait Named<T> {
    /// The name.
    fn name(self) -> Name<T>;
}

impl<T> Named<T> for Name<T> {
    fn name(self) -> Name<T> {
        self
    }
}

/// The name of one number that a program computes and that has a gradient: an output of rank 0, as `step::loss`.
#[diagnostic::on_unimplemented(
    message = "a gradient belongs to one float, an output such as `step::loss: &mut Array0<f64>`; this is `{Self}`",
    label = "write the program and an output of rank 0, as in `step::loss`",
    note = "sum an array in the program, `loss[[]] += u[i]`, or use `vjp`, which takes a cotangent; integers have no derivative"
)]
pub trait Loss {
    /// The type of the number.
    type Number: Float + Element;

    /// The name.
    fn name(self) -> Name<Array0<Self::Number>>;
}

impl<T: Float + Element> Loss for Name<Array0<T>> {
    type Number = T;

    fn name(self) -> Name<Array0<T>> {
        self
    }
}
