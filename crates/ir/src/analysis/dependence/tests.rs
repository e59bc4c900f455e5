//! Random loops over random small index forms: what is proved never to meet never meets, and every witness is real.

use std::collections::BTreeMap;

use super::with_requirements;
use crate::interp::{Bytes, HostArray, Machine, Modes, Races};
use crate::syntax::*;
use crate::{Affines, Builder, Facts, verify};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }
}

const EXTENT: usize = 40;

/// The program `for (i, j) in par(…)` with random accesses of `x`, unverified.
fn program(random: &mut Random) -> Program {
    let mut b = Builder::new("p");
    let rank = 1 + random.below(2) as usize;
    let x = b.array("x", Type::F64, rank, Access::Write);
    let [n, m, h] = ["n", "m", "h"].map(|name| b.scalar(name, Type::Index));
    let from = [0, 0, 1][random.below(3) as usize];
    let from = b.literal(Literal::index(from));
    let i_end = [n, h, n][random.below(3) as usize];
    let planes = random.below(2) == 1;
    let mut ranges = vec![("i", from, i_end)];
    if planes {
        let zero = b.literal(Literal::index(0));
        ranges.push(("j", zero, m));
    }
    let variables = b.begin_par(&ranges);
    let i = variables[0];
    // The second variable is parallel, or one of a sequential loop inside.
    let sequential = !planes && random.below(2) == 1;
    let zero = b.literal(Literal::index(0));
    let j = match (planes, sequential) {
        (true, _) => variables[1],
        (false, true) => b.begin_for("j", zero, [m, i][random.below(2) as usize]),
        (false, false) => h,
    };
    let accesses = 1 + random.below(3);
    for k in 0..accesses {
        let guarded = random.below(3) == 0;
        if guarded {
            let guard = guard(&mut b, random, [i, j, n, h]);
            b.begin_if(guard);
        }
        let index: Vec<ValueId> = (0..rank).map(|_| form(&mut b, random, [i, j, n, m, h])).collect();
        let one = b.literal(Literal::from(1.0));
        match random.below(4) {
            _ if k == 0 => b.store(x, &index, one),
            0 => b.store(x, &index, one),
            1 => b.update(Combine::Add, x, &index, one),
            _ => drop(b.load(x, &index)),
        }
        if guarded {
            b.end_if();
        }
    }
    if sequential {
        b.end_loop(None);
    }
    b.end_par();
    b.close().unwrap()
}

fn guard(b: &mut Builder, random: &mut Random, [i, j, n, h]: [ValueId; 4]) -> ValueId {
    let c = b.literal(Literal::index(random.below(3) as i64));
    match random.below(6) {
        0 => b.compare(Compare::Lt, i, h),
        1 => b.compare(Compare::Lt, j, i),
        2 => b.compare(Compare::Eq, i, c),
        3 => {
            let (sum, two) = (b.binary(Binary::Add, i, j), b.literal(Literal::index(2)));
            let parity = b.binary(Binary::Rem, sum, two);
            b.compare(Compare::Eq, parity, c)
        }
        4 => {
            let low = b.compare(Compare::Ge, i, c);
            let high = b.compare(Compare::Lt, i, n);
            b.binary(Binary::And, low, high)
        }
        _ => b.compare(Compare::Ne, j, c),
    }
}

fn form(b: &mut Builder, random: &mut Random, [i, j, n, m, h]: [ValueId; 5]) -> ValueId {
    let c = b.literal(Literal::index(random.below(4) as i64));
    let two = b.literal(Literal::index(2));
    match random.below(15) {
        0 | 1 => i,
        2 => j,
        3 => b.binary(Binary::Add, i, c),
        4 => b.binary(Binary::Add, i, h),
        5 => b.binary(Binary::Sub, n, i),
        6 => {
            let twice = b.binary(Binary::Mul, two, i);
            b.binary(Binary::Add, twice, c)
        }
        7 | 8 => {
            let row = b.binary(Binary::Mul, i, m);
            b.binary(Binary::Add, row, j)
        }
        9 => {
            let sum = b.binary(Binary::Add, i, c);
            b.binary(Binary::Rem, sum, n)
        }
        10 => b.binary(Binary::Div, i, two),
        11 => {
            let sum = b.binary(Binary::Add, i, c);
            b.binary(Binary::Min, sum, n)
        }
        12 => {
            let sum = b.binary(Binary::Add, i, j);
            b.binary(Binary::Add, sum, c)
        }
        13 => {
            let (rows, rest) = (b.binary(Binary::Div, i, h), b.binary(Binary::Rem, i, h));
            let rows = b.binary(Binary::Mul, rows, h);
            let rows = b.binary(Binary::Mul, rows, two);
            b.binary(Binary::Add, rows, rest)
        }
        _ => c,
    }
}

/// How the program ends for these scalars, with the race detector on.
fn fault((program, facts): (&Program, &Facts), scalars: [i64; 3]) -> Option<Fault> {
    let rank = program.arrays[0].rank;
    let bytes = vec![0; 8 * EXTENT.pow(rank as u32)];
    let arrays = vec![HostArray { shape: vec![EXTENT as i64; rank], bytes: Bytes::Own(bytes) }];
    let scalars = scalars.map(Literal::index);
    let mut machine = Machine::new(program, facts, &scalars, arrays);
    machine.modes = Modes { races: Races::Reported, ..Modes::default() };
    machine.run().err()
}

/// The scalars that a message names.
fn witness(message: &str) -> [i64; 3] {
    ["n", "m", "h"].map(|name| {
        let rest = message.split(&format!("`{name}` is ")).nth(1).unwrap_or("2");
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or(2)
    })
}

#[test]
fn what_never_meets_never_meets_and_every_witness_is_real() {
    let cases = std::env::var("EBBTIDE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let (mut never, mut conditional, mut conflicts, mut unproved) = (0, 0, 0, 0);
    for seed in 0..cases {
        let unverified = program(&mut Random(seed));
        let tried = || {
            [0, 1, 2, 3, 5].iter().flat_map(move |n| {
                [1, 2, 4].iter().flat_map(move |m| [0, 1, 2, 3, 6].iter().map(move |h| [*n, *m, *h]))
            })
        };
        let races = |program: (&Program, &Facts), at| matches!(fault(program, at), Some(Fault::Race(_)));
        match with_requirements(&unverified) {
            Ok((program, _)) => {
                let asks =
                    program.body.iter().any(|s| matches!(s, Stmt::Par(par) if !par.requires.is_empty()));
                if asks {
                    conditional += 1
                } else {
                    never += 1
                }
                let facts =
                    verify(&program).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{program}"));
                for at in tried() {
                    let found = fault((&program, &facts), at);
                    assert!(
                        !matches!(found, Some(Fault::Race(_))),
                        "seed {seed}, {at:?}: {found:?}\n{program}"
                    );
                }
            }
            Err(flaws) => {
                let message = flaws[0].to_string();
                let facts = Facts { affines: Affines::of(&unverified), pars: BTreeMap::new() };
                let unverified = (&unverified, &facts);
                if message.contains("iterations [")
                    && message.contains("touch element")
                    && !message.contains("may touch")
                {
                    conflicts += 1;
                    let at = witness(&message);
                    // Another iteration may meet a fault before.
                    let found = fault(unverified, at);
                    let real = matches!(
                        found,
                        Some(Fault::Race(_) | Fault::DivisionByZero { .. } | Fault::OutOfBounds { .. })
                    );
                    assert!(real, "seed {seed}: {message}: {at:?} {found:?}\n{}", unverified.0);
                } else if !message.contains("iteration [") && !tried().any(|at| races(unverified, at)) {
                    unproved += 1;
                    eprintln!("seed {seed}: {message}\n{}", unverified.0);
                }
            }
        }
    }
    println!(
        "{never} never, {conditional} under a condition, {conflicts} with a witness, {unproved} safe and refused"
    );
    assert!(never > cases / 10 && conditional > cases / 100 && conflicts > cases / 10);
    assert!(50 * unproved < cases, "{unproved} safe programs are refused");
}
