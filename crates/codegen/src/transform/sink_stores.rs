//! Stores that come last. Input: stores and touches in program order; output: which stores must be made now.
//!
//! A compiler cannot know that arrays do not overlap, so a load behind a store waits for it. In a body without checks
//! nothing keeps a store from waiting for the end of its iteration instead, and then all loads of the iteration are on
//! their way at once. What combines with an element loads it before the first store as well.

//!
//! Legal in a body without checks: each iteration has elements of its own, so what it stores is seen by none but itself, and a
//! touch of the same array makes all waiting stores come first.

use ebbtide_ir::{ArrayId, Combine};

/// A store that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    pub array: ArrayId,
    /// Which of the iterations side by side stores: each has elements of its own.
    pub number: usize,
    /// The element as the text knows it.
    pub element: String,
    /// Under which condition, if any.
    pub condition: Option<String>,
    pub how: Option<Combine>,
    pub value: String,
}

/// The stores that wait, in program order.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    stores: Vec<Late>,
}

impl Waiting {
    /// Must they be made before one of the iterations side by side touches an element of this array?
    pub fn touch(&self, array: ArrayId, number: usize) -> bool {
        self.stores.iter().any(|late| late.array == array && late.number == number)
    }

    pub fn push(&mut self, late: Late) {
        self.stores.push(late);
    }

    /// All of them; none waits any more.
    pub fn take(&mut self) -> Vec<Late> {
        std::mem::take(&mut self.stores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(array: usize, number: usize) -> Late {
        let (element, value) = (format!("a{array}[v0]"), "v1".to_string());
        Late { array: ArrayId::from_index(array), number, element, condition: None, how: None, value }
    }

    #[test]
    fn a_store_waits_until_its_own_iteration_touches_its_array() {
        let mut waiting = Waiting::default();
        waiting.push(store(3, 0));
        waiting.push(store(4, 1));
        assert!(waiting.touch(ArrayId::from_index(3), 0));
        assert!(!waiting.touch(ArrayId::from_index(3), 1), "another iteration has elements of its own");
        assert!(!waiting.touch(ArrayId::from_index(5), 0));
        assert_eq!(waiting.take(), [store(3, 0), store(4, 1)], "in program order");
        assert!(!waiting.touch(ArrayId::from_index(3), 0));
    }
}
