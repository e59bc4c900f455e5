//! `#[derive(Value)]`: structs of values, and unit enums.
//!
//! Input: a struct whose fields are values, or an enum whose variants have no fields. Output: the implementation of
//! `Value`, with one struct of parts as values and one of parts as variables, fields under their own names; and a draft
//! that struct literals of programs fill. An enum is a scalar: the number of its variant, as `i32`.

mod enumeration;
mod structure;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Fields, GenericParam};

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
            Fields::Named(fields) => structure::implementation(&input, fields),
            _ => {
                errors.at(&input.ident, "a struct of values has named fields; a tuple needs no struct");
                TokenStream::new()
            }
        },
        Data::Enum(data) => enumeration::implementation(&input, data, &mut errors),
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

/// What makes a constant of the host a value where programs read it, or pass it on.
fn as_constant(input: &DeriveInput) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let lang = quote!(::ebbtide::__lang);
    quote! {
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
    }
}

/// What makes the struct the derivative of a parameter that is one.
pub fn as_derivative(input: &DeriveInput) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let lang = quote!(::ebbtide::__lang);
    quote! {
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
    }
}
