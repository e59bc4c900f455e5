//! The graph: an append-only arena of nodes in chunks. A chunk is sealed before anyone sweeps over it, so a
//! sweep reads nodes without a lock and user code runs without one.

use std::sync::{Arc, OnceLock};

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
    Retained(Box<dyn ReverseRule<V>>),
    Checkpointed {
        recipe: Box<dyn CheckpointRecipe<V>>,
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
}

impl<V: Differentiable> Chunk<V> {
    fn new(start: usize) -> Self {
        Chunk { start, nodes: Vec::new(), edges: Vec::new() }
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
const LARGEST_CHUNK: usize = 1 << 16;

impl<V: Differentiable> Arena<V> {
    pub(crate) fn new() -> Self {
        Arena { sealed: Vec::new(), tail: Chunk::new(0) }
    }

    pub(crate) fn len(&self) -> usize {
        self.tail.start + self.tail.nodes.len()
    }

    /// Makes room for one operation, so that its nodes share a chunk.
    #[inline]
    fn make_room(&mut self) {
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

    /// Appends an operation with one output and returns its number.
    #[inline]
    pub(crate) fn push_op(
        &mut self,
        primal: Option<V::Shared>,
        body: Body<V>,
        edges: impl Iterator<Item = Edge>,
        activity: Activity,
    ) -> usize {
        self.make_room();
        let arity = self.push_edges(edges);
        self.push(primal, body, arity, 1, activity)
    }

    /// Appends the head of an operation with several outputs; [`Arena::push_output`] appends the others.
    pub(crate) fn push_head(
        &mut self,
        primal: Option<V::Shared>,
        body: Body<V>,
        edges: impl Iterator<Item = Edge>,
        outputs: u32,
        activity: Activity,
    ) -> usize {
        self.make_room();
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

/// A frozen view of the arena.
pub(crate) struct Graph<V: Differentiable> {
    chunks: Vec<Arc<Chunk<V>>>,
    /// Where each chunk starts, and after the last one where it ends.
    starts: Vec<usize>,
    /// The chunk that holds the first node of each block of [`BLOCK`] nodes: nodes are looked up all the time.
    directory: Vec<u32>,
}

const BLOCK: usize = 64;

/// A node with its number and its edges.
pub(crate) struct NodeRef<'g, V: Differentiable> {
    pub(crate) index: usize,
    pub(crate) node: &'g Node<V>,
    pub(crate) edges: &'g [Edge],
}

impl<V: Differentiable> Clone for NodeRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Differentiable> Copy for NodeRef<'_, V> {}

impl<V: Differentiable> Graph<V> {
    fn new(chunks: Vec<Arc<Chunk<V>>>) -> Self {
        let length = chunks.last().map_or(0, |chunk| chunk.start + chunk.nodes.len());
        let mut directory = Vec::with_capacity(length / BLOCK + 1);
        for (index, chunk) in chunks.iter().enumerate() {
            let blocks = (chunk.start + chunk.nodes.len()).div_ceil(BLOCK);
            directory.resize(blocks, index as u32);
        }
        let starts = chunks.iter().map(|chunk| chunk.start).chain([length]).collect();
        Graph { chunks, starts, directory }
    }

    /// The chunk that holds a node of this graph.
    fn chunk(&self, index: usize) -> &Chunk<V> {
        let mut chunk = self.directory[index / BLOCK] as usize;
        while self.starts[chunk + 1] <= index {
            chunk += 1;
        }
        &self.chunks[chunk]
    }

    pub(crate) fn node(&self, index: usize) -> &Node<V> {
        let chunk = self.chunk(index);
        &chunk.nodes[index - chunk.start]
    }

    /// The operation that a node is an output of, seen from its head.
    pub(crate) fn op(&self, index: usize) -> NodeRef<'_, V> {
        let chunk = self.chunk(index);
        let mut node = &chunk.nodes[index - chunk.start];
        let mut head = index;
        if let Body::Output { offset } = node.body {
            head = index - offset as usize;
            node = &chunk.nodes[head - chunk.start];
        }
        NodeRef { index: head, node, edges: chunk.edges(node) }
    }

    /// The operations up to node `top`, leaves included, last one first.
    pub(crate) fn ops_down_from(&self, top: usize) -> impl Iterator<Item = NodeRef<'_, V>> {
        let chunks = self.chunks.partition_point(|chunk| chunk.start <= top);
        self.chunks[..chunks].iter().rev().flat_map(move |chunk| {
            let end = (top + 1 - chunk.start).min(chunk.nodes.len());
            let nodes = chunk.nodes[..end].iter().enumerate().rev();
            nodes.filter(|(_, node)| !matches!(node.body, Body::Output { .. })).map(move |(local, node)| {
                NodeRef { index: chunk.start + local, node, edges: chunk.edges(node) }
            })
        })
    }

    /// The operations up to node `top`, leaves included, first one first.
    pub(crate) fn ops_up_to(&self, top: usize) -> impl Iterator<Item = NodeRef<'_, V>> {
        self.chunks.iter().take_while(move |chunk| chunk.start <= top).flat_map(move |chunk| {
            let end = (top + 1 - chunk.start).min(chunk.nodes.len());
            let nodes = chunk.nodes[..end].iter().enumerate();
            nodes.filter(|(_, node)| !matches!(node.body, Body::Output { .. })).map(move |(local, node)| {
                NodeRef { index: chunk.start + local, node, edges: chunk.edges(node) }
            })
        })
    }
}

impl<'g, V: Differentiable> NodeRef<'g, V> {
    /// The numbers of the operation's outputs.
    pub(crate) fn outputs(&self) -> std::ops::Range<usize> {
        self.index..self.index + self.node.outputs as usize
    }

    /// The rule that the tape keeps, if it keeps one.
    pub(crate) fn retained_rule(&self) -> Option<&'g dyn ReverseRule<V>> {
        match &self.node.body {
            Body::Retained(rule) => Some(&**rule),
            Body::Placeholder(attached) => attached.get().map(|attached| &*attached.rule),
            _ => None,
        }
    }

    pub(crate) fn is_checkpointed(&self) -> bool {
        matches!(self.node.body, Body::Checkpointed { .. })
    }
}
