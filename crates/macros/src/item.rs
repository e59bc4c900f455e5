//! `#[program]` and `#[func]`: the items that one function becomes.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, GenericParam, ItemFn, ReturnType};

use crate::body::Translator;
use crate::errors::Errors;
use crate::signature::{self, Param, Passing};

/// What a function is to become.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program.
    Program,
    /// A function that programs call and that stays plain Rust.
    Func,
}

impl Kind {
    /// The word for it in messages.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Program => "program",
            Kind::Func => "`#[func]`",
        }
    }
}

/// Expands the attribute on a function.
pub fn expand(kind: Kind, attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        // What is not a function is the user's mistake; a function that does not parse is rustc's to explain.
        Err(error) => {
            let error = match syn::parse2::<syn::Item>(item.clone()) {
                Ok(other) => syn::Error::new_spanned(other, format!("a {} is a function", kind.noun())),
                Err(_) => error,
            };
            let error = error.into_compile_error();
            return quote!(#error #item);
        }
    };
    let mut errors = Errors::default();
    if !attr.is_empty() {
        errors.at(attr, format!("a {} takes no options here", kind.noun()));
    }
    let params = signature::params(kind, &function, &mut errors);
    let mut translator = Translator::new(kind, &mut errors);
    let body = match (kind, &function.sig.output) {
        (Kind::Func, ReturnType::Type(..)) => translator.value_block(&function.block),
        _ => translator.statements(&function.block),
    };
    // Lifetimes were refused above; left in, they would only bring errors of their own.
    let generics = &mut function.sig.generics;
    generics.params =
        generics.params.iter().filter(|p| !matches!(p, GenericParam::Lifetime(_))).cloned().collect();
    let item = Item { kind, function: &function, params: &params };
    // With an error the item is still there, with an empty body, so that the rest is type-checked.
    let items = match errors.any() {
        true => item.items(item.stub_body(), item.stub_function()),
        false => item.items(body, item.plain_function()),
    };
    let errors = errors.into_tokens();
    quote!(#items #errors)
}

struct Item<'a> {
    kind: Kind,
    function: &'a ItemFn,
    params: &'a [Param],
}

/// The name of the context in expanded code, which no name of the user's can meet.
pub fn cx() -> Ident {
    Ident::new("cx", Span::mixed_site())
}

impl Item<'_> {
    fn stub_body(&self) -> TokenStream {
        let cx = cx();
        let idents = self.params.iter().map(|p| &p.ident);
        let used = quote!(let _ = (#(&#idents,)*););
        match self.kind {
            Kind::Program => used,
            Kind::Func => quote!(#used ::ebbtide::__lang::Returned::placeholder(#cx)),
        }
    }

    fn items(&self, body: TokenStream, plain_function: TokenStream) -> TokenStream {
        let ItemFn { vis, sig, .. } = self.function;
        let name = &sig.ident;
        let (impl_generics, ty_generics, where_clause) = sig.generics.split_for_impl();
        let generics = &sig.generics;
        let never = self.never();
        let expansion = self.expansion(body);
        let lints = attributes(&self.function.attrs, &["allow", "warn", "deny"]);
        let (docs, names, function) = match self.kind {
            Kind::Program => (attributes(&self.function.attrs, &["doc"]), self.names(), self.program()),
            Kind::Func => (quote!(#[doc(hidden)]), TokenStream::new(), plain_function),
        };
        quote! {
            #docs
            #[allow(non_camel_case_types, dead_code)]
            #vis enum #name #generics #where_clause { #never }

            #lints
            #[allow(non_upper_case_globals, dead_code, clippy::all)]
            impl #impl_generics #name #ty_generics #where_clause {
                #names
                #expansion
            }

            #function
        }
    }

    /// A variant that no value can have, where type parameters must be mentioned.
    fn never(&self) -> TokenStream {
        let types: Vec<_> = self.function.sig.generics.type_params().map(|t| &t.ident).collect();
        if types.is_empty() {
            return TokenStream::new();
        }
        quote! {
            #[doc(hidden)]
            __Never(::core::convert::Infallible, ::core::marker::PhantomData<(#(#types,)*)>)
        }
    }

    /// The hidden function that builds the body where it is called. It takes whatever can be passed for its
    /// parameters, so that rustc blames the argument that cannot.
    fn expansion(&self, body: TokenStream) -> TokenStream {
        let sig = &self.function.sig;
        let cx = cx();
        let name = sig.ident.unraw().to_string();
        let idents: Vec<_> = self.params.iter().map(|p| &p.ident).collect();
        let types: Vec<_> = (0..self.params.len()).map(|k| format_ident!("__A{k}")).collect();
        let bounds = self.params.iter().zip(&types).map(|(param, argument)| {
            let handle = param.handle();
            quote_spanned!(param.ty.span()=> #argument: ::ebbtide::__lang::Argument<#handle>)
        });
        let head = quote! {
            #[doc(hidden)]
            #[track_caller]
            pub fn __expand<#(#bounds),*>(
                #cx: &::ebbtide::__lang::Cx,
                #(#idents: #types),*
            )
        };
        let pass = self.params.iter().map(|param| {
            let ident = &param.ident;
            quote_spanned!(param.ty.span()=> let #ident = ::ebbtide::__lang::emit::arg(#cx, &#ident);)
        });
        let pass = quote!(#(#pass)*);
        match self.kind {
            Kind::Program => {
                let arrays = self.params.iter().filter(|p| p.passing != Passing::Value).map(|param| {
                    let (ident, name) = (&param.ident, param.name());
                    quote!((#name, ::ebbtide::__lang::emit::arrays(&#ident)))
                });
                quote! {
                    #head {
                        #pass
                        ::ebbtide::__lang::emit::call_program(
                            #cx,
                            ::core::any::type_name::<Self>(),
                            #name,
                            &[#(#arrays),*],
                            || { #body },
                        );
                    }
                }
            }
            Kind::Func => {
                let output = match &sig.output {
                    ReturnType::Default => quote!(()),
                    ReturnType::Type(_, ty) => quote_spanned!(ty.span()=> ::ebbtide::__lang::Expr<#ty>),
                };
                quote! {
                    #head -> #output {
                        #pass
                        ::ebbtide::__lang::emit::call_func(#cx, ::core::any::type_name::<Self>(), #name, || { #body })
                    }
                }
            }
        }
    }

    /// One typed constant per parameter.
    fn names(&self) -> TokenStream {
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

    fn program(&self) -> TokenStream {
        let ItemFn { vis, sig, attrs, .. } = self.function;
        let name = &sig.ident;
        let text = name.unraw().to_string();
        let docs = attributes(attrs, &["doc"]);
        let generics = &sig.generics;
        let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
        let cx = cx();
        let list = Ident::new("list", Span::mixed_site());
        let idents: Vec<_> = self.params.iter().map(|p| &p.ident).collect();
        let reborrowed = self.params.iter().map(Param::reborrow);
        let (args, pattern, reborrow) = match self.params {
            [only] => (only.argument(), quote!(#(#idents)*), only.reborrow()),
            many => {
                let types = many.iter().map(Param::argument);
                (quote!((#(#types,)*)), quote!((#(#idents,)*)), quote!((#(#reborrowed,)*)))
            }
        };
        let declare = self.params.iter().map(|p| p.declare(&cx));
        let flatten = self.params.iter().map(|p| p.flatten(&list));
        quote! {
            #docs
            #[allow(dead_code)]
            #vis fn #name #generics() -> ::ebbtide::__lang::Program<#name #ty_generics> #where_clause {
                ::ebbtide::__lang::Program::new()
            }

            impl #impl_generics ::ebbtide::__lang::Source for #name #ty_generics #where_clause {
                const NAME: &'static str = #text;
                type Args<'__a> = #args;

                fn build(#cx: &::ebbtide::__lang::Cx) {
                    // Arguments of a call are evaluated in order, so parameters are declared in order.
                    Self::__expand(#cx, #(#declare),*);
                }

                fn arguments<'__a>(#pattern: Self::Args<'__a>) -> ::std::vec::Vec<::ebbtide::__lang::Arg<'__a>> {
                    #[allow(unused_mut)]
                    let mut #list = ::std::vec::Vec::new();
                    #(#flatten)*
                    #list
                }

                #[allow(clippy::unused_unit)]
                fn reborrow<'__b, '__a: '__b>(#pattern: &'__b mut Self::Args<'__a>) -> Self::Args<'__b> {
                    #reborrow
                }
            }
        }
    }

    /// The function as it was written: plain Rust.
    fn plain_function(&self) -> TokenStream {
        let function = self.function;
        // std plans an `erf` of its own; ours is meant.
        quote!(#[allow(dead_code, unstable_name_collisions)] #function)
    }

    /// The signature of the plain function alone.
    fn stub_function(&self) -> TokenStream {
        let ItemFn { vis, sig, .. } = self.function;
        quote!(#[allow(dead_code, unused_variables)] #vis #sig { ::core::unreachable!() })
    }
}

/// The attributes with these names.
fn attributes(attrs: &[Attribute], names: &[&str]) -> TokenStream {
    let found = attrs.iter().filter(|a| names.iter().any(|name| a.path().is_ident(name)));
    quote!(#(#found)*)
}
