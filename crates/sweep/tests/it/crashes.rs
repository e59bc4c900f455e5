//! A gradient whose process is killed over and over.

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ebbtide_schedule::{Disk, Multistage};
use ebbtide_snapshot::fs::{Disks, FileSystem};
use ebbtide_snapshot::{Error, State, Survey};
use ebbtide_sweep::{Durable, Run, Stepper};

use crate::durable::{bits, uninterrupted};
use crate::heat::Heat;
use crate::support::in_the_model_within;

const CELLS: usize = 600;
const STEPS: u64 = 1000;
const KILLS: usize = 50;
const DIR: &str = "EBBTIDE_TEST_RUN";

/// Heat that takes its time, so that there is time to be killed in.
struct Slow(Heat);

impl Stepper for Slow {
    type State = State;
    type Error = Error;

    fn advance(&mut self, steps: Range<u64>) -> Result<(), Error> {
        for step in steps {
            std::thread::sleep(Duration::from_micros(300));
            self.0.advance(step..step + 1)?;
        }
        Ok(())
    }
    in_the_model_within!(run);
}

impl Durable for Slow {
    in_the_model_within!(keep);
}

#[test]
#[ignore = "the process that the kill test kills"]
fn victim() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let dir = Path::new(&dir);
    let mut slow = Slow(Heat::new(CELLS));
    let run = match Run::open(dir) {
        Err(Error::NotARun { .. }) => {
            let disk = Disk { slots: 12, write_cost: 4.0, read_cost: 4.0 };
            Run::create(dir, &slow, Multistage::new(STEPS, 4, disk).unwrap()).unwrap()
        }
        other => other.unwrap(),
    };
    run.frontier_every(Duration::from_millis(8)).resume(&mut slow).unwrap();
}

#[test]
fn fifty_kills_over_one_gradient_leave_its_bits_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("run");
    let fs: Arc<dyn FileSystem> = Arc::new(Disks);
    let (mut forward, mut backward, mut before_anything) = (0, 0, 0);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut spawned = 0_u64;
    while forward + backward < KILLS || forward < 10 || backward < 10 {
        spawned += 1;
        assert!(spawned < 1000, "the machine is too slow for this test");
        let mut victim = spawn(&dir);
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // On a machine that is too busy to get anywhere in such a short life, lives become longer.
        std::thread::sleep(Duration::from_micros(random % (40_000 + 400 * spawned)));
        assert!(victim.try_wait().unwrap().is_none_or(|status| status.success()));
        victim.kill().unwrap();
        victim.wait().unwrap();
        match Survey::read(&*fs, &dir) {
            Err(Error::NotARun { .. }) => before_anything += 1,
            Err(error) => panic!("{error}"),
            Ok(survey) if survey.finished => panic!("finished after {} kills", forward + backward),
            Ok(survey) if survey.adjoints.is_empty() => forward += 1,
            Ok(_) => backward += 1,
        }
    }
    assert!(spawn(&dir).wait().unwrap().success());

    let survey = Survey::read(&*fs, &dir).unwrap();
    assert!(survey.finished && survey.verify(&fs).iter().all(|finding| finding.contains("journal line")));
    let mut heat = Heat::new(CELLS);
    Run::open(&dir).unwrap().resume(&mut heat).unwrap();
    assert_eq!(bits(&heat), uninterrupted(CELLS, STEPS));
    println!("{before_anything} kills before there was a run, {forward} forward, {backward} backward");
}

fn spawn(dir: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::victim", "--ignored", "--test-threads=1"])
        .env(DIR, dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
