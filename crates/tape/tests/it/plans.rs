//! Pullbacks planned once and executed many times.

use ebbtide_tape::{Error, Gradients, Mode, Tape, Var, rule_fn, with_mode};
use ndarray::{ArrayD, arr1};

use crate::support::{Kind, Lab, Num, Random, Slope, logistic, sum, wave};

fn slopes(gradients: &Gradients<Num>) -> Vec<(usize, u64)> {
    gradients.iter().map(|(node, slope)| (node.index(), slope.0.to_bits())).collect()
}

/// A graph of which the loss needs about half, retained and checkpointed operations mixed.
fn random_graph(lab: &Lab, random: &mut Random) -> (Vec<Var<Num>>, Var<Num>) {
    let leaves: Vec<Var<Num>> = (0..3).map(|_| lab.leaf(0.2 + random.unit())).collect();
    let mut values = leaves.clone();
    for _ in 0..40 {
        let kind = if random.below(2) == 0 { Kind::Retained } else { Kind::Checkpointed };
        let inputs: Vec<usize> = (0..1 + random.below(2)).map(|_| random.below(values.len())).collect();
        let inputs: Vec<&Var<Num>> = inputs.into_iter().map(|k| &values[k]).collect();
        values.push(lab.record(kind, wave, &inputs, &[]).unwrap().0);
    }
    let loss = values[20].clone();
    (leaves, loss)
}

#[test]
fn c72_an_execution_gives_the_bits_and_the_counts_of_a_pullback() {
    let mut random = Random(5);
    for _ in 0..50 {
        let lab = Lab::new();
        let (leaves, loss) = random_graph(&lab, &mut random);
        for sweep in [lab.tape.sweep(), lab.tape.sweep().slots(3), lab.tape.sweep().slots(1)] {
            let (slots, plan) = (sweep, lab.tape.plan(&loss).unwrap());
            let direct = slots.pullback(&loss).unwrap();
            for _ in 0..3 {
                let planned = plan.execute().unwrap();
                assert_eq!(slopes(&planned), slopes(&direct));
                assert_eq!(planned.counts().pullbacks, direct.counts().pullbacks);
            }
            // Leaves that the loss does not depend on are zero, as in a pullback.
            for leaf in &leaves {
                assert_eq!(plan.execute().unwrap().wrt(leaf).unwrap(), direct.wrt(leaf).unwrap());
            }
        }
        let limited = lab.tape.sweep().slots(2).plan(&loss).unwrap().execute().unwrap();
        let direct = lab.tape.sweep().slots(2).pullback(&loss).unwrap();
        assert_eq!((slopes(&limited), limited.counts()), (slopes(&direct), direct.counts()));
        let unlimited = lab.tape.plan(&loss).unwrap().execute().unwrap();
        assert_eq!(unlimited.counts(), lab.tape.pullback(&loss).unwrap().counts());
    }
}

#[test]
fn c72_a_plan_visits_only_what_the_loss_depends_on() {
    let tape = Tape::<f64>::new();
    let (x, y) = (tape.leaf(2.0), tape.leaf(3.0));
    let loss = &x * &x + &x;
    let plan = tape.plan(&loss).unwrap();
    let _later = (0..100).fold(y, |z, _| z.sin());
    assert_eq!((plan.operations(), plan.loss_node()), (2, loss.node().unwrap()));
    assert_eq!(plan.execute().unwrap().counts().pullbacks, 2);
}

#[test]
fn an_execution_drops_values_that_were_replayed_for_others_alone() {
    let lab = Lab::new();
    let x = lab.leaf(0.5);
    let constant = lab.tape.constant(lab.num(0.25));
    let terms: Vec<Var<Num>> = (0..20)
        .map(|_| {
            let factor = lab.checkpointed(wave, &[&constant]);
            lab.checkpointed(wave, &[&x, &factor])
        })
        .collect();
    let loss = lab.retained(sum, &terms.iter().collect::<Vec<_>>());
    let (direct, plan) = (lab.tape.pullback(&loss).unwrap(), lab.tape.plan(&loss).unwrap());
    assert_eq!(plan.execute().unwrap().counts(), direct.counts());
    assert_eq!(direct.counts().peak_values, 2);
}

#[test]
fn each_execution_takes_its_own_seed() {
    let tape = Tape::<ArrayD<f64>>::new();
    let x = tape.leaf(arr1(&[1.0, 2.0, 3.0]).into_dyn());
    let y = &x * &x;
    let plan = tape.plan(&y).unwrap();
    assert!(matches!(plan.execute(), Err(Error::NonScalarLoss { elements: 3 })));
    for k in 0..3 {
        let mut row = ArrayD::zeros(x.value().raw_dim());
        row[k] = 1.0;
        let gradient = plan.execute_seeded(row).unwrap().wrt(&x).unwrap();
        assert_eq!(gradient[k], 2.0 * x.value()[k]);
        assert_eq!(gradient.sum(), gradient[k]);
    }
    assert!(matches!(plan.execute_seeded(ArrayD::zeros(vec![2])), Err(Error::NotATangent { .. })));
}

#[test]
fn c72_executions_add_up() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Checkpointed, logistic, 4);
    let plan = lab.tape.plan(&y).unwrap();
    let mut sum = plan.execute().unwrap();
    let once = sum.get(&x).unwrap().0;
    plan.execute_into(&mut sum).unwrap();
    plan.execute_into(&mut sum).unwrap();
    assert_eq!(sum.get(&x), Some(&Slope(once + once + once)));
    assert_eq!(sum.counts().replays.total(), 12);
}

#[test]
fn a_failed_execution_leaves_the_plan_good() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(2.0);
    let fails = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let switch = std::sync::Arc::clone(&fails);
    let middle = tape
        .record_op(
            4.0,
            &[&x],
            rule_fn(move |c: &f64| {
                let count = if switch.load(std::sync::atomic::Ordering::Relaxed) { 2 } else { 1 };
                vec![4.0 * c; count]
            }),
        )
        .unwrap();
    let loss = &middle + &x;
    let plan = tape.plan(&loss).unwrap();
    assert_eq!(plan.execute().unwrap().wrt(&x).unwrap(), 5.0);
    fails.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(plan.execute(), Err(Error::Arity { .. })));
    fails.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(plan.execute().unwrap().wrt(&x).unwrap(), 5.0);
}

#[test]
fn a_plan_keeps_neither_graph_nor_tape_alive() {
    let lab = Lab::new();
    let (_, y) = lab.chain(Kind::Retained, wave, 10);
    let plan = lab.tape.plan(&y).unwrap();
    plan.execute().unwrap();
    drop(y);
    lab.tape.free();
    // The plan itself holds the value it starts from, for its seed.
    assert_eq!(lab.meter().live(), 1);
    assert!(matches!(plan.execute(), Err(Error::GraphFreed)));
    let fresh = lab.leaf(1.0);
    assert!(matches!(plan.execute(), Err(Error::GraphFreed)), "a node of the same number is another");
    drop((fresh, lab));
    assert!(matches!(plan.execute(), Err(Error::GraphFreed)));
}

#[test]
fn what_cannot_be_planned_is_an_error() {
    let tape = Tape::<f64>::new();
    let other = Tape::<f64>::new();
    assert!(matches!(tape.plan(&Var::detached(1.0)), Err(Error::MissingNode)));
    assert!(matches!(tape.plan(&other.leaf(1.0)), Err(Error::ForeignNode)));
    let placeholder = tape.placeholder(1.0);
    assert!(matches!(tape.plan(&placeholder.sin()), Err(Error::Unattached { .. })));
}

#[test]
fn threads_execute_one_plan() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(0.5);
    let loss = with_mode(Mode::Aggressive, || (0..100).fold(x.clone(), |z, _| z.sin() + &x));
    let plan = tape.plan(&loss).unwrap();
    let expected = loss.pullback().unwrap().wrt(&x).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(plan.execute().unwrap().wrt(&x).unwrap(), expected));
        }
    });
}

#[test]
fn results_of_several_losses_add_up_to_the_gradient_of_their_sum() {
    let lab = Lab::new();
    let (x, y) = (lab.leaf(0.3), lab.leaf(0.6));
    let first = lab.retained(wave, &[&x]);
    let later = lab.leaf(0.9);
    let second = lab.checkpointed(sum, &[&x, &y, &later]);
    let mut total = lab.tape.pullback(&first).unwrap();
    total.accumulate(lab.tape.pullback(&second).unwrap()).unwrap();
    let both = lab.tape.sweep().pullback_seeds([(&first, Slope(1.0)), (&second, Slope(1.0))]).unwrap();
    for leaf in [&x, &y, &later] {
        assert_eq!(total.wrt(leaf).unwrap(), both.wrt(leaf).unwrap());
    }
    // Also the other way round, where the second knows fewer leaves.
    let mut total = lab.tape.pullback(&second).unwrap();
    total.accumulate(lab.tape.pullback(&first).unwrap()).unwrap();
    assert_eq!(total.wrt(&later).unwrap(), both.wrt(&later).unwrap());
    total.accumulate_at(&later, Slope(2.0)).unwrap();
    assert_eq!(total.get(&later), Some(&Slope(3.0)));
    assert!(matches!(total.accumulate_at(&second, Slope(1.0)), Err(Error::NotALeaf { .. })));
    let other = Lab::new();
    let (foreign, end) = other.chain(Kind::Retained, wave, 1);
    assert!(matches!(total.accumulate(other.tape.pullback(&end).unwrap()), Err(Error::OtherGraph)));
    assert!(matches!(total.accumulate_at(&foreign, Slope(1.0)), Err(Error::OtherGraph)));
}
