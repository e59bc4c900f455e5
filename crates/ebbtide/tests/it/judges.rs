//! The tests of this crate once more, with every interpreter a judge.

use std::process::Command;

/// Nothing reads what is dead, no iterations race, and their order changes no bit. Tests that start processes of their
/// own are left out.
#[test]
fn all_tests_pass_under_the_modes_of_the_interpreter() {
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--skip", "judges::", "--skip", "durable::"])
        .env("EBBTIDE_MODES", "poison,races,shuffled=1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}");
    let passed = text.split("test result: ok. ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    assert!(passed.is_some_and(|passed: usize| passed > 150), "{text}");
}
