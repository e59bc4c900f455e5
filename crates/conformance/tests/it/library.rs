//! Library operations: the same bits on every device and for every number of threads, and their gradients.

use ebbtide_autodiff::{Inner, Request, gradient};
use ebbtide_conformance::{Input, element};
use ebbtide_ir::*;
use ebbtide_runtime::interpreter;

use crate::devices::{check, cpu, results};
use crate::gradients::{Case, Given, with_misfit};

const LAYOUTS: [Layout; 2] = [Layout::Plain, Layout::Transposed];

fn product(ty: Type, left: Layout, right: Layout, into: Assign) -> Program {
    let mut b = Builder::new("product");
    let x = b.array("x", ty, 2, Access::Read);
    let y = b.array("y", ty, 2, Access::Read);
    let z = b.array("z", ty, 2, Access::Write);
    b.library(LibraryOp::Matmul { left, right, into }, &[x, y], &[z]);
    b.finish().unwrap()
}

/// The shape of a factor with so many rows and columns, as it lies in memory.
fn lying(layout: Layout, rows: usize, columns: usize) -> Vec<usize> {
    if layout == Layout::Plain { vec![rows, columns] } else { vec![columns, rows] }
}

#[test]
pub fn products_have_the_same_bits_on_every_device_for_every_shape() {
    let shapes = [
        (1, 1, 1),
        (2, 3, 4),
        (9, 5, 1),
        (1, 300, 70),
        (130, 20, 25),
        (17, 513, 33),
        (150, 30, 41),
        // Both factors copied; columns instead of rows split between threads.
        (140, 260, 200),
        (3, 300, 200),
        // A few rows: strips, and a right factor that is read along its columns, split between threads.
        (1, 270, 260),
        (2, 133, 300),
        (3, 37, 53),
        (4, 16, 40),
        (5, 130, 150),
        (6, 9, 17),
        (7, 33, 35),
        (8, 70, 131),
        (9, 40, 23),
        // More terms than are packed at a time.
        (1, 33_000, 2),
        (8, 4_200, 9),
        // Nothing at all, and sums of nothing.
        (0, 3, 4),
        (3, 4, 0),
        (5, 0, 6),
    ];
    for ty in [Type::F64, Type::F32] {
        for into in [Assign::Replace, Assign::Add] {
            for (left, right) in LAYOUTS.iter().flat_map(|l| LAYOUTS.map(|r| (*l, r))) {
                let program = product(ty, left, right, into);
                for (m, k, n) in shapes {
                    let inputs = [
                        Input::Array(lying(left, m, k), 1),
                        Input::Array(lying(right, k, n), 2),
                        Input::Array(vec![m, n], 3),
                    ];
                    check(&program, &inputs).unwrap();
                }
            }
        }
    }
}

/// Few enough for tools that watch every access.
#[test]
pub fn products_of_a_few_tiles_have_the_same_bits_on_every_device() {
    for (ty, into) in [(Type::F64, Assign::Replace), (Type::F32, Assign::Add)] {
        for (left, right) in LAYOUTS.iter().flat_map(|l| LAYOUTS.map(|r| (*l, r))) {
            let (m, k, n) = (35, 67, 40);
            let inputs = [
                Input::Array(lying(left, m, k), 1),
                Input::Array(lying(right, k, n), 2),
                Input::Array(vec![m, n], 3),
            ];
            check(&product(ty, left, right, into), &inputs).unwrap();
        }
    }
}

/// Enough for every block of a GPU: whole vectors and single elements, chunks side by side and one after the other, and edges.
pub fn products_of_many_tiles_have_the_same_bits_on_every_device() {
    for (ty, into) in [(Type::F64, Assign::Add), (Type::F32, Assign::Replace)] {
        for (left, right) in LAYOUTS.iter().flat_map(|l| LAYOUTS.map(|r| (*l, r))) {
            for (m, k, n) in [(520, 1100, 260), (1030, 131, 1032)] {
                let inputs = [
                    Input::Array(lying(left, m, k), 1),
                    Input::Array(lying(right, k, n), 2),
                    Input::Array(vec![m, n], 3),
                ];
                check(&product(ty, left, right, into), &inputs).unwrap();
            }
        }
    }
}

#[test]
pub fn a_product_is_what_the_law_says() {
    let of = |values: &[f64]| values.iter().map(|x| Literal::from(*x)).collect::<Vec<_>>();
    let program = product(Type::F64, Layout::Plain, Layout::Plain, Assign::Replace);
    let found = check(
        &program,
        &[
            Input::Elements(vec![2, 3], of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
            Input::Elements(vec![3, 2], of(&[7.0, 8.0, 9.0, 10.0, 11.0, 12.0])),
            Input::Elements(vec![2, 2], of(&[f64::NAN; 4])),
        ],
    );
    assert_eq!(found.unwrap()[2], of(&[58.0, 64.0, 139.0, 154.0]));
    // One chain over ascending k: large terms cancel before the small one comes, and each step rounds once.
    let tiny = 1.0 + f64::EPSILON;
    let found = check(
        &program,
        &[
            Input::Elements(vec![1, 4], of(&[1e300, 1e300, 1.0, tiny])),
            Input::Elements(vec![4, 1], of(&[1.0, -1.0, -1.0 - 2.0 * f64::EPSILON, tiny])),
            Input::Elements(vec![1, 1], of(&[0.0])),
        ],
    );
    assert_eq!(found.unwrap()[2], of(&[f64::EPSILON * f64::EPSILON]));
}

/// Terms at both sides of a chunk's end: the chunks are chains of their own, added in order.
#[test]
pub fn chunks_of_a_product_are_added_in_order() {
    let of = |values: Vec<f64>| values.into_iter().map(Literal::from).collect::<Vec<_>>();
    let chunk = MATMUL_CHUNK as usize;
    for (into, expected) in [(Assign::Replace, 1.0), (Assign::Add, 1.0)] {
        // The first chunk ends at 1e16, where another 1 is lost; the second one adds 1 and 1 to 2 before it meets 1e16, the
        // third one takes 1e16 away. One chain, or terms that are added one by one, would lose both.
        let mut left = vec![0.0; 2 * chunk + 1];
        (left[0], left[chunk - 1]) = (1e16, 1.0);
        (left[chunk], left[2 * chunk - 1]) = (1.0, 1.0);
        left[2 * chunk] = -1e16;
        let found = check(
            &product(Type::F64, Layout::Plain, Layout::Plain, into),
            &[
                Input::Elements(vec![1, left.len()], of(left.clone())),
                Input::Elements(vec![left.len(), 1], of(vec![1.0; left.len()])),
                Input::Elements(vec![1, 1], of(vec![0.0])),
            ],
        );
        assert_eq!(found.unwrap()[2], of(vec![2.0 * expected]), "{into:?}");
    }
}

/// `c += a b` and `d = a b`, twice: the first product finds that numbers are subnormal, the next ones know it.
fn repeated_products(ty: Type, left: Layout, right: Layout) -> Program {
    let mut b = Builder::new("products");
    let [x, y] = ["x", "y"].map(|name| b.array(name, ty, 2, Access::Read));
    let [c, d] = ["c", "d"].map(|name| b.array(name, ty, 2, Access::Write));
    let [zero, twice] = [0, 2].map(|k| b.literal(Literal::index(k)));
    b.begin_for("t", zero, twice);
    b.library(LibraryOp::Matmul { left, right, into: Assign::Add }, &[x, y], &[c]);
    b.library(LibraryOp::Matmul { left, right, into: Assign::Replace }, &[x, y], &[d]);
    b.end_loop(None);
    b.finish().unwrap()
}

/// Numbers of many sizes, whole powers of two of them and zeros among them.
fn sizes(ty: Type, count: usize, seed: u64, largest: i32, spread: i32) -> Vec<Literal> {
    (0..count)
        .map(|k| {
            let of = |salt: u64| element(Type::F64, seed + salt, k as u64).to_f64();
            let size = largest - (of(7).abs() * f64::from(spread)) as i32;
            let digits = match (of(11).abs() * 8.0) as i32 {
                0 => 0.0,
                1 => 1.0,
                2 => 1.5,
                _ => 1.0 + of(13).abs(),
            };
            // In two steps: a power of two below the least normal number is none.
            let number = digits * 2f64.powi(size / 2) * 2f64.powi(size - size / 2);
            Literal::of(ty, if of(17) < 0.0 { -number } else { number })
        })
        .collect()
}

#[test]
pub fn products_of_subnormal_numbers_have_the_same_bits_on_every_device() {
    for (ty, least) in [(Type::F32, -126), (Type::F64, -1022)] {
        for (left, right) in [
            (Layout::Plain, Layout::Plain),
            (Layout::Plain, Layout::Transposed),
            (Layout::Transposed, Layout::Plain),
        ] {
            let program = repeated_products(ty, left, right);
            // Sizes of the factors: sums around the least normal number, far below it, above it now and then, in one factor
            // or the other or both, and so far apart that what is raised overflows.
            for (at, [(a, spread), (b, other)]) in [
                [(least, 8), (0, 6)],
                [(least - 10, 12), (0, 4)],
                [(0, 6), (least + 2, 20)],
                [(least / 2, 10), (least / 2, 10)],
                [(least / 2 - 10, 20), (least / 2 - 8, 20)],
                [(least - 4, 16), (least - 4, 16)],
                [(least + 3, 24), (-least, 2)],
                [(-least / 2, -3 * least / 2), (-least / 2, 40)],
            ]
            .into_iter()
            .enumerate()
            {
                for (m, k, n) in [(9, 132, 50), (1, 260, 33)] {
                    let seed = at as u64 * 100;
                    let inputs = [
                        Input::Elements(lying(left, m, k), sizes(ty, m * k, seed, a, spread)),
                        Input::Elements(lying(right, k, n), sizes(ty, k * n, seed + 1, b, other)),
                        Input::Elements(vec![m, n], sizes(ty, m * n, seed + 2, least + 2, 30)),
                        Input::Elements(vec![m, n], vec![Literal::zero(ty); m * n]),
                    ];
                    check(&program, &inputs).unwrap();
                }
            }
        }
    }
}

fn scan(ty: Type, way: Way, into: Assign) -> Program {
    let mut b = Builder::new("sums");
    let x = b.array("x", ty, 1, Access::Read);
    let out = b.array("out", ty, 1, Access::Write);
    b.library(LibraryOp::Scan { way, into }, &[x], &[out]);
    b.finish().unwrap()
}

#[test]
pub fn scans_add_one_element_after_the_other() {
    for ty in [Type::F32, Type::F64, Type::I32, Type::I64, Type::U32] {
        for (way, into) in [
            (Way::Forth, Assign::Replace),
            (Way::Back, Assign::Replace),
            (Way::Forth, Assign::Add),
            (Way::Back, Assign::Add),
        ] {
            for n in [0, 1, 7, 10_000] {
                check(&scan(ty, way, into), &[Input::Array(vec![n], 1), Input::Array(vec![n], 2)]).unwrap();
            }
        }
    }
    let of = |values: &[f64]| values.iter().map(|x| Literal::from(*x)).collect::<Vec<_>>();
    let inputs = [Input::Elements(vec![4], of(&[-0.0, 1e16, 1.0, -1e16])), Input::Array(vec![4], 1)];
    let forth = check(&scan(Type::F64, Way::Forth, Assign::Replace), &inputs).unwrap();
    assert_eq!(forth[1], of(&[-0.0, 1e16, 1e16, 0.0]));
    let back = check(&scan(Type::F64, Way::Back, Assign::Replace), &inputs).unwrap();
    assert_eq!(back[1], of(&[0.0, 0.0, -1e16, -1e16]));
    let wraps =
        [Input::Elements(vec![2], vec![Literal::from(i32::MAX), Literal::from(1)]), Input::Array(vec![2], 1)];
    let found = check(&scan(Type::I32, Way::Forth, Assign::Replace), &wraps).unwrap();
    assert_eq!(found[1], [Literal::from(i32::MAX), Literal::from(i32::MIN)]);
}

fn compact(ty: Type) -> Program {
    let mut b = Builder::new("chosen");
    let flags = b.array("flags", ty, 1, Access::Read);
    let out = b.array("out", Type::I32, 1, Access::Write);
    let count = b.array("count", Type::I32, 0, Access::Write);
    b.compact(flags, out, count);
    b.finish().unwrap()
}

#[test]
pub fn compact_counts_all_and_writes_what_has_room() {
    for ty in [Type::Bool, Type::I32, Type::U32] {
        for (n, room) in [(0, 3), (5, 0), (100, 100), (100, 7), (20_000, 3_000)] {
            let inputs = [Input::Array(vec![n], 4), Input::Array(vec![room], 5), Input::Array(vec![], 6)];
            check(&compact(ty), &inputs).unwrap();
        }
    }
    let flags = [true, false, true, true].map(Literal::from).to_vec();
    let (one, nine) = (Literal::from(-1), Literal::from(9));
    let chosen = |room: usize| {
        let inputs = [
            Input::Elements(vec![4], flags.clone()),
            Input::Elements(vec![room], vec![one; room]),
            Input::Elements(vec![], vec![nine]),
        ];
        check(&compact(Type::Bool), &inputs).unwrap()[1..].to_vec()
    };
    let numbers = |values: &[i32]| values.iter().map(|x| Literal::from(*x)).collect::<Vec<_>>();
    assert_eq!(chosen(4), [numbers(&[0, 2, 3, -1]), numbers(&[3])]);
    assert_eq!(chosen(2), [numbers(&[0, 2]), numbers(&[3])], "an overflow is counted, not written");
}

#[test]
pub fn shapes_that_do_not_fit_are_run_errors_that_say_what_fits() {
    let inputs = [Input::Array(vec![2, 3], 1), Input::Array(vec![4, 5], 2), Input::Array(vec![2, 5], 3)];
    let message = "run error: program `product`: `matmul` needs shapes [m, k], [k, n] and [m, n], but `x` has shape \
                   [2, 3], `y` has shape [4, 5], `z` has shape [2, 5]";
    let program = product(Type::F64, Layout::Plain, Layout::Plain, Assign::Replace);
    for device in [interpreter(), cpu(1), cpu(2)] {
        assert_eq!(results(&program, &device, &inputs).unwrap_err(), message);
    }
    let inputs = [Input::Array(vec![3], 1), Input::Array(vec![2], 2)];
    let message = "run error: program `sums`: `scan` needs shapes [n] and [n], but `x` has shape [3], `out` has shape [2]";
    for device in [interpreter(), cpu(1)] {
        let found = results(&scan(Type::F64, Way::Forth, Assign::Replace), &device, &inputs);
        assert_eq!(found.unwrap_err(), message);
    }
}

/// `flags[i] = x[i] > 0` in a loop that would run in vectors, and back from flags to floats.
#[test]
pub fn flags_are_made_and_read_by_parallel_loops() {
    let mut b = Builder::new("positive");
    let x = b.array("x", Type::F32, 1, Access::Write);
    let out = b.array("out", Type::I32, 1, Access::Write);
    let count = b.array("count", Type::I32, 0, Access::Write);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    let flags = b.temp("flags", Type::Bool, &[n]);
    let nought = b.literal(Literal::from(0.0f32));
    let i = b.begin_par(&[("i", zero, n)])[0];
    let v = b.load(x, &[i]);
    let positive = b.compare(Compare::Gt, v, nought);
    b.store(flags, &[i], positive);
    b.end_par();
    b.compact(flags, out, count);
    let i = b.begin_par(&[("i", zero, n)])[0];
    let (flag, v) = (b.load(flags, &[i]), b.load(x, &[i]));
    let kept = b.select(flag, v, nought);
    b.store(x, &[i], kept);
    b.end_par();
    let program = b.finish().unwrap();
    for n in [0, 5, 100, 20_000] {
        check(&program, &[Input::Array(vec![n], 1), Input::Array(vec![50], 2), Input::Array(vec![], 3)])
            .unwrap();
    }
}

/// What comes before and after an operation in a loop is ordered with it, swaps included.
#[test]
pub fn operations_take_their_place_between_parallel_loops() {
    let mut b = Builder::new("power");
    let a = b.array("a", Type::F64, 2, Access::Read);
    let x = b.array("x", Type::F64, 2, Access::Write);
    let y = b.array("y", Type::F64, 2, Access::Write);
    let steps = b.scalar("steps", Type::Index);
    let zero = b.literal(Literal::index(0));
    b.begin_for("t", zero, steps);
    b.matmul(a, x, y);
    let (n, m) = (b.dim(y, 0), b.dim(y, 1));
    let at = b.begin_par(&[("i", zero, n), ("j", zero, m)]);
    let v = b.load(y, &at);
    let small = b.literal(Literal::from(0.01));
    let scaled = b.binary(Binary::Mul, v, small);
    b.store(y, &at, scaled);
    b.end_par();
    b.swap(x, y);
    b.end_loop(None);
    let program = b.finish().unwrap();
    for steps in [0, 1, 4, 7] {
        let shape = vec![80, 80];
        let inputs = [
            Input::Array(shape.clone(), 1),
            Input::Array(shape.clone(), 2),
            Input::Array(shape, 3),
            Input::Scalar(Literal::from(steps as usize)),
        ];
        check(&program, &inputs).unwrap();
    }
}

/// `h = tanh(h · w + x[t])`, `steps` times.
fn rnn(batch: usize, hidden: usize, steps: usize) -> Case {
    let mut b = Builder::new("rnn");
    let h = b.array("h", Type::F64, 2, Access::Write);
    let z = b.array("z", Type::F64, 2, Access::Write);
    let w = b.array("w", Type::F64, 2, Access::Read);
    let x = b.array("x", Type::F64, 2, Access::Read);
    let count = b.scalar("steps", Type::Index);
    let zero = b.literal(Literal::index(0));
    let (n, m) = (b.dim(h, 0), b.dim(h, 1));
    let t = b.begin_for("t", zero, count);
    b.matmul(h, w, z);
    let at = b.begin_par(&[("i", zero, n), ("j", zero, m)]);
    let (product, input) = (b.load(z, &at), b.load(x, &[t, at[1]]));
    let sum = b.binary(Binary::Add, product, input);
    let next = b.math(Function::Tanh, &[sum]);
    b.store(h, &at, next);
    b.end_par();
    b.end_loop(None);
    let state = Given::Shape(vec![batch, hidden]);
    Case {
        program: with_misfit(b.finish().unwrap(), "h"),
        wrt: vec!["h", "w", "x"],
        given: vec![
            state.clone(),
            state,
            Given::Shape(vec![hidden, hidden]),
            Given::Shape(vec![steps, hidden]),
            Given::Scalar(Literal::from(steps)),
            Given::Shape(vec![]),
        ],
    }
}

/// `x = sin(scan(x)) * p`, `steps` times.
fn sums(n: usize, steps: usize) -> Case {
    let mut b = Builder::new("sums");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let y = b.array("y", Type::F64, 1, Access::Write);
    let p = b.array("p", Type::F64, 1, Access::Read);
    let count = b.scalar("steps", Type::Index);
    let zero = b.literal(Literal::index(0));
    let len = b.dim(x, 0);
    b.begin_for("t", zero, count);
    b.scan(x, y);
    let i = b.begin_par(&[("i", zero, len)])[0];
    let (sum, factor) = (b.load(y, &[i]), b.load(p, &[i]));
    let sine = b.math(Function::Sin, &[sum]);
    let next = b.binary(Binary::Mul, sine, factor);
    b.store(x, &[i], next);
    b.end_par();
    b.end_loop(None);
    let array = Given::Shape(vec![n]);
    Case {
        program: with_misfit(b.finish().unwrap(), "x"),
        wrt: vec!["x", "p"],
        given: vec![
            array.clone(),
            array.clone(),
            array,
            Given::Scalar(Literal::from(steps)),
            Given::Shape(vec![]),
        ],
    }
}

/// `a ← a · a`, by way of a swap, `steps` times; then `b = aᵀ · a`.
fn squares(n: usize, steps: usize) -> Case {
    let mut b = Builder::new("squares");
    let x = b.array("x", Type::F64, 2, Access::Write);
    let y = b.array("y", Type::F64, 2, Access::Write);
    let z = b.array("z", Type::F64, 2, Access::Write);
    let count = b.scalar("steps", Type::Index);
    let zero = b.literal(Literal::index(0));
    b.begin_for("t", zero, count);
    b.matmul(x, x, y);
    b.swap(x, y);
    b.end_loop(None);
    let op = LibraryOp::Matmul { left: Layout::Transposed, right: Layout::Plain, into: Assign::Replace };
    b.library(op, &[x, y], &[z]);
    let op = LibraryOp::Matmul { left: Layout::Plain, right: Layout::Transposed, into: Assign::Add };
    b.library(op, &[y, x], &[z]);
    let array = Given::Shape(vec![n, n]);
    Case {
        program: with_misfit(b.finish().unwrap(), "z"),
        wrt: vec!["x"],
        given: vec![
            array.clone(),
            array.clone(),
            array,
            Given::Scalar(Literal::from(steps)),
            Given::Shape(vec![]),
        ],
    }
}

#[test]
pub fn gradients_through_library_operations_are_differences() {
    rnn(3, 4, 3).check_difference(1e-6, 1e-7);
    rnn(1, 5, 1).check_difference(1e-6, 1e-7);
    sums(6, 3).check_difference(1e-6, 1e-7);
    squares(4, 2).check_difference(1e-6, 1e-7);
}

#[test]
pub fn gradients_through_library_operations_have_the_same_bits_under_every_budget_on_every_device() {
    for steps in [0, 1, 4] {
        rnn(3, 40, steps).check_bits(steps as u64);
        sums(50, steps).check_bits(steps as u64);
        squares(7, steps).check_bits(steps as u64);
    }
    rnn(33, 70, 2).check_bits(2);
}

#[test]
pub fn the_adjoint_of_a_product_is_two_products() {
    let case = rnn(2, 2, 2);
    let request = Request { of: "loss".into(), wrt: vec!["h".into(), "w".into()], ..Request::default() };
    let g = gradient(&case.program, &request, Inner::Recorded).unwrap();
    let text = g.program.to_string();
    assert!(text.contains("add_matmul(transposed(h'), d_z', d_w');"), "{text}");
    assert!(text.contains("matmul(d_z', transposed(w), d_h');"), "{text}");
    // tanh is reversed from its argument, the product from its factor: one array each, exchanged and not copied.
    let pushed: Vec<Vec<&str>> = g
        .pushes
        .values()
        .map(|p| p.iter().map(|p| g.program.array(p.array).name.as_str()).collect())
        .collect();
    assert_eq!(pushed, [["z'", "h'"]]);
    assert!(text.contains("let z_old = push(z');"), "{text}");
}
