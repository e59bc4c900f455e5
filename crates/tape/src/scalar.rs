//! Tracked `f64`: rules that hold two numbers and a name.

use crate::elementary::{Binary, Unary};
use crate::operators::{Apply, Elementwise, common_tape, unrecorded};
use crate::var::{Link, Place};
use crate::{
    CheckpointRecipe, Cotangents, Decision, Error, Hint, Inline, InputCotangents, OutputTangents, Outputs,
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

/// A recorded function: its value, and its place if it is on a tape.
type Recorded = (f64, Result<Place, Error>);

/// The handle of a recorded function on `tape`.
fn handle(tape: Tape<f64>, (value, place): Recorded) -> Var<f64> {
    match place {
        Ok(place) => Var { value: value.into(), link: Link::Node { tape, place } },
        Err(error) => unrecorded(value, error),
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

impl Apply for f64 {
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

    fn unary_of(function: Unary, x: Var<f64>) -> Var<f64> {
        let recorded = match &x.link {
            Link::Node { tape, .. } => record_unary(function, tape, &x),
            _ => return f64::unary(function, &x),
        };
        reuse(x, recorded)
    }

    fn binary_of(function: Binary, x: Var<f64>, y: &Var<f64>) -> Var<f64> {
        let recorded = match &x.link {
            Link::Node { tape, .. } => record_binary(function, tape, &x, y),
            _ => return f64::binary(function, &x, y),
        };
        reuse(x, recorded)
    }
}

impl Elementwise for f64 {}

fn reuse(operand: Var<f64>, recorded: Recorded) -> Var<f64> {
    match operand.link {
        Link::Node { tape, .. } => handle(tape, recorded),
        Link::Detached | Link::Broken(_) => Var::detached(recorded.0),
    }
}
