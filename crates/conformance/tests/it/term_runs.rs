//! Sums at elements that iterations share are taken run by run (law 8): on every device as an independent reading of the law says.

use ebbtide::prelude::*;
use ebbtide_cpu::{Cache, Options};
use ebbtide_runtime::interpreter;

use crate::devices::folder;

/// So many terms are a run, says the law.
const RUN: usize = 1024;

/// Adds a number to an element that data choose.
#[program]
fn tally(at: &Array1<i32>, x: &Array1<f64>, y: &mut Array1<f64>) {
    for i in par(0..x.len()) {
        y[at[i] as usize] += x[i];
    }
}

/// Several updates of one array in an iteration, some of them under a condition or in a loop, and another array beside it.
#[program]
fn several(at: &Array1<i32>, often: &Array1<i32>, x: &Array1<f32>, y: &mut Array1<f32>, z: &mut Array1<f64>) {
    let n = y.len();
    for i in par(0..x.len()) {
        let k = at[i] as usize;
        if x[i] > 0.25 {
            y[k] += x[i];
        }
        for j in 0..often[i] as usize {
            y[(k + j) % n] += x[i] * (j as f32 - 0.5);
            z[k] += x[i] as f64;
        }
        y[k] += 0.1;
        y[k] += x[i] * x[i];
    }
}

/// What lanes of a vector add to one element, in rows of their own.
#[program]
fn rows(x: &Array2<f64>, w: &mut Array2<f64>) {
    for i in par(0..x.dim(1)) {
        for t in 0..x.dim(0) {
            w[[t, 0]] += x[[t, i]];
            w[[t, 1]] += x[[t, i]] * 0.3;
            w[[t, 1]] += 0.1;
        }
    }
}

/// What neighbouring lanes add to neighbouring elements, row after row.
#[program]
fn columns(x: &Array2<f32>, y: &mut Array1<f32>) {
    for (r, i) in par(0..x.dim(0), 0..x.dim(1)) {
        y[i] += x[[r, i]];
    }
}

/// Two loops that count in turn, again and again.
#[program]
fn in_turn(at: &Array1<i32>, x: &Array1<f64>, y: &mut Array1<f64>, z: &mut Array1<f64>, steps: usize) {
    for t in 0..steps {
        for i in par(0..x.len()) {
            y[at[i] as usize] += x[i] * (t as f64 + 1.0);
        }
        for i in par(0..x.len() / 3) {
            z[at[i] as usize % 3] += x[i];
            y[(at[i] as usize + 1) % y.len()] += x[i];
        }
    }
}

/// Vectors at two ends, which may be one: all components get their terms together.
#[program]
fn vectors(ends: &Array1<[i32; 2]>, x: &Array1<f64>, y: &mut Array1<Vec3<f64>>) {
    for i in par(0..x.len()) {
        let (a, b) = (ends[i][0] as usize, ends[i][1] as usize);
        let d = Vec3::new(x[i], 0.3 * x[i], x[i] * x[i]);
        y[a] += d;
        if x[i] < 1.5 {
            y[b] -= 0.1 * d;
        }
    }
}

/// The same in two components, taken in turn.
#[program]
fn interleaved(ends: &Array1<[i32; 2]>, x: &Array1<f64>, y: &mut Array2<f64>) {
    for i in par(0..x.len()) {
        let (a, b) = (ends[i][0] as usize, ends[i][1] as usize);
        y[[a, 0]] += x[i];
        y[[b, 0]] += 0.1;
        y[[a, 1]] += 0.7 * x[i];
        y[[b, 1]] += x[i] * x[i];
    }
}

/// A misfit of what a table says of each cell: what flows back to the table is added cell by cell.
#[program]
fn material(of: &Array1<i32>, k: &Array1<f64>, u: &Array1<f64>, loss: &mut Array0<f64>) {
    for i in par(0..u.len()) {
        let d = k[of[i] as usize] * u[i] - 1.0 / (1.0 + u[i]);
        loss[[]] += d * d;
    }
}

/// An element under the law: the terms so far in its open run, and what came before.
#[derive(Clone, Copy)]
struct Law<T> {
    open: T,
    finished: Option<T>,
    terms: usize,
}

impl<T: Copy + std::ops::Add<Output = T>> Law<T> {
    fn of(element: T) -> Law<T> {
        Law { open: element, finished: None, terms: 0 }
    }

    /// The run is whole when the next term comes: the term begins another one.
    fn add(&mut self, term: T) {
        if self.terms == RUN {
            self.finished = Some(self.finished.map_or(self.open, |before| before + self.open));
            (self.open, self.terms) = (term, 1);
        } else {
            (self.open, self.terms) = (self.open + term, self.terms + 1);
        }
    }

    fn sum(&self) -> T {
        self.finished.map_or(self.open, |before| before + self.open)
    }
}

fn sums<T: Copy + std::ops::Add<Output = T>>(elements: &[Law<T>]) -> Vec<T> {
    elements.iter().map(Law::sum).collect()
}

/// The interpreter, and the CPU with one, two, three and eight threads.
fn devices() -> Vec<Device> {
    let cpu = |threads| Options::new().threads(threads).cache(Cache::at(folder())).build().unwrap().0;
    [interpreter()].into_iter().chain([1, 2, 3, 8].map(cpu)).collect()
}

/// Numbers below `bound` that look random.
fn numbers(seed: u64, count: usize, bound: usize) -> Vec<usize> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    (0..count).map(|_| next()).collect()
}

/// Numbers between -1 and 2 whose sums round.
fn terms(seed: u64, count: usize) -> Vec<f64> {
    numbers(seed, count, 1 << 24).into_iter().map(|n| n as f64 / 5.6e6 - 1.0).collect()
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

fn bits32(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Asserts that `tally` follows the law on these devices.
fn tally_follows_the_law(devices: &[Device], count: usize, elements: usize, spread: usize) {
    // Only the first `spread` elements are chosen, the first of them most often.
    let at: Vec<usize> =
        numbers(7, count, 2 * spread).into_iter().map(|k| if k < spread { k } else { 0 }).collect();
    let x = terms(8, count);
    let mut law: Vec<Law<f64>> = (0..elements).map(|k| Law::of(k as f64 * 0.1)).collect();
    at.iter().zip(&x).for_each(|(k, x)| law[*k].add(*x));
    for device in devices {
        let at = device.from_fn([count], |[i]| at[i] as i32).unwrap();
        let x = device.from_fn([count], |[i]| x[i]).unwrap();
        let mut y = device.from_fn([elements], |[k]| k as f64 * 0.1).unwrap();
        tally().compile(device).unwrap().launch((&at, &x, &mut y)).unwrap();
        let (found, expected) = (y.to_vec(), sums(&law));
        assert!(
            bits(&found) == bits(&expected),
            "{count} terms to {spread} of {elements} elements, {device:?}"
        );
    }
}

#[test]
fn the_order_of_a_sum_at_a_shared_element_depends_on_its_number_of_terms_alone() {
    let devices = devices();
    for count in [1, 1023, 1024, 1025, 2047, 2048, 2049, 100_000] {
        tally_follows_the_law(&devices, count, 1, 1);
        tally_follows_the_law(&devices, count, 3, 3);
        tally_follows_the_law(&devices, count, 20_011, 5);
    }
    tally_follows_the_law(&devices, 100_000, 20_011, 20_011);
}

#[test]
fn any_number_of_elements_may_have_finished_runs() {
    tally_follows_the_law(&devices(), 1_500_000, 700, 600);
}

#[test]
fn a_plain_chain_of_more_terms_than_a_run_has_other_bits() {
    let x = terms(8, 100_000);
    let mut law = Law::of(0.0);
    x.iter().for_each(|x| law.add(*x));
    assert_ne!(law.sum().to_bits(), x.iter().fold(0.0, |sum, x| sum + x).to_bits());
}

/// Asserts that `several` follows the law on these devices.
fn several_follows_the_law(devices: &[Device], count: usize, elements: usize, most: usize) {
    let (at, often) = (numbers(1, count, elements), numbers(2, count, most + 1));
    let x: Vec<f32> = terms(3, count).into_iter().map(|x| x as f32).collect();
    let (mut y, mut z) = (vec![Law::of(0.5_f32); elements], vec![Law::of(-0.0_f64); elements]);
    for i in 0..count {
        let k = at[i];
        if x[i] > 0.25 {
            y[k].add(x[i]);
        }
        for j in 0..often[i] {
            y[(k + j) % elements].add(x[i] * (j as f32 - 0.5));
            z[k].add(x[i] as f64);
        }
        y[k].add(0.1);
        y[k].add(x[i] * x[i]);
    }
    for device in devices {
        let at = device.from_fn([count], |[i]| at[i] as i32).unwrap();
        let often = device.from_fn([count], |[i]| often[i] as i32).unwrap();
        let x = device.from_fn([count], |[i]| x[i]).unwrap();
        let mut found_y = device.from_fn([elements], |_| 0.5).unwrap();
        let mut found_z = device.from_fn([elements], |_| -0.0).unwrap();
        several().compile(device).unwrap().launch((&at, &often, &x, &mut found_y, &mut found_z)).unwrap();
        assert!(bits32(&found_y.to_vec()) == bits32(&sums(&y)), "{count} iterations, {device:?}");
        assert!(bits(&found_z.to_vec()) == bits(&sums(&z)), "{count} iterations, {device:?}");
    }
}

#[test]
fn all_updates_of_an_array_count_together_in_order_of_execution() {
    let devices = devices();
    for (count, elements, most) in [(300, 1, 2), (343, 1, 0), (700, 2, 9), (20_000, 3, 4), (3, 1, 4000)] {
        several_follows_the_law(&devices, count, elements, most);
    }
}

#[test]
fn elements_that_lanes_share_are_summed_run_by_run() {
    for (t, n) in [(1, 1023), (2, 1024), (3, 1025), (2, 5_003)] {
        let x = terms(4, t * n);
        let mut law = vec![Law::of(1.0); 2 * t];
        for i in 0..n {
            for r in 0..t {
                law[2 * r].add(x[r * n + i]);
                law[2 * r + 1].add(x[r * n + i] * 0.3);
                law[2 * r + 1].add(0.1);
            }
        }
        for device in devices() {
            let x = device.from_fn([t, n], |[r, i]| x[r * n + i]).unwrap();
            let mut w = device.from_fn([t, 2], |_| 1.0).unwrap();
            rows().compile(&device).unwrap().launch((&x, &mut w)).unwrap();
            assert_eq!(bits(&w.to_vec()), bits(&sums(&law)), "{t} rows of {n}, {device:?}");
        }
    }
}

#[test]
fn neighbouring_elements_of_neighbouring_lanes_are_summed_run_by_run() {
    for (r, n) in [(1_024, 5), (1_025, 37), (2_500, 70)] {
        let x: Vec<f32> = terms(5, r * n).into_iter().map(|x| x as f32).collect();
        let mut law = vec![Law::of(1.0_f32); n];
        (0..r * n).for_each(|k| law[k % n].add(x[k]));
        for device in devices() {
            let x = device.from_fn([r, n], |[r, i]| x[r * n + i]).unwrap();
            let mut y = device.from_fn([n], |_| 1.0).unwrap();
            columns().compile(&device).unwrap().launch((&x, &mut y)).unwrap();
            assert_eq!(bits32(&y.to_vec()), bits32(&sums(&law)), "{r} rows of {n}, {device:?}");
        }
    }
}

/// Asserts that `vectors` and `interleaved` follow the law on these devices.
fn components_follow_the_law(devices: &[Device], count: usize, elements: usize) {
    let (ends, x) = (numbers(31, 2 * count, elements), terms(32, count));
    let (mut y, mut z) = (vec![Law::of(0.0); 3 * elements], vec![Law::of(0.5); 2 * elements]);
    for i in 0..count {
        let (a, b) = (ends[2 * i], ends[2 * i + 1]);
        let d = [x[i], 0.3 * x[i], x[i] * x[i]];
        (0..3).for_each(|c| y[3 * a + c].add(d[c]));
        if x[i] < 1.5 {
            (0..3).for_each(|c| y[3 * b + c].add(-(0.1 * d[c])));
        }
        z[2 * a].add(x[i]);
        z[2 * b].add(0.1);
        z[2 * a + 1].add(0.7 * x[i]);
        z[2 * b + 1].add(x[i] * x[i]);
    }
    for device in devices {
        let ends = device.from_fn([count], |[i]| [ends[2 * i] as i32, ends[2 * i + 1] as i32]).unwrap();
        let x = device.from_fn([count], |[i]| x[i]).unwrap();
        let mut found = device.from_fn([elements], |_| Vec3::zero()).unwrap();
        vectors().compile(device).unwrap().launch((&ends, &x, &mut found)).unwrap();
        let found: Vec<f64> = found.to_vec().into_iter().flat_map(|v| [v.x, v.y, v.z]).collect();
        assert!(bits(&found) == bits(&sums(&y)), "{count} to {elements}, {device:?}");
        let mut found = device.from_fn([elements, 2], |_| 0.5).unwrap();
        interleaved().compile(device).unwrap().launch((&ends, &x, &mut found)).unwrap();
        assert!(bits(&found.to_vec()) == bits(&sums(&z)), "{count} to {elements}, {device:?}");
    }
}

#[test]
fn components_that_get_their_terms_together_are_summed_run_by_run() {
    let devices = devices();
    for (count, elements) in [(512, 1), (700, 1), (2_100, 1), (5_000, 2), (40_000, 7), (3_000, 4_001)] {
        components_follow_the_law(&devices, count, elements);
    }
}

/// Asserts that `in_turn` follows the law on these devices.
fn in_turn_follows_the_law(devices: &[Device], count: usize, elements: usize, steps: usize) {
    let (at, x) = (numbers(11, count, elements), terms(12, count));
    let (mut y, mut z) = (vec![0.25; elements], vec![0.0; 3]);
    for t in 0..steps {
        let mut law: Vec<Law<f64>> = y.iter().copied().map(Law::of).collect();
        (0..count).for_each(|i| law[at[i]].add(x[i] * (t as f64 + 1.0)));
        y = sums(&law);
        let mut law: Vec<Law<f64>> = y.iter().copied().map(Law::of).collect();
        let mut other: Vec<Law<f64>> = z.iter().copied().map(Law::of).collect();
        for i in 0..count / 3 {
            other[at[i] % 3].add(x[i]);
            law[(at[i] + 1) % elements].add(x[i]);
        }
        (y, z) = (sums(&law), sums(&other));
    }
    for device in devices {
        let at = device.from_fn([count], |[i]| at[i] as i32).unwrap();
        let x = device.from_fn([count], |[i]| x[i]).unwrap();
        let mut found_y = device.from_fn([elements], |_| 0.25).unwrap();
        let mut found_z = device.zeros([3]).unwrap();
        let program = in_turn().compile(device).unwrap();
        program.launch((&at, &x, &mut found_y, &mut found_z, steps)).unwrap();
        assert!(bits(&found_y.to_vec()) == bits(&y), "{steps} steps, {device:?}");
        assert!(bits(&found_z.to_vec()) == bits(&z), "{steps} steps, {device:?}");
    }
}

#[test]
fn each_execution_of_a_loop_counts_anew() {
    let devices = devices();
    for (count, elements, steps) in [(1_500, 1, 100), (4_000, 3, 70), (30_000, 11, 40)] {
        in_turn_follows_the_law(&devices, count, elements, steps);
    }
}

#[test]
fn launches_of_one_program_count_anew() {
    let (at, x) = (numbers(11, 1_000, 2), terms(12, 1_000));
    let mut y = vec![0.0, 0.0];
    let launches = 70;
    for _ in 0..launches {
        let mut law: Vec<Law<f64>> = y.iter().copied().map(Law::of).collect();
        at.iter().zip(&x).cycle().take(5_000).for_each(|(k, x)| law[*k].add(*x));
        y = sums(&law);
    }
    for device in devices() {
        let program = tally().compile(&device).unwrap();
        let at = device.from_fn([5_000], |[i]| at[i % 1_000] as i32).unwrap();
        let x = device.from_fn([5_000], |[i]| x[i % 1_000]).unwrap();
        let mut found = device.zeros([2]).unwrap();
        for _ in 0..launches {
            program.launch((&at, &x, &mut found)).unwrap();
        }
        assert_eq!(bits(&found.to_vec()), bits(&y), "{device:?}");
    }
}

/// Asserts that the gradient of `material` by its table follows the law on these devices, whatever the memory.
fn material_follows_the_law(devices: &[Device], count: usize, table: usize) {
    let (of, u) = (numbers(21, count, table), terms(22, count));
    let k: Vec<f64> = (0..table).map(|k| 1.0 / (k as f64 + 2.0)).collect();
    let mut found: Vec<(Vec<u64>, String)> = Vec::new();
    for device in devices {
        let of = device.from_fn([count], |[i]| of[i] as i32).unwrap();
        let u = device.from_fn([count], |[i]| u[i]).unwrap();
        let k = device.from_fn([table], |[j]| k[j]).unwrap();
        let gradient = material().grad(material::loss).wrt(material::k).compile(device).unwrap();
        let mut loss = device.zeros([]).unwrap();
        let out = gradient.launch((&of, &k, &u, &mut loss)).unwrap();
        found.push((bits(&out.get(material::k).unwrap().to_vec()), format!("{device:?}")));
    }
    found.iter().for_each(|(bits, device)| assert!(*bits == found[0].0, "{device}"));
    // The cotangent of `d * d` is `2 d`, each factor by itself; what reaches the table is that times `u`.
    let mut law = vec![Law::of(0.0); table];
    for i in 0..count {
        let d = k[of[i]] * u[i] - 1.0 / (1.0 + u[i]);
        law[of[i]].add((d + d) * u[i]);
    }
    assert_eq!(found[0].0, bits(&sums(&law)));
}

#[test]
fn what_flows_back_to_a_table_is_summed_run_by_run() {
    let devices = devices();
    for (count, table) in [(1_024, 1), (1_025, 1), (30_000, 4)] {
        material_follows_the_law(&devices, count, table);
    }
}

/// The GPU, with as many blocks as it likes, with few and with many.
fn on_cuda() -> Vec<Device> {
    [1, 2, 3].map(crate::cuda::device).to_vec()
}

#[test]
#[ignore = "needs CUDA"]
fn cuda_sums_shared_elements_run_by_run() {
    let devices = on_cuda();
    for count in [1, 1023, 1024, 1025, 2047, 2048, 2049, 8_192, 8_193, 100_000, 1_000_000] {
        tally_follows_the_law(&devices, count, 1, 1);
        tally_follows_the_law(&devices, count, 3, 3);
        tally_follows_the_law(&devices, count, 200_003, 5);
        tally_follows_the_law(&devices, count, 200_003, 16_385);
        tally_follows_the_law(&devices, count, 200_003, 200_003);
    }
    for (count, elements, most) in
        [(300, 1, 2), (343, 1, 0), (700, 2, 9), (20_000, 3, 4), (3, 1, 4000), (200_000, 100, 3)]
    {
        several_follows_the_law(&devices, count, elements, most);
    }
    components_follow_the_law(&devices, 40_000, 7);
    in_turn_follows_the_law(&devices, 30_000, 11, 40);
    in_turn_follows_the_law(&devices, 3_000, 2, 9);
    material_follows_the_law(&devices, 300_000, 4);
}

#[test]
#[ignore = "needs CUDA"]
fn cuda_sums_run_by_run_across_batches_of_notes() {
    let devices = on_cuda();
    for (count, elements, spread) in [
        (1_048_576, 1, 1),
        (1_048_577, 1, 1),
        (2_500_000, 1, 1),
        (3_000_000, 1_000, 900),
        (2_200_000, 50_000, 40_000),
    ] {
        tally_follows_the_law(&devices, count, elements, spread);
    }
    for (count, elements, most) in [(700_000, 2, 9), (600_000, 5_000, 4), (5, 3, 400_000)] {
        several_follows_the_law(&devices, count, elements, most);
    }
    in_turn_follows_the_law(&devices, 1_300_000, 11, 3);
}
