//! A program as the host knows it: the function that names it, and its arguments, in order and by name.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ItemFn;
use syn::ext::IdentExt;

use super::{Item, attributes, cx};
use crate::signature::{Param, Passing};

impl Item<'_> {
    /// One typed constant per parameter.
    pub(super) fn names(&self) -> TokenStream {
        let names = self.params.iter().map(|param| {
            let (ident, name, ty) = (&param.ident, param.name(), &param.ty);
            let doc = format!("The parameter `{name}`.");
            quote! {
                #[doc = #doc]
                pub const #ident: ::ebbtide::__lang::Name<#ty> = ::ebbtide::__lang::Name::new(#name);
            }
        });
        quote!(#(#names)*)
    }

    pub(super) fn program(&self) -> TokenStream {
        let ItemFn { vis, sig, attrs, .. } = self.function;
        let name = &sig.ident;
        let text = name.unraw().to_string();
        let docs = attributes(attrs, &["doc"]);
        let generics = &sig.generics;
        let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
        let cx = cx();
        let list = Ident::new("list", Span::mixed_site());
        let reborrowed = self.params.iter().map(|p| p.reborrow());
        let (args, reads, pattern) =
            (self.args(Param::argument), self.args(Param::read_argument), self.pattern());
        let (reborrow, share) = match self.params {
            [only] => (only.reborrow(), only.share()),
            many => {
                let shared = many.iter().map(|p| p.share());
                (quote!((#(#reborrowed,)*)), quote!((#(#shared,)*)))
            }
        };
        let by_name = self.arguments_by_name();
        let rules = self.rules.tokens();
        let declare = self.all.iter().map(|p| p.declare(&cx));
        let callable = self.callable();
        let flatten = self.params.iter().map(|p| p.flatten(&list));
        let flatten_read = self.params.iter().map(|p| p.flatten_read(&list));
        quote! {
            #docs
            #[allow(dead_code, non_snake_case)]
            #vis fn #name #generics() -> ::ebbtide::__lang::Program<#name #ty_generics> #where_clause {
                ::ebbtide::__lang::Program::new()
            }

            impl #impl_generics ::ebbtide::__lang::Source for #name #ty_generics #where_clause {
                const NAME: &'static ::core::primitive::str = #text;
                type Args<'__a> = #args;
                type Reads<'__a> = #reads;
                type Ended = ::ebbtide::__lang::Ended<{ !<#name>::__cannot_yield(::ebbtide::__lang::DEPTH_OF_CALLS) }>;

                fn build(#cx: &::ebbtide::__lang::Cx) {
                    // Arguments of a call are evaluated in order, so parameters are declared in order.
                    Self::__expand(#(#declare),*);
                }

                #rules

                fn arguments<'__a>(#pattern: Self::Args<'__a>) -> ::std::vec::Vec<::ebbtide::__lang::Arg<'__a>> {
                    #[allow(unused_mut)]
                    let mut #list = ::std::vec::Vec::new();
                    #(#flatten)*
                    #list
                }

                fn reads<'__a>(#pattern: Self::Reads<'__a>) -> ::std::vec::Vec<::ebbtide::__lang::Arg<'__a>> {
                    #[allow(unused_mut)]
                    let mut #list = ::std::vec::Vec::new();
                    #(#flatten_read)*
                    #list
                }

                #[allow(clippy::unused_unit)]
                fn shared<'__a>(#pattern: Self::Args<'__a>) -> Self::Reads<'__a> {
                    #share
                }

                #[allow(clippy::unused_unit)]
                fn reborrow<'__b, '__a: '__b>(#pattern: &'__b mut Self::Args<'__a>) -> Self::Args<'__b> {
                    #reborrow
                }
            }

            #by_name

            #callable
        }
    }

    /// The program as an argument of another one.
    fn callable(&self) -> TokenStream {
        if self.takes_programs {
            return TokenStream::new();
        }
        let sig = &self.function.sig;
        let name = &sig.ident;
        let (impl_generics, ty_generics, where_clause) = sig.generics.split_for_impl();
        let given: Vec<TokenStream> = self.params.iter().map(|param| param.given(self.kind)).collect();
        let idents: Vec<&Ident> = self.params.iter().map(|param| &param.ident).collect();
        quote! {
            impl #impl_generics ::ebbtide::__lang::Callable<(#(#given,)*)> for #name #ty_generics #where_clause {
                #[track_caller]
                fn call((#(#idents,)*): (#(#given,)*)) {
                    Self::__expand(#(#idents),*);
                }
            }
        }
    }

    /// The type of all arguments: the bare one if there is one, else the tuple in order.
    fn args(&self, of: fn(&Param) -> TokenStream) -> TokenStream {
        match self.params {
            [only] => of(only),
            many => {
                let types = many.iter().map(|p| of(p));
                quote!((#(#types,)*))
            }
        }
    }

    /// The names of all parameters, in the form of [`Item::args`].
    fn pattern(&self) -> TokenStream {
        let idents = self.params.iter().map(|p| &p.ident);
        match self.params {
            [_] => quote!(#(#idents)*),
            _ => quote!((#(#idents,)*)),
        }
    }

    /// The struct that `args = Name` asks for: the arguments by name, which turns into the tuple.
    fn arguments_by_name(&self) -> TokenStream {
        let Some(name) = &self.rules.args else { return TokenStream::new() };
        let ItemFn { vis, sig, .. } = self.function;
        let lends = self.params.iter().any(|p| p.passing != Passing::Value);
        let mut generics = sig.generics.clone();
        if lends {
            generics.params.insert(0, syn::parse_quote!('__a));
        }
        let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
        let doc = format!(
            "The arguments of `{}` by name: `.into()` makes the tuple of a launch of them.",
            sig.ident
        );
        let fields = self.params.iter().map(|param| {
            let (ident, ty) = (&param.ident, param.argument());
            let doc = format!("The parameter `{}`.", param.name());
            quote!(#[doc = #doc] pub #ident: #ty)
        });
        let idents: Vec<_> = self.params.iter().map(|p| &p.ident).collect();
        let pattern = self.pattern();
        let (args, reads) = (self.args(Param::argument), self.args(Param::read_argument));
        let into = |ty: &TokenStream| {
            quote! {
                impl #impl_generics ::core::convert::From<#name #ty_generics> for #ty #where_clause {
                    fn from(#name { #(#idents),* }: #name #ty_generics) -> Self {
                        #pattern
                    }
                }
            }
        };
        let to_args = into(&args);
        // Where the program writes nothing, both tuples are one type.
        let to_reads = match self.params.iter().any(|p| p.passing == Passing::Mut) {
            true => into(&reads),
            false => TokenStream::new(),
        };
        quote! {
            #[doc = #doc]
            #[allow(dead_code)]
            #vis struct #name #generics #where_clause { #(#fields,)* }
            #to_args
            #to_reads
        }
    }
}
