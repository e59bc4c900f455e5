//! What the narrow values of a loop are compared with, as CUDA C.

use std::collections::BTreeSet;

use ebbtide_ir::ValueId;

use crate::kernel::name::{Name, Variable};
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;

impl Emitter<'_> {
    /// Prints these values in the narrow type: on entry to the segment, where they are known there.
    pub fn narrow_bounds(&mut self, bounds: &BTreeSet<ValueId>) {
        for v in bounds {
            let name = Name::from(Variable::Bound(*v));
            match self.on_entry(*v) {
                Some(value) => {
                    let (known, v) = (Known::Bound(*v), v.index());
                    let text = format!(
                        "__shared__ nx bound{v}; if (threadIdx.x == 0) bound{v} = eb_narrow({value});\n"
                    );
                    self.entry.add(known, text);
                    line!(self, "const nx {name} = bound{v};");
                }
                None => line!(self, "const nx {name} = eb_narrow({});", self.value(*v)),
            }
        }
    }
}
