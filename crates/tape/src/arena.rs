//! The graph: an append-only arena of nodes in chunks. A chunk is sealed before anyone sweeps over it, so a
//! sweep reads nodes without a lock and user code runs without one.

use std::sync::{Arc, OnceLock};

use crate::graph::Graph;
use crate::pool::{Pools, Slot};
use crate::{CheckpointRecipe, Differentiable, ReverseRule};

/// The node that an input comes from, and whether its cotangent is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Edge(u32);

/// Nodes are numbered with 31 bits: the last one tells whether a cotangent is wanted.
pub(crate) const MAX_NODES: usize = 1 << 31;
const UNWANTED: u32 = 1 << 31;

impl Edge {
    /// `index` is below [`MAX_NODES`].
    pub(crate) fn new(index: u32, wanted: Wanted) -> Edge {
        match wanted {
            Wanted::Yes => Edge(index),
            Wanted::No => Edge(index | UNWANTED),
        }
    }

    pub(crate) fn node(self) -> usize {
        (self.0 & !UNWANTED) as usize
    }

    pub(crate) fn wanted(self) -> bool {
        self.0 & UNWANTED == 0
    }
}

/// Whether the cotangent of an input is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Yes,
    No,
}

/// One value on the tape. The outputs of one operation are consecutive nodes; the first is the operation's
/// head and holds its body.
pub(crate) struct Node<V: Differentiable> {
    pub(crate) primal: Option<V::Shared>,
    pub(crate) body: Body<V>,
    first_edge: u32,
    arity: u32,
    pub(crate) outputs: u32,
    /// Whether a derivative can flow through this value (constants and auxiliary outputs have none).
    pub(crate) activity: Activity,
}

/// Whether a value takes part in derivatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Active,
    Constant,
    Auxiliary,
}

pub(crate) enum Body<V: Differentiable> {
    Leaf,
    Constant,
    /// An output of the operation whose head stands `offset` nodes before.
    Output {
        offset: u32,
    },
    /// Its rule is in the chunk.
    Retained(Slot),
    /// Its recipe is in the chunk.
    Checkpointed {
        recipe: Slot,
        bytes: u64,
    },
    Placeholder(Box<OnceLock<Attached<V>>>),
}

/// What is attached to a placeholder.
pub(crate) struct Attached<V: Differentiable> {
    pub(crate) edges: Box<[Edge]>,
    pub(crate) rule: Box<dyn ReverseRule<V>>,
}

/// Nodes with consecutive numbers and their edges.
pub(crate) struct Chunk<V: Differentiable> {
    pub(crate) start: usize,
    pub(crate) nodes: Vec<Node<V>>,
    edges: Vec<Edge>,
    pub(crate) rules: Pools<dyn ReverseRule<V>>,
    pub(crate) recipes: Pools<dyn CheckpointRecipe<V>>,
}

impl<V: Differentiable> Chunk<V> {
    fn new(start: usize) -> Self {
        Chunk { start, nodes: Vec::new(), edges: Vec::new(), rules: Pools::new(), recipes: Pools::new() }
    }

    pub(crate) fn edges<'a>(&'a self, node: &'a Node<V>) -> &'a [Edge] {
        if let Body::Placeholder(attached) = &node.body {
            return attached.get().map_or(&[], |attached| &attached.edges);
        }
        let first = node.first_edge as usize;
        self.edges.get(first..first + node.arity as usize).unwrap_or(&[])
    }
}

/// The arena under construction.
pub(crate) struct Arena<V: Differentiable> {
    sealed: Vec<Arc<Chunk<V>>>,
    tail: Chunk<V>,
}

const SMALLEST_CHUNK: usize = 64;
const LARGEST_CHUNK: usize = 1 << 12;

impl<V: Differentiable> Arena<V> {
    pub(crate) fn new() -> Self {
        Arena { sealed: Vec::new(), tail: Chunk::new(0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.tail.start + self.tail.nodes.len()
    }

    /// Makes room for one operation, so that its nodes, its edges and its rule share a chunk.
    #[inline]
    pub(crate) fn make_room(&mut self) {
        if self.tail.nodes.len() == self.tail.nodes.capacity() {
            self.next_chunk();
        }
    }

    #[cold]
    fn next_chunk(&mut self) {
        // Chunks grow with the tape: few of them to search, and none is ever copied.
        let room = self.len().clamp(SMALLEST_CHUNK, LARGEST_CHUNK);
        if !self.tail.nodes.is_empty() {
            self.seal();
        }
        self.tail.nodes.reserve_exact(room);
        self.tail.edges.reserve_exact(2 * room);
    }

    fn seal(&mut self) {
        let next = Chunk::new(self.len());
        let mut full = std::mem::replace(&mut self.tail, next);
        if full.nodes.len() < full.nodes.capacity() / 2 {
            full.nodes.shrink_to_fit();
            full.edges.shrink_to_fit();
        }
        self.sealed.push(Arc::new(full));
    }

    /// Appends a node without inputs and returns its number.
    pub(crate) fn push_source(&mut self, primal: V::Shared, body: Body<V>, activity: Activity) -> usize {
        self.make_room();
        self.push(Some(primal), body, 0, 1, activity)
    }

    #[inline]
    pub(crate) fn file_rule(&mut self, rule: impl ReverseRule<V> + 'static) -> Body<V> {
        Body::Retained(self.tail.rules.file(rule, |rule| Box::new(rule) as Box<dyn ReverseRule<V>>))
    }

    #[inline]
    pub(crate) fn file_recipe(&mut self, recipe: impl CheckpointRecipe<V> + 'static, bytes: u64) -> Body<V> {
        let boxed = |recipe| Box::new(recipe) as Box<dyn CheckpointRecipe<V>>;
        Body::Checkpointed { recipe: self.tail.recipes.file(recipe, boxed), bytes }
    }

    /// Appends the head of an operation, for which there is [room](Arena::make_room), and returns its number;
    /// [`Arena::push_output`] appends further outputs.
    #[inline]
    pub(crate) fn push_op(
        &mut self,
        primal: Option<V::Shared>,
        body: Body<V>,
        edges: impl Iterator<Item = Edge>,
        outputs: u32,
        activity: Activity,
    ) -> usize {
        let arity = self.push_edges(edges);
        self.push(primal, body, arity, outputs, activity)
    }

    pub(crate) fn push_output(
        &mut self,
        primal: Option<V::Shared>,
        offset: u32,
        activity: Activity,
    ) -> usize {
        self.push(primal, Body::Output { offset }, 0, 0, activity)
    }

    fn push_edges(&mut self, edges: impl Iterator<Item = Edge>) -> u32 {
        let first = self.tail.edges.len();
        self.tail.edges.extend(edges);
        (self.tail.edges.len() - first) as u32
    }

    #[inline]
    fn push(
        &mut self,
        primal: Option<V::Shared>,
        body: Body<V>,
        arity: u32,
        outputs: u32,
        activity: Activity,
    ) -> usize {
        let index = self.len();
        let first_edge = self.tail.edges.len() as u32 - arity;
        self.tail.nodes.push(Node { primal, body, first_edge, arity, outputs, activity });
        index
    }

    pub(crate) fn node(&self, index: usize) -> Option<&Node<V>> {
        match index.checked_sub(self.tail.start) {
            Some(local) => self.tail.nodes.get(local),
            None => {
                let chunk = &self.sealed[self.sealed.partition_point(|chunk| chunk.start <= index) - 1];
                chunk.nodes.get(index - chunk.start)
            }
        }
    }

    /// Everything recorded so far, readable without a lock.
    pub(crate) fn snapshot(&mut self) -> Graph<V> {
        if !self.tail.nodes.is_empty() {
            self.seal();
        }
        Graph::new(self.sealed.clone())
    }
}
