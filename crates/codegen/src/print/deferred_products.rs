//! Products that wait (see [`crate::analysis::deferred_products`]), as C.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::ArrayId;

use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
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
