//! `#[programs]`: programs as methods of a struct of arrays.
//!
//! Input: an `impl` block in which some functions have `#[program]`. Output: for each of these a program of its own, called
//! `World_step`, that takes the struct as its first parameter; in the `impl` block, a function of the method's name that gives
//! it; and what lets programs call it as a method. Everything else in the block stays as it is.

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, FnArg, ImplItem, ImplItemFn, ItemFn, ItemImpl, Meta, Type, parse_quote};

use crate::errors::Errors;
use crate::item::{self, Kind};
use crate::signature::{self, Passing};

/// Expands the attribute.
pub fn expand(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut block: ItemImpl = match syn::parse2(item.clone()) {
        Ok(block) => block,
        Err(_) => {
            let message = "`#[programs]` stands before an `impl` block, in which methods have `#[program]`";
            let error = syn::Error::new_spanned(&item, message).into_compile_error();
            return quote!(#error #item);
        }
    };
    let mut errors = Errors::default();
    if !attr.is_empty() {
        errors.at(attr, "`#[programs]` takes no options: they stand at each `#[program]`");
    }
    if let Some((path, _)) = &block.trait_ {
        errors.at(path, "programs are methods of the struct itself: write `impl World { … }`");
    }
    let (self_ty, generics) = (block.self_ty.clone(), block.generics.clone());
    let Some(name) = name_of(&self_ty) else {
        errors.at(&self_ty, "write the name of a struct with `#[derive(Arrays)]`");
        let errors = errors.into_tokens();
        return quote!(#errors #block);
    };
    let mut programs = TokenStream::new();
    for member in &mut block.items {
        let ImplItem::Fn(method) = member else { continue };
        let Some(at) = method.attrs.iter().position(is_program) else { continue };
        let options = match method.attrs.remove(at).meta {
            Meta::List(list) => list.tokens,
            _ => TokenStream::new(),
        };
        let Some((program, function)) = program_of(method, &self_ty, &name, &generics, &mut errors) else {
            continue;
        };
        programs.extend(item::expand(Kind::Program, options, program.to_token_stream()));
        programs.extend(callable_as_method(method, &program, &self_ty));
        *member = ImplItem::Fn(function);
    }
    let errors = errors.into_tokens();
    quote!(#errors #block #programs)
}

fn is_program(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|last| last.ident == "program")
}

fn name_of(ty: &Type) -> Option<Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.clone()),
        _ => None,
    }
}

/// The program of a method, and what stands for it in the `impl` block.
fn program_of(
    method: &ImplItemFn,
    self_ty: &Type,
    name: &Ident,
    generics: &syn::Generics,
    errors: &mut Errors,
) -> Option<(ItemFn, ImplItemFn)> {
    let Some(FnArg::Receiver(receiver)) = method.sig.inputs.first() else {
        errors.at(
            &method.sig.ident,
            "a program among methods takes `&self` or `&mut self`; one that does not stands outside the `impl` block",
        );
        return None;
    };
    let this: FnArg = match receiver.to_token_stream().to_string().replace(' ', "").as_str() {
        "&mutself" => parse_quote!(this: &mut #self_ty),
        "&self" => parse_quote!(this: &#self_ty),
        _ => {
            errors.at(receiver, "arrays are lent to programs: write `&self` or `&mut self`");
            return None;
        }
    };
    let ident = format_ident!("{}_{}", name, method.sig.ident.unraw(), span = method.sig.ident.span());
    let body = renamed(method.block.to_token_stream(), self_ty);
    let mut sig = method.sig.clone();
    sig.ident = ident.clone();
    if let Some(first) = sig.inputs.first_mut() {
        *first = this;
    }
    sig.generics.params = generics.params.iter().chain(&method.sig.generics.params).cloned().collect();
    let (vis, attrs) = (&method.vis, &method.attrs);
    let program: ItemFn = parse_quote!(#(#attrs)* #vis fn placeholder() {});
    let block = syn::parse2(body).ok()?;
    let program = ItemFn { sig, block: Box::new(block), ..program };
    let own = &method.sig.ident;
    let own_generics = &method.sig.generics;
    let (_, ty_generics, _) = program.sig.generics.split_for_impl();
    let turbofish = ty_generics.as_turbofish();
    let function = parse_quote! {
        #(#attrs)*
        #[allow(dead_code)]
        #vis fn #own #own_generics() -> ::ebbtide::__lang::Program<#ident #ty_generics> {
            #ident #turbofish()
        }
    };
    Some((program, function))
}

/// `self` as `this`, and `Self` as the struct.
fn renamed(tokens: TokenStream, self_ty: &Type) -> TokenStream {
    let mut out = TokenStream::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "self" => {
                out.extend([TokenTree::Ident(Ident::new("this", ident.span()))]);
            }
            TokenTree::Ident(ident) if ident == "Self" => out.extend(self_ty.to_token_stream()),
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), renamed(group.stream(), self_ty));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            other => out.extend([other]),
        }
    }
    out
}

/// What makes `w.step(dt)` in a program expand the method's program.
fn callable_as_method(method: &ImplItemFn, program: &ItemFn, self_ty: &Type) -> TokenStream {
    // The type parameters of a handle are not seen through its struct: a generic program is called by its name.
    if !program.sig.generics.params.is_empty() {
        return TokenStream::new();
    }
    let params = signature::params(Kind::Program, program, &mut Errors::default());
    let Some((this, others)) = params.split_first() else { return TokenStream::new() };
    let given: Vec<TokenStream> = others.iter().map(|param| param.given(Kind::Program)).collect();
    let idents: Vec<&Ident> = others.iter().map(|param| &param.ident).collect();
    let borrows = match this.passing {
        Passing::Mut => vec![quote!(::ebbtide::__lang::ByMut)],
        _ => vec![quote!(::ebbtide::__lang::ByRef), quote!(::ebbtide::__lang::ByMut)],
    };
    let key = key(&method.sig.ident);
    let name = &program.sig.ident;
    let impls = borrows.into_iter().map(|borrow| {
        quote! {
            impl ::ebbtide::__lang::Method<#key> for <#self_ty as ::ebbtide::__lang::Field>::Handle<#borrow> {
                type Params = (#(#given,)*);

                #[track_caller]
                fn call(self, (#(#idents,)*): Self::Params) {
                    #name::__expand(self #(, #idents)*);
                }
            }
        }
    });
    quote!(#(#impls)*)
}

/// What stands for the name of a method in types: its FNV-1a hash.
pub fn key(name: &Ident) -> u64 {
    let name = name.unraw().to_string();
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
