//! Values that are taken apart: `let (a, b) = pair;`, `let [x, .., z] = list;`, `let Body { pos, .. } = body;`.

use proc_macro2::{Delimiter, Group, Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Pat, PatStruct};

use super::Translator;

impl Translator<'_> {
    /// `let (a, mut b) = value;`, `let Body { pos, mass: m, .. } = value;`, in `depth` other patterns.
    pub(super) fn pattern(&mut self, pat: &Pat, value: TokenStream, depth: usize) -> TokenStream {
        let held = self.hidden(&format!("parts{depth}"));
        let mut lets = quote!(let #held = #value;);
        match pat {
            Pat::Wild(_) => {}
            Pat::Paren(paren) => return self.pattern(&paren.pat, value, depth),
            Pat::Tuple(tuple) if tuple.elems.iter().any(is_rest) => {
                let parts = quote_spanned!(pat.span()=> ::ebbtide::__lang::emit::parts(#held));
                let around = (Delimiter::Parenthesis, tuple.paren_token.span.join());
                lets.extend(self.list_of_patterns(around, tuple.elems.iter(), parts, depth));
            }
            Pat::Tuple(tuple) => {
                for (k, pat) in tuple.elems.iter().enumerate() {
                    let k = syn::Index::from(k);
                    let part = quote_spanned!(pat.span()=> #held.#k);
                    lets.extend(self.pattern(pat, part, depth + 1));
                }
            }
            Pat::Slice(list) => {
                let parts = quote_spanned!(pat.span()=> ::ebbtide::__lang::emit::items(#held));
                let around = (Delimiter::Bracket, list.bracket_token.span.join());
                lets.extend(self.list_of_patterns(around, list.elems.iter(), parts, depth));
            }
            Pat::Struct(fields) => {
                lets.extend(self.check_fields(fields, &held));
                for field in &fields.fields {
                    let member = &field.member;
                    let part = quote_spanned!(field.span()=> #held.#member);
                    lets.extend(self.pattern(&field.pat, part, depth + 1));
                }
            }
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
                let (ident, name) = (&pat.ident, pat.ident.unraw().to_string());
                let function = if pat.mutability.is_some() { "local" } else { "named" };
                let value = self.emit(ident.span(), function, &[quote!(#name), value]);
                return quote!(let #ident = #value;);
            }
            pat => self.errors.at(pat, "a pattern is made of names, `_`, tuples, arrays and structs"),
        }
        lets
    }

    /// The parts of a tuple or an array under hidden names, which rustc counts, and then each of them taken apart.
    fn list_of_patterns<'p>(
        &mut self,
        (delimiter, span): (Delimiter, proc_macro2::Span),
        patterns: impl Iterator<Item = &'p Pat>,
        parts: TokenStream,
        depth: usize,
    ) -> TokenStream {
        let (mut names, mut lets) = (Vec::new(), TokenStream::new());
        for (k, pat) in patterns.enumerate() {
            if is_rest(pat) {
                names.push(pat.to_token_stream());
                continue;
            }
            let name = self.hidden(&format!("part{depth}_{k}"));
            names.push(match pat {
                Pat::Wild(_) => quote!(_),
                _ => {
                    lets.extend(self.pattern(pat, quote!(#name), depth + 1));
                    quote!(#name)
                }
            });
        }
        // The user's own brackets: rustc shows there that the numbers do not fit.
        let mut list = Group::new(delimiter, quote!(#(#names),*));
        list.set_span(span);
        quote!(let #list = #parts; #lets)
    }

    /// rustc checks the type, and that no field is left out, on a value that is never made.
    fn check_fields(&self, pattern: &PatStruct, held: &Ident) -> TokenStream {
        let path = &pattern.path;
        let members = pattern.fields.iter().map(|field| {
            let member = &field.member;
            quote_spanned!(field.span()=> #member: _)
        });
        let fields = match &pattern.rest {
            Some(rest) => quote!(#rest),
            None => quote!(#(#members),*),
        };
        // The user's own braces: rustc shows there what is missing.
        let mut fields = Group::new(Delimiter::Brace, fields);
        fields.set_span(pattern.brace_token.span.join());
        let given = self.hidden("given");
        quote_spanned! {path.span()=>
            #[allow(clippy::all)]
            let _ = |#given| {
                let #path #fields = ::ebbtide::__lang::emit::of_type_of(#given, &#held);
            };
        }
    }
}

/// `..`
fn is_rest(pat: &Pat) -> bool {
    matches!(pat, Pat::Rest(_))
}
