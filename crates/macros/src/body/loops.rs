//! Loops.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Block, Expr, ExprForLoop, ExprLoop, ExprRange, ExprUnary, ExprWhile, Ident, Label, Lit, Pat,
    RangeLimits, Stmt, UnOp,
};

use super::{Level, Translator, is_tool_attribute, strip};
use crate::item::Kind;

/// What may stand before a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Sequential,
    Parallel,
}

/// The counter of a loop and what its variable is made of.
pub(super) struct Strided {
    /// Statements before the loop.
    pub before: TokenStream,
    pub from: TokenStream,
    pub to: TokenStream,
    /// Where the variable is not the counter: the `emit::Strided` that has its value.
    value: Option<Ident>,
}

impl Strided {
    /// The name of the counter.
    pub fn name(&self, var: &Ident) -> String {
        match self.value {
            None => var.unraw().to_string(),
            Some(_) => format!("{}_count", var.unraw()),
        }
    }
}

/// Is this a range, perhaps with `.rev()` and `.step_by(k)`?
pub(super) fn is_range(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Range(_) => true,
        Expr::MethodCall(call) => {
            (call.method == "rev" || call.method == "step_by") && is_range(&call.receiver)
        }
        _ => false,
    }
}

impl Translator<'_> {
    pub(super) fn for_loop(&mut self, stmt: &ExprForLoop) -> TokenStream {
        self.no_label(&stmt.label);
        if let Some(ranges) = par_ranges(&stmt.expr) {
            return self.par_loop(stmt, ranges);
        }
        let attributes = self.loop_attributes(&stmt.attrs, Form::Sequential);
        let Some(range) = self.strided(&stmt.expr) else { return TokenStream::new() };
        let Some(var) = self.loop_variable(&stmt.pat) else { return TokenStream::new() };
        let (from, to) = (&range.from, &range.to);
        let name = range.name(&var);
        let before = &range.before;
        let value = self.value_of_variable(&range, &var);
        if closing_break(&stmt.body).is_none() && attributes.is_empty() {
            let body = self.statements(&stmt.body);
            let body = quote!(|#var: ::ebbtide::__lang::Expr<::core::primitive::usize>| { #value #body });
            let looped =
                self.emit(stmt.for_token.span, "for_range", &[quote!(#name), from.clone(), to.clone(), body]);
            return quote!({ #before #looped; });
        }
        let begin = self.emit(stmt.for_token.span, "begin_for", &[quote!(#name), from.clone(), to.clone()]);
        let body = self.loop_body(&stmt.body);
        quote!({ #before #attributes let #var = #begin; #value { #body } })
    }

    /// What a loop runs over: a range, perhaps with `.rev()` and `.step_by(k)`.
    pub(super) fn strided(&mut self, expr: &Expr) -> Option<Strided> {
        match strip(expr) {
            Expr::Range(range) => {
                let (from, to) = self.range(range)?;
                Some(Strided { before: TokenStream::new(), from, to, value: None })
            }
            Expr::MethodCall(call) if call.method == "rev" && call.args.is_empty() => {
                let inner = self.strided(&call.receiver)?;
                Some(self.mapped(inner, call.method.span(), "reversed_range", &[]))
            }
            Expr::MethodCall(call) if call.method == "step_by" && call.args.len() == 1 => {
                let inner = self.strided(&call.receiver)?;
                let step = self.index(&call.args[0]);
                Some(self.mapped(inner, call.method.span(), "stepped_range", &[step]))
            }
            other => {
                self.refuse_iterator(other);
                None
            }
        }
    }

    /// A range whose values are computed from a counter: `emit::Strided` says how.
    fn mapped(&mut self, inner: Strided, span: Span, function: &str, args: &[TokenStream]) -> Strided {
        let strided = self.hidden(&format!("strided{}", self.strided));
        self.strided += 1;
        let inside = match &inner.value {
            Some(inside) => quote!(#inside),
            None => {
                let (from, to) = (&inner.from, &inner.to);
                self.emit(span, "plain_range", &[quote!(#from), quote!(#to)])
            }
        };
        let made = self.emit(span, function, &[&[inside], args].concat());
        let before = inner.before;
        let zero = self.emit(span, "lit", &[quote!(0usize)]);
        Strided {
            before: quote!(#before let #strided = #made;),
            from: zero,
            to: quote!(#strided.count()),
            value: Some(strided),
        }
    }

    /// `let i = first + stride * counter;`
    pub(super) fn value_of_variable(&self, range: &Strided, var: &Ident) -> TokenStream {
        let Some(strided) = &range.value else { return TokenStream::new() };
        let value = self.emit(var.span(), "strided_value", &[quote!(#strided), quote!(#var)]);
        let name = var.unraw().to_string();
        let named = self.emit(var.span(), "named", &[quote!(#name), value]);
        quote!(let #var = #named;)
    }

    fn par_loop(&mut self, stmt: &ExprForLoop, ranges: Vec<&Expr>) -> TokenStream {
        let attributes = self.loop_attributes(&stmt.attrs, Form::Parallel);
        if self.kind == Kind::Func {
            self.errors.at(&stmt.expr, "a `#[func]` has no parallel loops: write a `#[program]`");
        }
        if self.level == Level::Parallel {
            self.errors.at(
                &stmt.expr,
                "a parallel loop cannot stand inside another: write `for (i, j) in par(0..n, 0..m)`, or make this one \
                 sequential",
            );
        }
        if !(1..=4).contains(&ranges.len()) {
            self.errors.at(&stmt.expr, "`par` takes one to four ranges");
        }
        let patterns: Vec<&Pat> = match &*stmt.pat {
            Pat::Tuple(tuple) => tuple.elems.iter().collect(),
            Pat::Paren(paren) => vec![&*paren.pat],
            pat => vec![pat],
        };
        if let [range] = ranges[..]
            && let Expr::Tuple(tuple) = strip(range)
        {
            self.errors.at(tuple, "write the ranges without parentheses around them: `par(0..n, 0..m)`");
            return TokenStream::new();
        }
        if patterns.len() != ranges.len() {
            let message = format!(
                "`par` has {} ranges and the loop {} variables: write one variable for each range",
                ranges.len(),
                patterns.len()
            );
            self.errors.at(&stmt.pat, message);
            return TokenStream::new();
        }
        let vars: Vec<Ident> = patterns.iter().filter_map(|pat| self.loop_variable(pat)).collect();
        let strided: Vec<Strided> = ranges.iter().filter_map(|range| self.strided(range)).collect();
        let bounds = strided.iter().map(|Strided { from, to, .. }| quote!((#from, #to)));
        let before: Vec<&TokenStream> = strided.iter().map(|s| &s.before).collect();
        let names: Vec<String> = vars.iter().zip(&strided).map(|(var, range)| range.name(var)).collect();
        let values: Vec<TokenStream> =
            vars.iter().zip(&strided).map(|(var, range)| self.value_of_variable(range, var)).collect();
        let begin =
            self.emit(stmt.for_token.span, "begin_par", &[quote!([#(#names),*]), quote!([#(#bounds),*])]);
        let outer = std::mem::replace(&mut self.level, Level::Parallel);
        let body = self.statements(&stmt.body);
        self.level = outer;
        let end = self.emit(stmt.for_token.span, "end_par", &[]);
        // `par` is named as the user named it, so that hovering over it explains it.
        let marker = par_path(&stmt.expr);
        quote!({
            let _ = #marker;
            #(#before)*
            #attributes
            let [#(#vars),*] = #begin;
            #(#values)*
            { #body }
            #end;
        })
    }

    pub(super) fn while_loop(&mut self, stmt: &ExprWhile) -> TokenStream {
        self.no_label(&stmt.label);
        let attributes = self.loop_attributes(&stmt.attrs, Form::Sequential);
        if let Expr::Let(condition) = &*stmt.cond {
            self.errors
                .at(condition, "there is no `while let`: write `while` with a condition that is `bool`");
            return TokenStream::new();
        }
        if matches!(strip(&stmt.cond), Expr::Lit(lit) if matches!(&lit.lit, Lit::Bool(_))) {
            self.errors
                .at(&stmt.cond, "write `loop { …; if done { break; } }`: this condition never changes");
        }
        let span = stmt.while_token.span;
        let begin = self.emit(span, "begin_while", &[]);
        let condition = self.expr(&stmt.cond);
        let condition = self.emit(stmt.cond.span(), "while_condition", &[condition]);
        let body = self.loop_body(&stmt.body);
        quote!({ #attributes #begin; #condition; { #body } })
    }

    pub(super) fn endless_loop(&mut self, stmt: &ExprLoop) -> TokenStream {
        self.no_label(&stmt.label);
        let attributes = self.loop_attributes(&stmt.attrs, Form::Sequential);
        if closing_break(&stmt.body).is_none() {
            self.errors.at(stmt.loop_token, "this `loop` never ends: write `if … { break; }` in its body");
        }
        let begin = self.emit(stmt.loop_token.span, "begin_loop", &[]);
        let body = self.loop_body(&stmt.body);
        quote!({ #attributes #begin; { #body } })
    }

    /// The body of a sequential loop and its end, which sees what the body declared.
    fn loop_body(&mut self, body: &Block) -> TokenStream {
        match closing_break(body) {
            Some((condition, token)) => {
                let first = self.list(&body.stmts[..body.stmts.len() - 1]);
                let value = self.expr(condition);
                let end = self.emit(token.span(), "end_loop_if", &[value]);
                quote!(#first #end;)
            }
            None => {
                let all = self.statements(body);
                let end = self.emit(body.brace_token.span.close(), "end_loop", &[]);
                quote!(#all #end;)
            }
        }
    }

    pub(super) fn loop_variable(&mut self, pat: &Pat) -> Option<Ident> {
        match pat {
            Pat::Ident(pat) if pat.mutability.is_none() && pat.by_ref.is_none() && pat.subpat.is_none() => {
                Some(pat.ident.clone())
            }
            Pat::Wild(wild) => Some(Ident::new("_pass", wild.underscore_token.span)),
            Pat::Ident(pat) => {
                self.errors.at(pat, "a loop variable is a plain name and does not change in the body");
                None
            }
            pat => {
                self.errors
                    .at(pat, "a loop variable is a plain name; `par` over several ranges takes `(i, j)`");
                None
            }
        }
    }

    /// The bounds of a range, the second one exclusive.
    pub(super) fn range(&mut self, range: &ExprRange) -> Option<(TokenStream, TokenStream)> {
        let (Some(from), Some(to)) = (&range.start, &range.end) else {
            self.errors.at(range, "a range needs both ends: `0..n`");
            return None;
        };
        let from = self.bound(from);
        let end = self.bound(to);
        let end = match &range.limits {
            RangeLimits::HalfOpen(_) => end,
            RangeLimits::Closed(token) => {
                let span = token.span();
                let one = self.emit(span, "lit", &[quote!(1usize)]);
                self.emit(span, "add", &[end, one])
            }
        };
        Some((from, end))
    }

    /// An end of a range. It may be negative: `for d in -1..=1 { s += u[i + d]; }`.
    fn bound(&mut self, bound: &Expr) -> TokenStream {
        if let Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) = strip(bound)
            && let Expr::Lit(magnitude) = strip(expr)
        {
            return self.emit(magnitude.span(), "negative", &[quote!(#magnitude)]);
        }
        self.index(bound)
    }

    fn no_label(&mut self, label: &Option<Label>) {
        if let Some(label) = label {
            self.errors.at(label, "loops have no labels: set a `let mut` flag and test it in the outer loop");
        }
    }

    fn loop_attributes(&mut self, attrs: &[Attribute], form: Form) -> TokenStream {
        let mut tokens = TokenStream::new();
        for attr in attrs.iter().filter(|a| !is_tool_attribute(a)) {
            match (attr.path().segments.last().map(|s| s.ident.to_string()).as_deref(), form) {
                (Some("relaxed"), Form::Parallel) => {
                    let relaxed = self.emit(attr.span(), "relaxed", &[]);
                    tokens.extend(quote!(#relaxed;));
                }
                (Some("relaxed"), Form::Sequential) => {
                    self.errors.at(attr, "`#[relaxed]` is for parallel loops: `for i in par(..)`");
                }
                (Some("reverse"), Form::Sequential) => tokens.extend(self.reverse(attr)),
                (Some("reverse"), Form::Parallel) => {
                    self.errors.at(
                        attr,
                        "`#[reverse(..)]` is for sequential loops: a parallel loop needs no schedule",
                    );
                }
                _ => self.no_attributes(std::slice::from_ref(attr)),
            }
        }
        tokens
    }
}

/// The ranges, where the expression is `par(..)`.
fn par_ranges(expr: &Expr) -> Option<Vec<&Expr>> {
    let Expr::Call(call) = strip(expr) else { return None };
    let Expr::Path(path) = &*call.func else { return None };
    (path.path.segments.last()?.ident == "par").then(|| call.args.iter().collect())
}

fn par_path(expr: &Expr) -> Option<&syn::Path> {
    let Expr::Call(call) = strip(expr) else { return None };
    match &*call.func {
        Expr::Path(path) => Some(&path.path),
        _ => None,
    }
}

/// The condition and the `if` of a closing `if … { break; }`.
pub(crate) fn closing_break(body: &Block) -> Option<(&Expr, &syn::ExprIf)> {
    let Some(Stmt::Expr(Expr::If(branch), _)) = body.stmts.last() else { return None };
    let [Stmt::Expr(Expr::Break(leave), _)] = branch.then_branch.stmts.as_slice() else { return None };
    let plain = branch.else_branch.is_none() && leave.label.is_none() && leave.expr.is_none();
    (plain && !matches!(&*branch.cond, Expr::Let(_))).then_some((&*branch.cond, branch))
}
