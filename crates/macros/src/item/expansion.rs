//! The hidden functions of an item: what builds its body where it is called, and what runs it on the host.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{ItemFn, ReturnType};

use super::{Item, Kind, cx};
use crate::signature::Passing;

impl Item<'_> {
    /// The hidden function that builds the body where it is called. It takes whatever can be passed for its
    /// parameters, so that rustc blames the argument that cannot.
    pub(super) fn expansion(&self, body: TokenStream) -> TokenStream {
        let sig = &self.function.sig;
        let cx = cx();
        let name = sig.ident.unraw().to_string();
        let idents: Vec<_> = self.all.iter().map(|p| &p.ident).collect();
        let types: Vec<_> = (0..self.all.len()).map(|k| format_ident!("__A{k}")).collect();
        let bounds = self.all.iter().zip(&types).map(|(param, argument)| {
            let bound = param.argument_bound(self.kind);
            quote_spanned!(param.ty.span()=> #argument: #bound)
        });
        let head = quote! {
            #[doc(hidden)]
            #[track_caller]
            pub fn __expand<#(#bounds),*>(#(#idents: #types),*)
        };
        let behind = |k: usize| format_ident!("behind{k}", span = Span::mixed_site());
        let checks = self.params.iter().map(|param| param.check(self.kind));
        // Programs are part of the type, and called by it.
        let programs = self.all.iter().filter(|param| param.passing == Passing::Program);
        let programs = programs.map(|param| &param.ident);
        let start = quote!(let #cx = &::ebbtide::__lang::Cx::current(); #(#checks)* #(let _ = &#programs;)*);
        // The body is inside closures: the types of their parameters are those of the handles.
        let pass = |body: TokenStream| {
            let inside = self.params.iter().enumerate().rev().fold(body, |body, (k, param)| {
                let (ident, ty, how, behind) =
                    (&param.ident, param.type_at_one_place(), param.how(self.kind), behind(k));
                quote_spanned! {param.ty.span()=>
                    ::ebbtide::__lang::emit::passed::<#ty, #how, _>(#cx, &#ident, |#ident, #behind| {
                        // A parameter that is not used is no mistake: rules take all of them.
                        let _ = &#ident;
                        #body
                    })
                }
            });
            quote!(#start #inside)
        };
        let bound = self.params.iter().enumerate().map(|(k, param)| {
            let (name, behind) = (param.name(), behind(k));
            quote!((#name, #behind))
        });
        let bound = quote!(&[#(#bound),*]);
        let saved = self.rules.saved.iter().map(|name| name.unraw().to_string());
        let callee = quote! {
            ::ebbtide::__lang::emit::Callee {
                path: ::core::any::type_name::<Self>(),
                name: #name,
                rules: <Self as ::ebbtide::__lang::Source>::rules(),
                saved: &[#(#saved),*],
            }
        };
        match self.kind {
            Kind::Program => {
                let inside =
                    pass(quote!(::ebbtide::__lang::emit::call_program(#cx, #callee, #bound, || { #body });));
                quote!(#head { #inside })
            }
            Kind::Operation => {
                let host = self.host_function();
                let inside =
                    pass(quote!(::ebbtide::__lang::emit::call_operation(#cx, #callee, #bound, Self::__run);));
                quote! {
                    #head { #inside }
                    #host
                }
            }
            Kind::Func => {
                let output = match &sig.output {
                    ReturnType::Default => quote!(()),
                    ReturnType::Type(_, ty) => {
                        let known = self.known.in_type(ty);
                        quote_spanned!(ty.span()=> ::ebbtide::__lang::Expr<#known>)
                    }
                };
                let inside = pass(quote! {
                    ::ebbtide::__lang::emit::call_func(#cx, ::core::any::type_name::<Self>(), #name, || { #body })
                });
                quote!(#head -> #output { #inside })
            }
        }
    }

    /// The function of an operation as it was written, on views of its arrays, and what calls it with them.
    fn host_function(&self) -> TokenStream {
        let ItemFn { sig, block, .. } = self.function;
        let (output, list) = (&sig.output, Ident::new("list", Span::mixed_site()));
        let idents: Vec<_> = self.params.iter().map(|p| &p.ident).collect();
        let types = self.params.iter().map(|param| {
            let ty = &param.ty;
            let array = quote_spanned!(ty.span()=> <#ty as ::ebbtide::__lang::operation::HostArray>);
            match param.passing {
                Passing::Value | Passing::Program => quote!(#ty),
                Passing::Ref => quote!(#array::View<'_>),
                Passing::Mut => quote!(#array::ViewMut<'_>),
            }
        });
        let take = self.params.iter().map(|param| {
            let (ident, ty) = (&param.ident, &param.ty);
            let function = match param.passing {
                Passing::Value | Passing::Program => quote!(scalar),
                Passing::Ref => quote!(read),
                Passing::Mut => quote!(write),
            };
            quote!(let #ident = ::ebbtide::__lang::operation::#function::<#ty>(#list.next())?;)
        });
        quote! {
            #[allow(unused_mut, clippy::too_many_arguments, clippy::needless_pass_by_value)]
            fn __host(#(mut #idents: #types),*) #output #block

            #[doc(hidden)]
            fn __run(
                arguments: &mut [::ebbtide::__lang::HostArg<'_>],
            ) -> ::core::result::Result<(), ::std::string::String> {
                #[allow(unused_mut, unused_variables)]
                let mut #list = arguments.iter_mut();
                #(#take)*
                ::ebbtide::__lang::operation::HostResult::outcome(Self::__host(#(#idents),*))
            }
        }
    }
}
