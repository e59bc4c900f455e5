//! The printed C, compiled and run, gives the bits that Rust computes.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use ebbtide_math::c::{Dialect, Item, Shape, library};
use ebbtide_math::{Format, Function, Kernel, Native32, Native64, Ops};

use crate::samples::{self, Random};

/// What Ebbtide compiles with.
const FLAGS: [&str; 4] = ["-O2", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"];

const NATIVE: &[&str] = &["-march=native"];

/// What CUDA C has and C does not, for a host.
const CUDA_STAND_INS: &str = r#"#include <math.h>
#define __device__
#define __forceinline__ inline __attribute__((unused))
#define __noinline__ __attribute__((noinline, unused))
#define __fma_rn fma
#define __fmaf_rn fmaf
#define __dsqrt_rn sqrt
#define __fsqrt_rn sqrtf
static inline int __float_as_int(float a) { int b; memcpy(&b, &a, sizeof b); return b; }
static inline float __int_as_float(int a) { float b; memcpy(&b, &a, sizeof b); return b; }
static inline long long __double_as_longlong(double a) { long long b; memcpy(&b, &a, sizeof b); return b; }
static inline double __longlong_as_double(long long a) { double b; memcpy(&b, &a, sizeof b); return b; }
static inline __attribute__((unused)) unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
"#;

/// The arguments of every kernel: floats and integers of both formats, of one length.
struct Arguments {
    f64s: [Vec<f64>; 3],
    i64s: [Vec<i64>; 2],
    f32s: [Vec<f32>; 3],
    i32s: [Vec<i32>; 2],
}

impl Arguments {
    fn new(count: usize) -> Arguments {
        let mut random = Random(3);
        let count = count.next_multiple_of(64);
        let mut pairs_64 = samples::pairs_f64(&mut random, count / 2);
        let mut pairs_32 = samples::pairs_f32(&mut random, count / 2);
        let (special_64, special_32) = (samples::special_f64(), samples::special_f32());
        for i in 0..count - count / 2 {
            // Specials against each other, rare lanes between usual ones.
            let (x, y) = (random.bits() as usize, random.bits() as usize);
            let usual = [random.within(30.0), random.within(30.0)];
            if i % 3 == 0 {
                pairs_64.push((usual[0], usual[1]));
                pairs_32.push((usual[0] as f32, usual[1] as f32));
            } else {
                pairs_64.push((special_64[x % special_64.len()], special_64[y % special_64.len()]));
                pairs_32.push((special_32[x % special_32.len()], special_32[y % special_32.len()]));
            }
        }
        let ints: Vec<i64> = (0..count).map(|i| random.bits() as i64 >> (i % 64)).collect();
        let small: Vec<i32> = (0..count).map(|i| random.bits() as i32 >> (i % 32)).collect();
        let low = |n: &[i32]| n.iter().map(|&n| f64::from(n & 4095)).collect::<Vec<f64>>();
        Arguments {
            f64s: [
                pairs_64.iter().map(|p| p.0).collect(),
                pairs_64.iter().map(|p| p.1).collect(),
                low(&small),
            ],
            f32s: [
                pairs_32.iter().map(|p| p.0).collect(),
                pairs_32.iter().map(|p| p.1).collect(),
                low(&small).iter().map(|&x| x as f32).collect(),
            ],
            i64s: [small.iter().map(|&n| i64::from(n)).collect(), ints],
            i32s: [small.clone(), small],
        }
    }

    fn count(&self) -> usize {
        self.f64s[0].len()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.f64s.iter().flatten().for_each(|x| out.extend(x.to_ne_bytes()));
        self.i64s.iter().flatten().for_each(|x| out.extend(x.to_ne_bytes()));
        self.f32s.iter().flatten().for_each(|x| out.extend(x.to_ne_bytes()));
        self.i32s.iter().flatten().for_each(|x| out.extend(x.to_ne_bytes()));
        out
    }
}

/// The value of a kernel at one place.
fn expected<O: Ops>(o: &mut O, kernel: Kernel, floats: &[Vec<O::F>], ints: &[Vec<O::I>], at: usize) -> O::F {
    let x: Vec<O::F> = floats.iter().take(kernel.floats()).map(|column| column[at]).collect();
    let n: Vec<O::I> = ints.iter().take(kernel.ints()).map(|column| column[at]).collect();
    kernel.emit(o, &x, &n).unwrap()
}

fn kernels(format: Format) -> Vec<Kernel> {
    let mut out: Vec<Kernel> = Function::ALL.into_iter().map(Kernel::Function).collect();
    out.push(Kernel::Powi);
    if format == Format::F64 {
        out.extend([Kernel::Random, Kernel::RandomSingle, Kernel::PowfSingle, Kernel::PowiSingle]);
    }
    out
}

/// A program that reads the arguments from one file and writes every kernel's values to another.
fn program(dialect: Dialect, items: &[Item], count: usize) -> String {
    let mut text = String::from("#include <stdio.h>\n#include <string.h>\n");
    if dialect == Dialect::Cuda {
        text += CUDA_STAND_INS;
    }
    text += &library(dialect, items).unwrap();
    let mut main = format!(
        "enum {{ COUNT = {count} }};\nstatic struct {{ f64 x64[3][COUNT]; i64 n64[2][COUNT]; f32 x32[3][COUNT]; \
         i32 n32[2][COUNT]; }} in;\nstatic union {{ f64 y64[COUNT]; f32 y32[COUNT]; }} out;\n"
    );
    let mut calls = String::new();
    for &Item { kernel, shape } in items {
        let (name, bits, lanes) = (Item { kernel, shape }.name(), &shape.to_string()[1..3], shape.lanes());
        writeln!(main, "static void run_{name}(void) {{\n  for (int i = 0; i < COUNT; i += {lanes}) {{")
            .unwrap();
        let mut args = Vec::new();
        for k in 0..kernel.floats() {
            writeln!(main, "    {shape} x{k}; memcpy(&x{k}, &in.x{bits}[{k}][i], sizeof x{k});").unwrap();
            args.push(format!("x{k}"));
        }
        for k in 0..kernel.ints() {
            let int = shape.to_string().replacen('f', "i", 1);
            writeln!(main, "    {int} n{k}; memcpy(&n{k}, &in.n{bits}[{k}][i], sizeof n{k});").unwrap();
            args.push(format!("n{k}"));
        }
        writeln!(main, "    {shape} y = {name}({}); memcpy(&out.y{bits}[i], &y, sizeof y);", args.join(", "))
            .unwrap();
        writeln!(main, "  }}\n}}").unwrap();
        writeln!(calls, "  run_{name}(); fwrite(out.y{bits}, sizeof out.y{bits}, 1, to);").unwrap();
    }
    text + &main
        + "int main(int argc, char **argv) {\n  if (argc != 3) return 2;\n  FILE *from = fopen(argv[1], \"rb\"), \
           *to = fopen(argv[2], \"wb\");\n  if (!from || !to || fread(&in, sizeof in, 1, from) != 1) return 3;\n"
        + &calls
        + "  return fclose(to) ? 4 : 0;\n}\n"
}

fn compile(directory: &Path, source: &str, flags: &[&str]) -> std::path::PathBuf {
    let (file, binary) = (directory.join("functions.c"), directory.join("functions"));
    std::fs::write(&file, source).unwrap();
    let done = Command::new("cc")
        .args(FLAGS)
        .args(flags)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-Wno-unused-variable", "-o"])
        .args([&binary, &file])
        .arg("-lm")
        .output()
        .unwrap();
    assert!(done.status.success(), "cc failed:\n{}", String::from_utf8_lossy(&done.stderr));
    binary
}

/// Whether there is a C compiler; says so if not.
fn has_compiler() -> bool {
    let found = Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("SKIPPED: no C compiler `cc` on this machine, so printed C was not compared with Rust");
    }
    found
}

fn check(dialect: Dialect, format: Format, lanes: usize, flags: &[&str], cases: usize) {
    if !has_compiler() {
        return;
    }
    let shape = Shape::new(format, lanes).unwrap();
    let items: Vec<Item> = kernels(format).into_iter().map(|kernel| Item { kernel, shape }).collect();
    let arguments = Arguments::new(samples::cases(cases));
    let count = arguments.count();
    let directory = tempfile::tempdir().unwrap();
    let binary = compile(directory.path(), &program(dialect, &items, count), flags);
    let (from, to) = (directory.path().join("in"), directory.path().join("out"));
    std::fs::write(&from, arguments.bytes()).unwrap();
    let status = Command::new(binary).args([&from, &to]).status().unwrap();
    assert!(status.success(), "{status}");
    let bytes = std::fs::read(&to).unwrap();
    assert_eq!(bytes.len(), items.len() * count * shape.bytes() / lanes);
    for (k, item) in items.iter().enumerate() {
        for at in 0..count {
            let (rust, c, equal) = match format {
                Format::F64 => {
                    let rust = expected(&mut Native64, item.kernel, &arguments.f64s, &arguments.i64s, at);
                    let place = (k * count + at) * 8;
                    let c = f64::from_ne_bytes(bytes[place..place + 8].try_into().unwrap());
                    (rust, c, rust.to_bits() == c.to_bits() || (rust.is_nan() && c.is_nan()))
                }
                Format::F32 => {
                    let rust = expected(&mut Native32, item.kernel, &arguments.f32s, &arguments.i32s, at);
                    let place = (k * count + at) * 4;
                    let c = f32::from_ne_bytes(bytes[place..place + 4].try_into().unwrap());
                    let equal = rust.to_bits() == c.to_bits() || (rust.is_nan() && c.is_nan());
                    (f64::from(rust), f64::from(c), equal)
                }
            };
            assert!(
                equal,
                "{} at {:e}, {:e} (f64) or {:e}, {:e} (f32), {}: Rust {rust:e}, C {c:e}",
                item.name(),
                arguments.f64s[0][at],
                arguments.f64s[1][at],
                arguments.f32s[0][at],
                arguments.f32s[1][at],
                arguments.i32s[0][at],
            );
        }
    }
}

#[test]
fn scalar_c_gives_the_bits_of_rust() {
    check(Dialect::C, Format::F64, 1, NATIVE, 6400);
    check(Dialect::C, Format::F32, 1, NATIVE, 6400);
}

#[test]
fn vector_c_of_64_bytes_gives_the_bits_of_rust() {
    check(Dialect::C, Format::F64, 8, NATIVE, 6400);
    check(Dialect::C, Format::F32, 16, NATIVE, 6400);
}

#[test]
fn vector_c_of_32_bytes_gives_the_bits_of_rust() {
    check(Dialect::C, Format::F64, 4, NATIVE, 1280);
    check(Dialect::C, Format::F32, 8, avx2(), 1280);
}

/// AVX2 and no more, where the machine has it.
fn avx2() -> &'static [&'static str] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return &["-march=x86-64", "-mavx2", "-mfma"];
    }
    NATIVE
}

#[test]
fn vector_c_of_16_bytes_gives_the_bits_of_rust() {
    check(Dialect::C, Format::F64, 2, NATIVE, 1280);
    check(Dialect::C, Format::F32, 4, NATIVE, 1280);
}

#[test]
fn vector_c_without_vector_instructions_gives_the_bits_of_rust() {
    let plainest: &[&str] = if cfg!(target_arch = "x86_64") { &["-march=x86-64"] } else { &[] };
    check(Dialect::C, Format::F64, 8, plainest, 1280);
    check(Dialect::C, Format::F32, 4, plainest, 1280);
}

#[test]
fn cuda_text_with_stand_ins_on_the_host_gives_the_bits_of_rust() {
    check(Dialect::Cuda, Format::F64, 1, NATIVE, 1280);
    check(Dialect::Cuda, Format::F32, 1, NATIVE, 1280);
}
