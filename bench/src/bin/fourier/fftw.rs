//! FFTW, opened when the bench runs: input a length and a number of rows, output a plan that transforms complex numbers out of
//! place; and the clock of the processor, which the C library has too.

use std::ffi::{c_int, c_long, c_uint, c_void};

use libloading::Library;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How long FFTW looks for a plan.
#[derive(Clone, Copy)]
pub(crate) enum Planning {
    Measure = 0,
    Estimate = 64,
}

type PlanMany = unsafe extern "C" fn(
    c_int,
    *const c_int,
    c_int,
    *mut c_void,
    *const c_int,
    c_int,
    c_int,
    *mut c_void,
    *const c_int,
    c_int,
    c_int,
    c_int,
    c_uint,
) -> *mut c_void;

/// FFTW's library for numbers of the type `T`.
pub(crate) struct Fftw<T> {
    plan_many: PlanMany,
    execute: unsafe extern "C" fn(*mut c_void),
    allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    destroy: unsafe extern "C" fn(*mut c_void),
    _library: Library,
    of: std::marker::PhantomData<T>,
}

pub(crate) fn open_double() -> Option<Fftw<f64>> {
    open("libfftw3.so.3", "fftw")
}

pub(crate) fn open_single() -> Option<Fftw<f32>> {
    open("libfftw3f.so.3", "fftwf")
}

fn open<T>(file: &str, prefix: &str) -> Option<Fftw<T>> {
    // SAFETY (*Signatures*): these are the functions of fftw3.h under their names there; the library stays open with them.
    unsafe {
        let library = Library::new(file).ok()?;
        let name = |of: &str| format!("{prefix}_{of}");
        Some(Fftw {
            plan_many: *library.get(name("plan_many_dft")).ok()?,
            execute: *library.get(name("execute")).ok()?,
            allocate: *library.get(name("malloc")).ok()?,
            free: *library.get(name("free")).ok()?,
            destroy: *library.get(name("destroy_plan")).ok()?,
            _library: library,
            of: std::marker::PhantomData,
        })
    }
}

/// Transforms of rows, with the memory that they work on.
pub(crate) struct Plan<'a, T> {
    library: &'a Fftw<T>,
    plan: *mut c_void,
    from: *mut T,
    to: *mut T,
    n: usize,
    count: usize,
}

impl<T: Copy + Default + Into<f64>> Fftw<T> {
    /// A forward transform of each of `rows` rows of length `n`.
    pub(crate) fn plan(&self, n: usize, rows: usize, planning: Planning) -> Result<Plan<'_, T>> {
        let count = n * rows;
        let (length, rows) = (c_int::try_from(n)?, c_int::try_from(rows)?);
        // SAFETY (*Bounds*): both blocks hold `rows` rows of `n` pairs of numbers.
        unsafe {
            let [from, to] = [(); 2].map(|()| (self.allocate)(2 * count * size_of::<T>()).cast::<T>());
            let plan = (self.plan_many)(
                1,
                &raw const length,
                rows,
                from.cast(),
                std::ptr::null(),
                1,
                length,
                to.cast(),
                std::ptr::null(),
                1,
                length,
                -1,
                planning as c_uint,
            );
            let mut plan = Plan { library: self, plan, from, to, n, count };
            if plan.plan.is_null() {
                return Err("FFTW has no plan".into());
            }
            plan.clear();
            Ok(plan)
        }
    }
}

impl<T: Copy + Default + Into<f64>> Plan<'_, T> {
    pub(crate) fn execute(&mut self) {
        // SAFETY (*Liveness*): the plan and its memory live as long as this.
        unsafe { (self.library.execute)(self.plan) }
    }

    pub(crate) fn clear(&mut self) {
        self.given().fill(T::default());
    }

    fn given(&mut self) -> &mut [T] {
        // SAFETY (*Bounds*): allocated with this length; zero bytes are numbers, and FFTW overwrites them with numbers.
        unsafe {
            std::ptr::write_bytes(self.from, 0, 2 * self.count);
            std::slice::from_raw_parts_mut(self.from, 2 * self.count)
        }
    }

    /// The largest difference between a row of FFTW's result and ours, in lengths of the row: `given` are all real parts and then
    /// all imaginary parts.
    pub(crate) fn difference(&mut self, given: &[T], re: &[T], im: &[T]) -> Result<f64> {
        let (n, count) = (self.n, self.count);
        if [given.len(), re.len(), im.len()] != [2 * count, count, count] {
            return Err("rows of other lengths".into());
        }
        for (k, pair) in self.given().chunks_exact_mut(2).enumerate() {
            pair.copy_from_slice(&[given[k], given[count + k]]);
        }
        self.execute();
        // SAFETY (*Bounds*): the transform has written all of the block.
        let found = unsafe { std::slice::from_raw_parts(self.to, 2 * count) };
        let mut worst = 0.0f64;
        for row in 0..count / n {
            let (mut apart, mut length) = (0.0, 0.0);
            for k in n * row..n * (row + 1) {
                let (x, y): (f64, f64) = (found[2 * k].into(), found[2 * k + 1].into());
                apart += (x - re[k].into()).powi(2) + (y - im[k].into()).powi(2);
                length += x * x + y * y;
            }
            worst = worst.max((apart / length).sqrt());
        }
        Ok(worst)
    }
}

impl<T> Drop for Plan<'_, T> {
    fn drop(&mut self) {
        // SAFETY (*Liveness*): made by this library, and used by nothing else any more.
        unsafe {
            if !self.plan.is_null() {
                (self.library.destroy)(self.plan);
            }
            (self.library.free)(self.from.cast());
            (self.library.free)(self.to.cast());
        }
    }
}

/// Seconds on the wall or, of a single thread, on the processor.
pub(crate) struct Clock {
    processor: Option<(unsafe extern "C" fn(c_int, *mut [c_long; 2]) -> c_int, Library)>,
    begun: std::time::Instant,
}

impl Clock {
    pub(crate) fn new(processor: bool) -> Clock {
        // SAFETY (*Signatures*): `clock_gettime` of POSIX; a time is two words on the 64-bit systems that have FFTW under these names.
        let clock = || unsafe {
            let library = Library::new("libc.so.6").ok()?;
            Some((*library.get("clock_gettime").ok()?, library))
        };
        Clock { processor: if processor { clock() } else { None }, begun: std::time::Instant::now() }
    }

    pub(crate) fn seconds(&self) -> f64 {
        let Some((clock, _)) = &self.processor else {
            return self.begun.elapsed().as_secs_f64();
        };
        let mut time = [0; 2];
        // SAFETY (*Bounds*): `time` has room for both words. 2 is the clock of the process.
        unsafe { clock(2, &raw mut time) };
        time[0] as f64 + 1e-9 * time[1] as f64
    }
}
