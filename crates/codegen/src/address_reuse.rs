//! Elements near to each other.
//!
//! Where an iteration without checks touches elements whose indices differ by constants, it computes the address of one of
//! them, and the others are so many elements away: neighbours in a row cost nothing, those in other rows an addition. The
//! one is touched under no condition, so that its address is one of an element.

use ebbtide_ir::{ArrayId, Block, Indices, Op, Par, Stmt, ValueId};

use crate::c_types::c_type;
use crate::unit::{Text, line};

/// The elements whose addresses the iterations being printed know.
#[derive(Default)]
pub(crate) struct Near {
    known: Vec<Known>,
    /// The variable that is one greater in the next of the iterations side by side, where nothing else differs.
    row: Option<ValueId>,
}

struct Known {
    array: ArrayId,
    /// By dimension.
    index: Vec<Place>,
    name: String,
    /// Of which of the iterations side by side.
    side: usize,
}

/// An index that is a variable, if any, and a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    variable: Option<ValueId>,
    constant: i64,
}

/// Constants are not further from zero.
const FAR: i64 = 1 << 20;

impl Text<'_> {
    /// Prints the addresses that so many iterations side by side need, for elements that all iterations touch.
    pub fn know_elements(&mut self, par: &Par, sides: usize) {
        let row = Some(par.ranges[0].var).filter(|_| par.ranges.len() == 2);
        self.near = Near { known: Vec::new(), row };
        self.each_side(sides, |text| {
            for (array, index) in text.always_touched(&par.body) {
                let Some(index) = text.places(index) else { continue };
                let variables = index.iter().filter_map(|place| place.variable);
                let own = variables.clone().all(|v| par.ranges.iter().any(|r| r.var == v));
                if variables.count() == 0 || !own || text.known_near(array, &index).is_some() {
                    continue;
                }
                let (a, t) = (array.index(), c_type(text.program.array(array).ty));
                if !text.near.known.iter().any(|known| known.array == array) {
                    (1..index.len()).for_each(|k| line!(text, "const nx s{a}_{k} = eb_stride(d{a}_{k});"));
                }
                let sums = index.iter().map(|place| text.place(place)).enumerate();
                let at = sums.fold(String::new(), |at, (k, sum)| match k {
                    0 => sum,
                    _ => format!("({at} * s{a}_{k} + {sum})"),
                });
                let (name, side) = (format!("p{}", text.fresh()), text.side());
                line!(text, "{t} *const {name} = a{a} + {at};");
                text.near.known.push(Known { array, index, name, side });
            }
        });
    }

    /// The element at this index as C knows it, where the address of one near to it is known.
    pub fn near(&self, array: ArrayId, index: Indices) -> Option<String> {
        let index = self.places(index)?;
        let known = self.known_near(array, &index)?;
        let rows = self.side() as i64 - known.side as i64;
        let away = index.iter().zip(&known.index).map(|(to, from)| {
            let further = if to.variable.is_some() && to.variable == self.near.row { rows } else { 0 };
            to.constant - from.constant + further
        });
        Some(format!("{}[{}]", known.name, distance(array, &away.collect::<Vec<i64>>())))
    }

    /// An element of this array whose index differs by constants.
    fn known_near(&self, array: ArrayId, index: &[Place]) -> Option<&Known> {
        let side = self.side();
        self.near.known.iter().find(|known| {
            known.array == array
                && (known.side == side || self.near.row.is_some())
                && known.index.iter().zip(index).all(|(a, b)| a.variable == b.variable)
        })
    }

    /// What iterations touch under no condition.
    fn always_touched(&self, body: &Block) -> Vec<(ArrayId, Indices)> {
        let mut touched = Vec::new();
        let mut blocks = vec![body];
        while let Some(block) = blocks.pop() {
            for stmt in block {
                match stmt {
                    Stmt::Let(v) => {
                        if let Op::Load(array, index) = *self.program.op(*v) {
                            touched.push((array, index));
                        }
                    }
                    Stmt::Store(s) | Stmt::Update(_, s) => touched.push((s.array, s.index)),
                    Stmt::If(branch) => blocks.extend(self.usual_arm(branch)),
                    _ => {}
                }
            }
        }
        touched
    }

    fn places(&self, index: Indices) -> Option<Vec<Place>> {
        let place = |v: &ValueId| {
            let form = self.facts.affines.form(*v);
            let variable = match *form.terms.as_slice() {
                [] => None,
                [(atom, 1)] => Some(atom),
                _ => return None,
            };
            Some(Place { variable, constant: form.constant })
        };
        let near = |place: &Place| place.constant.unsigned_abs() <= FAR as u64;
        index.as_slice().iter().map(|v| place(v).filter(near)).collect()
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
