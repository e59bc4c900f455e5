//! Whether a program can yield.
//!
//! Input: the body of a program or function. Output: the expression of a constant function that answers for it, which asks those
//! that it calls. Invariant: where the answer is that it cannot yield, it cannot.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::visit::Visit;
use syn::{Attribute, Block, Expr, ExprCall, Path, PathArguments, Stmt};

use crate::body::{advice, is_constructor, is_item};

/// The parameter of the function that answers, which no name of the user's can meet.
pub fn depth() -> Ident {
    Ident::new("depth", Span::mixed_site())
}

/// What the text of a program says of its yields.
pub struct Yields {
    /// It yields, or does what may yield and cannot be asked: it calls a method, or a program among its parameters.
    pub may: bool,
    /// What it calls by name, which can be asked.
    pub calls: Vec<Path>,
}

impl Yields {
    /// Of a body in which these names are programs among the parameters.
    pub fn of(body: &Block, parameters: &[Ident]) -> Yields {
        let mut search = Search { found: Yields { may: false, calls: Vec::new() }, parameters };
        search.visit_block(body);
        search.found
    }

    /// Whether it cannot yield, by asking everything that it calls, and what that calls, down to a depth. Programs that call one
    /// another in a circle reach it; they have their own error later.
    pub fn question(&self) -> TokenStream {
        if self.may {
            return quote!(false);
        }
        let depth = depth();
        let ask = self.calls.iter().filter_map(|path| {
            let advice = advice(path)?;
            let cannot_yield = Ident::new("__cannot_yield", advice.span());
            // In types, parameters that are not written have their defaults: the answer does not depend on them.
            let (import, callee) = match is_item(path) {
                true => (TokenStream::new(), quote!(#path)),
                false => (quote!(#[allow(unused_imports)] use #path as #advice;), quote!(#advice)),
            };
            Some(quote_spanned! {advice.span()=> && { #import <#callee>::#cannot_yield(#depth - 1) }})
        });
        quote!(#depth > 0 #(#ask)*)
    }
}

struct Search<'a> {
    found: Yields,
    parameters: &'a [Ident],
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let is_checkpoint = attribute.path().segments.last().is_some_and(|last| last.ident == "checkpoint");
        if let (true, Ok(list)) = (is_checkpoint, attribute.meta.require_list()) {
            self.found.may |= list.tokens.to_string().contains("yield_on");
        }
    }

    fn visit_stmt(&mut self, stmt: &'ast Stmt) {
        // Functions compute values, programs are statements.
        if let Stmt::Expr(Expr::Call(ExprCall { func, .. }), _) = stmt {
            match &**func {
                // A small value, not a statement.
                Expr::Path(path) if is_constructor(&path.path) => {}
                Expr::Path(path) if !self.parameters.iter().any(|name| path.path.is_ident(name)) => {
                    let mut path = path.path.clone();
                    path.segments.iter_mut().for_each(|segment| segment.arguments = PathArguments::None);
                    if !self.found.calls.contains(&path) {
                        self.found.calls.push(path);
                    }
                }
                _ => self.found.may = true,
            }
        }
        // A method that stands as a statement is a program, unless it combines into an element.
        if let Stmt::Expr(Expr::MethodCall(call), _) = stmt {
            self.found.may |= call.method != "min_assign" && call.method != "max_assign";
        }
        syn::visit::visit_stmt(self, stmt);
    }
}
