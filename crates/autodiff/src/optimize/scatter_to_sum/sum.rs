//! Loops over the elements of a shadow, each of which sums over its preimage.

use ebbtide_ir::{
    ArrayId, Block, Combine, Indices, LocalId, Loop, LoopKind, Par, Range, Stmt, Store, ValueId, WriteId,
};

use super::lanes::{LANES, with_part};
use crate::analysis::index_preimage::{Part, Step};
use crate::writer::Writer;
use crate::writer::prune::prune;

/// Writes what flows from the iterations that steps lead to, from an element, into a local.
pub(super) type Write<'a> = &'a dyn Fn(&mut Writer, LocalId, &[Step], &[ValueId]);

/// The sums over the preimages of a shadow's elements.
pub(crate) struct Sum {
    pub shadow: ArrayId,
    ranges: Vec<Range>,
    index: Indices,
    /// The loops in which lanes add up their shares.
    lanes: Vec<(Vec<Range>, Block)>,
    /// What computes the sums, one for each load of the loop.
    body: Block,
    totals: Vec<ValueId>,
}

impl Sum {
    pub(super) fn new(w: &mut Writer, shadow: ArrayId) -> Option<Sum> {
        let zero = w.index(0);
        let ranges: Vec<Range> = (0..w.program.array(shadow).rank)
            .map(|d| {
                let to = w.dim(shadow, d);
                Range { var: w.loop_var(&format!("k{d}")), from: zero, to }
            })
            .collect();
        let index = Indices::new(&ranges.iter().map(|r| r.var).collect::<Vec<_>>())?;
        Some(Sum { shadow, ranges, index, lanes: Vec::new(), body: Block::new(), totals: Vec::new() })
    }

    /// Writes the loop that adds the sums to the shadow's elements, or puts them there.
    pub fn write(self, w: &mut Writer, how: Option<Combine>) {
        for (ranges, body) in self.lanes {
            let (id, body) = (w.new_par(), prune(&w.program, body));
            w.push(Stmt::Par(Par::over(id, ranges, body)));
        }
        w.begin();
        self.body.into_iter().for_each(|stmt| w.push(stmt));
        let mut totals = self.totals.into_iter();
        let Some(mut value) = totals.next() else { return drop(w.end()) };
        for total in totals {
            value = w.add(value, total);
        }
        let store =
            Store { array: self.shadow, index: self.index, value, site: None, id: WriteId::UNNUMBERED };
        w.push(match how {
            Some(how) => Stmt::Update(how, store),
            None => Stmt::Store(store),
        });
        let body = w.end();
        let (id, body) = (w.new_par(), prune(&w.program, body));
        let ranges = self.ranges;
        w.push(Stmt::Par(Par::over(id, ranges, body)));
    }

    /// How many sums were dealt out to lanes.
    pub(super) fn dealt(&self) -> usize {
        self.lanes.len()
    }

    /// Adds the sum over the iterations that these steps lead to; dealt out to lanes where there is an array for their
    /// shares.
    pub(super) fn add(
        &mut self,
        w: &mut Writer,
        steps: &[Step],
        lanes: Option<ArrayId>,
        write: Write<'_>,
    ) -> Option<()> {
        let part = match lanes {
            Some(shares) => {
                self.deal_out(w, steps, shares, write)?;
                Part::Rest
            }
            None => Part::All,
        };
        w.begin();
        let total = self.zero(w);
        if let Some(shares) = lanes {
            self.add_shares(w, shares, total)?;
        }
        write(w, total, &with_part(steps, part), self.index.as_slice());
        self.totals.push(w.get(total));
        self.body.extend(w.end());
        Some(())
    }

    /// Writes the loop in which each lane of each element adds up its share.
    fn deal_out(&mut self, w: &mut Writer, steps: &[Step], shares: ArrayId, write: Write<'_>) -> Option<()> {
        let Sum { mut ranges, index, .. } = Sum::new(w, self.shadow)?;
        let (lane, from, to) = (w.loop_var("lane"), w.index(0), w.index(LANES));
        ranges.push(Range { var: lane, from, to });
        let place: Vec<ValueId> = ranges.iter().map(|r| r.var).collect();
        w.begin();
        let total = self.zero(w);
        write(w, total, &with_part(steps, Part::Lane(lane)), index.as_slice());
        let share = w.get(total);
        w.store(shares, Indices::new(&place)?, share, None);
        let body = w.end();
        self.lanes.push((ranges, body));
        Some(())
    }

    /// Adds up the shares of the lanes, in order.
    fn add_shares(&self, w: &mut Writer, shares: ArrayId, total: LocalId) -> Option<()> {
        let (var, from, to) = (w.loop_var("lane"), w.index(0), w.index(LANES));
        let place: Vec<ValueId> = self.index.as_slice().iter().copied().chain([var]).collect();
        w.begin();
        let (old, share) = (w.get(total), w.load(shares, Indices::new(&place)?, None));
        let next = w.add(old, share);
        w.push(Stmt::Set(total, next));
        let (body, id) = (w.end(), w.new_loop());
        let kind = LoopKind::For { var, from, to };
        w.push(Stmt::Loop(Loop { id, kind, body, sums: Vec::new(), until: None, schedule: None }));
        Some(())
    }

    fn zero(&self, w: &mut Writer) -> LocalId {
        let zero = w.real(w.program.array(self.shadow).ty, 0.0);
        w.sum(zero)
    }
}
