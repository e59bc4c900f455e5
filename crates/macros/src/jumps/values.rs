//! Values in which a jump stands: `let x = if c { a } else { continue; };`.
//!
//! Input: a statement that binds, assigns or returns the value of an `if`, a `match` or a block, in which a jump stands. Output:
//! statements of the same meaning in which the `if`, `match` or block is a statement itself, and each of its values is assigned
//! to a variable, or returned, where it stands.

use proc_macro2::{Ident, Span};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Block, Expr, Local, Stmt, parse_quote_spanned};

use super::Jumps;
use super::found::{always_returns, expr_jumps};
use crate::body::compound;

impl Jumps<'_> {
    /// The statements that stand for this one, if it has a value in which a jump stands.
    pub(super) fn with_jumps_outside(&mut self, stmt: &Stmt) -> Option<Vec<Stmt>> {
        let value = match stmt {
            Stmt::Local(Local { init: Some(init), .. }) => &*init.expr,
            Stmt::Expr(Expr::Assign(assign), _) => &*assign.right,
            Stmt::Expr(Expr::Binary(binary), _) if compound(&binary.op).is_some() => &*binary.right,
            Stmt::Expr(Expr::Return(jump), _) => {
                let value = jump.expr.as_deref().filter(|value| is_choice(value) && expr_jumps(value))?;
                let given = |value: &Expr| parse_quote_spanned!(value.span()=> return #value;);
                return Some(vec![self.statement(value, &given)]);
            }
            _ => return None,
        };
        if !is_choice(value) || !expr_jumps(value) {
            return None;
        }
        self.held += 1;
        let held = Ident::new(&format!("held{}", self.held), Span::mixed_site());
        let set = held.clone();
        let given = move |value: &Expr| parse_quote_spanned!(value.span()=> #set = #value;);
        let choice = self.statement(value, &given);
        let mut last = stmt.clone();
        let read: Expr = parse_quote_spanned!(value.span()=> #held);
        match &mut last {
            Stmt::Local(Local { init: Some(init), .. }) => *init.expr = read,
            Stmt::Expr(Expr::Assign(assign), _) => *assign.right = read,
            Stmt::Expr(Expr::Binary(binary), _) => *binary.right = read,
            _ => {}
        }
        Some(vec![self.zero(&held), choice, last])
    }

    /// `let mut name = 0;`, of the type that it is given later.
    pub(super) fn zero(&self, name: &Ident) -> Stmt {
        let cx = crate::item::cx();
        let zero = Expr::Verbatim(quote!(::ebbtide::__lang::emit::zero(#cx)));
        let mut stmt: Stmt = parse_quote_spanned!(Span::mixed_site()=> let mut #name = 0;);
        if let Stmt::Local(Local { init: Some(init), .. }) = &mut stmt {
            *init.expr = zero;
        }
        stmt
    }

    /// An expression as a statement, in which `given` takes each of its values.
    fn statement(&mut self, expr: &Expr, given: &dyn Fn(&Expr) -> Stmt) -> Stmt {
        if !expr_jumps(expr) {
            return given(expr);
        }
        match expr {
            Expr::Paren(paren) => self.statement(&paren.expr, given),
            Expr::Group(group) => self.statement(&group.expr, given),
            Expr::If(branch) => {
                let mut branch = branch.clone();
                branch.then_branch = self.block(&branch.then_branch, given);
                match &mut branch.else_branch {
                    Some((_, other)) => **other = branch_of(self.statement(other, given)),
                    None => self.error(branch.if_token, "this `if` is used as a value: it needs an `else`"),
                }
                Stmt::Expr(Expr::If(branch), None)
            }
            Expr::Match(matched) => {
                let mut matched = matched.clone();
                for arm in &mut matched.arms {
                    *arm.body = branch_of(self.statement(&arm.body, given));
                }
                Stmt::Expr(Expr::Match(matched), None)
            }
            Expr::Block(block) => {
                let mut block = block.clone();
                block.block = self.block(&block.block, given);
                Stmt::Expr(Expr::Block(block), None)
            }
            jump @ (Expr::Break(_) | Expr::Continue(_) | Expr::Return(_)) => {
                Stmt::Expr(jump.clone(), Some(syn::Token![;](jump.span())))
            }
            other => given(other),
        }
    }

    fn block(&mut self, block: &Block, given: &dyn Fn(&Expr) -> Stmt) -> Block {
        let mut stmts = block.stmts.clone();
        match stmts.pop() {
            Some(Stmt::Expr(tail, None)) => stmts.push(self.statement(&tail, given)),
            Some(last @ Stmt::Expr(Expr::Break(_) | Expr::Continue(_) | Expr::Return(_), _)) => {
                stmts.push(last)
            }
            Some(last) if always_returns(std::slice::from_ref(&last)) => stmts.push(last),
            last => {
                stmts.extend(last);
                self.error(block, "this block must end with an expression: the value that it has");
            }
        }
        Block { brace_token: block.brace_token, stmts }
    }
}

/// Is this one of the expressions in whose parts a jump may stand?
fn is_choice(expr: &Expr) -> bool {
    match expr {
        Expr::Paren(paren) => is_choice(&paren.expr),
        Expr::Group(group) => is_choice(&group.expr),
        Expr::If(_) | Expr::Match(_) => true,
        Expr::Block(block) => block.label.is_none(),
        _ => false,
    }
}

/// A statement as what stands after `else` or `=>`.
fn branch_of(stmt: Stmt) -> Expr {
    match stmt {
        Stmt::Expr(branch @ (Expr::If(_) | Expr::Block(_)), _) => branch,
        other => parse_quote_spanned!(other.span()=> { #other }),
    }
}
