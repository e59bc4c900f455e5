//! The signature of a program or function: what its parameters are.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    FnArg, GenericParam, Generics, Ident, ItemFn, ParenthesizedGenericArguments, Pat, PathArguments,
    ReturnType, Safety, Type, TypeParam, TypeParamBound, parse_quote_spanned,
};

use crate::errors::Errors;
use crate::item::Kind;

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
    /// The type behind the reference.
    pub ty: Type,
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

    /// The type that stands for the parameter while a program is being built.
    pub fn handle(&self, kind: Kind) -> TokenStream {
        let ty = &self.ty;
        let borrow = self.borrow();
        match self.passing {
            Passing::Mut if kind == Kind::Func => {
                quote_spanned!(ty.span()=> <#ty as ::ebbtide::__lang::Lent>::Handle)
            }
            Passing::Value => quote_spanned!(ty.span()=> ::ebbtide::__lang::Expr<#ty>),
            _ => quote_spanned!(ty.span()=> <#ty as ::ebbtide::__lang::Field>::Handle<#borrow>),
        }
    }

    /// What is asked of the type of an argument for the parameter.
    pub fn argument_bound(&self, kind: Kind) -> TokenStream {
        let ty = &self.ty;
        match self.passing {
            // The function that gives a program stands for it.
            Passing::Program => {
                quote_spanned!(ty.span()=> ::core::ops::Fn() -> ::ebbtide::__lang::Program<#ty> + ::core::marker::Copy)
            }
            _ => {
                let handle = self.handle(kind);
                quote_spanned!(ty.span()=> ::ebbtide::__lang::Argument<#handle>)
            }
        }
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
        let ident = &self.ident;
        match self.passing {
            // Of a type that is no scalar, rustc is to complain elsewhere: at the type itself.
            Passing::Value | Passing::Program => quote!(::core::clone::Clone::clone(#ident)),
            Passing::Ref => quote!(*#ident),
            Passing::Mut => quote!(&mut **#ident),
        }
    }

    /// Declares the parameter and gives its handle.
    pub fn declare(&self, cx: &Ident) -> TokenStream {
        let (ty, name, borrow) = (&self.ty, self.name(), self.borrow());
        match self.passing {
            Passing::Value => quote_spanned!(ty.span()=> ::ebbtide::__lang::emit::scalar::<#ty>(#cx, #name)),
            Passing::Program => quote_spanned!(ty.span()=> ::ebbtide::__lang::Program::<#ty>::new),
            _ => quote_spanned!(ty.span()=> ::ebbtide::__lang::emit::declare::<#ty, #borrow>(#cx, #name)),
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
        let ident = &self.ident;
        let span = self.ty.span();
        match passing {
            Passing::Value => quote_spanned! {span=>
                ::ebbtide::__lang::Value::literals(#ident, &mut |literal| {
                    #list.push(::ebbtide::__lang::Arg::Scalar(literal));
                });
            },
            Passing::Program => TokenStream::new(),
            Passing::Ref => quote_spanned!(span=> ::ebbtide::__lang::Field::read_args(#ident, &mut #list);),
            Passing::Mut => quote_spanned!(span=> ::ebbtide::__lang::Field::write_args(#ident, &mut #list);),
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
    let mut params: Vec<Param> = sig.inputs.iter().filter_map(|input| param(input, errors)).collect();
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
            let handles = arguments.inputs.iter().map(|argument| match &argument.ty {
                Type::Reference(reference) => {
                    let elem = &reference.elem;
                    let borrow = match reference.mutability {
                        Some(_) => quote!(::ebbtide::__lang::ByMut),
                        None => quote!(::ebbtide::__lang::ByRef),
                    };
                    quote!(<#elem as ::ebbtide::__lang::Field>::Handle<#borrow>)
                }
                scalar => quote!(::ebbtide::__lang::Expr<#scalar>),
            });
            *bound = parse_quote_spanned!(arguments.span()=> ::ebbtide::__lang::Callable<(#(#handles,)*)>);
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

fn param(input: &FnArg, errors: &mut Errors) -> Option<Param> {
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
            errors.at(pat, "a parameter is a plain name");
            return None;
        }
    };
    let (passing, ty) = match &*input.ty {
        Type::Reference(reference) => {
            if let Some(lifetime) = &reference.lifetime {
                errors.at(lifetime, "references have no lifetimes here: write `&` or `&mut` alone");
            }
            if let Type::Slice(slice) = &*reference.elem {
                errors.at(slice, "there are no slices: write `Array1<T>`");
                return None;
            }
            let passing = if reference.mutability.is_some() { Passing::Mut } else { Passing::Ref };
            (passing, (*reference.elem).clone())
        }
        Type::ImplTrait(ty) => {
            errors.at(ty, "write a type parameter, as in `fn f<T: Float>(x: T)`");
            return None;
        }
        ty => (Passing::Value, ty.clone()),
    };
    if passing == Passing::Value && names_an_array(&ty) {
        errors.at(&ty, "arrays are passed by reference: write `&` before it, or `&mut` if it is written");
        return None;
    }
    Some(Param { ident, passing, ty })
}

fn names_an_array(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|s| array_rank(&s.ident).is_some()))
}

/// The rank that is written in the name of an array type.
pub fn array_rank(ident: &Ident) -> Option<usize> {
    let rank = ident.to_string().strip_prefix("Array")?.parse().ok()?;
    (rank <= 4).then_some(rank)
}
