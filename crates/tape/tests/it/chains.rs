//! Lines 4 and 14 to 16: chains under a limit, replay counts, long chains.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ebbtide_schedule::revolve;
use ebbtide_tape::{Error, Mode, Tape, Var, with_mode};

use crate::support::{Kind, Lab, Num, logistic, sum, wave};

/// The least number of advances by dynamic programming, for all `n` and `s` up to the given ones.
fn least_advances(n: usize, s: usize) -> Vec<Vec<u64>> {
    let mut least = vec![vec![0u64; s + 1]; n + 1];
    for n in 2..=n {
        for s in 1..=s {
            least[n][s] = match s {
                1 => (n * (n - 1) / 2) as u64,
                _ => (1..n).map(|m| m as u64 + least[n - m][s - 1] + least[m][s]).min().unwrap(),
            };
        }
    }
    least
}

#[test]
fn b14_a_small_chain_is_replayed_as_often_as_dynamic_programming_says() {
    let least = least_advances(24, 26);
    for n in 0..=24 {
        let lab = Lab::new();
        let (x, y) = lab.chain(Kind::Checkpointed, wave, n);
        let free = lab.tape.pullback(&y).unwrap();
        lab.replays();
        for s in 1..=n + 2 {
            lab.meter().peak();
            let gradients = lab.tape.sweep().slots(s as u64).pullback(&y).unwrap();
            let (peak, counts) = (lab.meter().peak(), gradients.counts());
            let context = format!("n = {n}, s = {s}");
            assert_eq!(gradients.get(&x), free.get(&x), "{context}");
            assert_eq!(counts.replays.reverse, n as u64, "{context}");
            assert_eq!(counts.replays.value, least[n][s], "{context}");
            assert_eq!(lab.replays(), n as u64 + least[n][s], "{context}");
            // The leaf and the handle of the end are alive all the time; the leaf is one of the s.
            assert!(peak - 1 <= s as i64 + 2, "{context}: {peak}");
            assert!(counts.peak_values <= s as u64 + 1, "{context}: {}", counts.peak_values);
        }
    }
}

#[test]
fn b14_a_chain_of_a_thousand_holds_s_values_and_is_replayed_optimally() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Checkpointed, wave, 1000);
    let node = y.node().unwrap();
    let free = lab.tape.pullback(&y).unwrap();
    assert_eq!(free.counts().peak_values, 1000, "without a limit everything is held");
    lab.replays();
    for s in [1, 2, 3, 5, 10, 31, 100, 999, 1000, 2000] {
        lab.meter().peak();
        let gradients = lab.tape.sweep().slots(s).pullback(&y).unwrap();
        let peak = lab.meter().peak();
        assert_eq!(gradients.get(&x), free.get(&x));
        let optimum = 1000 + revolve::advances(1000, s as usize).unwrap() as u64;
        assert_eq!(lab.replays(), optimum, "s = {s}");
        assert_eq!(gradients.counts().replays.total(), optimum);
        assert!(peak - 1 <= s as i64 + 2, "s = {s}: {peak} values alive at one time");
    }
    assert_eq!(Some(node), y.node());
}

#[test]
fn a04_under_a_slot_limit_as_many_replays_as_the_schedule_says_each_time() {
    let lab = Lab::new();
    let (_x, y) = lab.chain(Kind::Checkpointed, wave, 10);
    for _ in 0..2 {
        lab.tape.sweep().slots(3).pullback(&y).unwrap();
        assert_eq!(lab.replays(), 25);
    }
}

#[test]
fn b14_a_chain_that_reads_retained_values_and_is_read_by_retained_operations_is_a_chain() {
    let run = |limited: bool| {
        let lab = Lab::new();
        let weight = lab.leaf(0.9);
        let mut state = lab.leaf(0.4);
        let mut losses = Vec::new();
        for _ in 0..200 {
            state = lab.checkpointed(wave, &[&state, &weight]);
            losses.push(lab.retained(wave, &[&state]));
        }
        let loss = lab.retained(sum, &losses.iter().collect::<Vec<_>>());
        let sweep = if limited { lab.tape.sweep().slots(7) } else { lab.tape.sweep() };
        let gradients = sweep.pullback(&loss).unwrap();
        (gradients.get(&weight).unwrap().0.to_bits(), *gradients.counts())
    };
    let ((free, _), (limited, counts)) = (run(false), run(true));
    assert_eq!(free, limited);
    assert_eq!(u128::from(counts.replays.total()), 200 + revolve::advances(200, 7).unwrap());
    assert!(counts.peak_values <= 8);
}

#[test]
fn b14_each_of_several_chains_has_all_the_slots() {
    let lab = Lab::new();
    let mut end = lab.leaf(0.4);
    let lengths = [30usize, 1, 17, 50];
    for length in lengths {
        for _ in 0..length {
            end = lab.checkpointed(wave, &[&end]);
        }
        end = lab.retained(wave, &[&end]);
    }
    let counts = *lab.tape.sweep().slots(4).pullback(&end).unwrap().counts();
    let optimum: u128 = lengths.iter().map(|&n| n as u128 + revolve::advances(n as u64, 4).unwrap()).sum();
    assert_eq!(u128::from(counts.replays.total()), optimum);
    assert!(counts.peak_values <= 5);
}

#[test]
fn b14_a_byte_budget_is_kept_and_one_below_the_minimum_names_it() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Checkpointed, wave, 100);
    let free = lab.tape.pullback(&y).unwrap();
    let mut last = u64::MAX;
    for bytes in [16, 17, 24, 48, 80, 400, 4000] {
        let gradients = lab.tape.sweep().bytes(bytes).pullback(&y).unwrap();
        let counts = gradients.counts();
        assert_eq!(gradients.get(&x), free.get(&x));
        assert!(counts.peak_bytes <= bytes, "{} of {bytes} bytes", counts.peak_bytes);
        // Two values of eight bytes are at work; the others are slots, besides the retained start.
        let slots = 1 + (bytes as usize - 16) / 8;
        assert_eq!(u128::from(counts.replays.value), revolve::advances(100, slots).unwrap());
        assert!(counts.replays.total() <= last, "more memory never costs more");
        last = counts.replays.total();
    }
    let error = lab.tape.sweep().bytes(15).pullback(&y).unwrap_err();
    assert!(matches!(error, Error::BudgetTooSmall { budget: 15, minimum: 16 }));
    let error = lab.tape.sweep().slots(0).pullback(&y).unwrap_err();
    assert!(matches!(error, Error::BudgetTooSmall { budget: 0, minimum: 1 }));
}

#[test]
fn b14_a_product_with_the_hessian_follows_the_schedule_too() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Checkpointed, logistic, 300);
    let direction = || [(&x, crate::support::Slope(1.0))];
    let free = lab.tape.hvp(&y, direction()).unwrap();
    for s in [1, 3, 8, 400] {
        lab.meter().peak();
        let limited = lab.tape.sweep().slots(s).hvp(&y, direction()).unwrap();
        let peak = lab.meter().peak();
        assert_eq!(limited.product.get(&x), free.product.get(&x));
        assert_eq!(limited.gradients.get(&x), free.gradients.get(&x));
        let counts = limited.product.counts();
        assert_eq!(counts.replays.reverse, 300);
        assert_eq!(u128::from(counts.replays.tangent), revolve::advances(300, s as usize).unwrap());
        assert!(peak - 1 <= s as i64 + 2);
    }
}

#[test]
fn b14_tangents_of_retained_operations_follow_the_schedule_too() {
    let lab = Lab::new();
    let (x, y) = lab.chain(Kind::Retained, logistic, 300);
    let direction = || [(&x, crate::support::Slope(1.0))];
    let free = lab.tape.hvp(&y, direction()).unwrap();
    for s in [1, 3, 8, 400] {
        let limited = lab.tape.sweep().slots(s).hvp(&y, direction()).unwrap();
        assert_eq!(limited.product.get(&x), free.product.get(&x));
        let counts = limited.product.counts();
        assert_eq!(u128::from(counts.pushforwards), revolve::advances(300, s as usize).unwrap());
        assert!(counts.peak_values <= s + 1, "{}", counts.peak_values);
    }
}

/// Many short chains recorded step by step side by side, with far fewer slots than chains.
#[test]
fn b16_a_wide_bundle_of_chains_under_a_small_limit() {
    const CHAINS: usize = 20_000;
    const STEPS: u64 = 4;
    let lab = Lab::new();
    let x = lab.leaf(0.4);
    let mut ends: Vec<Var<Num>> = (0..CHAINS).map(|_| x.clone()).collect();
    for _ in 0..STEPS {
        ends = ends.iter().map(|end| lab.checkpointed(logistic, &[end])).collect();
    }
    let rule = ebbtide_tape::rule_fn(|c: &crate::support::Slope| vec![*c; CHAINS]);
    let loss = lab.tape.record_op(lab.num(0.0), &ends.iter().collect::<Vec<_>>(), rule).unwrap();
    drop(ends);
    let free = lab.tape.pullback(&loss).unwrap();
    let limited = lab.tape.sweep().slots(10).pullback(&loss).unwrap();
    assert_eq!(limited.get(&x), free.get(&x));
    // Nothing fits, so each step is computed from the leaf: 1 + 2 + 3 + 4 for each chain, one chain at a time.
    assert_eq!(limited.counts().replays.total(), CHAINS as u64 * STEPS * (STEPS + 1) / 2);
    assert!(limited.counts().peak_values <= 2);
}

/// Two chains side by side, step by step, joined by an operation that keeps the cotangent of the second back.
#[test]
fn b15_a_node_that_receives_no_cotangent_is_never_replayed() {
    for slots in [None, Some(1), Some(3), Some(100)] {
        let lab = Lab::new();
        let (x, z) = (lab.leaf(0.4), lab.leaf(0.6));
        let (mut one, mut other) = (x.clone(), z.clone());
        let mut in_vain = Vec::new();
        for _ in 0..20 {
            one = lab.checkpointed(wave, &[&one]);
            let (next, replays) = lab.record(Kind::Checkpointed, wave, &[&other], &[]).unwrap();
            other = next;
            in_vain.push(replays);
        }
        let loss = lab.record(Kind::Retained, wave, &[&one, &other], &[1]).unwrap().0;
        let sweep = lab.tape.sweep();
        let gradients = match slots {
            None => sweep.pullback(&loss).unwrap(),
            Some(slots) => sweep.slots(slots).pullback(&loss).unwrap(),
        };
        assert!(gradients.get(&x).is_some() && gradients.get(&z).is_none());
        assert!(in_vain.iter().all(|replays| replays.load(Ordering::Relaxed) == 0), "slots {slots:?}");
        assert_eq!(gradients.counts().pullbacks, 21);
    }
}

#[test]
fn b15_what_is_not_computed_from_the_loss_is_never_replayed() {
    let lab = Lab::new();
    let (_x, y) = lab.chain(Kind::Checkpointed, wave, 5);
    let (_after, replays) = lab.record(Kind::Checkpointed, wave, &[&y], &[]).unwrap();
    let (_aside, aside) = lab.record(Kind::Checkpointed, wave, &[&lab.leaf(1.0)], &[]).unwrap();
    lab.tape.sweep().slots(2).pullback(&y).unwrap();
    lab.tape.pullback(&y).unwrap();
    assert_eq!(replays.load(Ordering::Relaxed) + aside.load(Ordering::Relaxed), 0);
}

/// A cotangent kept back in the middle of a limited sweep: what lies below is not replayed any more.
#[test]
fn b15_a_cotangent_kept_back_in_the_middle_ends_the_replays_below() {
    let lab = Lab::new();
    let x = lab.leaf(0.4);
    let mut below = Vec::new();
    let mut end = x.clone();
    for _ in 0..20 {
        let (next, replays) = lab.record(Kind::Checkpointed, wave, &[&end], &[]).unwrap();
        end = next;
        below.push(replays);
    }
    end = lab.record(Kind::Retained, wave, &[&end], &[0]).unwrap().0;
    for _ in 0..20 {
        end = lab.checkpointed(wave, &[&end]);
    }
    for sweep in [lab.tape.sweep(), lab.tape.sweep().slots(1), lab.tape.sweep().slots(5)] {
        let gradients = sweep.pullback(&end).unwrap();
        assert!(gradients.is_empty());
        assert_eq!(gradients.counts().pullbacks, 21);
    }
    assert!(below.iter().all(|replays| replays.load(Ordering::Relaxed) == 0));
}

/// Runs on a stack that a recursion over the graph would overflow at once.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 << 10).spawn(body).unwrap().join().unwrap();
}

const MILLION: usize = 1_000_000;

fn long_chain(mode: Mode) -> (Tape<f64>, Var<f64>, Var<f64>) {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(1.0);
    let end = with_mode(mode, || {
        let mut y = &x * 1.0;
        for _ in 1..MILLION / 2 {
            y = (y * &x).sin();
        }
        y
    });
    (tape, x, end)
}

#[test]
fn b16_a_million_retained_operations_gradient_and_hvp() {
    on_a_small_stack(|| {
        let (tape, x, y) = long_chain(Mode::Off);
        assert!(tape.pullback(&y).unwrap().get(&x).unwrap().is_finite());
        let hvp = tape.hvp(&y, [(&x, 1.0)]).unwrap();
        assert_eq!(hvp.gradients.get(&x), tape.pullback(&y).unwrap().get(&x));
        assert!(hvp.product.get(&x).unwrap().is_finite());
    });
}

#[test]
fn b16_a_million_checkpointed_operations_gradient_and_hvp() {
    on_a_small_stack(|| {
        let (tape, x, y) = long_chain(Mode::Aggressive);
        let free = tape.pullback(&y).unwrap();
        assert_eq!(free.counts().replays.total(), MILLION as u64 - 1);
        let hvp = tape.hvp(&y, [(&x, 1.0)]).unwrap();
        assert_eq!(hvp.gradients.get(&x), free.get(&x));
        let limited = tape.sweep().slots(300).pullback(&y).unwrap();
        assert_eq!(limited.get(&x), free.get(&x));
        assert!(limited.counts().peak_values <= 301);
        let limited = tape.sweep().slots(2000).hvp(&y, [(&x, 1.0)]).unwrap();
        assert_eq!(limited.product.get(&x), hvp.product.get(&x));
    });
}

#[test]
fn b16_a_million_wide() {
    on_a_small_stack(|| {
        let lab = Lab::new();
        let x = lab.leaf(0.5);
        let terms: Vec<Var<Num>> = (0..MILLION / 4).map(|_| lab.checkpointed(logistic, &[&x])).collect();
        let inputs: Vec<&Var<Num>> = terms.iter().collect();
        let (value, _) = lab.parts.evaluate(logistic, vec![terms[0].share()], &[]);
        let rule = ebbtide_tape::rule_fn(|c: &crate::support::Slope| vec![*c; MILLION / 4]);
        let loss = lab.tape.record_op(value, &inputs, rule).unwrap();
        drop(terms);
        for sweep in [lab.tape.sweep(), lab.tape.sweep().slots(2)] {
            let gradients = sweep.pullback(&loss).unwrap();
            assert_eq!(gradients.counts().replays.total(), MILLION as u64 / 4);
            assert!(gradients.counts().peak_values <= 1);
        }
    });
}

#[test]
fn b16_rules_that_own_their_inputs_are_dropped_without_recursion() {
    on_a_small_stack(|| {
        let lab = Lab::new();
        let (x, y) = lab.chain(Kind::Retained, logistic, MILLION / 10);
        let meter = Arc::clone(&lab.parts.meter);
        drop((x, y, lab));
        assert_eq!(meter.live(), 0);
    });
}
