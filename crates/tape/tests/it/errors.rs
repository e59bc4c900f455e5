//! Line 9 and the errors of line 17: what is refused, and with which words.

use ebbtide_tape::{Differentiable, Error, Inline, ReplayResult, Tape, Var, recipe_fn, rule_fn};

/// A pair of numbers: not a scalar.
struct Pair;

impl Differentiable for Pair {
    type Tangent = [f64; 2];
    type Shared = std::sync::Arc<Pair>;

    fn zero_tangent(&self) -> [f64; 2] {
        [0.0; 2]
    }

    fn accumulate(sum: &mut [f64; 2], other: [f64; 2]) {
        (0..2).for_each(|i| sum[i] += other[i]);
    }

    fn element_count(&self) -> usize {
        2
    }

    fn unit_cotangent(&self) -> [f64; 2] {
        [1.0; 2]
    }
}

#[test]
fn a09_a_plain_pullback_wants_a_scalar_and_a_seeded_one_any_shape() {
    let tape = Tape::<Pair>::new();
    let x = tape.leaf(Pair);
    let swapped = tape.record_op(Pair, &[&x], rule_fn(|c: &[f64; 2]| [[c[1], c[0]]])).unwrap();
    assert!(matches!(tape.pullback(&swapped), Err(Error::NonScalarLoss { elements: 2 })));
    assert!(matches!(tape.hvp(&swapped, []), Err(Error::NonScalarLoss { elements: 2 })));
    let gradients = tape.pullback_seeded(&swapped, [3.0, 4.0]).unwrap();
    assert_eq!(gradients.get(&x), Some(&[4.0, 3.0]));
}

#[test]
fn a09_detached_values_have_no_node() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1.0);
    for detached in [Var::detached(1.0), x.detach(), x.detach() * 2.0] {
        assert!(matches!(tape.pullback(&detached), Err(Error::MissingNode)));
        assert!(matches!(tape.pullback_seeded(&detached, 1.0), Err(Error::MissingNode)));
        assert!(matches!(tape.hvp(&detached, []), Err(Error::MissingNode)));
        assert!(matches!(detached.pullback(), Err(Error::MissingNode)));
        assert_eq!(detached.node(), None);
    }
}

#[test]
fn a09_detached_inputs_are_constants_even_to_replays() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(3.0);
    let constant = Var::detached(5.0);
    let product = |inputs: &[Inline<f64>]| {
        let (a, b) = (*inputs[0], *inputs[1]);
        ReplayResult::new(a * b, rule_fn(move |c: &f64| [c * b, c * a]))
    };
    let y = tape.record_checkpointed_op(15.0, &[&constant, &x], recipe_fn(product)).unwrap();
    let gradients = y.pullback().unwrap();
    assert_eq!(gradients.get(&x), Some(&5.0));
    assert_eq!(gradients.len(), 1);
}

#[test]
fn a09_use_after_free_is_an_error() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1.0);
    let y = x.sin();
    tape.free();
    assert!(matches!(y.pullback(), Err(Error::GraphFreed)));
    assert!(matches!(tape.hvp(&y, [(&x, 1.0)]), Err(Error::GraphFreed)));
    assert!(matches!(tape.record_op(1.0, &[&x], rule_fn(|c: &f64| [*c])), Err(Error::GraphFreed)));
    assert!(matches!(tape.retrack(x.node().unwrap()), Err(Error::GraphFreed)));
    assert!(matches!((&x + 1.0).pullback(), Err(Error::GraphFreed)));
    assert_eq!(*y.value(), 1f64.sin(), "the handle keeps its value");

    let fresh = tape.leaf(2.0);
    let mixed = tape.hvp(&fresh.sin(), [(&x, 1.0)]);
    assert!(matches!(mixed, Err(Error::GraphFreed)));
}

#[test]
fn b17_a_value_of_another_tape_is_an_error() {
    let (here, there) = (Tape::<f64>::new(), Tape::<f64>::new());
    let (x, y) = (here.leaf(1.0), there.leaf(2.0));
    assert!(matches!(here.record_op(1.0, &[&x, &y], rule_fn(|c: &f64| [*c, *c])), Err(Error::ForeignNode)));
    assert!(matches!(here.pullback(&y), Err(Error::ForeignNode)));
    assert!(matches!(here.hvp(&x, [(&y, 1.0)]), Err(Error::ForeignNode)));
    let placeholder = here.placeholder(0.0);
    let attached = here.attach_rule(placeholder.node().unwrap(), &[&y], rule_fn(|c: &f64| [*c]));
    assert!(matches!(attached, Err(Error::ForeignNode)));
    // Operators cannot return errors: the pullback does.
    let mixed = (&x * &y).sin() + 1.0;
    assert!(matches!(mixed.pullback(), Err(Error::ForeignNode)));
    assert_eq!(here.pullback(&x).unwrap().get(&y), None);
}

#[test]
fn a09_the_error_of_a_rule_names_its_node() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1.0);
    let recipe = |_: &[Inline<f64>]| -> ReplayResult<f64> { ReplayResult::new(1.0, Failing) };
    for y in [
        tape.record_op(1.0, &[&x], Failing).unwrap(),
        tape.record_checkpointed_op(1.0, &[&x], recipe_fn(recipe)).unwrap(),
    ] {
        let error = y.pullback().unwrap_err();
        assert!(matches!(&error, Error::Rule { node, .. } if Some(*node) == y.node()));
        assert!(error.to_string().ends_with("failed: singular"), "{error}");
    }
}

struct Failing;

impl ebbtide_tape::ReverseRule<f64> for Failing {
    fn pullback(
        &self,
        _: &ebbtide_tape::Cotangents<'_, f64>,
        _: &mut ebbtide_tape::InputCotangents<'_, f64>,
    ) -> ebbtide_tape::RuleResult {
        Err("singular".into())
    }
}
