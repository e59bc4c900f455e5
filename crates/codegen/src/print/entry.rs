//! What a segment computes once, on entry: found again by what it is, not by its text.

use ebbtide_ir::ValueId;

use crate::kernel::segment::{MappingId, ProductId};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// What each thread takes of the parallel loop with this number.
    Plan(usize),
    /// A value in the narrow type, shared by the threads of a block.
    Bound(ValueId),
    /// How the parallel loop with this number is cut into leaves of sums.
    Leaves(usize),
    /// Where the interior form of the parallel loop with this number is right.
    Interior(usize),
    /// How blocks share a product.
    Product(ProductId),
    /// Whether this thread owns an element.
    Owner(usize),
    /// Whether blocks keep to their leaves in loops over the domain of this mapping.
    ByLeaves(MappingId),
    /// Whether noted terms of the parallel loop with this number met at elements: nothing is computed.
    Meet(usize),
    /// Where the threads of a block find the sums of the parallel loop with this number: nothing is computed.
    Sums(usize),
}

impl Known {
    /// Does the first thread of a block write what all read?
    fn is_shared(self) -> bool {
        matches!(
            self,
            Known::Plan(_)
                | Known::Leaves(_)
                | Known::Bound(_)
                | Known::Interior(_)
                | Known::Product(_)
                | Known::ByLeaves(_)
        )
    }
}

/// What is computed on entry to a segment, in order.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    items: Vec<(Known, String)>,
}

impl Entry {
    pub fn contains(&self, known: Known) -> bool {
        self.items.iter().any(|(other, _)| *other == known)
    }

    /// Adds a text, unless the same is known already.
    pub fn add(&mut self, known: Known, text: String) {
        if !self.contains(known) {
            self.items.push((known, text));
        }
    }

    /// All of it; must the threads of a block meet after it?
    pub fn text(&self) -> (String, bool) {
        let shared = self.items.iter().any(|(known, _)| known.is_shared());
        (self.items.iter().map(|(_, text)| text.as_str()).collect(), shared)
    }
}
