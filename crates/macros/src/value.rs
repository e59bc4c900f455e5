//! `#[derive(Value)]`: structs of values, and unit enums.
//!
//! Input: a struct whose fields are values, or an enum whose variants have no fields. Output: the implementation of
//! `Value`, with one struct of parts as values and one of parts as variables, fields under their own names; and a draft
//! that struct literals of programs fill. An enum is a scalar: the number of its variant, as `i32`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Fields, FieldsNamed, GenericParam};

use crate::errors::Errors;

/// Expands the derive.
pub fn derive(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    for param in &input.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            errors.at(lifetime, "a value has no lifetimes");
        }
    }
    let tokens = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => structure(&input, fields),
            _ => {
                errors.at(&input.ident, "a struct of values has named fields; a tuple needs no struct");
                TokenStream::new()
            }
        },
        Data::Enum(data) => enumeration(&input, data, &mut errors),
        Data::Union(_) => {
            errors.at(&input.ident, "a value is a struct with named fields, or an enum without fields");
            TokenStream::new()
        }
    };
    if errors.any() { errors.into_tokens() } else { tokens }
}

/// What makes the value a member of a struct of arrays.
fn as_member(input: &DeriveInput) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let lang = quote!(::ebbtide::__lang);
    quote! {
        #[automatically_derived]
        impl #impl_generics #lang::Field for #name #ty_generics #where_clause {
            type Handle<__B: #lang::Borrow> = #lang::Expr<Self>;
            type Names = ();

            fn names(_: &'static ::core::primitive::str) {}

            fn paths(name: &::core::primitive::str, paths: &mut ::std::vec::Vec<::std::string::String>) {
                #lang::values::paths::<Self>(name, paths);
            }

            fn set_scalars(&mut self, new: &mut dyn ::core::iter::Iterator<Item = #lang::Literal>) {
                #lang::values::set_scalars(self, new);
            }

            fn declare<__B: #lang::Borrow>(cx: &#lang::Cx, name: &::core::primitive::str) -> #lang::Expr<Self> {
                <Self as #lang::Value>::declare(cx, name)
            }

            fn read_args<'__a>(&'__a self, args: &mut ::std::vec::Vec<#lang::Arg<'__a>>) {
                #lang::values::args(*self, args);
            }

            fn write_args<'__a>(&'__a mut self, args: &mut ::std::vec::Vec<#lang::Arg<'__a>>) {
                #lang::values::args(*self, args);
            }
        }

        #[automatically_derived]
        impl #impl_generics #lang::Leaves for #name #ty_generics #where_clause {
            fn want(name: &::core::primitive::str, wanted: &mut #lang::struct_leaves::Wanted) {
                #lang::struct_leaves::values::want::<Self>(name, wanted);
            }

            fn of_gradients(name: &::core::primitive::str, from: &#lang::Gradients) -> #lang::Result<Self> {
                #lang::struct_leaves::values::of_gradients(name, from)
            }

            fn add_leaves<'__a>(
                &'__a self,
                name: &::core::primitive::str,
                leaves: &mut ::std::vec::Vec<(::std::string::String, #lang::Floats<'__a>)>,
            ) {
                #lang::struct_leaves::values::add_leaves(self, name, leaves);
            }

            fn add_leaves_mut<'__a>(
                &'__a mut self,
                name: &::core::primitive::str,
                leaves: &mut ::std::vec::Vec<(::std::string::String, #lang::FloatsMut<'__a>)>,
            ) {
                #lang::struct_leaves::values::add_leaves_mut(self, name, leaves);
            }
        }
    }
}

fn structure(input: &DeriveInput, fields: &FieldsNamed) -> TokenStream {
    let as_member = as_member(input);
    let name = &input.ident;
    let (exprs, locals, draft) =
        (format_ident!("{name}Exprs"), format_ident!("{name}Locals"), format_ident!("{name}Draft"));
    let generics = &input.generics;
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let types: Vec<_> = generics.type_params().map(|t| &t.ident).collect();
    let phantom = quote!(::core::marker::PhantomData<(#(#types,)*)>);
    let idents: Vec<&Ident> = fields.named.iter().filter_map(|f| f.ident.as_ref()).collect();
    let tys: Vec<_> = fields.named.iter().map(|f| &f.ty).collect();
    let viss: Vec<_> = fields.named.iter().map(|f| &f.vis).collect();
    let texts: Vec<String> = idents.iter().map(|ident| ident.to_string()).collect();
    let lang = quote!(::ebbtide::__lang);
    let value_of: Vec<_> = tys.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as #lang::Value>)).collect();
    let part = |what: TokenStream, list: &Ident| {
        quote! {
            #[doc(hidden)]
            pub struct #list #generics #where_clause {
                #(#viss #idents: #lang::#what<#tys>,)*
                __types: #phantom,
            }
            impl #impl_generics ::core::clone::Clone for #list #ty_generics #where_clause {
                fn clone(&self) -> Self { *self }
            }
            impl #impl_generics ::core::marker::Copy for #list #ty_generics #where_clause {}
        }
    };
    let (exprs_struct, locals_struct) = (part(quote!(Expr), &exprs), part(quote!(Local), &locals));
    quote! {
        const _: () = {
            #exprs_struct
            #locals_struct

            #[doc(hidden)]
            pub struct #draft #generics #where_clause {
                #(#idents: ::core::option::Option<#lang::Expr<#tys>>,)*
            }

            #[doc(hidden)]
            #[allow(dead_code)]
            impl #impl_generics #draft #ty_generics #where_clause {
                #(pub fn #idents(mut self, value: #lang::Expr<#tys>) -> Self {
                    self.#idents = ::core::option::Option::Some(value);
                    self
                })*

                // rustc has checked that no field is missing.
                pub fn __done(self, cx: &#lang::Cx) -> #lang::Expr<#name #ty_generics> {
                    #lang::Expr::new(#exprs {
                        #(#idents: self.#idents.unwrap_or_else(|| #lang::emit::zero(cx)),)*
                        __types: ::core::marker::PhantomData,
                    })
                }

                pub fn __with(self, rest: #lang::Expr<#name #ty_generics>) -> #lang::Expr<#name #ty_generics> {
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

            #as_member

            #[automatically_derived]
            impl #impl_generics #lang::Differentiable for #name #ty_generics #where_clause {
                type Derivative<'__a> = Self;

                fn want(name: &::core::primitive::str, wanted: &mut #lang::struct_leaves::Wanted) {
                    <Self as #lang::Leaves>::want(name, wanted);
                }

                fn derivative(from: &#lang::Gradients, name: &::core::primitive::str) -> #lang::Result<Self> {
                    <Self as #lang::Leaves>::of_gradients(name, from)
                }
            }

            #[automatically_derived]
            impl #impl_generics #lang::Readable for #name #ty_generics #where_clause {
                type Elem = Self;
                #[track_caller]
                fn read(&self, cx: &#lang::Cx) -> #lang::Expr<Self> { #lang::emit::constant(cx, *self) }
            }

            #[automatically_derived]
            impl #impl_generics #lang::Passed<Self, #lang::ByValue> for #name #ty_generics #where_clause {
                #[track_caller]
                fn handle(&self, cx: &#lang::Cx) -> ::std::boxed::Box<dyn ::core::any::Any> {
                    ::std::boxed::Box::new(#lang::emit::constant(cx, *self))
                }
            }

            #[automatically_derived]
            impl #impl_generics #lang::Argument<#lang::Expr<#name #ty_generics>> for #name #ty_generics #where_clause {
                #[track_caller]
                fn pass(&self, cx: &#lang::Cx) -> #lang::Expr<Self> { #lang::emit::constant(cx, *self) }
            }
        };
    }
}

fn enumeration(input: &DeriveInput, data: &DataEnum, errors: &mut Errors) -> TokenStream {
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
    let as_member = as_member(input);
    quote! {
        const _: () = {
            #as_member

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

            #[automatically_derived]
            impl #lang::Readable for #name {
                type Elem = Self;
                #[track_caller]
                fn read(&self, cx: &#lang::Cx) -> #lang::Expr<Self> { #lang::emit::lit(cx, *self) }
            }

            #[automatically_derived]
            impl #lang::Passed<Self, #lang::ByValue> for #name {
                #[track_caller]
                fn handle(&self, cx: &#lang::Cx) -> ::std::boxed::Box<dyn ::core::any::Any> {
                    ::std::boxed::Box::new(#lang::emit::lit(cx, *self))
                }
            }

            #[automatically_derived]
            impl #lang::Argument<#lang::Expr<#name>> for #name {
                #[track_caller]
                fn pass(&self, cx: &#lang::Cx) -> #lang::Expr<Self> { #lang::emit::lit(cx, *self) }
            }
        };
    }
}
