//! Structs of values: their parts, a draft that literals of programs fill, and the implementation of `Value`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, FieldsNamed, Type, Visibility};

use super::{as_constant, as_derivative, as_member};

pub(super) fn implementation(input: &DeriveInput, fields: &FieldsNamed) -> TokenStream {
    let structure = Structure::of(input, fields);
    let exprs = structure.parts(&quote!(Expr), &structure.exprs);
    let locals = structure.parts(&quote!(Local), &structure.locals);
    let (draft, as_value) = (structure.draft(), structure.as_value());
    let (as_member, as_constant, as_derivative) =
        (as_member(input), as_constant(input), as_derivative(input));
    quote! {
        const _: () = {
            #exprs
            #locals
            #draft
            #as_value
            #as_member
            #as_derivative
            #as_constant
        };
    }
}

/// What the implementations are made of.
struct Structure<'a> {
    input: &'a DeriveInput,
    /// The struct of its parts as values.
    exprs: Ident,
    /// The struct of its parts as variables.
    locals: Ident,
    idents: Vec<&'a Ident>,
    types: Vec<&'a Type>,
    visibilities: Vec<&'a Visibility>,
}

impl<'a> Structure<'a> {
    fn of(input: &'a DeriveInput, fields: &'a FieldsNamed) -> Structure<'a> {
        Structure {
            input,
            exprs: format_ident!("{}Exprs", input.ident),
            locals: format_ident!("{}Locals", input.ident),
            idents: fields.named.iter().filter_map(|field| field.ident.as_ref()).collect(),
            types: fields.named.iter().map(|field| &field.ty).collect(),
            visibilities: fields.named.iter().map(|field| &field.vis).collect(),
        }
    }

    /// A struct of the parts, each `what` of the field's type, under the names of the fields.
    fn parts(&self, what: &TokenStream, list: &Ident) -> TokenStream {
        let Structure { input, idents, types, visibilities, .. } = self;
        let generics = &input.generics;
        let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
        let params = generics.type_params().map(|param| &param.ident);
        quote! {
            #[doc(hidden)]
            pub struct #list #generics #where_clause {
                #(#visibilities #idents: ::ebbtide::__lang::#what<#types>,)*
                __types: ::core::marker::PhantomData<(#(#params,)*)>,
            }
            impl #impl_generics ::core::clone::Clone for #list #ty_generics #where_clause {
                fn clone(&self) -> Self { *self }
            }
            impl #impl_generics ::core::marker::Copy for #list #ty_generics #where_clause {}
        }
    }

    /// What a literal of a program fills field by field. A struct without the derive has none, and the name of what is then
    /// missing says so.
    fn draft(&self) -> TokenStream {
        let Structure { input, exprs, idents, types, .. } = self;
        let (name, generics) = (&input.ident, &input.generics);
        let draft = format_ident!("{name}Draft");
        let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
        let lang = quote!(::ebbtide::__lang);
        let made = quote!(#lang::Expr<#name #ty_generics>);
        quote! {
            #[doc(hidden)]
            pub struct #draft #generics #where_clause {
                #(#idents: ::core::option::Option<#lang::Expr<#types>>,)*
            }

            #[doc(hidden)]
            #[allow(dead_code)]
            impl #impl_generics #draft #ty_generics #where_clause {
                #(pub fn #idents(mut self, value: #lang::Expr<#types>) -> Self {
                    self.#idents = ::core::option::Option::Some(value);
                    self
                })*

                // rustc has checked that no field is missing.
                pub fn __done(self, cx: &#lang::Cx) -> #made {
                    #lang::Expr::new(#exprs {
                        #(#idents: self.#idents.unwrap_or_else(|| #lang::emit::zero(cx)),)*
                        __types: ::core::marker::PhantomData,
                    })
                }

                pub fn __with(self, rest: #made) -> #made {
                    #lang::Expr::new(#exprs {
                        #(#idents: self.#idents.unwrap_or(rest.#idents),)*
                        __types: ::core::marker::PhantomData,
                    })
                }
            }

            #[doc(hidden)]
            #[allow(dead_code)]
            impl #impl_generics #name #ty_generics #where_clause {
                pub fn this_struct_needs_derive_value() -> #draft #ty_generics {
                    #draft { #(#idents: ::core::option::Option::None,)* }
                }
            }
        }
    }

    fn as_value(&self) -> TokenStream {
        let Structure { input, exprs, locals, idents, types, .. } = self;
        let name = &input.ident;
        let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
        let lang = quote!(::ebbtide::__lang);
        let texts = idents.iter().map(|ident| ident.to_string());
        let value_of: Vec<TokenStream> =
            types.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as #lang::Value>)).collect();
        quote! {
            #[automatically_derived]
            impl #impl_generics #lang::Value for #name #ty_generics #where_clause {
                type Given = #lang::Expr<Self>;
                type Exprs = #exprs #ty_generics;
                type Locals = #locals #ty_generics;

                fn exprs(next: &mut dyn ::core::ops::FnMut(#lang::Type) -> #lang::ValueId) -> Self::Exprs {
                    #exprs {
                        #(#idents: #lang::Expr::new(#value_of::exprs(next)),)*
                        __types: ::core::marker::PhantomData,
                    }
                }

                fn locals(next: &mut dyn ::core::ops::FnMut(#lang::Type) -> #lang::LocalId) -> Self::Locals {
                    #locals {
                        #(#idents: #lang::Local::new(#value_of::locals(next)),)*
                        __types: ::core::marker::PhantomData,
                    }
                }

                fn each_expr(parts: &Self::Exprs, visit: &mut dyn ::core::ops::FnMut(#lang::ValueId)) {
                    #(#value_of::each_expr(&parts.#idents, visit);)*
                }

                fn each_local(parts: &Self::Locals, visit: &mut dyn ::core::ops::FnMut(#lang::LocalId)) {
                    #(#value_of::each_local(&parts.#idents, visit);)*
                }

                fn names(name: &::core::primitive::str, visit: &mut dyn ::core::ops::FnMut(::std::string::String)) {
                    #(#value_of::names(&#lang::member(name, #texts), visit);)*
                }

                fn literals(self, visit: &mut dyn ::core::ops::FnMut(#lang::Literal)) {
                    #(#value_of::literals(self.#idents, visit);)*
                }

                fn of_literals(next: &mut dyn ::core::ops::FnMut() -> #lang::Literal) -> Self {
                    #name { #(#idents: #value_of::of_literals(next),)* }
                }

                fn scalars<'__a>(&'__a self, visit: &mut dyn ::core::ops::FnMut(&'__a dyn ::core::any::Any)) {
                    #(#value_of::scalars(&self.#idents, visit);)*
                }

                fn scalars_mut<'__a>(
                    &'__a mut self,
                    visit: &mut dyn ::core::ops::FnMut(&'__a mut dyn ::core::any::Any),
                ) {
                    #(#value_of::scalars_mut(&mut self.#idents, visit);)*
                }
            }
        }
    }
}
