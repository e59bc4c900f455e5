//! Functions that do not parse.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::ItemFn;

/// The function with an empty body, where the signature parses.
pub fn without_body(item: &TokenStream) -> Option<ItemFn> {
    let mut trees: Vec<TokenTree> = item.clone().into_iter().collect();
    match trees.last_mut() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => {
            *body = Group::new(Delimiter::Brace, TokenStream::new());
        }
        _ => return None,
    }
    syn::parse2(trees.into_iter().collect()).ok()
}

/// What to write for the mistakes that newcomers make, or what the parser says.
pub fn advice(item: &TokenStream, error: syn::Error) -> syn::Error {
    match index_with_commas(item) {
        Some(group) => {
            syn::Error::new(group.span(), "several indices stand in two pairs of brackets: `u[[i, j]]`")
        }
        None => error,
    }
}

/// The first `[i, j]` that follows a name, a bracket or a parenthesis.
fn index_with_commas(tokens: &TokenStream) -> Option<Group> {
    let mut work = vec![tokens.clone()];
    while let Some(tokens) = work.pop() {
        let mut follows = false;
        for tree in tokens {
            match &tree {
                TokenTree::Group(group) => {
                    let commas = |tree: TokenTree| matches!(tree, TokenTree::Punct(p) if p.as_char() == ',');
                    if follows
                        && group.delimiter() == Delimiter::Bracket
                        && group.stream().into_iter().any(commas)
                    {
                        return Some(group.clone());
                    }
                    work.push(group.stream());
                    follows = group.delimiter() != Delimiter::Brace;
                }
                // Before a list of its own: `return [a, b]`, `in [a, b]`.
                TokenTree::Ident(ident) => {
                    follows = !matches!(ident.to_string().as_str(), "return" | "in" | "else")
                }
                _ => follows = false,
            }
        }
    }
    None
}
