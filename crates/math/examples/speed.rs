//! Prints nanoseconds per element of the vector C of each function, in cache, on one core.
//!
//! `cargo run --release -p ebbtide-math --example speed`. Needs `cc`.

use std::fmt::Write;
use std::process::Command;

use ebbtide_math::c::{Dialect, Item, Shape, library};
use ebbtide_math::{Format, Function, Kernel};

/// Arguments that a program may well have: the range in which to draw them.
fn range(kernel: Kernel) -> (f64, f64) {
    match kernel {
        Kernel::Function(Function::Asin | Function::Acos) => (-1.0, 1.0),
        Kernel::Function(Function::Ln | Function::Log2 | Function::Log10 | Function::Powf) => (0.01, 20.0),
        Kernel::Function(Function::Ln1p) => (-0.9, 5.0),
        _ => (-8.0, 8.0),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shapes = [Shape::new(Format::F64, 8)?, Shape::new(Format::F32, 16)?];
    let mut kernels: Vec<Kernel> = Function::ALL.into_iter().map(Kernel::Function).collect();
    kernels.extend([Kernel::Powi, Kernel::Random]);
    let items: Vec<Item> = kernels
        .into_iter()
        .flat_map(|kernel| shapes.map(|shape| Item { kernel, shape }))
        .filter(|item| item.kernel.exists_in(item.shape.format()))
        .collect();
    let mut text = "#define _POSIX_C_SOURCE 200112L\n#include <stdio.h>\n#include <time.h>\n".to_owned()
        + &library(Dialect::C, &items)?
        + "enum { COUNT = 1024, ROUNDS = 2000 };\nstatic double now(void) { struct timespec t; \
           clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }\n\
           static _Alignas(64) f64 x64[COUNT], y64[COUNT];\nstatic _Alignas(64) f32 x32[COUNT], y32[COUNT];\n\
           static u64 state = 1;\nstatic double unit(void) { state = state * 6364136223846793005ull + \
           1442695040888963407ull; return (state >> 11) * 0x1p-53; }\n\
           static void fill(double low, double high) { for (int i = 0; i < COUNT; i++) x32[i] = (f32)(x64[i] = \
           low + (high - low) * unit()); }\n";
    let mut main = String::new();
    for item in &items {
        let (name, shape, (low, high)) = (item.name(), item.shape, range(item.kernel));
        let (lanes, bits) = (shape.lanes(), &shape.to_string()[1..3]);
        let int = shape.to_string().replacen('f', "i", 1);
        let floats =
            (0..item.kernel.floats()).map(|k| format!("*({shape} *)&x{bits}[(i + {k} * {lanes}) % COUNT]"));
        let ints = (0..item.kernel.ints()).map(|k| format!("({int}){{0}} + i + {k}"));
        let args: Vec<String> = floats.chain(ints).collect();
        writeln!(
            text,
            "static __attribute__((noinline)) void run_{name}(void) {{ for (int i = 0; i < COUNT; i += {lanes}) \
             *({shape} *)&y{bits}[i] = {name}({}); }}",
            args.join(", ")
        )?;
        writeln!(
            main,
            "  fill({low:?}, {high:?}); best = 1e30; for (int k = 0; k < 7; k++) {{ double start = now(); for (int r = 0; r < \
             ROUNDS; r++) run_{name}(); double t = now() - start; if (t < best) best = t; }}\n  \
             printf(\"%-20s %7.2f\\n\", \"{name}\", best / COUNT / ROUNDS);"
        )?;
    }
    writeln!(text, "int main(void) {{\n  double best;\n{main}  return 0;\n}}")?;
    let directory = tempfile::tempdir()?;
    let (source, binary) = (directory.path().join("speed.c"), directory.path().join("speed"));
    std::fs::write(&source, text)?;
    let flags = ["-O2", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"];
    let done = Command::new("cc").args(flags).arg("-o").args([&binary, &source]).arg("-lm").status()?;
    if !done.success() {
        return Err("cc failed".into());
    }
    println!("function, ns per element");
    Command::new(binary).status()?;
    Ok(())
}
