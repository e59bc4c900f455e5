//! Arithmetic on tracked `f64`.
//!
//! Operators cannot return errors. If one cannot be recorded (its operands are on different tapes, say), its
//! result is a value whose pullback returns that error. An operation on values that are on no tape gives a
//! value that is on no tape.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::elementary::{Binary, Unary};
use crate::var::{Link, Place};
use crate::{
    CheckpointRecipe, Cotangents, Decision, Error, Hint, Inline, InputCotangents, OutputTangents, Outputs, ReplayResult,
    ReverseRule, RuleError, RuleResult, SecondOrder, Tangents, Tape, Var, current_mode,
};

#[derive(Clone, Copy)]
struct UnaryRule {
    function: Unary,
    x: f64,
    y: f64,
}

impl ReverseRule<f64> for UnaryRule {
    fn pullback(&self, outputs: &Cotangents<'_, f64>, inputs: &mut InputCotangents<'_, f64>) -> RuleResult {
        inputs.add(0, outputs.only()? * self.function.derivative(self.x, self.y))
    }

    fn second_order(&self) -> SecondOrder {
        self.function.second_order()
    }

    fn pushforward(&self, inputs: &Tangents<'_, f64>, outputs: &mut OutputTangents<'_, f64>) -> RuleResult {
        let tangent = inputs.get(0).copied().unwrap_or(0.0);
        outputs.set(0, self.function.derivative(self.x, self.y) * tangent)
    }

    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, f64>,
        changes: &Cotangents<'_, f64>,
        tangents: &Tangents<'_, f64>,
        inputs: &mut InputCotangents<'_, f64>,
    ) -> RuleResult {
        let mut change = 0.0;
        if let Some(of_output) = changes.get(0) {
            change += of_output * self.function.derivative(self.x, self.y);
        }
        if let (Some(cotangent), Some(tangent)) = (outputs.get(0), tangents.get(0)) {
            change += cotangent * self.function.second_derivative(self.x, self.y) * tangent;
        }
        inputs.add(0, change)
    }
}

#[derive(Clone, Copy)]
struct BinaryRule {
    function: Binary,
    x: f64,
    y: f64,
}

impl ReverseRule<f64> for BinaryRule {
    fn pullback(&self, outputs: &Cotangents<'_, f64>, inputs: &mut InputCotangents<'_, f64>) -> RuleResult {
        let cotangent = outputs.only()?;
        let [along_x, along_y] = self.function.derivatives(self.x, self.y);
        inputs.add(0, cotangent * along_x)?;
        inputs.add(1, cotangent * along_y)
    }

    fn second_order(&self) -> SecondOrder {
        self.function.second_order()
    }

    fn pushforward(&self, inputs: &Tangents<'_, f64>, outputs: &mut OutputTangents<'_, f64>) -> RuleResult {
        let derivatives = self.function.derivatives(self.x, self.y);
        let parts = (0..2).filter_map(|index| inputs.get(index).map(|tangent| derivatives[index] * tangent));
        outputs.set(0, parts.sum())
    }

    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, f64>,
        changes: &Cotangents<'_, f64>,
        tangents: &Tangents<'_, f64>,
        inputs: &mut InputCotangents<'_, f64>,
    ) -> RuleResult {
        let derivatives = self.function.derivatives(self.x, self.y);
        let [xx, xy, yy] = self.function.second_derivatives(self.x, self.y);
        for (index, row) in [[xx, xy], [xy, yy]].into_iter().enumerate() {
            let mut change = 0.0;
            if let Some(of_output) = changes.get(0) {
                change += of_output * derivatives[index];
            }
            if let Some(cotangent) = outputs.get(0) {
                let along = |input: usize| tangents.get(input).map_or(0.0, |tangent| row[input] * tangent);
                change += cotangent * (along(0) + along(1));
            }
            inputs.add(index, change)?;
        }
        Ok(())
    }
}

impl CheckpointRecipe<f64> for Unary {
    fn replay(&self, inputs: &[Inline<f64>]) -> Result<ReplayResult<f64>, RuleError> {
        let [x] = inputs else { return Err("a function of one argument".into()) };
        let y = self.value(**x);
        Ok(ReplayResult::new(y, UnaryRule { function: *self, x: **x, y }))
    }

    fn advance(&self, inputs: &[Inline<f64>]) -> Result<Outputs<f64>, RuleError> {
        let [x] = inputs else { return Err("a function of one argument".into()) };
        Ok(Outputs::One(self.value(**x).into()))
    }
}

impl CheckpointRecipe<f64> for Binary {
    fn replay(&self, inputs: &[Inline<f64>]) -> Result<ReplayResult<f64>, RuleError> {
        let [x, y] = inputs else { return Err("a function of two arguments".into()) };
        let rule = BinaryRule { function: *self, x: **x, y: **y };
        Ok(ReplayResult::new(self.value(**x, **y), rule))
    }

    fn advance(&self, inputs: &[Inline<f64>]) -> Result<Outputs<f64>, RuleError> {
        let [x, y] = inputs else { return Err("a function of two arguments".into()) };
        Ok(Outputs::One(self.value(**x, **y).into()))
    }
}

/// A recorded function: its value, and its place if it is on a tape.
type Recorded = (f64, Result<Place, Error>);

/// The handle of a recorded function on `tape`.
fn handle(tape: Tape<f64>, (value, place): Recorded) -> Var<f64> {
    match place {
        Ok(place) => Var { value: value.into(), link: Link::Node { tape, place } },
        Err(error) => unrecorded(value, error),
    }
}

/// What an operator gives that could not record its result.
fn unrecorded(value: f64, error: Error) -> Var<f64> {
    match error {
        Error::MissingNode => Var::detached(value),
        error => Var::broken(value.into(), error),
    }
}

fn record_unary(function: Unary, tape: &Tape<f64>, x: &Var<f64>) -> Recorded {
    let y = function.value(*x.value());
    let place = match current_mode().decide(Hint::Cheap) {
        Decision::Retain => tape.on(&[x]).retain_at(y.into(), UnaryRule { function, x: *x.value(), y }),
        Decision::Checkpoint => tape.on(&[x]).checkpoint_at(&y.into(), function),
    };
    (y, place)
}

fn record_binary(function: Binary, tape: &Tape<f64>, x: &Var<f64>, y: &Var<f64>) -> Recorded {
    let value = function.value(*x.value(), *y.value());
    let place = match current_mode().decide(Hint::Cheap) {
        Decision::Retain => {
            tape.on(&[x, y]).retain_at(value.into(), BinaryRule { function, x: *x.value(), y: *y.value() })
        }
        Decision::Checkpoint => tape.on(&[x, y]).checkpoint_at(&value.into(), function),
    };
    (value, place)
}

fn unary(function: Unary, x: &Var<f64>) -> Var<f64> {
    match x.try_tape() {
        Ok(tape) => handle(tape.clone(), record_unary(function, tape, x)),
        Err(error) => unrecorded(function.value(*x.value()), error),
    }
}

fn binary(function: Binary, x: &Var<f64>, y: &Var<f64>) -> Var<f64> {
    match common_tape(x, y) {
        Ok(tape) => handle(tape.clone(), record_binary(function, tape, x, y)),
        Err(error) => unrecorded(function.value(*x.value(), *y.value()), error),
    }
}

/// [`unary`] with an operand that is given up: the result takes over its hold of the tape.
fn unary_of(function: Unary, x: Var<f64>) -> Var<f64> {
    let recorded = match &x.link {
        Link::Node { tape, .. } => record_unary(function, tape, &x),
        _ => return unary(function, &x),
    };
    reuse(x, recorded)
}

/// [`binary`] with a first operand that is given up: the result takes over its hold of the tape.
fn binary_of(function: Binary, x: Var<f64>, y: &Var<f64>) -> Var<f64> {
    let recorded = match &x.link {
        Link::Node { tape, .. } => record_binary(function, tape, &x, y),
        _ => return binary(function, &x, y),
    };
    reuse(x, recorded)
}

fn reuse(operand: Var<f64>, recorded: Recorded) -> Var<f64> {
    match operand.link {
        Link::Node { tape, .. } => handle(tape, recorded),
        Link::Detached | Link::Broken(_) => Var::detached(recorded.0),
    }
}

/// The tape of the first operand that is on one.
pub(crate) fn common_tape<'a, V: crate::Differentiable>(
    x: &'a Var<V>,
    y: &'a Var<V>,
) -> Result<&'a Tape<V>, Error> {
    match x.try_tape() {
        Err(Error::MissingNode) => y.try_tape(),
        other => other,
    }
}

/// Forwards an operator from every mix of owned and borrowed operands.
macro_rules! operator {
    ($trait:ident, $method:ident, $function:ident, $by:ident, $from:ident) => {
        impl $trait<&Var<f64>> for &Var<f64> {
            type Output = Var<f64>;
            fn $method(self, other: &Var<f64>) -> Var<f64> {
                binary(Binary::$function, self, other)
            }
        }
        impl $trait<Var<f64>> for &Var<f64> {
            type Output = Var<f64>;
            fn $method(self, other: Var<f64>) -> Var<f64> {
                self.$method(&other)
            }
        }
        impl $trait<&Var<f64>> for Var<f64> {
            type Output = Var<f64>;
            fn $method(self, other: &Var<f64>) -> Var<f64> {
                binary_of(Binary::$function, self, other)
            }
        }
        impl $trait<Var<f64>> for Var<f64> {
            type Output = Var<f64>;
            fn $method(self, other: Var<f64>) -> Var<f64> {
                binary_of(Binary::$function, self, &other)
            }
        }
        impl $trait<f64> for &Var<f64> {
            type Output = Var<f64>;
            fn $method(self, other: f64) -> Var<f64> {
                unary(Unary::$by(other), self)
            }
        }
        impl $trait<f64> for Var<f64> {
            type Output = Var<f64>;
            fn $method(self, other: f64) -> Var<f64> {
                unary_of(Unary::$by(other), self)
            }
        }
        impl $trait<&Var<f64>> for f64 {
            type Output = Var<f64>;
            fn $method(self, other: &Var<f64>) -> Var<f64> {
                unary(Unary::$from(self), other)
            }
        }
        impl $trait<Var<f64>> for f64 {
            type Output = Var<f64>;
            fn $method(self, other: Var<f64>) -> Var<f64> {
                unary_of(Unary::$from(self), other)
            }
        }
    };
}

operator!(Add, add, Add, Plus, Plus);
operator!(Sub, sub, Sub, Less, SubtractFrom);
operator!(Mul, mul, Mul, Times, Times);
operator!(Div, div, Div, Over, DivideInto);

impl Neg for &Var<f64> {
    type Output = Var<f64>;
    fn neg(self) -> Var<f64> {
        unary(Unary::Neg, self)
    }
}

impl Neg for Var<f64> {
    type Output = Var<f64>;
    fn neg(self) -> Var<f64> {
        unary_of(Unary::Neg, self)
    }
}

macro_rules! functions_of_one {
    ($($method:ident $function:ident $what:literal;)*) => {
        impl Var<f64> {
            $(
                #[doc = $what]
                pub fn $method(&self) -> Var<f64> {
                    unary(Unary::$function, self)
                }
            )*
        }
    };
}

functions_of_one! {
    sin Sin "The sine.";
    cos Cos "The cosine.";
    tan Tan "The tangent.";
    exp Exp "The exponential.";
    ln Ln "The natural logarithm.";
    sqrt Sqrt "The square root.";
    tanh Tanh "The hyperbolic tangent.";
    sinh Sinh "The hyperbolic sine.";
    cosh Cosh "The hyperbolic cosine.";
    atan Atan "The arc tangent.";
    recip Recip "The reciprocal.";
    abs Abs "The absolute value; its derivative at zero is zero.";
}

impl Var<f64> {
    /// An integer power.
    pub fn powi(&self, exponent: i32) -> Var<f64> {
        unary(Unary::Powi(exponent), self)
    }

    /// A power with a constant exponent.
    pub fn powf(&self, exponent: f64) -> Var<f64> {
        unary(Unary::Powf(exponent), self)
    }

    /// A power with a tracked exponent.
    pub fn pow(&self, exponent: &Var<f64>) -> Var<f64> {
        binary(Binary::Pow, self, exponent)
    }

    /// The larger of two; of equals, the derivative is that of the first.
    pub fn max(&self, other: &Var<f64>) -> Var<f64> {
        binary(Binary::Max, self, other)
    }

    /// The smaller of two; of equals, the derivative is that of the first.
    pub fn min(&self, other: &Var<f64>) -> Var<f64> {
        binary(Binary::Min, self, other)
    }

    /// The angle of the point (`other`, `self`).
    pub fn atan2(&self, other: &Var<f64>) -> Var<f64> {
        binary(Binary::Atan2, self, other)
    }

    /// The length of the vector of two.
    pub fn hypot(&self, other: &Var<f64>) -> Var<f64> {
        binary(Binary::Hypot, self, other)
    }
}
