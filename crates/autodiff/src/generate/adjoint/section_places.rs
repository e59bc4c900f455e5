//! What takes the elements of a part of an array on their way to the tape, and which of them each iteration has.

use ebbtide_ir::{ArrayId, Indices, Range, Store, ValueId, is_zero};

use crate::writer::Writer;

/// A write of a parallel loop, and what takes what it overwrites.
#[derive(Clone)]
pub(crate) struct Section {
    pub store: Store,
    pub kept: Kept,
}

/// What takes what a write of a parallel loop overwrites.
#[derive(Clone)]
pub(crate) enum Kept {
    /// An array of the loop's shape.
    Whole(ArrayId),
    Strip(Strip),
}

impl Kept {
    /// The element for the iteration with these variables.
    pub fn element(&self, w: &mut Writer, ranges: &[Range]) -> Option<(ArrayId, Indices)> {
        match self {
            Kept::Whole(array) => {
                let own: Vec<ValueId> = ranges.iter().map(|r| own(w, r)).collect();
                Some((*array, Indices::new(&own)?))
            }
            Kept::Strip(strip) => strip.element(w, ranges),
        }
    }
}

/// Where the elements lie that a parallel loop puts on a tape for one of its writes.
#[derive(Clone)]
pub(crate) struct Strip {
    pub tape: ArrayId,
    /// Where those of the loop begin.
    pub at: ValueId,
    /// How many an iteration puts there, and which of them is that of the write.
    pub each: i64,
    pub number: i64,
    /// How many iterations there are in each range.
    pub extents: Vec<ValueId>,
}

impl Strip {
    /// The element for the iteration with these variables.
    fn element(&self, w: &mut Writer, ranges: &[Range]) -> Option<(ArrayId, Indices)> {
        let mut place: Option<ValueId> = None;
        for (range, extent) in ranges.iter().zip(&self.extents) {
            let own = own(w, range);
            place = Some(match place {
                Some(before) => {
                    let before = w.mul(before, *extent);
                    w.add(before, own)
                }
                None => own,
            });
        }
        let mut place = place?;
        if self.each > 1 {
            let (each, number) = (w.index(self.each), w.index(self.number));
            place = w.mul(place, each);
            place = w.add(place, number);
        }
        place = w.add(self.at, place);
        Some((self.tape, Indices::new(&[place])?))
    }
}

/// The number of an iteration in a range.
fn own(w: &mut Writer, r: &Range) -> ValueId {
    match is_zero(&w.program, r.from) {
        true => r.var,
        false => w.sub(r.var, r.from),
    }
}
