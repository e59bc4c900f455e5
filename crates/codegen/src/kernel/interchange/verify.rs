//! What is lawful for a loop inside its parallel loops. Input: the tree; output: the first rule that it breaks.
//!
//! 1. The iteration is a lawful body.
//! 2. What is written and held in variables is not touched in memory meanwhile.
//! 3. Every iteration of the loop uses the places of a tape in their order, each once, under no condition, and one way.
//! 4. Guards say that elements which are held exist, that the domain is the whole array where it must be, and that tapes have the
//!    places that are used.

use std::collections::BTreeMap;
use std::fmt;

use ebbtide_ir::{ArrayId, Program};

use super::{Guard, Interchanged, Tape};
use crate::kernel::stmt::{Body, Stmt};
use crate::kernel::verify::verify as verify_body;

/// Why a tree is not lawful: the number of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub usize);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} of loops inside their parallel loops", self.0)
    }
}

/// Is the tree lawful?
pub(crate) fn verify(program: &Program, tree: &Interchanged) -> Result<(), Broken> {
    holds(verify_body(program, &tree.body).is_ok(), 1)?;
    in_variables(tree, &tree.body)?;
    let mut used = BTreeMap::new();
    for stmt in &tree.body {
        holds(!stmt.blocks().into_iter().any(uses_tapes), 3)?;
        let (array, place, tape) = match stmt {
            Stmt::Push { array, place, of, .. } => (*array, *place, Tape::Pushes(*of)),
            Stmt::Pop { array, place, of, .. } => (*array, *place, Tape::Pops(*of)),
            _ => continue,
        };
        let next: &mut u32 = used.entry(array).or_default();
        holds(place == *next && tree.tapes.get(&array) == Some(&tape), 3)?;
        *next += 1;
    }
    let places: BTreeMap<ArrayId, u32> = tree.tapes.iter().map(|(a, tape)| (*a, tape.places())).collect();
    holds(used == places, 3)?;
    let asked = |guard: Guard| tree.guards.contains(&guard);
    for (array, held) in &tree.held {
        let mut dimensions = 0..program.array(*array).rank;
        let whole = |k: usize| asked(Guard::Whole(*array, k));
        holds(dimensions.all(|k| whole(k) || !held.whole && asked(Guard::Within(*array, k))), 4)?;
    }
    holds(tree.tapes.iter().all(|(array, tape)| asked(Guard::Places(*array, *tape))), 4)
}

fn holds(condition: bool, rule: usize) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(Broken(rule)) }
}

/// The depth of recursion is that of nesting in the source.
fn in_variables(tree: &Interchanged, body: &Body) -> Result<(), Broken> {
    for stmt in body {
        if let Stmt::Load { element, .. } | Stmt::Store { element, .. } | Stmt::Address { element, .. } = stmt
        {
            let held = tree.held.get(&element.array);
            let stored = matches!(stmt, Stmt::Store { .. });
            holds(held.is_none_or(|held| !held.written && !held.old && !stored), 2)?;
        }
        stmt.blocks().into_iter().try_for_each(|block| in_variables(tree, block))?;
    }
    Ok(())
}

fn uses_tapes(body: &Body) -> bool {
    body.iter().any(|stmt| {
        matches!(stmt, Stmt::Push { .. } | Stmt::Pop { .. }) || stmt.blocks().into_iter().any(uses_tapes)
    })
}
