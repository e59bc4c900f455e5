//! `#[derive(Label)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields};

use crate::errors::Errors;

/// Expands the derive.
pub fn derive(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let mut variants = Vec::new();
    match &input.data {
        Data::Enum(data) => {
            for variant in &data.variants {
                match variant.fields {
                    Fields::Unit => variants.push(&variant.ident),
                    _ => errors.at(variant, "a label is a name alone: remove the fields"),
                }
            }
        }
        _ => errors
            .at(&input.ident, "labels are the variants of an enum: write `enum Stage { Detect, Solve }`"),
    }
    if !input.generics.params.is_empty() {
        errors.at(&input.generics, "an enum of labels has no parameters");
    }
    if errors.any() {
        return errors.into_tokens();
    }
    let name = &input.ident;
    let family = name.to_string();
    let texts: Vec<String> = variants.iter().map(|v| v.to_string()).collect();
    quote! {
        impl ::ebbtide::__lang::Label for #name {
            const FAMILY: &'static ::core::primitive::str = #family;
            const VARIANTS: &'static [&'static ::core::primitive::str] = &[#(#texts),*];

            fn variant(&self) -> ::std::borrow::Cow<'static, ::core::primitive::str> {
                ::std::borrow::Cow::Borrowed(match *self { #(Self::#variants => #texts,)* })
            }

            fn from_variant(name: &::core::primitive::str) -> ::core::option::Option<Self> {
                match name {
                    #(#texts => ::core::option::Option::Some(Self::#variants),)*
                    _ => ::core::option::Option::None,
                }
            }
        }

        impl ::core::convert::From<#name> for ::ebbtide::ir::Label {
            fn from(label: #name) -> ::ebbtide::ir::Label {
                ::ebbtide::ir::Label {
                    family: ::std::string::String::from(#family),
                    variant: ::std::borrow::Cow::into_owned(::ebbtide::__lang::Label::variant(&label)),
                }
            }
        }
    }
}
