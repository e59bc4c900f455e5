//! One part of a run: what it holds, and what connects it with the others.

use std::sync::{Arc, Mutex, PoisonError};

use ebbtide::ir::HostArg;
use ebbtide::ir::Type;
use ebbtide::ir::parts::{Ending, Stop, Transport, Way};
use ebbtide::{Array, Device, Element};

use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::halos::{Halos, Layout, Piece, written};
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
        let mut layouts = Vec::with_capacity(arrays.len());
        for arg in arrays.iter_mut() {
            let (ty, shape, _) = written(arg)?;
            if way == Way::Add && ty == Type::Bool {
                return Err("elements of `bool` cannot be added".to_string());
            }
            layouts.push(Layout::of(&self.grid, self.part, ty, shape)?);
        }
        let (out, into) = match way {
            Way::Fill => (&self.halos.sent, &self.halos.received),
            Way::Add => (&self.halos.received, &self.halos.sent),
        };
        let mut messages = Vec::new();
        for other in others(out) {
            let mut message = Vec::new();
            for (arg, layout) in arrays.iter_mut().zip(&layouts) {
                let (_, _, bytes) = written(arg)?;
                for piece in out.iter().filter(|piece| piece.other == other) {
                    layout.read(&piece.own, bytes, &mut message);
                }
            }
            messages.push((other, message));
        }
        let post = Post::Swap { at: at.to_string(), messages, sources: others(into) };
        let received = match self.meet(post).map_err(|stop| stop.to_string())? {
            Given::Swapped(received) => received,
            _ => return Err("a meeting gave something else".to_string()),
        };
        if way == Way::Add {
            for (arg, layout) in arrays.iter_mut().zip(&layouts) {
                let (_, _, bytes) = written(arg)?;
                out.iter().for_each(|piece| layout.clear(&piece.own, bytes));
            }
        }
        for (other, message) in received {
            let mut rest = &message[..];
            for (arg, layout) in arrays.iter_mut().zip(&layouts) {
                let (_, _, bytes) = written(arg)?;
                for piece in into.iter().filter(|piece| piece.other == other) {
                    let Some((own, tail)) = rest.split_at_checked(layout.bytes_of(&piece.own)) else {
                        return Err(format!(
                            "part {other} exchanges arrays of other types or of other extents beyond the grid"
                        ));
                    };
                    match way {
                        Way::Fill => layout.write(&piece.own, own, bytes),
                        Way::Add => layout.add(&piece.own, own, bytes),
                    }
                    rest = tail;
                }
            }
        }
        Ok(())
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
