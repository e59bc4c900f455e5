//! What lies beyond the memory of a device: how much of it a gradient run may use, and how fast it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ebbtide_schedule::Beyond;
use ebbtide_snapshot::fs::{Disks, FileSystem};
use ebbtide_snapshot::{Disk, Place as _};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::device_memory::Memory;

/// Where a gradient run may keep states that its memory has no room for.
///
/// ```
/// use ebbtide_runtime::Tiers;
///
/// // 64 GiB of host memory beside the memory of a GPU, and a terabyte on disk.
/// let tiers = Tiers::new().host_memory(64 << 30).disk("/scratch", 1 << 40);
/// # let _ = tiers;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tiers {
    pub(crate) host: Option<u64>,
    pub(crate) disk: Option<(PathBuf, u64)>,
    pub(crate) rates: Option<Rates>,
}

impl Tiers {
    /// Nothing beyond memory.
    pub fn new() -> Tiers {
        Tiers::default()
    }

    /// The greatest number of bytes of host memory. A device that computes in host memory has them in addition to its budget.
    pub fn host_memory(mut self, bytes: u64) -> Tiers {
        self.host = Some(bytes);
        self
    }

    /// The greatest number of bytes in files below this directory, which is created if it is missing. The files are gone when
    /// the run is over.
    pub fn disk(mut self, dir: impl Into<PathBuf>, bytes: u64) -> Tiers {
        self.disk = Some((dir.into(), bytes));
        self
    }

    /// How fast they are, where that is not to be measured.
    pub fn rates(mut self, rates: Rates) -> Tiers {
        self.rates = Some(rates);
        self
    }

    /// Is there nothing beyond memory?
    pub fn is_empty(&self) -> bool {
        self.host.is_none() && self.disk.is_none()
    }

    /// What a plan has to know, for a device with memory of its own or without.
    pub(crate) fn reach(&self, device: &Device) -> Result<Reach> {
        let memory = device.backend().memory();
        let rates = match self.rates {
            Some(rates) => rates,
            None => Rates::measured(memory.as_ref(), self.disk.as_ref().map(|(dir, _)| dir.as_path()))?,
        };
        Ok(Reach {
            host: self.host.filter(|_| memory.is_some()),
            disk: self.disk.as_ref().map_or(0, |(_, bytes)| *bytes),
            apart: memory.is_some(),
            rates,
        })
    }
}

/// How long moving a state takes: `latency + bytes / bandwidth` seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Seconds, however small it is.
    pub latency: f64,
    /// Bytes per second.
    pub bandwidth: f64,
}

impl Rate {
    fn seconds(&self, bytes: f64) -> f64 {
        self.latency + bytes / self.bandwidth
    }
}

/// How long moving states takes. Bandwidths are measured, once in a process; the latencies are round figures: a copy in
/// host memory 0.2 µs, a launch 3 µs, a copy between memories 10 µs, a file 300 µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Copying within the memory of the device.
    pub memory: Rate,
    /// Copying between the memory of the device and that of the host.
    pub host: Rate,
    /// Writing to disk.
    pub disk_write: Rate,
    /// Reading from disk.
    pub disk_read: Rate,
}

const MEMORY_LATENCY: f64 = 2e-7;
const LAUNCH_LATENCY: f64 = 3e-6;
const HOST_LATENCY: f64 = 1e-5;
const DISK_LATENCY: f64 = 3e-4;

/// Bytes that are moved to see how fast they move.
const PROBE: usize = 16 << 20;

impl Rates {
    /// Measured once in a process, disks once for each directory.
    fn measured(memory: Option<&Arc<dyn Memory>>, dir: Option<&Path>) -> Result<Rates> {
        static NEAR: Mutex<BTreeMap<String, (f64, f64)>> = Mutex::new(BTreeMap::new());
        static FAR: Mutex<BTreeMap<PathBuf, (f64, f64)>> = Mutex::new(BTreeMap::new());
        let name = memory.map_or_else(String::new, |memory| format!("{memory:?}"));
        let mut near = NEAR.lock().unwrap_or_else(PoisonError::into_inner);
        let (within, host) = match near.get(&name) {
            Some(rates) => *rates,
            None => {
                let rates = match memory {
                    Some(memory) => (memory_rate(memory.as_ref())?, host_rate(memory.as_ref())?),
                    None => (own_rate(), f64::INFINITY),
                };
                near.insert(name, rates);
                rates
            }
        };
        drop(near);
        let (mut write, mut read) = (f64::INFINITY, f64::INFINITY);
        if let Some(dir) = dir {
            let mut far = FAR.lock().unwrap_or_else(PoisonError::into_inner);
            (write, read) = match far.get(dir) {
                Some(found) => *found,
                None => *far.entry(dir.to_path_buf()).or_insert(disk_rates(dir)?),
            };
        }
        let near = if memory.is_some() { LAUNCH_LATENCY } else { MEMORY_LATENCY };
        let rate = |latency, bandwidth| Rate { latency, bandwidth };
        let rates = Rates {
            memory: rate(near, within),
            host: rate(HOST_LATENCY, host),
            disk_write: rate(DISK_LATENCY, write),
            disk_read: rate(DISK_LATENCY, read),
        };
        tracing::debug!(within, host, write, read, "bytes per second");
        Ok(rates)
    }
}

/// Bytes per second of the best of some tries.
fn best_of(tries: usize, mut once: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..tries {
        let start = Instant::now();
        once()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(PROBE as f64 / best.max(1e-9))
}

fn own_rate() -> f64 {
    let (from, mut to) = (vec![1u8; PROBE], vec![0u8; PROBE]);
    let rate = best_of(3, || {
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        Ok(())
    });
    rate.unwrap_or(1e10)
}

fn memory_rate(memory: &dyn Memory) -> Result<f64> {
    let (from, to) = (memory.allocate(PROBE)?, memory.allocate(PROBE)?);
    let mut seen = [0u8; 1];
    // SAFETY (*Bounds*, *Liveness*): both places have as many bytes, and are freed after the last copy.
    unsafe {
        let rate = best_of(4, || {
            // Ten copies: the wait at the end is not what is to be measured.
            for _ in 0..10 {
                memory.copy(from.as_ptr(), to.as_ptr(), PROBE)?;
            }
            memory.download(to.as_ptr(), &mut seen)
        });
        memory.free(from, PROBE);
        memory.free(to, PROBE);
        Ok(10.0 * rate?)
    }
}

fn host_rate(memory: &dyn Memory) -> Result<f64> {
    let place = memory.allocate(PROBE)?;
    let pinned = memory.pin(PROBE);
    // SAFETY (*Bounds*, *Liveness*): both places have as many bytes, and are freed after the last copy.
    unsafe {
        let rate = pinned.and_then(|pinned| {
            let rate = best_of(4, || memory.carry_out(&[(place.as_ptr(), pinned.as_ptr(), PROBE)])?.wait());
            memory.unpin(pinned, PROBE);
            rate
        });
        memory.free(place, PROBE);
        rate
    }
}

/// One state, written and read as the states of a run are.
fn disk_rates(dir: &Path) -> Result<(f64, f64)> {
    let fail = |source: ebbtide_snapshot::Error| Error::disk(dir, source);
    let mut disk = scratch(Arc::new(Disks), dir)?.staging_buffers(1);
    let bytes = vec![1u8; PROBE];
    let start = Instant::now();
    disk.begin(0).map_err(fail)?.put("probe", &bytes).map_err(|error| fail(error.into()))?;
    disk.commit(0, 0).map_err(fail)?;
    disk.flush().map_err(fail)?;
    let write = PROBE as f64 / start.elapsed().as_secs_f64().max(1e-9);
    // The one staging buffer forgets it.
    disk.begin(1).map_err(fail)?.put("other", &[0u8]).map_err(|error| fail(error.into()))?;
    disk.commit(1, 1).map_err(fail)?;
    disk.flush().map_err(fail)?;
    let start = Instant::now();
    disk.load(0).map_err(fail)?;
    let read = PROBE as f64 / start.elapsed().as_secs_f64().max(1e-9);
    Ok((write, read))
}

/// Slots on disk that last as long as the value, in a directory that is made where it is missing.
pub(crate) fn scratch(fs: Arc<dyn FileSystem>, dir: &Path) -> Result<Disk> {
    Disk::scratch_on(fs, dir).map_err(|source| Error::disk(dir, source))
}

/// States in memory on their way to disk or from it.
pub(crate) const STAGING: usize = 2;
/// States in pinned memory on their way between a device and the disk.
pub(crate) const BOUNCES: usize = 2;

/// What a plan may use beyond memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach {
    host: Option<u64>,
    disk: u64,
    /// Has the device memory of its own?
    apart: bool,
    rates: Rates,
}

/// One way to use what is beyond memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Way {
    pub beyond: [Beyond; 2],
    /// Bytes of the device's memory through which states travel.
    pub passage: u64,
    /// Bytes of host memory through which states travel.
    pub host_passage: u64,
}

impl Reach {
    /// All of it, for other parts of the same run.
    pub fn to_words(self) -> Vec<u64> {
        let Rates { memory, host, disk_write, disk_read } = self.rates;
        let mut words =
            vec![u64::from(self.host.is_some()), self.host.unwrap_or(0), self.disk, u64::from(self.apart)];
        for rate in [memory, host, disk_write, disk_read] {
            words.extend([rate.latency.to_bits(), rate.bandwidth.to_bits()]);
        }
        words
    }

    /// What [`to_words`](Self::to_words) gave.
    pub fn from_words(words: &[u64]) -> Option<Reach> {
        let [has_host, host, disk, apart, rates @ ..] = words else { return None };
        let rate = |k: usize| {
            let [latency, bandwidth] =
                [2 * k, 2 * k + 1].map(|at| rates.get(at).copied().map(f64::from_bits));
            Some(Rate { latency: latency?, bandwidth: bandwidth? })
        };
        let rates = Rates { memory: rate(0)?, host: rate(1)?, disk_write: rate(2)?, disk_read: rate(3)? };
        Some(Reach { host: (*has_host != 0).then_some(*host), disk: *disk, apart: *apart != 0, rates })
    }

    /// How a loop with states of this many bytes may use this share of the room.
    pub fn ways(&self, state: u64, share: f64) -> Vec<Way> {
        if state == 0 {
            return Vec::new();
        }
        let part = |bytes: u64| (bytes as f64 * share) as u64;
        let (host, disk) = (self.host.map(part), part(self.disk));
        // In the unit of a plan, copying a state within memory takes half an iteration.
        let size = state as f64;
        let unit = 2.0 * self.rates.memory.seconds(size);
        let place = |bytes: u64, write: Rate, read: Rate| Beyond {
            slots: bytes / state,
            write: write.seconds(size) / unit,
            read: read.seconds(size) / unit,
        };
        let Rates { host: carry, disk_write, disk_read, .. } = self.rates;
        let on_disk = place(disk, disk_write, disk_read);
        let in_host = |bytes| place(bytes, carry, carry);
        // The buffers of a scratch disk start and end at whole pages.
        let staging = STAGING as u64 * (state + 2 * 4096);
        let mut ways = Vec::new();
        if let Some(bytes) = host {
            let beyond = [in_host(bytes), Beyond::default()];
            ways.push(Way { beyond, passage: state, host_passage: 0 });
        }
        if disk > 0 && self.apart {
            let host_passage = staging + BOUNCES as u64 * state;
            // Where nothing is said of host memory, states may at least pass through it.
            if let Some(left) = host.unwrap_or(host_passage).checked_sub(host_passage) {
                ways.push(Way { beyond: [in_host(left), on_disk], passage: state, host_passage });
            }
        } else if disk > 0 {
            ways.push(Way { beyond: [Beyond::default(), on_disk], passage: staging, host_passage: 0 });
        }
        ways
    }
}
