//! Rules and recipes of one type side by side: an operation costs no allocation of its own.

use std::any::{Any, TypeId};

use crate::{CheckpointRecipe, Differentiable, ReverseRule};

/// Things of various types, seen as `T` and filed by their type.
pub(crate) struct Pools<T: ?Sized + 'static> {
    pools: Vec<(TypeId, Box<dyn Pool<T>>)>,
}

/// Where something is filed.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pool: u32,
    index: u32,
}

/// From this many types on, newcomers share a pool of boxes: pools are searched one by one.
const CROWD: usize = 16;

pub(crate) trait Pool<T: ?Sized>: Send + Sync {
    fn get(&self, index: usize) -> &T;
    fn as_any(&mut self) -> &mut dyn Any;
}

pub(crate) struct Typed<R>(Vec<R>);

impl<V: Differentiable, R: ReverseRule<V> + 'static> Pool<dyn ReverseRule<V>> for Typed<R> {
    fn get(&self, index: usize) -> &(dyn ReverseRule<V> + 'static) {
        &self.0[index]
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl<V: Differentiable, R: CheckpointRecipe<V> + 'static> Pool<dyn CheckpointRecipe<V>> for Typed<R> {
    fn get(&self, index: usize) -> &(dyn CheckpointRecipe<V> + 'static) {
        &self.0[index]
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
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
        match self.find::<R>() {
            Some(pool) => self.push(pool, thing),
            None if self.pools.len() < CROWD => {
                self.pools.push((TypeId::of::<R>(), Box::new(Typed::<R>(Vec::new()))));
                self.push(self.pools.len() - 1, thing)
            }
            None => {
                let pool = self.find::<B>().unwrap_or_else(|| {
                    self.pools.push((TypeId::of::<B>(), Box::new(Typed::<B>(Vec::new()))));
                    self.pools.len() - 1
                });
                self.push(pool, boxed(thing))
            }
        }
    }

    fn find<R: 'static>(&self) -> Option<usize> {
        self.pools.iter().position(|(of, _)| *of == TypeId::of::<R>())
    }

    #[inline]
    fn push<R: 'static>(&mut self, pool: usize, thing: R) -> Slot {
        let typed = self.pools[pool].1.as_any().downcast_mut::<Typed<R>>();
        let things = &mut typed.expect("pools are filed by the type of what they hold").0;
        things.push(thing);
        Slot { pool: pool as u32, index: things.len() as u32 - 1 }
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &T {
        self.pools[slot.pool as usize].1.get(slot.index as usize)
    }
}
