//! Prints, for every function and format, the largest error found against correctly rounded values.
//!
//! `cargo run --release -p ebbtide-math --example ulp`; EBBTIDE_CASES sets the number of random arguments.

use ebbtide_math::{Function, powi_f32, powi_f64};

#[path = "../tests/it/reference.rs"]
#[allow(dead_code)]
mod reference;
#[path = "../tests/it/samples.rs"]
#[allow(dead_code)]
mod samples;

/// The largest distance so far and where it was met; how many values were not the correctly rounded one.
struct Worst {
    ulps: u64,
    at: String,
    off: usize,
    count: usize,
}

impl Worst {
    fn new() -> Worst {
        Worst { ulps: 0, at: String::new(), off: 0, count: 0 }
    }

    fn see(&mut self, ulps: u64, at: impl FnOnce() -> String) {
        self.count += 1;
        self.off += usize::from(ulps > 0);
        if ulps > self.ulps {
            self.ulps = ulps;
            self.at = at();
        }
    }

    fn print(&self, name: &str, format: &str, allowed: u64) {
        let verdict = if self.ulps > allowed { "TOO MUCH" } else { "" };
        let ulps = if self.ulps == u64::MAX { "wrong".to_owned() } else { self.ulps.to_string() };
        let share = 100.0 * self.off as f64 / self.count.max(1) as f64;
        println!("{name:8} {format} {ulps:>6} {allowed:>7} {share:>9.3} %  {} {verdict}", self.at);
    }
}

fn main() -> Result<(), ebbtide_math::MathError> {
    let count = samples::cases(2_000_000);
    println!("function format  ulp  allowed  not nearest  worst at ({count} random arguments each)");
    for function in Function::ALL {
        let mut random = samples::Random(1);
        let mut worst = Worst::new();
        let specials = samples::special_f64();
        let mut args = samples::pairs_f64(&mut random, if function.arity() == 2 { count } else { 0 });
        if function.arity() == 2 {
            args.extend(specials.iter().flat_map(|&x| specials.iter().map(move |&y| (x, y))));
        } else {
            args.extend(samples::any_f64(&mut random, count).iter().chain(&specials).map(|&x| (x, 0.0)));
        }
        for (x, y) in args {
            let value = function.eval_f64(&[x, y][..function.arity()])?;
            let nearest = reference::f64(function, x, y);
            worst.see(reference::distance_f64(value, nearest), || {
                format!("{x:e} {y:e}: {value:e}, {nearest:e}")
            });
        }
        worst.print(function.name(), "f64", reference::allowed_ulps(function));

        let mut worst = Worst::new();
        let specials = samples::special_f32();
        let mut args = samples::pairs_f32(&mut random, if function.arity() == 2 { count } else { 0 });
        if function.arity() == 2 {
            args.extend(specials.iter().flat_map(|&x| specials.iter().map(move |&y| (x, y))));
        } else {
            let stride = (u64::from(u32::MAX) / count as u64).max(1);
            args.extend(
                (0..=u64::from(u32::MAX))
                    .step_by(stride as usize)
                    .map(|bits| (f32::from_bits(bits as u32), 0.0)),
            );
            args.extend(samples::any_f32(&mut random, count / 4).iter().chain(&specials).map(|&x| (x, 0.0)));
        }
        for (x, y) in args {
            let value = function.eval_f32(&[x, y][..function.arity()])?;
            let nearest = reference::f32(function, x, y);
            worst.see(reference::distance_f32(value, nearest), || {
                format!("{x:e} {y:e}: {value:e}, {nearest:e}")
            });
        }
        worst.print(function.name(), "f32", reference::allowed_ulps(function));
    }
    let mut random = samples::Random(2);
    let (mut worst_64, mut worst_32) = (Worst::new(), Worst::new());
    for (i, x) in samples::any_f64(&mut random, count).into_iter().enumerate() {
        let n = (random.bits() >> (32 + i % 32)) as i32 * if i % 2 == 0 { 1 } else { -1 };
        let (value, nearest) = (powi_f64(x, n), reference::powi_f64(x, n));
        worst_64
            .see(reference::distance_f64(value, nearest), || format!("{x:e} {n}: {value:e}, {nearest:e}"));
        let x = x as f32;
        let (value, nearest) = (powi_f32(x, n), reference::powi_f32(x, n));
        worst_32
            .see(reference::distance_f32(value, nearest), || format!("{x:e} {n}: {value:e}, {nearest:e}"));
    }
    worst_64.print("powi", "f64", 4);
    worst_32.print("powi", "f32", 4);
    Ok(())
}
