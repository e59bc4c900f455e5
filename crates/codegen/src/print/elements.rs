//! What becomes of all elements of an array, split between threads.

use ebbtide_ir::ArrayId;

use crate::kernel::machine::Family;
use crate::kernel::segment::Whole;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};

/// The name of an array's address.
fn address(array: ArrayId) -> String {
    format!("a{}", array.index())
}

impl Emitter<'_> {
    /// Prints what becomes of all elements of an array, split between threads.
    pub fn whole(&mut self, whole: Whole) {
        let kept = || "kept".to_string();
        match whole {
            Whole::Fill(a, v) => {
                let value = self.value(v);
                self.fill(a, &value);
            }
            Whole::Clear(a) => self.fill(a, "0"),
            Whole::Copy { from, to } => self.copy(to, &address(to), &address(from)),
            Whole::Keep(a) => self.copy(a, &kept(), &address(a)),
            Whole::Restore(a) => self.copy(a, &address(a), &kept()),
        }
    }

    fn fill(&mut self, array: ArrayId, value: &str) {
        let (a, t) = (array.index(), c_type(self.program.array(array).ty));
        let part = format!("eb_fill_{t}(a{a} + k, {value}, more); }}");
        self.parts(array, &format!("a{a}[k] = {value};"), &part);
    }

    /// The elements behind one address get those behind another; there are as many as this array has.
    fn copy(&mut self, array: ArrayId, to: &str, from: &str) {
        let t = c_type(self.program.array(array).ty);
        let part = format!("memmove({to} + k, {from} + k, (size_t)more * sizeof({t})); }}");
        self.parts(array, &format!("{to}[k] = {from}[k];"), &part);
    }

    /// Does something with each element of an array, or with those that are a thread's part.
    fn parts(&mut self, array: ArrayId, each: &str, part: &str) {
        let a = array.index();
        let count: Vec<String> = (0..self.program.array(array).rank).map(|d| format!("d{a}_{d}")).collect();
        let count = if count.is_empty() { "1".to_string() } else { count.join(" * ") };
        match self.family {
            Family::C if count == "1" => {
                line!(self, "if (f->thread == 0) {{ const i64 k = 0; {each} }}");
            }
            Family::C => {
                line!(self, "{{ const i64 n = {count}, k = n * f->thread / f->threads;");
                line!(self, "const i64 more = n * (f->thread + 1) / f->threads - k;");
                line!(self, "{part}");
            }
            Family::Cuda => {
                line!(
                    self,
                    "EB_LOOP for (i64 k = f->thread, n = {count}; k < n; k += f->threads) {{ {each} }}"
                );
            }
        }
    }
}
