//! Lines 1 to 5, 8, 10 to 12 and 17: recording, replay, accumulation, placeholders, policy, freeing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ebbtide_tape::{
    Decision, Differentiable, Error, Gradients, Hint, Hvp, Mode, Point, ReplayResult, Tape, Var, WeakTape,
    current_mode, op, recipe_fn, rule_fn, with_mode,
};

use crate::support::{Kind, Lab, Num, Slope, logistic, sum, wave};

#[test]
fn a01_a_value_that_is_not_clone_goes_through_every_kind_of_node() {
    let lab = Lab::new();
    let x = lab.leaf(0.5);
    let retained = lab.retained(wave, &[&x]);
    let checkpointed = lab.checkpointed(wave, &[&retained]);
    let placeholder = lab.tape.placeholder(lab.num(2.0 * checkpointed.value().x));
    let double = rule_fn(|c: &Slope| [Slope(2.0 * c.0)]);
    lab.tape.attach_rule(placeholder.node().unwrap(), &[&checkpointed], double).unwrap();
    let gradient = placeholder.pullback().unwrap();
    let expected = 2.0 * 1.1 * retained.value().x.cos() * 1.1 * 0.5f64.cos();
    assert!((gradient.get(&x).unwrap().0 - expected).abs() < 1e-15);
}

#[test]
fn a01_tape_and_handle_share_one_retained_value() {
    let lab = Lab::new();
    let x = lab.leaf(0.5);
    let y = lab.retained(sum, &[&x]);
    assert_eq!(lab.meter().live(), 2);
    assert!(Arc::ptr_eq(&x.share(), &lab.tape.retrack(x.node().unwrap()).unwrap().share()));
    drop((x, y));
    assert_eq!(lab.meter().live(), 2, "the tape retains both");
}

#[test]
fn a02_a_retained_operation_keeps_value_and_rule_after_its_handle_is_gone() {
    let lab = Lab::new();
    let x = lab.leaf(0.5);
    let node = lab.retained(wave, &[&x]).node().unwrap();
    let again = lab.tape.retrack(node).unwrap();
    assert_eq!(again.value().x, wave(&[0.5]).value);
    assert!(again.pullback().is_ok());
    assert_eq!(lab.replays(), 0);
}

#[test]
fn a02_dropping_the_handle_of_a_checkpointed_operation_frees_its_value() {
    let lab = Lab::new();
    let x = lab.leaf(0.5);
    let y = lab.checkpointed(wave, &[&x]);
    assert_eq!(y.value().x, wave(&[0.5]).value);
    assert_eq!(lab.meter().live(), 2);
    let node = y.node().unwrap();
    drop(y);
    assert_eq!(lab.meter().live(), 1, "only the leaf is left");
    // A new handle needs a replay, and drops what it replayed with itself.
    assert_eq!(lab.replays(), 0);
    let again = lab.tape.retrack(node).unwrap();
    assert_eq!((lab.replays(), lab.meter().live()), (1, 2));
    assert_eq!(again.value().x, wave(&[0.5]).value);
    drop(again);
    assert_eq!(lab.meter().live(), 1);
}

/// Rules and recipes are filed by type; beyond a number of types they are boxed.
#[test]
fn a02_rules_and_recipes_of_many_types_share_a_tape() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1.0);
    let mut operations = Vec::new();
    macro_rules! record_with_types_of_their_own {
        ($($factor:literal)*) => {
            $(
                let retained = tape.record_op($factor, &[&x], rule_fn(|c: &f64| [c * $factor]));
                let recipe = recipe_fn(|_: &[_]| ReplayResult::new($factor, rule_fn(|c: &f64| [c * $factor])));
                let checkpointed = tape.record_checkpointed_op($factor, &[&x], recipe);
                operations.extend([retained.unwrap(), checkpointed.unwrap()]);
            )*
        };
    }
    record_with_types_of_their_own!(1. 2. 3. 4. 5. 6. 7. 8. 9. 10. 11. 12. 13. 14. 15. 16. 17. 18. 19. 20.);
    for operation in operations {
        assert_eq!(operation.pullback().unwrap().get(&x), Some(operation.value()));
    }
}

#[test]
fn a03_checkpointed_and_retained_gradients_are_equal_bit_for_bit() {
    let gradient = |kind| {
        let lab = Lab::new();
        let (x, y) = lab.chain(kind, wave, 40);
        let both = lab.record(kind, wave, &[&y, &x, &y], &[]).unwrap().0;
        lab.tape.pullback(&both).unwrap().get(&x).unwrap().0.to_bits()
    };
    assert_eq!(gradient(Kind::Retained), gradient(Kind::Checkpointed));
}

#[test]
fn a04_no_replay_before_a_pullback_and_none_remembered_after() {
    let lab = Lab::new();
    let (_x, y) = lab.chain(Kind::Checkpointed, wave, 7);
    assert_eq!(lab.replays(), 0);
    for _ in 0..2 {
        assert_eq!(lab.tape.pullback(&y).unwrap().counts().replays.total(), 7);
        assert_eq!(lab.replays(), 7, "each pullback replays each node once");
    }
    drop(y);
    assert_eq!(lab.meter().live(), 1, "nothing replayed is kept");
}

#[test]
fn a05_a_checkpointed_input_of_many_is_replayed_once() {
    let lab = Lab::new();
    let x = lab.leaf(0.5);
    let (shared, replays) = lab.record(Kind::Checkpointed, wave, &[&x], &[]).unwrap();
    let users: Vec<_> = (0..5).map(|_| lab.checkpointed(wave, &[&shared, &x])).collect();
    let loss = lab.checkpointed(sum, &users.iter().collect::<Vec<_>>());
    loss.pullback().unwrap();
    assert_eq!(replays.load(Ordering::Relaxed), 1);
    assert_eq!(lab.replays(), 7);
}

#[test]
fn a08_fan_in_diamonds_and_repeated_inputs_accumulate() {
    let tape = Tape::<f64>::new();
    let (x, y) = (tape.leaf(3.0), tape.leaf(5.0));
    let left = &x * &y; // xy
    let right = &x * &x; // x²
    let loss = &left * &right + &left; // x³y + xy
    let gradients = loss.pullback().unwrap();
    assert_eq!(gradients.get(&x), Some(&(3.0 * 9.0 * 5.0 + 5.0)));
    assert_eq!(gradients.get(&y), Some(&(27.0 + 3.0)));
}

#[test]
fn a08_results_hold_leaves_only() {
    let tape = Tape::<f64>::new();
    let (x, unused, constant) = (tape.leaf(3.0), tape.leaf(1.0), tape.constant(2.0));
    let inner = &x * &constant;
    let loss = inner.sin();
    let gradients = loss.pullback().unwrap();
    let nodes: Vec<_> = gradients.iter().map(|(node, _)| node).collect();
    assert_eq!(nodes, [x.node().unwrap()]);
    for other in [&unused, &constant, &inner, &loss] {
        assert_eq!(gradients.get(other), None);
    }
    assert_eq!(gradients.wrt(&unused).unwrap(), 0.0);
}

#[test]
fn a08_only_a_leaf_that_the_loss_does_not_depend_on_has_gradient_zero() {
    let tape = Tape::<f64>::new();
    let (x, constant) = (tape.leaf(3.0), tape.constant(2.0));
    let inner = &x * &constant;
    let loss = inner.sin();
    let mut gradients = loss.pullback().unwrap();
    let product = tape.hvp(&loss, [(&x, 1.0)]).unwrap().product;
    let later = tape.leaf(1.0);
    for other in [&constant, &inner, &loss] {
        for given in [&gradients, &product] {
            let error = given.wrt(other).unwrap_err();
            assert!(matches!(error, Error::NotALeaf { node } if Some(node) == other.node()), "{error}");
        }
    }
    assert_eq!((gradients.wrt(&later).unwrap(), product.wrt(&later).unwrap()), (0.0, 0.0));
    assert!(matches!(gradients.wrt(&Tape::new().leaf(3.0)), Err(Error::OtherGraph)));
    assert!(matches!(gradients.wrt(&x.detach()), Err(Error::MissingNode)));
    assert_eq!((gradients.take(&x), gradients.take(&x)), (Some(2.0 * 6f64.cos()), None));
    assert_eq!((gradients.len(), gradients.wrt(&x).unwrap()), (0, 0.0), "what was taken is gone");
    tape.free();
    assert_eq!(product.wrt(&x).unwrap(), -4.0 * 6f64.sin(), "results outlive their graph");
    let again = tape.leaf(3.0);
    assert!(matches!(product.wrt(&again), Err(Error::OtherGraph)));
    assert!(matches!(again.sin().pullback().unwrap().wrt(&x), Err(Error::OtherGraph)));
}

#[test]
fn a08_the_gradient_of_a_leaf_is_its_seed() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(3.0);
    assert_eq!(tape.pullback_seeded(&x, 7.0).unwrap().get(&x), Some(&7.0));
}

#[test]
fn a10_a_placeholder_gets_its_rule_later() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(3.0);
    let y = tape.placeholder(9.0);
    let z = &y * 2.0;
    assert!(matches!(z.pullback(), Err(Error::Unattached { node }) if Some(node) == y.node()));
    tape.attach_rule(y.node().unwrap(), &[&x], rule_fn(|c: &f64| [c * 6.0])).unwrap();
    assert_eq!(z.pullback().unwrap().get(&x), Some(&12.0));
}

#[test]
fn a10_no_rule_for_leaves_checkpointed_unknown_and_attached_nodes() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(3.0);
    let recipe = recipe_fn(|_: &[_]| ReplayResult::new(1.0, rule_fn(|c: &f64| [*c])));
    let checkpointed = tape.record_checkpointed_op(1.0, &[&x], recipe).unwrap();
    let placeholder = tape.placeholder(1.0);
    let later = tape.leaf(1.0);
    let attach = |var: &Var<f64>, input: &Var<f64>| {
        tape.attach_rule(var.node().unwrap(), &[input], rule_fn(|c: &f64| [*c])).unwrap_err()
    };
    assert!(matches!(attach(&x, &x), Error::NotAPlaceholder { found: "a leaf", .. }));
    assert!(matches!(
        attach(&checkpointed, &x),
        Error::NotAPlaceholder { found: "a checkpointed operation", .. }
    ));
    assert!(matches!(attach(&placeholder, &later), Error::InputAfterNode { .. }));
    assert!(matches!(attach(&placeholder, &Var::detached(1.0)), Error::MissingNode));
    tape.attach_rule(placeholder.node().unwrap(), &[&x], rule_fn(|c: &f64| [*c])).unwrap();
    assert!(matches!(attach(&placeholder, &x), Error::NotAPlaceholder { .. }));

    let other = Tape::<f64>::new();
    let unknown = other.leaf(0.0).node().unwrap();
    let error = tape.attach_rule(unknown, &[], rule_fn(|c: &f64| [*c])).unwrap_err();
    assert!(matches!(error, Error::ForeignNode));
    assert!(matches!(tape.retrack(unknown), Err(Error::ForeignNode)));
}

#[test]
fn a10_retracking_gives_the_tapes_own_value() {
    let lab = Lab::new();
    let placeholder = lab.tape.placeholder(lab.num(4.0));
    let again = lab.tape.retrack(placeholder.node().unwrap()).unwrap();
    assert!(Arc::ptr_eq(&again.share(), &placeholder.share()));
}

#[test]
fn a10_retracking_a_checkpointed_value_replays_what_it_is_computed_from() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Checkpointed, wave, 5);
    let (node, value) = (y.node().unwrap(), y.value().x);
    drop(y);
    let again = lab.tape.retrack(node).unwrap();
    assert_eq!((again.value().x, again.node()), (value, Some(node)));
    assert_eq!(lab.replays(), 5);
    // It is the node itself: operations on it lead to the leaf.
    let loss = lab.checkpointed(sum, &[&again, &again]);
    let twice = *lab.tape.pullback(&loss).unwrap().get(&x).unwrap();
    assert_eq!(twice.0, 2.0 * lab.tape.pullback(&again).unwrap().get(&x).unwrap().0);
}

#[test]
fn a10_retracking_with_a_value_at_hand_replays_nothing() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Checkpointed, wave, 5);
    let kept = y.share();
    let again = lab.tape.retrack_with(y.node().unwrap(), kept.clone()).unwrap();
    assert!(Arc::ptr_eq(&again.share(), &kept));
    assert_eq!(lab.replays(), 0);
    // A value that the tape has is the tape's.
    let leaf = lab.tape.retrack_with(x.node().unwrap(), lab.num(99.0)).unwrap();
    assert!(Arc::ptr_eq(&leaf.share(), &x.share()));
}

#[test]
fn a10_checked_mode_refuses_to_retrack_with_another_value() {
    let tape = Tape::<f64>::checked();
    let x = tape.leaf(0.5);
    let y = with_mode(Mode::Aggressive, || x.sin());
    let node = y.node().unwrap();
    assert!(tape.retrack_with(node, 0.5f64.sin()).is_ok());
    assert!(matches!(tape.retrack_with(node, 0.5), Err(Error::ReplayMismatch { .. })));
}

#[test]
fn a11_tape_values_and_gradients_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Tape<Num>>();
    check::<WeakTape<Num>>();
    check::<Var<Num>>();
    check::<Gradients<Num>>();
    check::<Hvp<Num>>();
    check::<Error>();
}

#[test]
fn a11_threads_record_and_pull_back_on_one_tape() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1.5);
    let gradients: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=4)
            .map(|factor| {
                let x = &x;
                scope.spawn(move || {
                    let mut y = x * f64::from(factor);
                    for _ in 0..500 {
                        y = y + x;
                        if y.pullback().is_err() {
                            return f64::NAN;
                        }
                    }
                    y.pullback().unwrap().wrt(x).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(gradients, [501.0, 502.0, 503.0, 504.0]);
}

#[test]
fn a12_the_policy_decides_by_mode_and_hint() {
    use Decision::{Checkpoint, Retain};
    let table = [
        (Mode::Off, [Retain, Retain, Retain]),
        (Mode::Conservative, [Checkpoint, Retain, Retain]),
        (Mode::Aggressive, [Checkpoint, Checkpoint, Retain]),
    ];
    for (mode, decisions) in table {
        for (hint, decision) in [Hint::Cheap, Hint::Expensive, Hint::MustRetain].into_iter().zip(decisions) {
            assert_eq!(mode.decide(hint), decision, "{mode:?} {hint:?}");
            let lab = Lab::new();
            let x = lab.leaf(2.0);
            let meter = Arc::clone(&lab.parts.meter);
            let square = op(
                move |inputs: &[Arc<Num>]| Num::new(inputs[0].x * inputs[0].x, &meter),
                |at: Point<'_, Num>, c: &Slope| [Slope(c.0 * 2.0 * at.inputs[0].x)],
            )
            .with_hint(hint);
            let y = with_mode(mode, || lab.tape.apply(square, &[&x])).unwrap();
            let counts = *y.pullback().unwrap().counts();
            assert_eq!(counts.replays.total(), u64::from(decision == Checkpoint));
            drop(y);
            assert_eq!(lab.meter().live(), if decision == Retain { 2 } else { 1 });
        }
    }
}

#[test]
fn a12_the_mode_is_scoped_and_comes_back_after_a_panic() {
    with_mode(Mode::Conservative, || {
        let caught = std::panic::catch_unwind(|| with_mode(Mode::Aggressive, || panic!("out")));
        assert!(caught.is_err());
        assert_eq!(current_mode(), Mode::Conservative);
        std::thread::scope(|scope| {
            let elsewhere = scope.spawn(current_mode).join().unwrap();
            assert_eq!(elsewhere, Mode::Off, "a mode belongs to its thread");
        });
    });
    assert_eq!(current_mode(), Mode::Off);
}

#[test]
fn b17_freeing_frees() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Retained, logistic, 10);
    drop(y);
    assert_eq!(lab.meter().live(), 11);
    lab.tape.free();
    assert_eq!(lab.meter().live(), 1, "the handle of the leaf is left");
    assert!(lab.tape.is_empty());
    drop(x);
    assert_eq!(lab.meter().live(), 0);

    let (_, y) = lab.chain(Kind::Retained, logistic, 3);
    assert!(y.pullback().is_ok(), "a freed tape records again");
    drop((lab.tape, y));
    assert_eq!(lab.parts.meter.live(), 0, "a tape goes with its last handle");
}

#[test]
fn b17_checked_mode_finds_a_replay_that_does_not_reproduce() {
    use std::sync::atomic::AtomicU64;
    let impure = |tape: &Tape<f64>| {
        let calls = AtomicU64::new(0);
        let x = tape.leaf(2.0);
        let recipe = recipe_fn(move |_: &[_]| {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            ReplayResult::new(4.0 + call as f64, rule_fn(|c: &f64| [4.0 * c]))
        });
        let y = tape.record_checkpointed_op(4.0, &[&x], recipe).unwrap();
        (&y * 1.0, y)
    };
    let unchecked = Tape::new();
    let (loss, _y) = impure(&unchecked);
    assert!(loss.pullback().is_ok() && loss.pullback().is_ok());

    let checked = Tape::checked();
    let (loss, y) = impure(&checked);
    assert!(loss.pullback().is_ok(), "the first replay reproduces");
    for sweep in [checked.sweep(), checked.sweep().slots(2)] {
        let error = sweep.pullback(&loss).unwrap_err();
        assert!(matches!(error, Error::ReplayMismatch { node } if Some(node) == y.node()), "{error}");
    }
}

#[test]
fn b17_checked_mode_refuses_values_that_cannot_be_compared() {
    struct Opaque;
    impl Differentiable for Opaque {
        type Tangent = ();
        type Shared = Arc<Opaque>;
        fn zero_tangent(&self) {}
        fn accumulate((): &mut (), (): ()) {}
        fn element_count(&self) -> usize {
            1
        }
        fn unit_cotangent(&self) {}
    }
    let tape = Tape::<Opaque>::checked();
    let x = tape.leaf(Opaque);
    let recipe = recipe_fn(|_: &[_]| ReplayResult::new(Opaque, rule_fn(|(): &()| [()])));
    assert!(matches!(tape.record_checkpointed_op(Opaque, &[&x], recipe), Err(Error::NoFingerprint)));
}

#[test]
fn b17_a_recipe_may_use_its_own_tape() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(3.0);
    let own = tape.downgrade();
    // The derivative of x³ by a pullback on the tape that is being swept.
    let recipe = recipe_fn(move |inputs: &[ebbtide_tape::Inline<f64>]| {
        let tape = own.upgrade().unwrap();
        let inner = tape.leaf(*inputs[0]);
        let cube = inner.powi(3);
        let slope = cube.pullback().unwrap().wrt(&inner).unwrap();
        ReplayResult::new(*cube.value(), rule_fn(move |c: &f64| [c * slope]))
    });
    let y = tape.record_checkpointed_op(27.0, &[&x], recipe).unwrap();
    let loss = &y * 2.0;
    let before = tape.len();
    assert_eq!(loss.pullback().unwrap().get(&x), Some(&54.0));
    assert_eq!(tape.sweep().slots(3).pullback(&loss).unwrap().get(&x), Some(&54.0));
    assert_eq!(tape.len(), before + 4, "the recipe recorded on this tape");
}

#[test]
fn b17_a_recipe_may_free_its_own_tape() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(3.0);
    let own = tape.downgrade();
    let recipe = recipe_fn(move |_: &[_]| {
        own.upgrade().unwrap().free();
        ReplayResult::new(9.0, rule_fn(|c: &f64| [c * 6.0]))
    });
    let y = tape.record_checkpointed_op(9.0, &[&x], recipe).unwrap();
    assert_eq!(y.pullback().unwrap().get(&x), Some(&6.0), "the sweep in progress keeps its graph");
    assert!(matches!(y.pullback(), Err(Error::GraphFreed)));
}
