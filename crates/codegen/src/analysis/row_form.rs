//! How the threads of a CPU take the rows of a parallel loop. Input: the loop; output: which range runs along a row, how it is found
//! out which iterations are in its interior, and in which vectors these run, or why in none.

use std::collections::BTreeSet;
use std::fmt;

use ebbtide_ir::{Facts, Literal, Par, Program, Stmt, Type, ValueId};

use crate::analysis::flat_rows::flat_rows;
use crate::analysis::gathers::{Gathers, find_gathers};
use crate::analysis::interior::{Decide, Interior, interior};
use crate::analysis::lane_order::in_lane_order;
use crate::analysis::names::{reductions, scatters, sharing};
use crate::analysis::varying::vector_element;
use crate::analysis::vector_costs::VectorCosts;
use crate::analysis::vectors::{Refusal, Vectors, refusal, refusal_beside_gathers};
use crate::analysis::work::keeps_order;
use crate::kernel::interval::Rows;
use crate::kernel::machine::WIDEST;
use crate::kernel::nest::Interiors;

/// The rows of a loop.
pub(crate) struct RowForm {
    /// The loop with its two ranges exchanged, where short rows are gone through by columns. What follows is about it then.
    pub exchanged: Option<Par>,
    pub interior: Interior,
    pub interiors: Interiors,
    pub vectors: Result<VectorForm, NoVectors>,
    /// The loads at indices from data that vectors have.
    pub gathers: Gathers,
}

/// Vectors of iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorForm {
    /// The type of all that varies.
    pub element: Type,
    pub lanes: usize,
    /// Rows of fewer iterations have no vectors; none are where the program says how long rows are.
    pub least: usize,
}

/// Why there are no vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoVectors {
    Types,
    Order,
    Refused(Refusal),
    Cost,
    ShortRows,
}

impl fmt::Display for NoVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoVectors::Types => {
                "the data that varies has not one float type, or a loop differs between lanes"
            }
            NoVectors::Order => "lanes would combine out of order",
            NoVectors::Refused(why) => return why.fmt(f),
            NoVectors::Cost => "they take longer than iterations one by one",
            NoVectors::ShortRows => "rows are short",
        })
    }
}

/// How the rows of a loop with these values are taken, in vectors of so many bytes.
pub(crate) fn row_form(
    (program, facts): (&Program, &Facts),
    par: &Par,
    inside: &BTreeSet<ValueId>,
    assertions: &dyn Fn(ValueId) -> bool,
    vector_bytes: usize,
) -> RowForm {
    let sums = !reductions(facts, par).is_empty();
    // An assertion says where it failed.
    let flat = flat_rows(program, par, inside).filter(|_| !sums && !inside.iter().any(|v| assertions(*v)));
    let exchanged = match flat.is_none() && !sums {
        true => by_columns((program, facts), par, inside, vector_bytes),
        false => None,
    };
    let par = exchanged.as_ref().unwrap_or(par);
    let interior = interior(program, par, inside, Decide::Columns);
    let at_corners = par.ranges.len() > 1 && interior.rows == Rows::Corners;
    let interiors = match flat {
        Some(arrays) if at_corners => Interiors::AtCornersOrAsOne(arrays),
        _ if at_corners => Interiors::AtCorners,
        _ => Interiors::OfEach,
    };
    // Rows that may be taken as one are not as short as the program says.
    let as_one = matches!(interiors, Interiors::AtCornersOrAsOne(_));
    let row = row_length(program, par).filter(|_| !as_one);
    let gathers = match sums || scatters(facts, par) || vector_bytes < WIDEST {
        true => Gathers::default(),
        false => gathers_of(program, par, &interior).unwrap_or_default(),
    };
    let vectors = vector_form((program, facts), par, (&interior, &gathers), row, vector_bytes);
    RowForm { exchanged, interior, interiors, vectors, gathers }
}

/// The loads at indices from data of a loop over the float type that it stores first.
fn gathers_of(program: &Program, par: &Par, interior: &Interior) -> Option<Gathers> {
    let stored = |stmt: &Stmt| match stmt {
        Stmt::Store(s) | Stmt::Update(_, s) => Some(program.array(s.array).ty),
        _ => None,
    };
    let element = par.body.iter().find_map(stored).filter(|ty| ty.is_float())?;
    find_gathers(program, par, interior, element)
}

/// The vectors in which the iterations of a row run, so many bytes each; a row has so many iterations, where that is known.
fn vector_form(
    (program, facts): (&Program, &Facts),
    par: &Par,
    (interior, gathers): (&Interior, &Gathers),
    row: Option<i64>,
    vector_bytes: usize,
) -> Result<VectorForm, NoVectors> {
    let sums = reductions(facts, par);
    let element = vector_element(program, &interior.varying, par, &gathers.indices, &|l| {
        !interior.loop_differs(l) || interior.goes_together(program, l)
    })
    .filter(|e| sums.iter().all(|(_, s)| program.array(s.array).ty == *e))
    .ok_or(NoVectors::Types)?;
    let by_lanes = in_lane_order((program, facts), par, interior);
    if !keeps_order(&sharing(facts, par), par, &by_lanes) {
        return Err(NoVectors::Order);
    }
    let one = (element, Vectors::One);
    if let Some(why) = refusal_beside_gathers((program, facts), par, interior, one, &by_lanes, gathers) {
        return Err(NoVectors::Refused(why));
    }
    let lanes = vector_bytes / element.size();
    let costs = VectorCosts::of((program, &facts.affines), par, interior, (lanes, gathers), &by_lanes);
    if !costs.pay() {
        return Err(NoVectors::Cost);
    }
    let short = if par.ranges.len() > 1 { costs.short_row() } else { 0 };
    match row {
        Some(row) if row < short as i64 => Err(NoVectors::ShortRows),
        Some(_) => Ok(VectorForm { element, lanes, least: 0 }),
        None => Ok(VectorForm { element, lanes, least: short }),
    }
}

/// A loop over short rows with its ranges exchanged, where that has vectors and pays: iterations may come in any order.
fn by_columns(
    (program, facts): (&Program, &Facts),
    par: &Par,
    inside: &BTreeSet<ValueId>,
    vector_bytes: usize,
) -> Option<Par> {
    let [outer, inner] = &par.ranges[..] else { return None };
    let row = usize::try_from(row_length(program, par)?).ok()?;
    let columns = Par { ranges: vec![*inner, *outer], ..par.clone() };
    let [of_rows, of_columns] = [par, &columns].map(|par| interior(program, par, inside, Decide::Columns));
    let element = vector_element(program, &of_columns.varying, &columns, &BTreeSet::new(), &|_| false)?;
    let lanes = vector_bytes / element.size();
    let vectors =
        refusal((program, facts), &columns, &of_columns, (element, Vectors::One), &BTreeSet::new()).is_none();
    let none = Gathers::default();
    let [rows, by_columns] = [&of_rows, &of_columns]
        .map(|i| VectorCosts::of((program, &facts.affines), par, i, (lanes, &none), &BTreeSet::new()));
    let pays = row < lanes && rows.more_than(&by_columns, row);
    (vectors && !scatters(facts, par) && pays).then_some(columns)
}

/// How many iterations a row has, where the program says.
fn row_length(program: &Program, par: &Par) -> Option<i64> {
    let range = par.ranges.last()?;
    let number = |v: ValueId| program.literal(v).and_then(Literal::to_i64);
    number(range.to)?.checked_sub(number(range.from)?)
}
