use crate::Error;
use crate::text::{Fields, Writer, bad, number};

/// Which slots of a tier are free. It grows with the slots in use, not with their limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    limit: usize,
    /// Slots from here on have never been used.
    fresh: usize,
    /// Slots below `fresh` that are free again.
    returned: Vec<usize>,
}

impl Pool {
    pub fn new(limit: usize) -> Pool {
        Pool { limit, fresh: 0, returned: Vec::new() }
    }

    /// A pool in which the slots of `taken`, all below the limit, are not free.
    pub fn without(limit: usize, taken: &[usize]) -> Pool {
        let mut sorted: Vec<usize> = taken.to_vec();
        sorted.sort_unstable();
        let fresh = sorted.last().map_or(0, |last| last + 1);
        let returned = (0..fresh).rev().filter(|index| sorted.binary_search(index).is_err()).collect();
        Pool { limit, fresh, returned }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn free(&self) -> usize {
        self.limit - self.fresh + self.returned.len()
    }

    pub fn take(&mut self) -> Option<usize> {
        if let Some(index) = self.returned.pop() {
            return Some(index);
        }
        let index = self.fresh;
        (index < self.limit).then(|| {
            self.fresh += 1;
            index
        })
    }

    pub fn give_back(&mut self, index: usize) {
        self.returned.push(index);
    }

    pub fn write(&self, out: &mut Writer<'_, '_>) -> std::fmt::Result {
        out.field("slots", self.limit)?;
        out.field("fresh", self.fresh)?;
        out.list("returned", &self.returned)
    }

    pub fn read(fields: &mut Fields<'_>) -> Result<Pool, Error> {
        let limit = fields.number("slots")?;
        let fresh = fields.number("fresh")?;
        let returned = fields.list("returned", |text| number(text, "returned"))?;
        if fresh > limit {
            return Err(bad("more slots are in use than there are"));
        }
        Ok(Pool { limit, fresh, returned })
    }

    /// Whether every used slot is either free again or held, exactly once.
    pub fn check(&self, held: Vec<usize>) -> Result<(), Error> {
        let mut used = held;
        used.extend(&self.returned);
        used.sort_unstable();
        let sound =
            used.len() == self.fresh && used.iter().enumerate().all(|(expected, &index)| index == expected);
        if sound { Ok(()) } else { Err(bad("the slots in use contradict each other")) }
    }
}
