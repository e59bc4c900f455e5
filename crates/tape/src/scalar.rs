//! Tracked `f64`: rules that hold two numbers and a name.

use crate::elementary::{Binary, Unary};
use crate::operators::{Apply, Elementwise, common_tape, unrecorded};
use crate::recording::Placed;
use crate::var::Link;
use crate::{
    CheckpointRecipe, Cotangents, Decision, Hint, Inline, InputCotangents, OutputTangents, Outputs,
    ReplayResult, ReverseRule, RuleResult, SecondOrder, Tangents, Tape, Var, current_mode,
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
    fn replay(&self, inputs: &[Inline<f64>]) -> RuleResult<ReplayResult<f64>> {
        let [x] = inputs else { return Err("a function of one argument".into()) };
        let y = self.value(**x);
        Ok(ReplayResult::new(y, UnaryRule { function: *self, x: **x, y }))
    }

    fn advance(&self, inputs: &[Inline<f64>]) -> RuleResult<Outputs<f64>> {
        let [x] = inputs else { return Err("a function of one argument".into()) };
        Ok(Outputs::One(self.value(**x).into()))
    }
}

impl CheckpointRecipe<f64> for Binary {
    fn replay(&self, inputs: &[Inline<f64>]) -> RuleResult<ReplayResult<f64>> {
        let [x, y] = inputs else { return Err("a function of two arguments".into()) };
        let rule = BinaryRule { function: *self, x: **x, y: **y };
        Ok(ReplayResult::new(self.value(**x, **y), rule))
    }

    fn advance(&self, inputs: &[Inline<f64>]) -> RuleResult<Outputs<f64>> {
        let [x, y] = inputs else { return Err("a function of two arguments".into()) };
        Ok(Outputs::One(self.value(**x, **y).into()))
    }
}

fn record_unary(function: Unary, tape: &Tape<f64>, x: &Var<f64>, y: f64) -> Placed {
    match current_mode().decide(Hint::Cheap) {
        Decision::Retain => tape.on(&[x]).retain_at(y.into(), UnaryRule { function, x: *x.value(), y }),
        Decision::Checkpoint => tape.on(&[x]).checkpoint_at(&y.into(), function),
    }
}

fn record_binary(function: Binary, tape: &Tape<f64>, x: &Var<f64>, y: &Var<f64>, value: f64) -> Placed {
    match current_mode().decide(Hint::Cheap) {
        Decision::Retain => {
            tape.on(&[x, y]).retain_at(value.into(), BinaryRule { function, x: *x.value(), y: *y.value() })
        }
        Decision::Checkpoint => tape.on(&[x, y]).checkpoint_at(&value.into(), function),
    }
}

impl Apply for f64 {
    fn unary(function: Unary, x: &Var<f64>) -> Var<f64> {
        let value = function.value(*x.value());
        match x.try_tape() {
            Ok(tape) => handle(tape, value, record_unary(function, tape, x, value)),
            Err(error) => unrecorded(value, error),
        }
    }

    fn binary(function: Binary, x: &Var<f64>, y: &Var<f64>) -> Var<f64> {
        let value = function.value(*x.value(), *y.value());
        match common_tape(x, y) {
            Ok(tape) => handle(tape, value, record_binary(function, tape, x, y, value)),
            Err(error) => unrecorded(value, error),
        }
    }

    #[inline]
    fn unary_of(function: Unary, x: Var<f64>) -> Var<f64> {
        let Link::Node { tape, .. } = &x.link else { return f64::unary(function, &x) };
        let value = function.value(*x.value());
        let placed = record_unary(function, tape, &x, value);
        reuse(x, value, placed)
    }

    #[inline]
    fn binary_of(function: Binary, x: Var<f64>, y: &Var<f64>) -> Var<f64> {
        let Link::Node { tape, .. } = &x.link else { return f64::binary(function, &x, y) };
        let value = function.value(*x.value(), *y.value());
        let placed = record_binary(function, tape, &x, y, value);
        reuse(x, value, placed)
    }
}

impl Elementwise for f64 {}

/// The handle of a recorded function on `tape`.
fn handle(tape: &Tape<f64>, value: f64, placed: Placed) -> Var<f64> {
    match placed {
        Ok(place) => tape.var(value.into(), place),
        Err(error) => Var::broken(value.into(), error),
    }
}

/// The handle of a recorded function that takes over an operand's hold of the tape.
#[inline]
fn reuse(operand: Var<f64>, value: f64, placed: Placed) -> Var<f64> {
    match (placed, operand.link) {
        (Ok(place), Link::Node { tape, .. }) => Var { value: value.into(), link: Link::Node { tape, place } },
        (Err(error), _) => Var::broken(value.into(), error),
        (Ok(_), _) => Var::detached(value),
    }
}
