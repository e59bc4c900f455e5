//! Forward mode: values that carry their tangents. Nothing is recorded, and nothing but the values at hand is held.

use std::fmt;

use crate::rule::Tangents;
use crate::{Differentiable, Error, Operation, Point, Result, SecondOrder};

/// A value and its tangent: how it changes when the inputs move along a direction. No tangent is a tangent of zero.
///
/// Operators and functions work on duals as they do on [`Var`](crate::Var)s, and [`Dual::apply`] runs any
/// [`Operation`] that has a `pushforward`. An operator cannot return an error; if it fails (arrays whose shapes do not
/// go together), [`into_result`](Dual::into_result) says why.
///
/// ```
/// use ebbtide_tape::Dual;
/// let x = Dual::<f64>::with_tangent(3.0, 1.0)?;
/// let y = Dual::<f64>::new(2.0);
/// let z = (&x * &y).sin() + x.exp();
/// assert_eq!(z.tangent(), Some(&(6f64.cos() * 2.0 + 3f64.exp())));
/// assert!(!(&y * 2.0).has_tangent());
/// # Ok::<(), ebbtide_tape::Error>(())
/// ```
pub struct Dual<V: Differentiable> {
    value: V::Shared,
    tangent: Option<V::Tangent>,
    /// Why an operator has no result.
    error: Option<Box<Error>>,
}

impl<V: Differentiable> Clone for Dual<V>
where
    V::Tangent: Clone,
{
    fn clone(&self) -> Self {
        Dual { value: self.value.clone(), tangent: self.tangent.clone(), error: self.error.clone() }
    }
}

impl<V: Differentiable + fmt::Debug> fmt::Debug for Dual<V>
where
    V::Tangent: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dual").field("value", self.value()).field("tangent", &self.tangent).finish()
    }
}

impl<V: Differentiable> Dual<V> {
    /// A constant: it does not change.
    pub fn new(value: V) -> Self {
        Dual { value: value.into(), tangent: None, error: None }
    }

    /// A value that changes along `tangent`.
    pub fn with_tangent(value: V, tangent: V::Tangent) -> Result<Self> {
        Dual::of_shared(value.into(), Some(tangent))
    }

    /// A value that others share, with its tangent.
    pub fn of_shared(value: V::Shared, tangent: Option<V::Tangent>) -> Result<Self> {
        if tangent.as_ref().is_some_and(|tangent| !value.admits(tangent)) {
            return Err(Error::TangentMisfit);
        }
        Ok(Dual { value, tangent, error: None })
    }

    #[inline]
    pub(crate) fn from_parts(value: V::Shared, tangent: Option<V::Tangent>) -> Self {
        Dual { value, tangent, error: None }
    }

    #[cfg(feature = "ndarray")]
    pub(crate) fn broken(value: V, error: impl Into<Box<Error>>) -> Self {
        Dual { value: value.into(), tangent: None, error: Some(error.into()) }
    }

    /// The value.
    pub fn value(&self) -> &V {
        &self.value
    }

    /// The value, shared.
    pub fn share(&self) -> V::Shared {
        self.value.clone()
    }

    /// The tangent, if there is one; none is zero.
    pub fn tangent(&self) -> Option<&V::Tangent> {
        self.tangent.as_ref()
    }

    /// Whether there is a tangent.
    pub fn has_tangent(&self) -> bool {
        self.tangent.is_some()
    }

    /// The tangent, zero if there is none.
    pub fn tangent_or_zero(&self) -> V::Tangent
    where
        V::Tangent: Clone,
    {
        self.tangent.clone().unwrap_or_else(|| self.value.zero_tangent())
    }

    /// The same value as a constant.
    pub fn without_tangent(self) -> Self {
        Dual { tangent: None, ..self }
    }

    /// Value and tangent.
    pub fn into_parts(self) -> (V::Shared, Option<V::Tangent>) {
        (self.value, self.tangent)
    }

    /// The dual itself, or why an operator on the way had no result.
    pub fn into_result(self) -> Result<Self> {
        match self.error {
            Some(error) => Err(*error),
            None => Ok(self),
        }
    }

    /// Runs an operation and, where an input has a tangent, its `pushforward`.
    pub fn apply(operation: &impl Operation<V>, inputs: &[&Dual<V>]) -> Result<Self> {
        if let Some(error) = inputs.iter().find_map(|input| input.error.as_ref()) {
            return Err((**error).clone());
        }
        let values: Box<[V::Shared]> = inputs.iter().map(|input| input.share()).collect();
        let failed = |error: crate::RuleError| Error::Forward(error.to_string().into());
        let value = V::Shared::from(operation.forward(&values).map_err(failed)?);
        let tangents: Box<[Option<&V::Tangent>]> = inputs.iter().map(|input| input.tangent()).collect();
        let tangents = Tangents::of_inputs(&tangents);
        if !tangents.any() {
            return Ok(Dual::from_parts(value, None));
        }
        if operation.second_order() == SecondOrder::Unsupported {
            return Err(Error::JvpNotSupported);
        }
        let at = Point { inputs: &values, output: &*value };
        let tangent = operation.pushforward(at, &tangents).map_err(failed)?;
        Ok(Dual::from_parts(value, Some(tangent)))
    }
}

/// The value of a function at a point, and its Jacobian there times a direction; nothing is recorded.
///
/// ```
/// use ebbtide_tape::{Dual, jvp};
/// let (value, slope) = jvp(|[x, y]: &[Dual<f64>; 2]| x * y + x.sin(), [2.0, 3.0], [1.0, 0.0])?;
/// assert_eq!((*value, slope), (6.0 + 2f64.sin(), 3.0 + 2f64.cos()));
/// # Ok::<(), ebbtide_tape::Error>(())
/// ```
pub fn jvp<V: Differentiable, const N: usize>(
    function: impl FnOnce(&[Dual<V>; N]) -> Dual<V>,
    at: [V; N],
    along: [V::Tangent; N],
) -> Result<(V::Shared, V::Tangent)> {
    let mut along = along.into_iter();
    let inputs: [Dual<V>; N] = at.map(|value| Dual::from_parts(value.into(), along.next()));
    if inputs.iter().any(|input| !input.tangent().is_none_or(|tangent| input.value().admits(tangent))) {
        return Err(Error::TangentMisfit);
    }
    let (value, tangent) = function(&inputs).into_result()?.into_parts();
    let tangent = tangent.unwrap_or_else(|| value.zero_tangent());
    Ok((value, tangent))
}
