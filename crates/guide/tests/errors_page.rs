//! The mistakes of the first hour, and that the guide shows the messages that they really get.

use ebbtide::prelude::*;

/// The guide's page on what goes wrong.
const PAGE: &str = include_str!("../../../docs/src/errors.md");

/// Is the message on the page? Places differ, since the page's reader has another file than this one.
fn shown<T, E: std::fmt::Display>(result: Result<T, E>) {
    let Err(error) = result else { panic!("this was meant to fail") };
    let message = without_places(&error.to_string());
    assert!(without_places(PAGE).contains(&message), "docs/src/errors.md does not show:\n{message}");
}

/// The text with `FILE.rs:LINE:COLUMN` made equal everywhere.
fn without_places(text: &str) -> String {
    let place = |word: &str| {
        word.split_once(".rs:").is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let line = |line: &str| {
        line.split(' ').map(|word| if place(word) { "HERE" } else { word }).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn places_are_told_from_words() {
    assert_eq!(without_places("  src/main.rs:8:29: a race, at lib.rs:1:2"), "  HERE a race, at HERE");
    assert_eq!(without_places("see main.rs: it"), "see main.rs: it");
}

#[program]
fn smooth(u: &mut Array1<f64>) {
    for i in par(1..u.len()) {
        u[i] = 0.5 * (u[i] + u[i - 1]);
    }
}

#[program]
fn total(x: &mut Array1<f64>) {
    let mut sum = 0.0;
    for i in par(0..x.len()) {
        sum += x[i];
    }
    x[0] = sum;
}

#[program]
fn fresh(u: &mut Array1<f64>) {
    let mut next = Array1::<f64>::zeros([u.len()]);
    for i in par(0..u.len()) {
        next[i] = 2.0 * u[i];
    }
    swap(u, next);
}

#[program]
fn cool(hot: &Array0<i32>, x: &mut Array2<f64>, loss: &mut Array0<f64>) {
    for i in par(0..hot[[]] as usize) {
        if i % 2 == 0 {
            for k in 0..4 {
                x[[i, k + 1]] *= x[[i, k]];
            }
        }
    }
    for (i, k) in par(0..x.dim(0), 0..x.dim(1)) {
        loss[[]] += x[[i, k]];
    }
}

#[program]
fn fit(
    u: &mut Array1<f64>,
    next: &mut Array1<f64>,
    k: f64,
    steps: usize,
    seen: &Array1<f64>,
    bins: &Array1<i32>,
    loss: &mut Array0<f64>,
) {
    for _t in 0..steps {
        for i in par(0..u.len()) {
            next[i] = u[i] + k * u[i] * u[i];
        }
        swap(u, next);
    }
    for i in par(0..u.len()) {
        let d = u[i] - seen[i] * (bins[i] as f64);
        loss[[]] += d * d;
    }
}

#[program]
fn lookup(table: &Array1<f64>, index: &Array1<i32>, out: &mut Array1<f64>) {
    for i in par(0..out.len()) {
        out[i] = table[index[i] as usize];
    }
}

#[program]
fn shares(total: &mut Array1<i32>, heads: &Array1<i32>) {
    for i in par(0..total.len()) {
        total[i] = total[i] / heads[i];
    }
}

#[test]
fn build_errors() {
    let device = Device::best().unwrap();
    shown(smooth().compile(&device));
    shown(total().compile(&device));
    // A parameter and a temporary may be swapped, so there is nothing to show.
    assert!(fresh().compile(&device).is_ok());
    shown(fit().grad(fit::loss).compile(&device));
    shown(fit().grad(fit::loss).wrt_named::<f64>("kk").compile(&device));
    shown(fit().grad(fit::loss).wrt(fit::bins).compile(&device));
    shown(fit().vjp(fit::seen).wrt(fit::k).compile(&device));
    shown(cool().grad(cool::loss).wrt(cool::x).compile(&device));
}

#[test]
fn launch_errors() {
    let device = Device::cpu();
    let (mut u, mut next) = (device.array(&[1.0, 2.0, 3.0, 4.0]).unwrap(), device.zeros([4]).unwrap());
    let (seen, bins) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
    let mut loss = device.zeros([]).unwrap();
    shown(device.array_with_shape([2, 3], &[1.0; 5]));
    let g = fit().value_and_grad(fit::loss).wrt(fit::k).compile(&device).unwrap();
    let small = g.with_memory(Bytes(100));
    shown(small.launch((&mut u, &mut next, 0.1, 100, &seen, &bins, &mut loss)));
    let out = g.launch((&mut u, &mut next, 0.1, 100, &seen, &bins, &mut loss)).unwrap();
    shown(out.get(fit::u));
    let seeded = fit().vjp(fit::loss).wrt(fit::k).compile(&device).unwrap();
    shown(seeded.launch((&mut u, &mut next, 0.1, 2, &seen, &bins, &mut loss)));
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("run");
    shown(seeded.launch_durable(&run, (&mut u, &mut next, 0.1, 2, &seen, &bins, &mut loss)));
    assert!(!run.exists());
    let of_many = fit().vjp(fit::u).wrt(fit::k).compile(&device).unwrap();
    let three = device.zeros::<f64, 1>([3]).unwrap();
    let refused = of_many.launch_with(&three, (&mut u, &mut next, 0.1, 2, &seen, &bins, &mut loss));
    assert!(
        refused
            .err()
            .unwrap()
            .to_string()
            .ends_with("the cotangent has shape [3], and `u`, whose cotangent it is, has shape [4]")
    );
    let one = device.scalar(1.0).unwrap();
    shown(g.launch_with(&one, (&mut u, &mut next, 0.1, 2, &seen, &bins, &mut loss)));
    let plain = fit().compile(&device).unwrap();
    let mut elsewhere = Device::interpreter().zeros([4]).unwrap();
    shown(plain.launch((&mut elsewhere, &mut next, 0.1, 1, &seen, &bins, &mut loss)));
    if device.name() == "cpu" {
        let mut elsewhere = Device::cpu().zeros([4]).unwrap();
        shown(plain.launch((&mut elsewhere, &mut next, 0.1, 1, &seen, &bins, &mut loss)));
    }
}

#[test]
fn run_errors() {
    for device in [Device::best().unwrap(), Device::interpreter()] {
        let (mut u, mut short) = (device.zeros([4]).unwrap(), device.zeros([3]).unwrap());
        let (seen, bins) = (device.zeros([4]).unwrap(), device.zeros([4]).unwrap());
        let mut loss = device.zeros([]).unwrap();
        let plain = fit().compile(&device).unwrap();
        let mut next = device.zeros([4]).unwrap();
        let few = device.zeros([3]).unwrap();
        shown(plain.launch((&mut u, &mut next, 0.1, 1, &few, &bins, &mut loss)));
        let wide = &mut device.zeros([5]).unwrap();
        shown(plain.launch((&mut u, wide, 0.1, 1, &seen, &bins, &mut loss)));
        let index = device.array(&[0, 1, 7]).unwrap();
        shown(lookup().compile(&device).unwrap().launch((&u, &index, &mut short)));
        let heads = device.array(&[1, 0]).unwrap();
        shown(shares().compile(&device).unwrap().launch((&mut device.array(&[4, 4]).unwrap(), &heads)));
    }
}

/// What rustc says is held by `tests/ui`; here, that the page quotes it.
#[test]
fn rustc_errors() {
    let said = concat!(
        include_str!("../../ebbtide/tests/ui/the_first_hour.stderr"),
        include_str!("../../ebbtide/tests/ui/newcomers_calls.stderr"),
        include_str!("../../ebbtide/tests/ui/newcomers_derivatives.stderr"),
        include_str!("../../ebbtide/tests/ui/newcomers_library.stderr"),
        include_str!("../../ebbtide/tests/ui/newcomers_prelude.stderr"),
        include_str!("../../ebbtide/tests/ui/newcomers_without_imports.stderr")
    );
    let quoted: Vec<&str> = PAGE.lines().filter(|line| line.starts_with("error")).collect();
    assert!(quoted.len() >= 5, "{quoted:?}");
    for line in quoted {
        assert!(said.lines().any(|there| there == line), "rustc does not say: {line}");
    }
}

/// `fn main() -> ebbtide::Result<()>` prints an error in its debug form.
#[test]
fn an_error_that_leaves_main_reads_like_its_text() {
    let error = smooth().compile(&Device::interpreter()).unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
}

/// How many passes it takes is known at the end.
#[program]
fn settle(x: &mut Array1<f64>, loss: &mut Array0<f64>) {
    while x[0] > 0.1 {
        for i in par(0..x.len()) {
            x[i] = 0.5 * x[i] * x[i];
        }
    }
    loss[[]] += x[0];
}

#[test]
fn a_plan_does_not_claim_to_know_when_a_loop_will_end() {
    let device = Device::interpreter();
    let (mut x, mut loss) = (device.array(&[0.9, 0.5]).unwrap(), device.scalar(0.0).unwrap());
    let g = settle().grad(settle::loss).wrt(settle::x).memory(Bytes::kib(1)).compile(&device).unwrap();
    let text = g.plan((&mut x, &mut loss)).unwrap().explain();
    assert!(text.contains("store-all        known when the loops have ended\n"), "{text}");
    assert!(text.contains("loop 0: a number of iterations that data decide, online with "), "{text}");
    assert!(!text.contains("with 0 states") && !text.contains("body runs"), "{text}");
}
