//! Products that wait (see [`crate::analysis::deferred_products`]), as C.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Block, LoopId};

use crate::analysis::deferred_products::only_added_to;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::transform::step::Step;

impl Emitter<'_> {
    /// By loop of a segment: the matrices that products wait for meanwhile.
    pub fn waiting(&self, block: &Block) -> BTreeMap<LoopId, BTreeSet<ArrayId>> {
        match self.forms.leaves_out(Step::DeferredProducts) {
            true => BTreeMap::new(),
            false => only_added_to(self.program, block),
        }
    }

    /// Declares the rows that wait to be multiplied into each of these matrices.
    pub fn waiting_rows(&mut self, matrices: &BTreeSet<ArrayId>) {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for c in matrices {
            let t = c_type(self.program.array(*c).ty);
            let place = places.entry(t).or_default();
            line!(self, "eb_rows_{t} r{} = {{eb_waiting_{t}[{place}], 0}};", c.index());
            *place += 1;
            let most = self.waiting_places.entry(t).or_default();
            *most = (*most).max(*place);
        }
    }

    /// Multiplies what waits into this thread's part of the matrix.
    pub fn settle(&mut self, matrix: ArrayId) {
        let (t, c) = (c_type(self.program.array(matrix).ty), matrix.index());
        line!(self, "eb_settle_{t}(f, &r{c}, (eb_matrix_{t}){{a{c}, d{c}_1, 1}}, d{c}_0, d{c}_1);");
    }
}
