//! Rules and recipes of one type side by side: an operation costs no allocation of its own.

use std::any::Any;

use crate::{CheckpointRecipe, Differentiable, ReverseRule};

/// Things of various types, seen as `T` and filed by their type.
pub(crate) struct Pools<T: ?Sized + 'static> {
    pools: Vec<Box<dyn Pool<T>>>,
}

/// Where something is filed.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pool: u32,
    index: u32,
}

/// From this many types on, newcomers share a pool of boxes: pools are searched one by one.
const CROWD: usize = 16;

pub(crate) trait Pool<T: ?Sized + 'static>: Any + Send + Sync {
    fn get(&self, index: usize) -> &T;

    /// Drops what is filed and keeps the room for as much.
    fn clear(&mut self);

    /// The memory that the pool takes.
    fn bytes(&self) -> usize;
}

pub(crate) struct Typed<R>(Vec<R>);

impl<V: Differentiable, R: ReverseRule<V> + 'static> Pool<dyn ReverseRule<V>> for Typed<R> {
    fn get(&self, index: usize) -> &(dyn ReverseRule<V> + 'static) {
        &self.0[index]
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<R>()
    }
}

impl<V: Differentiable, R: CheckpointRecipe<V> + 'static> Pool<dyn CheckpointRecipe<V>> for Typed<R> {
    fn get(&self, index: usize) -> &(dyn CheckpointRecipe<V> + 'static) {
        &self.0[index]
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<R>()
    }
}

impl<T: ?Sized + 'static> Pools<T> {
    pub(crate) fn new() -> Self {
        Pools { pools: Vec::new() }
    }

    /// Files a thing with its like, or `boxed` with other boxes where there are too many types already.
    #[inline]
    pub(crate) fn file<R: 'static, B: 'static>(&mut self, thing: R, boxed: impl FnOnce(R) -> B) -> Slot
    where
        Typed<R>: Pool<T>,
        Typed<B>: Pool<T>,
    {
        match self.pool_of::<R>() {
            Some((pool, things)) => push(pool, things, thing),
            None => self.file_newcomer(thing, boxed),
        }
    }

    #[cold]
    fn file_newcomer<R: 'static, B: 'static>(&mut self, thing: R, boxed: impl FnOnce(R) -> B) -> Slot
    where
        Typed<R>: Pool<T>,
        Typed<B>: Pool<T>,
    {
        if self.pools.len() < CROWD {
            self.pools.push(Box::new(Typed::<R>(vec![thing])));
            return Slot { pool: self.pools.len() as u32 - 1, index: 0 };
        }
        if let Some((pool, boxes)) = self.pool_of::<B>() {
            return push(pool, boxes, boxed(thing));
        }
        self.pools.push(Box::new(Typed::<B>(vec![boxed(thing)])));
        Slot { pool: self.pools.len() as u32 - 1, index: 0 }
    }

    /// The pool of a type; there are few, and most tapes record few types.
    #[inline]
    fn pool_of<R: 'static>(&mut self) -> Option<(usize, &mut Vec<R>)> {
        self.pools.iter_mut().enumerate().find_map(|(pool, of_some_type)| {
            let of_some_type: &mut dyn Any = &mut **of_some_type;
            of_some_type.downcast_mut::<Typed<R>>().map(|things| (pool, &mut things.0))
        })
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &T {
        self.pools[slot.pool as usize].get(slot.index as usize)
    }

    /// Drops what is filed and keeps the room for as much.
    pub(crate) fn clear(&mut self) {
        self.pools.iter_mut().for_each(|pool| pool.clear());
    }

    /// The memory that the pools take.
    pub(crate) fn bytes(&self) -> usize {
        self.pools.iter().map(|pool| pool.bytes()).sum()
    }
}

#[inline]
fn push<R>(pool: usize, things: &mut Vec<R>, thing: R) -> Slot {
    let index = things.len() as u32;
    things.push(thing);
    Slot { pool: pool as u32, index }
}
