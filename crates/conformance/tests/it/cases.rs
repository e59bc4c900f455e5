//! The runs of case files, on devices: they leave the bits that the files say, before and after the step.

use std::path::Path;

use ebbtide_cases::{Arrays, Case, Given, texts};
use ebbtide_cpu::{Cache, Optimize, Options};
use ebbtide_ir::{self as ir, Access, Param, Program, Role};
use ebbtide_runtime::{AnyArray, Arg, Compiled, Device, Error, Result};

use crate::devices::{cpu, folder, on_cuda};

fn run(device: &Device, program: &Program, given: &Given) -> Result<Arrays> {
    let compiled = Compiled::new(program, device)?;
    let mut arrays = Vec::new();
    for (id, (shape, bytes)) in &given.arrays {
        let shape: Vec<usize> = shape.iter().map(|extent| *extent as usize).collect();
        let mut array = AnyArray::zeros(device, program.array(*id).ty, &shape)?;
        array.copy_from_bytes(bytes)?;
        arrays.push((*id, array));
    }
    let (mut scalars, mut lent) = (given.scalars.iter(), arrays.iter_mut().collect::<Vec<_>>());
    let mut args = Vec::new();
    for param in &program.params {
        args.push(match *param {
            Param::Scalar(_) => Arg::Scalar(*scalars.next().unwrap()),
            Param::Array(id) => {
                let at = lent.iter().position(|(other, _)| *other == id).unwrap();
                let (_, array) = lent.swap_remove(at);
                match program.array(id).role {
                    Role::Param(Access::Write) => Arg::Write(array.any_mut()),
                    _ => Arg::Read(array),
                }
            }
        });
    }
    let _done = compiled.launch(args)?;
    let shape = |array: &AnyArray| array.shape().iter().map(|extent| *extent as i64).collect();
    Ok(arrays.iter().map(|(id, array)| (*id, (shape(array), array.bytes().to_vec()))).collect())
}

/// The CPU with code that is compiled soon, or the GPU.
fn device() -> Device {
    if on_cuda() {
        return cpu(1);
    }
    let options = Options::new().threads(2).optimize(Optimize::Never).cache(Cache::at(folder()));
    options.build().expect("tests need a C compiler").0
}

fn check(folder: &str) -> usize {
    let device = device();
    let on_device = |program: &Program, given: &Given| {
        run(&device, program, given).map_err(|error| match error {
            Error::Program(ir::Error::Run { fault, .. }) => fault.to_string(),
            other => other.to_string(),
        })
    };
    let mut count = 0;
    for (file, text) in texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        // Parts on a GPU are tested with their grid, in `crates/grid`.
        if on_cuda() && text.contains("parts::") {
            continue;
        }
        let case = Case::read(&text);
        let ran = case.and_then(|case| case.run_on(&on_device));
        count += ran.unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    }
    count
}

#[test]
pub fn runs_of_case_files_leave_on_a_device_what_the_files_say() {
    assert!(check("../ir/tests/cases") >= 40, "where are the runs?");
    assert!(check("../autodiff/tests/cases") >= 4, "where are the runs?");
}
