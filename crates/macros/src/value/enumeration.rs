//! Enums without fields: the number of the variant, as `i32`.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{DataEnum, DeriveInput, Fields};

use super::{as_constant, as_member};
use crate::errors::Errors;

pub(super) fn implementation(input: &DeriveInput, data: &DataEnum, errors: &mut Errors) -> TokenStream {
    let name = &input.ident;
    if !input.generics.params.is_empty() {
        errors.at(&input.generics, "an enum of values has no parameters");
    }
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            errors.at(variant, "a variant is a name alone: remove the fields, or make a struct of values");
        }
    }
    if data.variants.is_empty() {
        errors.at(name, "an enum of values has at least one variant");
    }
    let variants: Vec<&Ident> = data.variants.iter().map(|v| &v.ident).collect();
    let lang = quote!(::ebbtide::__lang);
    let (as_member, as_constant, as_value) =
        (as_member(input), as_constant(input), as_value(name, &variants));
    quote! {
        const _: () = {
            #as_member

            #as_value

            #[automatically_derived]
            impl #lang::Scalar for #name {
                const TYPE: #lang::Type = #lang::Type::I32;

                fn literal(self) -> #lang::Literal {
                    ::core::convert::From::from(self as ::core::primitive::i32)
                }

                fn of_literal(literal: #lang::Literal) -> ::core::option::Option<Self> {
                    let all = [#(Self::#variants),*];
                    all.into_iter().find(|variant| #lang::Scalar::literal(*variant) == literal)
                }
            }

            #as_constant
        };
    }
}

fn as_value(name: &Ident, variants: &[&Ident]) -> TokenStream {
    let lang = quote!(::ebbtide::__lang);
    quote! {
        #[automatically_derived]
        impl #lang::Value for #name {
            type Given = #lang::Expr<Self>;
            type Exprs = #lang::ValueId;
            type Locals = #lang::LocalId;

            fn exprs(next: &mut dyn ::core::ops::FnMut(#lang::Type) -> #lang::ValueId) -> #lang::ValueId {
                next(#lang::Type::I32)
            }

            fn locals(next: &mut dyn ::core::ops::FnMut(#lang::Type) -> #lang::LocalId) -> #lang::LocalId {
                next(#lang::Type::I32)
            }

            fn each_expr(parts: &#lang::ValueId, visit: &mut dyn ::core::ops::FnMut(#lang::ValueId)) {
                visit(*parts);
            }

            fn each_local(parts: &#lang::LocalId, visit: &mut dyn ::core::ops::FnMut(#lang::LocalId)) {
                visit(*parts);
            }

            fn names(name: &::core::primitive::str, visit: &mut dyn ::core::ops::FnMut(::std::string::String)) {
                visit(::std::string::ToString::to_string(name));
            }

            fn literals(self, visit: &mut dyn ::core::ops::FnMut(#lang::Literal)) {
                visit(#lang::Scalar::literal(self));
            }

            fn of_literals(next: &mut dyn ::core::ops::FnMut() -> #lang::Literal) -> Self {
                let all = [#(Self::#variants),*];
                <Self as #lang::Scalar>::of_literal(next()).unwrap_or(all[0])
            }

            fn scalars<'__a>(&'__a self, visit: &mut dyn ::core::ops::FnMut(&'__a dyn ::core::any::Any)) {
                visit(self);
            }

            fn scalars_mut<'__a>(
                &'__a mut self,
                visit: &mut dyn ::core::ops::FnMut(&'__a mut dyn ::core::any::Any),
            ) {
                visit(self);
            }
        }
    }
}
