//! Stores that come last (see [`crate::transform::sink_stores`]), as text.

use ebbtide_ir::ArrayId;

use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::transform::sink_stores::{Late, Waiting};

impl Emitter<'_> {
    /// Lets a store wait for the end of its iteration; gives it back where stores do not wait.
    pub fn store_late(&mut self, late: Late) -> Option<Late> {
        if self.late.is_none() {
            return Some(late);
        }
        if late.how.is_some() {
            // It loads the element before anything is stored.
            self.store_now(late.array);
        }
        self.late.get_or_insert_default().push(late);
        None
    }

    /// Before an element of this array is touched: what waits to be stored into it is stored.
    pub fn store_now(&mut self, array: ArrayId) {
        let number = self.side();
        if self.late.as_ref().is_some_and(|waiting| waiting.touch(array, number)) {
            self.store_all();
        }
    }

    /// Stores what waits.
    pub fn store_all(&mut self) {
        let Some(waiting) = self.late.as_mut().map(Waiting::take) else { return };
        let mut olds = Vec::new();
        for late in &waiting {
            let old = format!("old{}", self.fresh());
            if late.how.is_some() {
                let t = c_type(self.program.array(late.array).ty);
                let element = match &late.condition {
                    Some(condition) => format!("{condition} ? {} : ({t})1", late.element),
                    None => late.element.clone(),
                };
                line!(self, "const {t} {old} = {element};");
            }
            olds.push(old);
        }
        for (late, old) in waiting.iter().zip(olds) {
            let ty = self.program.array(late.array).ty;
            let value = match late.how {
                Some(how) => self.combine(how, ty, 1, &old, &late.value),
                None => late.value.clone(),
            };
            let condition = late.condition.as_ref().map_or(String::new(), |c| format!("if ({c}) "));
            line!(self, "{condition}{} = {value};", late.element);
        }
    }

    /// Which of the iterations side by side is being printed.
    pub fn side(&self) -> usize {
        self.jam.as_ref().map_or(0, |jam| jam.number)
    }

    /// Prints something inside which stores do not wait.
    pub fn at_once(&mut self, print: impl FnOnce(&mut Self)) {
        self.store_all();
        let waiting = self.late.take();
        print(self);
        self.late = waiting;
    }
}
