use std::fmt;

use crate::arena::Edge;
use crate::{Differentiable, Error, Gradients, NodeId, Result, Tape};

/// A value and its place on a tape. Clones share both; nothing asks the value itself to be cloned.
pub struct Var<V: Differentiable> {
    pub(crate) value: V::Shared,
    pub(crate) link: Link<V>,
}

pub(crate) enum Link<V: Differentiable> {
    Node {
        tape: Tape<V>,
        place: Place,
    },
    /// On no tape. An operator that could not record its result says why; the first use that can return an
    /// error returns that one.
    Loose(Option<Box<Error>>),
}

/// Where on its tape a value is: the generation of the graph and the edge that an operation on it gets. One
/// word, so that handles travel in registers.
#[derive(Clone, Copy)]
pub(crate) struct Place(u64);

impl Place {
    pub(crate) fn new(generation: u32, edge: Edge) -> Place {
        Place(u64::from(generation) << 32 | u64::from(edge.bits()))
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) fn edge(self) -> Edge {
        Edge::from_bits(self.0 as u32)
    }
}

impl<V: Differentiable> Clone for Link<V> {
    fn clone(&self) -> Self {
        match self {
            Link::Node { tape, place } => Link::Node { tape: tape.clone(), place: *place },
            Link::Loose(error) => Link::Loose(error.clone()),
        }
    }
}

impl<V: Differentiable> Clone for Var<V> {
    fn clone(&self) -> Self {
        Var { value: self.value.clone(), link: self.link.clone() }
    }
}

impl<V: Differentiable + fmt::Debug> fmt::Debug for Var<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Var").field("value", self.value()).field("node", &self.node()).finish()
    }
}

impl<V: Differentiable> Var<V> {
    /// A value on no tape. As an input of an operation it is a constant.
    pub fn detached(value: impl Into<V::Shared>) -> Self {
        Var { value: value.into(), link: Link::Loose(None) }
    }

    pub(crate) fn broken(value: V::Shared, error: impl Into<Box<Error>>) -> Self {
        Var { value, link: Link::Loose(Some(error.into())) }
    }

    /// The value.
    pub fn value(&self) -> &V {
        &self.value
    }

    /// The value, shared: what a rule keeps of its inputs.
    pub fn share(&self) -> V::Shared {
        self.value.clone()
    }

    /// The same value on no tape.
    pub fn detach(&self) -> Self {
        Var::detached(self.share())
    }

    /// The node on the tape, if there is one.
    pub fn node(&self) -> Option<NodeId> {
        match &self.link {
            Link::Node { tape, place } => Some(tape.id_of(*place)),
            Link::Loose(_) => None,
        }
    }

    /// Whether pullbacks give a derivative with respect to this value, or pass one on: it is on a tape, and neither a
    /// constant nor computed from constants alone.
    pub fn requires_grad(&self) -> bool {
        matches!(&self.link, Link::Node { place, .. } if place.edge().wanted())
    }

    /// The value itself: copied out of what the tape shares with this handle.
    pub fn into_value(self) -> V
    where
        V: Clone,
    {
        (*self.value).clone()
    }

    /// The tape that the value is on, if it is on one.
    pub fn tape(&self) -> Option<&Tape<V>> {
        match &self.link {
            Link::Node { tape, .. } => Some(tape),
            Link::Loose(_) => None,
        }
    }

    /// The tape, or why there is none.
    pub(crate) fn try_tape(&self) -> Result<&Tape<V>> {
        match &self.link {
            Link::Node { tape, .. } => Ok(tape),
            Link::Loose(None) => Err(Error::MissingNode),
            Link::Loose(Some(error)) => Err((**error).clone()),
        }
    }

    /// The gradient of this value, which has one element, with respect to all leaves.
    pub fn pullback(&self) -> Result<Gradients<V>> {
        self.try_tape()?.pullback(self)
    }
}
