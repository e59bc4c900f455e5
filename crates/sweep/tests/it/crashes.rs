//! A gradient whose process is killed at every point, over and over.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_schedule::{Disk, Multistage};
use ebbtide_snapshot::fs::{Disks, FileSystem};
use ebbtide_snapshot::{Error, Survey};
use ebbtide_sweep::Run;

use crate::durable::{Bits, bits, uninterrupted};
use crate::folder::folder;
use crate::heat::Heat;
use crate::kill::{self, Life};

const STEPS: u64 = 12;
const DIR: &str = "EBBTIDE_TEST_RUN";

fn cells() -> usize {
    kill::sized(200)
}

fn go_on(dir: &Path) -> Bits {
    let mut heat = Heat::new(cells());
    let run = match Run::open(dir) {
        Err(Error::NotARun { .. }) => {
            let disk = Disk { slots: 4, write_cost: 0.5, read_cost: 0.5 };
            Run::create(dir, &heat, Multistage::new(STEPS, 2, disk).unwrap()).unwrap()
        }
        other => other.unwrap(),
    };
    run.frontier_every(Duration::ZERO).resume(&mut heat).unwrap();
    bits(&heat)
}

#[test]
#[ignore = "the process that the kill tests kill"]
fn victim() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    go_on(Path::new(&dir));
}

fn spawn(dir: &Path) -> Command {
    let mut command = kill::child("crashes::victim");
    command.env(DIR, dir);
    command
}

#[test]
fn c62_a_gradient_killed_at_any_point_goes_on_to_the_same_bits() {
    let expected = uninterrupted(cells(), STEPS);
    let temporary = folder();
    let mut lives = 0;
    let killed = kill::at_every_point(1, |point| {
        lives += 1;
        let dir = temporary.path().join(lives.to_string());
        let life = kill::run_until(spawn(&dir), point);
        assert_eq!(go_on(&dir), expected, "{point}");
        std::fs::remove_dir_all(&dir).unwrap();
        life
    });
    assert!(killed > 80, "{killed}");
}

#[test]
fn c62_a_gradient_killed_in_every_life_ends_with_the_same_bits() {
    let temporary = folder();
    let dir = temporary.path().join("run");
    let fs: Arc<dyn FileSystem> = Arc::new(Disks);
    let (mut forward, mut backward) = (0, 0);
    // Each life comes a little farther than the one before it.
    for k in 1.. {
        if kill::run_until(spawn(&dir), &format!("before:any:{k}")) == Life::Done {
            break;
        }
        match Survey::read(&*fs, &dir) {
            Err(Error::NotARun { .. }) => {}
            Err(error) => panic!("{error}"),
            Ok(survey) if survey.examine(&fs).adjoint.is_none() => forward += 1,
            Ok(_) => backward += 1,
        }
    }
    assert!(forward >= 3 && backward >= 3, "{forward} kills on the way forward, {backward} on the way back");
    assert_eq!(go_on(&dir), uninterrupted(cells(), STEPS));
}
