//! Stores that come last.
//!
//! A compiler cannot know that arrays do not overlap, so a load behind a store waits for it. In a body without checks
//! nothing keeps a store from waiting for the end of its iteration instead, and then all loads of the iteration are on
//! their way at once. What combines with an element loads it before the first store as well.

use ebbtide_ir::{ArrayId, Combine};

use crate::c_types::c_type;
use crate::unit::{Text, line};

/// A store that waits.
pub(crate) struct Late {
    pub array: ArrayId,
    /// Which of the iterations side by side stores: each has elements of its own.
    pub number: usize,
    /// The element as C knows it.
    pub element: String,
    /// Under which condition, if any.
    pub condition: Option<String>,
    pub how: Option<Combine>,
    pub value: String,
}

impl Text<'_> {
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
        if self.late.iter().flatten().any(|late| late.array == array && late.number == number) {
            self.store_all();
        }
    }

    /// Stores what waits.
    pub fn store_all(&mut self) {
        let Some(waiting) = self.late.as_mut().map(std::mem::take) else { return };
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
