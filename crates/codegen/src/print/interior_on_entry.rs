//! Where the interior form of a loop is right for the threads of a grid, computed once on entry to a segment.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ebbtide_ir::{Par, Range, ValueId};

use crate::kernel::index_expr::IndexExpr;
use crate::kernel::interval::{Before, Interval, Rows};
use crate::print::emitter::Emitter;
use crate::print::entry::Known;

/// Rows so near to a boundary are looked at one by one.
const MARGIN: i64 = 4;

impl Emitter<'_> {
    /// The number of the interval of a loop over one dimension, where it is known on entry to the segment. One thread of a block
    /// computes it there, for each loop another: a loop over time asks for it in every step, and for all threads it is more work than
    /// a short loop.
    pub fn interior_on_entry(
        &mut self,
        par: &Par,
        interval: &Interval,
        (names, narrowing): (&str, &str),
    ) -> Option<usize> {
        let (ranges, number) = (self.known_on_entry.ranges(self.program, self.facts, par)?, par.id.index());
        let [(from, to)] = ranges.as_slice() else { return None };
        if interval.rows != Rows::Corners || !self.is_interval_known(par, interval) {
            return None;
        }
        let mut text = format!(
            "__shared__ struct {{ i64 from, to, of[{}]; }} inside{number};\n",
            interval.before.len().max(1)
        );
        let _ = writeln!(text, "if (threadIdx.x == {} % blockDim.x) {{", 32 * (number % 32));
        let _ = writeln!(text, "const i64 f0 = {from}, e0 = eb_extent(f0, {to}), jf = f0, jt = f0 + e0;");
        text.push_str(&corners(&par.ranges, names, narrowing));
        let _ = writeln!(text, "(void)margin; inside{number}.from = from; inside{number}.to = to;");
        text.push_str(names);
        for (k, before) in interval.before.iter().enumerate() {
            let _ = writeln!(text, "inside{number}.of[{k}] = {};", name(before));
        }
        text.push_str("(void)wild; }\n");
        self.entry.add(Known::Interior(number), text);
        Some(number)
    }

    /// Does an interval speak of nothing but what is known on entry to the segment, and of rows?
    fn is_interval_known(&self, par: &Par, interval: &Interval) -> bool {
        let mut own: BTreeSet<ValueId> = par.ranges.iter().map(|range| range.var).collect();
        own.extend(interval.narrowings.iter().flat_map(|n| n.scope()).map(|(v, _)| *v));
        for before in &interval.before {
            let known = |v: ValueId| {
                own.contains(&v) || self.program.literal(v).is_some() || self.on_entry(v).is_some()
            };
            let unknown = |e: &IndexExpr| matches!(e, IndexExpr::Value(v) if !known(*v));
            let fine = match before {
                Before::Value(v) => self.program.op(*v).operands().all(known),
                Before::Wrapped { base, modulus, .. } => !base.any(&unknown) && !modulus.any(&unknown),
            };
            if !fine {
                return false;
            }
            if let Before::Value(v) = before {
                own.insert(*v);
            }
        }
        let known =
            |v: ValueId| own.contains(&v) || self.program.literal(v).is_some() || self.on_entry(v).is_some();
        interval.narrowings.iter().all(|narrowing| narrowing.all_values(&known))
    }
}

/// The names that an interval needs, as they were computed on entry.
pub(crate) fn names_on_entry(interval: &Interval, number: usize) -> String {
    let held = |(k, before)| format!("const i64 {} = inside{number}.of[{k}];\n", name(before));
    interval.before.iter().enumerate().map(held).collect()
}

/// The variable of what is computed before the innermost loop.
fn name(before: &Before) -> String {
    match before {
        Before::Value(v) => format!("v{}", v.index()),
        Before::Wrapped { v, .. } => format!("w{}", v.index()),
    }
}

/// The interval in which all rows agree, from the rows at the corners. Rows at boundaries may be another matter.
pub(crate) fn corners(ranges: &[Range], names: &str, narrowing: &str) -> String {
    let last = ranges.len() - 1;
    let margins = if last == 0 { &[0][..] } else { &[MARGIN, 0] };
    let mut text = "i64 from = jf, to = jf, margin = 0;\n".to_string();
    for margin in margins {
        let _ = writeln!(text, "{{ i64 left = jf, right = jt;\n#pragma unroll");
        let _ = writeln!(text, "for (int corner = 0; corner < {}; corner++) {{", 1 << last);
        for (d, range) in ranges[..last].iter().enumerate() {
            let _ = writeln!(
                text,
                "const i64 v{} = corner >> {d} & 1 ? f{d} + e{d} - 1 - {margin} : f{d} + {margin};",
                range.var.index()
            );
        }
        let _ = writeln!(text, "i64 lo = jf, hi = jt;");
        text.push_str(names);
        text.push_str(narrowing);
        let _ = writeln!(text, "left = eb_max(left, lo); right = eb_min(right, hi); }}");
        let _ = writeln!(text, "if (right > left) {{ from = left; to = right; margin = {margin}; }} }}");
    }
    text
}
