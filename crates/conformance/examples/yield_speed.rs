//! What yields cost on the one-thread path: `cargo run --release -p ebbtide-conformance --example yield_speed`.

use std::hint::black_box;
use std::time::Instant;

use ebbtide_cpu::Options;
use ebbtide_ir::{Access, Builder, Combine, Label, Literal, Program, Type, Undo};
use ebbtide_runtime::{Arg, Compiled, Status};

enum Kind {
    Plain,
    Labelled,
    Gated,
}

/// `for _ in 0..steps { region { count += 1 } }`, the region with or without a flag, or not there.
fn counting(kind: Kind) -> Program {
    let mut b = Builder::new("counting");
    let count = b.array("count", Type::I32, 0, Access::Write);
    let flag = b.array("flag", Type::I32, 0, Access::Read);
    let steps = b.scalar("steps", Type::Index);
    let (zero, one) = (b.literal(Literal::index(0)), b.literal(Literal::from(1i32)));
    let label = Label { family: "Stage".to_string(), variant: "Count".to_string() };
    b.begin_for("t", zero, steps);
    match kind {
        Kind::Plain => {}
        Kind::Labelled => b.begin_region(label, None, Undo::Nothing),
        Kind::Gated => b.begin_region(label, Some(flag), Undo::Nothing),
    }
    b.update(Combine::Add, count, &[], one);
    if !matches!(kind, Kind::Plain) {
        b.end_region();
    }
    b.end_loop(None);
    b.finish().expect("the program is valid")
}

/// The least of ten means, in nanoseconds.
fn nanoseconds(repeats: u32, mut run: impl FnMut()) -> f64 {
    let mut least = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        (0..repeats).for_each(|_| run());
        least = least.min(start.elapsed().as_nanos() as f64 / f64::from(repeats));
    }
    least
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (device, _) = Options::new().threads(1).build()?;
    let mut count = device.scalar(0)?;
    let mut flag = device.scalar(0)?;
    let steps = |n: usize| Arg::Scalar(Literal::from(n));

    let plain = Compiled::new(&counting(Kind::Plain), &device)?;
    let labelled = Compiled::new(&counting(Kind::Labelled), &device)?;
    let gated = Compiled::new(&counting(Kind::Gated), &device)?;

    let launch = nanoseconds(20_000, || {
        let args = vec![Arg::Write(count.any_mut()), Arg::Read(flag.any()), steps(0)];
        let _ = black_box(plain.launch(args));
    });
    println!("trivial launch                      {launch:8.0} ns");

    // Each round yields in the first pass, clears the flag and resumes through the second to the end.
    let round = nanoseconds(20_000, || {
        let _ = flag.fill(1);
        let args = vec![Arg::Write(count.any_mut()), Arg::Read(flag.any()), steps(2)];
        if let Ok(Status::Yielded(at)) = gated.launch(args) {
            let _ = flag.fill(0);
            let args = vec![Arg::Write(count.any_mut()), Arg::Read(flag.any()), steps(2)];
            let _ = black_box(gated.resume(&at, args));
        }
    });
    println!("launch, yield, clear, resume to end {round:8.0} ns");

    const PASSES: usize = 1_000_000;
    for (name, compiled) in
        [("no region", &plain), ("region without yield_on", &labelled), ("gated region", &gated)]
    {
        let pass = nanoseconds(1, || {
            let args = vec![Arg::Write(count.any_mut()), Arg::Read(flag.any()), steps(PASSES)];
            let _ = black_box(compiled.launch(args));
        });
        println!("a pass with {name:24}{:8.2} ns", pass / PASSES as f64);
    }
    Ok(())
}
