use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use crate::arena::{Activity, Arena, Attached, Body, Edge, MAX_NODES, Wanted};
use crate::execution::Execution;
use crate::graph::Graph;
use crate::recording::Recording;
use crate::var::{Link, Place};
use crate::{
    CheckpointRecipe, Differentiable, Error, Gradients, Hvp, Limit, Result, ReverseRule, Sweep, Var,
};

/// The identity of a node: which tape, which of its graphs, which node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    pub(crate) tape: u64,
    pub(crate) generation: u32,
    pub(crate) index: u32,
}

impl NodeId {
    /// The number of the node on its tape: nodes are numbered from zero in the order of recording.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// The [identity](Tape::id) of its tape.
    pub fn tape(self) -> u64 {
        self.tape
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {} of tape {}", self.index, self.tape)
    }
}

/// A record of operations that can be run backwards.
///
/// A tape is a cheap handle: clones share one record. It is `Send + Sync`, and no lock is held while user code
/// (rules, recipes, drops of values) runs, so any of these may use the tape itself.
pub struct Tape<V: Differentiable> {
    pub(crate) shared: Arc<Shared<V>>,
}

/// A tape that is not kept alive: what a rule or recipe holds of the tape it is recorded on.
pub struct WeakTape<V: Differentiable> {
    shared: Weak<Shared<V>>,
}

pub(crate) struct Shared<V: Differentiable> {
    id: u64,
    checking: Checking,
    record: Mutex<Record<V>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checking {
    Off,
    On,
}

pub(crate) struct Record<V: Differentiable> {
    generation: u32,
    pub(crate) arena: Arena<V>,
}

impl<V: Differentiable> Clone for Tape<V> {
    fn clone(&self) -> Self {
        Tape { shared: Arc::clone(&self.shared) }
    }
}

impl<V: Differentiable> Default for Tape<V> {
    fn default() -> Self {
        Tape::new()
    }
}

impl<V: Differentiable> fmt::Debug for Tape<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").field("id", &self.shared.id).field("nodes", &self.len()).finish()
    }
}

impl<V: Differentiable> WeakTape<V> {
    /// The tape, if anyone still holds it.
    pub fn upgrade(&self) -> Option<Tape<V>> {
        self.shared.upgrade().map(|shared| Tape { shared })
    }
}

impl<V: Differentiable> Tape<V> {
    /// An empty tape.
    pub fn new() -> Self {
        Tape::with_checking(Checking::Off)
    }

    /// An empty tape that remembers a fingerprint of every checkpointed value: a replay that does not
    /// reproduce it is an error. The values must give a [`fingerprint`](Differentiable::fingerprint).
    pub fn checked() -> Self {
        Tape::with_checking(Checking::On)
    }

    fn with_checking(checking: Checking) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let record = Mutex::new(Record { generation: 0, arena: Arena::new() });
        Tape { shared: Arc::new(Shared { id, checking, record }) }
    }

    pub(crate) fn checking(&self) -> Checking {
        self.shared.checking
    }

    /// A handle that does not keep the tape alive.
    pub fn downgrade(&self) -> WeakTape<V> {
        WeakTape { shared: Arc::downgrade(&self.shared) }
    }

    /// Nothing panics while the lock is held but an allocation, and that leaves the record whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Record<V>> {
        self.shared.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn var(&self, value: V::Shared, place: Place) -> Var<V> {
        Var { value, link: Link::Node { tape: self.clone(), place } }
    }

    /// A handle of the node that `edge` leads to, in the graph of `base`.
    pub(crate) fn at(&self, value: V::Shared, base: NodeId, edge: Edge) -> Var<V> {
        self.var(value, Place::new(base.generation, edge))
    }

    /// A number that no other tape of this process has.
    pub fn id(&self) -> u64 {
        self.shared.id
    }

    /// Whether two handles are of one tape.
    pub fn same_tape(&self, other: &Tape<V>) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The number of nodes recorded.
    pub fn len(&self) -> usize {
        self.lock().arena.len()
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A variable: pullbacks give its gradient.
    pub fn leaf(&self, value: impl Into<V::Shared>) -> Var<V> {
        self.source(value.into(), Body::Leaf, Activity::Active)
    }

    /// A constant: it has no gradient. Its value is retained, so that replays can read it.
    pub fn constant(&self, value: impl Into<V::Shared>) -> Var<V> {
        self.source(value.into(), Body::Constant, Activity::Constant)
    }

    /// A value whose rule will be [attached](Tape::attach_rule) later.
    pub fn placeholder(&self, value: impl Into<V::Shared>) -> Var<V> {
        self.source(value.into(), Body::Placeholder(Box::new(OnceLock::new())), Activity::Active)
    }

    fn source(&self, value: V::Shared, body: Body<V>, activity: Activity) -> Var<V> {
        let mut record = self.lock();
        if !record.has_room_for(1) {
            drop(record);
            return Var::broken(value, Error::TapeFull);
        }
        let index = record.arena.push_source(value.clone(), body, activity);
        self.var(value, record.place(index, activity))
    }

    /// Starts the recording of an operation on `inputs`, for what [`record_op`](Tape::record_op) and
    /// [`record_checkpointed_op`](Tape::record_checkpointed_op) do not cover: unwanted inputs, several outputs.
    pub fn on<'a>(&'a self, inputs: &'a [&'a Var<V>]) -> Recording<'a, V> {
        Recording::new(self, inputs)
    }

    /// Records an operation: the tape retains its value and its rule.
    pub fn record_op(
        &self,
        value: impl Into<V::Shared>,
        inputs: &[&Var<V>],
        rule: impl ReverseRule<V> + 'static,
    ) -> Result<Var<V>> {
        self.on(inputs).retain(value, rule)
    }

    /// Records a checkpointed operation: the tape keeps neither value nor rule, only the recipe. The returned
    /// handle still gives the value, and dropping it frees the value.
    pub fn record_checkpointed_op(
        &self,
        value: impl Into<V::Shared>,
        inputs: &[&Var<V>],
        recipe: impl CheckpointRecipe<V> + 'static,
    ) -> Result<Var<V>> {
        self.on(inputs).checkpoint(value, recipe)
    }

    /// Gives a placeholder its rule, once. The inputs were recorded before the placeholder.
    pub fn attach_rule(
        &self,
        placeholder: NodeId,
        inputs: &[&Var<V>],
        rule: impl ReverseRule<V> + 'static,
    ) -> Result<()> {
        let rule: Box<dyn ReverseRule<V>> = Box::new(rule);
        let mut attached = None;
        let record = self.lock();
        let node = record.find(self, placeholder)?;
        let found = match &node.body {
            Body::Placeholder(cell) => {
                let mut edges = Vec::with_capacity(inputs.len());
                for input in inputs {
                    let edge = record.resolve(self, input)?.ok_or(Error::MissingNode)?;
                    if edge.node() >= placeholder.index as usize {
                        let input = NodeId { index: edge.node() as u32, ..placeholder };
                        return Err(Error::InputAfterNode { node: placeholder, input });
                    }
                    edges.push(edge);
                }
                match cell.set(Attached { edges: edges.into(), rule }) {
                    Ok(()) => return Ok(()),
                    Err(again) => {
                        attached = Some(again);
                        "a placeholder that has its rule already"
                    }
                }
            }
            Body::Leaf => "a leaf",
            Body::Constant => "a constant",
            Body::Checkpointed { .. } => "a checkpointed operation",
            Body::Retained(_) | Body::Output { .. } => "an operation",
        };
        // The rule that was not taken is user code to drop: not under the lock.
        drop(record);
        drop(attached);
        Err(Error::NotAPlaceholder { node: placeholder, found })
    }

    /// A new handle of a node, with the tape's own value. That of a checkpointed operation is computed again, with
    /// whatever it is computed from; [`retrack_with`](Tape::retrack_with) takes a value that is at hand.
    pub fn retrack(&self, node: NodeId) -> Result<Var<V>> {
        let place = {
            let record = self.lock();
            let found = record.find(self, node)?;
            let place = record.place(node.index as usize, found.activity);
            if let Some(value) = found.primal.clone() {
                return Ok(self.var(value, place));
            }
            place
        };
        let graph = self.graph_of(node)?;
        let mut execution = Execution::new(&graph, node, &[node.index as usize], Limit::None, None)?;
        Ok(self.var(execution.value(node.index as usize)?, place))
    }

    /// A new handle of a checkpointed node from a value that the caller kept: nothing is replayed, and the tape does
    /// not keep the value. Of a node whose value the tape retains, the handle has the tape's own.
    ///
    /// The value must be the one recorded; a tape in [checked](Tape::checked) mode replays the node and compares.
    pub fn retrack_with(&self, node: NodeId, value: impl Into<V::Shared>) -> Result<Var<V>> {
        if self.checking() == Checking::On {
            let (recorded, value) = (self.retrack(node)?, value.into());
            let same = recorded.value().fingerprint() == value.fingerprint();
            return if same { Ok(recorded) } else { Err(Error::ReplayMismatch { node }) };
        }
        let record = self.lock();
        let found = record.find(self, node)?;
        let value = found.primal.clone().unwrap_or_else(|| value.into());
        Ok(self.var(value, record.place(node.index as usize, found.activity)))
    }

    /// Frees the graph: values, rules and recipes. Handles keep their own values; using them for anything
    /// else is [`Error::GraphFreed`]. The tape can record a new graph, and keeps up to 16 MiB of emptied memory
    /// for it: a graph no larger than the last one is recorded without an allocation.
    pub fn free(&self) {
        let freed = {
            let mut record = self.lock();
            record.generation = record.generation.wrapping_add(1);
            std::mem::replace(&mut record.arena, Arena::new())
        };
        let emptied = freed.emptied();
        let mut record = self.lock();
        // Destructors, and other threads, may have recorded something meanwhile.
        if record.arena.len() == 0 {
            record.arena = emptied;
        }
    }

    /// A sweep over this tape with options of its own.
    pub fn sweep(&self) -> Sweep<'_, V> {
        Sweep::new(self)
    }

    /// The gradient of `loss`, a value with one element, with respect to all leaves.
    pub fn pullback(&self, loss: &Var<V>) -> Result<Gradients<V>> {
        self.sweep().pullback(loss)
    }

    /// The gradient with `seed` as the cotangent of `output`, of any shape.
    pub fn pullback_seeded(&self, output: &Var<V>, seed: V::Tangent) -> Result<Gradients<V>> {
        self.sweep().pullback_seeded(output, seed)
    }

    /// The gradient of `loss` and its change along `directions` (tangents of leaves; the others are zero).
    pub fn hvp<'a>(
        &self,
        loss: &Var<V>,
        directions: impl IntoIterator<Item = (&'a Var<V>, V::Tangent)>,
    ) -> Result<Hvp<V>> {
        self.sweep().hvp(loss, directions)
    }

    /// A frozen view of the graph that a node is of.
    pub(crate) fn graph_of(&self, node: NodeId) -> Result<Graph<V>> {
        let mut record = self.lock();
        record.find(self, node)?;
        Ok(record.arena.snapshot())
    }

    /// A frozen view of the graph and the node of each variable in it.
    pub(crate) fn snapshot(&self, vars: &[&Var<V>]) -> Result<(Graph<V>, NodeId, Vec<usize>)> {
        let mut record = self.lock();
        let mut indices = Vec::with_capacity(vars.len());
        for var in vars {
            let index = record.resolve(self, var)?.ok_or(Error::MissingNode)?.node();
            if record.arena.node(index).is_some_and(|node| node.activity == Activity::Auxiliary) {
                let node =
                    NodeId { tape: self.shared.id, generation: record.generation, index: index as u32 };
                return Err(Error::Auxiliary { node });
            }
            indices.push(index);
        }
        let base = NodeId { tape: self.shared.id, generation: record.generation, index: 0 };
        Ok((record.arena.snapshot(), base, indices))
    }

    pub(crate) fn id_of(&self, place: Place) -> NodeId {
        NodeId { tape: self.shared.id, generation: place.generation(), index: place.edge().node() as u32 }
    }
}

fn wanted(activity: Activity) -> Wanted {
    if activity == Activity::Active { Wanted::Yes } else { Wanted::No }
}

impl<V: Differentiable> Record<V> {
    #[inline]
    pub(crate) fn has_room_for(&self, nodes: usize) -> bool {
        self.arena.len() + nodes < MAX_NODES
    }

    pub(crate) fn place(&self, index: usize, activity: Activity) -> Place {
        Place::new(self.generation, Edge::new(index as u32, wanted(activity)))
    }

    /// The edge to a variable on this tape; `None` for a detached one.
    pub(crate) fn resolve(&self, tape: &Tape<V>, var: &Var<V>) -> Result<Option<Edge>> {
        match (self.look_up(tape, var), &var.link) {
            (Some(edge), _) => Ok(Some(edge)),
            (None, Link::Loose(None)) => Ok(None),
            (None, Link::Loose(Some(error))) => Err((**error).clone()),
            (None, Link::Node { tape: other, .. }) if !Arc::ptr_eq(&other.shared, &tape.shared) => {
                Err(Error::ForeignNode)
            }
            (None, Link::Node { .. }) => Err(Error::GraphFreed),
        }
    }

    /// The edge to a variable that is on this tape.
    #[inline]
    pub(crate) fn look_up(&self, tape: &Tape<V>, var: &Var<V>) -> Option<Edge> {
        match &var.link {
            Link::Node { tape: of, place }
                if Arc::ptr_eq(&of.shared, &tape.shared) && place.generation() == self.generation =>
            {
                Some(place.edge())
            }
            _ => None,
        }
    }

    fn find(&self, tape: &Tape<V>, id: NodeId) -> Result<&crate::arena::Node<V>> {
        if id.tape != tape.shared.id {
            return Err(Error::ForeignNode);
        }
        if id.generation != self.generation {
            return Err(Error::GraphFreed);
        }
        self.arena.node(id.index as usize).ok_or(Error::MissingNode)
    }
}
