//! `#[program]` and `#[func]`: the items that one function becomes.

mod generics;
mod rules;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Attribute, ExprBlock, GenericParam, ItemFn, ReturnType, TypeParam};

use generics::{f64_has, with_defaults};
use rules::Rules;

use crate::body::Translator;
use crate::errors::Errors;
use crate::jumps::Jumps;
use crate::signature::{self, Param, Passing};
use crate::yields::{self, Yields};
use crate::{types, unparsed};

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
}

/// Expands the attribute on a function.
pub fn expand(kind: Kind, attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            let error = match syn::parse2::<syn::Item>(item.clone()) {
                Ok(other) => syn::Error::new_spanned(other, format!("a {} is a function", kind.noun())),
                Err(_) => unparsed::advice(&item, error),
            };
            match unparsed::without_body(&item) {
                Some(function) => {
                    errors.add(error);
                    function
                }
                None => {
                    let error = error.into_compile_error();
                    return quote!(#error #item);
                }
            }
        }
    };
    if let Some(receiver) = function.sig.receiver() {
        let ItemFn { vis, sig, .. } = &function;
        let name = &sig.ident;
        let message = match kind {
            Kind::Program => format!(
                "write `#[programs]` before the `impl` block, or a function outside it, `fn {name}(w: &mut World)`, and call \
                 that with the struct"
            ),
            _ => format!(
                "a {} stands outside `impl` blocks: write a function `fn {name}(w: &mut World)`, and call it with the struct",
                kind.noun()
            ),
        };
        let error = syn::Error::new_spanned(receiver, message).into_compile_error();
        return quote!(#error #[allow(dead_code, unused_variables)] #vis #sig { ::core::unreachable!() });
    }
    let rules = Rules::parse(kind, attr, &mut errors);
    types::type_parameters(kind, &mut function.sig.generics, &mut errors);
    if kind == Kind::Func {
        signature::name_patterns(&mut function);
    }
    let params = signature::params(kind, &function, &mut errors);
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
                false => Jumps::new(kind, has_value, &mut errors).body(&function.block),
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
        quote! {
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

    /// The hidden function that builds the body where it is called. It takes whatever can be passed for its
    /// parameters, so that rustc blames the argument that cannot.
    fn expansion(&self, body: TokenStream) -> TokenStream {
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
                    ReturnType::Type(_, ty) => quote_spanned!(ty.span()=> ::ebbtide::__lang::Expr<#ty>),
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
