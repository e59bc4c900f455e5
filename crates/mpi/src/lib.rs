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

use ebbtide_grid::{Error, Grid, Result, Team, Wire};
use mpi::Threading;
use mpi::collective::{CommunicatorCollectives, SystemOperation};
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
use mpi::topology::{Color, Communicator, SimpleCommunicator};

/// The MPI job that this process belongs to. Dropping it ends MPI, so it lives as long as everything that uses it.
pub struct Mpi {
    universe: Universe,
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
        Ok(Mpi { universe })
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
        Ranks { comm: self.universe.world().duplicate(), tag: 0 }
    }

    /// A team of all ranks for the parts of a grid: every rank calls this.
    pub fn team(&self, grid: &Grid) -> Team {
        Team::over(grid, Box::new(self.wire()))
    }

    /// Splits the ranks into groups of neighbours, as even as can be; gives the number of this rank's group and the wire inside
    /// it. A shot per group: every group runs a [`Team`] of its own.
    pub fn split(&self, groups: usize) -> Result<(usize, Ranks)> {
        let (rank, ranks) = (self.rank(), self.ranks());
        if groups == 0 || groups > ranks {
            return Err(Error::Grid(format!("{ranks} ranks cannot be split into {groups} groups")));
        }
        let group = ((rank + 1) * groups - 1) / ranks;
        let comm = self.universe.world().split_by_color(Color::with_value(group as i32));
        let comm = comm.ok_or_else(|| Error::Wire("MPI gave no communicator to a group".to_string()))?;
        Ok((group, Ranks { comm, tag: 0 }))
    }
}

/// Ranks of an MPI job that talk to each other.
pub struct Ranks {
    comm: SimpleCommunicator,
    /// Messages of one swap have one tag.
    tag: i32,
}

// SAFETY (*Serialised*): MPI was started with `MPI_THREAD_SERIALIZED`, so that any thread may call it, one at a time; all calls
// through this value take `&mut self`, and the value is moved under a lock.
unsafe impl Send for Ranks {}

/// Counts of MPI are 32-bit: longer messages go in pieces of this size.
const PIECE: usize = 1 << 30;

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
        let lengths: Vec<u64> = messages.iter().map(|(_, bytes)| bytes.len() as u64).collect();
        mpi::request::scope(|scope| {
            let mut sending = Vec::new();
            for ((to, bytes), length) in messages.iter().zip(&lengths) {
                let to = comm.process_at_rank(*to as i32);
                sending.push(to.immediate_send_with_tag(scope, length, tag).into());
                for piece in bytes.chunks(PIECE) {
                    sending.push(Sending::Bytes(to.immediate_send_with_tag(scope, piece, tag)));
                }
            }
            let mut received = Vec::with_capacity(sources.len());
            for from in sources {
                let process = comm.process_at_rank(*from as i32);
                let (length, _) = process.receive_with_tag::<u64>(tag);
                let mut bytes = vec![0u8; length as usize];
                for piece in bytes.chunks_mut(PIECE) {
                    process.receive_into_with_tag(piece, tag);
                }
                received.push((*from, bytes));
            }
            sending.into_iter().for_each(Sending::wait);
            Ok(received)
        })
    }
}

/// A message on its way: its length, or some of its bytes.
enum Sending<'a, S: mpi::request::Scope<'a>> {
    Length(mpi::request::Request<'a, u64, S>),
    Bytes(mpi::request::Request<'a, [u8], S>),
}

impl<'a, S: mpi::request::Scope<'a>> From<mpi::request::Request<'a, u64, S>> for Sending<'a, S> {
    fn from(request: mpi::request::Request<'a, u64, S>) -> Sending<'a, S> {
        Sending::Length(request)
    }
}

impl<'a, S: mpi::request::Scope<'a>> Sending<'a, S> {
    fn wait(self) {
        match self {
            Sending::Length(request) => request.wait_without_status(),
            Sending::Bytes(request) => request.wait_without_status(),
        }
    }
}
