//! The model of the guide's page on many machines, against what two to four ranks send: reductions, messages, bytes, memory.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ebbtide::prelude::*;
use ebbtide_grid::{Channels, Grid, Part, Result, Team, Wire};

use crate::faulty::{Fault, Faulty};
use crate::problems::{burgers, on_ranks};

/// What one rank asked of its wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sent {
    reductions: usize,
    gathers: usize,
    gathered_bytes: usize,
    messages: usize,
    bytes: usize,
}

/// A wire that counts.
struct Counting {
    wire: Channels,
    sent: Arc<Mutex<Sent>>,
}

impl Counting {
    fn count(&self, count: impl Fn(&mut Sent)) {
        count(&mut self.sent.lock().expect("no panic"));
    }
}

impl Wire for Counting {
    fn rank(&self) -> usize {
        self.wire.rank()
    }

    fn ranks(&self) -> usize {
        Wire::ranks(&self.wire)
    }

    fn ranks_here(&self) -> usize {
        self.wire.ranks_here()
    }

    fn all_max(&mut self, words: &mut [u64]) -> Result<(), String> {
        assert_eq!(words.len(), 3);
        self.count(|sent| sent.reductions += 1);
        self.wire.all_max(words)
    }

    fn all_gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        self.count(|sent| {
            sent.gathers += 1;
            sent.gathered_bytes += own.len();
        });
        self.wire.all_gather(own)
    }

    fn swap(
        &mut self,
        messages: Vec<(usize, Vec<u8>)>,
        sources: &[usize],
    ) -> Result<Vec<(usize, Vec<u8>)>, String> {
        self.count(|sent| {
            sent.messages += messages.len();
            sent.bytes += messages.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        });
        self.wire.swap(messages, sources)
    }
}

/// What each rank sends while all parts run `work`.
fn sent(grid: &Grid, ranks: usize, work: impl Fn(&Part) -> Result<()> + Sync) -> Vec<Sent> {
    let counts: Vec<Arc<Mutex<Sent>>> = (0..ranks).map(|_| Arc::default()).collect();
    std::thread::scope(|scope| {
        for (wire, sent) in Channels::ranks(ranks).into_iter().zip(&counts) {
            let (wire, work) = (Counting { wire, sent: sent.clone() }, &work);
            scope.spawn(move || Team::over(grid, Box::new(wire)).run(work).expect("it runs"));
        }
    });
    counts.iter().map(|sent| *sent.lock().expect("no panic")).collect()
}

#[program]
fn exchanges(u: &mut Array3<f32>, steps: usize, sums: usize, total: &mut Array0<f64>) {
    for _t in 0..steps {
        exchange(u);
    }
    for _s in 0..sums {
        all_sum(total);
    }
}

/// What each rank sends for one exchange and for one sum, beside what a launch takes anyway.
fn sent_by_one(grid: &Grid, ranks: usize) -> [Vec<Sent>; 2] {
    let device = Device::interpreter();
    let compiled = exchanges().compile(&device).expect("it compiles");
    let run = |steps: usize, sums: usize| {
        sent(grid, ranks, |part| {
            let (mut u, mut total) = (part.zeros(&device)?, device.zeros([])?);
            let _done = compiled.launch((&mut u, steps, sums, &mut total))?;
            Ok(())
        })
    };
    let base = run(1, 1);
    let less = |a: &Sent, b: &Sent| Sent {
        reductions: a.reductions - b.reductions,
        gathers: a.gathers - b.gathers,
        gathered_bytes: a.gathered_bytes - b.gathered_bytes,
        messages: a.messages - b.messages,
        bytes: a.bytes - b.bytes,
    };
    [run(2, 1), run(1, 2)].map(|more| more.iter().zip(&base).map(|(a, b)| less(a, b)).collect())
}

/// Which neighbours a part has along each dimension, and the cells of the face to each.
fn faces(cut: [usize; 3], cells: [usize; 3], part: usize) -> Vec<usize> {
    let place = [part / (cut[1] * cut[2]), part / cut[2] % cut[1], part % cut[2]];
    let face = |d: usize| cells.iter().product::<usize>() / cells[d];
    (0..3)
        .flat_map(|d| {
            let neighbours = usize::from(place[d] > 0) + usize::from(place[d] + 1 < cut[d]);
            std::iter::repeat_n(face(d), neighbours)
        })
        .collect()
}

/// One reduction of three words; to each neighbour one message of its face and three words.
#[test]
fn an_exchange_is_one_reduction_and_one_message_for_each_face() {
    for (cut, ranks) in [([2, 1, 1], 2), ([1, 3, 1], 3), ([4, 1, 1], 4), ([2, 2, 1], 4), ([1, 2, 2], 4)] {
        let cells = [6, 5, 4];
        let extents: Vec<usize> = (0..3).map(|d| cut[d] * cells[d]).collect();
        let grid = Grid::new(&extents).and_then(|g| g.even(&cut)).and_then(|g| g.halo(1)).expect("a grid");
        let [exchange, sum] = sent_by_one(&grid, ranks);
        for (part, found) in exchange.into_iter().enumerate() {
            let faces = faces(cut, cells, part);
            let bytes = faces.iter().map(|cells| cells * size_of::<f32>() + 24).sum();
            let expected = Sent { reductions: 1, messages: faces.len(), bytes, ..Sent::default() };
            assert_eq!(found, expected, "{cut:?}, part {part}");
        }
        // A number and its length.
        for found in sum {
            assert_eq!(found, Sent { reductions: 1, gathers: 1, gathered_bytes: 16, ..Sent::default() });
        }
    }
}

/// What several parts of a rank send to one other rank is one message.
#[test]
fn parts_of_one_rank_send_one_message_to_another() {
    let grid =
        Grid::new(&[8, 6, 4]).and_then(|g| g.even(&[4, 3, 1])).and_then(|g| g.halo(1)).expect("a grid");
    let [exchange, _] = sent_by_one(&grid, 2);
    // Six parts on either side; three faces of 2 × 4 cells lie between them.
    let expected = Sent { reductions: 1, messages: 1, bytes: 3 * (2 * 4 * 4 + 24), ..Sent::default() };
    assert_eq!(exchange, [expected; 2]);
}

/// An array of a part has the cells of the part and its halos.
#[test]
fn an_array_of_a_part_takes_its_cells_and_halos() {
    let grid =
        Grid::new(&[12, 10, 8]).and_then(|g| g.even(&[2, 2, 1])).and_then(|g| g.halo(1)).expect("a grid");
    let device = Device::interpreter();
    let work = |part: &Part| {
        let array = part.zeros::<f32, 3>(&device)?;
        assert_eq!(array.len() * size_of::<f32>(), (6 + 2) * (5 + 2) * (8 + 2) * 4);
        Ok(())
    };
    Team::new(&grid).run(work).expect("it runs");
}

/// A frontier of a part is at most the memory that its gradient holds and its two arguments, and comes near it.
#[test]
fn a_frontier_takes_at_most_the_memory_of_a_part() {
    let grid = Grid::new(&[8000]).and_then(|g| g.even(&[4])).and_then(|g| g.halo(1));
    let grid = grid.and_then(|g| g.periodic(&[true])).expect("a grid");
    let device = Device::cpu();
    let gradient = burgers().grad(burgers::loss).wrt(burgers::u).memory(Bytes::kib(160));
    let gradient = gradient.compile(&device).expect("it compiles");
    let launch = |part: &Part, disk: Option<Faulty>| {
        let u = part.fill(&device, |[x]| (0.01 * x as f64).sin())?;
        let (next, loss, at) = (part.zeros(&device)?, device.zeros([])?, part.place1()?);
        let args = (&u, &next, &at, 0.3, 40, &loss);
        if let Some(disk) = disk {
            gradient.launch_durable_on(Arc::new(disk), Path::new("/run"), Duration::ZERO, args)?;
        }
        Ok(gradient.plan(args)?.peak_bytes() as usize + 2 * u.len() * size_of::<f64>())
    };
    let planned = on_ranks(&grid, 3, |part| launch(part, None));
    let mut largest = 0;
    for operation in (100..1000).step_by(150) {
        let disks: Vec<Faulty> = (0..4).map(|_| Faulty::new()).collect();
        disks[1].fail_at(operation, Fault::PowerCut);
        Team::new(&grid)
            .run(|part| launch(part, Some(disks[part.number()].clone())))
            .expect_err("it was cut off");
        let files = disks.iter().flat_map(Faulty::files);
        let snapshots = files.filter(|(name, _)| name.to_string_lossy().ends_with("safetensors"));
        largest = snapshots.map(|(_, bytes)| bytes).fold(largest, usize::max);
    }
    // Names, shapes and numbers of the run come to it.
    assert!(largest <= planned + 4096 && 2 * largest >= planned, "{largest} of {planned}");
}
