use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::{io, thread};

use ebbtide_snapshot::fs::{Disks, Entry, FileSystem, InputFile, LockGuard, OutputFile};
use ebbtide_snapshot::{Disk, Error, Place, STAGING_BUFFERS, State};

/// A disk whose writes wait for a gate and can be made to fail.
#[derive(Debug, Default)]
pub struct Gated {
    closed: Mutex<bool>,
    changed: Condvar,
    failing: AtomicBool,
    reads: AtomicU64,
    /// How many new directories will be found to exist.
    taken_dirs: AtomicU64,
    /// Whether nothing can be written.
    pub read_only: AtomicBool,
}

impl Gated {
    fn writable(&self) -> io::Result<()> {
        match self.read_only.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            false => Ok(()),
        }
    }

    fn set_closed(&self, closed: bool) {
        *self.closed.lock().unwrap() = closed;
        self.changed.notify_all();
    }
}

impl FileSystem for Gated {
    fn create(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        self.writable()?;
        let mut closed = self.closed.lock().unwrap();
        while *closed {
            closed = self.changed.wait(closed).unwrap();
        }
        if self.failing.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Disks.create(file)
    }
    fn open(&self, file: &Path) -> io::Result<Box<dyn InputFile>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Disks.open(file)
    }
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Disks.create_dir(dir)
    }
    fn create_new_dir(&self, dir: &Path) -> io::Result<()> {
        let taken = |left: u64| left.checked_sub(1);
        match self.taken_dirs.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => Disks.create_new_dir(dir),
        }
    }
    fn append(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        self.writable()?;
        Disks.append(file)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disks.rename(from, to)
    }
    fn remove(&self, file: &Path) -> io::Result<()> {
        self.writable()?;
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
        self.writable()?;
        Disks.lock(file)
    }
}

fn store(disk: &mut Disk, slot: usize, step: u64) -> Result<(), Error> {
    disk.begin(slot)?.put("x", &[step as f64; 10])?;
    disk.commit(slot, step)
}

fn value(disk: &mut Disk, slot: usize) -> f64 {
    disk.load(slot).unwrap().get_vec::<f64>("x").unwrap()[9]
}

fn gated() -> (tempfile::TempDir, Arc<Gated>, Disk) {
    let dir = tempfile::tempdir().unwrap();
    let fs = Arc::new(Gated::default());
    let disk = Disk::scratch_on(fs.clone(), dir.path()).unwrap();
    (dir, fs, disk)
}

#[test]
fn every_slot_gives_back_its_own_state() {
    let (dir, fs, mut disk) = gated();
    for step in 0..20 {
        store(&mut disk, step as usize, step).unwrap();
    }
    store(&mut disk, 4, 104).unwrap();
    disk.discard(5).unwrap();
    for slot in (0..20).rev().filter(|&slot| slot != 5) {
        let expected = if slot == 4 { 104.0 } else { slot as f64 };
        assert_eq!(value(&mut disk, slot), expected);
    }
    assert!(matches!(disk.load(5), Err(Error::EmptySlot { slot: 5 })));
    assert_eq!(disk.bytes(), 19 * 80);
    disk.flush().unwrap();
    let files = || walk(dir.path());
    assert_eq!(files(), 19, "dropped and superseded files are gone");
    assert!(fs.reads.load(Ordering::Relaxed) > 0);
    drop(disk);
    assert_eq!(files(), 0);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The number of files, beside locks.
fn walk(dir: &Path) -> usize {
    let entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let count = |path: &std::path::PathBuf| match path.is_dir() {
        true => walk(path),
        false => usize::from(!path.ends_with("lock")),
    };
    entries.iter().map(count).sum()
}

#[test]
fn a_state_still_in_the_queue_is_loaded_from_there() {
    let (_dir, fs, mut disk) = gated();
    fs.set_closed(true);
    store(&mut disk, 0, 7).unwrap();
    assert_eq!(value(&mut disk, 0), 7.0);
    assert_eq!(fs.reads.load(Ordering::Relaxed), 0);
    fs.set_closed(false);
    disk.flush().unwrap();
}

#[test]
fn a_slow_disk_makes_the_run_wait_instead_of_filling_memory() {
    let (_dir, fs, mut disk) = gated();
    fs.set_closed(true);
    for step in 0..STAGING_BUFFERS {
        store(&mut disk, step, step as u64).unwrap();
    }
    let opened = Arc::new(AtomicBool::new(false));
    let witness = Arc::clone(&opened);
    let run = thread::spawn(move || {
        store(&mut disk, 9, 9).unwrap();
        assert!(witness.load(Ordering::SeqCst), "it went on without a free buffer");
        disk.flush().unwrap();
    });
    // Time for the thread to go wrong; a right one passes however long this takes.
    (0..10_000).for_each(|_| thread::yield_now());
    opened.store(true, Ordering::SeqCst);
    fs.set_closed(false);
    run.join().unwrap();
}

#[test]
fn a_prefetched_state_is_read_once() {
    let (_dir, fs, mut disk) = gated();
    for step in 0..8 {
        store(&mut disk, step as usize, step).unwrap();
    }
    disk.flush().unwrap();
    for slot in 0..4 {
        let before = fs.reads.load(Ordering::Relaxed);
        disk.prefetch(slot);
        disk.prefetch(slot);
        assert_eq!(value(&mut disk, slot), slot as f64);
        assert_eq!(value(&mut disk, slot), slot as f64);
        assert_eq!(fs.reads.load(Ordering::Relaxed), before + 1);
    }
    // A prefetch of a slot that then changes does not bring back the old state.
    disk.prefetch(5);
    store(&mut disk, 5, 105).unwrap();
    assert_eq!(value(&mut disk, 5), 105.0);
}

#[test]
fn a_failed_write_is_reported_and_tried_again_and_nothing_is_lost() {
    let (dir, fs, mut disk) = gated();
    store(&mut disk, 0, 1).unwrap();
    disk.flush().unwrap();
    fs.failing.store(true, Ordering::Relaxed);
    for slot in 1..=STAGING_BUFFERS {
        // The queue takes them all before the first failure is reported.
        fs.set_closed(true);
        let stored = store(&mut disk, slot, 10 + slot as u64);
        fs.set_closed(false);
        if stored.is_err() {
            break;
        }
    }
    let error = disk.flush().unwrap_err();
    assert!(error.to_string().starts_with("could not create"), "{error}");
    // With every buffer taken by a state that could not be written, all states can still be read.
    assert_eq!(value(&mut disk, 0), 1.0);
    assert_eq!(value(&mut disk, 1), 11.0);
    assert!(disk.flush().is_err(), "it was tried again, and failed again");
    fs.failing.store(false, Ordering::Relaxed);
    disk.flush().unwrap();
    let written = disk.held().len();
    assert_eq!(walk(dir.path()), written);
    for (slot, step) in disk.held() {
        assert_eq!(value(&mut disk, slot), step as f64);
    }
}

#[test]
fn a_failed_write_of_a_state_that_is_dropped_is_not_tried_again() {
    let (dir, fs, mut disk) = gated();
    fs.failing.store(true, Ordering::Relaxed);
    store(&mut disk, 1, 2).unwrap();
    disk.flush().unwrap_err();
    disk.discard(1).unwrap();
    fs.failing.store(false, Ordering::Relaxed);
    disk.flush().unwrap();
    assert_eq!(walk(dir.path()), 0);
}

#[test]
fn indices_out_of_reason_are_refused() {
    let (_dir, _fs, mut disk) = gated();
    assert!(matches!(disk.begin(usize::MAX), Err(Error::NoSuchSlot { .. })));
    assert!(matches!(disk.commit(0, 0), Err(Error::EmptySlot { slot: 0 })));
    let _: Option<&State> = disk.load(3).ok();
}

#[test]
fn a_disk_that_failed_leaves_nothing_behind() {
    let (dir, fs, mut disk) = gated();
    for step in 0..4 {
        store(&mut disk, step as usize, step).unwrap();
    }
    disk.flush().unwrap();
    fs.failing.store(true, Ordering::Relaxed);
    store(&mut disk, 4, 4).unwrap();
    assert!(disk.flush().unwrap_err().to_string().contains("could not create"));
    // What a write that was cut off leaves.
    std::fs::write(folder(&dir).join("00000004.safetensors.tmp"), b"half").unwrap();
    drop(disk);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn two_staging_buffers_are_enough_to_write_behind_and_read_ahead() {
    let (_dir, fs, disk) = gated();
    let mut disk = disk.staging_buffers(2);
    for step in 0..8 {
        store(&mut disk, step as usize, step).unwrap();
    }
    disk.flush().unwrap();
    for slot in (0..8).rev() {
        assert_eq!(value(&mut disk, slot), slot as f64);
        if slot > 0 {
            disk.prefetch(slot - 1);
        }
        disk.discard(slot).unwrap();
    }
    assert!(fs.reads.load(Ordering::Relaxed) <= 8, "no state was read twice");
}

#[test]
fn room_that_was_reserved_takes_all_arrays() {
    let mut state = State::new();
    state.reserve(3 * 800).unwrap();
    for name in ["a", "b", "c"] {
        state.put(name, &[1.5; 100]).unwrap();
    }
    assert_eq!((state.bytes(), state.get_vec::<f64>("c").unwrap()), (2400, vec![1.5; 100]));
}

/// The folder of the one disk in a directory.
fn folder(dir: &tempfile::TempDir) -> std::path::PathBuf {
    std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_state_of_another_launch_is_an_error() {
    let ((dir, _, mut disk), (other_dir, _, mut other)) = (gated(), gated());
    for step in 0..8 {
        store(&mut disk, step as usize, step).unwrap();
        other.begin(step as usize).unwrap().put("x", &[-1.0; 10]).unwrap();
        other.commit(step as usize, step).unwrap();
    }
    disk.flush().unwrap();
    other.flush().unwrap();
    // The same slot, the same step, the same file.
    let file = "00000001.safetensors";
    std::fs::copy(folder(&other_dir).join(file), folder(&dir).join(file)).unwrap();
    let error = disk.load(1).err().unwrap().to_string();
    assert!(error.contains("belongs to another run"), "{error}");
    assert_eq!(value(&mut disk, 2), 2.0);
}

#[test]
fn a_folder_that_another_launch_has_is_not_shared() {
    let dir = tempfile::tempdir().unwrap();
    let fs = Arc::new(Gated { taken_dirs: AtomicU64::new(3), ..Gated::default() });
    let mut disk = Disk::scratch_on(fs.clone(), dir.path()).unwrap();
    assert_eq!(fs.taken_dirs.load(Ordering::Relaxed), 0, "it asked until the folder was its own");
    store(&mut disk, 0, 7).unwrap();
    assert_eq!(value(&mut disk, 0), 7.0);
}

/// What a process leaves that is killed with states on disk.
fn abandoned(parent: &Path, files: &[&str]) -> std::path::PathBuf {
    let dir = parent.join("ebbtide-scratch-0123456789abcdef");
    std::fs::create_dir(&dir).unwrap();
    for file in files {
        std::fs::write(dir.join(file), "").unwrap();
    }
    dir
}

#[test]
fn what_killed_launches_left_goes_with_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let left = abandoned(dir.path(), &["lock", "00000000.safetensors", "00000001.safetensors.tmp"]);
    drop(Disk::scratch(dir.path()).unwrap());
    assert!(!left.exists());
}

#[test]
fn the_folder_of_a_launch_that_lives_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut disks: Vec<Disk> = (0..4).map(|_| Disk::scratch(dir.path()).unwrap()).collect();
    for (step, disk) in disks.iter_mut().enumerate() {
        for slot in 0..8 {
            store(disk, slot, step as u64).unwrap();
        }
        disk.flush().unwrap();
    }
    drop(Disk::scratch(dir.path()).unwrap());
    for (step, disk) in disks.iter_mut().enumerate() {
        (0..8).for_each(|slot| assert_eq!(value(disk, slot), step as f64));
    }
    drop(disks);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_without_a_lock_or_with_something_else_in_it_stays() {
    for files in [&["00000000.safetensors"][..], &["lock", "00000000.safetensors", "thesis.tex"]] {
        let dir = tempfile::tempdir().unwrap();
        let left = abandoned(dir.path(), files);
        drop(Disk::scratch(dir.path()).unwrap());
        assert_eq!(std::fs::read_dir(&left).unwrap().count(), files.len());
    }
}

/// Many make folders at once, each of which clears away what seems abandoned: nobody loses one that is in use.
#[test]
fn launches_that_begin_together_leave_each_other_alone() {
    let dir = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let parent = dir.path();
            scope.spawn(move || {
                for round in 0..25 {
                    let mut disk = Disk::scratch(parent).unwrap().staging_buffers(1);
                    let step = thread * 100 + round;
                    store(&mut disk, 0, step).unwrap();
                    store(&mut disk, 1, step + 1000).unwrap();
                    disk.flush().unwrap();
                    assert_eq!(value(&mut disk, 0), step as f64);
                }
            });
        }
    });
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
