//! Loads at indices from floats and from tables: the same bits and the same errors as on the interpreter, for every size of vectors.

use std::process::Command;

use ebbtide_conformance::Input;
use ebbtide_ir::{Literal, Program, Type, parse};
use ebbtide_runtime::interpreter;

use crate::devices::{check, cpu, results};

/// Bodies of `for i in par(0..x.len())` over places `x` and a table `k`, which read arrays of `m` elements and rows.
const BODIES: &[&str] = &[
    "y[i] = u[(x[i].floor() as usize).rem_euclid(m)];",
    "y[i] = u[x[i].floor() as usize % m] - u[(x[i].floor() as usize + m - 1) % m];",
    "let at = ((x[i].floor() as i64).rem_euclid(m as i64)) as usize; y[i] = u[at] + u[(at + 1) % m]; z[i] = w[[at, 1]] + x[i];",
    "y[i] = u[k[i] as usize]; z[i] = w[[k[i] as usize, 0]] * u[k[i] as usize];",
    "z[i] += u[k[i] as usize * 3 % m]; y[i] += z[i];",
    "y[i] = w[[1, k[i] as usize % 2]];",
];

/// Elements that no array has, far elements, and no numbers.
const ODD: &[f64] = &[-0.5, -3.0, 1e30, -1e30, f64::NAN, 3e8, -3e8, 200.0, 25.5, f64::INFINITY];

fn program(ty: &str, body: &str) -> Program {
    let text = format!(
        "program p(x: &Array1<{ty}>, k: &Array1<i32>, u: &Array1<{ty}>, w: &Array2<{ty}>, y: &mut Array1<{ty}>, z: &mut Array1<{ty}>) {{
            let m = u.dim(0);
            for i in par(0..x.dim(0)) {{ {body} }}
        }}"
    );
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn inputs(ty: Type, n: usize, m: usize, odd: Option<(usize, f64)>) -> Vec<Input> {
    let place = |i: usize| match odd {
        Some((at, x)) if at == i => x,
        _ => ((i * 7) % m) as f64 + 0.25,
    };
    let row = |i: usize| match odd {
        Some((at, x)) if at == i => x as i32 as f64,
        _ => ((i * 5) % m) as f64,
    };
    let x = (0..n).map(|i| Literal::of(ty, place(i))).collect();
    let k = (0..n).map(|i| Literal::of(Type::I32, row(i))).collect();
    let arrays = [vec![m], vec![m, 2], vec![n], vec![n]].into_iter().zip(1..);
    let arrays = arrays.map(|(shape, seed)| Input::Array(shape, seed));
    [Input::Elements(vec![n], x), Input::Elements(vec![n], k)].into_iter().chain(arrays).collect()
}

#[test]
pub fn loads_at_indices_from_data_are_the_same_everywhere() {
    for (ty, name) in [(Type::F32, "f32"), (Type::F64, "f64")] {
        for body in BODIES {
            let program = program(name, body);
            for (n, m) in [(1, 3), (16, 5), (37, 11), (70, 64)] {
                check(&program, &inputs(ty, n, m, None)).unwrap_or_else(|e| panic!("{body}: {e}"));
            }
        }
    }
}

#[test]
fn loads_at_odd_indices_fail_as_they_do_one_by_one() {
    let mut errors = 0;
    for (ty, name) in [(Type::F32, "f32"), (Type::F64, "f64")] {
        for body in BODIES {
            let program = program(name, body);
            for at in [0, 21, 36] {
                for x in ODD {
                    let inputs = inputs(ty, 37, 11, Some((at, *x)));
                    let [expected, found] =
                        [interpreter(), cpu(1)].map(|device| results(&program, &device, &inputs));
                    assert_eq!(found, expected, "{name}, {x} at {at}: {body}");
                    errors += usize::from(expected.is_err());
                }
            }
        }
    }
    assert!(errors > 50, "{errors} errors");
}

#[test]
fn loads_at_indices_from_data_are_the_same_in_vectors_of_every_size() {
    for bytes in ["16", "32", "64"] {
        let test = Command::new(std::env::current_exe().unwrap())
            .args([
                "gathers::loads_at_indices_from_data",
                "gathers::loads_at_odd_indices",
                "--skip",
                "every_size",
            ])
            .env("EBBTIDE_VECTOR_BYTES", bytes)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&test.stdout);
        assert!(test.status.success() && text.contains("2 passed"), "{bytes} bytes: {text}");
    }
}
