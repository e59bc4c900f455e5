//! The signature of a program or function: what its parameters are.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    FnArg, GenericParam, Generics, Ident, ItemFn, ParenthesizedGenericArguments, Pat, PathArguments,
    ReturnType, Safety, Type, TypeParam, TypeParamBound, parse_quote, parse_quote_spanned,
};

use crate::errors::Errors;
use crate::item::Kind;
use crate::types::{self, at_one_place};

/// How a parameter is passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// A scalar, by value.
    Value,
    /// Arrays, by `&`.
    Ref,
    /// Arrays, by `&mut`.
    Mut,
    /// A program that the called program calls: no argument of a launch.
    Program,
}

/// A parameter.
pub struct Param {
    pub ident: Ident,
    pub passing: Passing,
    /// The type behind the reference, as it was written.
    pub ty: Type,
    /// The same in expanded code.
    pub known: Type,
}

impl Param {
    /// The name without `r#`.
    pub fn name(&self) -> String {
        self.ident.unraw().to_string()
    }

    fn borrow(&self) -> TokenStream {
        match self.passing {
            Passing::Mut => quote!(::ebbtide::__lang::ByMut),
            _ => quote!(::ebbtide::__lang::ByRef),
        }
    }

    /// The type, at the place of its first word.
    pub fn type_at_one_place(&self) -> TokenStream {
        at_one_place(&self.known, self.ty.span())
    }

    /// How it is passed to an expansion.
    pub fn how(&self, kind: Kind) -> TokenStream {
        let span = self.ty.span();
        match self.passing {
            Passing::Mut if kind == Kind::Func => quote_spanned!(span=> ::ebbtide::__lang::ByLoan),
            Passing::Value | Passing::Program => quote_spanned!(span=> ::ebbtide::__lang::ByValue),
            Passing::Ref => quote_spanned!(span=> ::ebbtide::__lang::ByRef),
            Passing::Mut => quote_spanned!(span=> ::ebbtide::__lang::ByMut),
        }
    }

    /// Names the trait that the type must have, and nothing else: wherever this stands, rustc's complaint about a type that
    /// does not have it is the same to the letter, and shown once.
    pub fn check(&self, kind: Kind) -> TokenStream {
        let ty = self.type_at_one_place();
        match self.passing {
            Passing::Mut if kind == Kind::Func => TokenStream::new(),
            Passing::Program => TokenStream::new(),
            Passing::Value => quote_spanned!(ty.span()=> let _ = <#ty as ::ebbtide::__lang::Value>::names;),
            _ => quote_spanned!(ty.span()=> let _ = <#ty as ::ebbtide::__lang::Field>::paths;),
        }
    }

    /// What is asked of the type of an argument for the parameter.
    pub fn argument_bound(&self, kind: Kind) -> TokenStream {
        let ty = &self.known;
        match self.passing {
            // The function that gives a program stands for it.
            Passing::Program => {
                quote_spanned!(ty.span()=> ::core::ops::Fn() -> ::ebbtide::__lang::Program<#ty> + ::core::marker::Copy)
            }
            _ => {
                let how = self.how(kind);
                quote_spanned!(ty.span()=> ::ebbtide::__lang::Passed<#ty, #how>)
            }
        }
    }

    /// The type of an argument for the parameter that is on its way to it.
    pub fn given(&self, kind: Kind) -> TokenStream {
        let (ty, how) = (&self.known, self.how(kind));
        quote_spanned!(ty.span()=> ::ebbtide::__lang::Given<#ty, #how>)
    }

    /// The type of the argument of a launch.
    pub fn argument(&self) -> TokenStream {
        let ty = &self.ty;
        match self.passing {
            Passing::Value | Passing::Program => quote!(#ty),
            Passing::Ref => quote!(&'__a #ty),
            Passing::Mut => quote!(&'__a mut #ty),
        }
    }

    /// The type of the argument of something that reads arrays alone.
    pub fn read_argument(&self) -> TokenStream {
        let ty = &self.ty;
        match self.passing {
            Passing::Value | Passing::Program => quote!(#ty),
            Passing::Ref | Passing::Mut => quote!(&'__a #ty),
        }
    }

    /// The argument called like the parameter, lent for reading.
    pub fn share(&self) -> TokenStream {
        let ident = &self.ident;
        match self.passing {
            Passing::Value | Passing::Ref | Passing::Program => quote!(#ident),
            Passing::Mut => quote!(&*#ident),
        }
    }

    /// The argument again, out of a `&mut` to it called like the parameter.
    pub fn reborrow(&self) -> TokenStream {
        let (ident, ty) = (&self.ident, self.type_at_one_place());
        match self.passing {
            // As in `check`: of a type that is no value, rustc complains at the type itself, and once.
            Passing::Value => quote_spanned!(ty.span()=> <#ty as ::ebbtide::__lang::Value>::again(#ident)),
            Passing::Program => quote!(*#ident),
            Passing::Ref => quote!(*#ident),
            Passing::Mut => quote!(&mut **#ident),
        }
    }

    /// Declares the parameter and gives its handle.
    pub fn declare(&self, cx: &Ident) -> TokenStream {
        let (ty, name, borrow) = (self.type_at_one_place(), self.name(), self.borrow());
        match self.passing {
            Passing::Value => {
                quote_spanned!(ty.span()=> <#ty as ::ebbtide::__lang::Value>::declare(#cx, #name))
            }
            Passing::Program => quote_spanned!(ty.span()=> ::ebbtide::__lang::Program::<#ty>::new),
            _ => {
                quote_spanned!(ty.span()=> <#ty as ::ebbtide::__lang::Field>::declare::<#borrow>(#cx, #name))
            }
        }
    }

    /// Adds the argument called like the parameter to the list of a launch.
    pub fn flatten(&self, list: &Ident) -> TokenStream {
        self.flatten_as(self.passing, list)
    }

    /// Adds the argument called like the parameter to the list of something that reads arrays alone.
    pub fn flatten_read(&self, list: &Ident) -> TokenStream {
        match self.passing {
            Passing::Mut => self.flatten_as(Passing::Ref, list),
            passing => self.flatten_as(passing, list),
        }
    }

    fn flatten_as(&self, passing: Passing, list: &Ident) -> TokenStream {
        let (ident, ty) = (&self.ident, self.type_at_one_place());
        let span = self.ty.span();
        match passing {
            Passing::Value => quote_spanned! {span=>
                <#ty as ::ebbtide::__lang::Value>::literals(#ident, &mut |literal| {
                    #list.push(::ebbtide::__lang::Arg::Scalar(literal));
                });
            },
            Passing::Program => TokenStream::new(),
            Passing::Ref => {
                quote_spanned!(span=> <#ty as ::ebbtide::__lang::Field>::read_args(#ident, &mut #list);)
            }
            Passing::Mut => {
                quote_spanned!(span=> <#ty as ::ebbtide::__lang::Field>::write_args(#ident, &mut #list);)
            }
        }
    }
}

/// Reads the parameters; what is wrong with the signature goes to `errors`.
pub fn params(kind: Kind, item: &ItemFn, errors: &mut Errors) -> Vec<Param> {
    let sig = &item.sig;
    let what = kind.noun();
    if let Some(token) = &sig.constness {
        errors.at(token, format!("a {what} is built when it is first used: remove `const`"));
    }
    if let Some(token) = &sig.asyncness {
        errors.at(token, format!("a {what} is not async: remove `async`; `launch_async` does not wait"));
    }
    if let Safety::Unsafe(token) = &sig.safety {
        errors.at(token, format!("a {what} is checked and safe: remove `unsafe`"));
    }
    if let Some(abi) = &sig.abi {
        errors.at(abi, format!("a {what} has no ABI: remove this"));
    }
    for param in &sig.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            errors.at(lifetime, format!("a {what} has no lifetimes: write `&Array1<f64>` without one"));
        }
    }
    output(kind, item, errors);
    let mut params: Vec<Param> = sig.inputs.iter().filter_map(|input| param(kind, input, errors)).collect();
    let programs = program_types(&item.sig.generics);
    for param in &mut params {
        let is_program =
            matches!(&param.ty, Type::Path(path) if programs.iter().any(|p| path.path.is_ident(p)));
        if param.passing == Passing::Value && is_program {
            if kind != Kind::Program {
                errors.at(&param.ty, format!("only a program takes a program, not a {what}"));
            }
            param.passing = Passing::Program;
        }
    }
    params
}

/// The type parameters that stand for programs: those with a bound `Fn(&Array1<f64>, &mut Array1<f64>)`.
pub fn program_types(generics: &Generics) -> Vec<Ident> {
    let is_program =
        |param: &&TypeParam| param.bounds.iter().any(|bound| signature_of_program(bound).is_some());
    generics.type_params().filter(is_program).map(|param| param.ident.clone()).collect()
}

/// `Fn(&Array1<f64>, f64)` as a bound.
fn signature_of_program(bound: &TypeParamBound) -> Option<&ParenthesizedGenericArguments> {
    let TypeParamBound::Trait(bound) = bound else { return None };
    let last = bound.path.segments.last().filter(|last| last.ident == "Fn")?;
    match &last.arguments {
        PathArguments::Parenthesized(arguments) => Some(arguments),
        _ => None,
    }
}

/// Writes bounds `Fn(..)` as what they mean here: a program with these parameters.
pub fn rewrite_program_bounds(generics: &mut Generics, errors: &mut Errors) {
    for param in generics.type_params_mut() {
        for bound in &mut param.bounds {
            let Some(arguments) = signature_of_program(bound) else { continue };
            if let ReturnType::Type(_, ty) = &arguments.output {
                errors.at(ty, "a program returns nothing: it writes what it takes by `&mut`");
            }
            let params = arguments.inputs.iter().map(|argument| match &argument.ty {
                Type::Reference(reference) => {
                    let elem = &reference.elem;
                    let borrow = match reference.mutability {
                        Some(_) => quote!(::ebbtide::__lang::ByMut),
                        None => quote!(::ebbtide::__lang::ByRef),
                    };
                    quote!(::ebbtide::__lang::Given<#elem, #borrow>)
                }
                value => quote!(::ebbtide::__lang::Given<#value, ::ebbtide::__lang::ByValue>),
            });
            *bound = parse_quote_spanned!(arguments.span()=> ::ebbtide::__lang::Callable<(#(#params,)*)>);
        }
    }
}

fn output(kind: Kind, item: &ItemFn, errors: &mut Errors) {
    match (kind, &item.sig.output) {
        (Kind::Program, ReturnType::Type(_, ty)) => errors.at(
            ty,
            "a program returns nothing: write its result into an array, such as `loss: &mut Array0<f64>`",
        ),
        (Kind::Func, ReturnType::Default) if !item.sig.inputs.iter().any(by_mut) => errors.at(
            &item.sig.ident,
            "a `#[func]` computes a value, or changes what it takes by `&mut`: give it a return type, or make it a \
             `#[program]` that writes arrays",
        ),
        _ => {}
    }
}

/// Is this parameter taken by `&mut`?
fn by_mut(input: &FnArg) -> bool {
    matches!(input, FnArg::Typed(input) if matches!(&*input.ty, Type::Reference(r) if r.mutability.is_some()))
}

/// Gives parameters that are patterns, such as `(i, s): (usize, f64)`, a name; the body takes them apart first.
pub fn name_patterns(function: &mut ItemFn) {
    let mut apart = Vec::new();
    for (k, input) in function.sig.inputs.iter_mut().enumerate() {
        if let FnArg::Typed(input) = input
            && matches!(&*input.pat, Pat::Tuple(_) | Pat::Slice(_) | Pat::Struct(_))
        {
            let name = format_ident!("argument{k}", span = input.pat.span());
            let pattern = std::mem::replace(&mut *input.pat, parse_quote!(#name));
            apart.push(parse_quote!(let #pattern = #name;));
        }
    }
    function.block.stmts.splice(..0, apart);
}

fn param(kind: Kind, input: &FnArg, errors: &mut Errors) -> Option<Param> {
    let FnArg::Typed(input) = input else {
        errors.at(
            input,
            "there is no `self` here: write a free function and pass the struct, as `w: &mut World`",
        );
        return None;
    };
    let ident = match &*input.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
            if let Some(token) = &pat.mutability {
                errors.at(
                    token,
                    format!("parameters do not change: write `let mut {0} = {0};` in the body", pat.ident),
                );
            }
            pat.ident.clone()
        }
        pat => {
            errors.at(pat, "a parameter is a plain name, or in a `#[func]` a tuple, an array or a struct with names for its parts");
            return None;
        }
    };
    let (passing, ty) = match &*input.ty {
        Type::Reference(reference) => {
            if let Some(lifetime) = &reference.lifetime {
                errors.at(lifetime, "references have no lifetimes here: write `&` or `&mut` alone");
            }
            let passing = if reference.mutability.is_some() { Passing::Mut } else { Passing::Ref };
            match &*reference.elem {
                Type::Slice(slice) => {
                    errors.at(slice, "there are no slices: write `Array1<T>`");
                    let element = &slice.elem;
                    (passing, syn::parse_quote!(::ebbtide::Array1<#element>))
                }
                elem => types::parameter(kind, passing, elem.clone(), errors),
            }
        }
        Type::ImplTrait(ty) => {
            errors.at(ty, "write a type parameter, as in `fn f<T: Float>(x: T)`");
            return None;
        }
        ty => types::parameter(kind, Passing::Value, ty.clone(), errors),
    };
    if passing == Passing::Value && names_an_array(&ty) {
        errors.at(&ty, "arrays are passed by reference: write `&` before it, or `&mut` if it is written");
        return Some(Param { ident, passing: Passing::Ref, known: ty.clone(), ty });
    }
    Some(Param { ident, passing, known: ty.clone(), ty })
}

fn names_an_array(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|s| array_rank(&s.ident).is_some()))
}

/// The rank that is written in the name of an array type.
pub fn array_rank(ident: &Ident) -> Option<usize> {
    let rank = ident.to_string().strip_prefix("Array")?.parse().ok()?;
    (rank <= 4).then_some(rank)
}
