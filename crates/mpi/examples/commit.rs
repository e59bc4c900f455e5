//! What a frontier of a durable gradient costs on the ranks of a job, next to a file with as many bytes.
//!
//! `mpirun -n 2 --bind-to none target/release/examples/commit DIR`: the directory is on the disk that is measured.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ebbtide::prelude::*;
use ebbtide_grid::{Error, Grid, Part, Place3, Result, Team};
use ebbtide_mpi::Mpi;
use ebbtide_snapshot::fs::{Disks, Entry, FileSystem, InputFile, LockGuard, OutputFile};
use one_machine::advance;

#[allow(dead_code)]
#[path = "../../../examples/survey.rs"]
mod one_machine;

/// Cells along each side of the volume.
const N: usize = 128;
/// Time steps.
const STEPS: usize = 30;
/// How often everything is run.
const TURNS: usize = 5;

#[program]
fn energy(
    p: &mut Array3<f32>,
    q: &mut Array3<f32>,
    c: &Array3<f32>,
    at: &Place3,
    steps: usize,
    sum: &mut Array0<f64>,
) {
    for _t in 0..steps {
        exchange(p);
        advance(p, q, c, at);
        swap(p, q);
    }
    for (i, j, k) in par(
        at.x.first..at.x.first + at.x.count,
        at.y.first..at.y.first + at.y.count,
        at.z.first..at.z.first + at.z.count,
    ) {
        let value = p[[i, j, k]] as f64;
        sum[[]] += value * value;
    }
    all_sum(sum);
}

/// Disks that count what is written.
#[derive(Debug, Default)]
struct Counted {
    bytes: Arc<AtomicU64>,
    frontiers: Arc<AtomicU64>,
}

/// A file whose bytes are counted; the line of a journal that is on the disk ends a frontier.
struct CountedFile {
    file: Box<dyn OutputFile>,
    bytes: Arc<AtomicU64>,
    frontiers: Option<Arc<AtomicU64>>,
}

impl OutputFile for CountedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write(bytes)
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Some(frontiers) = &self.frontiers {
            frontiers.fetch_add(1, Ordering::Relaxed);
        }
        self.file.sync()
    }
}

impl Counted {
    fn counted(&self, path: &Path, file: Box<dyn OutputFile>) -> Box<dyn OutputFile> {
        let journal = path.file_stem().is_some_and(|stem| stem == "journal");
        let frontiers = journal.then(|| self.frontiers.clone());
        Box::new(CountedFile { file, bytes: self.bytes.clone(), frontiers })
    }
}

impl FileSystem for Counted {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Disks.create_dir(dir)
    }

    fn create_new_dir(&self, dir: &Path) -> io::Result<()> {
        Disks.create_new_dir(dir)
    }

    fn create(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        Ok(self.counted(file, Disks.create(file)?))
    }

    fn append(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        Ok(self.counted(file, Disks.append(file)?))
    }

    fn open(&self, file: &Path) -> io::Result<Box<dyn InputFile>> {
        Disks.open(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disks.rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        Disks.remove(file)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        Disks.remove_dir(dir)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Disks.sync_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        Disks.list(dir)
    }

    fn lock(&self, file: &Path) -> io::Result<Option<LockGuard>> {
        Disks.lock(file)
    }
}

/// What a turn took, on the slowest rank.
#[derive(Clone, Copy)]
struct Turn {
    plain: f64,
    durable: f64,
    /// As many bytes as the durable run wrote, in as many files as it had frontiers.
    files: f64,
    frontiers: u64,
    bytes: u64,
}

/// Seconds since `begun` on the slowest part.
fn slowest(part: &Part, begun: Instant) -> Result<f64> {
    let own = begun.elapsed().as_nanos() as u64;
    let all = part.gather_bytes(&own.to_le_bytes())?;
    let words = all.iter().filter_map(|bytes| Some(u64::from_le_bytes(bytes.as_slice().try_into().ok()?)));
    Ok(words.max().unwrap_or(own) as f64 * 1e-9)
}

/// Writes so many files with so many bytes in all, each to the disk.
fn files(folder: &Path, count: u64, bytes: u64) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let content = vec![0x5a; (bytes / count.max(1)) as usize];
    for k in 0..count {
        let mut file = Disks.create(&folder.join(format!("file-{k}")))?;
        file.write(&content)?;
        file.sync()?;
        Disks.sync_dir(folder)?;
    }
    std::fs::remove_dir_all(folder)
}

fn turn(gradient: &CompiledGrad<energy>, device: &Device, part: &Part, dir: &Path) -> Result<Turn> {
    let c = part.fill(device, |_| 0.3)?;
    let p = part.fill(device, |[x, y, z]| ((x + 2 * y + 3 * z) as f32).sin())?;
    let (q, at, sum) = (part.zeros(device)?, part.place3()?, device.zeros([])?);
    part.barrier()?;
    let begun = Instant::now();
    gradient.launch((&p, &q, &c, &at, STEPS, &sum))?;
    let plain = slowest(part, begun)?;
    let disks = Arc::new(Counted::default());
    let begun = Instant::now();
    gradient.launch_durable_on(disks.clone(), dir, Duration::ZERO, (&p, &q, &c, &at, STEPS, &sum))?;
    let durable = slowest(part, begun)?;
    let [frontiers, bytes] = [&disks.frontiers, &disks.bytes].map(|count| count.load(Ordering::Relaxed));
    part.barrier()?;
    let begun = Instant::now();
    let own = dir.with_extension(format!("files-{}", part.number()));
    files(&own, frontiers, bytes).map_err(|error| Error::Part(format!("{}: {error}", own.display())))?;
    Ok(Turn { plain, durable, files: slowest(part, begun)?, frontiers, bytes })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mpi = Mpi::start()?;
    let dir = std::env::args_os().nth(1).map(PathBuf::from).ok_or("say where: mpirun -n 2 commit DIR")?;
    let grid = Grid::new(&[N, N, N])?.even(&[mpi.ranks(), 1, 1])?.halo(1)?;
    let device = Device::cpu();
    let gradient =
        energy().value_and_grad(energy::sum).wrt(energy::c).memory(Bytes::mib(64)).compile(&device)?;
    let mut turns = Vec::new();
    for k in 0..TURNS {
        let own = dir.join(format!("run-{k}"));
        let team: Team = mpi.team(&grid);
        turns.push(team.run(|part| turn(&gradient, &device, part, &own))?[0]);
    }
    if mpi.rank() == 0 {
        println!("{N}³ cells of f32, {STEPS} steps, {} ranks, a budget of 64 MiB each", mpi.ranks());
        for turn in turns {
            let each = 1e3 * (turn.durable - turn.plain) / turn.frontiers as f64;
            let file = 1e3 * turn.files / turn.frontiers as f64;
            println!(
                "{} frontiers of {:.1} MiB on each rank: {each:.2} ms each, {file:.2} ms for a file as long, ratio {:.2}",
                turn.frontiers,
                turn.bytes as f64 / turn.frontiers.max(1) as f64 / 1048576.0,
                each / file,
            );
        }
    }
    Ok(())
}
