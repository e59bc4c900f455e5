//! Fills and copies of whole arrays: elements of all types, lengths around a cache line, several threads.

use ebbtide_conformance::Input;
use ebbtide_ir::{Access, Builder, Literal, Program};

use crate::devices::check;

/// Fills one array and copies another.
fn program(value: Literal) -> Program {
    let mut b = Builder::new("whole");
    let [from, filled, copied] =
        [("from", Access::Read), ("filled", Access::Write), ("copied", Access::Write)]
            .map(|(name, access)| b.array(name, value.ty(), 1, access));
    let value = b.literal(value);
    b.fill(filled, value);
    b.copy(from, copied);
    b.finish().unwrap()
}

#[test]
fn all_elements_are_filled_and_copied_and_no_others() {
    let values = [
        Literal::from(-0.0f64),
        Literal::from(1.5f32),
        Literal::from(-7i64),
        Literal::from(1i32 << 30),
        Literal::from(3u32),
        Literal::from(true),
    ];
    for value in values {
        let program = program(value);
        for n in (0..=70).chain([127, 128, 129, 1000]) {
            let inputs = [1, 2, 3].map(|seed| Input::Array(vec![n], seed));
            let found = check(&program, &inputs).unwrap();
            assert!(found[1].len() == n && found[1].iter().all(|e| *e == value), "{n} times {value:?}");
            assert_eq!(found[2], found[0], "{n} elements of type {}", value.ty());
        }
    }
}
