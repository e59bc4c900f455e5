//! Errors at the user's tokens, all of a body's at once.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

/// The errors found so far.
#[derive(Default)]
pub struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds an error that underlines `tokens`.
    pub fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    /// Adds an error.
    pub fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Are there any?
    pub fn any(&self) -> bool {
        self.0.is_some()
    }

    /// The errors as tokens that make rustc report them.
    pub fn into_tokens(self) -> TokenStream {
        self.0.map(|error| error.into_compile_error()).unwrap_or_default()
    }
}

/// The expansion of an attribute that has a meaning inside programs alone.
pub fn outside(name: &str, what: &str, attr: TokenStream, item: TokenStream) -> TokenStream {
    let message = format!("`#[{name}]` stands before {what} inside a `#[program]`; it has no meaning here");
    let spot = if attr.is_empty() { item.clone() } else { attr };
    let error = syn::Error::new_spanned(spot, message).into_compile_error();
    quote!(#error #item)
}
