//! Arguments of the corpus for peers: a file of numbers for each program, and an index that says where in it each argument is, and
//! what loss and gradient ours are. So no peer computes arguments of its own, and each can tell whether it computes the same.

use std::fs;
use std::path::Path;

use ebbtide::ir::{Param, Type};
use ebbtide_cpu::Optimize;
use serde::Serialize;

use super::measure::{Arguments, Run, Wish, bytes, compile, numbers, run_program};
use super::{Problem, Size, problem};
use crate::Result;

/// A program of the index.
#[derive(Serialize)]
struct Entry {
    name: String,
    r#type: String,
    file: String,
    wrt: &'static [&'static str],
    /// Name, type in NumPy's words, shape, and where in the file it begins.
    arguments: Vec<(String, &'static str, Vec<usize>, usize)>,
    loss: f64,
    /// The length of all gradients together.
    norm: f64,
}

/// The type in NumPy's words.
fn numpy(ty: Type) -> &'static str {
    match ty {
        Type::F32 => "<f4",
        Type::F64 => "<f8",
        Type::I32 => "<i4",
        _ => "<i8",
    }
}

/// Writes the arguments of all programs that are wanted, and the index.
pub fn write(wish: &Wish) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("out/corpus");
    fs::create_dir_all(&folder)?;
    let mut index = Vec::new();
    for (name, ty, size) in wish.all() {
        index.push(entry(&folder, (name, ty, size), &problem(name, ty, size)?, wish)?);
        println!("{name} {ty} {size:?}");
    }
    fs::write(folder.join("index.json"), serde_json::to_string_pretty(&index)?)?;
    Ok(())
}

fn entry(
    folder: &Path,
    (name, ty, size): (&str, Type, Size),
    problem: &Problem,
    wish: &Wish,
) -> Result<Entry> {
    let (mut data, mut arguments) = (Vec::new(), Vec::new());
    for (param, input) in problem.program.params.iter().zip(&problem.inputs) {
        let (name, ty) = match param {
            Param::Array(a) => (&problem.program.array(*a).name, problem.program.array(*a).ty),
            Param::Scalar(s) => {
                let scalar = &problem.program.scalars[s.index()];
                (&scalar.name, scalar.ty)
            }
        };
        arguments.push((name.clone(), numpy(ty), input.shape().to_vec(), data.len()));
        data.extend(bytes(ty, &input.elements(ty)));
        // Each begins at a multiple of the largest element's size.
        data.resize(data.len().next_multiple_of(8), 0);
    }
    let file = format!("{name}-{ty}-{size:?}.bin").to_lowercase();
    fs::write(folder.join(&file), data)?;

    let ((device, program, gradient), _) = compile(problem, wish.on, Optimize::Never)?;
    let mut launch = Arguments::new(&problem.program, problem.inputs.clone(), &device)?;
    run_program(&program, &mut launch, wish.on)?;
    let loss = launch.scalar("loss").ok_or("the loss is no float")?;
    let wrt = problem.wrt();
    let mut gradient = Run::new(gradient, &launch, &wrt)?;
    gradient.time(&mut launch, wish.on)?;
    let squares = gradient.results.iter().flat_map(numbers).map(|slope| slope * slope);
    Ok(Entry {
        name: format!("{name} {ty} {size:?}"),
        r#type: ty.to_string(),
        file,
        wrt: problem.wrt,
        arguments,
        loss,
        norm: squares.sum::<f64>().sqrt(),
    })
}
