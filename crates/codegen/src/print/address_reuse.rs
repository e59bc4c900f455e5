//! Addresses of elements that others are near to (see [`crate::analysis::address_reuse`]), as CUDA C.

use ebbtide_ir::{ArrayId, Indices, Par};

use crate::analysis::address_reuse::{Known, Near, Place, always_touched, is_own, places};
use crate::print::c_types::c_type;
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// Prints the addresses that so many iterations side by side need, for elements that all iterations touch.
    pub fn know_elements(&mut self, par: &Par, sides: usize) {
        self.near = Near::of(par);
        let touched = always_touched(self.program, &self.usual, &par.body);
        self.each_side(sides, |text| {
            for (array, index) in &touched {
                let Some(index) = places(&text.facts.affines, *index) else { continue };
                if !is_own(par, &index) || text.near.find(*array, &index, text.side()).is_some() {
                    continue;
                }
                let (a, t) = (array.index(), c_type(text.program.array(*array).ty));
                if !text.near.known.iter().any(|known| known.array == *array) {
                    (1..index.len()).for_each(|k| line!(text, "const nx s{a}_{k} = eb_stride(d{a}_{k});"));
                }
                let sums = index.iter().map(|place| text.place(place)).enumerate();
                let at = sums.fold(String::new(), |at, (k, sum)| match k {
                    0 => sum,
                    _ => format!("({at} * s{a}_{k} + {sum})"),
                });
                let (number, side) = (text.fresh(), text.side());
                line!(text, "{t} *const p{number} = a{a} + {at};");
                text.near.known.push(Known { array: *array, index, number, side });
            }
        });
    }

    /// The element at this index as C knows it, where the address of one near to it is known.
    pub fn near(&self, array: ArrayId, index: Indices) -> Option<String> {
        let index = places(&self.facts.affines, index)?;
        let (number, away) = self.near.away(array, &index, self.side())?;
        Some(format!("p{number}[{}]", distance(array, &away)))
    }

    fn place(&self, place: &Place) -> String {
        match place.variable {
            Some(variable) if place.constant == 0 => self.value(variable),
            Some(variable) => format!("({} + {})", self.value(variable), place.constant),
            None => format!("{}", place.constant),
        }
    }
}

/// How many elements further this is, as a C expression.
fn distance(array: ArrayId, away: &[i64]) -> String {
    let mut sum: Option<String> = None;
    for (k, away) in away.iter().enumerate() {
        let extent = format!("s{}_{k}", array.index());
        sum = match sum {
            None if *away == 0 => None,
            None => Some(away.to_string()),
            Some(sum) => {
                let rows = match sum.as_str() {
                    "1" => extent,
                    "-1" => format!("-{extent}"),
                    _ => format!("({sum}) * {extent}"),
                };
                Some(if *away == 0 { rows } else { format!("{rows} + {away}") })
            }
        };
    }
    sum.unwrap_or_else(|| "0".to_string())
}
