//! What a sweep gives: cotangents of the leaves, and an account of what it did.

use crate::{Differentiable, NodeId, Var};

/// How often operations were replayed, by what asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replays {
    /// To run the rule of an operation that received a cotangent.
    pub reverse: u64,
    /// To have the value, as an input of another replay.
    pub value: u64,
    /// To have the tangent (and with it, where needed, the value).
    pub tangent: u64,
}

impl Replays {
    /// All replays together.
    pub fn total(&self) -> u64 {
        self.reverse + self.value + self.tangent
    }
}

/// An account of one sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Replays of checkpointed operations.
    pub replays: Replays,
    /// Operations whose rule was run backwards.
    pub pullbacks: u64,
    /// Operations whose rule was run forwards, for a tangent.
    pub pushforwards: u64,
    /// The most values (with their tangents, in a Hessian-vector product) that the sweep held at one time
    /// beyond those that the tape retains. The output of the replay in progress is counted.
    pub peak_values: u64,
    /// The same in bytes.
    pub peak_bytes: u64,
}

/// The cotangents of the leaves that received one.
pub struct Gradients<V: Differentiable> {
    base: NodeId,
    /// Sorted by node.
    leaves: Vec<(u32, V::Tangent)>,
    counts: Counts,
}

/// The gradient of a loss and its change along a direction.
pub struct Hvp<V: Differentiable> {
    /// The gradient itself.
    pub gradients: Gradients<V>,
    /// The Hessian times the direction, for the same leaves.
    pub product: Gradients<V>,
}

impl<V: Differentiable> std::fmt::Debug for Gradients<V>
where
    V::Tangent: std::fmt::Debug,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V: Differentiable> std::fmt::Debug for Hvp<V>
where
    V::Tangent: std::fmt::Debug,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hvp").field("gradients", &self.gradients).field("product", &self.product).finish()
    }
}

impl<V: Differentiable> Gradients<V> {
    pub(crate) fn new(base: NodeId, leaves: Vec<(u32, V::Tangent)>, counts: Counts) -> Self {
        Gradients { base, leaves, counts }
    }

    fn position(&self, leaf: NodeId) -> Option<usize> {
        if (leaf.tape, leaf.generation) != (self.base.tape, self.base.generation) {
            return None;
        }
        self.leaves.binary_search_by_key(&leaf.index, |(index, _)| *index).ok()
    }

    /// The cotangent of a leaf; `None` if it received none (or is no leaf of this graph).
    pub fn get(&self, leaf: &Var<V>) -> Option<&V::Tangent> {
        self.get_node(leaf.node()?)
    }

    /// The cotangent of a leaf given by its node.
    pub fn get_node(&self, leaf: NodeId) -> Option<&V::Tangent> {
        self.position(leaf).map(|position| &self.leaves[position].1)
    }

    /// A copy of the cotangent of a leaf, zero if it received none.
    pub fn wrt(&self, leaf: &Var<V>) -> V::Tangent
    where
        V::Tangent: Clone,
    {
        self.get(leaf).cloned().unwrap_or_else(|| leaf.value().zero_tangent())
    }

    /// Takes the cotangent of a leaf out.
    pub fn take(&mut self, leaf: &Var<V>) -> Option<V::Tangent> {
        let position = self.position(leaf.node()?)?;
        Some(self.leaves.remove(position).1)
    }

    /// The leaves that received a cotangent, in the order of their recording.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &V::Tangent)> {
        self.leaves.iter().map(|(index, cotangent)| (NodeId { index: *index, ..self.base }, cotangent))
    }

    /// The number of leaves that received a cotangent.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// Whether no leaf received a cotangent.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// What the sweep did.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}
