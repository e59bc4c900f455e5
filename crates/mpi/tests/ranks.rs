//! Jobs of one to four ranks on this machine, more ranks than cores included. `EBBTIDE_MPIRUN` names another `mpirun`.

use std::path::Path;
use std::process::{Command, Output};

const CHECK: &str = env!("CARGO_BIN_EXE_ebbtide-mpi-check");

fn mpirun(ranks: usize) -> Command {
    let name = std::env::var("EBBTIDE_MPIRUN").unwrap_or_else(|_| "mpirun".to_string());
    let version = Command::new(&name).arg("--version").output().expect("mpirun starts");
    let mut command = Command::new(name);
    let version = String::from_utf8_lossy(&version.stdout);
    if version.contains("Open MPI") || version.contains("OpenRTE") {
        command.args(["--oversubscribe", "--allow-run-as-root"]);
    }
    command.args(["-n", &ranks.to_string()]);
    command
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text").trim().to_string()
}

/// A problem has the same bits in one process without MPI and on one to four ranks.
fn same_bits(problem: &str, cut: &str) {
    let alone = text(Command::new(CHECK).args(["alone", problem, cut]).output().expect("it starts"));
    assert!(alone.split(' ').count() >= 5, "{alone}");
    for ranks in 1..=4 {
        let found = text(mpirun(ranks).args([CHECK, "ranks", problem, cut]).output().expect("mpirun starts"));
        assert_eq!(alone, found, "{problem}, {cut}, {ranks} ranks");
    }
}

#[test]
fn c65_twelve_parts_of_a_line() {
    same_bits("line", "even");
}

#[test]
fn c65_five_uneven_parts_of_a_line() {
    same_bits("line", "uneven");
}

#[test]
fn c65_twelve_parts_of_a_torus() {
    same_bits("torus", "even");
}

#[test]
fn c65_five_uneven_parts_of_a_torus() {
    same_bits("torus", "uneven");
}

#[test]
fn c65_twelve_parts_of_a_volume() {
    same_bits("wave", "even");
}

#[test]
fn c65_five_parts_of_a_volume() {
    same_bits("wave", "uneven");
}

/// A shot per group of ranks: the gradients are added in the order of the shots.
#[test]
fn groups_of_ranks_share_out_shots() {
    same_bits("groups", "");
}

#[test]
fn shots_are_added_in_their_own_order() {
    same_bits("shots", "");
}

/// A job of the demo on so many ranks, small enough for a test.
fn demo(ranks: usize, folder: &Path, more: &[&str]) -> Command {
    let mut command = mpirun(ranks);
    command.arg(env!("CARGO_BIN_EXE_ebbtide"));
    command.args(["demo", "--grid", "32x44", "--sources", "5", "--iterations", "2", "--json"]);
    command.arg("--out").arg(folder.join("out")).args(more);
    command
}

/// What the demo found, to the last bit.
fn figures(output: Output) -> Vec<String> {
    let text = text(output);
    let bits = text.lines().filter(|line| line.contains("misfit") || line.contains("gradient_check"));
    bits.map(str::to_owned).collect()
}

/// The demo spreads its shots over ranks and finds what one rank finds.
#[test]
fn the_demo_has_the_bits_of_one_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |ranks| figures(demo(ranks, folder.path(), &[]).output().expect("mpirun starts"));
    let one = run(1);
    assert!(one.len() >= 3, "{one:?}");
    assert_eq!([run(2), run(4)], [one.clone(), one]);
}

/// Rank 0 is killed at each file operation of the first two evaluations; the job continues on another number of ranks.
#[test]
fn c66_a_durable_demo_continues_on_another_number_of_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = figures(demo(2, folder.path(), &[]).output().expect("mpirun starts"));
    for (k, point) in
        ["before:rename:1", "after:rename:1", "amid:write:2", "after:rename:2"].iter().enumerate()
    {
        let dir = folder.path().join(format!("run-{k}"));
        let durable = ["--durable", dir.to_str().expect("a plain name")];
        let mut first = demo(1 + k, folder.path(), &durable);
        let output = first.env("EBBTIDE_KILL_AT", point).output().expect("mpirun starts");
        assert!(!output.status.success(), "{point} ended nothing");
        let rest = demo(4 - k, folder.path(), &durable).output().expect("mpirun starts");
        assert_eq!(figures(rest), whole, "{point}");
    }
}

/// What rank 0 alone can find out ends the job, with one message.
#[test]
fn a_demo_that_cannot_begin_ends_on_all_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("run");
    let durable = ["--durable", dir.to_str().expect("a plain name")];
    let _figures = figures(demo(2, folder.path(), &durable).output().expect("mpirun starts"));
    let other = [&durable[..], &["--noise", "1"]].concat();
    let output = demo(3, folder.path(), &other).output().expect("mpirun starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(said.matches("was made with other options").count(), 1, "{said}");
}

#[test]
fn a_part_that_fails_ends_the_job_with_its_number() {
    for ranks in [1, 2, 4] {
        let output = mpirun(ranks).args([CHECK, "ranks", "fail"]).output().expect("mpirun starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("part 2") && said.contains("no data"), "{said}");
    }
}

/// A signal on one rank stops the job with the same status on all ranks. Its state is durable, is verified by one process, and the
/// job continues on another number of ranks.
#[test]
fn c66_a_job_that_a_signal_stops_continues_on_another_number_of_ranks() {
    let expected = text(Command::new(CHECK).args(["alone", "durable", "-"]).output().expect("it starts"));
    let folder = tempfile::tempdir().expect("a folder");
    let verify = |dir: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
        text(command.args(["runs", "verify", dir]).output().expect("it starts"))
    };
    for ranks in 1..=4 {
        let dir = folder.path().join(format!("run-{ranks}"));
        let dir = dir.to_str().expect("a plain name");
        let rank = (ranks - 1).to_string();
        let output = mpirun(ranks).args([CHECK, "ranks", "signal", dir, &rank]).output();
        let output = output.expect("mpirun starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "the signal stopped nothing");
        // The first part of that rank.
        let part = (ranks - 1) * 5 / ranks;
        assert_eq!(said.matches(&format!("part {part} was cancelled")).count(), ranks, "{said}");
        let found = verify(dir);
        assert_eq!(found.matches("continues from frontier 1 of all parts").count(), 5, "{found}");
        let args = [CHECK, "ranks", "durable", dir];
        assert_eq!(text(mpirun(5 - ranks).args(args).output().expect("mpirun starts")), expected);
        assert_eq!(verify(dir).matches("the results of all parts are sound").count(), 5);
    }
}

/// The example checks itself against the same parts in one process, and against one machine.
#[test]
fn c65_the_survey_has_the_bits_of_one_process_on_ranks() {
    let survey = Path::new(CHECK).with_file_name("examples").join("survey");
    assert!(
        survey.exists(),
        "`cargo test` builds {}, unless it was asked for one test target",
        survey.display()
    );
    let folder = tempfile::tempdir().expect("a folder");
    let mut said = Vec::new();
    for ranks in 1..=4 {
        said.push(text(mpirun(ranks).arg(&survey).output().expect("mpirun starts")));
        let durable = mpirun(ranks).arg(&survey).arg(folder.path().join("run")).output();
        said.push(text(durable.expect("mpirun starts")));
    }
    assert!(said[0].starts_with("misfit") && said.iter().all(|one| *one == said[0]), "{said:?}");
}

/// Pseudo-random numbers with a fixed seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit
    }
}

/// `EBBTIDE_CASES=200` makes the long run.
#[test]
fn c66_a_rank_that_is_killed_loses_nothing_that_was_committed() {
    let cases: u64 = std::env::var("EBBTIDE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let expected = text(Command::new(CHECK).args(["alone", "durable", "-"]).output().expect("it starts"));
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let mut random = Random(66);
    let (mut killed, mut runs) = (0, 0);
    while killed < cases {
        let dir = folder.path().join(format!("run-{runs}"));
        let dir_text = dir.to_str().expect("a plain name");
        loop {
            let ranks = 1 + random.below(4) as usize;
            let rank = random.below(ranks as u64).to_string();
            let kind = ["before:any", "amid:write", "before:commit", "after:commit", "after:rename"];
            let kind = kind[random.below(5) as usize];
            let most = if kind == "before:any" { 120 } else { 25 };
            let point = format!("{kind}:{}", 1 + random.below(most));
            let args = [CHECK, "ranks", "durable", dir_text, &rank, &point];
            let output = mpirun(ranks).args(args).output().expect("mpirun starts");
            runs += 1;
            if output.status.success() {
                assert_eq!(text(output), expected, "{ranks} ranks");
                break;
            }
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("Error:"), "it failed by itself: {said}");
            killed += 1;
        }
        std::fs::remove_dir_all(&dir).expect("it can be removed");
    }
    println!("{killed} kills in {runs} jobs");
}
