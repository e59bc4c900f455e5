//! Recording one operation: its inputs, which of them are wanted, its outputs, its rule or recipe.

use crate::arena::{Activity, Arena, Body, Edge, Wanted};
use crate::recipe::Checked;
use crate::rule::arity;
use crate::tape::{Checking, Record, wanted};
use crate::var::{Link, Place};
use crate::{CheckpointRecipe, Differentiable, Result, ReverseRule, Tape, Var};

/// An output of an operation with several of them.
pub enum Output<V: Differentiable> {
    /// An output with a derivative.
    Differentiable(V::Shared),
    /// An output without one (an index, a count of iterations): it is never linearised, takes no cotangent,
    /// and is a constant to whatever uses it.
    Auxiliary(V::Shared),
}

impl<V: Differentiable> Output<V> {
    /// An output with a derivative.
    pub fn new(value: impl Into<V::Shared>) -> Self {
        Output::Differentiable(value.into())
    }

    /// An output without a derivative.
    pub fn auxiliary(value: impl Into<V::Shared>) -> Self {
        Output::Auxiliary(value.into())
    }

    fn value(&self) -> &V::Shared {
        match self {
            Output::Differentiable(value) | Output::Auxiliary(value) => value,
        }
    }
}

/// An operation about to be recorded; see [`Tape::on`].
#[must_use = "an operation is recorded by `retain`, `checkpoint` or their `_many` forms"]
pub struct Recording<'a, V: Differentiable> {
    tape: &'a Tape<V>,
    inputs: &'a [&'a Var<V>],
    unwanted: Vec<usize>,
}

/// Whether the tape keeps the values of an operation.
#[derive(Clone, Copy)]
enum Keep {
    Primal,
    Nothing,
}

impl<'a, V: Differentiable> Recording<'a, V> {
    pub(crate) fn new(tape: &'a Tape<V>, inputs: &'a [&'a Var<V>]) -> Self {
        Recording { tape, inputs, unwanted: Vec::new() }
    }

    /// Says that the cotangent of input `index` is not wanted: for this operation, the input is a constant.
    pub fn unwanted(mut self, index: usize) -> Self {
        self.unwanted.push(index);
        self
    }

    /// Records an operation with one output; the tape retains its value and its rule.
    #[inline]
    pub fn retain(self, value: impl Into<V::Shared>, rule: impl ReverseRule<V> + 'static) -> Result<Var<V>> {
        let (tape, value) = (self.tape, value.into());
        Ok(tape.var(value.clone(), self.retain_at(value, rule)?))
    }

    /// Records an operation with one output; the tape keeps the recipe only.
    pub fn checkpoint(
        self,
        value: impl Into<V::Shared>,
        recipe: impl CheckpointRecipe<V> + 'static,
    ) -> Result<Var<V>> {
        let (tape, value) = (self.tape, value.into());
        let place = self.checkpoint_at(&value, recipe)?;
        Ok(tape.var(value, place))
    }

    /// [`retain`](Recording::retain) for those who make the handle themselves.
    #[inline]
    pub(crate) fn retain_at(self, value: V::Shared, rule: impl ReverseRule<V> + 'static) -> Result<Place> {
        self.one(Some(value), |arena| arena.file_rule(rule))
    }

    /// [`checkpoint`](Recording::checkpoint) for those who make the handle themselves.
    pub(crate) fn checkpoint_at(
        self,
        value: &V::Shared,
        recipe: impl CheckpointRecipe<V> + 'static,
    ) -> Result<Place> {
        let bytes = value.byte_count();
        match self.tape.checking() {
            Checking::Off => self.one(None, |arena| arena.file_recipe(recipe, bytes)),
            Checking::On => {
                let recipe = Checked::new(recipe, std::iter::once(&**value))?;
                self.one(None, |arena| arena.file_recipe(recipe, bytes))
            }
        }
    }

    /// Records an operation with any number of outputs; the tape retains their values and the rule.
    pub fn retain_many(
        self,
        outputs: Vec<Output<V>>,
        rule: impl ReverseRule<V> + 'static,
    ) -> Result<Vec<Var<V>>> {
        self.many(outputs, Keep::Primal, |arena| arena.file_rule(rule))
    }

    /// Records an operation with any number of outputs; the tape keeps the recipe only.
    pub fn checkpoint_many(
        self,
        outputs: Vec<Output<V>>,
        recipe: impl CheckpointRecipe<V> + 'static,
    ) -> Result<Vec<Var<V>>> {
        let bytes = outputs.iter().map(|output| output.value().byte_count()).sum();
        match self.tape.checking() {
            Checking::Off => self.many(outputs, Keep::Nothing, |arena| arena.file_recipe(recipe, bytes)),
            Checking::On => {
                let recipe = Checked::new(recipe, outputs.iter().map(|output| &**output.value()))?;
                self.many(outputs, Keep::Nothing, |arena| arena.file_recipe(recipe, bytes))
            }
        }
    }

    #[inline]
    fn one(self, primal: Option<V::Shared>, file: impl FnOnce(&mut Arena<V>) -> Body<V>) -> Result<Place> {
        let mut record = self.tape.lock();
        let activity = self.prepare(&mut record, 1)?;
        let body = file(&mut record.arena);
        let edges = self.edges(record.arena.len());
        let index = record.arena.push_op(primal, body, edges, 1, activity);
        Ok(record.place(index, activity))
    }

    fn many(
        self,
        outputs: Vec<Output<V>>,
        keep: Keep,
        file: impl FnOnce(&mut Arena<V>) -> Body<V>,
    ) -> Result<Vec<Var<V>>> {
        let Some((head, others)) = outputs.split_first() else {
            return Err(arity("outputs of the operation", 1, 0));
        };
        let mut vars = Vec::with_capacity(outputs.len());
        let mut record = self.tape.lock();
        let activity = self.prepare(&mut record, outputs.len())?;
        let activity_of = |output: &Output<V>| match output {
            Output::Differentiable(_) => activity,
            Output::Auxiliary(_) => Activity::Auxiliary,
        };
        let primal = keep.of(head.value());
        let body = file(&mut record.arena);
        let edges = self.edges(record.arena.len());
        let count = outputs.len() as u32;
        let index = record.arena.push_op(primal, body, edges, count, activity_of(head));
        vars.push(self.tape.var(head.value().clone(), record.place(index, activity_of(head))));
        for (offset, output) in (1..).zip(others) {
            let primal = keep.of(output.value());
            let index = record.arena.push_output(primal, offset, activity_of(output));
            vars.push(self.tape.var(output.value().clone(), record.place(index, activity_of(output))));
        }
        Ok(vars)
    }

    /// Checks the inputs, puts the detached ones on the tape as constants (numbered in order, just before the
    /// operation), makes room for it and says whether a derivative can flow through the operation.
    #[inline]
    fn prepare(&self, record: &mut Record<V>, outputs: usize) -> Result<Activity> {
        if let Some(&index) = self.unwanted.iter().find(|&&index| index >= self.inputs.len()) {
            return Err(arity("inputs of the operation", self.inputs.len(), index + 1));
        }
        record.room_for(self.inputs.len() + outputs)?;
        let mut activity = Activity::Constant;
        let mut detached = 0;
        for (index, input) in self.inputs.iter().enumerate() {
            match record.resolve(self.tape, input)? {
                Some((_, of_input)) if self.wants(index, of_input) == Wanted::Yes => {
                    activity = Activity::Active
                }
                Some(_) => {}
                None => detached += 1,
            }
        }
        if detached > 0 {
            for input in self.inputs.iter().filter(|input| matches!(input.link, Link::Detached)) {
                record.arena.push_source(input.share(), Body::Constant, Activity::Constant);
            }
        }
        record.arena.make_room();
        Ok(activity)
    }

    /// The edges to the inputs, when the operation is about to become node `head`.
    #[inline]
    fn edges(&self, head: usize) -> impl Iterator<Item = Edge> {
        let detached = self.inputs.iter().filter(|input| matches!(input.link, Link::Detached)).count();
        let mut constant = (head - detached) as u32;
        self.inputs.iter().enumerate().map(move |(position, input)| match &input.link {
            Link::Node { place, .. } => Edge::new(place.index, self.wants(position, place.activity)),
            Link::Detached | Link::Broken(_) => {
                constant += 1;
                Edge::new(constant - 1, Wanted::No)
            }
        })
    }

    fn wants(&self, position: usize, activity: Activity) -> Wanted {
        if self.unwanted.contains(&position) { Wanted::No } else { wanted(activity) }
    }
}

impl Keep {
    fn of<S: Clone>(self, value: &S) -> Option<S> {
        match self {
            Keep::Primal => Some(value.clone()),
            Keep::Nothing => None,
        }
    }
}
