//! Sums at shared elements whose terms are counted (`term_runs.c`), by the threads of a CPU, as C.

use ebbtide_ir::{ArrayId, Combine, Par};

use crate::kernel::name::Ty;
use crate::kernel::term_runs::TermRuns;
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};
use crate::print::operation::c_ty;

impl Emitter<'_> {
    /// Notes which terms a loop counts: those of the loop being printed.
    pub fn counts_runs(&mut self, par: &Par, counted: &TermRuns) {
        self.counting = counted.clone();
        if !counted.arrays.is_empty() {
            self.counted.insert(par.id, counted.clone());
        }
    }

    /// Begins to count the terms of a loop; all threads do.
    pub fn begin_runs(&mut self, counted: &TermRuns) {
        let terms = |each| format!("eb_times(eb_times(rows, row), {each})");
        let most = counted.each.map_or("INT64_MAX".to_string(), terms);
        let likely = terms(counted.each.unwrap_or(1));
        if !counted.arrays.is_empty() {
            line!(self, "eb_runs runs[{}]; f->runs = runs;", counted.arrays.len());
        }
        for (k, array) in counted.arrays.iter().enumerate() {
            let (length, size) = (self.length(*array), self.program.array(*array).ty.size());
            line!(self, "eb_begin_runs(f, {k}, {length}, {size}, {most}, {likely});");
            for (name, ty) in [("kind", "i32"), ("counts", "uint16_t *")] {
                line!(self, "{ty} const {name}{k} = runs[{k}].{name};");
                self.loops.in_iteration.insert(format!("{name}{k}"), ty.to_string());
            }
        }
    }

    /// Adds the open runs of elements to the finished ones, where one thread ran the loop.
    pub fn end_runs(&mut self, counted: &TermRuns) {
        for (k, array) in counted.arrays.iter().enumerate() {
            let t = c_type(self.program.array(*array).ty);
            line!(self, "if (f->thread == 0) eb_end_runs_{t}(f, runs + {k}, a{}, 0, 0);", array.index());
        }
    }

    /// The number of an array whose terms the loop counts.
    pub fn counted_number(&self, array: ArrayId) -> Option<usize> {
        self.counting.number(array)
    }

    /// Counts the term that `a[place]` has just got.
    pub fn count_term(&self, array: ArrayId, ty: Ty) -> String {
        let (a, t) = (array.index(), c_ty(ty));
        self.counted_number(array).map_or(String::new(), |number| {
            format!(" if ({}) eb_end_run_{t}(f, {number}, a{a}, place);", counted_at_place(number))
        })
    }

    /// Adds terms to one element in order, and counts them.
    pub fn add_counted(&mut self, array: ArrayId, ty: Ty, (only, offset): (&str, &str), terms: &[String]) {
        let (a, t) = (array.index(), c_ty(ty));
        let element = format!("a{a}[place]");
        line!(self, "{only}{{ const i64 place = {offset};");
        if let [term] = terms {
            let sum = self.combine(Combine::Add, ty, &element, term);
            let count = self.count_term(array, ty);
            return line!(self, "{element} = {sum};{count} }}");
        }
        let number = self.counted_number(array).unwrap_or_default();
        let names: Vec<String> = (0..terms.len()).map(|k| format!("term{k}")).collect();
        for (name, term) in names.iter().zip(terms) {
            line!(self, "const {t} {name} = {term};");
        }
        let sum = names.iter().fold(element.clone(), |sum, term| self.combine(Combine::Add, ty, &sum, term));
        line!(self, "if (eb_count_all(f, {number}, place, {})) {element} = {sum};", terms.len());
        let each: String = names
            .iter()
            .map(|term| format!(" eb_add_counted_{t}(f, {number}, a{a}, place, {term});"))
            .collect();
        line!(self, "else {{{each} }} }}");
    }
}

/// Counts the term that `place` of an array with this number has just got: does it finish a run?
pub(crate) fn counted_at_place(number: usize) -> String {
    format!("eb_counted(&f->runs, {number}, kind{number}, counts{number}, place)")
}
