//! Elements at data-dependent places: `scatter_unique`, which writes each once, and sums in the order of the iterations.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

#[program]
fn permute(from: &Array1<f64>, place: &Array1<i32>, to: &mut Array1<f64>) {
    for i in par(0..from.len()) {
        scatter_unique(to, place[i] as usize, 2.0 * from[i]);
    }
}

#[test]
fn a_scatter_claims_its_element_and_writes_it() {
    check(
        permute(),
        expect![[r#"
            program permute(from: &Array1<f64>, place: &Array1<i32>, to: &mut Array1<f64>) {
                let mut to_taken = Array1::<bool>::zeros([to.len()]);
                for i in par(0..from.len()) {
                    let v4 = place[i] as usize;
                    let v7 = 2.0 * from[i];
                    claim(to[v4], to_taken);
                    to[v4] = v7;
                }
            }
        "#]],
    );
}

/// The devices that must agree.
fn devices() -> [Device; 4] {
    let threads = |n| ebbtide_cpu::Options::new().threads(n).build().unwrap().0;
    [Device::interpreter(), threads(1), threads(2), threads(5)]
}

#[test]
fn all_that_is_scattered_arrives() {
    for device in devices() {
        let n = 20_000;
        let from: Vec<f64> = (0..n).map(f64::from).collect();
        // Odd numbers have an inverse modulo a power of two, here modulo 32768: all places differ.
        let place: Vec<i32> = (0..n).map(|i| i * 4097 % 32768).collect();
        let mut to = device.zeros([32768]).unwrap();
        let compiled = permute().compile(&device).unwrap();
        let (from, places) = (device.array(&from).unwrap(), device.array(&place).unwrap());
        for _ in 0..2 {
            let _ = compiled.launch((&from, &places, &mut to)).unwrap();
        }
        let to = to.to_vec();
        assert_eq!(to.iter().filter(|x| **x != 0.0).count(), n as usize - 1);
        assert!(place.iter().enumerate().all(|(i, k)| to[*k as usize] == 2.0 * i as f64));
    }
}

#[test]
fn an_element_written_twice_is_an_error_that_names_array_index_and_line() {
    for device in devices() {
        let (from, place) = (device.array(&[1.0, 2.0, 3.0]).unwrap(), device.array(&[4, 0, 4]).unwrap());
        let mut to = device.zeros([5]).unwrap();
        let error = permute().compile(&device).unwrap().launch((&from, &place, &mut to)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("run error: program `permute`: element [4] of `to` is written twice"),
            "{error}"
        );
        assert!(error.contains("scatter.rs:11:"), "{error}");
        let place = device.array(&[4, 5, -1]).unwrap();
        let error = permute().compile(&device).unwrap().launch((&from, &place, &mut to)).unwrap_err();
        assert!(error.to_string().contains("of `to`, whose extent is 5"), "{error}");
    }
}

#[program]
fn corners(x: &Array1<f64>, row: &Array1<i32>, column: &Array1<i32>, out: &mut Array2<f64>, steps: usize) {
    for _t in 0..steps {
        for i in par(0..x.len()) {
            let r = row[i] as usize;
            let c = column[i] as usize;
            if x[i] > 0.0 {
                // What is claimed may be read too.
                scatter_unique(out, [r, c], x[i] * x[i] + 0.5 * out[[r, c]]);
            }
        }
    }
}

#[test]
fn rank_two_branches_and_time_loops() {
    for device in devices() {
        let x = device.array(&[1.0, -1.0, 2.0]).unwrap();
        let (row, column) = (device.array(&[0, 1, 1]).unwrap(), device.array(&[1, 0, 0]).unwrap());
        let mut out = device.zeros([2, 2]).unwrap();
        let _ = corners().compile(&device).unwrap().launch((&x, &row, &column, &mut out, 2)).unwrap();
        assert_eq!(out.to_vec(), [0.0, 1.5, 6.0, 0.0]);
        let x = device.array(&[1.0, 1.0, 2.0]).unwrap();
        let error = corners().compile(&device).unwrap().launch((&x, &row, &column, &mut out, 2)).unwrap_err();
        assert!(error.to_string().contains("element [1, 0] of `out` is written twice"), "{error}");
    }
}

#[program]
fn elsewhere(a: &mut Array1<f64>, k: &Array1<i32>) {
    for i in par(0..k.len()) {
        scatter_unique(a, k[i] as usize, a[i]);
    }
}

#[test]
fn what_is_scattered_into_is_not_read_elsewhere() {
    let error = elsewhere().ir().unwrap_err().to_string();
    assert!(error.contains("a race: iterations [") && error.contains("may touch element"), "{error}");
}

/// Sums at shared elements: plainly, under a condition, several in a loop, of integers, and extremes.
#[program]
fn deposits(
    x: &Array1<f32>,
    place: &Array1<i32>,
    once: &mut Array1<f32>,
    some: &mut Array1<f64>,
    many: &mut Array1<f32>,
    highest: &mut Array1<f32>,
    steps: usize,
) {
    let cells = once.len();
    for _t in 0..steps {
        for i in par(0..x.len()) {
            let k = place[i] as usize;
            once[k] += x[i];
            if x[i] > 0.25 {
                some[k] += x[i] as f64;
            } else {
                some[(k + 1) % cells] += 0.5;
            }
            for a in 0..2 {
                for b in 0..3 {
                    many[(k + a * 3 + b) % cells] += x[i] * (b as f32);
                    if a == 1 {
                        many[(k + 7) % cells] += x[i];
                    }
                }
            }
            highest[(k + i) % cells].max_assign(x[i]);
        }
    }
}

fn deposited(device: &Device, n: usize, cells: usize) -> Vec<u64> {
    let number = |k: usize| ((k * 7919 + 13) % 10_007) as f32 / 10_007.0 - 0.3;
    let x: Vec<f32> = (0..n).map(number).collect();
    let place: Vec<i32> = (0..n).map(|k| (k * k % 65_521 * 31 % cells) as i32).collect();
    let (x, place) = (device.array(&x).unwrap(), device.array(&place).unwrap());
    let single = || device.zeros::<f32, 1>([cells]).unwrap();
    let (mut once, mut many, mut highest) = (single(), single(), single());
    let mut some = device.zeros([cells]).unwrap();
    let compiled = deposits().compile(device).unwrap();
    let _done = compiled.launch((&x, &place, &mut once, &mut some, &mut many, &mut highest, 2)).unwrap();
    let singles = [once, many, highest].map(|array| array.to_vec()).concat();
    singles.iter().map(|x| u64::from(x.to_bits())).chain(some.iter().map(|x| x.to_bits())).collect()
}

#[test]
fn sums_at_shared_elements_have_the_order_of_the_iterations() {
    let [interpreter, one, two, five] = devices();
    for (n, cells) in [(0, 3), (1, 1), (700, 1), (700, 40), (3000, 1000)] {
        let expected = deposited(&interpreter, n, cells);
        for device in [&one, &two, &five] {
            assert!(deposited(device, n, cells) == expected, "{n} into {cells}");
        }
    }
    // Many iterations, into fewer and into more elements than there are threads.
    for (n, cells) in [(150_000, 2), (150_000, 5000)] {
        assert!(deposited(&five, n, cells) == deposited(&one, n, cells), "{n} into {cells}");
    }
}

#[test]
#[ignore = "needs CUDA"]
fn sums_at_shared_elements_have_the_order_of_the_iterations_on_cuda() {
    let [_, cpu, ..] = devices();
    for blocks in [0, 1, 7, 600] {
        let options = ebbtide_cuda::Options::new();
        let (cuda, _) = if blocks == 0 { options } else { options.blocks(blocks) }.build().unwrap();
        // Few terms, some batches, many batches; one digit of the key, two, three.
        for (n, cells) in [
            (700, 1),
            (700, 40),
            (3000, 5),
            (30_000, 1),
            (30_000, 1000),
            (300_000, 70_000),
            (1_200_000, 600_000),
        ] {
            assert!(
                deposited(&cuda, n, cells) == deposited(&cpu, n, cells),
                "{n} into {cells}, {blocks} blocks"
            );
        }
    }
}
