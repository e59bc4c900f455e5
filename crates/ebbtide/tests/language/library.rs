//! The library: products, Fourier transforms, linear equations. Values against plain Rust, derivatives against the oracle.

use ebbtide::library::programs::*;
use ebbtide::library::{cholesky, fft, ifft, solve, solve_tridiagonal};
use ebbtide::prelude::*;
use ebbtide_conformance::{Input, element, judge};

use crate::{close, differences_agree, differentiates, shaped, values};

fn numbers(n: usize, seed: u64) -> Vec<f64> {
    (0..n).map(|k| element(ebbtide::ir::Type::F64, seed, k as u64).to_f64()).collect()
}

fn zeros(shape: &[usize]) -> Input {
    shaped(shape, &vec![0.0; shape.iter().product()])
}

/// All derivatives of a program that brings its own against those of the same program without them, which the oracle
/// judges.
fn rules_agree<P: ebbtide::__lang::Source, Q: ebbtide::__lang::Source>(
    ruled: &Program<P>,
    plain: &Program<Q>,
    inputs: &[Input],
    of: &str,
    wrt: &[&str],
) {
    let (ruled, plain) = (ruled.ir().unwrap(), plain.ir().unwrap());
    judge::check_gradient(plain, inputs, of, wrt);
    let questions = [ruled, plain].map(|program| judge::Question::new(program, inputs, of, wrt));
    let flat = |all: Vec<Vec<ebbtide::ir::Literal>>| -> Vec<f64> {
        all.into_iter().flatten().map(|literal| literal.to_f64()).collect()
    };
    let derivatives = |question: &judge::Question<'_>, device: &Device| {
        let gradient = question.gradient(device, true).unwrap();
        let gradient = flat(gradient.launch(question, Budget::Auto).unwrap().derivatives);
        let jvp = flat(vec![question.jvp(device).unwrap()]);
        [gradient, jvp, flat(question.hvp(device, Budget::Auto).unwrap())]
    };
    let expected = derivatives(&questions[1], &Device::interpreter());
    for device in [Device::interpreter(), crate::cpu()] {
        for (found, expected) in derivatives(&questions[0], &device).iter().zip(&expected) {
            close(found, expected, 1e-10);
        }
    }
}

/// Gradient, `jvp` and `hvp` of a program in f32 against those of the same program in f64, at the same point.
fn singles_agree<P: ebbtide::__lang::Source, Q: ebbtide::__lang::Source>(
    single: &Program<P>,
    double: &Program<Q>,
    inputs: &[Input],
    of: &str,
    wrt: &[&str],
) {
    use ebbtide::ir::Literal;
    let map = |literal: fn(f32) -> Literal| -> Vec<Input> {
        let each = |input: &Input| match input {
            Input::Elements(shape, elements) => {
                let rounded = elements.iter().map(|e| literal(e.to_f64() as f32));
                Input::Elements(shape.clone(), rounded.collect())
            }
            _ => unreachable!("inputs are arrays with elements"),
        };
        inputs.iter().map(each).collect()
    };
    let derivatives = |program: &ebbtide::ir::Program, inputs: &[Input], device: &Device| {
        let question = judge::Question::new(program, inputs, of, wrt);
        let flat = |all: Vec<Vec<Literal>>| -> Vec<f64> {
            all.into_iter().flatten().map(|literal| literal.to_f64()).collect()
        };
        let gradient = question.gradient(device, true).unwrap();
        let gradient = flat(gradient.launch(&question, Budget::Auto).unwrap().derivatives);
        let jvp = flat(vec![question.jvp(device).unwrap()]);
        [gradient, jvp, flat(question.hvp(device, Budget::Auto).unwrap())]
    };
    let doubles = map(|x| Literal::from(f64::from(x)));
    let expected = derivatives(double.ir().unwrap(), &doubles, &Device::interpreter());
    for device in [Device::interpreter(), crate::cpu()] {
        let found = derivatives(single.ir().unwrap(), &map(Literal::from), &device);
        for (found, expected) in found.iter().zip(&expected) {
            assert!(expected.iter().any(|x| *x != 0.0));
            close(found, expected, 1e-5);
        }
    }
}

mod products {
    use super::*;

    /// Σ over ascending k, each step a `mul_add`, from zero.
    fn chain(n: usize, a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64) -> f64 {
        (0..n).fold(0.0, |sum, k| a(k).mul_add(b(k), sum))
    }

    #[program]
    fn matrix_vector(a: &Array2<f64>, x: &Array1<f64>, y: &mut Array1<f64>) {
        matmul(a, x, y);
    }

    #[program]
    fn turned_matrix_vector(a: &Array2<f64>, x: &Array1<f64>, y: &mut Array1<f64>) {
        matmul(transposed(a), x, y);
    }

    #[program]
    fn vector_matrix(x: &Array1<f64>, a: &Array2<f64>, y: &mut Array1<f64>) {
        matmul(x, a, y);
    }

    #[test]
    fn a_matrix_times_a_vector() {
        let (a, x, t) = (numbers(12, 1), numbers(4, 2), numbers(3, 3));
        let inputs = [shaped(&[3, 4], &a), shaped(&[4], &x), zeros(&[3])];
        let expected: Vec<f64> = (0..3).map(|i| chain(4, |k| a[4 * i + k], |k| x[k])).collect();
        assert_eq!(values(&matrix_vector(), &inputs, "y"), expected);
        differentiates(&matrix_vector(), &inputs, "y", &["a", "x"]);

        let inputs = [shaped(&[3, 4], &a), shaped(&[3], &t), zeros(&[4])];
        let expected: Vec<f64> = (0..4).map(|i| chain(3, |k| a[4 * k + i], |k| t[k])).collect();
        assert_eq!(values(&turned_matrix_vector(), &inputs, "y"), expected);
        differentiates(&turned_matrix_vector(), &inputs, "y", &["a", "x"]);

        let inputs = [shaped(&[3], &t), shaped(&[3, 4], &a), zeros(&[4])];
        assert_eq!(values(&vector_matrix(), &inputs, "y"), expected);
        differentiates(&vector_matrix(), &inputs, "y", &["a", "x"]);
    }

    #[program]
    fn turned(a: &Array2<f64>, b: &Array2<f64>, c: &mut Array2<f64>, d: &mut Array2<f64>) {
        let mut e = Array2::<f64>::zeros([a.dim(1), b.dim(0)]);
        matmul(transposed(a), b, c);
        matmul(a, transposed(a), d);
        matmul(transposed(c), transposed(c), e);
        for (i, j) in par(0..e.dim(0), 0..e.dim(1)) {
            c[[i, j]] += e[[i, j]];
        }
    }

    #[test]
    fn transposed_factors_are_read_in_place() {
        let (a, b) = (numbers(9, 4), numbers(9, 5));
        let inputs = [shaped(&[3, 3], &a), shaped(&[3, 3], &b), zeros(&[3, 3]), zeros(&[3, 3])];
        let at = |i: usize, j: usize| 3 * i + j;
        let c: Vec<f64> = (0..9).map(|p| chain(3, |k| a[at(k, p / 3)], |k| b[at(k, p % 3)])).collect();
        let e = |i: usize, j: usize| chain(3, |k| c[at(k, i)], |k| c[at(j, k)]);
        let expected: Vec<f64> = (0..9).map(|p| c[p] + e(p / 3, p % 3)).collect();
        assert_eq!(values(&turned(), &inputs, "c"), expected);
        let expected: Vec<f64> = (0..9).map(|p| chain(3, |k| a[at(p / 3, k)], |k| a[at(p % 3, k)])).collect();
        assert_eq!(values(&turned(), &inputs, "d"), expected);
        differentiates(&turned(), &inputs, "c", &["a", "b"]);
    }

    #[program]
    fn batches(a: &Array3<f64>, b: &Array3<f64>, c: &mut Array3<f64>) {
        matmul(a, b, c);
    }

    #[program]
    fn shared(a: &Array3<f64>, b: &Array2<f64>, c: &mut Array3<f64>, d: &mut Array3<f64>) {
        matmul(a, transposed(b), c);
        matmul(b, transposed(a), d);
    }

    #[program]
    fn vectors(a: &Array3<f64>, x: &Array2<f64>, y: &mut Array2<f64>) {
        matmul(a, x, y);
    }

    #[test]
    fn c78_batches_are_multiplied_one_by_one() {
        let (a, b, x) = (numbers(24, 6), numbers(24, 7), numbers(6, 8));
        let inputs = [shaped(&[2, 4, 3], &a), shaped(&[2, 3, 4], &b), zeros(&[2, 4, 4])];
        let expected: Vec<f64> = (0..32)
            .map(|p| {
                let (l, i, j) = (p / 16, p / 4 % 4, p % 4);
                chain(3, |k| a[12 * l + 3 * i + k], |k| b[12 * l + 4 * k + j])
            })
            .collect();
        assert_eq!(values(&batches(), &inputs, "c"), expected);
        differentiates(&batches(), &inputs, "c", &["a", "b"]);

        let inputs = [shaped(&[2, 4, 3], &a), shaped(&[2, 3], &x), zeros(&[2, 4, 2]), zeros(&[2, 2, 4])];
        let at = |l: usize, i: usize, j: usize| chain(3, |k| a[12 * l + 3 * i + k], |k| x[3 * j + k]);
        let expected: Vec<f64> = (0..16).map(|p| at(p / 8, p / 2 % 4, p % 2)).collect();
        assert_eq!(values(&shared(), &inputs, "c"), expected);
        let expected: Vec<f64> = (0..16).map(|p| at(p / 8, p % 4, p / 4 % 2)).collect();
        assert_eq!(values(&shared(), &inputs, "d"), expected);
        differentiates(&shared(), &inputs, "c", &["a", "b"]);
        differentiates(&shared(), &inputs, "d", &["a", "b"]);

        let inputs = [shaped(&[2, 4, 3], &a), shaped(&[2, 3], &x), zeros(&[2, 4])];
        let expected: Vec<f64> = (0..8).map(|p| at_batch(&a, &x, p / 4, p % 4)).collect();
        assert_eq!(values(&vectors(), &inputs, "y"), expected);
        differentiates(&vectors(), &inputs, "y", &["a", "x"]);
    }

    fn at_batch(a: &[f64], x: &[f64], l: usize, i: usize) -> f64 {
        chain(3, |k| a[12 * l + 3 * i + k], |k| x[3 * l + k])
    }

    #[test]
    fn outside_programs_they_are_functions_and_misfits_name_the_arrays() {
        let device = crate::cpu();
        let a = device.array_with_shape([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let x = device.array(&[1.0f32, -1.0]).unwrap();
        let mut y = device.zeros([3]).unwrap();
        matmul(transposed(&a), &x, &mut y).unwrap();
        assert_eq!(y.to_vec(), [-3.0, -3.0, -3.0]);
        matmul(&x, &a, &mut y).unwrap();
        assert_eq!(y.to_vec(), [-3.0, -3.0, -3.0]);

        let compiled = matrix_vector().compile(&device).unwrap();
        let (a, x) = (device.zeros([2, 3]).unwrap(), device.zeros([2]).unwrap());
        let error = compiled.launch((&a, &x, &mut device.zeros([2]).unwrap())).unwrap_err().to_string();
        assert!(
            error.contains(
                "the shapes of `a`, `x`, `y` do not fit `matmul`: they must be [m, k], [k] and [m]"
            ),
            "{error}"
        );
        #[program]
        fn aliased(a: &Array2<f64>, x: &mut Array1<f64>) {
            matmul(a, x, x);
        }
        let error = aliased().ir().unwrap_err().to_string();
        assert!(error.contains("`matmul` writes `x`, which it uses in another place too"), "{error}");
    }
}

mod fourier {
    use super::*;

    /// The definition, in f64.
    fn definition(re: &[f64], im: &[f64], sign: f64) -> [Vec<f64>; 2] {
        let n = re.len();
        let at = |q: usize| {
            (0..n).fold((0.0, 0.0), |(x, y), k| {
                let angle = sign * 2.0 * std::f64::consts::PI * ((q * k % n) as f64) / n as f64;
                let (sin, cos) = angle.sin_cos();
                (x + re[k] * cos - im[k] * sin, y + re[k] * sin + im[k] * cos)
            })
        };
        let all: Vec<(f64, f64)> = (0..n).map(at).collect();
        [all.iter().map(|z| z.0).collect(), all.iter().map(|z| z.1).collect()]
    }

    #[program]
    fn forth<T: Float>(re: &mut Array1<T>, im: &mut Array1<T>) {
        fft(re, im);
    }

    #[program]
    fn back<T: Float>(re: &mut Array1<T>, im: &mut Array1<T>) {
        ifft(re, im);
    }

    #[test]
    fn c75_transforms_are_those_of_the_definition() {
        for n in [1, 2, 4, 8, 64] {
            let (re, im) = (numbers(n, 1), numbers(n, 2));
            let inputs = [shaped(&[n], &re), shaped(&[n], &im)];
            let [x, y] = definition(&re, &im, -1.0);
            close(&values(&forth::<f64>(), &inputs, "re"), &x, 1e-14);
            close(&values(&forth::<f64>(), &inputs, "im"), &y, 1e-14);
            let [x, y] =
                definition(&re, &im, 1.0).map(|z| z.iter().map(|z| z / n as f64).collect::<Vec<_>>());
            close(&values(&back::<f64>(), &inputs, "re"), &x, 1e-14);
            close(&values(&back::<f64>(), &inputs, "im"), &y, 1e-14);
        }
    }

    /// Some elements of the definition, each a sum that loses nothing; the distance of `found` from them, in their length.
    fn distance(given: [&[f64]; 2], found: [&[f64]; 2]) -> f64 {
        let n = given[0].len();
        let angle = |k: usize| 2.0 * std::f64::consts::PI * (k as f64) / n as f64;
        let roots: Vec<(f64, f64)> = (0..n).map(|k| (-angle(k)).sin_cos()).collect();
        let (mut apart, mut length) = (0.0, 0.0);
        // An odd step meets all remainders.
        for q in (0..n).step_by((n / 128) | 1) {
            let mut sums = [(0.0f64, 0.0f64); 2];
            let mut add = |to: usize, x: f64| {
                let (sum, lost) = sums[to];
                let next = sum + x;
                let error = if sum.abs() > x.abs() { sum - next + x } else { x - next + sum };
                sums[to] = (next, lost + error);
            };
            for k in 0..n {
                let (sin, cos) = roots[q * k % n];
                let (x, y) = (given[0][k], given[1][k]);
                add(0, x * cos);
                add(0, -(y * sin));
                add(1, x * sin);
                add(1, y * cos);
            }
            for (k, (sum, lost)) in sums.into_iter().enumerate() {
                apart += (sum + lost - found[k][q]).powi(2);
                length += (sum + lost).powi(2);
            }
        }
        (apart / length).sqrt()
    }

    fn transformed<T: Float + Into<f64>>(given: [&[f64]; 2], cast: fn(f64) -> T) -> [[Vec<f64>; 2]; 2] {
        let device = Device::cpu();
        let array = |x: &[f64]| device.array(&x.iter().map(|x| cast(*x)).collect::<Vec<T>>()).unwrap();
        let doubles = |x: &Array1<T>| x.to_vec().into_iter().map(Into::into).collect::<Vec<f64>>();
        let [mut re, mut im] = given.map(array);
        fft(&mut re, &mut im).unwrap();
        let there = [doubles(&re), doubles(&im)];
        ifft(&mut re, &mut im).unwrap();
        [there, [doubles(&re), doubles(&im)]]
    }

    #[test]
    fn c75_transforms_of_all_lengths_are_exact_to_a_few_roundings_and_their_inverse_leads_back() {
        for log in 0..=12 {
            let n = 1 << log;
            // Numbers that f32 has, too.
            let given =
                [1, 2].map(|seed| numbers(n, seed).iter().map(|x| f64::from(*x as f32)).collect::<Vec<_>>());
            let given = [&given[0][..], &given[1][..]];
            let bound = |epsilon: f64| 0.5 * epsilon * f64::from(log + 1);
            let [there, back] = transformed::<f64>(given, |x| x);
            let apart = distance(given, [&there[0], &there[1]]);
            assert!(apart < bound(f64::EPSILON), "{n}: {apart:e}");
            for (back, given) in back.iter().zip(given) {
                close(back, given, 4.0 * bound(f64::EPSILON));
            }
            let [there, back] = transformed::<f32>(given, |x| x as f32);
            let apart = distance(given, [&there[0], &there[1]]);
            assert!(apart < bound(f64::from(f32::EPSILON)), "{n} in single precision: {apart:e}");
            for (back, given) in back.iter().zip(given) {
                close(back, given, 4.0 * bound(f64::from(f32::EPSILON)));
            }
        }
    }

    #[program]
    fn rows_forth(re: &mut Array2<f64>, im: &mut Array2<f64>) {
        fft(re, im);
    }

    #[test]
    fn a_row_has_the_bits_of_a_transform_by_itself() {
        for n in [1, 4, 32, 64, 1024] {
            let (re, im) = (numbers(3 * n, 7), numbers(3 * n, 8));
            let inputs = [shaped(&[3, n], &re), shaped(&[3, n], &im)];
            let found = ["re", "im"].map(|of| values(&rows_forth(), &inputs, of));
            for r in 0..3 {
                let row = n * r..n * (r + 1);
                let inputs = [shaped(&[n], &re[row.clone()]), shaped(&[n], &im[row.clone()])];
                assert_eq!(values(&forth::<f64>(), &inputs, "re"), found[0][row.clone()], "{n}");
                assert_eq!(values(&forth::<f64>(), &inputs, "im"), found[1][row], "{n}");
            }
        }
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let n = 1 << 14;
        let (re, im) = (numbers(n, 1), numbers(n, 2));
        let run = |threads: usize| {
            let (device, _) = ebbtide_cpu::Options::new().threads(threads).build().unwrap();
            let (mut x, mut y) = (device.array(&re).unwrap(), device.array(&im).unwrap());
            let _ = forth::<f64>().compile(&device).unwrap().launch((&mut x, &mut y)).unwrap();
            (x.to_vec(), y.to_vec())
        };
        let one = run(1);
        assert!(one == run(2) && one == run(5));
    }

    #[test]
    fn rows_are_transformed_by_themselves_in_single_precision_too() {
        let device = crate::cpu();
        let (re, im) = (numbers(24, 3), numbers(24, 4));
        let single = |x: &[f64]| x.iter().map(|x| *x as f32).collect::<Vec<_>>();
        let mut x = device.array_with_shape([3, 8], &single(&re)).unwrap();
        let mut y = device.array_with_shape([3, 8], &single(&im)).unwrap();
        fft(&mut x, &mut y).unwrap();
        for r in 0..3 {
            let [expected, _] = definition(&re[8 * r..8 * r + 8], &im[8 * r..8 * r + 8], -1.0);
            let found: Vec<f64> = (0..8).map(|q| f64::from(x[[r, q]])).collect();
            close(&found, &expected, 1e-6);
        }
        ifft(&mut x, &mut y).unwrap();
        let found: Vec<f64> = x.to_vec().iter().map(|x| f64::from(*x)).collect();
        close(&found, &re, 1e-6);
    }

    #[program]
    fn spectrum(re: &mut Array2<f64>, im: &mut Array2<f64>, out: &mut Array0<f64>) {
        fft_rows(re, im);
        for (r, q) in par(0..re.dim(0), 0..re.dim(1)) {
            out[[]] += (re[[r, q]] * re[[r, q]] + im[[r, q]]).sin() * (1.0 + q as f64);
        }
    }

    #[program]
    fn plain_spectrum(re: &mut Array2<f64>, im: &mut Array2<f64>, out: &mut Array0<f64>) {
        transform_rows(re, im);
        for (r, q) in par(0..re.dim(0), 0..re.dim(1)) {
            out[[]] += (re[[r, q]] * re[[r, q]] + im[[r, q]]).sin() * (1.0 + q as f64);
        }
    }

    #[test]
    fn c75_derivatives_are_those_of_the_stages() {
        for n in [8, 64] {
            let inputs =
                [shaped(&[2, n], &numbers(2 * n, 5)), shaped(&[2, n], &numbers(2 * n, 6)), zeros(&[])];
            rules_agree(&spectrum(), &plain_spectrum(), &inputs, "out", &["re", "im"]);
        }
    }

    #[program]
    fn spectrum_of_one(re: &mut Array1<f64>, im: &mut Array1<f64>, out: &mut Array0<f64>) {
        fft_row(re, im);
        for q in par(0..re.len()) {
            out[[]] += (re[q] * re[q] + im[q]).sin() * (1.0 + q as f64);
        }
    }

    #[program]
    fn plain_spectrum_of_one(re: &mut Array1<f64>, im: &mut Array1<f64>, out: &mut Array0<f64>) {
        transform_row(re, im);
        for q in par(0..re.len()) {
            out[[]] += (re[q] * re[q] + im[q]).sin() * (1.0 + q as f64);
        }
    }

    #[test]
    fn c75_derivatives_of_one_row_are_those_of_the_stages() {
        for n in [1, 32] {
            let inputs = [shaped(&[n], &numbers(n, 5)), shaped(&[n], &numbers(n, 6)), zeros(&[])];
            rules_agree(&spectrum_of_one(), &plain_spectrum_of_one(), &inputs, "out", &["re", "im"]);
        }
    }

    #[program]
    fn power<T: Float>(re: &mut Array2<T>, im: &mut Array2<T>, out: &mut Array0<T>) {
        fft(re, im);
        for (r, q) in par(0..re.dim(0), 0..re.dim(1)) {
            out[[]] += (re[[r, q]] * re[[r, q]] + im[[r, q]]).sin() * T::of(1.0 + q as f64);
        }
        ifft(re, im);
        for (r, q) in par(0..re.dim(0), 0..re.dim(1)) {
            out[[]] += re[[r, q]] * im[[r, q]];
        }
    }

    #[test]
    fn c75_derivatives_of_transforms_in_single_precision_are_those_in_double_precision() {
        let inputs = [shaped(&[2, 16], &numbers(32, 5)), shaped(&[2, 16], &numbers(32, 6)), zeros(&[])];
        singles_agree(&power::<f32>(), &power::<f64>(), &inputs, "out", &["re", "im"]);
    }

    #[test]
    fn other_lengths_are_errors_that_name_the_arrays() {
        let device = crate::cpu();
        let compiled = forth::<f64>().compile(&device).unwrap();
        for (n, m) in [(6, 6), (8, 4), (0, 0)] {
            let (mut re, mut im) = (device.zeros([n]).unwrap(), device.zeros([m]).unwrap());
            let error = compiled.launch((&mut re, &mut im)).unwrap_err().to_string();
            assert!(error.contains("the shapes of `re`, `im` do not fit `fft`"), "{error}");
            assert!(error.contains("a power of two"), "{error}");
        }
    }
}

mod equations {
    use super::*;

    /// A matrix far from singular that needs its rows exchanged.
    fn matrix(n: usize, seed: u64) -> Vec<f64> {
        let mut a = numbers(n * n, seed);
        (0..n).for_each(|i| a[n * i + (i + 1) % n] += 3.0);
        a
    }

    fn residual(a: &[f64], x: &[f64], b: &[f64], columns: usize) {
        let n = b.len() / columns;
        for i in 0..n {
            for c in 0..columns {
                let product: f64 = (0..n).map(|k| a[n * i + k] * x[columns * k + c]).sum();
                assert!((product - b[columns * i + c]).abs() < 1e-12, "row {i}, column {c}: {product}");
            }
        }
    }

    #[program]
    fn one(a: &Array2<f64>, b: &Array1<f64>, x: &mut Array1<f64>) {
        solve(a, b, x);
    }

    #[program]
    fn columns(a: &Array2<f64>, b: &Array2<f64>, x: &mut Array2<f64>) {
        solve(a, b, x);
    }

    #[program]
    fn size(x: &Array2<f64>, out: &mut Array0<f64>) {
        for (i, c) in par(0..x.dim(0), 0..x.dim(1)) {
            out[[]] += (x[[i, c]] * (1.0 + (i as f64) - 2.0 * (c as f64))).sin();
        }
    }

    #[program]
    fn size_of_columns(a: &Array2<f64>, b: &Array2<f64>, x: &mut Array2<f64>, out: &mut Array0<f64>) {
        solve(a, b, x);
        size(x, out);
    }

    #[program]
    fn plain_size_of_columns(a: &Array2<f64>, b: &Array2<f64>, x: &mut Array2<f64>, out: &mut Array0<f64>) {
        eliminate(a, b, x);
        size(x, out);
    }

    #[program]
    fn size_of_each(a: &Array3<f64>, b: &Array2<f64>, x: &mut Array2<f64>, out: &mut Array0<f64>) {
        solve(a, b, x);
        size(x, out);
    }

    #[program]
    fn each(a: &Array3<f64>, b: &Array2<f64>, x: &mut Array2<f64>) {
        solve(a, b, x);
    }

    #[test]
    fn solutions_satisfy_their_equations() {
        for n in [1, 2, 5, 20] {
            let (a, b) = (matrix(n, 1), numbers(n, 2));
            let inputs = [shaped(&[n, n], &a), shaped(&[n], &b), zeros(&[n])];
            let x = values(&one(), &inputs, "x");
            residual(&a, &x, &b, 1);
            let b = numbers(3 * n, 3);
            let inputs = [shaped(&[n, n], &a), shaped(&[n, 3], &b), zeros(&[n, 3])];
            residual(&a, &values(&columns(), &inputs, "x"), &b, 3);
        }
        let (a, b) = ([matrix(4, 4), matrix(4, 5)].concat(), numbers(8, 6));
        let inputs = [shaped(&[2, 4, 4], &a), shaped(&[2, 4], &b), zeros(&[2, 4])];
        let x = values(&each(), &inputs, "x");
        for l in 0..2 {
            residual(&a[16 * l..16 * l + 16], &x[4 * l..4 * l + 4], &b[4 * l..4 * l + 4], 1);
            // One of a batch has the bits of the same system alone.
            let alone =
                [shaped(&[4, 4], &a[16 * l..16 * l + 16]), shaped(&[4], &b[4 * l..4 * l + 4]), zeros(&[4])];
            assert_eq!(values(&one(), &alone, "x"), x[4 * l..4 * l + 4]);
        }
    }

    #[test]
    fn c76_derivatives_of_solutions_are_solutions() {
        let (a, b) = (shaped(&[3, 3], &matrix(3, 1)), shaped(&[3, 2], &numbers(6, 2)));
        let inputs = [a, b, zeros(&[3, 2]), zeros(&[])];
        rules_agree(&size_of_columns(), &plain_size_of_columns(), &inputs, "out", &["a", "b"]);
        let (a, b) = ([matrix(3, 4), matrix(3, 5)].concat(), numbers(6, 6));
        let inputs = [shaped(&[2, 3, 3], &a), shaped(&[2, 3], &b), zeros(&[2, 3]), zeros(&[])];
        differences_agree(&size_of_each(), &inputs, "out", &["a", "b"]);
    }

    #[test]
    fn singular_matrices_and_other_shapes_are_errors() {
        let device = crate::cpu();
        let compiled = one().compile(&device).unwrap();
        let launch = |a: &Array2<f64>, n: usize| {
            let (b, mut x) = (device.array(&vec![1.0; n]).unwrap(), device.zeros([n]).unwrap());
            compiled.launch((a, &b, &mut x)).unwrap_err().to_string()
        };
        let singular = device.array_with_shape([2, 2], &[1.0, 2.0, 2.0, 4.0]).unwrap();
        assert!(launch(&singular, 2).contains("the matrix of `solve` is singular"));
        let error = launch(&device.zeros([2, 3]).unwrap(), 2);
        assert!(
            error
                .contains("the shapes of `a`, `b`, `x` do not fit `solve`: they must be [n, n], [n] and [n]")
        );
        assert!(launch(&singular, 3).contains("do not fit `solve`"));
    }

    #[program]
    fn solved<T: Float>(a: &Array2<T>, b: &Array2<T>, x: &mut Array2<T>, out: &mut Array0<T>) {
        solve(a, b, x);
        for (i, j) in par(0..x.dim(0), 0..x.dim(1)) {
            out[[]] += x[[i, j]] * x[[i, j]] * T::of(1.0 + i as f64) + x[[i, j]].sin();
        }
    }

    #[test]
    fn c76_derivatives_of_solutions_in_single_precision_are_those_in_double_precision() {
        let (a, b) = (shaped(&[4, 4], &matrix(4, 1)), shaped(&[4, 2], &numbers(8, 2)));
        let inputs = [a, b, zeros(&[4, 2]), zeros(&[])];
        singles_agree(&solved::<f32>(), &solved::<f64>(), &inputs, "out", &["a", "b"]);
    }

    #[test]
    fn single_precision() {
        let device = crate::cpu();
        let a = device.array_with_shape([2, 2], &[0.0f32, 2.0, 4.0, 0.0]).unwrap();
        let (b, mut x) = (device.array(&[2.0f32, 8.0]).unwrap(), device.zeros([2]).unwrap());
        solve(&a, &b, &mut x).unwrap();
        assert_eq!(x.to_vec(), [2.0, 1.0]);
        let spd = device.array_with_shape([2, 2], &[4.0f32, 2.0, 2.0, 10.0]).unwrap();
        let mut l = device.zeros([2, 2]).unwrap();
        cholesky(&spd, &mut l).unwrap();
        assert_eq!(l.to_vec(), [2.0, 0.0, 1.0, 3.0]);
    }

    #[program]
    fn line(lower: &Array1<f64>, diagonal: &Array1<f64>, upper: &Array1<f64>, x: &mut Array1<f64>) {
        solve_tridiagonal(lower, diagonal, upper, x);
    }

    #[program]
    fn lines(lower: &Array2<f64>, diagonal: &Array2<f64>, upper: &Array2<f64>, x: &mut Array2<f64>) {
        solve_tridiagonal(lower, diagonal, upper, x);
    }

    #[test]
    fn tridiagonal_solutions_satisfy_their_equations() {
        let of = |seed: u64, n: usize| -> [Vec<f64>; 4] {
            let diagonal = numbers(n, seed + 1).iter().map(|d| d + 4.0).collect();
            [numbers(n, seed), diagonal, numbers(n, seed + 2), numbers(n, seed + 3)]
        };
        for n in [1, 2, 3, 17] {
            let [lower, diagonal, upper, b] = of(10, n);
            let inputs = [&lower, &diagonal, &upper, &b].map(|x| shaped(&[n], x));
            let x = values(&line(), &inputs, "x");
            for i in 0..n {
                let mut product = diagonal[i] * x[i];
                product += if i > 0 { lower[i] * x[i - 1] } else { 0.0 };
                product += if i + 1 < n { upper[i] * x[i + 1] } else { 0.0 };
                assert!((product - b[i]).abs() < 1e-14, "row {i} of {n}");
            }
        }
        let inputs = of(20, 5).map(|x| shaped(&[5], &x));
        differentiates(&line(), &inputs, "x", &["lower", "diagonal", "upper", "x"]);
        let inputs = of(30, 8).map(|x| shaped(&[2, 4], &x));
        differentiates(&lines(), &inputs, "x", &["lower", "diagonal", "upper", "x"]);
        let device = crate::cpu();
        let [a, b, c] = [3, 3, 4].map(|n| device.zeros([n]).unwrap());
        let error = line().compile(&device).unwrap().launch((&a, &b, &c, &mut device.zeros([3]).unwrap()));
        assert!(error.unwrap_err().to_string().contains("`lower`, `diagonal`, `upper`, `x` do not fit"));
    }

    #[test]
    fn derivatives_in_single_precision() {
        let single = |shape: &[usize], elements: &[f64]| {
            Input::Elements(shape.to_vec(), elements.iter().map(|x| (*x as f32).into()).collect())
        };
        let diagonal: Vec<f64> = numbers(8, 2).iter().map(|d| d + 4.0).collect();
        let rows = [numbers(8, 1), diagonal, numbers(8, 3), numbers(8, 4)].map(|x| single(&[2, 4], &x));
        differentiates(&tridiagonal_rows::<f32>(), &rows, "x", &["lower", "diagonal", "upper", "x"]);
        let spd = [4.0, 1.0, 0.5, 1.0, 3.0, 0.25, 0.5, 0.25, 2.0];
        let inputs = [single(&[3, 3], &spd), single(&[3, 3], &[0.0; 9])];
        differentiates(&cholesky_matrix::<f32>(), &inputs, "l", &["a"]);
        let inputs = [single(&[1, 8], &numbers(8, 5)), single(&[1, 8], &numbers(8, 6))];
        differentiates(&transform_rows::<f32>(), &inputs, "re", &["re", "im"]);
    }

    #[program]
    fn factor(a: &Array2<f64>, l: &mut Array2<f64>) {
        cholesky(a, l);
    }

    #[program]
    fn factors(a: &Array3<f64>, l: &mut Array3<f64>) {
        cholesky(a, l);
    }

    #[test]
    fn a_cholesky_factor_times_its_transpose_is_the_matrix() {
        let spd = |n: usize, seed: u64| -> Vec<f64> {
            let m = numbers(n * n, seed);
            let product = |i: usize, j: usize| (0..n).map(|k| m[n * i + k] * m[n * j + k]).sum::<f64>();
            (0..n * n).map(|p| product(p / n, p % n) + if p / n == p % n { 1.0 } else { 0.0 }).collect()
        };
        for n in [1, 2, 6] {
            let a = spd(n, 1);
            let inputs = [shaped(&[n, n], &a), zeros(&[n, n])];
            let l = values(&factor(), &inputs, "l");
            for p in 0..n * n {
                let (i, j) = (p / n, p % n);
                let product: f64 = (0..n).map(|k| l[n * i + k] * l[n * j + k]).sum();
                assert!((product - a[p]).abs() < 1e-14);
                assert!(j <= i || l[p] == 0.0);
            }
        }
        let inputs = [shaped(&[4, 4], &spd(4, 2)), zeros(&[4, 4])];
        differentiates(&factor(), &inputs, "l", &["a"]);
        let batch = [spd(3, 3), spd(3, 4)].concat();
        let inputs = [shaped(&[2, 3, 3], &batch), zeros(&[2, 3, 3])];
        let l = values(&factors(), &inputs, "l");
        let alone = [shaped(&[3, 3], &batch[9..]), zeros(&[3, 3])];
        assert_eq!(values(&factor(), &alone, "l"), l[9..]);
        differentiates(&factors(), &inputs, "l", &["a"]);

        let device = crate::cpu();
        let indefinite = device.array_with_shape([2, 2], &[1.0, 2.0, 2.0, 1.0]).unwrap();
        let error = cholesky(&indefinite, &mut device.zeros([2, 2]).unwrap()).unwrap_err().to_string();
        assert!(error.contains("is not positive definite"), "{error}");
    }
}

mod registers {
    use super::*;

    /// Solves with a matrix whose first pivot is small, and with its Cholesky factor.
    #[func]
    fn mixed<T: Float>(a: Vec4<T>, b: Vec4<T>) -> T {
        let m = a.outer(b) + Mat4::identity() - Mat4::diagonal(Vec4::new(T::of(1.0), a.x, b.y, a.z));
        let x = m.solve(a);
        let spd = m * m.transpose() + Mat4::identity();
        let l = spd.cholesky();
        let small = Mat2::new(T::of(0.0), a.x, b.x, b.y).solve(Vec2::new(x.x, x.w));
        let three = Mat3::new(a.x, b.x, a.y, b.y, a.z, b.z, a.w, b.w, T::of(2.0));
        x.dot(b)
            + l.trace()
            + l[[3, 1]]
            + small.x * small.y
            + three.solve(Vec3::new(b.z, a.z, b.x)).norm_squared()
    }

    #[program]
    fn all<T: Float>(x: &Array2<T>, y: &mut Array1<T>) {
        for i in par(0..y.len()) {
            let a = Vec4::new(x[[i, 0]], x[[i, 1]], x[[i, 2]], x[[i, 3]]);
            let b = Vec4::new(x[[i, 4]], x[[i, 5]], x[[i, 6]], x[[i, 7]]);
            y[i] = mixed(a, b);
        }
    }

    #[test]
    fn small_matrices_solve_as_in_plain_rust() {
        let x = numbers(24, 9);
        let inputs = [shaped(&[3, 8], &x), zeros(&[3])];
        let vector = |k: usize| Vec4::new(x[k], x[k + 1], x[k + 2], x[k + 3]);
        let expected: Vec<f64> = (0..3).map(|i| mixed(vector(8 * i), vector(8 * i + 4))).collect();
        assert_eq!(values(&all::<f64>(), &inputs, "y"), expected);
        differentiates(&all::<f64>(), &inputs, "y", &["x"]);
    }

    #[test]
    fn solutions_and_factors_are_right() {
        let m = Mat3::new(0.0, 2.0, 1.0, 4.0, 0.0, 0.0, 1.0, 1.0, 3.0);
        let b = Vec3::new(1.0, 2.0, 3.0);
        assert!((m * m.solve(b) - b).norm() < 1e-15);
        assert_eq!(Mat2::new(0.0f32, 2.0, 4.0, 0.0).solve(Vec2::new(2.0, 8.0)), Vec2::new(2.0, 1.0));
        let l = Mat2::new(4.0, f64::NAN, 2.0, 10.0).cholesky();
        assert_eq!(l, Mat2::new(2.0, 0.0, 1.0, 3.0));
        let spd = m * m.transpose() + Mat3::identity();
        let l = spd.cholesky();
        let rest = l * l.transpose() - spd;
        assert!(rest.to_elements().iter().all(|x| x.abs() < 1e-14));
    }
}
