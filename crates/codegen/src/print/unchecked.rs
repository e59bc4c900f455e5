//! Iterations without checks, on a grid.
//!
//! A loop without checks may have conditions over its indices: they tell what happens at boundaries, and far from them each
//! is always true or always false. Nearly all iterations are such, so these have a text of their own, in which the
//! conditions are decided: no predicates, and no values for what is not loaded. A warp takes it where all its iterations
//! are of that kind.

use ebbtide_ir::Par;

use crate::analysis::boundary_conditions::FarFromBoundaries;
use crate::analysis::narrow_index::{Narrow, compared_with};
use crate::analysis::work::all_values;
use crate::kernel::name::{Name, Variable};
use crate::print::emitter::{Emitter, line};
use crate::print::entry::Known;
use crate::print::statements::Context;
use crate::transform::forms::{Iterations, Proved};
use crate::transform::sides::PerSide;

impl Emitter<'_> {
    /// Prints so many iterations side by side, without checks: where conditions tell boundaries, in two texts, of which one is
    /// for iterations far from them.
    pub fn unchecked(&mut self, it: &Iterations, cx: Context, proved: Proved, sides: usize) {
        let usual = self.forms.usual(it.par);
        let own = match sides {
            1 => PerSide::default(),
            _ => all_values(it.par).into(),
        };
        let any = self.forms.proved_form(it, proved, (&own, sides), &FarFromBoundaries::new());
        if usual.is_empty() {
            return self.body(cx, &any);
        }
        let mut tests = Vec::new();
        line!(self, "{{");
        for side in 0..sides {
            let conditions = self.forms.conditions(it, proved, &usual, (&own, side));
            self.body(cx, &conditions);
            tests.extend(usual.iter().map(|(v, holds)| {
                let not = if *holds { "" } else { "!" };
                format!("{not}{}", own.name(Name::value(*v), side))
            }));
        }
        let far = self.forms.proved_form(it, proved, (&own, sides), &usual);
        line!(self, "if (__all_sync(__activemask(), {})) {{", tests.join(" && "));
        self.body(cx, &far);
        line!(self, "}} else {{");
        self.body(cx, &any);
        line!(self, "}} }}");
    }

    /// Prints the narrow values that those of a loop are compared with: on entry to the segment, where they are known there.
    pub fn narrow_bounds(&mut self, par: &Par, narrow: &Narrow) {
        for v in compared_with(self.program, narrow, &self.inside, par) {
            let name = Name::from(Variable::Bound(v));
            match self.on_entry(v) {
                Some(value) => {
                    let (known, v) = (Known::Bound(v), v.index());
                    let text = format!(
                        "__shared__ nx bound{v}; if (threadIdx.x == 0) bound{v} = eb_narrow({value});\n"
                    );
                    self.entry.add(known, text);
                    line!(self, "const nx {name} = bound{v};");
                }
                None => line!(self, "const nx {name} = eb_narrow({});", self.value(v)),
            }
        }
    }
}
