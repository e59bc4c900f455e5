//! Tracked `f32` and `f64`: rules that hold two numbers and a name.

use crate::elementary::{Binary, Slope, Unary};
use crate::number::{Float, Number};
use crate::operators::{Apply, Elementwise, common_tape, unrecorded};
use crate::recording::Placed;
use crate::var::Link;
use crate::{
    CheckpointRecipe, Cotangents, Decision, Dual, Hint, Inline, InputCotangents, OutputTangents, Outputs,
    ReplayResult, ReverseRule, RuleResult, SecondOrder, Tangents, Tape, TrackedPoint, Var, current_mode,
};

#[derive(Clone, Copy)]
struct UnaryRule<T> {
    function: Unary,
    x: T,
    y: T,
}

impl<T: Float> UnaryRule<T> {
    fn slope(&self) -> Slope<T> {
        self.function.derivative(&self.x, &self.y)
    }
}

impl<T: Float> ReverseRule<T> for UnaryRule<T> {
    fn pullback(&self, outputs: &Cotangents<'_, T>, inputs: &mut InputCotangents<'_, T>) -> RuleResult {
        inputs.add(0, self.slope().times(outputs.only()?))
    }

    fn second_order(&self) -> SecondOrder {
        self.function.second_order()
    }

    fn pushforward(&self, inputs: &Tangents<'_, T>, outputs: &mut OutputTangents<'_, T>) -> RuleResult {
        let tangent = inputs.get(0).copied().unwrap_or(T::of(0.0));
        outputs.set(0, self.slope().times(&tangent))
    }

    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, T>,
        changes: &Cotangents<'_, T>,
        tangents: &Tangents<'_, T>,
        inputs: &mut InputCotangents<'_, T>,
    ) -> RuleResult {
        let mut change = T::of(0.0);
        if let Some(of_output) = changes.get(0) {
            T::accumulate(&mut change, self.slope().times(of_output));
        }
        if let (Some(cotangent), Some(tangent)) = (outputs.get(0), tangents.get(0)) {
            let bend = T::of(self.function.second_derivative(self.x.wide(), self.y.wide()));
            T::accumulate(&mut change, cotangent.times(&bend).times(tangent));
        }
        inputs.add(0, change)
    }

    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, T>,
        cotangents: &[Option<Var<T>>],
    ) -> RuleResult<Vec<Option<Var<T>>>> {
        let ([x], [y], [Some(cotangent)]) = (at.inputs, at.outputs, cotangents) else {
            return Ok(vec![None]);
        };
        Ok(vec![self.function.derivative(x, y).times_nonzero(cotangent)])
    }
}

#[derive(Clone, Copy)]
struct BinaryRule<T> {
    function: Binary,
    x: T,
    y: T,
}

impl<T: Float> BinaryRule<T> {
    fn slopes(&self) -> [Slope<T>; 2] {
        self.function.derivatives(&self.x, &self.y)
    }
}

impl<T: Float> ReverseRule<T> for BinaryRule<T> {
    fn pullback(&self, outputs: &Cotangents<'_, T>, inputs: &mut InputCotangents<'_, T>) -> RuleResult {
        let cotangent = outputs.only()?;
        let [along_x, along_y] = self.slopes();
        inputs.add(0, along_x.times(cotangent))?;
        inputs.add(1, along_y.times(cotangent))
    }

    fn second_order(&self) -> SecondOrder {
        self.function.second_order()
    }

    fn pushforward(&self, inputs: &Tangents<'_, T>, outputs: &mut OutputTangents<'_, T>) -> RuleResult {
        let mut sum = T::of(0.0);
        for (index, slope) in self.slopes().into_iter().enumerate() {
            if let Some(tangent) = inputs.get(index) {
                T::accumulate(&mut sum, slope.times(tangent));
            }
        }
        outputs.set(0, sum)
    }

    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, T>,
        changes: &Cotangents<'_, T>,
        tangents: &Tangents<'_, T>,
        inputs: &mut InputCotangents<'_, T>,
    ) -> RuleResult {
        let [xx, xy, yy] = self.function.second_derivatives(self.x.wide(), self.y.wide()).map(T::of);
        let rows = [[xx, xy], [xy, yy]];
        for (index, (slope, row)) in self.slopes().into_iter().zip(rows).enumerate() {
            let mut change = T::of(0.0);
            if let Some(of_output) = changes.get(0) {
                T::accumulate(&mut change, slope.times(of_output));
            }
            if let Some(cotangent) = outputs.get(0) {
                let along = |input: usize| {
                    tangents.get(input).map_or(T::of(0.0), |tangent| row[input].times(tangent))
                };
                T::accumulate(&mut change, cotangent.times(&along(0).sum(along(1))));
            }
            inputs.add(index, change)?;
        }
        Ok(())
    }

    fn pullback_on_tape(
        &self,
        at: TrackedPoint<'_, T>,
        cotangents: &[Option<Var<T>>],
    ) -> RuleResult<Vec<Option<Var<T>>>> {
        let ([x, y], [Some(cotangent)]) = (at.inputs, cotangents) else { return Ok(vec![None, None]) };
        let slopes = self.function.derivatives(x, y).into_iter().enumerate();
        Ok(slopes
            .map(|(index, slope)| if at.wants(index) { slope.times_nonzero(cotangent) } else { None })
            .collect())
    }
}

impl<T: Float> CheckpointRecipe<T> for Unary {
    fn replay(&self, inputs: &[Inline<T>]) -> RuleResult<ReplayResult<T>> {
        let [x] = inputs else { return Err("a function of one argument".into()) };
        let y = x.unary(*self);
        Ok(ReplayResult::new(y, UnaryRule { function: *self, x: **x, y }))
    }

    fn advance(&self, inputs: &[Inline<T>]) -> RuleResult<Outputs<T>> {
        let [x] = inputs else { return Err("a function of one argument".into()) };
        Ok(Outputs::One(x.unary(*self).into()))
    }
}

impl<T: Float> CheckpointRecipe<T> for Binary {
    fn replay(&self, inputs: &[Inline<T>]) -> RuleResult<ReplayResult<T>> {
        let [x, y] = inputs else { return Err("a function of two arguments".into()) };
        let rule = BinaryRule { function: *self, x: **x, y: **y };
        Ok(ReplayResult::new(x.binary(*self, y), rule))
    }

    fn advance(&self, inputs: &[Inline<T>]) -> RuleResult<Outputs<T>> {
        let [x, y] = inputs else { return Err("a function of two arguments".into()) };
        Ok(Outputs::One(x.binary(*self, y).into()))
    }
}

fn record_unary<T: Float>(function: Unary, tape: &Tape<T>, x: &Var<T>, y: T) -> Placed {
    match current_mode().decide(Hint::Cheap) {
        Decision::Retain => tape.on(&[x]).retain_at(y.into(), UnaryRule { function, x: *x.value(), y }),
        Decision::Checkpoint => tape.on(&[x]).checkpoint_at(&y.into(), function),
    }
}

fn record_binary<T: Float>(function: Binary, tape: &Tape<T>, x: &Var<T>, y: &Var<T>, value: T) -> Placed {
    match current_mode().decide(Hint::Cheap) {
        Decision::Retain => {
            tape.on(&[x, y]).retain_at(value.into(), BinaryRule { function, x: *x.value(), y: *y.value() })
        }
        Decision::Checkpoint => tape.on(&[x, y]).checkpoint_at(&value.into(), function),
    }
}

macro_rules! apply {
    ($float:ident) => {
        impl Apply for $float {
            fn unary(function: Unary, x: &Var<$float>) -> Var<$float> {
                let value = Number::unary(x.value(), function);
                match x.try_tape() {
                    Ok(tape) => handle(tape, value, record_unary(function, tape, x, value)),
                    Err(error) => unrecorded(value, error),
                }
            }

            fn binary(function: Binary, x: &Var<$float>, y: &Var<$float>) -> Var<$float> {
                let value = Number::binary(x.value(), function, y.value());
                match common_tape(x, y) {
                    Ok(tape) => handle(tape, value, record_binary(function, tape, x, y, value)),
                    Err(error) => unrecorded(value, error),
                }
            }

            #[inline]
            fn unary_of(function: Unary, x: Var<$float>) -> Var<$float> {
                let Link::Node { tape, .. } = &x.link else { return <$float as Apply>::unary(function, &x) };
                let value = Number::unary(x.value(), function);
                let placed = record_unary(function, tape, &x, value);
                reuse(x, value, placed)
            }

            #[inline]
            fn binary_of(function: Binary, x: Var<$float>, y: &Var<$float>) -> Var<$float> {
                let Link::Node { tape, .. } = &x.link else {
                    return <$float as Apply>::binary(function, &x, y);
                };
                let value = Number::binary(x.value(), function, y.value());
                let placed = record_binary(function, tape, &x, y, value);
                reuse(x, value, placed)
            }

            #[inline]
            fn dual_unary(function: Unary, x: &Dual<$float>) -> Dual<$float> {
                let value = Number::unary(x.value(), function);
                let slope = function.derivative(x.value(), &value);
                Dual::from_parts(value.into(), x.tangent().map(|tangent| slope.times(tangent)))
            }

            #[inline]
            fn dual_binary(function: Binary, x: &Dual<$float>, y: &Dual<$float>) -> Dual<$float> {
                let value = Number::binary(x.value(), function, y.value());
                let [along_x, along_y] = function.derivatives(x.value(), y.value());
                let along_x = x.tangent().map(|tangent| along_x.times(tangent));
                let along_y = y.tangent().map(|tangent| along_y.times(tangent));
                let tangent = match (along_x, along_y) {
                    (Some(x), Some(y)) => Some(x + y),
                    (one, other) => one.or(other),
                };
                Dual::from_parts(value.into(), tangent)
            }
        }

        impl Elementwise for $float {}
    };
}

apply!(f32);
apply!(f64);

/// The handle of a recorded function on `tape`.
fn handle<T: Float>(tape: &Tape<T>, value: T, placed: Placed) -> Var<T> {
    match placed {
        Ok(place) => tape.var(value.into(), place),
        Err(error) => Var::broken(value.into(), error),
    }
}

/// The handle of a recorded function that takes over an operand's hold of the tape.
#[inline]
fn reuse<T: Float>(operand: Var<T>, value: T, placed: Placed) -> Var<T> {
    match (placed, operand.link) {
        (Ok(place), Link::Node { tape, .. }) => Var { value: value.into(), link: Link::Node { tape, place } },
        (Err(error), _) => Var::broken(value.into(), error),
        (Ok(_), _) => Var::detached(value),
    }
}
