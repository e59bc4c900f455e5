//! One part of a run: what it holds, and what connects it with the others.

use std::sync::{Arc, Mutex, PoisonError};

use ebbtide::ir::HostArg;
use ebbtide::ir::Type;
use ebbtide::ir::parts::{Ending, Sharing, Stop, Transport, Way};
use ebbtide::{Array, Device, Element};
use ebbtide_runtime::{Resident, StridedBox, take_lent};

use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::halos::{Halos, InHost, Layout, Piece, layouts};
use crate::meeting::{Given, Meeting, Post};
use crate::place::{Place1, Place2, Place3};

/// One part of a run, on its thread: programs that the thread launches exchange and sum with the other parts.
pub struct Part {
    pub(crate) link: Arc<Link>,
}

/// The transport of a part.
pub(crate) struct Link {
    pub part: usize,
    pub grid: Arc<Grid>,
    pub meeting: Arc<Meeting>,
    halos: Halos,
    threads: Option<usize>,
    /// What stopped the launch that is under way.
    stopped: Mutex<Option<Stop>>,
}

impl Link {
    pub fn new(part: usize, grid: Arc<Grid>, meeting: Arc<Meeting>, threads: Option<usize>) -> Link {
        let halos = Halos::of(&grid, part);
        Link { part, grid, meeting, halos, threads, stopped: Mutex::new(None) }
    }

    fn meet(&self, post: Post) -> Result<Given, Stop> {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stop) = &*stopped {
            return Err(stop.clone());
        }
        self.meeting.meet(self.part, post).inspect_err(|stop| *stopped = Some(stop.clone()))
    }

    /// The bytes of all parts, outside of launches.
    pub fn gather_outside(&self, at: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let post = Post::Gather { at: at.to_string(), bytes: bytes.to_vec() };
        match self.meeting.meet(self.part, post) {
            Ok(Given::Gathered(all)) => Ok(all),
            Ok(_) => Err(Error::Wire("a meeting gave something else".to_string())),
            Err(stop) => Err(Error::Engine(ebbtide::Error::Part(stop))),
        }
    }
}

/// The other parts of some pieces, each once, in order.
fn others(pieces: &[Piece]) -> Vec<usize> {
    let mut others: Vec<usize> = pieces.iter().map(|piece| piece.other).collect();
    others.dedup();
    others
}

impl Transport for Link {
    fn part(&self) -> usize {
        self.part
    }

    fn parts(&self) -> usize {
        self.meeting.parts
    }

    fn threads(&self) -> Option<usize> {
        self.threads
    }

    fn sharing(&self) -> Sharing {
        let process = self.meeting.local.len();
        // Ranks differ by one part at most, and the least memory of all parts decides.
        Sharing { process, machine: process * self.meeting.ranks_here }
    }

    fn identity(&self) -> String {
        format!("part {} of {}: {}", self.part, self.meeting.parts, self.grid.identity())
    }

    fn gather(&self, at: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Stop> {
        match self.meet(Post::Gather { at: at.to_string(), bytes: own.to_vec() })? {
            Given::Gathered(all) => Ok(all),
            _ => Ok(Vec::new()),
        }
    }

    fn exchange(&self, at: &str, way: Way, arrays: &mut [HostArg<'_>]) -> Result<(), String> {
        let layouts = layouts(&self.grid, self.part, arrays)?;
        if way == Way::Add && layouts.iter().any(|layout| layout.ty == Type::Bool) {
            return Err("elements of `bool` cannot be added".to_string());
        }
        let (out, into) = match way {
            Way::Fill => (&self.halos.sent, &self.halos.received),
            Way::Add => (&self.halos.received, &self.halos.sent),
        };
        // They are here, or stay on their device and are read and written from here.
        let (mut lent, mut here) = (take_lent(), InHost(arrays));
        let store: &mut dyn Resident = match &mut lent {
            Some(lent) => &mut **lent,
            None => &mut here,
        };
        // The boxes that are shared with another part, array by array.
        let boxes = |pieces: &[Piece], other: usize| -> Vec<StridedBox> {
            let with = |(array, layout): (usize, &Layout)| {
                let pieces = pieces.iter().filter(|piece| piece.other == other);
                pieces.map(|piece| layout.strided(array, &piece.own)).collect::<Vec<_>>()
            };
            layouts.iter().enumerate().flat_map(with).collect()
        };
        let receivers = others(out);
        let sent: Vec<Vec<StridedBox>> = receivers.iter().map(|other| boxes(out, *other)).collect();
        let all: Vec<StridedBox> = sent.iter().flatten().copied().collect();
        // All at once: a device is waited for once.
        let bytes = store.read(&all)?;
        let mut rest = &bytes[..];
        let mut messages = Vec::with_capacity(receivers.len());
        for (other, boxes) in receivers.iter().zip(&sent) {
            let (message, tail) = rest.split_at(boxes.iter().map(StridedBox::bytes).sum());
            messages.push((*other, message.to_vec()));
            rest = tail;
        }
        let post = Post::Swap { at: at.to_string(), messages, sources: others(into) };
        let received = match self.meet(post).map_err(|stop| stop.to_string())? {
            Given::Swapped(received) => received,
            _ => return Err("a meeting gave something else".to_string()),
        };
        let mut filled: (Vec<StridedBox>, Vec<u8>) = (Vec::new(), Vec::new());
        if way == Way::Add {
            store.write(&all, &vec![0; bytes.len()])?;
        }
        for (other, message) in received {
            let boxes = boxes(into, other);
            if message.len() != boxes.iter().map(StridedBox::bytes).sum::<usize>() {
                return Err(format!(
                    "part {other} exchanges arrays of other types or of other extents beyond the grid"
                ));
            }
            if way == Way::Fill {
                filled.0.extend(boxes);
                filled.1.extend(message);
                continue;
            }
            // One after another: an element can be shared with several parts.
            let mut rest = &message[..];
            for piece in boxes {
                let (from, tail) = rest.split_at(piece.bytes());
                let mut own = store.read(&[piece])?;
                layouts[piece.array].add(from, &mut own);
                store.write(&[piece], &own)?;
                rest = tail;
            }
        }
        store.write(&filled.0, &filled.1)
    }

    fn end(&self, at: &str, ending: Ending) -> Result<(), Stop> {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop) = stopped {
            return Err(stop);
        }
        let ended = self.meeting.meet(self.part, Post::End { at: at.to_string(), ending });
        ended.map(|_| ())
    }
}

impl Part {
    /// The number of this part.
    pub fn number(&self) -> usize {
        self.link.part
    }

    /// The number of all parts.
    pub fn parts(&self) -> usize {
        self.link.meeting.parts
    }

    /// The grid.
    pub fn grid(&self) -> &Grid {
        &self.link.grid
    }

    /// The shape of arrays of this part, halos included.
    pub fn shape(&self) -> Vec<usize> {
        self.grid().local_shape(self.number())
    }

    fn shaped<const R: usize>(&self) -> Result<[usize; R]> {
        let shape = self.shape();
        <[usize; R]>::try_from(shape).map_err(|shape| {
            Error::Part(format!("an array of rank {R} is none of a grid of {} dimensions", shape.len()))
        })
    }

    /// An array of zeros for this part, halos included.
    pub fn zeros<T: Element, const R: usize>(&self, device: &Device) -> Result<Array<T, R>> {
        Ok(device.zeros(self.shaped()?)?)
    }

    /// An array for this part: `value` of the global indices. Halos too; those outside of a grid that is no ring are zero.
    pub fn fill<T: Element, const R: usize>(
        &self,
        device: &Device,
        value: impl Fn([usize; R]) -> T,
    ) -> Result<Array<T, R>> {
        let mut array = self.zeros::<T, R>(device)?;
        let shape = self.shaped::<R>()?;
        let owned = self.grid().owned(self.number());
        for (k, element) in array.as_mut_slice().iter_mut().enumerate() {
            let (mut rest, mut global) = (k, [0usize; R]);
            let mut inside = true;
            for d in (0..R).rev() {
                let local = rest % shape[d];
                rest /= shape[d];
                let extent = self.grid().extents()[d];
                let at = (owned[d].start + extent + local).checked_sub(self.grid().halo_width());
                let at = at.unwrap_or(0);
                inside &= self.grid().is_periodic(d) || (extent..2 * extent).contains(&at);
                global[d] = at % extent;
            }
            if inside {
                *element = value(global);
            }
        }
        Ok(array)
    }

    /// The part of a global array, last dimension fastest.
    pub fn scatter<T: Element, const R: usize>(&self, device: &Device, global: &[T]) -> Result<Array<T, R>> {
        let extents = self.grid().extents().to_vec();
        if global.len() != extents.iter().product::<usize>() {
            return Err(Error::Part(format!("{} elements do not fill a grid of {extents:?}", global.len())));
        }
        self.fill(device, |at: [usize; R]| {
            global[at.iter().zip(&extents).fold(0, |index, (at, extent)| index * extent + at)]
        })
    }

    /// The whole of an array whose parts all hold one, last dimension fastest: all parts call it, and all get it.
    pub fn gather<T: Element, const R: usize>(&self, array: &Array<T, R>) -> Result<Vec<T>> {
        let shape = self.shaped::<R>()?;
        if array.shape() != shape {
            let message =
                format!("an array of shape {:?} is none of part {}: {shape:?}", array.shape(), self.number());
            return Err(Error::Part(message));
        }
        let (halo, bytes) = (self.grid().halo_width(), array.any().bytes());
        let size = bytes.len().checked_div(array.len()).unwrap_or(0);
        let local = |part: usize| {
            let ranges = self.grid().owned(part).into_iter().map(|r| halo as i64..(halo + r.len()) as i64);
            crate::boxes::Region(ranges.collect())
        };
        let mut own = Vec::new();
        crate::boxes::rows(&shape, &local(self.number()), size)
            .into_iter()
            .for_each(|row| own.extend_from_slice(&bytes[row]));
        let all = self.link.gather_outside("the gathering of an array", &own)?;
        let extents = self.grid().extents();
        let mut whole = AnyBytes::zeros(array, extents)?;
        for (part, from) in all.iter().enumerate() {
            let mut at = 0;
            for row in crate::boxes::rows(extents, &self.grid().region(part), size) {
                let length = row.len();
                let piece = from.get(at..at + length);
                whole.0[row].copy_from_slice(
                    piece.ok_or_else(|| {
                        Error::Part(format!("part {part} gathers an array of another type"))
                    })?,
                );
                at += length;
            }
        }
        whole.elements()
    }

    fn place(&self, d: usize) -> Place1 {
        let owned = self.grid().owned(self.number());
        let (begin, count) = owned.get(d).map_or((0, 1), |range| (range.start, range.len()));
        let extent = self.grid().extents().get(d).copied().unwrap_or(1);
        Place1 { begin, count, first: self.grid().halo_width(), extent }
    }

    fn check_dimensions(&self, wanted: usize) -> Result<()> {
        match self.grid().dimensions() {
            found if found == wanted => Ok(()),
            found => Err(Error::Part(format!("the grid has {found} dimensions, not {wanted}"))),
        }
    }

    /// Where the part lies on a line.
    pub fn place1(&self) -> Result<Place1> {
        self.check_dimensions(1).map(|()| self.place(0))
    }

    /// Where the part lies in a plane.
    pub fn place2(&self) -> Result<Place2> {
        self.check_dimensions(2).map(|()| Place2 { x: self.place(0), y: self.place(1) })
    }

    /// Where the part lies in a volume.
    pub fn place3(&self) -> Result<Place3> {
        self.check_dimensions(3).map(|()| Place3 { x: self.place(0), y: self.place(1), z: self.place(2) })
    }

    /// Returns when all parts have called it.
    pub fn barrier(&self) -> Result<()> {
        self.link.gather_outside("a barrier", &[]).map(|_| ())
    }

    /// A small message of every part, in the order of their numbers: all parts call it, and all get it.
    pub fn gather_bytes(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.link.gather_outside("the gathering of messages", own)
    }
}

/// The bytes of a global array, on its way to elements.
struct AnyBytes<T, const R: usize>(Vec<u8>, ebbtide_runtime::AnyArray, std::marker::PhantomData<T>);

impl<T: Element, const R: usize> AnyBytes<T, R> {
    fn zeros(like: &Array<T, R>, extents: &[usize]) -> Result<AnyBytes<T, R>> {
        let any = ebbtide_runtime::AnyArray::zeros(like.any().device(), like.any().ty(), extents)?;
        Ok(AnyBytes(vec![0; any.bytes().len()], any, std::marker::PhantomData))
    }

    fn elements(mut self) -> Result<Vec<T>> {
        self.1.copy_from_bytes(&self.0)?;
        Ok(self.1.as_slice::<T>().map(<[T]>::to_vec).unwrap_or_default())
    }
}
