//! Values and elements, and what happens to whole arrays.

use super::evaluate::{Bits, evaluate};
use super::modes::Dead;
use super::{Bytes, HostArray, Machine};
use crate::syntax::*;

impl<'p> Machine<'p, '_> {
    pub(crate) fn bits(&self, v: ValueId) -> Bits {
        self.scalars.values[v.index()]
    }

    pub(super) fn index(&self, v: ValueId) -> i64 {
        self.bits(v) as i64
    }

    /// A bound of a loop, which must be a number.
    pub(super) fn bound(&self, v: ValueId) -> Result<i64, Fault> {
        match self.index(v) {
            OVERFLOW => Err(Fault::IndexOverflow { site: self.program.value(v).site.clone() }),
            bound => Ok(bound),
        }
    }

    pub(super) fn compute(&mut self, v: ValueId) -> Result<Bits, Fault> {
        let program: &'p Program = self.program;
        let decl = program.value(v);
        Ok(match decl.op {
            Op::Scalar(s) => self.arguments[s.index()].bits(),
            Op::Dim(array, k) => self.arrays[array.index()].shape[k as usize] as Bits,
            Op::LoopVar => self.bits(v),
            Op::Get(local) => self.scalars.locals[local.index()],
            Op::Load(array, index) => {
                let at = self.element(array, index, &decl.site)?;
                self.note(array, at, Touched::Read, &decl.site);
                self.read(array, at)
            }
            _ => match evaluate(self.program, v, |operand| self.bits(operand)) {
                Some(result) => {
                    result.map_err(|_| program.division_fault(decl.site.clone(), self.whereabouts()))?
                }
                None => 0,
            },
        })
    }

    /// The place of an element in its array.
    pub(super) fn element(
        &self,
        array: ArrayId,
        index: Indices,
        site: &Option<Site>,
    ) -> Result<usize, Fault> {
        let shape = &self.arrays[array.index()].shape;
        let mut at = 0;
        for (dimension, (v, extent)) in index.as_slice().iter().zip(shape).enumerate() {
            let (index, extent) = (self.index(*v), *extent);
            if index < 0 || index >= extent {
                let array = self.program.array(array).name.clone();
                return Err(Fault::OutOfBounds { array, dimension, index, extent, site: site.clone() });
            }
            at = at * extent as usize + index as usize;
        }
        Ok(at)
    }

    pub(crate) fn read(&self, array: ArrayId, at: usize) -> Bits {
        let bytes = self.arrays[array.index()].bytes.read();
        match self.program.array(array).ty.size() {
            1 => Bits::from(bytes[at]),
            4 => Bits::from(u32::from_ne_bytes([
                bytes[4 * at],
                bytes[4 * at + 1],
                bytes[4 * at + 2],
                bytes[4 * at + 3],
            ])),
            _ => {
                let mut eight = [0; 8];
                eight.copy_from_slice(&bytes[8 * at..8 * at + 8]);
                Bits::from_ne_bytes(eight)
            }
        }
    }

    pub(crate) fn write(&mut self, array: ArrayId, at: usize, value: Bits) {
        let size = self.program.array(array).ty.size();
        let bytes = &mut self.arrays[array.index()].bytes.write()[size * at..size * (at + 1)];
        match size {
            1 => bytes[0] = value as u8,
            4 => bytes.copy_from_slice(&(value as u32).to_ne_bytes()),
            _ => bytes.copy_from_slice(&value.to_ne_bytes()),
        }
    }

    pub(super) fn fill(&mut self, array: ArrayId, value: Bits) {
        let count = self.arrays[array.index()].shape.iter().product::<i64>() as usize;
        (0..count).for_each(|at| self.write(array, at, value));
    }

    pub(super) fn temp(&mut self, array: ArrayId) {
        if let Role::Temp(shape) = &self.program.array(array).role {
            let shape: Vec<i64> = shape.iter().map(|v| self.index(*v).max(0)).collect();
            let size = shape.iter().product::<i64>() as usize * self.program.array(array).ty.size();
            let place = &mut self.arrays[array.index()];
            place.shape = shape;
            // The host may have brought memory for it.
            match place.bytes.write() {
                bytes if bytes.len() == size => bytes.fill(0),
                _ => place.bytes = Bytes::Own(vec![0; size]),
            }
        }
    }

    pub(super) fn push(&mut self, push: Push) -> Result<(), Fault> {
        let tape = &mut self.tapes[push.array.index()];
        let place = tape.places.get_mut(tape.depth).ok_or(Fault::Tape)?;
        tape.depth += 1;
        let array = &mut self.arrays[push.array.index()];
        match push.after {
            After::Same => place.bytes.write().copy_from_slice(array.bytes.read()),
            After::Anything(old) => {
                // Read through a copy: two names for one place are not to be had here.
                let copy =
                    HostArray { shape: array.shape.clone(), bytes: Bytes::Own(array.bytes.read().to_vec()) };
                std::mem::swap(place, array);
                self.arrays[old.index()] = copy;
                if self.modes.dead == Dead::Poisoned {
                    self.aliases.push(old);
                    self.forget(push.array);
                }
            }
        }
        Ok(())
    }

    pub(super) fn pop(&mut self, array: ArrayId) -> Result<(), Fault> {
        let tape = &mut self.tapes[array.index()];
        tape.depth = tape.depth.checked_sub(1).ok_or(Fault::Tape)?;
        std::mem::swap(&mut tape.places[tape.depth], &mut self.arrays[array.index()]);
        self.forget_popped(array);
        Ok(())
    }

    pub(super) fn equal_shapes(&self, a: ArrayId, b: ArrayId) -> Result<(), Fault> {
        let describe = |id: ArrayId| {
            format!("`{}` of shape {:?}", self.program.array(id).name, self.arrays[id.index()].shape)
        };
        if self.arrays[a.index()].shape == self.arrays[b.index()].shape {
            return Ok(());
        }
        Err(Fault::ShapesDiffer { left: describe(a), right: describe(b) })
    }
}
