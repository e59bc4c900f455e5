//! Ebbtide on many machines: the parts of a grid on the ranks of an MPI job.
//!
//! `ebbtide-grid` says what a run on parts is; here is what connects its processes. A job is started with `mpirun` or `srun`:
//!
//! ```no_run
//! use ebbtide::prelude::*;
//! use ebbtide_grid::Grid;
//! use ebbtide_mpi::Mpi;
//!
//! let mpi = Mpi::start()?;
//! let grid = Grid::new(&[512, 512, 256])?.even(&[4, 4, 2])?.halo(1)?;
//! mpi.team(&grid).run(|part| {
//!     let device = Device::best()?;
//!     // … compile and launch, as in one process.
//!     Ok(())
//! })?;
//! # Ok::<(), ebbtide_grid::Error>(())
//! ```
//!
//! A rank runs one or more parts, each on a thread; they meet, and one of them at a time talks to MPI
//! (`MPI_THREAD_SERIALIZED`). A rank that dies ends the job, as MPI does.

mod signals;

pub use signals::cancel_on_signals;

use ebbtide_grid::{Error, Grid, Result, Team, Wire};
use mpi::Threading;
use mpi::collective::{CommunicatorCollectives, SystemOperation};
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, MatchedReceiveVec, Source};
use mpi::topology::{Color, Communicator, SimpleCommunicator};

/// The MPI job that this process belongs to. Dropping it ends MPI, so it lives as long as everything that uses it.
pub struct Mpi {
    universe: Universe,
    /// The number of ranks on this machine.
    here: usize,
}

impl Mpi {
    /// Starts MPI, once in a process.
    pub fn start() -> Result<Mpi> {
        let started = mpi::initialize_with_threading(Threading::Serialized);
        let (universe, threading) =
            started.ok_or_else(|| Error::Wire("MPI was started already".to_string()))?;
        if threading < Threading::Serialized {
            let message = "this MPI serves one thread alone: parts need MPI_THREAD_SERIALIZED".to_string();
            return Err(Error::Wire(message));
        }
        let here = universe.world().split_shared(universe.world().rank()).size() as usize;
        Ok(Mpi { universe, here })
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.universe.world().rank() as usize
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.universe.world().size() as usize
    }

    /// A wire between all ranks, apart from all others: every rank calls this, in the same order.
    pub fn wire(&self) -> Ranks {
        Ranks { comm: self.universe.world().duplicate(), here: self.here, tag: 0 }
    }

    /// Returns when all ranks have called it. Ranks that wait sleep: MPI's own barrier would keep their cores busy, which those that
    /// compute meanwhile may need.
    pub fn rest(&self) {
        let mut request = self.universe.world().immediate_barrier();
        while let Err(pending) = request.test() {
            request = pending;
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }

    /// A team of all ranks for the parts of a grid: every rank calls this.
    pub fn team(&self, grid: &Grid) -> Team {
        Team::over(grid, Box::new(self.wire()))
    }

    /// Splits the ranks into groups of neighbours, as even as can be; gives the number of this rank's group and the wire inside
    /// it. A shot per group: every group runs a [`Team`] of its own over a [duplicate](Ranks::duplicate) of the wire, and
    /// [`Shots::in_groups`](ebbtide_grid::Shots::in_groups) adds what the groups give.
    pub fn split(&self, groups: usize) -> Result<(usize, Ranks)> {
        let (rank, ranks) = (self.rank(), self.ranks());
        if groups == 0 || groups > ranks {
            return Err(Error::Grid(format!("{ranks} ranks cannot be split into {groups} groups")));
        }
        let group = ((rank + 1) * groups - 1) / ranks;
        let comm = self.universe.world().split_by_color(Color::with_value(group as i32));
        let comm = comm.ok_or_else(|| Error::Wire("MPI gave no communicator to a group".to_string()))?;
        Ok((group, Ranks { comm, here: self.here, tag: 0 }))
    }
}

impl Ranks {
    /// A wire between the same ranks, apart from this one: all of them call it.
    pub fn duplicate(&self) -> Ranks {
        Ranks { comm: self.comm.duplicate(), here: self.here, tag: 0 }
    }
}

/// Ranks of an MPI job that talk to each other.
pub struct Ranks {
    comm: SimpleCommunicator,
    /// The number of ranks on this machine, those of other groups included.
    here: usize,
    /// Messages of one swap have one tag.
    tag: i32,
}

// SAFETY (*Serialised*): MPI was started with `MPI_THREAD_SERIALIZED`, so that any thread may call it, one at a time; all calls
// through this value take `&mut self`, and the value is moved under a lock.
unsafe impl Send for Ranks {}

/// Counts of MPI are 32-bit: longer messages are sent in pieces of this size.
const PIECE: usize = 1 << 30;

/// Where messages without bytes begin.
static NOTHING: [u8; 1] = [0];

fn count(bytes: usize) -> std::result::Result<i32, String> {
    i32::try_from(bytes)
        .map_err(|_| format!("a message of {bytes} bytes is longer than MPI counts: cut the grid finer"))
}

impl Wire for Ranks {
    fn rank(&self) -> usize {
        self.comm.rank() as usize
    }

    fn ranks(&self) -> usize {
        self.comm.size() as usize
    }

    fn ranks_here(&self) -> usize {
        self.here
    }

    fn all_max(&mut self, words: &mut [u64]) -> std::result::Result<(), String> {
        let own = words.to_vec();
        self.comm.all_reduce_into(&own[..], words, SystemOperation::max());
        Ok(())
    }

    fn all_gather(&mut self, own: &[u8]) -> std::result::Result<Vec<Vec<u8>>, String> {
        let mut lengths = vec![0u64; self.ranks()];
        self.comm.all_gather_into(&(own.len() as u64), &mut lengths[..]);
        let counts: Vec<i32> =
            lengths.iter().map(|length| count(*length as usize)).collect::<std::result::Result<_, _>>()?;
        let total = counts.iter().try_fold(0i32, |sum, count| sum.checked_add(*count));
        let total = total.ok_or("all ranks together gather more than MPI counts")?;
        // Open MPI takes the address of an empty vector, 1, for `MPI_IN_PLACE`.
        let own = if own.is_empty() { &NOTHING[..0] } else { own };
        if total == 0 {
            return Ok(vec![Vec::new(); counts.len()]);
        }
        let starts: Vec<i32> = counts
            .iter()
            .scan(0, |sum, count| {
                let start = *sum;
                *sum += count;
                Some(start)
            })
            .collect();
        let mut all = vec![0u8; total as usize];
        let mut partition = PartitionMut::new(&mut all[..], &counts[..], &starts[..]);
        self.comm.all_gather_varcount_into(own, &mut partition);
        let mut rest = &all[..];
        Ok(counts
            .iter()
            .map(|count| {
                let (piece, tail) = rest.split_at(*count as usize);
                rest = tail;
                piece.to_vec()
            })
            .collect())
    }

    fn swap(
        &mut self,
        messages: Vec<(usize, Vec<u8>)>,
        sources: &[usize],
    ) -> std::result::Result<Vec<(usize, Vec<u8>)>, String> {
        // A rank that is ahead by one swap must not be taken for one that is in this.
        self.tag = (self.tag + 1) % 1024;
        let (comm, tag) = (&self.comm, self.tag);
        mpi::request::scope(|scope| {
            let mut sending = Vec::new();
            for (to, bytes) in &messages {
                let to = comm.process_at_rank(*to as i32);
                for piece in pieces(bytes) {
                    sending.push(to.immediate_send_with_tag(scope, piece, tag));
                }
            }
            let mut received = Vec::with_capacity(sources.len());
            for from in sources {
                let process = comm.process_at_rank(*from as i32);
                let mut bytes: Vec<u8> = Vec::new();
                loop {
                    let (piece, _) = process.matched_probe_with_tag(tag).matched_receive_vec::<u8>();
                    let last = piece.len() < PIECE;
                    match bytes.is_empty() {
                        true => bytes = piece,
                        false => bytes.extend(piece),
                    }
                    if last {
                        break;
                    }
                }
                received.push((*from, bytes));
            }
            sending.into_iter().for_each(|request| request.wait_without_status());
            Ok(received)
        })
    }
}

/// What a message is sent in: pieces of [`PIECE`] bytes and one that is shorter, by which its receiver knows the end. So every message
/// below 1 GiB is one message of MPI.
fn pieces(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let rest = &bytes[bytes.len() - bytes.len() % PIECE..];
    bytes.chunks_exact(PIECE).chain(std::iter::once(rest))
}
