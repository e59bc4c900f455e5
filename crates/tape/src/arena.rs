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

    /// The same node, its cotangent not wanted.
    pub(crate) fn unwanted(self) -> Edge {
        Edge(self.0 | UNWANTED)
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn from_bits(bits: u32) -> Edge {
        Edge(bits)
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

    /// Drops everything in it, which is user code, and keeps the room for as much.
    fn clear(&mut self) {
        self.nodes.clear();
        self.edges.clear();
        self.rules.clear();
        self.recipes.clear();
    }

    /// The memory that the chunk takes, not counting what its values, rules and recipes own.
    fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<V>>()
            + self.edges.capacity() * size_of::<Edge>()
            + self.rules.bytes()
            + self.recipes.bytes()
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
    /// Emptied chunks of an earlier graph, held by nobody else; the last one is used first.
    spare: Vec<Arc<Chunk<V>>>,
}

const SMALLEST_CHUNK: usize = 64;
const LARGEST_CHUNK: usize = 1 << 12;

/// How much emptied memory a tape keeps for its next graph.
const LARGEST_SPARE: usize = 16 << 20;

impl<V: Differentiable> Arena<V> {
    pub(crate) fn new() -> Self {
        Arena { sealed: Vec::new(), tail: Chunk::new(0), spare: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.tail.start + self.tail.nodes.len()
    }

    /// Drops the graph, which is user code, and returns an arena that records the next one in the same memory.
    pub(crate) fn emptied(mut self) -> Self {
        let mut kept = 0;
        let mut spare = std::mem::take(&mut self.sealed);
        spare.push(Arc::new(self.tail));
        spare.retain_mut(|chunk| {
            // A sweep may still be reading the chunk: it goes when the sweep is done.
            let Some(chunk) = Arc::get_mut(chunk) else { return false };
            chunk.clear();
            kept += chunk.bytes();
            kept <= LARGEST_SPARE && chunk.nodes.capacity() > 0
        });
        spare.reverse();
        // What was left over is not worth its memory: the graph before last was larger.
        self.spare.clear();
        Arena { sealed: self.spare, tail: Chunk::new(0), spare }
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
        if self.spare.is_empty() {
            // Chunks grow with the tape: few of them to search, and none is ever copied.
            let room = self.len().clamp(SMALLEST_CHUNK, LARGEST_CHUNK);
            let mut chunk = Chunk::new(0);
            chunk.nodes.reserve_exact(room);
            chunk.edges.reserve_exact(2 * room);
            self.spare.push(Arc::new(chunk));
        }
        self.seal();
    }

    /// Seals the last chunk and continues in a spare one, if there is any.
    fn seal(&mut self) {
        let mut chunk = self.spare.pop().unwrap_or_else(|| Arc::new(Chunk::new(0)));
        let next = Arc::get_mut(&mut chunk).expect("nobody else holds a spare chunk");
        next.start = self.len();
        std::mem::swap(next, &mut self.tail);
        if next.nodes.is_empty() {
            return;
        }
        if next.nodes.len() < next.nodes.capacity() / 2 {
            next.nodes.shrink_to_fit();
            next.edges.shrink_to_fit();
        }
        self.sealed.push(chunk);
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

    /// Appends an edge of the operation that is about to be recorded, for which there is
    /// [room](Arena::make_room).
    #[inline]
    pub(crate) fn push_edge(&mut self, edge: Edge) {
        self.tail.edges.push(edge);
    }

    /// Appends the head of an operation whose `arity` edges are the last, and returns its number;
    /// [`Arena::push_output`] appends further outputs.
    #[inline]
    pub(crate) fn push_op(
        &mut self,
        primal: Option<V::Shared>,
        body: Body<V>,
        arity: usize,
        outputs: u32,
        activity: Activity,
    ) -> usize {
        self.push(primal, body, arity as u32, outputs, activity)
    }

    pub(crate) fn push_output(
        &mut self,
        primal: Option<V::Shared>,
        offset: u32,
        activity: Activity,
    ) -> usize {
        self.push(primal, Body::Output { offset }, 0, 0, activity)
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
