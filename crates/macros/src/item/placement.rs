//! The function that an attribute stands before, in a place where it can be an item.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ItemFn;

use super::Kind;
use crate::errors::Errors;
use crate::surroundings::{self, Misplaced};
use crate::unparsed;

/// The function; or, where none can be made of the tokens or it cannot be an item where it stands, what stands for it.
pub(super) fn function(kind: Kind, item: TokenStream, errors: &mut Errors) -> Result<ItemFn, TokenStream> {
    let function = parsed(kind, &item, errors)?;
    let name = &function.sig.ident;
    if let Some(receiver) = function.sig.receiver() {
        let message = match kind {
            Kind::Program => format!(
                "write `#[programs]` before the `impl` block, or a function outside it, `fn {name}(w: &mut World)`, and call \
                 that with the struct"
            ),
            _ => format!(
                "a {} stands outside `impl` blocks: write a function `fn {name}(w: &mut World)`, and call it with the struct",
                kind.noun()
            ),
        };
        return Err(stub(&function, &syn::Error::new_spanned(receiver, message)));
    }
    match surroundings::misplaced(name, kind.attribute(), &item) {
        Some(Misplaced::InImpl) => {
            let method = match kind {
                Kind::Program => {
                    "; one that is a method takes `&mut self`, in a block with `#[programs]` before it"
                }
                _ => "",
            };
            let message =
                format!("a {} stands outside `impl` blocks: move it before this one{method}", kind.noun());
            Err(stub(&function, &syn::Error::new_spanned(name, message)))
        }
        Some(Misplaced::WithoutPrelude(names)) => {
            let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            errors
                .at(name, format!("write `use ebbtide::prelude::*;` at the top of the file: it has {list}"));
            // What is missing is then found, so that this is the only error.
            Ok(syn::parse2(surroundings::with_paths(item, &names)).unwrap_or(function))
        }
        None => Ok(function),
    }
}

fn parsed(kind: Kind, item: &TokenStream, errors: &mut Errors) -> Result<ItemFn, TokenStream> {
    let error = match syn::parse2(item.clone()) {
        Ok(function) => return Ok(function),
        Err(error) => error,
    };
    let error = match syn::parse2::<syn::Item>(item.clone()) {
        Ok(other) => syn::Error::new_spanned(other, format!("a {} is a function", kind.noun())),
        Err(_) => unparsed::advice(item, error),
    };
    match unparsed::without_body(item) {
        Some(function) => {
            errors.add(error);
            Ok(function)
        }
        None => {
            let error = error.into_compile_error();
            Err(quote!(#error #item))
        }
    }
}

/// The error, and the signature of the function, which can stand in an `impl` block.
fn stub(function: &ItemFn, error: &syn::Error) -> TokenStream {
    let (ItemFn { vis, sig, .. }, error) = (function, error.to_compile_error());
    quote!(#error #[allow(dead_code, unused_variables)] #vis #sig { ::core::unreachable!() })
}
