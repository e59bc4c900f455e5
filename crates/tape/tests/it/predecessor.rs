//! What tidu's own tests claim of tapes, handles, results and duals, in our form. Its tests of pullbacks, placeholders,
//! products with Hessians and replays are the contract's (`a01` to `a13`), those of plans `plans`, of duals `forward`.

use ebbtide_tape::{Differentiable, Dual, Error, Gradients, Mode, Tape, Var, rule_fn, with_mode};

use crate::support::Lab;

#[test]
fn a_new_tape_is_empty_and_its_default_too() {
    assert!(Tape::<f64>::new().is_empty());
    assert_eq!(Tape::<f64>::default().len(), 0);
}

#[test]
fn c74_clones_share_one_tape_and_others_do_not() {
    let tape = Tape::<f64>::new();
    let (same, other) = (tape.clone(), Tape::<f64>::new());
    let x = same.leaf(1.0);
    assert_eq!(tape.len(), 1);
    assert!(tape.same_tape(&same) && tape.same_tape(x.tape().unwrap()));
    assert!(!tape.same_tape(&other));
    assert_eq!(tape.id(), same.id());
    assert_ne!(tape.id(), other.id());
    assert_eq!(x.node().unwrap().tape(), tape.id());
}

#[test]
fn c74_nodes_are_numbered_in_the_order_of_recording() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1.0);
    let y = tape.leaf(2.0);
    let z = &x + &y;
    let index = |var: &Var<f64>| var.node().unwrap().index();
    assert_eq!([index(&x), index(&y), index(&z)], [0, 1, 2]);
    assert!(x.node() < z.node());
}

#[test]
fn a_leaf_requires_a_gradient_and_constants_do_not() {
    let tape = Tape::<f64>::new();
    let (x, c) = (tape.leaf(2.0), tape.constant(3.0));
    assert!(x.requires_grad() && (&x * &c).requires_grad());
    assert!(!c.requires_grad() && !(&c * &c).requires_grad());
    let plain = Var::<f64>::detached(3.0);
    assert!(!plain.requires_grad() && plain.node().is_none() && plain.tape().is_none());
    assert!(!x.detach().requires_grad());
}

#[test]
fn a_value_comes_out_of_its_handle() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(3.0);
    assert_eq!(x.detach().into_value(), 3.0);
    assert_eq!(x.into_value(), 3.0);
    // A value that is not `Clone` is shared instead.
    let lab = Lab::new();
    assert_eq!(lab.leaf(4.0).share().x, 4.0);
}

#[test]
fn floats_are_scalars_of_either_precision() {
    assert_eq!((1f64.element_count(), 1f64.unit_cotangent()), (1, 1.0));
    assert_eq!((1f32.element_count(), 1f32.unit_cotangent()), (1, 1.0));
}

fn gradients_of(tape: &Tape<f64>, leaf: &Var<f64>) -> Gradients<f64> {
    tape.pullback(leaf).unwrap()
}

#[test]
fn results_are_found_by_handle_and_by_node_and_listed_in_order() {
    let tape = Tape::<f64>::new();
    let (x, y, unused) = (tape.leaf(2.0), tape.leaf(3.0), tape.leaf(4.0));
    let gradients = (&x * &y).pullback().unwrap();
    assert_eq!((gradients.get(&x), gradients.get_node(y.node().unwrap())), (Some(&3.0), Some(&2.0)));
    assert_eq!(gradients.get(&unused), None);
    let listed: Vec<_> = gradients.iter().map(|(node, g)| (node.index(), *g)).collect();
    assert_eq!(listed, [(0, 3.0), (1, 2.0)]);
}

#[test]
fn c74_results_accumulate_by_leaf() {
    let tape = Tape::<f64>::new();
    let (x, y) = (tape.leaf(2.0), tape.leaf(3.0));
    let mut gradients = gradients_of(&tape, &y);
    gradients.accumulate_at(&x, 2.0).unwrap();
    gradients.accumulate_at(&x, 3.0).unwrap();
    assert_eq!((gradients.get(&x), gradients.get(&y)), (Some(&5.0), Some(&1.0)));
    assert_eq!(gradients.len(), 2);
}

#[test]
fn c74_an_existing_node_is_tracked_again_with_its_own_value() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(2.0);
    let y = with_mode(Mode::Aggressive, || x.exp());
    for node in [x.node().unwrap(), y.node().unwrap()] {
        let again = tape.retrack(node).unwrap();
        assert_eq!((again.node(), again.requires_grad()), (Some(node), true));
    }
    assert_eq!(*tape.retrack(y.node().unwrap()).unwrap().value(), 2f64.exp());
    let unknown = Tape::<f64>::new().leaf(1.0).node().unwrap();
    assert!(matches!(tape.retrack(unknown), Err(Error::ForeignNode)));
    tape.free();
    assert!(matches!(tape.retrack(x.node().unwrap()), Err(Error::GraphFreed)));
}

#[test]
fn a_dual_has_a_value_and_perhaps_a_tangent() {
    let plain = Dual::new(3.0);
    assert_eq!((plain.value(), plain.tangent(), plain.has_tangent()), (&3.0, None, false));
    let moving = Dual::with_tangent(3.0, 1.5).unwrap();
    assert_eq!((moving.value(), moving.tangent()), (&3.0, Some(&1.5)));
    assert!(!moving.without_tangent().has_tangent());
}

#[test]
fn a_freed_graph_is_gone_and_the_tape_records_another() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(2.0);
    let y = tape.record_op(4.0, &[&x], rule_fn(|c: &f64| [4.0 * c])).unwrap();
    tape.free();
    assert!(matches!(tape.pullback(&y), Err(Error::GraphFreed)));
    let fresh = tape.leaf(5.0);
    assert_eq!((fresh.pullback().unwrap().get(&fresh), tape.len()), (Some(&1.0), 1));
    assert!(matches!(tape.pullback(&y), Err(Error::GraphFreed)));
}
