//! Tracked arrays: elementary functions with broadcasting, sums, products of matrices, changes of shape.

use std::sync::Arc;

use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn, Zip};

use crate::array_linear::{Dot, Linear};
use crate::elementary::{Binary, Unary};
use crate::operators::{Apply, Elementwise, common_tape, unrecorded};
use crate::{
    Differentiable, Error, InputCotangents, Operation, Point, Result, RuleError, RuleResult, SecondOrder,
    Tangents, Tape, Var, mix_words,
};

pub(crate) type Values = ArrayD<f64>;

/// Arrays of any rank. Cotangents have the shape of their values, and a seed or direction of another shape is an
/// error. One that a custom rule makes is taken as it is: where another is added that cannot be broadcast to it, the
/// sum is NaN.
impl Differentiable for ArrayD<f64> {
    type Tangent = ArrayD<f64>;
    type Shared = Arc<ArrayD<f64>>;

    fn zero_tangent(&self) -> Values {
        ArrayD::zeros(self.raw_dim())
    }

    fn accumulate(sum: &mut Values, other: Values) {
        match other.broadcast(sum.raw_dim()) {
            Some(other) => *sum += &other,
            None => sum.fill(f64::NAN),
        }
    }

    fn admits(&self, tangent: &Values) -> bool {
        tangent.shape() == self.shape()
    }

    fn element_count(&self) -> usize {
        self.len()
    }

    fn unit_cotangent(&self) -> Values {
        ArrayD::ones(self.raw_dim())
    }

    fn byte_count(&self) -> u64 {
        (self.len() * size_of::<f64>()) as u64
    }

    fn fingerprint(&self) -> Option<u64> {
        let shape = self.shape().iter().map(|&length| length as u64);
        Some(mix_words(shape.chain(self.iter().map(|x| x.to_bits()))))
    }
}

impl Apply for ArrayD<f64> {
    fn unary(function: Unary, x: &Var<Self>) -> Var<Self> {
        applied(x.try_tape(), function, &[x])
    }

    fn binary(function: Binary, x: &Var<Self>, y: &Var<Self>) -> Var<Self> {
        applied(common_tape(x, y), function, &[x, y])
    }
}

impl Elementwise for ArrayD<f64> {}

/// Applies an operation where no error can be returned; without a value there is NaN.
fn applied(
    tape: Result<&Tape<Values>>,
    operation: impl Operation<Values>,
    inputs: &[&Var<Values>],
) -> Var<Values> {
    let nothing = || ArrayD::from_elem(IxDyn(&[]), f64::NAN);
    match tape {
        Ok(tape) => {
            tape.apply(operation, inputs).unwrap_or_else(|error| Var::broken(nothing().into(), error))
        }
        Err(error) => {
            let values: Vec<_> = inputs.iter().map(|input| input.share()).collect();
            match operation.forward(&values) {
                Ok(value) => unrecorded(value, error),
                Err(failed) => Var::broken(nothing().into(), Error::Forward(failed.to_string().into())),
            }
        }
    }
}

/// An operation on one array, or on none that is on a tape.
fn apply(operation: impl Operation<Values>, inputs: &[&Var<Values>]) -> Result<Var<Values>> {
    let on_tape = inputs.iter().find_map(|input| match input.try_tape() {
        Err(Error::MissingNode) => None,
        other => Some(other),
    });
    match on_tape {
        Some(tape) => tape?.apply(operation, inputs),
        None => {
            let values: Vec<_> = inputs.iter().map(|input| input.share()).collect();
            let value =
                operation.forward(&values).map_err(|error| Error::Forward(error.to_string().into()))?;
            Ok(Var::detached(value))
        }
    }
}

impl Var<ArrayD<f64>> {
    /// The sum of all elements, as an array of rank zero.
    pub fn sum(&self) -> Var<ArrayD<f64>> {
        applied(self.try_tape(), Linear::Sum, &[self])
    }

    /// The mean of all elements, as an array of rank zero.
    pub fn mean(&self) -> Var<ArrayD<f64>> {
        applied(self.try_tape(), Linear::Mean, &[self])
    }

    /// The product of two matrices, of a matrix and a vector, of a vector and a matrix, or of two vectors.
    pub fn dot(&self, other: &Var<ArrayD<f64>>) -> Result<Var<ArrayD<f64>>> {
        apply(Dot, &[self, other])
    }

    /// The array with its axes in reverse order.
    pub fn t(&self) -> Var<ArrayD<f64>> {
        applied(self.try_tape(), Linear::Transpose, &[self])
    }

    /// The same elements in another shape.
    pub fn reshape(&self, shape: &[usize]) -> Result<Var<ArrayD<f64>>> {
        apply(Linear::Reshape(shape.into()), &[self])
    }

    /// The array repeated along new leading axes and axes of length one.
    pub fn broadcast(&self, shape: &[usize]) -> Result<Var<ArrayD<f64>>> {
        apply(Linear::Broadcast(shape.into()), &[self])
    }
}

/// The shape that two shapes are broadcast to.
fn common_shape(x: &[usize], y: &[usize]) -> RuleResult<Vec<usize>> {
    let rank = x.len().max(y.len());
    let length = |shape: &[usize], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(axis) => shape[axis],
        None => 1,
    };
    (0..rank)
        .map(|axis| match (length(x, axis), length(y, axis)) {
            (a, b) if a == b => Ok(a),
            (1, b) => Ok(b),
            (a, 1) => Ok(a),
            _ => Err(format!("arrays of shapes {x:?} and {y:?} do not go together").into()),
        })
        .collect()
}

pub(crate) fn spread<'a>(x: &'a Values, shape: &[usize]) -> RuleResult<ArrayViewD<'a, f64>> {
    x.broadcast(IxDyn(shape)).ok_or_else(|| mismatch(x.shape(), shape))
}

pub(crate) fn mismatch(found: &[usize], expected: &[usize]) -> RuleError {
    format!("an array of shape {found:?} where shape {expected:?} was expected").into()
}

/// Sums what was broadcast back to the shape it came from.
pub(crate) fn gathered(mut x: Values, shape: &[usize]) -> Values {
    while x.ndim() > shape.len() {
        x = x.sum_axis(Axis(0));
    }
    for (axis, &length) in shape.iter().enumerate() {
        if length == 1 && x.len_of(Axis(axis)) != 1 {
            x = x.sum_axis(Axis(axis)).insert_axis(Axis(axis));
        }
    }
    x
}

impl Operation<Values> for Unary {
    fn forward(&self, inputs: &[Arc<Values>]) -> RuleResult<Values> {
        Ok(inputs[0].mapv(|x| self.value(x)))
    }

    fn pullback(
        &self,
        at: Point<'_, Values>,
        c: &Values,
        inputs: &mut InputCotangents<'_, Values>,
    ) -> RuleResult {
        inputs.add(0, along(*self, &at, c)?)
    }

    fn second_order(&self) -> SecondOrder {
        Unary::second_order(*self)
    }

    fn pushforward(&self, at: Point<'_, Values>, tangents: &Tangents<'_, Values>) -> RuleResult<Values> {
        match tangents.get(0) {
            Some(tangent) => along(*self, &at, tangent),
            None => Ok(at.output.zero_tangent()),
        }
    }

    fn pullback_tangent(
        &self,
        at: Point<'_, Values>,
        cotangent: Option<&Values>,
        change: Option<&Values>,
        tangents: &Tangents<'_, Values>,
        inputs: &mut InputCotangents<'_, Values>,
    ) -> RuleResult {
        if let Some(change) = change {
            inputs.add(0, along(*self, &at, change)?)?;
        }
        if let (Some(c), Some(tangent)) = (cotangent, tangents.get(0)) {
            let shape = at.output.shape();
            let second = Zip::from(spread(c, shape)?)
                .and(spread(tangent, shape)?)
                .and(&*at.inputs[0])
                .and(at.output)
                .map_collect(|c, t, &x, &y| c * self.second_derivative(x, y) * t);
            inputs.add(0, second)?;
        }
        Ok(())
    }
}

/// The derivative of an elementary function times a direction.
fn along(function: Unary, at: &Point<'_, Values>, direction: &Values) -> RuleResult<Values> {
    Ok(Zip::from(spread(direction, at.output.shape())?)
        .and(&*at.inputs[0])
        .and(at.output)
        .map_collect(|d, &x, &y| d * function.derivative(x, y)))
}

impl Binary {
    /// The derivative along one argument, times a direction in the shape of the output.
    fn along(self, argument: usize, at: &Point<'_, Values>, direction: &Values) -> RuleResult<Values> {
        let shape = at.output.shape();
        Ok(Zip::from(spread(direction, shape)?)
            .and(spread(&at.inputs[0], shape)?)
            .and(spread(&at.inputs[1], shape)?)
            .map_collect(|d, &x, &y| d * self.derivatives(x, y)[argument]))
    }
}

impl Operation<Values> for Binary {
    fn forward(&self, inputs: &[Arc<Values>]) -> RuleResult<Values> {
        let shape = common_shape(inputs[0].shape(), inputs[1].shape())?;
        let (x, y) = (spread(&inputs[0], &shape)?, spread(&inputs[1], &shape)?);
        Ok(Zip::from(x).and(y).map_collect(|&x, &y| self.value(x, y)))
    }

    fn pullback(
        &self,
        at: Point<'_, Values>,
        c: &Values,
        inputs: &mut InputCotangents<'_, Values>,
    ) -> RuleResult {
        for index in 0..2 {
            if inputs.wants(index) {
                inputs.add(index, gathered(self.along(index, &at, c)?, at.inputs[index].shape()))?;
            }
        }
        Ok(())
    }

    fn second_order(&self) -> SecondOrder {
        Binary::second_order(*self)
    }

    fn pushforward(&self, at: Point<'_, Values>, tangents: &Tangents<'_, Values>) -> RuleResult<Values> {
        let mut sum = at.output.zero_tangent();
        for index in 0..2 {
            if let Some(tangent) = tangents.get(index) {
                sum += &self.along(index, &at, tangent)?;
            }
        }
        Ok(sum)
    }

    fn pullback_tangent(
        &self,
        at: Point<'_, Values>,
        cotangent: Option<&Values>,
        change: Option<&Values>,
        tangents: &Tangents<'_, Values>,
        inputs: &mut InputCotangents<'_, Values>,
    ) -> RuleResult {
        let shape = at.output.shape();
        let (x, y) = (spread(&at.inputs[0], shape)?, spread(&at.inputs[1], shape)?);
        for index in 0..2 {
            let mut sum = at.output.zero_tangent();
            if let Some(change) = change {
                sum += &self.along(index, &at, change)?;
            }
            for other in 0..2 {
                if let (Some(c), Some(tangent)) = (cotangent, tangents.get(other)) {
                    Zip::from(&mut sum)
                        .and(spread(c, shape)?)
                        .and(spread(tangent, shape)?)
                        .and(&x)
                        .and(&y)
                        .for_each(|sum, c, t, &x, &y| {
                            *sum += c * self.second_derivatives(x, y)[index + other] * t
                        });
                }
            }
            inputs.add(index, gathered(sum, at.inputs[index].shape()))?;
        }
        Ok(())
    }
}
