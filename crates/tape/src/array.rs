//! Tracked arrays: elementary functions with broadcasting, sums, products of matrices, changes of shape.

use std::ops::AddAssign;
use std::sync::Arc;

use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn, LinalgScalar, Zip};

use crate::array_linear::{Dot, Linear};
use crate::elementary::{Binary, Unary};
use crate::number::Float;
use crate::operators::{Apply, Elementwise, common_tape, unrecorded};
use crate::{
    Differentiable, Dual, Error, HigherOrder, InputCotangents, Operation, Point, Result, RuleError,
    RuleResult, SecondOrder, Tangents, Tape, TrackedPoint, Var, mix_words,
};

/// An element of tracked arrays: `f32` or `f64`.
pub trait ArrayElement: Float + LinalgScalar + AddAssign {}

impl ArrayElement for f32 {}
impl ArrayElement for f64 {}

/// Arrays of any rank. Cotangents have the shape of their values, and a seed or direction of another shape is an
/// error. One that a custom rule makes is taken as it is: where another is added that cannot be broadcast to it, the
/// sum is NaN.
impl<T: ArrayElement> Differentiable for ArrayD<T> {
    type Tangent = ArrayD<T>;
    type Shared = Arc<ArrayD<T>>;

    fn zero_tangent(&self) -> ArrayD<T> {
        ArrayD::zeros(self.raw_dim())
    }

    fn accumulate(sum: &mut ArrayD<T>, other: ArrayD<T>) {
        match other.broadcast(sum.raw_dim()) {
            Some(other) => *sum += &other,
            None => sum.fill(T::of(f64::NAN)),
        }
    }

    fn admits(&self, tangent: &ArrayD<T>) -> bool {
        tangent.shape() == self.shape()
    }

    fn element_count(&self) -> usize {
        self.len()
    }

    fn unit_cotangent(&self) -> ArrayD<T> {
        ArrayD::ones(self.raw_dim())
    }

    fn byte_count(&self) -> u64 {
        (self.len() * size_of::<T>()) as u64
    }

    fn fingerprint(&self) -> Option<u64> {
        let shape = self.shape().iter().map(|&length| length as u64);
        Some(mix_words(shape.chain(self.iter().map(|x| x.wide().to_bits()))))
    }
}

impl<T: ArrayElement> Apply for ArrayD<T> {
    fn unary(function: Unary, x: &Var<Self>) -> Var<Self> {
        applied(x.try_tape(), function, &[x])
    }

    fn binary(function: Binary, x: &Var<Self>, y: &Var<Self>) -> Var<Self> {
        applied(common_tape(x, y), function, &[x, y])
    }

    fn dual_unary(function: Unary, x: &Dual<Self>) -> Dual<Self> {
        Dual::apply(&function, &[x]).unwrap_or_else(|error| Dual::broken(nothing::<T>(), error))
    }

    fn dual_binary(function: Binary, x: &Dual<Self>, y: &Dual<Self>) -> Dual<Self> {
        Dual::apply(&function, &[x, y]).unwrap_or_else(|error| Dual::broken(nothing::<T>(), error))
    }
}

impl<T: ArrayElement> Elementwise for ArrayD<T> {}

impl<T: ArrayElement> HigherOrder for ArrayD<T> {
    fn tracked_sum(x: &Var<Self>, y: &Var<Self>) -> Var<Self> {
        x + y
    }
}

/// What stands for a value that there is none of.
pub(crate) fn nothing<T: ArrayElement>() -> ArrayD<T> {
    ArrayD::from_elem(IxDyn(&[]), T::of(f64::NAN))
}

/// Applies an operation where no error can be returned; without a value there is NaN.
fn applied<T: ArrayElement>(
    tape: Result<&Tape<ArrayD<T>>>,
    operation: impl Operation<ArrayD<T>>,
    inputs: &[&Var<ArrayD<T>>],
) -> Var<ArrayD<T>> {
    match tape {
        Ok(tape) => {
            tape.apply(operation, inputs).unwrap_or_else(|error| Var::broken(nothing::<T>().into(), error))
        }
        Err(error) => {
            let values: Vec<_> = inputs.iter().map(|input| input.share()).collect();
            match operation.forward(&values) {
                Ok(value) => unrecorded(value, error),
                Err(failed) => Var::broken(nothing::<T>().into(), Error::Forward(failed.to_string().into())),
            }
        }
    }
}

/// An operation on one array, or on none that is on a tape.
fn apply<T: ArrayElement>(
    operation: impl Operation<ArrayD<T>>,
    inputs: &[&Var<ArrayD<T>>],
) -> Result<Var<ArrayD<T>>> {
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

impl<T: ArrayElement> Var<ArrayD<T>> {
    /// The sum of all elements, as an array of rank zero.
    pub fn sum(&self) -> Var<ArrayD<T>> {
        applied(self.try_tape(), Linear::Sum, &[self])
    }

    /// The mean of all elements, as an array of rank zero.
    pub fn mean(&self) -> Var<ArrayD<T>> {
        applied(self.try_tape(), Linear::Mean, &[self])
    }

    /// The product of two matrices, of a matrix and a vector, of a vector and a matrix, or of two vectors.
    pub fn dot(&self, other: &Var<ArrayD<T>>) -> Result<Var<ArrayD<T>>> {
        apply(Dot, &[self, other])
    }

    /// The array with its axes in reverse order.
    pub fn t(&self) -> Var<ArrayD<T>> {
        applied(self.try_tape(), Linear::Transpose, &[self])
    }

    /// The same elements in another shape.
    pub fn reshape(&self, shape: &[usize]) -> Result<Var<ArrayD<T>>> {
        apply(Linear::Reshape(shape.into()), &[self])
    }

    /// The sums over what a [broadcast](Var::broadcast) from `shape` repeats: its transpose.
    pub fn sum_to(&self, shape: &[usize]) -> Result<Var<ArrayD<T>>> {
        apply(Linear::SumTo(shape.into()), &[self])
    }

    /// The array repeated along new leading axes and axes of length one.
    pub fn broadcast(&self, shape: &[usize]) -> Result<Var<ArrayD<T>>> {
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

pub(crate) fn spread<'a, T>(x: &'a ArrayD<T>, shape: &[usize]) -> RuleResult<ArrayViewD<'a, T>> {
    x.broadcast(IxDyn(shape)).ok_or_else(|| mismatch(x.shape(), shape))
}

pub(crate) fn mismatch(found: &[usize], expected: &[usize]) -> RuleError {
    format!("an array of shape {found:?} where shape {expected:?} was expected").into()
}

/// Sums what was broadcast back to the shape it came from.
pub(crate) fn gathered<T: ArrayElement>(mut x: ArrayD<T>, shape: &[usize]) -> ArrayD<T> {
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

impl<T: ArrayElement> Operation<ArrayD<T>> for Unary {
    fn forward(&self, inputs: &[Arc<ArrayD<T>>]) -> RuleResult<ArrayD<T>> {
        Ok(inputs[0].mapv(|x| x.unary(*self)))
    }

    fn pullback(
        &self,
        at: Point<'_, ArrayD<T>>,
        c: &ArrayD<T>,
        inputs: &mut InputCotangents<'_, ArrayD<T>>,
    ) -> RuleResult {
        inputs.add(0, along(*self, &at, c)?)
    }

    fn second_order(&self) -> SecondOrder {
        Unary::second_order(*self)
    }

    fn pushforward(
        &self,
        at: Point<'_, ArrayD<T>>,
        tangents: &Tangents<'_, ArrayD<T>>,
    ) -> RuleResult<ArrayD<T>> {
        match tangents.get(0) {
            Some(tangent) => along(*self, &at, tangent),
            None => Ok(at.output.zero_tangent()),
        }
    }

    fn pullback_tangent(
        &self,
        at: Point<'_, ArrayD<T>>,
        cotangent: Option<&ArrayD<T>>,
        change: Option<&ArrayD<T>>,
        tangents: &Tangents<'_, ArrayD<T>>,
        inputs: &mut InputCotangents<'_, ArrayD<T>>,
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
                .map_collect(|&c, &t, x, y| c * T::of(self.second_derivative(x.wide(), y.wide())) * t);
            inputs.add(0, second)?;
        }
        Ok(())
    }

    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, ArrayD<T>>,
        cotangent: &Var<ArrayD<T>>,
    ) -> RuleResult<Vec<Option<Var<ArrayD<T>>>>> {
        Ok(vec![self.derivative(&at.inputs[0], &at.outputs[0]).times_nonzero(cotangent)])
    }
}

/// The derivative of an elementary function times a direction.
fn along<T: ArrayElement>(
    function: Unary,
    at: &Point<'_, ArrayD<T>>,
    direction: &ArrayD<T>,
) -> RuleResult<ArrayD<T>> {
    Ok(Zip::from(spread(direction, at.output.shape())?)
        .and(&*at.inputs[0])
        .and(at.output)
        .map_collect(|d, x, y| function.derivative(x, y).times(d)))
}

impl Binary {
    /// The derivative along one argument, times a direction in the shape of the output.
    fn along<T: ArrayElement>(
        self,
        argument: usize,
        at: &Point<'_, ArrayD<T>>,
        direction: &ArrayD<T>,
    ) -> RuleResult<ArrayD<T>> {
        let shape = at.output.shape();
        Ok(Zip::from(spread(direction, shape)?)
            .and(spread(&at.inputs[0], shape)?)
            .and(spread(&at.inputs[1], shape)?)
            .map_collect(|d, x, y| {
                let [along_x, along_y] = self.derivatives(x, y);
                if argument == 0 { along_x.times(d) } else { along_y.times(d) }
            }))
    }
}

impl<T: ArrayElement> Operation<ArrayD<T>> for Binary {
    fn forward(&self, inputs: &[Arc<ArrayD<T>>]) -> RuleResult<ArrayD<T>> {
        let shape = common_shape(inputs[0].shape(), inputs[1].shape())?;
        let (x, y) = (spread(&inputs[0], &shape)?, spread(&inputs[1], &shape)?);
        Ok(Zip::from(x).and(y).map_collect(|x, y| x.binary(*self, y)))
    }

    fn pullback(
        &self,
        at: Point<'_, ArrayD<T>>,
        c: &ArrayD<T>,
        inputs: &mut InputCotangents<'_, ArrayD<T>>,
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

    fn pushforward(
        &self,
        at: Point<'_, ArrayD<T>>,
        tangents: &Tangents<'_, ArrayD<T>>,
    ) -> RuleResult<ArrayD<T>> {
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
        at: Point<'_, ArrayD<T>>,
        cotangent: Option<&ArrayD<T>>,
        change: Option<&ArrayD<T>>,
        tangents: &Tangents<'_, ArrayD<T>>,
        inputs: &mut InputCotangents<'_, ArrayD<T>>,
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
                        .for_each(|sum, &c, &t, x, y| {
                            let bends = self.second_derivatives(x.wide(), y.wide());
                            *sum += c * T::of(bends[index + other]) * t
                        });
                }
            }
            inputs.add(index, gathered(sum, at.inputs[index].shape()))?;
        }
        Ok(())
    }

    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, ArrayD<T>>,
        cotangent: &Var<ArrayD<T>>,
    ) -> RuleResult<Vec<Option<Var<ArrayD<T>>>>> {
        let mut cotangents = Vec::with_capacity(2);
        for (index, slope) in self.derivatives(&at.inputs[0], &at.inputs[1]).into_iter().enumerate() {
            let along = if at.wants(index) { slope.times_nonzero(cotangent) } else { None };
            let shape = at.inputs[index].value().shape();
            cotangents.push(match along {
                Some(along) if along.value().shape() != shape => Some(along.sum_to(shape)?),
                along => along,
            });
        }
        Ok(cotangents)
    }
}
