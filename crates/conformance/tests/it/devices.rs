//! The devices under test.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use ebbtide_conformance::{Input, literals, run};
use ebbtide_cpu::{Cache, Options};
use ebbtide_ir::{Literal, Param, Program};
use ebbtide_runtime::{Device, interpreter};

use crate::cuda;

/// Where test runs keep compiled code: for the next one, unless `EBBTIDE_TEST_CODE` says where else.
pub fn folder() -> PathBuf {
    let asked = std::env::var_os("EBBTIDE_TEST_CODE").map(PathBuf::from);
    asked.unwrap_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled"))
}

/// The compiled device under test with so many threads: the CPU, unless the test runs on CUDA.
pub fn cpu(threads: usize) -> Device {
    if on_cuda() {
        return cuda::device(threads);
    }
    let folder = folder();
    Options::new().threads(threads).cache(Cache::at(folder)).build().expect("tests need a C compiler").0
}

/// The devices that the contract is tested on.
pub fn all() -> [Device; 3] {
    [interpreter(), cpu(1), cpu(2)]
}

thread_local! {
    static ON_CUDA: Cell<bool> = const { Cell::new(false) };
}

/// Does this test run on CUDA?
pub fn on_cuda() -> bool {
    ON_CUDA.get()
}

/// Runs a test on CUDA instead of the CPU.
pub fn with_cuda(test: impl FnOnce()) {
    struct Back;
    impl Drop for Back {
        fn drop(&mut self) {
            ON_CUDA.set(false);
        }
    }
    let _back = Back;
    ON_CUDA.set(true);
    test();
}

/// All arrays of a program after a run, NaNs made equal.
pub fn results(program: &Program, device: &Device, inputs: &[Input]) -> Result<Vec<Vec<Literal>>, String> {
    let bytes = run(program, device, inputs).map_err(|e| e.to_string())?;
    let arrays = program.params.iter().filter_map(|p| match p {
        Param::Array(id) => Some(program.array(*id).ty),
        Param::Scalar(_) => None,
    });
    Ok(arrays.zip(&bytes).map(|(ty, bytes)| literals(ty, bytes)).collect())
}

/// The interpreter's results, after the compiled ones were found equal on 1, 2 and 5 threads.
pub fn check(program: &Program, inputs: &[Input]) -> Result<Vec<Vec<Literal>>, String> {
    let expected = results(program, &interpreter(), inputs);
    for threads in [1, 2, 5] {
        let found = results(program, &cpu(threads), inputs);
        match (&expected, &found) {
            (Ok(expected), Ok(found)) => {
                for (k, (e, f)) in expected.iter().zip(found).enumerate() {
                    let differing = e.iter().zip(f).position(|(e, f)| e != f);
                    assert_eq!(
                        differing,
                        None,
                        "array {k} on {threads} threads: {:?} is not {:?}\n{program}",
                        differing.map(|d| f[d]),
                        differing.map(|d| e[d])
                    );
                }
            }
            (Err(_), Err(_)) => {}
            _ => panic!("{threads} threads: {expected:?}\nis not {found:?}\n{program}"),
        }
    }
    expected
}
