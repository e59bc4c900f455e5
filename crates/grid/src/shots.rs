//! Shots and ensembles: independent runs spread over processes, their results added in their own order.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::wire::Wire;

/// The shots of one rank, of so many: as even as can be, in order.
pub fn shots_of(rank: usize, ranks: usize, shots: usize) -> Range<usize> {
    rank * shots / ranks..(rank + 1) * shots / ranks
}

/// Runs shots on all ranks and adds what they give in the order of the shots.
pub struct Shots<'w> {
    wire: &'w mut dyn Wire,
    group: Option<Group>,
}

/// The group that a rank belongs to.
#[derive(Clone, Copy, Debug)]
struct Group {
    number: usize,
    groups: usize,
    /// Does this rank send what the group gives?
    leads: bool,
}

impl<'w> Shots<'w> {
    /// Over the ranks of this wire.
    pub fn over(wire: &'w mut dyn Wire) -> Shots<'w> {
        Shots { wire, group: None }
    }

    /// A shot is run by a group of ranks together: this rank is in group `group` of `groups`, and one rank of each group leads it.
    /// Groups are numbered in the order of their ranks. Every rank of a group runs the group's shots, and what its leader gives
    /// counts.
    pub fn in_groups(mut self, group: usize, groups: usize, leads: bool) -> Shots<'w> {
        self.group = Some(Group { number: group, groups, leads });
        self
    }

    /// The sum over all shots of what `run` gives for each, added to zero in the order of the shots: the same bits on any number of
    /// ranks. Every rank gets it. Where a shot fails, all ranks fail with the least shot that did.
    pub fn sum(
        &mut self,
        shots: usize,
        length: usize,
        mut run: impl FnMut(usize) -> Result<Vec<f64>>,
    ) -> Result<Vec<f64>> {
        let mut message: Vec<u8> = Vec::new();
        let mut failure: Option<(usize, String)> = None;
        let own = Group { number: self.wire.rank(), groups: self.wire.ranks(), leads: true };
        let own = self.group.unwrap_or(own);
        for shot in shots_of(own.number, own.groups, shots) {
            match run(shot) {
                Ok(result) if result.len() == length => {
                    let counted = result.iter().filter(|_| own.leads);
                    message.extend(counted.flat_map(|x| x.to_le_bytes()));
                }
                Ok(result) => {
                    failure = Some((shot, format!("it gave {} numbers, not {length}", result.len())));
                    break;
                }
                Err(error) => {
                    failure = Some((shot, error.to_string()));
                    break;
                }
            }
        }
        // The least shot that failed has the largest complement.
        let mut failed = [failure.as_ref().map_or(0, |(shot, _)| !(*shot as u64))];
        self.wire.all_max(&mut failed).map_err(Error::Wire)?;
        if failed[0] != 0 {
            let own = failure.map_or_else(String::new, |(shot, text)| format!("{shot} {text}"));
            let all = self.wire.all_gather(own.as_bytes()).map_err(Error::Wire)?;
            let first = format!("{} ", !failed[0]);
            let texts = all.iter().map(|bytes| String::from_utf8_lossy(bytes));
            let said = texts.into_iter().find(|text| text.starts_with(&first)).unwrap_or_default();
            return Err(Error::Part(format!("shot {said}")));
        }
        let all = self.wire.all_gather(&message).map_err(Error::Wire)?;
        let mut total = vec![0.0; length];
        for bytes in &all {
            for shot in bytes.chunks_exact((8 * length).max(1)) {
                let numbers = shot.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
                total.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += x);
            }
        }
        Ok(total)
    }
}
