//! The generic parameters of the type that stands for a program, with defaults.

use quote::ToTokens;
use syn::{GenericParam, TypeParamBound, parse_quote};

/// Bounds that `f64` fulfils.
const OF_FLOATS: &[&str] = &["Element", "Float", "Item", "Number", "Summand", "Value"];

/// Has `f64` what is asked of a parameter?
pub(super) fn f64_has(bound: &TypeParamBound) -> bool {
    let TypeParamBound::Trait(bound) = bound else { return false };
    bound.path.segments.last().is_some_and(|last| OF_FLOATS.iter().any(|name| last.ident == name))
}

/// Each parameter with a default, so that the type can be named without them where they do not matter.
pub(super) fn with_defaults(generics: &syn::Generics) -> syn::Generics {
    let mut generics = generics.clone();
    for param in &mut generics.params {
        match param {
            GenericParam::Type(param) => {
                let default = match param.bounds.is_empty() {
                    true => parse_quote!(()),
                    false => parse_quote!(::core::primitive::f64),
                };
                param.default = Some((Default::default(), default));
            }
            GenericParam::Const(param) => {
                let default = match param.ty.to_token_stream().to_string() == "bool" {
                    true => parse_quote!(false),
                    false => parse_quote!(0),
                };
                param.default = Some((Default::default(), default));
            }
            GenericParam::Lifetime(_) => {}
        }
    }
    generics
}
