//! How fast states become durable, against plain sequential writes on the same disk in the same run.
//!
//! `cargo run --release -p ebbtide-snapshot --example throughput [DIR] [MIB]`

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::{Budget, Identity, Manifest, Place, RunDir, STAGING_BUFFERS};

type Failure = Box<dyn std::error::Error>;

const STATES: usize = 4;
const ROUNDS: usize = 9;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mebibytes: usize = arguments.next().map_or(Ok(128), |text| text.parse())?;
    let dir = parent.join(format!("ebbtide-throughput-{}", std::process::id()));
    let field: Vec<f64> = (0..mebibytes << 17).map(|i| (i as f64).sin()).collect();
    let raw: Vec<u8> = field.iter().flat_map(|x| x.to_le_bytes()).collect();
    println!("{STATES} states of {mebibytes} MiB each, every one synced; GB/s\n");
    println!("round   plain writes + fsync   durable run   ratio");
    let mut rounds: Vec<[f64; 3]> = Vec::new();
    for round in 1..=ROUNDS {
        let speed = |seconds: f64| (STATES * raw.len()) as f64 / seconds / 1e9;
        // Disks remember what was asked of them a second ago: take turns.
        let (plain, ours) = if round % 2 == 0 {
            let plain = plain(&dir, &raw)?;
            (plain, durable(&dir, &field)?)
        } else {
            let ours = durable(&dir, &field)?;
            (plain(&dir, &raw)?, ours)
        };
        let (plain, ours) = (speed(plain), speed(ours));
        println!("{round:>5} {plain:>22.2} {ours:>13.2} {:>7.2}", ours / plain);
        rounds.push([plain, ours, ours / plain]);
    }
    let median = |column: usize| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
        values.sort_by(f64::total_cmp);
        values[ROUNDS / 2]
    };
    println!("median {:>21.2} {:>13.2} {:>7.2}", median(0), median(1), median(2));
    Ok(())
}

/// Seconds for what anyone would write: large blocks, one after the other, then a sync.
fn plain(dir: &Path, bytes: &[u8]) -> Result<f64, Failure> {
    std::fs::create_dir_all(dir)?;
    let start = Instant::now();
    for state in 0..STATES {
        let mut file = File::create(dir.join(state.to_string()))?;
        for block in bytes.chunks(8 << 20) {
            file.write_all(block)?;
        }
        file.sync_all()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    std::fs::remove_dir_all(dir)?;
    Ok(seconds)
}

/// Seconds for the same states as slots of a durable run: copied, checksummed, written, synced, renamed, journaled.
fn durable(dir: &Path, field: &[f64]) -> Result<f64, Failure> {
    let identity = Identity::new("throughput", "0");
    let manifest =
        Manifest::new(identity, "by hand", None, Budget { slots: 0, block: 1, disk_slots: 0, disk_cost: 1 });
    let mut run = RunDir::create(Arc::new(Disks), dir, manifest)?;
    let (_, mut disk) = run.take_recovered();
    let mut store = |slot: usize| -> Result<(), Failure> {
        disk.begin(slot)?.put("u", field)?;
        Ok(disk.commit(slot, slot as u64)?)
    };
    // The steady state: every buffer has been used once.
    (0..STAGING_BUFFERS).try_for_each(&mut store)?;
    run.flush()?;
    let start = Instant::now();
    (STAGING_BUFFERS..STAGING_BUFFERS + STATES).try_for_each(&mut store)?;
    run.flush()?;
    let seconds = start.elapsed().as_secs_f64();
    drop((run, disk));
    std::fs::remove_dir_all(dir)?;
    Ok(seconds)
}
