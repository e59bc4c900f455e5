//! Linear maps of arrays, and products of matrices and vectors.

use std::sync::Arc;

use ndarray::{ArrayD, ArrayView2, Axis, Ix2, IxDyn};

use crate::array::{ArrayElement, gathered, mismatch, spread};
use crate::elementary::Unary;
use crate::number::Number;
use crate::{
    Differentiable, Hint, InputCotangents, Operation, Point, RuleError, RuleResult, SecondOrder, Tangents,
    TrackedPoint, Var,
};

/// Linear maps of one array.
pub(crate) enum Linear {
    Sum,
    Mean,
    Transpose,
    Reshape(Box<[usize]>),
    Broadcast(Box<[usize]>),
    /// The transpose of `Broadcast`: sums over what was repeated.
    SumTo(Box<[usize]>),
}

impl Linear {
    fn apply<T: ArrayElement>(&self, x: &ArrayD<T>) -> RuleResult<ArrayD<T>> {
        Ok(match self {
            Linear::Sum => ArrayD::from_elem(IxDyn(&[]), x.sum()),
            Linear::Mean => ArrayD::from_elem(IxDyn(&[]), x.sum() / T::of(x.len() as f64)),
            Linear::Transpose => x.t().to_owned(),
            Linear::Reshape(shape) => reshaped(x, shape)?,
            Linear::Broadcast(shape) => spread(x, shape)?.to_owned(),
            // Only what `shape` can be broadcast to has such sums.
            Linear::SumTo(shape) if ArrayD::<T>::zeros(IxDyn(shape)).broadcast(x.raw_dim()).is_none() => {
                return Err(mismatch(x.shape(), shape));
            }
            Linear::SumTo(shape) => gathered(x.clone(), shape),
        })
    }

    /// The transposed map, back to arrays of the given shape.
    fn apply_transposed<T: ArrayElement>(&self, c: &ArrayD<T>, shape: &[usize]) -> RuleResult<ArrayD<T>> {
        Ok(match self {
            Linear::Sum => spread(c, shape)?.to_owned(),
            Linear::Mean => {
                let count = T::of(shape.iter().product::<usize>() as f64);
                spread(c, shape)?.mapv(|c| c / count)
            }
            Linear::Transpose => c.t().to_owned(),
            Linear::Reshape(_) => reshaped(c, shape)?,
            Linear::Broadcast(_) => gathered(c.clone(), shape),
            Linear::SumTo(_) => spread(c, shape)?.to_owned(),
        })
    }
}

fn reshaped<T: ArrayElement>(x: &ArrayD<T>, shape: &[usize]) -> RuleResult<ArrayD<T>> {
    x.to_shape(IxDyn(shape)).map(|x| x.to_owned()).map_err(|_| mismatch(x.shape(), shape))
}

impl<T: ArrayElement> Operation<ArrayD<T>> for Linear {
    fn forward(&self, inputs: &[Arc<ArrayD<T>>]) -> RuleResult<ArrayD<T>> {
        self.apply(&inputs[0])
    }

    fn pullback(
        &self,
        at: Point<'_, ArrayD<T>>,
        c: &ArrayD<T>,
        inputs: &mut InputCotangents<'_, ArrayD<T>>,
    ) -> RuleResult {
        inputs.add(0, self.apply_transposed(c, at.inputs[0].shape())?)
    }

    fn second_order(&self) -> SecondOrder {
        SecondOrder::Linear
    }

    fn pushforward(
        &self,
        at: Point<'_, ArrayD<T>>,
        tangents: &Tangents<'_, ArrayD<T>>,
    ) -> RuleResult<ArrayD<T>> {
        tangents.get(0).map_or_else(|| Ok(at.output.zero_tangent()), |tangent| self.apply(tangent))
    }

    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, ArrayD<T>>,
        c: &Var<ArrayD<T>>,
    ) -> RuleResult<Vec<Option<Var<ArrayD<T>>>>> {
        let x = at.inputs[0].value();
        let pulled = match self {
            Linear::Sum | Linear::SumTo(_) => c.broadcast(x.shape())?,
            Linear::Mean => c.broadcast(x.shape())?.unary(Unary::Over(x.len() as f64)),
            Linear::Transpose => c.t(),
            Linear::Reshape(_) => c.reshape(x.shape())?,
            Linear::Broadcast(_) => c.sum_to(x.shape())?,
        };
        Ok(vec![Some(pulled)])
    }
}

/// Products of matrices and vectors.
pub(crate) struct Dot;

/// The first factor as a matrix: a vector is a row.
fn rows<T>(x: &ArrayD<T>) -> RuleResult<ArrayView2<'_, T>> {
    let view = if x.ndim() == 1 { x.view().insert_axis(Axis(0)) } else { x.view() };
    view.into_dimensionality::<Ix2>().map_err(|_| not_a_factor(x))
}

/// The second factor as a matrix: a vector is a column.
fn columns<T>(x: &ArrayD<T>) -> RuleResult<ArrayView2<'_, T>> {
    let view = if x.ndim() == 1 { x.view().insert_axis(Axis(1)) } else { x.view() };
    view.into_dimensionality::<Ix2>().map_err(|_| not_a_factor(x))
}

fn not_a_factor<T>(x: &ArrayD<T>) -> RuleError {
    format!("an array of shape {:?} is neither a matrix nor a vector", x.shape()).into()
}

fn product<T: ArrayElement>(x: &ArrayD<T>, y: &ArrayD<T>) -> RuleResult<ArrayD<T>> {
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
    fn pull<T: ArrayElement>(
        x: Option<&ArrayD<T>>,
        y: Option<&ArrayD<T>>,
        at: &Point<'_, ArrayD<T>>,
        c: &ArrayD<T>,
        inputs: &mut InputCotangents<'_, ArrayD<T>>,
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

impl<T: ArrayElement> Operation<ArrayD<T>> for Dot {
    fn forward(&self, inputs: &[Arc<ArrayD<T>>]) -> RuleResult<ArrayD<T>> {
        product(&inputs[0], &inputs[1])
    }

    fn hint(&self) -> Hint {
        Hint::Expensive
    }

    fn pullback(
        &self,
        at: Point<'_, ArrayD<T>>,
        c: &ArrayD<T>,
        inputs: &mut InputCotangents<'_, ArrayD<T>>,
    ) -> RuleResult {
        Dot::pull(Some(&at.inputs[0]), Some(&at.inputs[1]), &at, c, inputs)
    }

    fn second_order(&self) -> SecondOrder {
        SecondOrder::Smooth
    }

    fn pushforward(
        &self,
        at: Point<'_, ArrayD<T>>,
        tangents: &Tangents<'_, ArrayD<T>>,
    ) -> RuleResult<ArrayD<T>> {
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
        at: Point<'_, ArrayD<T>>,
        cotangent: Option<&ArrayD<T>>,
        change: Option<&ArrayD<T>>,
        tangents: &Tangents<'_, ArrayD<T>>,
        inputs: &mut InputCotangents<'_, ArrayD<T>>,
    ) -> RuleResult {
        if let Some(change) = change {
            Dot::pull(Some(&at.inputs[0]), Some(&at.inputs[1]), &at, change, inputs)?;
        }
        match cotangent {
            Some(c) => Dot::pull(tangents.get(0), tangents.get(1), &at, c, inputs),
            None => Ok(()),
        }
    }

    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, ArrayD<T>>,
        c: &Var<ArrayD<T>>,
    ) -> RuleResult<Vec<Option<Var<ArrayD<T>>>>> {
        let (x, y) = (&at.inputs[0], &at.inputs[1]);
        let (x_shape, y_shape) = (x.value().shape(), y.value().shape());
        // As matrices: the first factor by rows, the second by columns.
        let left = [rows(x.value())?.nrows(), rows(x.value())?.ncols()];
        let right = [columns(y.value())?.nrows(), columns(y.value())?.ncols()];
        let c = c.reshape(&[left[0], right[1]])?;
        let of_x = || c.dot(&y.reshape(&right)?.t())?.reshape(x_shape);
        let of_y = || x.reshape(&left)?.t().dot(&c)?.reshape(y_shape);
        Ok(vec![at.wants(0).then(of_x).transpose()?, at.wants(1).then(of_y).transpose()?])
    }
}
