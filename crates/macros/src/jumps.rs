//! Jumps: `continue`, `break` and `return` become branches and flags, `match` statements become `if`s.
//!
//! Input: a body as written. Output: a body of the same meaning in which the only jump is a closing `if … { break; }` of a
//! sequential loop, which is all that a program has (law 5). Invariant: a name means what it meant before.
//!
//! A branch that always jumps leaves the statements after it to the other branch: `if c { continue; } rest` becomes
//! `if c {} else { rest }`, and `if c { return a; } b` becomes `if c { a } else { b }`, so that guards stay conditions that
//! the analyses understand. Where a branch only sometimes jumps, or a jump leaves a loop inside another one, a flag says
//! so: it is set at the jump, and the statements after it run where it is not set.

mod found;
mod patterns;
mod values;

use std::collections::BTreeSet;

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Block, Expr, ExprBlock, ExprIf, Stmt, parse_quote_spanned};

use crate::errors::Errors;
use crate::item::Kind;
use found::{Kinds, always_returns, expr_jumps, has_jumps, is_parallel, jumps_in, stmt_jumps};

pub(crate) use patterns::match_to_if;

/// Does a list of statements reach its end?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Falls {
    Always,
    Sometimes,
    Never,
}

impl Falls {
    /// Of two branches of which one runs.
    fn or(self, other: Falls) -> Falls {
        if self == other { self } else { Falls::Sometimes }
    }
}

/// The loop, or the function, whose jumps are being rewritten.
struct Frame {
    /// Set by `break`.
    stop: Ident,
    /// Set by `continue`.
    skip: Ident,
    parallel: bool,
    /// Which flags some guard asks for; `break` always needs its own.
    uses_stop: bool,
    uses_skip: bool,
}

/// Rewrites the jumps of one body.
pub struct Jumps<'a> {
    kind: Kind,
    errors: &'a mut Errors,
    frames: Vec<Frame>,
    /// Set by `return`, where a guard asks for it.
    returned: Ident,
    /// Holds the value of a function that does not return by branches alone.
    result: Ident,
    has_value: bool,
    uses_returned: bool,
    /// How many loops have been numbered.
    loops: usize,
    /// How many variables hold values in which a jump stands.
    held: usize,
    /// Guards that the statements being rewritten need: filled by a first pass, used by a second.
    guarded: BTreeSet<usize>,
    reported: BTreeSet<String>,
}

impl<'a> Jumps<'a> {
    pub fn new(kind: Kind, has_value: bool, errors: &'a mut Errors) -> Jumps<'a> {
        let hidden = |name: &str| Ident::new(name, Span::mixed_site());
        Jumps {
            kind,
            errors,
            frames: Vec::new(),
            returned: hidden("returned"),
            result: hidden("result"),
            has_value,
            uses_returned: false,
            loops: 0,
            held: 0,
            guarded: BTreeSet::new(),
            reported: BTreeSet::new(),
        }
    }

    /// The body without jumps.
    pub fn body(mut self, block: &Block) -> Block {
        if !has_jumps(&block.stmts) {
            return block.clone();
        }
        if self.has_value
            && let Some(stmts) = self.branches_of_values(&block.stmts)
        {
            return Block { brace_token: block.brace_token, stmts };
        }
        let mut stmts = block.stmts.clone();
        if self.has_value {
            // The value of the block is what it returns last.
            match stmts.pop() {
                Some(Stmt::Expr(tail, None)) => {
                    let span = tail.span();
                    stmts.push(parse_quote_spanned!(span=> return #tail;));
                }
                last => stmts.extend(last),
            }
        }
        let span = Span::mixed_site();
        let (mut lowered, _) = self.list(&stmts);
        if self.uses_returned {
            // A guard asks for the flag: `return`s before it set it too.
            self.loops = 0;
            (lowered, _) = self.list(&stmts);
        }
        let (returned, result) = (&self.returned, &self.result);
        let mut all: Vec<Stmt> = Vec::new();
        if self.uses_returned {
            all.push(parse_quote_spanned!(span=> let mut #returned = false;));
        }
        if self.has_value {
            all.push(self.zero(result));
        }
        all.append(&mut lowered);
        if self.has_value {
            all.push(Stmt::Expr(parse_quote_spanned!(span=> #result), None));
        }
        Block { brace_token: block.brace_token, stmts: all }
    }

    /// The statements of a function and its value, where branches alone decide what it returns.
    fn branches_of_values(&mut self, stmts: &[Stmt]) -> Option<Vec<Stmt>> {
        let at = stmts.iter().position(stmt_jumps);
        let Some(at) = at else {
            // A loop here may still hold jumps of its own.
            let (first, tail) = (self.list(stmts).0, stmts.last());
            return matches!(tail, Some(Stmt::Expr(_, None))).then_some(first);
        };
        let (mut first, mut rest) = (self.list(&stmts[..at]).0, stmts[at + 1..].to_vec());
        let mut jumping = stmts[at].clone();
        if let Stmt::Expr(Expr::Match(matched), _) = &jumping {
            let [bind, check, branch] = match_to_if(matched, self.errors);
            first.extend([bind, check]);
            jumping = branch;
        }
        let tail: Expr = match &jumping {
            Stmt::Expr(Expr::Return(jump), _) if rest.is_empty() => {
                jump.expr.as_deref().filter(|e| !expr_jumps(e))?.clone()
            }
            Stmt::Expr(Expr::If(branch), _) if !expr_jumps(&branch.cond) => {
                let then = &branch.then_branch.stmts;
                match &branch.else_branch {
                    None => {}
                    // `else if`: one statement, in whose scope the rest may stand.
                    Some((_, other)) if rest.is_empty() || matches!(&**other, Expr::If(_)) => {
                        rest.splice(0..0, else_stmts(other));
                    }
                    Some((_, other)) if matches!(&**other, Expr::Block(b) if b.block.stmts.is_empty()) => {}
                    Some(_) => return None,
                }
                if !always_returns(then) {
                    return None;
                }
                let (then, rest) = (self.branches_of_values(then)?, self.branches_of_values(&rest)?);
                either(branch.if_token.span, &branch.cond, then, rest)
            }
            _ => return None,
        };
        Some(first.into_iter().chain([Stmt::Expr(tail, None)]).collect())
    }

    /// A list of statements without jumps, and whether it reaches its end.
    fn list(&mut self, stmts: &[Stmt]) -> (Vec<Stmt>, Falls) {
        let Some((stmt, rest)) = stmts.split_first() else { return (Vec::new(), Falls::Always) };
        if let Some(outside) = self.with_jumps_outside(stmt) {
            return self.list(&[&outside[..], rest].concat());
        }
        if let Stmt::Expr(Expr::Match(matched), _) = stmt
            && has_jumps(std::slice::from_ref(stmt))
        {
            let [bind, check, branch] = match_to_if(matched, self.errors);
            let (mut all, falls) = self.list(&[&[branch], rest].concat());
            all.splice(0..0, [bind, check]);
            return (all, falls);
        }
        if !stmt_jumps(stmt) {
            let stmt = self.without_jumps(stmt);
            let (mut all, falls) = self.list(rest);
            all.insert(0, stmt);
            return (all, falls);
        }
        match stmt {
            Stmt::Expr(Expr::If(branch), _) => self.branch(branch, rest),
            Stmt::Expr(Expr::Block(block), _) => {
                let (inner, falls) = self.list(&block.block.stmts);
                let mut block = block.clone();
                block.block.stmts = inner;
                let asked = jumps_in(stmt);
                self.guarded_rest(vec![Stmt::Expr(Expr::Block(block), None)], falls, rest, asked)
            }
            // What jumps out of a loop is a `return`: a `break` or `continue` inside is the loop's own.
            Stmt::Expr(Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_), _) => {
                let asked = jumps_in(stmt);
                let lowered = self.without_jumps(stmt);
                self.guarded_rest(vec![lowered], Falls::Sometimes, rest, asked)
            }
            Stmt::Expr(jump @ (Expr::Break(_) | Expr::Continue(_) | Expr::Return(_)), _) => {
                if let Some(never) = rest.first() {
                    self.error(never, "this never runs: it stands after a jump");
                }
                (self.jump(jump), Falls::Never)
            }
            other => {
                self.error(
                    other,
                    "a `break`, `continue` or `return` is a statement of its own, in a block or in a branch of an `if`",
                );
                (Vec::new(), Falls::Always)
            }
        }
    }

    fn error(&mut self, tokens: impl ToTokens, message: &str) {
        // A body may be looked at twice.
        let key = format!("{:?}{message}", tokens.to_token_stream().into_iter().next().map(|t| t.span()));
        if self.reported.insert(key) {
            self.errors.at(tokens, message);
        }
    }

    fn branch(&mut self, branch: &ExprIf, rest: &[Stmt]) -> (Vec<Stmt>, Falls) {
        let otherwise = branch.else_branch.as_ref().map(|(_, other)| else_stmts(other)).unwrap_or_default();
        let (then, then_falls) = self.list(&branch.then_branch.stmts);
        let (condition, span) = (&branch.cond, branch.if_token.span);
        // `else if`: one statement, in whose scope the rest may stand.
        let chain = matches!(&branch.else_branch, Some((_, other)) if matches!(&**other, Expr::If(_)));
        let built = |then: &[Stmt], otherwise: &[Stmt]| -> Vec<Stmt> {
            vec![Stmt::Expr(either(span, condition, then.to_vec(), otherwise.to_vec()), None)]
        };
        if then_falls == Falls::Never && (otherwise.is_empty() || chain) {
            let (rest, falls) = self.list(&[&otherwise[..], rest].concat());
            return (built(&then, &rest), then_falls.or(falls));
        }
        let (otherwise, else_falls) = self.list(&otherwise);
        match (then_falls, else_falls) {
            (Falls::Never, Falls::Always) => {
                let (rest, falls) = self.list(rest);
                let inner = [vec![scope(span, otherwise)], rest].concat();
                (built(&then, &inner), then_falls.or(falls))
            }
            (Falls::Always, Falls::Never) => {
                let (rest, falls) = self.list(rest);
                let inner = [vec![scope(span, then)], rest].concat();
                (built(&inner, &otherwise), else_falls.or(falls))
            }
            _ => {
                let asked = jumps_in(&Stmt::Expr(Expr::If(branch.clone()), None));
                self.guarded_rest(built(&then, &otherwise), then_falls.or(else_falls), rest, asked)
            }
        }
    }

    /// Statements of which some may have jumped, and those after them, which run if none has.
    fn guarded_rest(
        &mut self,
        mut stmts: Vec<Stmt>,
        falls: Falls,
        rest: &[Stmt],
        asked: Kinds,
    ) -> (Vec<Stmt>, Falls) {
        if falls == Falls::Never || rest.is_empty() {
            return (stmts, falls);
        }
        let (rest, rest_falls) = self.list(rest);
        let mut flags = Vec::new();
        if let Some(frame) = self.frames.last_mut() {
            if asked.breaks || asked.returns {
                frame.uses_stop = true;
                flags.push(frame.stop.clone());
            }
            if asked.continues {
                frame.uses_skip = true;
                flags.push(frame.skip.clone());
            }
        } else {
            self.uses_returned = true;
            flags.push(self.returned.clone());
        }
        let span = Span::mixed_site();
        let goes_on: Expr = match &flags[..] {
            [a, b] => parse_quote_spanned!(span=> !(#a | #b)),
            _ => parse_quote_spanned!(span=> !(#(#flags)*)),
        };
        stmts.push(Stmt::Expr(either(span, &goes_on, rest, Vec::new()), None));
        (stmts, if rest_falls == Falls::Never { Falls::Never } else { Falls::Sometimes })
    }

    /// What happens at a jump.
    fn jump(&mut self, jump: &Expr) -> Vec<Stmt> {
        let span = jump.span();
        match jump {
            Expr::Continue(jump) => {
                if let Some(label) = &jump.label {
                    self.error(
                        label,
                        "loops have no labels: set a `let mut` flag and test it in the outer loop",
                    );
                }
                match self.frames.last() {
                    None => self.error(jump, "a `continue` stands inside a loop"),
                    Some(frame) if frame.uses_skip => {
                        let skip = &frame.skip;
                        return vec![parse_quote_spanned!(span=> #skip = true;)];
                    }
                    Some(_) => {}
                }
                Vec::new()
            }
            Expr::Break(jump) => {
                if let Some(label) = &jump.label {
                    self.error(
                        label,
                        "loops have no labels: set a `let mut` flag and test it in the outer loop",
                    );
                }
                if let Some(value) = &jump.expr {
                    self.error(value, "a `break` has no value: set a `let mut` variable before it");
                }
                match self.frames.last_mut() {
                    None => self.error(jump, "a `break` stands inside a sequential loop"),
                    Some(frame) if frame.parallel => self.error(
                        jump,
                        "a parallel loop has no `break`: its iterations run at once; `continue` ends one of them",
                    ),
                    Some(frame) => {
                        frame.uses_stop = true;
                        let stop = &frame.stop;
                        return vec![parse_quote_spanned!(span=> #stop = true;)];
                    }
                }
                Vec::new()
            }
            Expr::Return(jump) => {
                if self.frames.iter().any(|frame| frame.parallel) {
                    self.error(
                        jump,
                        "a parallel loop has no `return`: its iterations run at once; `continue` ends one of them",
                    );
                }
                let mut all = Vec::new();
                match (&jump.expr, self.has_value) {
                    (Some(value), true) if expr_jumps(value) => {
                        self.error(
                            value,
                            "a jump cannot stand inside a value: write the `if` or `match` as a statement",
                        );
                    }
                    (Some(value), true) => {
                        let result = &self.result;
                        all.push(parse_quote_spanned!(span=> #result = #value;));
                    }
                    (None, false) => {}
                    (Some(value), false) => {
                        let what = if self.kind == Kind::Program { "program" } else { "function" };
                        self.error(value, &format!("this {what} returns nothing: write `return;`"));
                    }
                    (None, true) => self.error(jump, "a value is missing here: `return x;`"),
                }
                if self.uses_returned || !self.frames.is_empty() {
                    self.uses_returned = true;
                    let returned = &self.returned;
                    all.push(parse_quote_spanned!(span=> #returned = true;));
                }
                for frame in &mut self.frames {
                    frame.uses_stop = true;
                    let stop = &frame.stop;
                    all.push(parse_quote_spanned!(span=> #stop = true;));
                }
                all
            }
            _ => Vec::new(),
        }
    }

    /// A statement that falls through, with the jumps of the loops inside it rewritten.
    fn without_jumps(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::Expr(expr, semi) = stmt else { return stmt.clone() };
        let mut expr = expr.clone();
        match &mut expr {
            Expr::ForLoop(l) => l.body = self.loop_body(&l.body, is_parallel(&l.expr)),
            Expr::While(l) => l.body = self.loop_body(&l.body, false),
            Expr::Loop(l) => l.body = self.loop_body(&l.body, false),
            Expr::Block(block) => block.block.stmts = self.list(&block.block.stmts).0,
            Expr::If(branch) => {
                branch.then_branch.stmts = self.list(&branch.then_branch.stmts).0;
                if let Some((_, other)) = &mut branch.else_branch {
                    match &mut **other {
                        Expr::Block(block) => block.block.stmts = self.list(&block.block.stmts).0,
                        chain => {
                            let inner = self.without_jumps(&Stmt::Expr(chain.clone(), None));
                            if let Stmt::Expr(inner, _) = inner {
                                *chain = inner;
                            }
                        }
                    }
                }
            }
            _ => {}
        }
        Stmt::Expr(expr, *semi)
    }

    /// The body of a loop, with the flags that it needs before it and a closing `break` after it.
    fn loop_body(&mut self, body: &Block, parallel: bool) -> Block {
        if !has_jumps(&body.stmts) {
            let stmts = body.stmts.iter().map(|stmt| self.without_jumps(stmt)).collect();
            return Block { brace_token: body.brace_token, stmts };
        }
        if !parallel && let Some((last, first)) = body.stmts.split_last() {
            // What a program has already stays as it is.
            if crate::body::closing_break(body).is_some() && !has_jumps(first) {
                let stmts = first.iter().map(|stmt| self.without_jumps(stmt)).chain([last.clone()]);
                return Block { brace_token: body.brace_token, stmts: stmts.collect() };
            }
        }
        self.loops += 1;
        let number = self.loops;
        let hidden = |name: &str| Ident::new(&format!("{name}{number}"), Span::mixed_site());
        self.frames.push(Frame {
            stop: hidden("stop"),
            skip: hidden("skip"),
            parallel,
            uses_stop: false,
            uses_skip: self.guarded.contains(&number),
        });
        let (mut lowered, _) = self.list(&body.stmts);
        let asks = self.frames.last().is_some_and(|frame| frame.uses_skip);
        if asks && self.guarded.insert(number) {
            // A guard asks for the flag that jumps before it did not set: once more.
            self.frames.pop();
            self.loops = number - 1;
            return self.loop_body(body, parallel);
        }
        let Some(frame) = self.frames.pop() else { return body.clone() };
        let (stop, skip, span) = (&frame.stop, &frame.skip, Span::mixed_site());
        let mut all: Vec<Stmt> = Vec::new();
        if frame.uses_stop {
            all.push(parse_quote_spanned!(span=> let mut #stop = false;));
        }
        if frame.uses_skip {
            all.push(parse_quote_spanned!(span=> let mut #skip = false;));
        }
        all.append(&mut lowered);
        if frame.uses_stop && !parallel {
            all.push(parse_quote_spanned!(span=> if #stop { break; }));
        }
        Block { brace_token: body.brace_token, stmts: all }
    }
}

/// The statements of what stands after `else`.
fn else_stmts(other: &Expr) -> Vec<Stmt> {
    match other {
        Expr::Block(block) => block.block.stmts.clone(),
        chain => vec![Stmt::Expr(chain.clone(), None)],
    }
}

// Statements are put into blocks as they are: written out as tokens, those of the expansion's own would be read as the user's.

/// Statements in a scope of their own.
fn scope(span: Span, stmts: Vec<Stmt>) -> Stmt {
    let mut block: ExprBlock = parse_quote_spanned!(span=> {});
    block.block.stmts = stmts;
    Stmt::Expr(Expr::Block(block), None)
}

/// `if condition { … } else { … }`.
fn either(span: Span, condition: &Expr, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Expr {
    let mut branch: ExprIf = parse_quote_spanned!(span=> if #condition {} else {});
    branch.then_branch.stmts = then;
    branch.else_branch = match (otherwise.is_empty(), branch.else_branch) {
        (false, Some((token, _))) => match scope(span, otherwise) {
            Stmt::Expr(block, _) => Some((token, Box::new(block))),
            _ => None,
        },
        _ => None,
    };
    Expr::If(branch)
}
