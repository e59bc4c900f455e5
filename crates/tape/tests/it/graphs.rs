//! Lines 3 and 14 on graphs that are not chains: random ones, with every limit.

use ebbtide_tape::{Gradients, Var};

use crate::support::{Kind, Lab, Num, Random, Slope, cases, wave};

/// An operation of a random graph: how it is recorded, and the nodes it reads.
struct Step {
    kind: Kind,
    inputs: Vec<usize>,
    /// The inputs whose cotangents its rule keeps back.
    withheld: Vec<usize>,
}

const LEAVES: usize = 3;

fn random_steps(random: &mut Random) -> Vec<Step> {
    let count = 1 + random.below(30);
    let reach = 1 + random.below(12);
    let retained_in_four = random.below(4);
    (0..count)
        .map(|step| {
            let known = LEAVES + step;
            let inputs =
                (0..1 + random.below(3)).map(|_| known - 1 - random.below(known.min(reach))).collect();
            let kind = if random.below(4) < retained_in_four { Kind::Retained } else { Kind::Checkpointed };
            Step { kind, inputs, withheld: Vec::new() }
        })
        .collect()
}

fn record(lab: &Lab, steps: &[Step], kinds: impl Fn(&Step) -> Kind) -> Vec<Var<Num>> {
    let mut vars: Vec<Var<Num>> = (0..LEAVES).map(|i| lab.leaf(0.3 + 0.2 * i as f64)).collect();
    for step in steps {
        let inputs: Vec<&Var<Num>> = step.inputs.iter().map(|&input| &vars[input]).collect();
        let var = lab.record(kinds(step), wave, &inputs, &step.withheld).unwrap().0;
        vars.push(var);
    }
    vars
}

/// How many checkpointed operations the loss needs, and the most values alive at one time when they run
/// forward once.
fn needed(steps: &[Step]) -> (u64, u64) {
    let is_checkpointed = |node: usize| node >= LEAVES && steps[node - LEAVES].kind == Kind::Checkpointed;
    let mut reached = vec![false; LEAVES + steps.len()];
    *reached.last_mut().unwrap() = true;
    for (index, step) in steps.iter().enumerate().rev() {
        if reached[LEAVES + index] {
            step.inputs.iter().for_each(|&input| reached[input] = true);
        }
    }
    let run: Vec<usize> = (0..reached.len()).filter(|&node| reached[node] && is_checkpointed(node)).collect();
    let last_use = |node: usize| run.iter().rev().find(|&&user| steps[user - LEAVES].inputs.contains(&node));
    let crosses = |node: usize, at: usize| node < at && last_use(node).is_some_and(|&last| last >= at);
    let alive = |at: usize| run.iter().filter(|&&node| crosses(node, at)).count() as u64;
    (run.len() as u64, run.iter().map(|&at| alive(at) + 1).max().unwrap_or(0))
}

fn bits(gradients: &Gradients<Num>) -> Vec<(ebbtide_tape::NodeId, u64)> {
    gradients.iter().map(|(node, slope)| (node, slope.0.to_bits())).collect()
}

fn slopes(gradients: &Gradients<Num>) -> Vec<u64> {
    gradients.iter().map(|(_, slope)| slope.0.to_bits()).collect()
}

#[test]
fn b14_random_graphs_give_the_same_bits_within_the_stated_bound() {
    let mut random = Random(0x5eed_0001);
    for case in 0..cases(400) {
        let steps = random_steps(&mut random);
        let lab = Lab::new();
        let mut vars = record(&lab, &steps, |step| step.kind);
        let loss = vars.pop().unwrap();
        vars.clear();
        let free = loss.pullback().unwrap();
        let (count, working) = needed(&steps);
        assert_eq!(free.counts().replays.total(), count, "each once");

        let retained = Lab::new();
        let all = record(&retained, &steps, |_| Kind::Retained);
        let expected = all.last().unwrap().pullback().unwrap();
        assert_eq!(slopes(&free), slopes(&expected), "case {case}");

        let resting = lab.meter().live() as u64;
        for slots in [1, 2, 3, 5, 9, 40] {
            lab.meter().peak();
            let limited = lab.tape.sweep().slots(slots).pullback(&loss).unwrap();
            let peak = lab.meter().peak() as u64;
            let counts = limited.counts();
            assert_eq!(bits(&limited), bits(&free), "case {case}, {slots} slots");
            assert_eq!(counts.replays.reverse, count);
            let bound = (slots - 1) + working;
            assert!(counts.peak_values <= bound, "case {case}: {} > {bound}", counts.peak_values);
            assert!(peak - resting <= bound, "case {case}: {} > {bound}", peak - resting);
            assert_eq!(lab.meter().live() as u64, resting, "nothing is left behind");
        }
        for bytes in [8 * working, 8 * working + 20, 1000] {
            let limited = lab.tape.sweep().bytes(bytes.max(8 * working)).pullback(&loss).unwrap();
            assert_eq!(bits(&limited), bits(&free));
            assert!(limited.counts().peak_bytes <= bytes.max(8 * working));
        }
    }
}

#[test]
fn b14_with_slots_for_all_a_graph_is_replayed_at_most_twice() {
    let mut random = Random(0x5eed_0002);
    for _ in 0..cases(200) {
        let steps = random_steps(&mut random);
        let lab = Lab::new();
        let loss = record(&lab, &steps, |step| step.kind).pop().unwrap();
        let free = loss.pullback().unwrap().counts().replays.total();
        let limited = lab.tape.sweep().slots(10_000).pullback(&loss).unwrap().counts().replays.total();
        assert!(limited <= 2 * free, "{limited} replays instead of {free}");
    }
}

#[test]
fn a06_random_products_give_the_same_bits_under_every_limit() {
    let mut random = Random(0x5eed_0003);
    for case in 0..cases(200) {
        let steps = random_steps(&mut random);
        let directions: Vec<f64> =
            (0..LEAVES).map(|_| if random.below(3) == 0 { 0.0 } else { random.unit() - 0.5 }).collect();
        let product = |kinds: &dyn Fn(&Step) -> Kind, slots: Option<u64>| {
            let lab = Lab::new();
            let vars = record(&lab, &steps, kinds);
            let moving = vars.iter().zip(&directions).filter(|(_, t)| **t != 0.0);
            let sweep = slots.map_or(lab.tape.sweep(), |slots| lab.tape.sweep().slots(slots));
            let hvp = sweep.hvp(vars.last().unwrap(), moving.map(|(var, t)| (var, Slope(*t)))).unwrap();
            (slopes(&hvp.gradients), slopes(&hvp.product))
        };
        let expected = product(&|_| Kind::Retained, None);
        for slots in [None, Some(1), Some(2), Some(4), Some(50)] {
            assert_eq!(product(&|step| step.kind, slots), expected, "case {case}, {slots:?}");
        }
    }
}

#[test]
fn b15_rules_that_keep_cotangents_back_change_nothing_but_the_replays() {
    let mut random = Random(0x5eed_0007);
    let mut saved = 0i64;
    for case in 0..cases(400) {
        let mut steps = random_steps(&mut random);
        let all = record(&Lab::new(), &steps, |step| step.kind).pop().unwrap();
        let planned = all.tape().unwrap().sweep().slots(3).pullback(&all).unwrap().counts().replays.total();
        for step in &mut steps {
            step.withheld = (0..step.inputs.len()).filter(|_| random.below(4) == 0).collect();
        }
        let retained = Lab::new();
        let expected = record(&retained, &steps, |_| Kind::Retained).pop().unwrap().pullback().unwrap();
        let lab = Lab::new();
        let loss = record(&lab, &steps, |step| step.kind).pop().unwrap();
        let (_, working) = needed(&steps);
        let resting = lab.meter().live();
        for slots in [1, 2, 3, 6, 40] {
            let limited = lab.tape.sweep().slots(slots).pullback(&loss).unwrap();
            assert_eq!(slopes(&limited), slopes(&expected), "case {case}, {slots} slots");
            assert!(limited.counts().peak_values < slots + working, "case {case}, {slots} slots");
            assert_eq!(lab.meter().live(), resting, "nothing is left behind");
            if slots == 3 {
                saved += planned as i64 - limited.counts().replays.total() as i64;
            }
        }
    }
    assert!(saved > 0, "what is not needed is not replayed");
}
