//! States that travel, on a device that copies as late as it may, and on disks that fail.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use ebbtide_autodiff::Request;
use ebbtide_ir::{Access, Binary, Block, Builder, Combine, Facts, Literal, Outcome, Program, Type};
use ebbtide_snapshot::fs::{Disks, Entry, InputFile, LockGuard, OutputFile};

use super::*;
use crate::device::{Backend, Start};
use crate::testing::{FakeMemory, Travel, device_with_memory};
use crate::{Arg, Budget, CompiledGradient, Plan, Ran, Rate, Rates, interpreter};

thread_local! {
    static FILES: RefCell<Arc<dyn FileSystem>> = RefCell::new(Arc::new(Disks));
}

pub(super) fn file_system() -> Arc<dyn FileSystem> {
    FILES.with(|files| files.borrow().clone())
}

/// The interpreter, until it breaks down.
struct Fragile {
    interpreter: Device,
    /// It breaks down after this many segments.
    left: Arc<AtomicI64>,
}

struct Code(Arc<dyn Executable>, Arc<AtomicI64>);

// SAFETY: all clauses by the interpreter's code.
unsafe impl Executable for Code {
    fn source(&self) -> Option<&str> {
        None
    }

    fn run(&self, segment: usize, frame: &mut Frame, start: Start<'_>) -> Result<Outcome> {
        match self.1.fetch_sub(1, Ordering::Relaxed) {
            ..=0 => Err(Error::OutOfMemory { bytes: 1 }),
            _ => self.0.run(segment, frame, start),
        }
    }
}

// SAFETY (*Faithful code*): the interpreter's, of what is given; (*One memory*): the host's, for all calls.
unsafe impl Backend for Fragile {
    fn name(&self) -> &str {
        "fragile"
    }

    fn compile(
        &self,
        program: &Arc<Program>,
        facts: &Arc<Facts>,
        segments: &[&Block],
    ) -> Result<Arc<dyn Executable>> {
        let code = self.interpreter.backend().compile(program, facts, segments)?;
        Ok(Arc::new(Code(code, self.left.clone())))
    }
}

/// A device that copies as late as it may, and computes with this code.
fn late(code: &Device) -> Device {
    device_with_memory("late", FakeMemory::new(Travel::WhenWaitedFor), code)
}

fn apart() -> Device {
    late(&interpreter())
}

fn fragile(left: Arc<AtomicI64>) -> Device {
    late(&Device::new(Arc::new(Fragile { interpreter: interpreter(), left })))
}

/// `x = 0.3 x y + 0.1; y = 0.9 y + 0.01 x x` again and again: a state of two arrays, and a tape.
fn program() -> Program {
    let mut b = Builder::new("swing");
    let [x, y] = ["x", "y"].map(|name| b.array(name, Type::F64, 1, Access::Write));
    let steps = b.scalar("steps", Type::Index);
    let loss = b.array("loss", Type::F64, 0, Access::Write);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    let [third, tenth, nine, small] = [0.3, 0.1, 0.9, 0.01].map(|c| b.literal(Literal::from(c)));
    b.begin_for("t", zero, steps);
    let i = b.begin_par(&[("i", zero, n)]);
    let (old_x, old_y) = (b.load(x, &i), b.load(y, &i));
    let product = b.binary(Binary::Mul, old_x, old_y);
    let scaled = b.binary(Binary::Mul, third, product);
    let new_x = b.binary(Binary::Add, scaled, tenth);
    b.store(x, &i, new_x);
    let square = b.binary(Binary::Mul, old_x, old_x);
    let [damped, pushed] = [(nine, old_y), (small, square)].map(|(c, v)| b.binary(Binary::Mul, c, v));
    let new_y = b.binary(Binary::Add, damped, pushed);
    b.store(y, &i, new_y);
    b.end_par();
    b.end_loop(None);
    let i = b.begin_par(&[("i", zero, n)]);
    let (last_x, last_y) = (b.load(x, &i), b.load(y, &i));
    let term = b.binary(Binary::Mul, last_x, last_y);
    b.update(Combine::Add, loss, &[], term);
    b.end_par();
    b.finish().unwrap()
}

struct Case {
    device: Device,
    gradient: CompiledGradient,
}

const LENGTH: usize = 600;
const STATE: u64 = 16 * LENGTH as u64;
const STEPS: usize = 70;

impl Case {
    fn on(device: Device) -> Case {
        let request = Request { of: "loss".into(), wrt: vec!["x".into(), "y".into()], ..Request::default() };
        let gradient = CompiledGradient::new(&program(), &request, &device, Budget::StoreAll).unwrap();
        Case { device, gradient }
    }

    /// With room for this many states of memory.
    fn with(&self, states: u64, tiers: Tiers) -> CompiledGradient {
        let fixed = self.run(&self.gradient, |g, args| g.plan(args)).unwrap().0.fixed_bytes;
        let budget = Budget::Bytes(fixed + states * (STATE + (16 << 10)));
        self.gradient.with_budget(budget).with_tiers(tiers)
    }

    fn run<T>(
        &self,
        gradient: &CompiledGradient,
        what: impl FnOnce(&CompiledGradient, &mut [Arg<'_>]) -> Result<T>,
    ) -> Result<(T, Vec<u64>)> {
        let values: Vec<f64> = (0..LENGTH).map(|k| 0.5 + (k as f64).sin()).collect();
        let [mut x, mut y] = [1.0, 0.7]
            .map(|c| self.device.array(&values.iter().map(|v| c * v).collect::<Vec<f64>>()).unwrap());
        let mut loss = self.device.scalar(0.0f64).unwrap();
        let [mut dx, mut dy] = [0, 1].map(|_| self.device.zeros::<f64, 1>([LENGTH]).unwrap());
        let mut args = [
            Arg::Write(x.any_mut()),
            Arg::Write(y.any_mut()),
            Arg::Scalar(Literal::index(STEPS as i64)),
            Arg::Write(loss.any_mut()),
            Arg::Write(dx.any_mut()),
            Arg::Write(dy.any_mut()),
        ];
        let answer = what(gradient, &mut args)?;
        Ok((answer, dx.to_vec().iter().chain(&dy.to_vec()).map(|v| v.to_bits()).collect()))
    }

    fn launch(&self, gradient: &CompiledGradient) -> Result<(Ran, Vec<u64>)> {
        self.run(gradient, |g, args| g.launch(args))
    }

    fn plan(&self, gradient: &CompiledGradient) -> Plan {
        self.run(gradient, |g, args| g.plan(args)).unwrap().0
    }
}

fn fast() -> Rates {
    let rate = |bandwidth| Rate { latency: 1e-9, bandwidth };
    Rates { memory: rate(1e10), host: rate(1e10), disk_write: rate(1e10), disk_read: rate(1e10) }
}

#[test]
#[cfg_attr(miri, ignore = "gradients of many steps: hours under miri")]
fn states_travel_beside_the_computation_without_a_change_of_one_bit() {
    let case = Case::on(apart());
    let expected = case.launch(&case.gradient).unwrap().1;
    let dir = tempfile::tempdir().unwrap();
    let mut seen = [0, 0];
    for states in [2, 3, 5, 8] {
        for (host, disk) in [(Some(3), 0), (Some(1000), 0), (None, 1000), (Some(4), 1000), (Some(9), 1000)] {
            let mut tiers = Tiers::new().disk(dir.path(), disk * STATE).rates(fast());
            if let Some(host) = host {
                tiers = tiers.host_memory(host * (STATE + (8 << 10)));
            }
            let g = case.with(states, tiers);
            let plan = case.plan(&g);
            for device_meter in [case.device.meter(), case.device.host_meter()] {
                device_meter.reset_peak();
            }
            let before = case.device.meter().live();
            // Twice: the second finds what the first left.
            for _ in 0..2 {
                let (ran, bits) = case.launch(&g).unwrap();
                assert_eq!(bits, expected, "{}", plan.explain());
                let away = plan.loops[0].away;
                let [host, disk] = [away.host_slots, away.disk_slots].map(|n| n * STATE);
                assert_eq!(
                    [ran.to_host, ran.from_host, ran.to_disk, ran.from_disk],
                    [host, host, disk, disk]
                );
                seen[0] += away.host_slots;
                seen[1] += away.disk_slots;
            }
            let arrays = (4 * LENGTH * 8 + 8) as u64;
            let used = case.device.meter().peak() - before - arrays;
            assert!(used <= plan.peak_bytes(), "{used} bytes:\n{}", plan.explain());
            let host_peak = case.device.host_meter().peak();
            assert!(host_peak <= plan.host_bytes(), "{host_peak} bytes:\n{}", plan.explain());
            g.release();
            assert_eq!((g.held_bytes(), case.device.host_meter().live()), (0, 0));
            assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
        }
    }
    assert!(seen[0] > 20 && seen[1] > 20, "{seen:?}");
}

/// A disk that fills up, or that gives back other bytes than it was given.
#[derive(Debug)]
struct Bad {
    /// Files that can be made.
    room: AtomicU64,
    damage: Option<usize>,
}

struct Flipped {
    file: Box<dyn InputFile>,
    at: usize,
}

impl InputFile for Flipped {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read(bytes)?;
        if bytes.len() > self.at {
            bytes[self.at] ^= 1;
        }
        Ok(())
    }
}

impl FileSystem for Bad {
    fn create(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        match self.room.load(Ordering::Relaxed) {
            0 => Err(io::ErrorKind::StorageFull.into()),
            room => {
                self.room.store(room - 1, Ordering::Relaxed);
                Disks.create(file)
            }
        }
    }
    fn open(&self, file: &Path) -> io::Result<Box<dyn InputFile>> {
        let file = Disks.open(file)?;
        Ok(match self.damage {
            Some(at) => Box::new(Flipped { file, at }),
            None => file,
        })
    }
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Disks.create_dir(dir)
    }
    fn create_new_dir(&self, dir: &Path) -> io::Result<()> {
        Disks.create_new_dir(dir)
    }
    fn append(&self, file: &Path) -> io::Result<Box<dyn OutputFile>> {
        Disks.append(file)
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

#[test]
#[cfg_attr(miri, ignore = "gradients of many steps: hours under miri")]
fn a_full_or_lying_disk_is_an_error_that_names_the_file_and_never_a_wrong_gradient() {
    for device in [interpreter(), apart()] {
        let case = Case::on(device);
        let expected = case.launch(&case.gradient).unwrap().1;
        let dir = tempfile::tempdir().unwrap();
        let g = case.with(4, Tiers::new().disk(dir.path(), 1 << 30).rates(fast()));
        assert!(case.plan(&g).loops[0].away.disk_slots > 4);
        let broken = |room, damage| {
            let fs: Arc<dyn FileSystem> = Arc::new(Bad { room: AtomicU64::new(room), damage });
            FILES.with(|files| *files.borrow_mut() = fs);
            let launched = case.launch(&g);
            FILES.with(|files| *files.borrow_mut() = Arc::new(Disks));
            assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "files were left");
            launched
        };
        for room in [0, 1, 3] {
            let error = broken(room, None).unwrap_err().to_string();
            assert!(error.contains(".safetensors") && error.contains("free room there"), "{error}");
        }
        for at in [0, 3, 40, 4097, 9000] {
            match broken(1000, Some(at)) {
                Ok((_, bits)) => assert_eq!(bits, expected, "byte {at} is of no account"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains(".safetensors") && error.contains("launch again"), "{error}");
                }
            }
        }
        assert!(broken(1000, Some(4097)).is_err(), "what was damaged was read");
        assert_eq!(broken(1000, None).unwrap().1, expected, "nothing of it lasts");
    }
}

#[test]
#[cfg_attr(miri, ignore = "gradients of many steps: hours under miri")]
fn a_durable_run_takes_its_states_along_wherever_they_are() {
    let left = Arc::new(AtomicI64::new(1 << 40));
    let case = Case::on(fragile(left.clone()));
    let expected = case.launch(&case.gradient).unwrap().1;
    let slots = tempfile::tempdir().unwrap();
    let passage = 4 * STATE + (16 << 10);
    for (states, host, disk) in [(4, 1000, 0), (4, 0, 1000), (2, 3, 1000)] {
        let mut tiers = Tiers::new().disk(slots.path(), disk * STATE).rates(fast());
        if host > 0 {
            tiers = tiers.host_memory(passage + host * STATE);
        }
        let g = case.with(states, tiers);
        left.store(1 << 40, Ordering::Relaxed);
        let (ran, _) = case.launch(&g).unwrap();
        assert_eq!((ran.to_host > 0, ran.to_disk > 0), (host > 0, disk > 0), "{}", case.plan(&g).explain());
        let segments = (1 << 40) - left.load(Ordering::Relaxed);
        for until in [segments / 3, segments - 5] {
            let dir = tempfile::tempdir().unwrap();
            let launch = |segments: i64| {
                left.store(segments, Ordering::Relaxed);
                let every = std::time::Duration::ZERO;
                case.run(&g, |g, args| g.launch_durable(&dir.path().join("run"), every, args))
            };
            assert!(launch(until).is_err());
            let (again, bits) = launch(1 << 40).unwrap();
            assert!(bits == expected, "broken down after {until} of {segments}");
            assert_eq!(again, ran, "both together did what one does");
            assert!((1 << 40) - left.load(Ordering::Relaxed) < segments);
        }
    }
}
