//! Which iterations of a parallel loop need no checks on a grid, as CUDA C: a proof, or the interior of rows.

use ebbtide_ir::Par;

use crate::kernel::grid::Safe;
use crate::kernel::interval::Rows;
use crate::kernel::segment::ProductId;
use crate::print::emitter::{Emitter, line};
use crate::print::grid_nest::Printed;
use crate::print::interior_on_entry::corners;
use crate::print::par::proved;

impl Emitter<'_> {
    /// What each thread takes of bands, and whether these are proved: as it was computed on entry, where it is known there.
    pub fn dealt_bands(&mut self, printed: &Printed) {
        let Printed { grid, par, .. } = printed;
        let last = grid.ranges.len() - 1;
        let tests = if let Safe::Proved(tests) = &grid.safe { Some(tests) } else { None };
        match tests.and_then(|tests| Some((tests, self.dealt_on_entry(par, Some(tests))?))) {
            Some((tests, number)) => {
                line!(self, "const i64 jf = f{last}; i64 wild = 0; (void)wild;");
                line!(self, "const eb_plan plan = plan{number};");
                if printed.product.is_none() {
                    line!(
                        self,
                        "const eb_deal deal = {{column{number}, plan.columns, nth{number}, plan.band, plan.base, plan.end, plan.last}};"
                    );
                }
                match self.is_known_on_entry(tests) {
                    true => line!(self, "const b8 proved = plan.proved;"),
                    false => line!(self, "const b8 proved = {};", proved(tests, &narrow(last))),
                }
            }
            None => {
                self.safe(printed);
                if printed.product.is_none() {
                    self.dealt_on_entry(par, None);
                    self.deal(par, "jf");
                }
            }
        }
        if tests.is_some() {
            line!(self, "i32 oops = 0; i64 oops_index = 0, oops_extent = 0;");
        }
        if let Some(product) = printed.product {
            self.dealt_tiles(par, product);
        }
    }

    /// Begins a loop over the groups of a product that the block of a thread has: what the thread takes of each.
    fn dealt_tiles(&mut self, par: &Par, product: ProductId) {
        let (plan, turn) = (format!("product{}", product.0), self.turn_of(product));
        // Other threads of the block may have stored what this one reads.
        line!(self, "__syncthreads();");
        line!(
            self,
            "for (u32 group = eb_first_group({turn}); group < {plan}.groups; group += gridDim.x) {{ const eb_region region = eb_region_of({plan}, group, f0, e0, f1, e1);"
        );
        line!(
            self,
            "const i64 f0 = region.row, rows = region.rows, jf = region.column, row = region.columns;"
        );
        line!(self, "const eb_deal deal = eb_share_region(0, rows, 0, row, {});", self.rows_together(par));
    }

    /// Whether all iterations are proved; or the interval of columns on which the interior form is right in all rows that are
    /// `margin` away from the boundaries, where there is one.
    pub fn safe(&mut self, printed: &Printed) {
        let ranges = &printed.grid.ranges;
        let last = ranges.len() - 1;
        line!(self, "const i64 jf = f{last}, jt = f{last} + row;");
        let interval = match &printed.grid.safe {
            Safe::Proved(tests) => {
                line!(self, "i64 wild = 0;");
                return line!(self, "const b8 proved = {};", proved(tests, &narrow(last)));
            }
            Safe::Nowhere => return line!(self, "(void)jt;"),
            Safe::Interior(interval) => interval,
        };
        if interval.rows == Rows::Each {
            return;
        }
        match printed.on_entry {
            Some(number) => line!(self, "const i64 from = inside{number}.from, to = inside{number}.to;"),
            None => self.out.push_str(&corners(ranges, &printed.names, &printed.narrowing)),
        }
    }

    /// The variables of row `r`, and its interval.
    pub fn row(&mut self, printed: &Printed) {
        let ranges = &printed.grid.ranges;
        self.outer_variables(ranges, "i64", "r", None);
        let away = |(d, range): (usize, &ebbtide_ir::Range)| {
            let v = range.var.index();
            format!("v{v} >= f{d} + margin && v{v} < f{d} + e{d} - margin")
        };
        let away: Vec<String> = ranges[..ranges.len() - 1].iter().enumerate().map(away).collect();
        let Safe::Interior(interval) = &printed.grid.safe else { return };
        match interval.rows {
            Rows::Corners if away.is_empty() => {
                line!(self, "const i64 lo = from, hi = to;");
                self.out.push_str(&printed.names);
            }
            Rows::Corners => {
                line!(self, "i64 lo = from, hi = to;");
                self.out.push_str(&printed.names);
                line!(self, "if (!({})) {{ lo = jf; hi = jt;", away.join(" && "));
                self.out.push_str(&printed.narrowing);
                line!(self, "}}");
            }
            Rows::Each => {
                line!(self, "i64 lo = jf, hi = jt;");
                self.out.push_str(&printed.names);
                self.out.push_str(&printed.narrowing);
            }
        }
    }
}

/// The tests that the variables of a loop whose last range has this number are narrow.
pub(crate) fn narrow(last: usize) -> Vec<String> {
    let far = |d: usize| {
        [format!("f{d} >= -EB_SMALL"), format!("e{d} <= EB_SMALL - f{d}"), format!("e{d} <= EB_SMALL")]
    };
    (0..=last).flat_map(far).collect()
}
