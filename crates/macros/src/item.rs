//! `#[program]` and `#[func]`: the items that one function becomes.

mod expansion;
mod generics;
mod placement;
mod rules;
mod source;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;
use syn::{Attribute, ExprBlock, GenericParam, ItemFn, ReturnType, TypeParam};

use generics::{f64_has, with_defaults};
use rules::Rules;

use crate::body::Translator;
use crate::errors::Errors;
use crate::jumps::Jumps;
use crate::known::Known;
use crate::signature::{self, Param, Passing};
use crate::types;
use crate::yields::{self, Yields};

/// What a function is to become.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program.
    Program,
    /// A function that programs call and that stays plain Rust.
    Func,
    /// A plain function of Rust that programs call as one operation on whole arrays.
    Operation,
}

impl Kind {
    /// The word for it in messages.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Program => "program",
            Kind::Func => "`#[func]`",
            Kind::Operation => "`#[operation]`",
        }
    }

    /// The name of the attribute.
    fn attribute(self) -> &'static str {
        match self {
            Kind::Program => "program",
            Kind::Func => "func",
            Kind::Operation => "operation",
        }
    }
}

/// Expands the attribute on a function.
pub fn expand(kind: Kind, attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut function = match placement::function(kind, item, &mut errors) {
        Ok(function) => function,
        Err(instead) => return instead,
    };
    let rules = Rules::parse(kind, attr, &mut errors);
    types::type_parameters(kind, &mut function.sig.generics, &mut errors);
    if kind == Kind::Func {
        signature::name_patterns(&mut function);
    }
    let mut params = signature::params(kind, &function, &mut errors);
    let known = Known::of(kind, &function, &params);
    params.iter_mut().for_each(|param| param.known = known.in_type(&param.ty));
    for name in &rules.saved {
        let written = |p: &Param| p.ident == *name && p.passing == Passing::Mut;
        if !params.iter().any(written) {
            errors.at(name, format!("what a {} saves is an array that it takes by `&mut`", kind.noun()));
        }
    }
    let has_value = kind == Kind::Func && matches!(function.sig.output, ReturnType::Type(..));
    let body = match kind {
        Kind::Operation => TokenStream::new(),
        _ => {
            // A body that does not parse is empty here, and has its error already.
            let block = match errors.any() && function.block.stmts.is_empty() {
                true => *function.block.clone(),
                false => Jumps::new(kind, has_value, &mut errors).body(&known.in_block(&function.block)),
            };
            let lent = params.iter().filter(|p| kind == Kind::Func && p.passing == Passing::Mut);
            let lent = lent.map(Param::name).collect();
            let programs = params.iter().filter(|p| p.passing == Passing::Program);
            let programs = programs.map(|p| (p.ident.clone(), p.ty.clone())).collect();
            let has_value = has_value && !function.block.stmts.is_empty();
            let mut translator = Translator::new(kind, lent, programs, &mut errors);
            if has_value { translator.value_block(&block) } else { translator.statements(&block) }
        }
    };
    // Lifetimes were refused above; left in, they would only bring errors of their own.
    let generics = &mut function.sig.generics;
    generics.params =
        generics.params.iter().filter(|p| !matches!(p, GenericParam::Lifetime(_))).cloned().collect();
    signature::rewrite_program_bounds(generics, &mut errors);
    // A program among the parameters is a part of the type, and no argument of a launch.
    let (programs, arguments): (Vec<&Param>, Vec<&Param>) =
        params.iter().partition(|param| param.passing == Passing::Program);
    let item = Item {
        kind,
        function: &function,
        all: &params,
        params: &arguments,
        takes_programs: !programs.is_empty(),
        rules: &rules,
        known: &known,
    };
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
    /// All parameters.
    all: &'a [Param],
    /// Those that are arguments of a launch.
    params: &'a [&'a Param],
    takes_programs: bool,
    rules: &'a Rules,
    known: &'a Known,
}

/// The name of the context in expanded code, which no name of the user's can meet.
pub fn cx() -> Ident {
    Ident::new("cx", Span::mixed_site())
}

impl Item<'_> {
    fn stub_body(&self) -> TokenStream {
        let cx = cx();
        let idents = self.all.iter().map(|p| &p.ident);
        let used = quote!(let _ = (#(&#idents,)*););
        match self.kind {
            Kind::Program | Kind::Operation => used,
            Kind::Func => quote!(#used ::ebbtide::__lang::Returned::placeholder(#cx)),
        }
    }

    fn items(&self, body: TokenStream, plain_function: TokenStream) -> TokenStream {
        let ItemFn { vis, sig, .. } = self.function;
        let name = &sig.ident;
        let (impl_generics, ty_generics, where_clause) = sig.generics.split_for_impl();
        let of_type = self.generics_of_type();
        let (impl_of_type, of_type_generics, where_of_type) = of_type.split_for_impl();
        let with_defaults = with_defaults(&of_type);
        let never = self.never();
        let (question, depth) = (self.question_of_yields(), yields::depth());
        let expansion = self.expansion(body);
        let lints = attributes(&self.function.attrs, &["allow", "warn", "deny"]);
        let (docs, names, function) = match self.kind {
            Kind::Program | Kind::Operation => {
                (attributes(&self.function.attrs, &["doc"]), self.names(), self.program())
            }
            Kind::Func => (quote!(#[doc(hidden)]), TokenStream::new(), plain_function),
        };
        let aliases = self.known.aliases();
        quote! {
            #aliases

            #docs
            #[allow(non_camel_case_types, dead_code)]
            #vis enum #name #with_defaults #where_of_type { #never }

            impl #impl_of_type #name #of_type_generics #where_of_type {
                #[doc(hidden)]
                #[allow(dead_code, unused_variables)]
                pub const fn __cannot_yield(#depth: ::core::primitive::u32) -> ::core::primitive::bool {
                    #question
                }
            }

            #lints
            #[allow(non_upper_case_globals, dead_code, clippy::all)]
            impl #impl_generics #name #ty_generics #where_clause {
                #names
                #expansion
            }

            #function
        }
    }

    /// The body of the constant function that says whether it can yield.
    fn question_of_yields(&self) -> TokenStream {
        if self.kind == Kind::Operation {
            return quote!(true);
        }
        let programs = self.all.iter().filter(|param| param.passing == Passing::Program);
        let programs: Vec<Ident> = programs.map(|param| param.ident.clone()).collect();
        Yields::of(&self.function.block, &programs).question()
    }

    /// The generics of the type. What is asked of a program among the parameters is asked where the type is used, so that a
    /// program that does not fit is one error; so is what no default has.
    fn generics_of_type(&self) -> syn::Generics {
        let mut generics = self.function.sig.generics.clone();
        let without_default =
            |param: &TypeParam| !param.bounds.is_empty() && !param.bounds.iter().all(f64_has);
        if generics.where_clause.is_some() || generics.type_params().any(without_default) {
            generics.where_clause = None;
            generics.type_params_mut().for_each(|param| param.bounds.clear());
            return generics;
        }
        let programs = self.all.iter().filter(|param| param.passing == Passing::Program);
        let names: Vec<String> = programs.map(|param| param.ty.to_token_stream().to_string()).collect();
        for param in generics.type_params_mut().filter(|param| names.contains(&param.ident.to_string())) {
            param.bounds.clear();
        }
        generics
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

    /// The function as it was written: plain Rust.
    fn plain_function(&self) -> TokenStream {
        // A function that is called as plain Rust yields to nobody: its regions are blocks.
        let mut function = self.function.clone();
        WithoutCheckpoints.visit_item_fn_mut(&mut function);
        // std plans an `erf` of its own; ours is meant. `i >= 0` means something in programs, where `i` may be negative.
        quote! {
            #[allow(dead_code, unstable_name_collisions, unused_comparisons, clippy::absurd_extreme_comparisons)]
            #function
        }
    }

    /// The signature of the plain function alone.
    fn stub_function(&self) -> TokenStream {
        let ItemFn { vis, sig, .. } = self.function;
        quote!(#[allow(dead_code, unused_variables)] #vis #sig { ::core::unreachable!() })
    }
}

/// Takes `#[checkpoint(..)]` from blocks.
struct WithoutCheckpoints;

impl VisitMut for WithoutCheckpoints {
    fn visit_expr_block_mut(&mut self, block: &mut ExprBlock) {
        block.attrs.retain(|attr| attr.path().segments.last().is_none_or(|last| last.ident != "checkpoint"));
        syn::visit_mut::visit_expr_block_mut(self, block);
    }
}

/// The attributes with these names.
fn attributes(attrs: &[Attribute], names: &[&str]) -> TokenStream {
    let found = attrs.iter().filter(|a| names.iter().any(|name| a.path().is_ident(name)));
    quote!(#(#found)*)
}
