//! The adjoints of 500 random programs, word for word, behind a hash: a change of `autodiff` that is meant to leave
//! them as they are is held to that. One that is not blesses the new ones with `UPDATE_EXPECT=1` and says why.

use ebbtide_autodiff::{Inner, Request, gradient};
use ebbtide_conformance::random::lower::lower;
use expect_test::expect_file;

use super::case;

/// FNV-1a: fixed for all time, and short to print.
fn fnv(hash: u64, text: &str) -> u64 {
    text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The text of both gradient programs of a case, or why there is none.
fn adjoints(seed: u64) -> String {
    let case = case(seed);
    let program = match lower(&case.sketch) {
        Ok(program) => program,
        Err(why) => return why,
    };
    let wrt = case.wrt().into_iter().map(str::to_string).collect();
    let request = Request { of: "loss".to_string(), wrt, may_be_zero: true, ..Request::default() };
    let text = |inner| match gradient(&program, &request, inner) {
        Ok(gradient) => gradient.program.to_string(),
        Err(why) => why.to_string(),
    };
    [Inner::Recorded, Inner::Swept].map(text).join("\n")
}

#[test]
fn adjoints_of_random_programs_are_as_they_were() {
    let mut lines = String::new();
    for tens in 0..50 {
        let hash =
            (10 * tens..10 * tens + 10).fold(0xcbf2_9ce4_8422_2325, |hash, seed| fnv(hash, &adjoints(seed)));
        lines += &format!("{:3}.. {hash:016x}\n", 10 * tens);
    }
    expect_file!["../golden/adjoints.hashes"].assert_eq(&lines);
}
