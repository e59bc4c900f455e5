//! How global extents are cut into parts. Everything here is arithmetic on what the caller said.

use std::fmt::Write as _;
use std::ops::Range;

use crate::boxes::Region;
use crate::error::{Error, Result};

/// Global extents of one to three dimensions, cut into parts with halos.
///
/// Parts are numbered with the last dimension fastest. An array of a part has, in every dimension of the grid, the elements
/// that the part owns and a halo on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    extents: Vec<usize>,
    /// By dimension: where parts begin, and the extent.
    borders: Vec<Vec<usize>>,
    halo: usize,
    periodic: Vec<bool>,
    diagonal: bool,
}

impl Grid {
    /// A grid of one part, without halos.
    pub fn new(extents: &[usize]) -> Result<Grid> {
        if !(1..=3).contains(&extents.len()) || extents.contains(&0) {
            let message =
                format!("a grid has one to three dimensions with elements in each, not {extents:?}");
            return Err(Error::Grid(message));
        }
        Ok(Grid {
            extents: extents.to_vec(),
            borders: extents.iter().map(|extent| vec![0, *extent]).collect(),
            halo: 0,
            periodic: vec![false; extents.len()],
            diagonal: false,
        })
    }

    /// Cuts each dimension into this number of parts, whose extents differ by at most one.
    pub fn even(mut self, parts: &[usize]) -> Result<Grid> {
        self.check_dimensions("parts", parts.len())?;
        for ((borders, extent), parts) in self.borders.iter_mut().zip(&self.extents).zip(parts) {
            if *parts == 0 || parts > extent {
                return Err(Error::Grid(format!("{extent} elements cannot be cut into {parts} parts")));
            }
            *borders = (0..=*parts).map(|k| k * extent / parts).collect();
        }
        self.check_halo()
    }

    /// Cuts one dimension into parts with these numbers of elements.
    pub fn cut(mut self, dimension: usize, counts: &[usize]) -> Result<Grid> {
        let Some(extent) = self.extents.get(dimension) else {
            return Err(Error::Grid(format!("the grid has no dimension {dimension}")));
        };
        if counts.is_empty() || counts.contains(&0) || counts.iter().sum::<usize>() != *extent {
            let message = format!(
                "parts of {counts:?} elements are no cut of {extent}: each has some, all have {extent}"
            );
            return Err(Error::Grid(message));
        }
        let mut end = 0;
        let ends = counts.iter().map(|count| {
            end += count;
            end
        });
        self.borders[dimension] = [0].into_iter().chain(ends).collect();
        self.check_halo()
    }

    /// The width of the halos, in every dimension.
    pub fn halo(mut self, width: usize) -> Result<Grid> {
        self.halo = width;
        self.check_halo()
    }

    /// In which dimensions the grid is closed to a ring.
    pub fn periodic(mut self, periodic: &[bool]) -> Result<Grid> {
        self.check_dimensions("directions", periodic.len())?;
        self.periodic = periodic.to_vec();
        Ok(self)
    }

    /// Exchanges corners and edges too. Without it halos are exchanged across faces alone, which star stencils need.
    pub fn diagonal(mut self) -> Grid {
        self.diagonal = true;
        self
    }

    fn check_dimensions(&self, what: &str, found: usize) -> Result<()> {
        let dimensions = self.extents.len();
        if found == dimensions {
            return Ok(());
        }
        Err(Error::Grid(format!("{found} {what} were given for a grid of {dimensions} dimensions")))
    }

    fn check_halo(self) -> Result<Grid> {
        match self.extents.iter().find(|extent| self.halo > **extent) {
            Some(extent) => {
                Err(Error::Grid(format!("a halo of {} elements is wider than the grid: {extent}", self.halo)))
            }
            None => Ok(self),
        }
    }

    /// The global extents.
    pub fn extents(&self) -> &[usize] {
        &self.extents
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.extents.len()
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.borders.iter().map(|borders| borders.len() - 1).product()
    }

    /// The width of the halos.
    pub fn halo_width(&self) -> usize {
        self.halo
    }

    /// Is the grid closed to a ring in this dimension?
    pub fn is_periodic(&self, dimension: usize) -> bool {
        self.periodic.get(dimension).copied().unwrap_or(false)
    }

    /// Are corners and edges exchanged?
    pub fn is_diagonal(&self) -> bool {
        self.diagonal
    }

    /// The place of a part among the parts, by dimension.
    fn coordinates(&self, part: usize) -> Vec<usize> {
        let mut rest = part;
        let mut coordinates = vec![0; self.dimensions()];
        for (coordinate, borders) in coordinates.iter_mut().zip(&self.borders).rev() {
            let count = borders.len() - 1;
            (*coordinate, rest) = (rest % count, rest / count);
        }
        coordinates
    }

    /// The global indices that a part owns, by dimension.
    pub fn owned(&self, part: usize) -> Vec<Range<usize>> {
        let ranges = self.coordinates(part).into_iter().zip(&self.borders);
        ranges.map(|(k, borders)| borders[k]..borders[k + 1]).collect()
    }

    /// As [`owned`](Self::owned), in signed coordinates.
    pub(crate) fn region(&self, part: usize) -> Region {
        let signed = |range: Range<usize>| range.start as i64..range.end as i64;
        Region(self.owned(part).into_iter().map(signed).collect())
    }

    /// The shape of an array of a part, halos included.
    pub fn local_shape(&self, part: usize) -> Vec<usize> {
        self.owned(part).into_iter().map(|range| range.len() + 2 * self.halo).collect()
    }

    /// What the grid is, in one line: the same text is the same cut.
    pub fn identity(&self) -> String {
        let mut text = String::new();
        for (k, borders) in self.borders.iter().enumerate() {
            let ring = if self.periodic[k] { " ring" } else { "" };
            // Writing to a string does not fail.
            let _ = write!(text, "{}{borders:?}{ring}", if k > 0 { " x " } else { "" });
        }
        let _ = write!(text, ", halo {}{}", self.halo, if self.diagonal { " with corners" } else { "" });
        text
    }
}
