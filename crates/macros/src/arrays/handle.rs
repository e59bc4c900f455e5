//! What stands for a struct of arrays while a program is built: its handle, the names of its members, how it is passed on, and how
//! it is declared and launched with.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{DeriveInput, Field, GenericParam, Generics, parse_quote};

use super::Part;

/// What the implementations are made of.
pub(super) struct Handles<'a> {
    input: &'a DeriveInput,
    fields: &'a [(&'a Field, &'a Ident)],
    parts: &'a [Part],
    /// The name of the handle.
    handle: Ident,
    /// The struct's own parameters and one more, `__B`: how the handle is borrowed.
    borrowed: Generics,
}

impl<'a> Handles<'a> {
    pub fn of(
        input: &'a DeriveInput,
        fields: &'a [(&'a Field, &'a Ident)],
        parts: &'a [Part],
    ) -> Handles<'a> {
        let mut borrowed = input.generics.clone();
        borrowed.params.push(parse_quote!(__B: ::ebbtide::__lang::Borrow));
        Handles { input, fields, parts, handle: format_ident!("{}Handle", input.ident), borrowed }
    }

    fn idents(&self) -> impl Iterator<Item = &Ident> {
        self.fields.iter().map(|(_, ident)| *ident)
    }

    fn type_params(&self) -> impl Iterator<Item = &Ident> {
        self.input.generics.type_params().map(|param| &param.ident)
    }

    fn name_of_names(&self) -> Ident {
        format_ident!("{}Names", self.input.ident)
    }

    /// The handle with this for `__B`.
    pub fn borrowed_by(&self, borrow: &TokenStream) -> TokenStream {
        let handle = &self.handle;
        let arguments = self.input.generics.params.iter().map(|param| match param {
            GenericParam::Type(param) => {
                let ident = &param.ident;
                quote!(#ident,)
            }
            GenericParam::Const(param) => {
                let ident = &param.ident;
                quote!(#ident,)
            }
            GenericParam::Lifetime(_) => TokenStream::new(),
        });
        quote!(#handle<#(#arguments)* #borrow>)
    }

    /// The handle.
    pub fn handle(&self) -> TokenStream {
        let Handles { input, handle, borrowed, parts, .. } = self;
        let doc = format!("What stands for a `{}` while a program is being built.", input.ident);
        let where_clause = &input.generics.where_clause;
        let (handle_impl, handle_ty, _) = borrowed.split_for_impl();
        let (idents, type_params) = (self.idents(), self.type_params());
        let fields = parts.iter().map(|part| &part.field);
        quote! {
            #[doc = #doc]
            pub struct #handle #borrowed #where_clause {
                #(#fields,)*
                #[doc(hidden)]
                __types: ::core::marker::PhantomData<(#(#type_params,)* __B,)>,
            }

            #[automatically_derived]
            impl #handle_impl ::core::clone::Clone for #handle #handle_ty #where_clause {
                fn clone(&self) -> Self { *self }
            }

            #[automatically_derived]
            impl #handle_impl ::core::marker::Copy for #handle #handle_ty #where_clause {}

            #[automatically_derived]
            impl #handle_impl ::ebbtide::__lang::Handle for #handle #handle_ty #where_clause {
                fn bound(&self, visit: &mut dyn ::core::ops::FnMut(::ebbtide::__lang::Behind)) {
                    #(::ebbtide::__lang::Handle::bound(&self.#idents, visit);)*
                }
            }
        }
    }

    /// The struct of the names of its members.
    pub fn names(&self) -> TokenStream {
        let names = self.name_of_names();
        let doc = format!("The names of the members of a `{}`.", self.input.ident);
        let (impl_generics, _, where_clause) = self.input.generics.split_for_impl();
        let type_params = self.type_params();
        let fields = self.fields.iter().map(|(field, ident)| {
            let (vis, ty) = (&field.vis, &field.ty);
            quote!(#vis #ident: ::ebbtide::__lang::Name<#ty>)
        });
        quote! {
            #[doc = #doc]
            pub struct #names #impl_generics #where_clause {
                #(#fields,)*
                #[doc(hidden)]
                __types: ::core::marker::PhantomData<fn() -> (#(#type_params,)*)>,
            }
        }
    }

    /// How the handle is passed on to called programs and functions.
    pub fn as_argument(&self) -> TokenStream {
        let Handles { input, handle, borrowed, .. } = self;
        let name = &input.ident;
        let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
        let (handle_impl, ..) = borrowed.split_for_impl();
        let lang = quote!(::ebbtide::__lang);
        let [of_b, of_ref, of_mut] =
            [quote!(__B), quote!(#lang::ByRef), quote!(#lang::ByMut)].map(|borrow| self.borrowed_by(&borrow));
        let written = [quote!(#lang::ByMut), quote!(#lang::ByLoan)];
        let idents = self.idents();
        quote! {
            #[automatically_derived]
            impl #handle_impl #lang::Argument<#of_ref> for #of_b #where_clause {
                fn pass(&self, cx: &#lang::Cx) -> #of_ref {
                    #handle {
                        #(#idents: #lang::Argument::pass(&self.#idents, cx),)*
                        __types: ::core::marker::PhantomData,
                    }
                }
            }

            #[automatically_derived]
            impl #impl_generics #lang::Argument<#of_mut> for #of_mut #where_clause {
                fn pass(&self, _: &#lang::Cx) -> #of_mut { *self }
            }

            #[automatically_derived]
            impl #handle_impl #lang::Passed<#name #ty_generics, #lang::ByRef> for #of_b #where_clause {
                fn handle(&self, cx: &#lang::Cx) -> ::std::boxed::Box<dyn ::core::any::Any> {
                    ::std::boxed::Box::new(#lang::Argument::<#of_ref>::pass(self, cx))
                }
            }

            #(#[automatically_derived]
            impl #impl_generics #lang::Passed<#name #ty_generics, #written> for #of_mut #where_clause {
                fn handle(&self, _: &#lang::Cx) -> ::std::boxed::Box<dyn ::core::any::Any> {
                    ::std::boxed::Box::new(*self)
                }
            })*

            #[automatically_derived]
            impl #impl_generics #lang::Lent for #name #ty_generics #where_clause {
                type Handle = #of_mut;
            }
        }
    }

    /// How it is declared, and added to the arguments of a launch.
    pub fn as_field(&self) -> TokenStream {
        let Handles { input, handle, parts, .. } = self;
        let (name, names) = (&input.ident, self.name_of_names());
        let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
        let lang = quote!(::ebbtide::__lang);
        let of_b = self.borrowed_by(&quote!(__B));
        let idents = self.idents();
        let member_names = self.idents().map(|ident| {
            let text = ident.unraw().to_string();
            quote!(#ident: #lang::name_of_member(name, #text))
        });
        let (paths, sets) = (parts.iter().map(|p| &p.paths), parts.iter().map(|p| &p.set));
        let declares = parts.iter().map(|p| &p.declare);
        let (reads, writes) = (parts.iter().map(|p| &p.read), parts.iter().map(|p| &p.write));
        quote! {
            #[automatically_derived]
            impl #impl_generics #lang::Field for #name #ty_generics #where_clause {
                type Handle<__B: #lang::Borrow> = #of_b;
                type Names = #names #ty_generics;

                fn names(name: &'static ::core::primitive::str) -> Self::Names {
                    #names { #(#member_names,)* __types: ::core::marker::PhantomData }
                }

                fn paths(name: &::core::primitive::str, paths: &mut ::std::vec::Vec<::std::string::String>) {
                    #(#paths)*
                }

                #[allow(unused_variables)]
                fn set_scalars(&mut self, values: &mut dyn ::core::iter::Iterator<Item = #lang::Literal>) {
                    #(#sets)*
                }

                fn declare<__B: #lang::Borrow>(cx: &#lang::Cx, name: &::core::primitive::str) -> #of_b {
                    #handle {
                        #(#idents: #declares,)*
                        __types: ::core::marker::PhantomData,
                    }
                }

                fn read_args<'__a>(&'__a self, args: &mut ::std::vec::Vec<#lang::Arg<'__a>>) {
                    #(#reads)*
                }

                fn write_args<'__a>(&'__a mut self, args: &mut ::std::vec::Vec<#lang::Arg<'__a>>) {
                    #(#writes)*
                }
            }
        }
    }
}
