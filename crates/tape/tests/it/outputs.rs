//! Line 13: several outputs, auxiliary outputs, unwanted inputs, arities.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ebbtide_tape::{
    Cotangents, Error, Inline, InputCotangents, Output, OutputTangents, ReplayResult, ReverseRule,
    RuleResult, SecondOrder, Tangents, Tape, Var, recipe_fn, rule_fn,
};

/// sin x, cos x and, as an auxiliary output, the quadrant.
struct SinCos {
    x: f64,
    linearised: Arc<AtomicU64>,
}

impl ReverseRule<f64> for SinCos {
    fn pullback(&self, outputs: &Cotangents<'_, f64>, inputs: &mut InputCotangents<'_, f64>) -> RuleResult {
        self.linearised.fetch_add(1, Ordering::Relaxed);
        assert_eq!((outputs.len(), outputs.get(2)), (3, None), "auxiliary outputs have no cotangent");
        let sin = outputs.get(0).map_or(0.0, |c| c * self.x.cos());
        let cos = outputs.get(1).map_or(0.0, |c| -c * self.x.sin());
        inputs.add(0, sin + cos)
    }

    fn second_order(&self) -> SecondOrder {
        SecondOrder::Smooth
    }

    fn pushforward(&self, inputs: &Tangents<'_, f64>, outputs: &mut OutputTangents<'_, f64>) -> RuleResult {
        let tangent = inputs.get(0).copied().unwrap_or(0.0);
        outputs.set(0, self.x.cos() * tangent)?;
        outputs.set(1, -self.x.sin() * tangent)
    }

    fn pullback_tangent(
        &self,
        outputs: &Cotangents<'_, f64>,
        changes: &Cotangents<'_, f64>,
        tangents: &Tangents<'_, f64>,
        inputs: &mut InputCotangents<'_, f64>,
    ) -> RuleResult {
        let get = |from: &Cotangents<'_, f64>, index| from.get(index).copied().unwrap_or(0.0);
        let tangent = tangents.get(0).copied().unwrap_or(0.0);
        let (sin, cos) = self.x.sin_cos();
        let along_x = (-get(outputs, 0) * sin - get(outputs, 1) * cos) * tangent;
        inputs.add(0, get(changes, 0) * cos - get(changes, 1) * sin + along_x)
    }
}

fn quadrant(x: f64) -> f64 {
    (x / std::f64::consts::FRAC_PI_2).floor()
}

fn sin_cos(tape: &Tape<f64>, x: &Var<f64>, checkpoint: bool) -> ([Var<f64>; 3], Arc<AtomicU64>) {
    let linearised = Arc::new(AtomicU64::new(0));
    let at = *x.value();
    let outputs =
        vec![Output::new(at.sin()), Output::new(at.cos()), Output::auxiliary(Inline::from(quadrant(at)))];
    let counter = Arc::clone(&linearised);
    let rule = move |x: f64| SinCos { x, linearised: Arc::clone(&counter) };
    let vars = if checkpoint {
        let recipe = recipe_fn(move |inputs: &[Inline<f64>]| {
            let x = *inputs[0];
            ReplayResult::many(vec![x.sin().into(), x.cos().into(), quadrant(x).into()], rule(x))
        });
        tape.on(&[x]).checkpoint_many(outputs, recipe).unwrap()
    } else {
        tape.on(&[x]).retain_many(outputs, rule(at)).unwrap()
    };
    (vars.try_into().unwrap(), linearised)
}

#[test]
fn a13_an_operation_with_several_outputs_is_pulled_back_once_for_all_of_them() {
    for checkpoint in [false, true] {
        let tape = Tape::<f64>::new();
        let x = tape.leaf(0.7);
        let ([sin, cos, _], linearised) = sin_cos(&tape, &x, checkpoint);
        let loss = &sin * &cos;
        let expected = 0.7f64.cos().powi(2) - 0.7f64.sin().powi(2);
        for sweep in [tape.sweep(), tape.sweep().slots(2)] {
            assert!((sweep.pullback(&loss).unwrap().wrt(&x).unwrap() - expected).abs() < 1e-15);
        }
        assert_eq!(linearised.load(Ordering::Relaxed), 2);
        for sweep in [tape.sweep(), tape.sweep().slots(2)] {
            let product = sweep.hvp(&loss, [(&x, 1.0)]).unwrap().product.wrt(&x).unwrap();
            assert!((product + 4.0 * 0.7f64.sin() * 0.7f64.cos()).abs() < 1e-15);
        }
        assert_eq!(tape.pullback(&sin).unwrap().wrt(&x).unwrap(), 0.7f64.cos(), "one output is enough");
        let seeds = [(&sin, 2.0), (&cos, 3.0), (&sin, 1.0)];
        let both = tape.sweep().pullback_seeds(seeds).unwrap().wrt(&x).unwrap();
        assert_eq!(both, 3.0 * 0.7f64.cos() - 3.0 * 0.7f64.sin());
    }
}

#[test]
fn a13_auxiliary_outputs_are_never_linearised() {
    for checkpoint in [false, true] {
        let tape = Tape::<f64>::new();
        let x = tape.leaf(0.7);
        let ([_, _, quadrant], linearised) = sin_cos(&tape, &x, checkpoint);
        assert!(matches!(quadrant.pullback(), Err(Error::Auxiliary { .. })));
        // Used by another operation it is a constant, checkpointed or not.
        let product = |inputs: &[Inline<f64>]| {
            let (a, b) = (*inputs[0], *inputs[1]);
            ReplayResult::new(a * b, rule_fn(move |c: &f64| [c * b, c * a]))
        };
        let y = tape.leaf(5.0);
        let loss = tape.record_checkpointed_op(0.0, &[&quadrant, &y], recipe_fn(product)).unwrap();
        for sweep in [tape.sweep(), tape.sweep().slots(1)] {
            let gradients = sweep.pullback(&loss).unwrap();
            assert_eq!((gradients.get(&x), gradients.get(&y)), (None, Some(&0.0)));
        }
        assert_eq!(linearised.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a13_a_rule_is_told_which_cotangents_are_wanted() {
    struct Asking(Arc<AtomicU64>);
    impl ReverseRule<f64> for Asking {
        fn pullback(
            &self,
            outputs: &Cotangents<'_, f64>,
            inputs: &mut InputCotangents<'_, f64>,
        ) -> RuleResult {
            for index in 0..inputs.len() {
                self.0.fetch_add(u64::from(inputs.wants(index)) << (8 * index), Ordering::Relaxed);
                inputs.add(index, *outputs.only()?)?;
            }
            Ok(())
        }
    }
    let tape = Tape::<f64>::new();
    let (x, y, constant) = (tape.leaf(1.0), tape.leaf(2.0), tape.constant(3.0));
    let asked = Arc::new(AtomicU64::new(0));
    let inputs = [&x, &y, &constant];
    let z = tape.on(&inputs).unwanted(1).retain(0.0, Asking(Arc::clone(&asked))).unwrap();
    let gradients = z.pullback().unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0x00_00_01);
    assert_eq!((gradients.get(&x), gradients.get(&y), gradients.get(&constant)), (Some(&1.0), None, None));

    let inert = tape.on(&inputs).unwanted(0).unwanted(1).retain(0.0, Asking(asked)).unwrap();
    assert!(inert.pullback().unwrap().is_empty());
}

#[test]
fn a13_wrong_arities_are_errors() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1.0);
    let identity = || rule_fn(|c: &f64| [*c]);
    let arity = |error: Error| match error {
        Error::Arity { expected, found, .. } => (expected, found),
        other => panic!("{other}"),
    };

    let too_many = tape.record_op(1.0, &[&x], rule_fn(|c: &f64| [*c, *c])).unwrap();
    assert_eq!(arity(too_many.pullback().unwrap_err()), (1, 2));
    let too_few = tape.record_op(1.0, &[&x, &x], identity()).unwrap();
    assert_eq!(arity(too_few.pullback().unwrap_err()), (2, 1));
    assert_eq!(arity(tape.on(&[&x]).unwanted(1).retain(1.0, identity()).err().unwrap()), (1, 2));
    assert_eq!(arity(tape.on(&[&x]).retain_many(vec![], identity()).err().unwrap()), (1, 0));

    let short = recipe_fn(move |_: &[_]| ReplayResult::new(1.0, rule_fn(|c: &f64| [*c])));
    let outputs = vec![Output::new(1.0), Output::new(2.0)];
    let pair = tape.on(&[&x]).checkpoint_many(outputs, short).unwrap();
    assert_eq!(arity(pair[0].pullback().unwrap_err()), (2, 1));

    // A rule for one output at an operation with two.
    let outputs = vec![Output::new(1.0), Output::new(2.0)];
    let pair = tape.on(&[&x]).retain_many(outputs, identity()).unwrap();
    assert_eq!(arity(pair[1].pullback().unwrap_err()), (1, 2));
}
