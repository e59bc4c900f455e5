//! Lines 6 and 7: Hessian-vector products.

use ebbtide_tape::{Error, SecondOrder, Tape, Var, rule_fn};

use crate::support::{Kind, Lab, Num, Slope, sum, wave};

/// A graph with diamonds, a chain and fan-in.
fn build(lab: &Lab, kind: Kind) -> (Vec<Var<Num>>, Var<Num>) {
    let record = |inputs: &[&Var<Num>]| lab.record(kind, wave, inputs, &[]).unwrap().0;
    let leaves: Vec<_> = [0.3, 0.7, 1.1].map(|x| lab.leaf(x)).into();
    let a = record(&[&leaves[0], &leaves[1]]);
    let b = record(&[&a]);
    let c = record(&[&b, &a, &leaves[2]]);
    let d = record(&[&c, &c]);
    let loss = record(&[&d, &b, &leaves[0]]);
    (leaves, loss)
}

#[test]
fn a06_the_checkpointed_product_equals_the_retained_one_bit_for_bit() {
    let product = |kind, slots: Option<u64>| {
        let lab = Lab::new();
        let (leaves, loss) = build(&lab, kind);
        let direction = leaves.iter().zip([1.0, -2.0, 0.5]).map(|(leaf, t)| (leaf, Slope(t)));
        let sweep = lab.tape.sweep();
        let sweep = slots.map_or(lab.tape.sweep(), |slots| sweep.slots(slots));
        let hvp = sweep.hvp(&loss, direction).unwrap();
        let bits =
            |g: &ebbtide_tape::Gradients<Num>| g.iter().map(|(_, g)| g.0.to_bits()).collect::<Vec<_>>();
        (bits(&hvp.gradients), bits(&hvp.product))
    };
    let retained = product(Kind::Retained, None);
    assert_eq!(retained.1.len(), 3);
    for slots in [None, Some(1), Some(2), Some(5)] {
        assert_eq!(product(Kind::Checkpointed, slots), retained);
        assert_eq!(product(Kind::Retained, slots), retained);
    }
}

#[test]
fn a06_the_product_is_the_change_of_the_gradient() {
    let gradient = |at: [f64; 3]| {
        let tape = Tape::<f64>::new();
        let x = at.map(|x| tape.leaf(x));
        let loss = (&x[0] * &x[1]).sin() * &x[2] + (&x[2] / &x[0]).exp() * &x[1];
        let hvp = tape.hvp(&loss, x.iter().zip([0.3, -0.7, 0.2])).unwrap();
        (
            x.each_ref().map(|x| hvp.gradients.wrt(x).unwrap()),
            x.each_ref().map(|x| hvp.product.wrt(x).unwrap()),
        )
    };
    let step = 1e-5;
    let at = |t: f64| [0.8 + 0.3 * t, 0.5 - 0.7 * t, 1.2 + 0.2 * t];
    let (_, product) = gradient(at(0.0));
    let (after, before) = (gradient(at(step)).0, gradient(at(-step)).0);
    for i in 0..3 {
        let difference = (after[i] - before[i]) / (2.0 * step);
        assert!((difference - product[i]).abs() < 1e-8 * product[i].abs().max(1.0));
    }
}

#[test]
fn a06_tangents_are_computed_only_where_the_reverse_sweep_asks() {
    // loss = sum(f(x), f(z)): the linear sum asks for none, each f for that of its leaf alone.
    let lab = Lab::new();
    let (x, z) = (lab.leaf(0.3), lab.leaf(0.7));
    let (fx, fz) = (lab.retained(wave, &[&x]), lab.retained(wave, &[&z]));
    let linear = rule_fn(|c: &Slope| [*c, *c]);
    let loss = lab.tape.record_op(lab.num(0.0), &[&fx, &fz], Linear(linear)).unwrap();
    let hvp = lab.tape.hvp(&loss, [(&x, Slope(1.0)), (&z, Slope(1.0))]).unwrap();
    assert_eq!((lab.pushforwards(), hvp.product.counts().pushforwards), (0, 0));

    // A function of both asks for both; a branch without a direction is not pushed forward at all.
    let both = lab.retained(wave, &[&fx, &fz]);
    lab.tape.hvp(&both, [(&x, Slope(1.0)), (&z, Slope(1.0))]).unwrap();
    assert_eq!(lab.pushforwards(), 2);
    lab.tape.hvp(&both, [(&x, Slope(1.0))]).unwrap();
    assert_eq!(lab.pushforwards(), 1);
}

struct Linear<R>(R);

impl<R: ebbtide_tape::ReverseRule<Num>> ebbtide_tape::ReverseRule<Num> for Linear<R> {
    fn pullback(
        &self,
        outputs: &ebbtide_tape::Cotangents<'_, Num>,
        inputs: &mut ebbtide_tape::InputCotangents<'_, Num>,
    ) -> ebbtide_tape::RuleResult {
        self.0.pullback(outputs, inputs)
    }

    fn second_order(&self) -> SecondOrder {
        SecondOrder::Linear
    }
}

#[test]
fn a06_replays_are_counted_by_what_asked_for_them() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Checkpointed, wave, 4);
    let replays = lab.tape.hvp(&y, [(&x, Slope(1.0))]).unwrap().product.counts().replays;
    // Reversing the last asks for the values of the three before it; they are held, rules and all.
    assert_eq!((replays.reverse, replays.value, replays.tangent), (1, 3, 0));
    assert_eq!(lab.replays(), 4, "each once");

    // Between retained operations nobody asks for values, but tangents have to pass.
    let x = lab.leaf(0.4);
    let mut end = x.clone();
    for _ in 0..3 {
        end = lab.checkpointed(wave, &[&end]);
        end = lab.retained(wave, &[&end]);
    }
    let replays = lab.tape.hvp(&end, [(&x, Slope(1.0))]).unwrap().product.counts().replays;
    assert_eq!((replays.reverse, replays.value, replays.tangent), (0, 0, 3));
    let replays = lab.tape.hvp(&end, []).unwrap().product.counts().replays;
    assert_eq!((replays.reverse, replays.value, replays.tangent), (3, 0, 0), "no direction, no tangents");
}

#[test]
fn a07_leaves_without_a_direction_have_zero_tangent() {
    let lab = Lab::new();
    let (leaves, loss) = build(&lab, Kind::Checkpointed);
    let sparse = lab.tape.hvp(&loss, [(&leaves[1], Slope(2.0))]).unwrap();
    let zeros = leaves.iter().zip([0.0, 2.0, 0.0]).map(|(leaf, t)| (leaf, Slope(t)));
    let dense = lab.tape.hvp(&loss, zeros).unwrap();
    for leaf in &leaves {
        assert_eq!(sparse.product.get(leaf), dense.product.get(leaf));
    }
}

#[test]
fn a07_no_direction_gives_a_zero_product_and_the_right_gradient() {
    let lab = Lab::new();
    let (leaves, loss) = build(&lab, Kind::Checkpointed);
    let gradients = loss.pullback().unwrap();
    for sweep in [lab.tape.sweep(), lab.tape.sweep().slots(2)] {
        let hvp = sweep.hvp(&loss, []).unwrap();
        for leaf in &leaves {
            assert_eq!(hvp.product.get(leaf), Some(&Slope(0.0)));
            assert_eq!(hvp.gradients.get(leaf), gradients.get(leaf));
        }
    }
}

#[test]
fn a07_a_rule_without_second_order_is_an_error_that_names_its_node() {
    for kind in [Kind::Retained, Kind::Checkpointed] {
        let lab = Lab::with_order(SecondOrder::Unsupported);
        let x = lab.leaf(0.5);
        let y = lab.record(kind, wave, &[&x], &[]).unwrap().0;
        for directions in [vec![], vec![(&x, Slope(1.0))]] {
            let error = lab.tape.hvp(&y, directions).unwrap_err();
            assert!(matches!(error, Error::HvpNotSupported { node } if Some(node) == y.node()));
        }
        assert!(y.pullback().is_ok());
    }
}

#[test]
fn a07_only_leaves_take_a_direction() {
    let lab = Lab::new();
    let x = lab.leaf(0.5);
    let y = lab.retained(sum, &[&x]);
    assert!(matches!(lab.tape.hvp(&y, [(&y, Slope(1.0))]), Err(Error::NotALeaf { .. })));
    let later = lab.leaf(1.0);
    assert!(lab.tape.hvp(&y, [(&later, Slope(1.0))]).is_ok(), "a leaf without a part in it is harmless");
}
