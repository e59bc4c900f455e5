//! Which elements move where in an exchange.
//!
//! - Input: a grid and a part.
//! - Output: the pieces that the part receives into its halos, and those of its own elements that others receive, in the order
//!   of the parts' numbers. They are the same pieces seen from both sides.

use ebbtide::ir::Combine;
use ebbtide::ir::HostArg;
use ebbtide::ir::Type;
use ebbtide::ir::evaluate::combine;

use ebbtide_runtime::{Resident, StridedBox};

use crate::boxes::Region;
use crate::grid::Grid;

/// Elements that an owner and a neighbour both hold, in the local indices of each.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The other part: the owner of what is received, the receiver of what is sent.
    pub other: usize,
    pub own: Region,
}

/// What an exchange moves, seen from one part.
#[derive(Clone, Debug)]
pub(crate) struct Halos {
    /// Pieces of the halos, by their owners.
    pub received: Vec<Piece>,
    /// Pieces of what the part owns, by their receivers.
    pub sent: Vec<Piece>,
}

impl Halos {
    pub fn of(grid: &Grid, part: usize) -> Halos {
        let mut halos = Halos { received: Vec::new(), sent: Vec::new() };
        for other in 0..grid.parts() {
            for (_, target) in pieces(grid, other, part) {
                halos.received.push(Piece { other, own: target });
            }
            for (source, _) in pieces(grid, part, other) {
                halos.sent.push(Piece { other, own: source });
            }
        }
        halos
    }
}

/// The pieces of the halos of `receiver` that `owner` owns: in the local indices of the owner, and of the receiver.
fn pieces(grid: &Grid, owner: usize, receiver: usize) -> Vec<(Region, Region)> {
    let (owned, inside) = (grid.region(owner), grid.region(receiver));
    let halo = grid.halo_width() as i64;
    let dimensions = grid.dimensions() as u32;
    let mut found = Vec::new();
    for side in 0..3usize.pow(dimensions) {
        let sides: Vec<usize> = (0..dimensions).map(|k| side / 3usize.pow(dimensions - 1 - k) % 3).collect();
        let outside = sides.iter().filter(|side| **side != 1).count();
        if outside == 0 || (outside > 1 && !grid.is_diagonal()) {
            continue;
        }
        let ranges = inside.0.iter().zip(&sides).map(|(range, side)| match side {
            0 => range.start - halo..range.start,
            1 => range.clone(),
            _ => range.end..range.end + halo,
        });
        let wanted = Region(ranges.collect());
        for shift in 0..3usize.pow(dimensions) {
            let shifts: Vec<i64> =
                (0..dimensions).map(|k| (shift / 3usize.pow(dimensions - 1 - k) % 3) as i64 - 1).collect();
            if shifts.iter().enumerate().any(|(k, shift)| *shift != 0 && !grid.is_periodic(k)) {
                continue;
            }
            let by: Vec<i64> =
                shifts.iter().zip(grid.extents()).map(|(shift, extent)| shift * *extent as i64).collect();
            let common = owned.shifted(&by).intersection(&wanted);
            if !common.is_empty() {
                let back: Vec<i64> = by.iter().map(|by| -by).collect();
                let source = local(&common.shifted(&back), &owned, halo);
                found.push((source, local(&common, &inside, halo)));
            }
        }
    }
    found
}

/// Global indices as those of the array of a part.
fn local(region: &Region, owned: &Region, halo: i64) -> Region {
    let by: Vec<i64> = owned.0.iter().map(|range| halo - range.start).collect();
    region.shifted(&by)
}

/// One array of an exchange: its type, its extents in the grid, the bytes of an element of the grid with all further
/// dimensions.
pub(crate) struct Layout {
    pub ty: Type,
    pub shape: Vec<usize>,
    pub size: usize,
}

impl Layout {
    /// The layout of an array of a part, or what is wrong with it.
    pub fn of(grid: &Grid, part: usize, ty: Type, shape: &[i64]) -> Result<Layout, String> {
        let local = grid.local_shape(part);
        let fits = shape.len() >= local.len() && shape.iter().zip(&local).all(|(a, b)| *a == *b as i64);
        if !fits {
            return Err(format!(
                "an array of shape {shape:?} is none of part {part}, whose arrays have the shape {local:?} and, if they \
                 have more dimensions, others after these"
            ));
        }
        let rest: i64 = shape[local.len()..].iter().product();
        Ok(Layout { ty, shape: local, size: rest as usize * ty.size() })
    }

    /// A region of array `array` of an operation as rows of bytes.
    pub fn strided(&self, array: usize, region: &Region) -> StridedBox {
        // Dimensions that the grid does not have are one element wide, and come first.
        let missing = 3 - region.0.len().min(3);
        let range = |d: usize| d.checked_sub(missing).map_or(0..1, |d| region.0[d].clone());
        let extent = |d: usize| d.checked_sub(missing).map_or(1, |d| self.shape[d]);
        let count = |d: usize| (range(d).end - range(d).start).max(0) as usize;
        let start = (0..3).fold(0, |start, d| start * extent(d) + range(d).start.max(0) as usize);
        StridedBox {
            array,
            start: start * self.size,
            row: count(2) * self.size,
            counts: [count(1), count(0)],
            strides: [extent(2) * self.size, extent(1)],
        }
    }

    /// Adds elements to others, one by one.
    pub fn add(&self, from: &[u8], to: &mut [u8]) {
        let size = self.ty.size();
        for (own, other) in to.chunks_exact_mut(size).zip(from.chunks_exact(size)) {
            let sum = combine(Combine::Add, self.ty, word(own), word(other));
            own.copy_from_slice(&sum.to_ne_bytes()[low(size)]);
        }
    }
}

fn low(size: usize) -> std::ops::Range<usize> {
    if cfg!(target_endian = "little") { 0..size } else { 8 - size..8 }
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[low(bytes.len())].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

/// Arrays in host memory, which an exchange writes.
pub(crate) struct InHost<'a, 'b>(pub &'a mut [HostArg<'b>]);

impl Resident for InHost<'_, '_> {
    fn read(&mut self, boxes: &[StridedBox]) -> Result<Vec<u8>, String> {
        let mut all = Vec::with_capacity(boxes.iter().map(StridedBox::bytes).sum());
        for piece in boxes {
            let HostArg::Write { bytes, .. } = &self.0[piece.array] else { return Err(flaw()) };
            piece.rows().for_each(|start| all.extend_from_slice(&bytes[start..start + piece.row]));
        }
        Ok(all)
    }

    fn write(&mut self, boxes: &[StridedBox], mut from: &[u8]) -> Result<(), String> {
        for piece in boxes {
            let HostArg::Write { bytes, .. } = &mut self.0[piece.array] else { return Err(flaw()) };
            for start in piece.rows() {
                let (row, rest) = from.split_at_checked(piece.row).ok_or_else(flaw)?;
                bytes[start..start + piece.row].copy_from_slice(row);
                from = rest;
            }
        }
        Ok(())
    }
}

fn flaw() -> String {
    "an exchange writes all its arrays: this is a flaw of Ebbtide".to_string()
}

/// The layouts of the arrays that an exchange writes.
pub(crate) fn layouts(grid: &Grid, part: usize, arrays: &[HostArg<'_>]) -> Result<Vec<Layout>, String> {
    let layout = |arg: &HostArg<'_>| match arg {
        HostArg::Write { ty, shape, .. } => Layout::of(grid, part, *ty, shape),
        _ => Err(flaw()),
    };
    arrays.iter().map(layout).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_part_sends_another_receives_in_the_same_order() {
        let grid = Grid::new(&[7, 5]).and_then(|g| g.cut(0, &[3, 1, 3])).and_then(|g| g.even(&[3, 2]));
        let grid = grid.and_then(|g| g.halo(2)).and_then(|g| g.periodic(&[true, false])).expect("a grid");
        for grid in [grid.clone(), grid.diagonal()] {
            let all: Vec<Halos> = (0..grid.parts()).map(|part| Halos::of(&grid, part)).collect();
            for a in 0..grid.parts() {
                for b in 0..grid.parts() {
                    let sent = all[a].sent.iter().filter(|p| p.other == b).map(|p| p.own.len());
                    let received = all[b].received.iter().filter(|p| p.other == a).map(|p| p.own.len());
                    assert!(sent.eq(received), "{a} to {b}");
                }
            }
        }
    }

    /// Regions of one, two and three dimensions have the rows that they have as boxes of global arrays.
    #[test]
    fn a_region_is_a_strided_box() {
        for shape in [vec![9], vec![5, 7], vec![4, 5, 6]] {
            let layout = Layout { ty: Type::F32, shape: shape.clone(), size: 12 };
            let region = Region(shape.iter().map(|extent| 1..*extent as i64 - 1).collect());
            let found = layout.strided(3, &region);
            let expected = crate::boxes::rows(&shape, &region, 12);
            assert_eq!(found.array, 3);
            assert_eq!(found.bytes(), 12 * region.len());
            let rows: Vec<_> = found.rows().map(|start| start..start + found.row).collect();
            assert_eq!(rows, expected);
        }
    }
}
