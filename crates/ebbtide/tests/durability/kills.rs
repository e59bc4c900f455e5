//! Processes that are killed at named points of their file operations.

use std::path::Path;
use std::process::Command;

use ebbtide::prelude::*;

use crate::folder::folder;
use crate::kill::{self, Life};
use crate::problems::{Problem, of_cooling, of_history, of_limited, of_nested};

const RUN: &str = "EBBTIDE_TEST_RUN";
const PROBLEM: &str = "EBBTIDE_TEST_PROBLEM";

fn problem(which: usize) -> Problem {
    let n = kill::sized(50);
    match which {
        0 => of_nested(n, Budget::StoreAll),
        1 => of_nested(n, Budget::Revolve { slots: 2, block: 1 }),
        2 => of_cooling(Budget::Revolve { slots: 3, block: 2 }),
        3 => of_limited(Budget::Revolve { slots: 2, block: 2 }),
        4 => of_history(n, Budget::StoreAll),
        _ => of_history(n, Budget::Revolve { slots: 1, block: 1 }),
    }
}

#[test]
#[ignore = "a process that the tests below kill"]
fn child() {
    let Some(run) = std::env::var_os(RUN) else { return };
    let which = std::env::var(PROBLEM).unwrap().parse().unwrap();
    let mut problem = problem(which);
    assert_eq!(problem.launch_in(Path::new(&run)).unwrap(), problem.expected);
}

fn spawn(run: &Path, which: usize) -> Command {
    let mut command = kill::child("kills::child");
    command.env(RUN, run).env(PROBLEM, which.to_string());
    command
}

#[test]
fn c62_a_gradient_killed_at_any_point_ends_with_the_same_bits() {
    let folder = folder();
    let mut killed = 0;
    for which in 0..6 {
        let mut problem = problem(which);
        let mut lives = 0;
        // A child takes a compiler's cache and a process; the points that are left out come in long runs.
        let stride = if std::env::var_os("EBBTIDE_CASES").is_some() { 1 } else { 9 };
        killed += kill::at_every_point(stride, |point| {
            lives += 1;
            let run = folder.path().join(format!("{which}-{lives}"));
            let life = kill::run_until(spawn(&run, which), point);
            // Whatever it came to, it goes on from there; and once it has ended, it is read.
            for _ in 0..2 {
                assert_eq!(problem.launch_in(&run).unwrap(), problem.expected, "{}: {point}", problem.name);
            }
            std::fs::remove_dir_all(&run).unwrap();
            life
        });
    }
    println!("{killed} kills");
    assert!(killed > 20, "{killed}");
}

#[test]
fn c62_a_gradient_killed_at_its_commits_again_and_again_ends_with_the_same_bits() {
    let folder = folder();
    for which in [1, 2, 5] {
        let mut problem = problem(which);
        let run = folder.path().join(which.to_string());
        let mut killed = 0;
        // The first commit of a life says that it has begun: in each life one more frontier is reached.
        for side in ["before", "amid", "after"].into_iter().cycle() {
            match kill::run_until(spawn(&run, which), &format!("{side}:commit:3")) {
                Life::Killed => killed += 1,
                Life::Done => break,
            }
        }
        assert!(killed >= 3, "{}: {killed}", problem.name);
        assert_eq!(problem.launch_in(&run).unwrap(), problem.expected, "{}", problem.name);
    }
}
