//! What a sweep gives: cotangents of the leaves, and an account of what it did.

use crate::{Differentiable, Error, NodeId, Result, Var};

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

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.replays.reverse += other.replays.reverse;
        self.replays.value += other.replays.value;
        self.replays.tangent += other.replays.tangent;
        self.pullbacks += other.pullbacks;
        self.pushforwards += other.pushforwards;
        self.peak_values = self.peak_values.max(other.peak_values);
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}

/// A leaf, and the cotangent that it received.
pub(crate) type Collected<V> = (u32, Option<<V as Differentiable>::Tangent>);

/// The cotangents of the leaves that received one.
pub struct Gradients<V: Differentiable> {
    base: NodeId,
    /// All leaves recorded before what was pulled back, sorted by node.
    leaves: Vec<Collected<V>>,
    /// The first node that is recorded after it.
    end: u32,
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
    pub(crate) fn new(base: NodeId, leaves: Vec<Collected<V>>, end: u32, counts: Counts) -> Self {
        Gradients { base, leaves, end, counts }
    }

    /// Adds the results of another sweep over the same graph: losses add up, and so do their gradients.
    ///
    /// The [counts](Gradients::counts) add up too; peaks are the larger ones.
    ///
    /// ```
    /// let tape = ebbtide_tape::Tape::<f64>::new();
    /// let x = tape.leaf(3.0);
    /// let mut sum = x.sin().pullback()?;
    /// sum.accumulate((&x * &x).pullback()?)?;
    /// assert_eq!(sum.wrt(&x)?, 3f64.cos() + 6.0);
    /// # Ok::<(), ebbtide_tape::Error>(())
    /// ```
    pub fn accumulate(&mut self, other: Gradients<V>) -> Result<()> {
        if !self.is_of_this_graph(other.base) {
            return Err(Error::OtherGraph);
        }
        let mut more = other.leaves.into_iter();
        // Both list all leaves before their ends, so one list starts with the other.
        for ((_, sum), (_, cotangent)) in self.leaves.iter_mut().zip(more.by_ref()) {
            match (sum.as_mut(), cotangent) {
                (Some(sum), Some(cotangent)) => V::accumulate(sum, cotangent),
                (None, cotangent) => *sum = cotangent,
                (Some(_), None) => {}
            }
        }
        self.leaves.extend(more);
        self.end = self.end.max(other.end);
        self.counts.add(&other.counts);
        Ok(())
    }

    /// Adds to the cotangent of one leaf.
    pub fn accumulate_at(&mut self, leaf: &Var<V>, cotangent: V::Tangent) -> Result<()> {
        let node = leaf.try_tape().map(|_| leaf.node())?.ok_or(Error::MissingNode)?;
        if !self.is_of_this_graph(node) {
            return Err(Error::OtherGraph);
        }
        if !leaf.value().admits(&cotangent) {
            return Err(Error::NotATangent { node });
        }
        let position = self.position(node).ok_or(Error::NotALeaf { node })?;
        match &mut self.leaves[position].1 {
            Some(sum) => V::accumulate(sum, cotangent),
            none => *none = Some(cotangent),
        }
        Ok(())
    }

    fn is_of_this_graph(&self, node: NodeId) -> bool {
        (node.tape, node.generation) == (self.base.tape, self.base.generation)
    }

    fn position(&self, leaf: NodeId) -> Option<usize> {
        if !self.is_of_this_graph(leaf) {
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
        self.position(leaf).and_then(|position| self.leaves[position].1.as_ref())
    }

    /// A copy of the cotangent of a leaf, zero if what was pulled back does not depend on it.
    ///
    /// Anything else than a leaf of the same graph is an error, since its gradient is not known: the sweep keeps
    /// those of leaves alone. For that of an intermediate value, add a leaf that is zero to it.
    ///
    /// ```
    /// let tape = ebbtide_tape::Tape::<f64>::new();
    /// let (x, unused) = (tape.leaf(3.0), tape.leaf(1.0));
    /// let square = &x * &x;
    /// let nudge = tape.leaf(0.0);
    /// let gradients = (&square + &nudge).sin().pullback()?;
    /// assert_eq!(gradients.wrt(&x)?, 6.0 * 9f64.cos());
    /// assert_eq!(gradients.wrt(&nudge)?, 9f64.cos());
    /// assert_eq!(gradients.wrt(&unused)?, 0.0);
    /// assert!(gradients.wrt(&square).is_err());
    /// # Ok::<(), ebbtide_tape::Error>(())
    /// ```
    pub fn wrt(&self, leaf: &Var<V>) -> Result<V::Tangent>
    where
        V::Tangent: Clone,
    {
        let node = leaf.try_tape().map(|_| leaf.node())?.ok_or(Error::MissingNode)?;
        if !self.is_of_this_graph(node) {
            return Err(Error::OtherGraph);
        }
        if node.index < self.end && self.position(node).is_none() {
            return Err(Error::NotALeaf { node });
        }
        Ok(self.get_node(node).cloned().unwrap_or_else(|| leaf.value().zero_tangent()))
    }

    /// Takes the cotangent of a leaf out.
    pub fn take(&mut self, leaf: &Var<V>) -> Option<V::Tangent> {
        let position = self.position(leaf.node()?)?;
        self.leaves[position].1.take()
    }

    /// The leaves that received a cotangent, in the order of their recording.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &V::Tangent)> {
        let received =
            self.leaves.iter().filter_map(|(index, cotangent)| Some((*index, cotangent.as_ref()?)));
        received.map(|(index, cotangent)| (NodeId { index, ..self.base }, cotangent))
    }

    /// The number of leaves that received a cotangent.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether no leaf received a cotangent.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// What the sweep did.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}
