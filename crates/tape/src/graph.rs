//! A frozen view of the arena: what a sweep runs over, without a lock.

use std::sync::Arc;

use crate::arena::{Activity, Body, Chunk, Edge, Node, Wanted};
use crate::{CheckpointRecipe, Differentiable, ReverseRule};

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
    chunk: &'g Chunk<V>,
}

impl<V: Differentiable> Clone for NodeRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V: Differentiable> Copy for NodeRef<'_, V> {}

impl<V: Differentiable> Graph<V> {
    pub(crate) fn new(chunks: Vec<Arc<Chunk<V>>>) -> Self {
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

    /// The edge that an operation on a node gets.
    pub(crate) fn edge_to(&self, index: usize) -> Edge {
        let active = self.node(index).activity == Activity::Active;
        Edge::new(index as u32, if active { Wanted::Yes } else { Wanted::No })
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
        NodeRef { index: head, node, edges: chunk.edges(node), chunk }
    }

    /// The operations up to node `top`, leaves included, last one first.
    pub(crate) fn ops_down_from(&self, top: usize) -> impl Iterator<Item = NodeRef<'_, V>> {
        let chunks = self.chunks.partition_point(|chunk| chunk.start <= top);
        self.chunks[..chunks].iter().rev().flat_map(move |chunk| {
            let end = (top + 1 - chunk.start).min(chunk.nodes.len());
            let nodes = chunk.nodes[..end].iter().enumerate().rev();
            nodes.filter(|(_, node)| !matches!(node.body, Body::Output { .. })).map(move |(local, node)| {
                NodeRef { index: chunk.start + local, node, edges: chunk.edges(node), chunk }
            })
        })
    }

    /// The operations up to node `top`, leaves included, first one first.
    pub(crate) fn ops_up_to(&self, top: usize) -> impl Iterator<Item = NodeRef<'_, V>> {
        self.chunks.iter().take_while(move |chunk| chunk.start <= top).flat_map(move |chunk| {
            let end = (top + 1 - chunk.start).min(chunk.nodes.len());
            let nodes = chunk.nodes[..end].iter().enumerate();
            nodes.filter(|(_, node)| !matches!(node.body, Body::Output { .. })).map(move |(local, node)| {
                NodeRef { index: chunk.start + local, node, edges: chunk.edges(node), chunk }
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
            Body::Retained(rule) => Some(self.chunk.rules.get(*rule)),
            Body::Placeholder(attached) => attached.get().map(|attached| &*attached.rule),
            _ => None,
        }
    }

    /// The recipe of a checkpointed operation.
    pub(crate) fn recipe(&self) -> Option<&'g dyn CheckpointRecipe<V>> {
        match &self.node.body {
            Body::Checkpointed { recipe, .. } => Some(self.chunk.recipes.get(*recipe)),
            _ => None,
        }
    }

    pub(crate) fn is_checkpointed(&self) -> bool {
        matches!(self.node.body, Body::Checkpointed { .. })
    }
}
