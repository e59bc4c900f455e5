//! Recording one operation: its inputs, which of them are wanted, its outputs, its rule or recipe.

use crate::arena::{Activity, Arena, Body, Edge, Wanted};
use crate::recipe::Checked;
use crate::rule::arity;
use crate::tape::{Checking, Record};
use crate::var::{Link, Place};
use crate::{CheckpointRecipe, Differentiable, Error, Result, ReverseRule, Tape, Var};

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

/// Where an operation was recorded. Errors are boxed: results travel fast, and there is next to never one.
pub(crate) type Placed = Result<Place, Box<Error>>;

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
        let place = self.retain_at(value.clone(), rule).map_err(|error| *error)?;
        Ok(tape.var(value, place))
    }

    /// Records an operation with one output; the tape keeps the recipe only.
    pub fn checkpoint(
        self,
        value: impl Into<V::Shared>,
        recipe: impl CheckpointRecipe<V> + 'static,
    ) -> Result<Var<V>> {
        let (tape, value) = (self.tape, value.into());
        let place = self.checkpoint_at(&value, recipe).map_err(|error| *error)?;
        Ok(tape.var(value, place))
    }

    /// [`retain`](Recording::retain) for those who make the handle themselves.
    #[inline]
    pub(crate) fn retain_at(self, value: V::Shared, rule: impl ReverseRule<V> + 'static) -> Placed {
        self.one(Some(value), |arena| arena.file_rule(rule))
    }

    /// [`checkpoint`](Recording::checkpoint) for those who make the handle themselves.
    pub(crate) fn checkpoint_at(
        self,
        value: &V::Shared,
        recipe: impl CheckpointRecipe<V> + 'static,
    ) -> Placed {
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
    fn one(self, primal: Option<V::Shared>, file: impl FnOnce(&mut Arena<V>) -> Body<V>) -> Placed {
        let mut record = self.tape.lock();
        let activity = self.prepare(&mut record, 1)?;
        let body = file(&mut record.arena);
        let index = record.arena.push_op(primal, body, self.inputs.len(), 1, activity);
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
        let activity = self.prepare(&mut record, outputs.len()).map_err(|error| *error)?;
        let activity_of = |output: &Output<V>| match output {
            Output::Differentiable(_) => activity,
            Output::Auxiliary(_) => Activity::Auxiliary,
        };
        let primal = keep.of(head.value());
        let body = file(&mut record.arena);
        let (arity, count) = (self.inputs.len(), outputs.len() as u32);
        let index = record.arena.push_op(primal, body, arity, count, activity_of(head));
        vars.push(self.tape.var(head.value().clone(), record.place(index, activity_of(head))));
        for (offset, output) in (1..).zip(others) {
            let primal = keep.of(output.value());
            let index = record.arena.push_output(primal, offset, activity_of(output));
            vars.push(self.tape.var(output.value().clone(), record.place(index, activity_of(output))));
        }
        Ok(vars)
    }

    /// Checks the inputs, makes room for the operation, appends its edges and says whether a derivative can
    /// flow through it. Detached inputs go on the tape as constants just before it.
    #[inline]
    fn prepare(&self, record: &mut Record<V>, outputs: usize) -> Result<Activity, Box<Error>> {
        let mut constants = 0..0;
        if !self.unwanted.is_empty()
            || !record.has_room_for(self.inputs.len() + outputs)
            || self.inputs.iter().any(|input| record.look_up(self.tape, input).is_none())
        {
            constants = self.put_constants(record, outputs)?;
        }
        record.arena.make_room();
        let mut activity = Activity::Constant;
        for (position, input) in self.inputs.iter().enumerate() {
            let edge = match record.look_up(self.tape, input) {
                Some(edge) if self.unwanted.contains(&position) => edge.unwanted(),
                Some(edge) => edge,
                None => Edge::new(constants.next().unwrap_or(0), Wanted::No),
            };
            if edge.wanted() {
                activity = Activity::Active;
            }
            record.arena.push_edge(edge);
        }
        Ok(activity)
    }

    /// Puts the detached inputs on the tape once everything else is in order; returns their numbers.
    #[cold]
    fn put_constants(
        &self,
        record: &mut Record<V>,
        outputs: usize,
    ) -> Result<std::ops::Range<u32>, Box<Error>> {
        if let Some(&index) = self.unwanted.iter().find(|&&index| index >= self.inputs.len()) {
            return Err(arity("inputs of the operation", self.inputs.len(), index + 1).into());
        }
        if !record.has_room_for(self.inputs.len() + outputs) {
            return Err(Error::TapeFull.into());
        }
        for input in self.inputs {
            record.resolve(self.tape, input)?;
        }
        let first = record.arena.len() as u32;
        for input in self.inputs.iter().filter(|input| matches!(input.link, Link::Loose(_))) {
            record.arena.push_source(input.share(), Body::Constant, Activity::Constant);
        }
        Ok(first..record.arena.len() as u32)
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
