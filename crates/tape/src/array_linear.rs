//! Linear maps of arrays, and products of matrices and vectors.

use std::sync::Arc;

use ndarray::{ArrayD, ArrayView2, Axis, Ix2, IxDyn};

use crate::array::{Values, gathered, mismatch, spread};
use crate::{
    Differentiable, Hint, InputCotangents, Operation, Point, RuleError, RuleResult, SecondOrder, Tangents,
};

/// Linear maps of one array.
pub(crate) enum Linear {
    Sum,
    Mean,
    Transpose,
    Reshape(Box<[usize]>),
    Broadcast(Box<[usize]>),
}

impl Linear {
    fn apply(&self, x: &Values) -> RuleResult<Values> {
        Ok(match self {
            Linear::Sum => ArrayD::from_elem(IxDyn(&[]), x.sum()),
            Linear::Mean => ArrayD::from_elem(IxDyn(&[]), x.sum() / x.len() as f64),
            Linear::Transpose => x.t().to_owned(),
            Linear::Reshape(shape) => reshaped(x, shape)?,
            Linear::Broadcast(shape) => spread(x, shape)?.to_owned(),
        })
    }

    /// The transposed map, back to arrays of the given shape.
    fn apply_transposed(&self, c: &Values, shape: &[usize]) -> RuleResult<Values> {
        Ok(match self {
            Linear::Sum => spread(c, shape)?.to_owned(),
            Linear::Mean => {
                let count = shape.iter().product::<usize>() as f64;
                spread(c, shape)?.mapv(|c| c / count)
            }
            Linear::Transpose => c.t().to_owned(),
            Linear::Reshape(_) => reshaped(c, shape)?,
            Linear::Broadcast(_) => gathered(c.clone(), shape),
        })
    }
}

fn reshaped(x: &Values, shape: &[usize]) -> RuleResult<Values> {
    x.to_shape(IxDyn(shape)).map(|x| x.to_owned()).map_err(|_| mismatch(x.shape(), shape))
}

impl Operation<Values> for Linear {
    fn forward(&self, inputs: &[Arc<Values>]) -> RuleResult<Values> {
        self.apply(&inputs[0])
    }

    fn pullback(
        &self,
        at: Point<'_, Values>,
        c: &Values,
        inputs: &mut InputCotangents<'_, Values>,
    ) -> RuleResult {
        inputs.add(0, self.apply_transposed(c, at.inputs[0].shape())?)
    }

    fn second_order(&self) -> SecondOrder {
        SecondOrder::Linear
    }

    fn pushforward(&self, at: Point<'_, Values>, tangents: &Tangents<'_, Values>) -> RuleResult<Values> {
        tangents.get(0).map_or_else(|| Ok(at.output.zero_tangent()), |tangent| self.apply(tangent))
    }
}

/// Products of matrices and vectors.
pub(crate) struct Dot;

/// The first factor as a matrix: a vector is a row.
fn rows(x: &Values) -> RuleResult<ArrayView2<'_, f64>> {
    let view = if x.ndim() == 1 { x.view().insert_axis(Axis(0)) } else { x.view() };
    view.into_dimensionality::<Ix2>().map_err(|_| not_a_factor(x))
}

/// The second factor as a matrix: a vector is a column.
fn columns(x: &Values) -> RuleResult<ArrayView2<'_, f64>> {
    let view = if x.ndim() == 1 { x.view().insert_axis(Axis(1)) } else { x.view() };
    view.into_dimensionality::<Ix2>().map_err(|_| not_a_factor(x))
}

fn not_a_factor(x: &Values) -> RuleError {
    format!("an array of shape {:?} is neither a matrix nor a vector", x.shape()).into()
}

fn product(x: &Values, y: &Values) -> RuleResult<Values> {
    let (left, right) = (rows(x)?, columns(y)?);
    if left.ncols() != right.nrows() {
        return Err(format!("arrays of shapes {:?} and {:?} have no product", x.shape(), y.shape()).into());
    }
    let mut shape = x.shape()[..x.ndim() - 1].to_vec();
    shape.extend(y.shape().iter().skip(1));
    reshaped(&left.dot(&right).into_dyn(), &shape)
}

impl Dot {
    /// Adds the cotangents of both factors that follow from `c`, where the factors are `x` and `y`.
    fn pull(
        x: Option<&Values>,
        y: Option<&Values>,
        at: &Point<'_, Values>,
        c: &Values,
        inputs: &mut InputCotangents<'_, Values>,
    ) -> RuleResult {
        let (first, second) = (&at.inputs[0], &at.inputs[1]);
        let c = reshaped(c, &[rows(first)?.nrows(), columns(second)?.ncols()])?;
        let c = rows(&c)?;
        if let (Some(y), true) = (y, inputs.wants(0)) {
            inputs.add(0, reshaped(&c.dot(&columns(y)?.t()).into_dyn(), first.shape())?)?;
        }
        if let (Some(x), true) = (x, inputs.wants(1)) {
            inputs.add(1, reshaped(&rows(x)?.t().dot(&c).into_dyn(), second.shape())?)?;
        }
        Ok(())
    }
}

impl Operation<Values> for Dot {
    fn forward(&self, inputs: &[Arc<Values>]) -> RuleResult<Values> {
        product(&inputs[0], &inputs[1])
    }

    fn hint(&self) -> Hint {
        Hint::Expensive
    }

    fn pullback(
        &self,
        at: Point<'_, Values>,
        c: &Values,
        inputs: &mut InputCotangents<'_, Values>,
    ) -> RuleResult {
        Dot::pull(Some(&at.inputs[0]), Some(&at.inputs[1]), &at, c, inputs)
    }

    fn second_order(&self) -> SecondOrder {
        SecondOrder::Smooth
    }

    fn pushforward(&self, at: Point<'_, Values>, tangents: &Tangents<'_, Values>) -> RuleResult<Values> {
        let mut sum = at.output.zero_tangent();
        if let Some(tangent) = tangents.get(0) {
            sum += &product(tangent, &at.inputs[1])?;
        }
        if let Some(tangent) = tangents.get(1) {
            sum += &product(&at.inputs[0], tangent)?;
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
        if let Some(change) = change {
            Dot::pull(Some(&at.inputs[0]), Some(&at.inputs[1]), &at, change, inputs)?;
        }
        match cotangent {
            Some(c) => Dot::pull(tangents.get(0), tangents.get(1), &at, c, inputs),
            None => Ok(()),
        }
    }
}
