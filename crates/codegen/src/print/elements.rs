//! Loops over all elements of an array, split between threads.

use std::collections::BTreeSet;

use ebbtide_ir::ArrayId;

use crate::kernel::machine::Family;
use crate::print::emitter::{Emitter, line};

/// What a loop over all elements of an array does with them.
#[derive(Clone, Copy)]
pub(crate) enum Touched {
    /// They are read; what is written is each thread's own.
    Read,
    /// They are written.
    Written,
    /// They are written with those of another array.
    CopyOf(ArrayId),
}

impl Emitter<'_> {
    /// Prints a loop over all elements of an array, split between threads.
    pub fn elements(&mut self, array: ArrayId, touched: Touched, body: impl Fn(usize) -> String) {
        let a = array.index();
        let count: Vec<String> = (0..self.program.array(array).rank).map(|d| format!("d{a}_{d}")).collect();
        let count = if count.is_empty() { "1".to_string() } else { count.join(" * ") };
        let (reads, writes) = match touched {
            Touched::Read => (BTreeSet::from([array]), BTreeSet::new()),
            Touched::Written => (BTreeSet::new(), BTreeSet::from([array])),
            Touched::CopyOf(from) => (BTreeSet::from([from]), BTreeSet::from([array])),
        };
        self.before_parts(&reads, &writes);
        match self.family {
            Family::C if count == "1" => {
                line!(self, "if (f->thread == 0) {{ const i64 k = 0; {} }}", body(a));
            }
            Family::C => {
                line!(self, "{{ const i64 n = {count}, k1 = n * (f->thread + 1) / f->threads;");
                line!(self, "for (i64 k = n * f->thread / f->threads; k < k1; k++) {} }}", body(a));
            }
            Family::Cuda => {
                line!(
                    self,
                    "EB_LOOP for (i64 k = f->thread, n = {count}; k < n; k += f->threads) {{ {} }}",
                    body(a)
                );
            }
        }
        self.after_parts(reads, writes);
    }
}
