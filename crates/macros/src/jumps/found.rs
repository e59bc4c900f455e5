//! Which jumps statements hold.

use syn::{Block, Expr, Local, Stmt};

use super::else_stmts;
use crate::body::compound;

/// Which jumps out of it a statement holds, and whether it holds any, those inside its own loops included.
#[derive(Clone, Copy, Default)]
pub(super) struct Kinds {
    pub breaks: bool,
    pub continues: bool,
    pub returns: bool,
    pub any: bool,
}

pub(super) fn jumps_in(stmt: &Stmt) -> Kinds {
    let mut found = Kinds::default();
    if let Stmt::Expr(expr, _) = stmt {
        collect(expr, false, &mut found);
    }
    found
}

/// Adds the jumps of an expression that leave it; inside a loop of its own these are `return`s alone.
pub(super) fn collect(expr: &Expr, in_loop: bool, found: &mut Kinds) {
    let mut inside =
        |block: &Block, in_loop: bool| block.stmts.iter().for_each(|stmt| collect_in(stmt, in_loop, found));
    match expr {
        Expr::Break(_) => (found.breaks, found.any) = (found.breaks || !in_loop, true),
        Expr::Continue(_) => (found.continues, found.any) = (found.continues || !in_loop, true),
        Expr::Return(_) => (found.returns, found.any) = (true, true),
        Expr::Block(block) => inside(&block.block, in_loop),
        Expr::ForLoop(l) => inside(&l.body, true),
        Expr::While(l) => inside(&l.body, true),
        Expr::Loop(l) => inside(&l.body, true),
        Expr::If(branch) => {
            inside(&branch.then_branch, in_loop);
            if let Some((_, other)) = &branch.else_branch {
                collect(other, in_loop, found);
            }
        }
        Expr::Match(matched) => matched.arms.iter().for_each(|arm| collect(&arm.body, in_loop, found)),
        Expr::Assign(assign) => collect(&assign.right, in_loop, found),
        Expr::Binary(binary) if compound(&binary.op).is_some() => collect(&binary.right, in_loop, found),
        Expr::Paren(paren) => collect(&paren.expr, in_loop, found),
        Expr::Group(group) => collect(&group.expr, in_loop, found),
        _ => {}
    }
}

pub(super) fn collect_in(stmt: &Stmt, in_loop: bool, found: &mut Kinds) {
    match stmt {
        Stmt::Expr(expr, _) => collect(expr, in_loop, found),
        Stmt::Local(Local { init: Some(init), .. }) => collect(&init.expr, in_loop, found),
        _ => {}
    }
}

pub(super) fn expr_jumps(expr: &Expr) -> bool {
    let mut found = Kinds::default();
    collect(expr, false, &mut found);
    found.breaks || found.continues || found.returns
}

/// Does a statement jump out of itself?
pub(super) fn stmt_jumps(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Expr(expr, _) => expr_jumps(expr),
        Stmt::Local(Local { init: Some(init), .. }) => expr_jumps(&init.expr),
        _ => false,
    }
}

/// Is there any jump in these statements, loops inside them included?
pub(super) fn has_jumps(stmts: &[Stmt]) -> bool {
    let mut found = Kinds::default();
    stmts.iter().for_each(|stmt| collect_in(stmt, false, &mut found));
    found.any
}

/// Do these statements end with a `return` on every path?
pub(super) fn always_returns(stmts: &[Stmt]) -> bool {
    match stmts.last() {
        Some(Stmt::Expr(Expr::Return(_), _)) => true,
        Some(Stmt::Expr(Expr::If(branch), _)) => {
            always_returns(&branch.then_branch.stmts)
                && branch.else_branch.as_ref().is_some_and(|(_, other)| always_returns(&else_stmts(other)))
        }
        _ => false,
    }
}

/// Is this the head of a parallel loop?
pub(super) fn is_parallel(head: &Expr) -> bool {
    match head {
        Expr::Call(call) => {
            matches!(&*call.func, Expr::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == "par"))
        }
        Expr::Paren(paren) => is_parallel(&paren.expr),
        Expr::Group(group) => is_parallel(&group.expr),
        _ => false,
    }
}
