//! tmp
use ebbtide_tape::*;
fn main() {
    let tape = Tape::<f64>::new();
    let x = tape.leaf(0.3);
    let y = with_mode(Mode::Conservative, || { let mut y = x.clone(); for _ in 0..100_000 { y = y * &x; } y });
    let kind = std::env::args().nth(1).unwrap();
    let mut times = vec![];
    for _ in 0..60 {
        let t = std::time::Instant::now();
        match &*kind { "free" => drop(tape.pullback(&y)), "slots" => drop(tape.sweep().slots(100).pullback(&y)), _ => drop(tape.hvp(&y, [(&x, 1.0)])) }
        times.push(t.elapsed().as_nanos() as f64 / 1e5);
    }
    times.sort_by(f64::total_cmp);
    println!("{kind} best {:.1} median {:.1}", times[0], times[30]);
}
