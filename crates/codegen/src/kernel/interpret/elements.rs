//! Where elements are, and whether they exist: of one iteration, of all lanes of a vector, and of those of a mask.

use ebbtide_ir::evaluate::Bits;

use super::{Ended, Iteration};
use crate::kernel::stmt::{Check, Element, Part, Place, Stride};

impl Iteration<'_> {
    /// Does the element exist? One that is proved to, must.
    pub(super) fn exists(&mut self, element: &Element) -> Result<bool, Ended> {
        let extents = self.memory.shapes[element.array.index()].clone();
        if self.as_one && self.places(element)[0] < self.memory.arrays[element.array.index()].len() {
            return Ok(true);
        }
        if let Place::Gathered(index) = &element.place {
            for (index, extent) in index.iter().zip(extents) {
                let inside = self.expr(index).iter().all(|at| (0..extent).contains(&whole(*at)));
                assert!(inside, "{element:?}, although it was tested to exist");
            }
            return Ok(true);
        }
        if let Place::Lanes { stride: Stride::Next, part, .. } = &element.place
            && let (Some(first), Some(extent)) = (self.first(element).last(), extents.last())
        {
            let last = first + if *part == Part::Tail { self.tail } else { self.lanes } as i64 - 1;
            assert!(last < *extent, "{element:?}: the last lane is at {last} of {extent}");
        }
        for (dimension, (index, extent)) in self.first(element).into_iter().zip(extents).enumerate() {
            if (0..extent).contains(&index) {
                continue;
            }
            let fault = Ended::OutOfBounds { array: element.array, dimension, index, extent };
            match element.check {
                Check::Proved => panic!("{fault:?}, although it is proved to exist"),
                Check::AtOnce | Check::Aside => return Err(fault),
                Check::Deferred(_) => {
                    self.deferred.get_or_insert(fault);
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The index of an element, or of the first one.
    pub(super) fn first(&self, element: &Element) -> Vec<i64> {
        match &element.place {
            Place::From(name, away) => {
                self.addresses[name].iter().zip(away).map(|(at, away)| at + away).collect()
            }
            _ => element.index().iter().map(|e| self.expr(e)[0] as i64).collect(),
        }
    }

    /// Where the elements of all lanes are.
    pub(super) fn places(&self, element: &Element) -> Vec<usize> {
        let extents = &self.memory.shapes[element.array.index()];
        let flat = |index: &[i64]| index.iter().zip(extents).fold(0, |at, (i, extent)| at * extent + i);
        if let Place::Gathered(index) = &element.place {
            let index: Vec<Vec<Bits>> = index.iter().map(|e| self.expr(e)).collect();
            let of = |lane: usize| -> Vec<i64> { index.iter().map(|at| whole(at[lane])).collect() };
            return (0..self.lanes).map(|lane| flat(&of(lane)) as usize).collect();
        }
        let first = flat(&self.first(element));
        let Place::Lanes { stride, part, .. } = &element.place else { return vec![first as usize] };
        let stride = match stride {
            Stride::Same => 0,
            Stride::Next => 1,
            Stride::Apart(stride) => *stride,
            Stride::Rows(rows) | Stride::Tile { rows, .. } => flat(rows),
        };
        let lanes = if *part == Part::Tail { self.tail } else { self.lanes };
        (0..lanes as i64).map(|lane| (first + lane * stride) as usize).collect()
    }

    /// Where the elements of the lanes of a mask are, which must exist.
    pub(super) fn masked(&self, element: &Element, mask: &[Bits]) -> Vec<Option<usize>> {
        let extents = &self.memory.shapes[element.array.index()];
        let first = self.first(element);
        let place = |(lane, here): (usize, &Bits)| {
            let mut index = first.clone();
            *index.last_mut()? += lane as i64;
            let exists = index.iter().zip(extents).all(|(at, extent)| (0..*extent).contains(at));
            assert!(*here == 0 || exists, "{element:?} at {index:?}, although its lane is in the mask");
            let flat = index.iter().zip(extents).fold(0, |at, (i, extent)| at * extent + i);
            (*here != 0).then_some(flat as usize)
        };
        mask.iter().enumerate().map(place).collect()
    }

    pub(super) fn element(&self, element: &Element, at: usize) -> Bits {
        self.memory.arrays[element.array.index()][at]
    }
}

/// The index that a lane has, as an integer of 32 or 64 bits: it is near zero.
pub(super) fn whole(bits: Bits) -> i64 {
    if bits >> 32 == 0 { i64::from(bits as u32 as i32) } else { bits as i64 }
}

/// Are the lanes of a mask alone touched?
pub(super) fn is_masked(element: &Element) -> bool {
    matches!(&element.place, Place::Lanes { part: Part::Mask, .. })
}
