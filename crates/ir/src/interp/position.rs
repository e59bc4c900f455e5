//! Places as positions: paths in the program as written, which print and parse.
//!
//! Children are counted among the statements with a body of their own (loops, branches, calls, regions) that have the same
//! name: a label that stands once in its block is its label and nothing else. The iteration of a `for` is the value of its
//! variable, that of any other loop the number of finished iterations.

use ebbtide_checkpoint::{Position, Step};

use super::Scalars;
use crate::syntax::*;

fn has_body(stmt: &Stmt) -> bool {
    stmt.blocks().next().is_some()
}

fn name(program: &Program, stmt: &Stmt) -> String {
    match stmt {
        Stmt::If(_) => "if".to_string(),
        Stmt::Loop(l) => match &l.kind {
            LoopKind::For { var, .. } => {
                format!("for {}", program.value(*var).name.as_deref().unwrap_or("_"))
            }
            LoopKind::While { .. } => "while".to_string(),
            LoopKind::Forever => "loop".to_string(),
        },
        Stmt::Par(_) => "par".to_string(),
        Stmt::Region(region) => program.labels[region.label.index()].to_string(),
        Stmt::Call(call) => call.name.clone(),
        _ => String::new(),
    }
}

/// The value of iteration zero: the first value of a `for`, 0 of another loop.
fn first(l: &Loop, scalars: &Scalars) -> u64 {
    match l.kind {
        LoopKind::For { .. } => scalars.bounds[l.id.index()][0].max(0) as u64,
        _ => 0,
    }
}

impl Place {
    /// The position of this place; the scalars have the bounds of the loops around it.
    pub fn position(&self, program: &Program, scalars: &Scalars) -> Position {
        let mut position = Position::root().then(0, &*program.name);
        let mut iterations = self.iterations.iter();
        let mut block = &program.body;
        for turn in path_to(program, self.region).unwrap_or_default() {
            let stmt = &block[turn.child];
            let own = name(program, stmt);
            let namesake = |stmt: &&Stmt| has_body(stmt) && name(program, stmt) == own;
            let child = block[..turn.child].iter().filter(namesake).count() as u32;
            position = match stmt {
                Stmt::Loop(l) => {
                    let iteration = iterations.next().copied().unwrap_or(0);
                    position.then_in_loop(child, own, first(l, scalars).saturating_add(iteration))
                }
                Stmt::If(_) => {
                    let branch = if turn.block == 0 { "then" } else { "else" };
                    position.then(child, "if").then(0, branch)
                }
                _ => position.then(child, own),
            };
            match stmt.blocks().nth(turn.block) {
                Some(inner) => block = inner,
                None => break,
            }
        }
        position
    }

    /// The place at a position; `None` if the program has no region there.
    pub fn at_position(program: &Program, position: &Position, scalars: &Scalars) -> Option<Place> {
        let mut steps = position.steps().iter();
        steps.next()?;
        let mut iterations = Vec::new();
        let mut block = &program.body;
        loop {
            let step: &Step = steps.next()?;
            let namesake = |stmt: &&Stmt| has_body(stmt) && name(program, stmt) == step.name;
            let stmt = block.iter().filter(namesake).nth(step.child as usize)?;
            let mut turn = Turn { child: 0, block: 0 };
            match stmt {
                Stmt::Region(region) if steps.next().is_none() => {
                    return Some(Place { region: region.id, iterations });
                }
                Stmt::Loop(l) => {
                    iterations.push(step.iteration?.checked_sub(first(l, scalars))?);
                    turn.block = usize::from(matches!(l.kind, LoopKind::While { .. }));
                }
                Stmt::If(_) => turn.block = usize::from(steps.next()?.name == "else"),
                Stmt::Call(_) => {}
                _ => return None,
            }
            block = stmt.blocks().nth(turn.block)?;
        }
    }
}
