//! The hand-written C: compiled with the flags that suit it best, called on one or more threads.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ebbtide_math::c::{Dialect, Item, Shape, library};
use ebbtide_math::{Format, Function, Kernel};

type Workload = unsafe extern "C" fn(*const *mut u8, *const i64, i64, i32, i32, *mut [i32; 2]);

/// What hand-written code is given: everything that Ebbtide gives up for repeatability included.
const FLAGS: [&str; 7] = [
    "-O3",
    "-march=native",
    "-mprefer-vector-width=512",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-w",
];

/// The compiled reference.
pub struct Reference {
    library: libloading::Library,
    path: PathBuf,
    /// Where it was built; it goes with the reference.
    _folder: Option<tempfile::TempDir>,
}

impl Reference {
    /// Compiles the reference.
    pub fn build() -> Result<Reference, Box<dyn Error>> {
        let lanes = if is_wide() { 8 } else { 4 };
        let item = |function, shape| Item { kernel: Kernel::Function(function), shape };
        let of_doubles = Shape::new(Format::F64, lanes)?;
        let functions = [Function::Tanh, Function::Sin, Function::Cos].map(|f| item(f, of_doubles));
        // For the sake of the type of its vectors.
        let abs = item(Function::Abs, Shape::new(Format::F32, 2 * lanes)?);
        let text = library(Dialect::C, &[&functions[..], &[abs]].concat())?
            + include_str!("reference.c")
            + include_str!("gradients.c");
        let folder = tempfile::tempdir()?;
        let (source, built) = (folder.path().join("reference.c"), folder.path().join("reference.so"));
        std::fs::write(&source, text)?;
        let status = Command::new("cc")
            .args(FLAGS)
            .args(["-fPIC", "-shared", "-o"])
            .arg(&built)
            .arg(&source)
            .status()?;
        if !status.success() {
            return Err("the reference does not compile".into());
        }
        Ok(Reference { _folder: Some(folder), ..Reference::at(&built)? })
    }

    /// Loads a reference that was built before.
    pub fn at(path: &Path) -> Result<Reference, Box<dyn Error>> {
        // SAFETY: our own text, without initialisers.
        let library = unsafe { libloading::Library::new(path) }?;
        Ok(Reference { library, path: path.to_path_buf(), _folder: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The time that this process has spent on processors.
    pub fn processor_time(&self) -> Duration {
        // SAFETY: the reference has it, with this signature.
        let now = unsafe { self.library.get::<unsafe extern "C" fn() -> i64>(b"processor_time") };
        // SAFETY: it only reads a clock.
        Duration::from_nanos(now.map_or(0, |now| unsafe { now() }) as u64)
    }

    /// Runs a workload on so many threads.
    pub fn run(
        &self,
        name: &str,
        arrays: &mut [Vec<u64>],
        extents: [i64; 2],
        steps: i64,
        threads: i32,
    ) -> Result<(), Box<dyn Error>> {
        // SAFETY: all workloads have this signature.
        let workload = *unsafe { self.library.get::<Workload>(name.as_bytes()) }?;
        let addresses: Vec<usize> = arrays.iter_mut().map(|a| aligned(a) as usize).collect();
        let barrier = Box::new([0i32; 2]);
        let at = Box::into_raw(barrier) as usize;
        std::thread::scope(|scope| {
            let go = |thread: i32| {
                let pointers: Vec<*mut u8> = addresses.iter().map(|a| *a as *mut u8).collect();
                // SAFETY: the arrays have the extents that the workload is told, and outlive the scope; threads
                // write disjoint parts between barriers.
                unsafe {
                    workload(pointers.as_ptr(), extents.as_ptr(), steps, thread, threads, at as *mut [i32; 2])
                };
            };
            for thread in 1..threads {
                scope.spawn(move || go(thread));
            }
            go(0);
        });
        // SAFETY: it came from a box above, and all threads are done with it.
        drop(unsafe { Box::from_raw(at as *mut [i32; 2]) });
        Ok(())
    }
}

/// Does this machine have 512-bit vectors?
fn is_wide() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

/// The first byte on a cache line: the reference has the alignment that Ebbtide has.
pub fn aligned(words: &mut [u64]) -> *mut u8 {
    let start = words.as_mut_ptr();
    let skip = (64 - start as usize % 64) % 64;
    start.wrapping_byte_add(skip).cast()
}

/// Zeroed memory for `bytes` bytes with room to align.
pub fn memory(bytes: usize) -> Vec<u64> {
    vec![0; bytes / 8 + 16]
}
