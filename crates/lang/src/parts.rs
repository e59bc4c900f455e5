//! What the parts of a grid do together: [`exchange`](fn@exchange), [`exchange_add`](fn@exchange_add),
//! [`all_sum`](fn@all_sum), [`all_max`](fn@all_max), [`all_min`](fn@all_min), [`shared`](fn@shared).
//!
//! Each is a function, which outside programs runs a program of this one statement on its array's device, and an empty type of
//! the same name that holds its expansion inside programs. Law 15 of `ebbtide-ir` says what they mean.

use ebbtide_ir::parts::Collective;
use ebbtide_ir::{self as ir, Access, ArrayId, Bound, Builder, Rule, Rules, Type};
use ebbtide_runtime::{Array, Result};

use crate::cx::Cx;
use crate::handle::{ArrayHandle, Borrow, ByMut};
use crate::library::alone;
use crate::scalar::{Element, Number, Scalar};
use crate::view::{View, all_whole};

/// Arrays that parts exchange or sum in one go: an array, or a tuple of up to six.
#[diagnostic::on_unimplemented(
    message = "parts cannot exchange or sum a `{Self}`",
    label = "not an array that the program may write, nor a tuple of them",
    note = "write `exchange(u)`, or `exchange((u, v))` for several arrays at once; their parameters are `&mut`"
)]
pub trait Together: Copy + 'static {
    /// The types and ranks of the arrays, in order.
    fn types() -> Vec<(Type, usize)>;
    /// The arrays, in order.
    fn arrays(&self) -> Vec<ArrayId>;
    /// Which parts of them, in order.
    fn views(&self) -> Vec<View>;
}

impl<T: Element, const R: usize> Together for ArrayHandle<T, R, ByMut> {
    fn types() -> Vec<(Type, usize)> {
        vec![(<T as Scalar>::TYPE, R)]
    }

    fn arrays(&self) -> Vec<ArrayId> {
        vec![self.id]
    }

    fn views(&self) -> Vec<View> {
        vec![self.view]
    }
}

macro_rules! tuples {
    ($(($($name:ident $at:tt),+))*) => {$(
        impl<$($name: Together),+> Together for ($($name,)+) {
            fn types() -> Vec<(Type, usize)> {
                [$($name::types()),+].concat()
            }

            fn arrays(&self) -> Vec<ArrayId> {
                [$(self.$at.arrays()),+].concat()
            }

            fn views(&self) -> Vec<View> {
                [$(self.$at.views()),+].concat()
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}

/// A program that takes arrays of these types to read, then one to write for each that is of floats, and hands both to
/// `statement`: the form of a derivative.
fn derivative(
    name: &str,
    types: &[(Type, usize)],
    statement: impl FnOnce(&mut Builder, &[ArrayId], &[ArrayId]),
) -> std::result::Result<ir::Program, ir::Error> {
    let mut b = Builder::new(name);
    let mut declare = |prefix: &str, access: Access, types: &mut dyn Iterator<Item = &(Type, usize)>| {
        let declare =
            |(k, (ty, rank)): (usize, &(Type, usize))| b.array(&format!("{prefix}{k}"), *ty, *rank, access);
        types.enumerate().map(declare).collect::<Vec<ArrayId>>()
    };
    let values = declare("x", Access::Read, &mut types.iter());
    let derivatives = declare("d", Access::Write, &mut types.iter().filter(|(ty, _)| ty.is_float()));
    statement(&mut b, &values, &derivatives);
    b.finish()
}

fn written(arrays: &[ArrayId]) -> Vec<Bound> {
    arrays.iter().map(|array| Bound::Array(*array, Access::Write)).collect()
}

/// The derivative of an operation that is linear in all its arrays: another one of the same arrays.
macro_rules! linear {
    ($rules:ident, $tangent:ident = $own:ident, $adjoint:ident = $transposed:ident with $its_rules:ident) => {
        fn $rules<H: Together>() -> Rules {
            let rule = |name, build| Some(Rule { name, build, rules: Rules::none });
            Rules {
                adjoint: rule(stringify!($adjoint), $adjoint::<H>),
                tangent: rule(stringify!($tangent), $tangent::<H>),
                ..Rules::none()
            }
        }

        fn $tangent<H: Together>() -> std::result::Result<ir::Program, ir::Error> {
            derivative(stringify!($tangent), &H::types(), |b, _, derivatives| {
                b.operation(Collective::$own.operation($rules::<H>()), &written(derivatives))
            })
        }

        fn $adjoint<H: Together>() -> std::result::Result<ir::Program, ir::Error> {
            derivative(stringify!($adjoint), &H::types(), |b, _, derivatives| {
                b.operation(Collective::$transposed.operation($its_rules::<H>()), &written(derivatives))
            })
        }
    };
}

linear!(exchange_rules, exchange_tangent = Exchange, exchange_adjoint = ExchangeAdd with add_rules);
linear!(add_rules, exchange_add_tangent = ExchangeAdd, exchange_add_adjoint = Exchange with exchange_rules);
linear!(sum_rules, all_sum_tangent = AllSum, all_sum_adjoint = AllSum with sum_rules);

fn extreme_rules<T: Element, const R: usize>() -> Rules {
    let rule = |name, build| Some(Rule { name, build, rules: Rules::none });
    Rules {
        adjoint: rule("extreme_adjoint", chosen_transposed::<T, R>),
        tangent: rule("extreme_tangent", chosen::<T, R>),
        ..Rules::none()
    }
}

fn chosen_types<T: Element, const R: usize>() -> [(Type, usize); 2] {
    [(<T as Scalar>::TYPE, R), (Collective::who_type(), R)]
}

fn chosen<T: Element, const R: usize>() -> std::result::Result<ir::Program, ir::Error> {
    derivative("extreme_tangent", &chosen_types::<T, R>(), |b, values, derivatives| {
        let arguments = [Bound::Array(values[1], Access::Read), Bound::Array(derivatives[0], Access::Write)];
        b.operation(Collective::Choose.operation(choose_rules::<T, R>()), &arguments);
    })
}

fn chosen_transposed<T: Element, const R: usize>() -> std::result::Result<ir::Program, ir::Error> {
    derivative("extreme_adjoint", &chosen_types::<T, R>(), |b, values, derivatives| {
        let arguments = [Bound::Array(values[1], Access::Read), Bound::Array(derivatives[0], Access::Write)];
        b.operation(Collective::ChooseTransposed.operation(Rules::none()), &arguments);
    })
}

/// Of the tangent of an extreme, so that there are second derivatives. Its parameters are `who` and the tangent.
fn choose_rules<T: Element, const R: usize>() -> Rules {
    fn adjoint<T: Element, const R: usize>() -> std::result::Result<ir::Program, ir::Error> {
        let types = [(Collective::who_type(), R), (<T as Scalar>::TYPE, R)];
        derivative("choose_adjoint", &types, |b, values, derivatives| {
            let arguments =
                [Bound::Array(values[0], Access::Read), Bound::Array(derivatives[0], Access::Write)];
            b.operation(Collective::ChooseTransposed.operation(Rules::none()), &arguments);
        })
    }
    let adjoint = Rule { name: "choose_adjoint", build: adjoint::<T, R>, rules: Rules::none };
    Rules { adjoint: Some(adjoint), ..Rules::none() }
}

macro_rules! linear_items {
    ($($(#[$doc:meta])* $name:ident: $collective:ident, $rules:ident, $bound:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<T: Element + $bound, const R: usize>(array: &mut Array<T, R>) -> Result<()> {
            alone(stringify!($name), &[], &mut [array.any_mut()], |b, _, writes| {
                b.operation(Collective::$collective.operation(Rules::none()), &written(writes))
            })
        }

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #[derive(Debug)]
        pub enum $name {}

        impl $name {
            #[doc(hidden)]
            #[track_caller]
            pub fn __expand<H: Together>(arrays: H) {
                let cx = &Cx::current();
                all_whole(cx, stringify!($name), &arrays.views());
                let operation = Collective::$collective.operation($rules::<H>());
                cx.emit(|b| b.operation(operation, &written(&arrays.arrays())));
            }
        }
    )*};
}

linear_items! {
    /// Fills the halos of an array of a grid with what their owners hold: all parts do it together. Inside programs several
    /// arrays are exchanged in one go: `exchange((u, v))`.
    exchange: Exchange, exchange_rules, Element;
    /// Adds what was scattered into the halos of an array of a grid to what its owners hold, neighbours in ascending order of
    /// their numbers, and clears the halos.
    exchange_add: ExchangeAdd, add_rules, Element;
    /// Replaces every element by its sum over all parts, added in the order of their numbers.
    all_sum: AllSum, sum_rules, Number;
}

macro_rules! extreme_items {
    ($($(#[$doc:meta])* $name:ident: $collective:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<T: Element + Number, const R: usize>(array: &mut Array<T, R>) -> Result<()> {
            alone(stringify!($name), &[], &mut [array.any_mut()], |b, _, writes| {
                extreme(b, Collective::$collective, writes[0], Rules::none());
            })
        }

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #[derive(Debug)]
        pub enum $name {}

        impl $name {
            #[doc(hidden)]
            #[track_caller]
            pub fn __expand<T: Element + Number, const R: usize>(array: ArrayHandle<T, R, ByMut>) {
                let cx = &Cx::current();
                all_whole(cx, stringify!($name), &[array.view]);
                cx.emit(|b| extreme(b, Collective::$collective, array.id, extreme_rules::<T, R>()));
            }
        }
    )*};
}

/// The extreme, and an array that remembers which part attains it.
fn extreme(b: &mut Builder, collective: Collective, array: ArrayId, rules: Rules) {
    let (name, rank) = (b.program().array(array).name.clone(), b.program().array(array).rank);
    let shape: Vec<ir::ValueId> = (0..rank).map(|k| b.dim(array, k)).collect();
    let who = b.temp(&format!("who_{name}"), Collective::who_type(), &shape);
    b.operation(collective.operation(rules), &written(&[array, who]));
}

extreme_items! {
    /// Replaces every element by its maximum over all parts.
    all_max: AllMax;
    /// Replaces every element by its minimum over all parts.
    all_min: AllMin;
}

/// Says that all parts hold the same array, and checks it: a derivative with respect to it is then summed over all parts.
///
/// Derivatives with respect to scalars always are.
pub fn shared<T: Element, const R: usize>(array: &Array<T, R>) -> Result<()> {
    let arguments = |reads: &[ArrayId]| [Bound::Array(reads[0], Access::Read)];
    alone("shared", &[array.any()], &mut [], |b, reads, _| {
        b.operation(Collective::Shared.operation(Rules::none()), &arguments(reads))
    })
}

/// Inside programs: [`shared`](fn@shared).
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub enum shared {}

impl shared {
    #[doc(hidden)]
    #[track_caller]
    pub fn __expand<T: Element, const R: usize, B: Borrow>(array: ArrayHandle<T, R, B>) {
        let cx = &Cx::current();
        all_whole(cx, "shared", &[array.view]);
        let operation = Collective::Shared.operation(Rules::none());
        cx.emit(|b| b.operation(operation, &[Bound::Array(array.id, Access::Read)]));
    }
}

crate::never_yields! { exchange exchange_add all_sum all_max all_min shared }
