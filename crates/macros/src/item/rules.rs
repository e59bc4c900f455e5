//! The options of `#[program]`: derivatives that it brings itself, and the struct of its arguments.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::Kind;
use crate::errors::Errors;

/// `adjoint = solve_adjoint, tangent = solve_tangent, saved = [pivots]`.
#[derive(Default)]
pub(super) struct Rules {
    pub adjoint: Option<Type>,
    pub tangent: Option<Type>,
    /// The parameters that are written for these alone.
    pub saved: Vec<Ident>,
    /// The name of a struct of the arguments.
    pub args: Option<Ident>,
}

impl Rules {
    pub fn parse(kind: Kind, attr: TokenStream, errors: &mut Errors) -> Rules {
        let mut rules = Rules::default();
        if kind == Kind::Func {
            if !attr.is_empty() {
                errors.at(attr, format!("a {} takes no options here", kind.noun()));
            }
            return rules;
        }
        let parser = syn::meta::parser(|meta| {
            let rule = match meta.path.get_ident().map(ToString::to_string).as_deref() {
                Some("adjoint") => &mut rules.adjoint,
                Some("tangent") => &mut rules.tangent,
                Some("saved") => {
                    let value = meta.value()?;
                    let names;
                    syn::bracketed!(names in value);
                    rules.saved.extend(names.parse_terminated(Ident::parse_any, syn::Token![,])?);
                    return Ok(());
                }
                Some("args") => {
                    let value = meta.value().map_err(|_| {
                        meta.error(
                            "write the name of the struct that is made for the arguments: `args = StepArgs`",
                        )
                    })?;
                    rules.args = Some(value.parse()?);
                    return Ok(());
                }
                _ => {
                    return Err(meta.error(format!(
                        "the options of a {} are `args = Name`, a struct of its arguments by name, `adjoint = name` and \
                         `tangent = name`, programs or operations that are its derivatives, and `saved = [name]`, arrays \
                         that it writes for them",
                        kind.noun()
                    )));
                }
            };
            let value = meta.value().map_err(|_| {
                meta.error("write the name of a program or operation: `adjoint = solve_adjoint`")
            })?;
            *rule = Some(value.parse()?);
            Ok(())
        });
        if let Err(error) = syn::parse::Parser::parse2(parser, attr) {
            errors.add(error);
        }
        rules
    }

    pub fn tokens(&self) -> TokenStream {
        let rule = |ty: &Option<Type>| match ty {
            Some(ty) => quote_spanned! {ty.span()=>
                ::core::option::Option::Some(::ebbtide::__lang::operation::rule::<#ty>())
            },
            None => quote!(::core::option::Option::None),
        };
        if self.adjoint.is_none() && self.tangent.is_none() {
            return TokenStream::new();
        }
        let (adjoint, tangent) = (rule(&self.adjoint), rule(&self.tangent));
        quote! {
            fn rules() -> ::ebbtide::__lang::Rules {
                ::ebbtide::__lang::Rules {
                    adjoint: #adjoint,
                    tangent: #tangent,
                    ..::ebbtide::__lang::Rules::none()
                }
            }
        }
    }
}
