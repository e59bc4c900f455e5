//! Programs and data that mean harm: errors, or what the law says, never a crash.

use std::path::Path;
use std::process::{Command, Stdio};

use ebbtide_conformance::{Input, launch, literals};
use ebbtide_ir::*;
use ebbtide_runtime::{AnyArray, Compiled, interpreter};

use crate::devices::{check, cpu};

const MIN: i64 = i64::MIN;
const MAX: i64 = i64::MAX;

/// What the cases share: `x` and `y` of `n` reals, `k` of `n` integers, `r` of one, and four scalars.
struct Case {
    b: Builder,
    x: ArrayId,
    y: ArrayId,
    k: ArrayId,
    r: ArrayId,
    a: ValueId,
    d: ValueId,
    at: ValueId,
    to: ValueId,
    n: ValueId,
    zero: ValueId,
}

impl Case {
    fn par(&mut self) -> ValueId {
        self.b.begin_par(&[("i", self.zero, self.n)])[0]
    }
    fn index(&mut self, i: i64) -> ValueId {
        self.b.literal(Literal::index(i))
    }
    fn real(&mut self, x: f64) -> ValueId {
        self.b.literal(Literal::from(x))
    }
    /// Stores a whole number as the element of `y` at `at`.
    fn put(&mut self, at: ValueId, v: ValueId) {
        let v = self.b.cast(v, Type::F64);
        self.b.store(self.y, &[at], v);
    }
}

/// What is expected: `Some(text)` of the error, or no error.
type Expected = Option<&'static str>;
/// The data: `n`, the scalars `a d at to`.
type Data = (usize, [i64; 4]);

struct Hostile {
    name: &'static str,
    build: fn(&mut Case),
    tries: &'static [(Data, Expected)],
}

const BOUNDS: Expected = Some("out of bounds");
const OVERFLOW: Expected = Some("a bound of a loop is not a number");
const DIVISION: Expected = Some("division by zero");

const CASES: &[Hostile] = &[
    Hostile {
        name: "a gather follows data out of the array",
        build: |c| {
            let i = c.par();
            let k = c.b.load(c.k, &[i]);
            let k = c.b.binary(Binary::Add, k, c.a);
            let at = c.b.cast(k, Type::Index);
            let v = c.b.load(c.x, &[at]);
            c.b.store(c.y, &[i], v);
            c.b.end_par();
        },
        tries: &[
            ((50, [2, 0, 0, 0]), None),
            ((50, [0, 0, 0, 0]), BOUNDS),
            ((50, [50, 0, 0, 0]), BOUNDS),
            ((50, [MAX, 0, 0, 0]), BOUNDS),
        ],
    },
    Hostile {
        name: "a scatter follows data out of the array",
        build: |c| {
            let i = c.par();
            let k = c.b.load(c.k, &[i]);
            let k = c.b.binary(Binary::Add, k, c.a);
            let at = c.b.cast(k, Type::Index);
            let one = c.real(1.0);
            c.b.update(Combine::Add, c.y, &[at], one);
            c.b.end_par();
        },
        tries: &[((50, [2, 0, 0, 0]), None), ((50, [0, 0, 0, 0]), BOUNDS), ((3, [MIN, 0, 0, 0]), BOUNDS)],
    },
    Hostile {
        name: "a scatter to elements of its own",
        build: |c| {
            let i = c.par();
            let far = c.b.binary(Binary::Mul, i, c.to);
            let at = c.b.binary(Binary::Add, far, c.at);
            let v = c.b.load(c.x, &[i]);
            c.b.store_unique(c.y, &[at], v);
            c.b.end_par();
        },
        tries: &[
            ((5000, [0, 0, 0, 1]), None),
            ((5000, [0, 0, 4999, -1]), None),
            ((5000, [0, 0, 7, 0]), Some("element [7] of `y` is written twice")),
            ((2, [0, 0, 1, 1]), BOUNDS),
            ((9, [0, 0, 0, MAX]), BOUNDS),
            ((0, [0, 0, 0, 0]), None),
        ],
    },
    Hostile {
        name: "an element at program level",
        build: |c| {
            let v = c.b.load(c.x, &[c.at]);
            c.b.store(c.y, &[c.to], v);
        },
        tries: &[
            ((9, [0, 0, 8, 0]), None),
            ((9, [0, 0, 9, 0]), BOUNDS),
            ((9, [0, 0, -1, 0]), BOUNDS),
            ((9, [0, 0, 0, MIN]), BOUNDS),
            ((9, [0, 0, 0, MAX]), BOUNDS),
            ((0, [0, 0, 0, 0]), BOUNDS),
        ],
    },
    Hostile {
        name: "a shifted index",
        build: |c| {
            let i = c.par();
            let at = c.b.binary(Binary::Add, i, c.at);
            let v = c.b.load(c.x, &[at]);
            c.b.store(c.y, &[i], v);
            c.b.end_par();
        },
        tries: &[
            ((40, [0, 0, 0, 0]), None),
            ((40, [0, 0, 1, 0]), BOUNDS),
            ((40, [0, 0, -1, 0]), BOUNDS),
            ((40, [0, 0, MIN, 0]), BOUNDS),
            ((40, [0, 0, MAX, 0]), BOUNDS),
            ((40, [0, 0, MAX - 20, 0]), BOUNDS),
            ((40, [0, 0, MIN + 20, 0]), BOUNDS),
            ((0, [0, 0, MIN, 0]), None),
        ],
    },
    Hostile {
        name: "a scaled index",
        build: |c| {
            let i = c.par();
            let scaled = c.b.binary(Binary::Mul, i, c.at);
            let v = c.b.load(c.x, &[scaled]);
            c.b.store(c.y, &[i], v);
            c.b.end_par();
        },
        tries: &[
            ((40, [0, 0, 1, 0]), None),
            ((40, [0, 0, 0, 0]), None),
            ((40, [0, 0, MAX, 0]), BOUNDS),
            // What is no number has no multiple, not even by zero.
            ((40, [0, 0, MIN, 0]), BOUNDS),
            ((1, [0, 0, MIN, 0]), BOUNDS),
            ((40, [0, 0, 1 << 62, 0]), BOUNDS),
            ((1, [0, 0, 1 << 62, 0]), None),
        ],
    },
    Hostile {
        name: "wrapped indices of sums that overflow",
        build: |c| {
            let i = c.par();
            let sum = c.b.binary(Binary::Add, i, c.at);
            let wrapped = c.b.binary(Binary::RemEuclid, sum, c.n);
            let v = c.b.load(c.x, &[wrapped]);
            let zero = c.zero;
            let one = c.index(1);
            let last = c.b.binary(Binary::Sub, c.n, one);
            let low = c.b.binary(Binary::Max, sum, zero);
            let clamped = c.b.binary(Binary::Min, low, last);
            let w = c.b.load(c.x, &[clamped]);
            let both = c.b.binary(Binary::Sub, v, w);
            c.b.store(c.y, &[i], both);
            c.b.end_par();
        },
        tries: &[
            ((37, [0, 0, 3, 0]), None),
            ((37, [0, 0, -5, 0]), None),
            ((37, [0, 0, MAX, 0]), BOUNDS),
            ((37, [0, 0, MAX - 11, 0]), BOUNDS),
            ((37, [0, 0, MAX - 36, 0]), None),
            ((37, [0, 0, MIN, 0]), BOUNDS),
            ((37, [0, 0, MIN + 11, 0]), None),
            ((1, [0, 0, MAX, 0]), None),
        ],
    },
    Hostile {
        name: "a remainder of a negative index",
        build: |c| {
            let i = c.par();
            let sum = c.b.binary(Binary::Add, i, c.at);
            let wrapped = c.b.binary(Binary::Rem, sum, c.n);
            let v = c.b.load(c.x, &[wrapped]);
            c.b.store(c.y, &[i], v);
            c.b.end_par();
        },
        tries: &[
            ((37, [0, 0, 36, 0]), None),
            ((37, [0, 0, -1, 0]), BOUNDS),
            ((37, [0, 0, MIN, 0]), BOUNDS),
            ((37, [0, 0, MAX - 3, 0]), BOUNDS),
        ],
    },
    Hostile {
        name: "a remainder by an index that may be zero",
        build: |c| {
            let i = c.par();
            let wrapped = c.b.binary(Binary::Rem, i, c.to);
            let uniform = c.b.binary(Binary::Div, c.at, c.to);
            let sum = c.b.binary(Binary::Add, wrapped, uniform);
            let v = c.b.load(c.x, &[sum]);
            c.b.store(c.y, &[i], v);
            c.b.end_par();
        },
        tries: &[
            ((37, [0, 0, 0, 37]), None),
            ((37, [0, 0, 4, 2]), None),
            ((37, [0, 0, 0, 0]), DIVISION),
            ((37, [0, 0, 1, -1]), BOUNDS),
            ((37, [0, 0, MIN, -1]), BOUNDS),
            ((0, [0, 0, 0, 0]), None),
        ],
    },
    Hostile {
        name: "a division that no iteration reaches",
        build: |c| {
            let i = c.par();
            let v = c.b.load(c.x, &[i]);
            let far = c.real(100.0);
            let never = c.b.compare(Compare::Gt, v, far);
            c.b.begin_if(never);
            let q = c.b.binary(Binary::Div, c.at, c.to);
            let w = c.b.binary(Binary::Rem, c.a, c.d);
            let w = c.b.cast(w, Type::F64);
            c.b.store(c.y, &[i], w);
            let beyond = c.b.load(c.x, &[q]);
            c.b.store(c.y, &[i], beyond);
            c.b.end_if();
            c.b.end_par();
        },
        tries: &[((50, [1, 0, 1, 0]), None), ((50, [1, 1, MAX, 1]), None)],
    },
    Hostile {
        name: "comparisons at the ends of the index type",
        build: |c| {
            let i = c.par();
            let sum = c.b.binary(Binary::Add, i, c.at);
            for (how, other) in [(Compare::Lt, c.to), (Compare::Ge, c.at), (Compare::Ne, c.zero)] {
                let holds = c.b.compare(how, sum, other);
                c.b.begin_if(holds);
                let one = c.real(1.0);
                c.b.update(Combine::Add, c.y, &[i], one);
                c.b.begin_else();
                let two = c.real(2.0);
                c.b.update(Combine::Add, c.y, &[i], two);
                c.b.end_if();
            }
            c.b.end_par();
        },
        tries: &[
            ((70, [0, 0, 0, 35]), None),
            ((70, [0, 0, MAX, 0]), None),
            ((70, [0, 0, MAX - 9, MAX]), None),
            ((70, [0, 0, MIN, MIN]), None),
            ((70, [0, 0, -30, MIN]), None),
        ],
    },
    Hostile {
        name: "ranges that are empty, backwards or endless",
        build: |c| {
            let one = c.real(1.0);
            let i = c.b.begin_par(&[("i", c.at, c.to)])[0];
            c.b.store(c.y, &[i], one);
            c.b.update(Combine::Add, c.r, &[], one);
            c.b.end_par();
            c.b.begin_for("t", c.at, c.at);
            c.b.store(c.y, &[c.at], one);
            c.b.end_loop(None);
        },
        tries: &[
            ((20, [0, 0, 3, 3]), None),
            ((20, [0, 0, 7, 2]), None),
            ((20, [0, 0, MAX, MIN]), OVERFLOW),
            ((20, [0, 0, MAX, MIN + 1]), None),
            ((20, [0, 0, 0, 21]), BOUNDS),
            ((20, [0, 0, -1, 3]), BOUNDS),
            ((20, [0, 0, MIN, 3]), OVERFLOW),
            ((20, [0, 0, MIN + 1, 3]), BOUNDS),
            ((20, [0, 0, 0, MAX]), BOUNDS),
            ((20, [0, 0, MIN + 1, MAX]), BOUNDS),
        ],
    },
    Hostile {
        name: "integer division by zero and of the least number",
        build: |c| {
            let q = c.b.binary(Binary::Div, c.a, c.d);
            let m = c.b.binary(Binary::Rem, c.a, c.d);
            let e = c.b.binary(Binary::RemEuclid, c.a, c.d);
            let i = c.par();
            let k = c.b.load(c.k, &[i]);
            let k = c.b.binary(Binary::Sub, k, k);
            let (a, d) = (c.b.binary(Binary::Add, c.a, k), c.b.binary(Binary::Add, c.d, k));
            let mut all = vec![q, m, e];
            for op in [Binary::Div, Binary::Rem, Binary::RemEuclid] {
                all.push(c.b.binary(op, a, d));
                for ty in [Type::I32, Type::U32] {
                    let (a, d) = (c.b.cast(a, ty), c.b.cast(d, ty));
                    let one = c.b.literal(Literal::of(ty, 1.0));
                    let d = c.b.binary(Binary::Or, d, one);
                    let v = c.b.binary(op, a, d);
                    all.push(c.b.cast(v, Type::I64));
                }
            }
            let mut sum = all[0];
            for v in &all[1..] {
                sum = c.b.binary(Binary::Xor, sum, *v);
            }
            c.put(i, sum);
            c.b.end_par();
        },
        tries: &[
            ((5, [7, 2, 0, 0]), None),
            ((5, [7, 0, 0, 0]), DIVISION),
            ((5, [MIN, -1, 0, 0]), None),
            ((5, [MIN, MIN, 0, 0]), None),
            ((5, [-7, MIN, 0, 0]), None),
            ((5, [i32::MIN as i64, -1, 0, 0]), None),
        ],
    },
    Hostile {
        name: "shifts by more than the width, sums that wrap",
        build: |c| {
            let i = c.par();
            let shifted = c.b.binary(Binary::Shl, c.a, c.d);
            let back = c.b.binary(Binary::Shr, c.a, c.d);
            let product = c.b.binary(Binary::Mul, shifted, back);
            let least = c.b.unary(Unary::Abs, c.a);
            let negated = c.b.unary(Unary::Neg, least);
            let sum = c.b.binary(Binary::Add, product, negated);
            let narrow = c.b.cast(sum, Type::I32);
            let square = c.b.binary(Binary::Mul, narrow, narrow);
            c.put(i, square);
            c.b.end_par();
        },
        tries: &[
            ((5, [5, 3, 0, 0]), None),
            ((5, [MIN, 64, 0, 0]), None),
            ((5, [MAX, -1, 0, 0]), None),
            ((5, [MIN, MIN, 0, 0]), None),
        ],
    },
    Hostile {
        name: "an element that a reduction combines into",
        build: |c| {
            let i = c.par();
            let v = c.b.load(c.x, &[i]);
            let limit = c.b.cast(c.d, Type::F64);
            let above = c.b.compare(Compare::Gt, v, limit);
            c.b.begin_if(above);
            c.b.update(Combine::Max, c.y, &[c.at], v);
            c.b.end_if();
            c.b.end_par();
        },
        tries: &[
            ((100, [0, 0, 7, 0]), None),
            ((100, [0, 0, 100, 0]), BOUNDS),
            ((100, [0, 0, -3, 0]), BOUNDS),
            // Nobody combines: nothing is touched.
            ((100, [0, 50, -3, 0]), None),
            ((0, [0, 0, MIN, 0]), None),
        ],
    },
    Hostile {
        name: "a loop in a body runs as far as data says",
        build: |c| {
            let i = c.par();
            let zero = c.real(0.0);
            let sum = c.b.local("sum", zero);
            let step = c.b.begin_for("c", c.at, c.to);
            let at = c.b.binary(Binary::Add, i, step);
            let v = c.b.load(c.x, &[at]);
            let so_far = c.b.get(sum);
            let more = c.b.binary(Binary::Add, so_far, v);
            c.b.set(sum, more);
            c.b.end_loop(None);
            let total = c.b.get(sum);
            c.b.store(c.y, &[i], total);
            c.b.end_par();
        },
        tries: &[
            ((90, [0, 0, 0, 1]), None),
            ((90, [0, 0, 0, 2]), BOUNDS),
            ((90, [0, 0, -1, 1]), BOUNDS),
            ((90, [0, 0, 5, -5]), None),
            ((90, [0, 0, MIN, MIN]), OVERFLOW),
            ((90, [0, 0, MIN, MAX]), OVERFLOW),
            ((90, [0, 0, MIN + 1, MIN + 1]), None),
            ((90, [0, 0, MIN + 1, MAX]), BOUNDS),
            ((90, [0, 0, 0, MAX]), BOUNDS),
            ((90, [0, 0, MAX, MIN + 1]), None),
        ],
    },
    Hostile {
        name: "NaN and infinities",
        build: |c| {
            let i = c.par();
            let x = c.b.load(c.x, &[i]);
            let zero = c.real(0.0);
            let inf = c.b.binary(Binary::Div, x, zero);
            let nan = c.b.binary(Binary::Sub, inf, inf);
            let small = c.b.binary(Binary::Min, nan, x);
            let large = c.b.binary(Binary::Max, inf, nan);
            let equal = c.b.compare(Compare::Eq, nan, nan);
            let kept = c.b.select(equal, x, small);
            let sum = c.b.binary(Binary::Add, kept, large);
            c.b.store(c.y, &[i], sum);
            c.b.update(Combine::Min, c.r, &[], nan);
            c.b.end_par();
            let i = c.par();
            let x = c.b.load(c.y, &[i]);
            let mut sum = c.b.cast(x, Type::I64);
            for ty in [Type::I32, Type::U32, Type::Index, Type::Bool] {
                let v = c.b.cast(x, ty);
                let v = c.b.cast(v, Type::I64);
                sum = c.b.binary(Binary::Xor, sum, v);
            }
            c.put(i, sum);
            c.b.end_par();
        },
        tries: &[((40, [0, 0, 0, 0]), None)],
    },
];

/// All cases in one program: `which` says which one runs.
fn all() -> Program {
    let mut b = Builder::new("hostile");
    let [x, y] = ["x", "y"].map(|name| b.array(name, Type::F64, 1, Access::Write));
    let k = b.array("k", Type::I64, 1, Access::Write);
    let r = b.array("r", Type::F64, 0, Access::Write);
    let which = b.scalar("which", Type::Index);
    let (a, d) = (b.scalar("a", Type::I64), b.scalar("d", Type::I64));
    let (at, to) = (b.scalar("at", Type::Index), b.scalar("to", Type::Index));
    let (n, zero) = (b.dim(x, 0), b.literal(Literal::index(0)));
    let mut case = Case { b, x, y, k, r, a, d, at, to, n, zero };
    for (number, hostile) in CASES.iter().enumerate() {
        let number = case.index(number as i64);
        let chosen = case.b.compare(Compare::Eq, which, number);
        case.b.begin_if(chosen);
        (hostile.build)(&mut case);
        case.b.end_if();
    }
    case.b.finish().unwrap()
}

#[test]
pub fn hostile_data_is_an_error_or_lawful_never_a_crash() {
    let program = all();
    let devices = [interpreter(), cpu(1), cpu(2), cpu(5)];
    let compiled = devices.map(|device| Compiled::new(&program, &device).unwrap());
    for (number, hostile) in CASES.iter().enumerate() {
        for ((n, [a, d, at, to]), expected) in hostile.tries {
            let inputs = [
                Input::Array(vec![*n], 1),
                Input::Array(vec![*n], 2),
                Input::Array(vec![*n], 3),
                Input::Array(vec![], 4),
                Input::Scalar(Literal::index(number as i64)),
                Input::Scalar(Literal::from(*a)),
                Input::Scalar(Literal::from(*d)),
                Input::Scalar(Literal::index(*at)),
                Input::Scalar(Literal::index(*to)),
            ];
            let outcomes: Vec<Result<Vec<Vec<Literal>>, String>> = compiled
                .iter()
                .map(|compiled| {
                    let bytes = launch(compiled, &inputs).map_err(|e| e.to_string())?;
                    let types = [Type::F64, Type::F64, Type::I64, Type::F64];
                    Ok(types.iter().zip(&bytes).map(|(ty, bytes)| literals(*ty, bytes)).collect())
                })
                .collect();
            for (outcome, device) in outcomes.iter().zip(["interpreted", "1", "2", "5 threads"]) {
                let place =
                    format!("{}, {device}: n = {n}, a = {a}, d = {d}, at = {at}, to = {to}", hostile.name);
                match (outcome, expected) {
                    (Ok(found), None) => assert_eq!(Some(found), outcomes[0].as_ref().ok(), "{place}"),
                    (Err(error), Some(text)) => assert!(error.contains(text), "{place}: {error}"),
                    _ => panic!("{place}: {outcome:?}, not {expected:?}"),
                }
            }
        }
    }
}

#[test]
pub fn shapes_that_do_not_fit_are_errors() {
    let mut b = Builder::new("shapes");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let y = b.array("y", Type::F64, 1, Access::Write);
    let size = b.scalar("size", Type::Index);
    let temp = b.temp("temp", Type::F64, &[size, size]);
    let zero = b.literal(Literal::from(0.0));
    b.fill(temp, zero);
    b.copy(x, y);
    b.swap(x, y);
    let program = b.finish().unwrap();
    let run = |n: usize, m: usize, size: i64| {
        let inputs =
            [Input::Array(vec![n], 1), Input::Array(vec![m], 2), Input::Scalar(Literal::index(size))];
        check(&program, &inputs)
    };
    run(3, 3, 2).unwrap();
    run(0, 0, 0).unwrap();
    assert!(run(3, 4, 2).unwrap_err().contains("equal shapes"));
    assert!(run(3, 3, -1).unwrap_err().contains("an extent of temporary `temp` is -1"));
    assert!(run(3, 3, 1 << 40).unwrap_err().contains("more elements than fit in memory"));
    assert!(run(3, 3, 1 << 29).unwrap_err().contains("could not be allocated"));
}

#[test]
pub fn huge_arrays_are_errors() {
    for device in [interpreter(), cpu(1)] {
        for shape in [vec![usize::MAX], vec![1 << 40, 1 << 40], vec![1 << 47]] {
            assert!(AnyArray::zeros(&device, Type::F64, &shape).is_err(), "{shape:?}");
        }
    }
}

#[test]
pub fn a_loop_with_very_many_reductions_is_like_any_other() {
    let mut b = Builder::new("many");
    let x = b.array("x", Type::F64, 1, Access::Read);
    let sums = b.array("sums", Type::F64, 1, Access::Write);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    let i = b.begin_par(&[("i", zero, n)])[0];
    let v = b.load(x, &[i]);
    for k in 0..70 {
        let k = b.literal(Literal::index(k));
        b.update(Combine::Add, sums, &[k], v);
    }
    b.end_par();
    let program = b.finish().unwrap();
    check(&program, &[Input::Array(vec![5000], 1), Input::Array(vec![70], 2)]).unwrap();
}

/// Runs the tests above, and those of `extremes`, once more, on code that was compiled with the sanitisers of addresses and of undefined behaviour
/// and 256-bit vectors, in a process that has their run-time library. Without them, as with some compilers, it says so
/// and checks nothing.
#[test]
pub fn hostile_data_is_clean_under_sanitisers() {
    const FLAGS: &str = "-O0 -fsanitize=address,undefined -fno-sanitize-recover=all";
    let folder = std::env::temp_dir().join(format!("ebbtide-sanitised-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    if !finds_errors(&folder, FLAGS) {
        eprintln!("`cc {FLAGS}` does not find errors here: nothing was checked");
        return;
    }
    let library = |name: &str| {
        let output = Command::new("cc").arg(format!("-print-file-name={name}")).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["hostile::", "extremes::", "--skip", "sanitisers", "--test-threads=1"])
        .env("LD_PRELOAD", format!("{}:{}", library("libasan.so"), library("libubsan.so")))
        .env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")
        .env("EBBTIDE_CFLAGS", FLAGS)
        .env("EBBTIDE_OPTIMIZE", "always")
        .env("EBBTIDE_VECTOR_BYTES", "32")
        .env("EBBTIDE_TEST_CODE", &folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("7 passed"), "{said}");
    // What ran was instrumented.
    let mut folders = vec![folder.clone()];
    let mut instrumented = 0;
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "so") {
                let bytes = std::fs::read(&path).unwrap();
                instrumented += usize::from(bytes.windows(13).any(|window| window == b"__asan_report"));
            }
        }
    }
    assert!(instrumented > 0, "no instrumented code was found in {}", folder.display());
    std::fs::remove_dir_all(folder).unwrap();
}

/// Does the compiler take these flags, and does a program with an error stop with them?
fn finds_errors(folder: &Path, flags: &str) -> bool {
    let (source, program) = (folder.join("wrong.c"), folder.join("wrong"));
    let text =
        "int main(int n, char **a) { volatile int x[4] = {0}; (void)a; int y = x[n + 3]; return y - y; }";
    std::fs::write(&source, text).unwrap();
    let built =
        Command::new("cc").args(flags.split_whitespace()).arg(&source).arg("-o").arg(&program).output();
    built.is_ok_and(|output| output.status.success())
        && Command::new(&program).output().is_ok_and(|output| !output.status.success())
}
