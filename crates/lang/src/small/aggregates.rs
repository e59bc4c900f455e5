//! Arrays of a fixed length and tuples.

use std::any::Any;
use std::array::from_fn;

use ebbtide_ir::{Literal, LocalId, Type, ValueId};

use super::{Sequence, Value, constant};
use crate::cx::Cx;
use crate::handle::Argument;
use crate::value::{Expr, Local, Readable};

impl<T: Value, const N: usize> Value for [T; N] {
    type Given = Expr<[T; N]>;
    type Exprs = [Expr<T>; N];
    type Locals = [Local<T>; N];

    fn exprs(next: &mut dyn FnMut(Type) -> ValueId) -> [Expr<T>; N] {
        from_fn(|_| Expr::new(T::exprs(next)))
    }

    fn locals(next: &mut dyn FnMut(Type) -> LocalId) -> [Local<T>; N] {
        from_fn(|_| Local::new(T::locals(next)))
    }

    fn each_expr(parts: &[Expr<T>; N], visit: &mut dyn FnMut(ValueId)) {
        parts.iter().for_each(|part| T::each_expr(&part.id, visit));
    }

    fn each_local(parts: &[Local<T>; N], visit: &mut dyn FnMut(LocalId)) {
        parts.iter().for_each(|part| T::each_local(&part.id, visit));
    }

    fn names(name: &str, visit: &mut dyn FnMut(String)) {
        (0..N).for_each(|k| T::names(&format!("{name}[{k}]"), visit));
    }

    fn literals(self, visit: &mut dyn FnMut(Literal)) {
        self.into_iter().for_each(|part| part.literals(visit));
    }

    fn of_literals(next: &mut dyn FnMut() -> Literal) -> [T; N] {
        from_fn(|_| T::of_literals(next))
    }

    fn scalars<'a>(&'a self, visit: &mut dyn FnMut(&'a dyn Any)) {
        self.iter().for_each(|part| part.scalars(visit));
    }

    fn scalars_mut<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn Any)) {
        self.iter_mut().for_each(|part| part.scalars_mut(visit));
    }
}

impl<T: Value, const N: usize> Sequence for [T; N] {
    type Item = T;

    fn items(parts: &[Expr<T>; N]) -> Vec<Expr<T>> {
        parts.to_vec()
    }

    fn variables(parts: &[Local<T>; N]) -> Vec<Local<T>> {
        parts.to_vec()
    }
}

impl<T: Value, const N: usize> Readable for [T; N] {
    type Elem = [T; N];

    #[track_caller]
    fn read(&self, cx: &Cx) -> Expr<[T; N]> {
        constant(cx, *self)
    }
}

impl<T: Value, const N: usize> Argument<Expr<[T; N]>> for [T; N] {
    #[track_caller]
    fn pass(&self, cx: &Cx) -> Expr<[T; N]> {
        constant(cx, *self)
    }
}

macro_rules! tuples {
    ($($t:ident $k:tt),*) => {
        impl<$($t: Value),*> Value for ($($t,)*) {
            type Given = Expr<Self>;
            type Exprs = ($(Expr<$t>,)*);
            type Locals = ($(Local<$t>,)*);

            fn exprs(next: &mut dyn FnMut(Type) -> ValueId) -> Self::Exprs {
                ($(Expr::<$t>::new($t::exprs(next)),)*)
            }

            fn locals(next: &mut dyn FnMut(Type) -> LocalId) -> Self::Locals {
                ($(Local::<$t>::new($t::locals(next)),)*)
            }

            fn each_expr(parts: &Self::Exprs, visit: &mut dyn FnMut(ValueId)) {
                $($t::each_expr(&parts.$k.id, visit);)*
            }

            fn each_local(parts: &Self::Locals, visit: &mut dyn FnMut(LocalId)) {
                $($t::each_local(&parts.$k.id, visit);)*
            }

            fn names(name: &str, visit: &mut dyn FnMut(String)) {
                $($t::names(&format!(concat!("{}.", stringify!($k)), name), visit);)*
            }

            fn literals(self, visit: &mut dyn FnMut(Literal)) {
                $(self.$k.literals(visit);)*
            }

            fn of_literals(next: &mut dyn FnMut() -> Literal) -> Self {
                ($($t::of_literals(next),)*)
            }

            fn scalars<'a>(&'a self, visit: &mut dyn FnMut(&'a dyn Any)) {
                $(self.$k.scalars(visit);)*
            }

            fn scalars_mut<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn Any)) {
                $(self.$k.scalars_mut(visit);)*
            }
        }

        impl<$($t: Value),*> Tuple for ($(Expr<$t>,)*) {
            type Value = ($($t,)*);

            fn value(self) -> Expr<($($t,)*)> {
                Expr::new(self)
            }
        }
    };
}

/// Values in parentheses.
pub trait Tuple {
    /// The tuple of their types.
    type Value: Value;

    /// The tuple.
    fn value(self) -> Expr<Self::Value>;
}

tuples! { A 0, B 1 }
tuples! { A 0, B 1, C 2 }
tuples! { A 0, B 1, C 2, D 3 }
tuples! { A 0, B 1, C 2, D 3, E 4 }
tuples! { A 0, B 1, C 2, D 3, E 4, F 5 }
