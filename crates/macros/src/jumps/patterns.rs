//! `match` as a chain of `if`s.
//!
//! Input: a `match` over integers, the variants of a unit enum, or tuples or arrays of these. Output: a `let` of what is matched, and the chain. rustc
//! checks the patterns as it always does, on a `match` with the same patterns that never runs.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprMatch, Pat, RangeLimits, Stmt, parse_quote_spanned};

use crate::errors::Errors;
use crate::types::mentions;

/// `let matched = x;`, what has rustc check the patterns, and `if matched == 0 { … } else if … else { … }`.
pub fn match_to_if(expr: &ExprMatch, errors: &mut Errors) -> [Stmt; 3] {
    let matched = Ident::new("matched", Span::mixed_site());
    let (scrutinee, span) = (&expr.expr, expr.match_token.span);
    let mut chain: Option<Expr> = None;
    for (k, arm) in expr.arms.iter().enumerate().rev() {
        let (pat, guard) = split_guard(&arm.pat);
        let (mut condition, bindings) = test(pat, &quote!(#matched), errors);
        if let Some(guard) = guard {
            let bind = bindings.iter().map(|(name, part)| quote!(let #name = #part;));
            let guard: Expr = match bindings.is_empty() {
                true => guard.clone(),
                false => parse_quote_spanned!(guard.span()=> { #(#bind)* #guard }),
            };
            condition = Some(match condition {
                Some(condition) => parse_quote_spanned!(guard.span()=> #condition && #guard),
                None => guard,
            });
        }
        // A name that its guard alone reads would be an unused one in the body.
        let reads = |name: &Ident| mentions(arm.body.to_token_stream(), std::slice::from_ref(name));
        let bind: Vec<TokenStream> = bindings
            .iter()
            .filter(|(name, _)| guard.is_none() || reads(name))
            .map(|(name, part)| quote!(let #name = #part;))
            .collect();
        let last = k + 1 == expr.arms.len();
        if last && guard.is_some() {
            errors.at(&arm.pat, "the last arm has no `if`: write `_ => …` after it");
        }
        let body: Expr = match &*arm.body {
            body @ Expr::Block(block) if bind.is_empty() && block.label.is_none() => body.clone(),
            body => parse_quote_spanned!(body.span()=> { #(#bind)* #body }),
        };
        chain = Some(match (condition, chain) {
            // Patterns are exhaustive: where no other fits, the last one does.
            (_, None) => body,
            (None, Some(_)) => body,
            (Some(condition), Some(rest)) => parse_quote_spanned!(span=> if #condition #body else #rest),
        });
    }
    let patterns = expr.arms.iter().map(|arm| {
        let (pat, guard) = split_guard(&arm.pat);
        let guard = guard.map(|_| quote!(if true));
        quote!(#pat #guard => {})
    });
    let chain = chain.unwrap_or_else(|| {
        errors.at(expr, "a `match` needs at least one arm");
        parse_quote_spanned!(span=> {})
    });
    let value = Ident::new("value", Span::mixed_site());
    let check = Expr::Verbatim(quote_spanned!(scrutinee.span()=> {
        #[allow(unused_variables, clippy::all)]
        let _ = |#value| match ::ebbtide::__lang::emit::of_type_of(#value, &#matched) { #(#patterns)* };
    }));
    let bind: Stmt = parse_quote_spanned!(scrutinee.span()=> let #matched = #scrutinee;);
    [bind, Stmt::Expr(check, None), Stmt::Expr(chain, None)]
}

/// A pattern and what must hold beside it.
fn split_guard(pat: &Pat) -> (&Pat, Option<&Expr>) {
    match pat {
        Pat::Guard(guarded) => (&guarded.pat, Some(&guarded.guard)),
        pat => (pat, None),
    }
}

/// A condition (`None`: always), and names with the parts that they are bound to.
type Tested = (Option<Expr>, Vec<(Ident, TokenStream)>);

/// The condition under which a pattern fits what is matched, or a part of it, and the names that it binds to parts.
fn test(pat: &Pat, matched: &TokenStream, errors: &mut Errors) -> Tested {
    let span = pat.span();
    let condition: Expr = match pat {
        Pat::Wild(_) => return (None, Vec::new()),
        Pat::Paren(paren) => return test(&paren.pat, matched, errors),
        Pat::Ident(name) if name.by_ref.is_none() && name.mutability.is_none() && name.subpat.is_none() => {
            let ident = &name.ident;
            // As rustc warns, a name in capitals is a constant and any other one a binding.
            if !ident.to_string().starts_with(char::is_uppercase) {
                return (None, vec![(ident.clone(), matched.clone())]);
            }
            parse_quote_spanned!(span=> #matched == #ident)
        }
        Pat::Lit(lit) => parse_quote_spanned!(span=> #matched == #lit),
        Pat::Path(path) => parse_quote_spanned!(span=> #matched == #path),
        Pat::Range(range) => {
            let low =
                range.start.as_ref().map(|low| -> Expr { parse_quote_spanned!(span=> #matched >= #low) });
            let high = range.end.as_ref().map(|high| -> Expr {
                match range.limits {
                    RangeLimits::HalfOpen(_) => parse_quote_spanned!(span=> #matched < #high),
                    RangeLimits::Closed(_) => parse_quote_spanned!(span=> #matched <= #high),
                }
            });
            match (low, high) {
                (Some(low), Some(high)) => parse_quote_spanned!(span=> (#low) & (#high)),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => return (None, Vec::new()),
            }
        }
        Pat::Tuple(tuple) => {
            let part = |k| {
                let k = syn::Index::from(k);
                quote_spanned!(span=> #matched.#k)
            };
            return test_parts(span, tuple.elems.iter(), part, errors);
        }
        Pat::Slice(list) => {
            let part = |k: usize| quote_spanned!(span=> #matched[#k]);
            return test_parts(span, list.elems.iter(), part, errors);
        }
        Pat::Or(or) => {
            let mut all: Option<Expr> = None;
            for case in &or.cases {
                let (condition, bindings) = test(case, matched, errors);
                for (name, _) in bindings {
                    errors.at(name, "a name stands alone in its pattern: write `n if n < 3 => …`");
                }
                let Some(condition) = condition else { return (None, Vec::new()) };
                all = Some(match all {
                    None => condition,
                    Some(all) => parse_quote_spanned!(span=> (#all) | (#condition)),
                });
            }
            match all {
                Some(all) => all,
                None => return (None, Vec::new()),
            }
        }
        _ => {
            errors
                .at(pat, "patterns are numbers, ranges, variants without fields, constants, a name, `_`, and tuples and arrays of these");
            return (None, Vec::new());
        }
    };
    (Some(condition), Vec::new())
}

/// As [`test`], of the patterns of all parts of a tuple or an array.
fn test_parts<'p>(
    span: Span,
    patterns: impl Iterator<Item = &'p Pat>,
    part: impl Fn(usize) -> TokenStream,
    errors: &mut Errors,
) -> Tested {
    let (mut all, mut bindings) = (None, Vec::new());
    for (k, pat) in patterns.enumerate() {
        let (condition, names) = test(pat, &part(k), errors);
        bindings.extend(names);
        all = match (all, condition) {
            (Some(all), Some(condition)) => Some(parse_quote_spanned!(span=> (#all) & (#condition))),
            (one, other) => one.or(other),
        };
    }
    (all, bindings)
}
