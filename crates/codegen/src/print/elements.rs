//! What becomes of all elements of an array, split between threads.

use std::collections::BTreeSet;

use ebbtide_ir::ArrayId;

use crate::kernel::machine::Family;
use crate::print::c_types::c_type;
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

/// What becomes of all elements of an array.
pub(crate) enum Whole {
    /// They get this value.
    Fill(String),
    /// The elements behind one address get those behind another.
    Copy { to: String, from: String },
}

impl Whole {
    /// They are copied to `kept`.
    pub fn kept(array: ArrayId) -> Whole {
        Whole::Copy { to: "kept".to_string(), from: address(array) }
    }
}

/// The name of an array's address.
pub(crate) fn address(array: ArrayId) -> String {
    format!("a{}", array.index())
}

impl Emitter<'_> {
    /// Prints what becomes of all elements of an array, split between threads.
    pub fn elements(&mut self, array: ArrayId, touched: Touched, what: Whole) {
        let (a, ty) = (array.index(), self.program.array(array).ty);
        let count: Vec<String> = (0..self.program.array(array).rank).map(|d| format!("d{a}_{d}")).collect();
        let count = if count.is_empty() { "1".to_string() } else { count.join(" * ") };
        let (reads, writes) = match touched {
            Touched::Read => (BTreeSet::from([array]), BTreeSet::new()),
            Touched::Written => (BTreeSet::new(), BTreeSet::from([array])),
            Touched::CopyOf(from) => (BTreeSet::from([from]), BTreeSet::from([array])),
        };
        let each = match &what {
            Whole::Fill(value) => format!("a{a}[k] = {value};"),
            Whole::Copy { to, from } => format!("{to}[k] = {from}[k];"),
        };
        self.before_parts(&reads, &writes);
        match self.family {
            Family::C if count == "1" => {
                line!(self, "if (f->thread == 0) {{ const i64 k = 0; {each} }}");
            }
            Family::C => {
                line!(self, "{{ const i64 n = {count}, k = n * f->thread / f->threads;");
                line!(self, "const i64 more = n * (f->thread + 1) / f->threads - k;");
                let t = c_type(ty);
                match what {
                    Whole::Fill(value) => line!(self, "eb_fill_{t}(a{a} + k, {value}, more); }}"),
                    Whole::Copy { to, from } => {
                        line!(self, "memmove({to} + k, {from} + k, (size_t)more * sizeof({t})); }}");
                    }
                }
            }
            Family::Cuda => {
                line!(
                    self,
                    "EB_LOOP for (i64 k = f->thread, n = {count}; k < n; k += f->threads) {{ {each} }}"
                );
            }
        }
        self.after_parts(reads, writes);
    }
}
