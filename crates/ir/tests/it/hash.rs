//! The hash of a program: what counts, and what does not.

use std::path::Path;

use ebbtide_cases::{renumbered, texts};
use ebbtide_ir::*;

/// All programs of the case files that can be read without functions of the host, as they are before and after their step.
fn corpus() -> Vec<Program> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["ir/tests/cases", "autodiff/tests/cases"].map(|folder| root.join(folder));
    let texts = folders.iter().flat_map(|folder| texts(folder).unwrap());
    let mut programs = vec![crate::fixtures::burgers()];
    for (_, text) in texts {
        let begins = |line: &str| ["program ", "driven program "].iter().any(|b| line.starts_with(b));
        programs.extend(text.split("=>\n").filter_map(|part| {
            let from = part.lines().take_while(|line| !begins(line)).map(|line| line.len() + 1).sum();
            let text = part.get(from..)?;
            parse(&text[..text.find("\n}\n")? + 3]).ok()
        }));
    }
    assert!(programs.len() > 100, "{} programs: where are they?", programs.len());
    programs
}

/// Places for `count` values, in an order that hangs on the seed, with gaps.
fn places(count: usize, seed: u64) -> Vec<usize> {
    let mut random = seed;
    let mut keys: Vec<(u64, usize)> = (0..count)
        .map(|v| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33, v)
        })
        .collect();
    keys.sort_unstable();
    let mut places = vec![0; count];
    for (k, (key, v)) in keys.into_iter().enumerate() {
        places[v] = 2 * k + key as usize % 2;
    }
    places
}

#[test]
fn c63_the_order_in_which_values_were_made_does_not_count() {
    for (seed, program) in corpus().iter().enumerate() {
        let other = renumbered(program, &places(program.values.len(), seed as u64));
        assert_eq!(other.hash(), program.hash(), "{program}");
        let (here, there) = (program.numbering(), other.numbering());
        assert_eq!(here.values().len(), there.values().len());
        for (a, b) in here.values().iter().zip(there.values()) {
            assert_eq!(program.value(*a).name, other.value(*b).name, "{program}");
        }
    }
}

/// `y = (x + 1) · (x - 2)`, with constants made in one order or the other.
fn product(ones_first: bool, unused: usize) -> Program {
    let mut b = Builder::new("product");
    let y = b.array("y", Type::F64, 0, Access::Write);
    let x = b.scalar("x", Type::F64);
    for k in 0..unused {
        b.literal(Literal::from(k as f64));
    }
    let [one, two] = match ones_first {
        true => [1.0, 2.0].map(|n| b.literal(Literal::from(n))),
        false => {
            let [two, one] = [2.0, 1.0].map(|n| b.literal(Literal::from(n)));
            [one, two]
        }
    };
    let left = (ones_first).then(|| b.binary(Binary::Add, x, one));
    let right = b.binary(Binary::Sub, x, two);
    let left = left.unwrap_or_else(|| b.binary(Binary::Add, x, one));
    let value = b.binary(Binary::Mul, left, right);
    b.store(y, &[], value);
    b.finish().unwrap()
}

#[test]
fn neither_the_order_of_neighbouring_lets_nor_unused_ones_count() {
    assert_eq!(product(true, 0).hash(), product(false, 0).hash());
    assert_eq!(product(true, 0).hash(), product(false, 3).hash());
    assert_eq!(product(true, 0).numbering().values().len(), 6);
    assert_eq!(product(false, 3).numbering().values().len(), 6);
}

/// `y = a[0] + b[0]`, read in one order or the other, or on both sides of a write.
fn reads(first: usize, write_between: bool) -> Program {
    let mut b = Builder::new("reads");
    let arrays = ["a", "b"].map(|name| b.array(name, Type::F64, 1, Access::Write));
    let zero = b.literal(Literal::index(0));
    let one = b.load(arrays[first], &[zero]);
    if write_between {
        b.store(arrays[1], &[zero], one);
    }
    let other = b.load(arrays[1 - first], &[zero]);
    let sum = if first == 0 { [one, other] } else { [other, one] };
    let sum = b.binary(Binary::Add, sum[0], sum[1]);
    b.store(arrays[0], &[zero], sum);
    b.finish().unwrap()
}

#[test]
fn which_of_two_reads_comes_first_and_what_stands_between_them_count() {
    let hashes =
        [(0, false), (1, false), (0, true), (1, true)].map(|(first, write)| reads(first, write).hash());
    for (k, a) in hashes.iter().enumerate() {
        assert!(hashes[k + 1..].iter().all(|b| a != b));
    }
}

#[test]
fn a_value_that_is_computed_in_another_block_is_another_program() {
    let text = |before: &str, inside: &str| {
        let text = format!(
            "program p(y: &mut Array1<f64>, x: f64, n: usize) {{\n{before}for t in 0..n {{\n{inside}y[0] = v * v;\n}}\n}}\n"
        );
        parse(&text).unwrap().hash()
    };
    assert_ne!(text("let v = x * 2.0;\n", ""), text("", "let v = x * 2.0;\n"));
}

#[test]
fn another_operand_is_another_program() {
    let mut changed = 0;
    for program in corpus() {
        let (hash, numbering) = (program.hash(), program.numbering());
        for v in numbering.values() {
            let count = program.op(*v).operands().count();
            for place in 0..count {
                let mut other = program.clone();
                let mut at = 0;
                let is = program.op(*v).operands().nth(place).unwrap();
                // The last one of its type.
                let same = |w: &&ValueId| program.ty(**w) == program.ty(is) && **w != is && *w != v;
                let Some(instead) = numbering.values().iter().rev().find(same) else { continue };
                other.values[v.index()].op = program.op(*v).map(|operand| {
                    at += 1;
                    if at == place + 1 { *instead } else { operand }
                });
                assert_ne!(other.hash(), hash, "operand {place} of {v:?}\n{program}");
                changed += 1;
            }
        }
    }
    assert!(changed > 1000, "{changed} operands");
}

#[test]
fn another_constant_and_another_place_of_a_write_are_other_programs() {
    let mut changed = 0;
    for program in corpus() {
        let (hash, numbering) = (program.hash(), program.numbering());
        for v in numbering.values() {
            if let Some(literal) = program.literal(*v) {
                let mut other = program.clone();
                other.values[v.index()].op =
                    Op::Literal(Literal::from_bits(literal.ty(), literal.bits() ^ 1));
                assert_ne!(other.hash(), hash, "{v:?}\n{program}");
                changed += 1;
            }
        }
        let mut other = program.clone();
        other.body.reverse();
        let writes = other.body.iter().filter(|stmt| !matches!(stmt, Stmt::Let(_))).count();
        if writes > 1 {
            assert_ne!(other.hash(), hash, "{program}");
        }
    }
    assert!(changed > 300, "{changed} constants");
}
