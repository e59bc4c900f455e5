//! Types that newcomers write in signatures and the language does not have.
//!
//! Input: the type of a parameter, or the type parameters of an item. Output: an error that says what to write, and a type
//! of the language in its place, so that this is the only error: what follows is checked as if the right type stood there.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{GenericArgument, GenericParam, Generics, PathArguments, Type, TypeParamBound, WherePredicate};

use crate::errors::Errors;
use crate::item::Kind;
use crate::signature::{Passing, array_rank};

/// Bounds that say nothing about numbers of the language.
const BOUNDS_OF_STD: &[&str] = &[
    "Add",
    "AddAssign",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Display",
    "Div",
    "DivAssign",
    "Eq",
    "From",
    "Into",
    "Mul",
    "MulAssign",
    "Neg",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Rem",
    "Send",
    "Sized",
    "Sub",
    "SubAssign",
    "Sum",
    "Sync",
];

/// Numbers of Rust that the language does not have.
const OTHER_NUMBERS: &[&str] = &["i8", "i16", "i128", "u8", "u16", "u64", "u128", "isize"];

/// Scalars of the language.
pub const SCALARS: &[&str] = &["f32", "f64", "i32", "i64", "u32", "bool", "usize"];

/// Refuses type parameters of which nothing is known that a program needs, and gives them `Float`.
pub fn type_parameters(kind: Kind, generics: &mut Generics, errors: &mut Errors) {
    let names_a_trait_of_ours = |bound: &TypeParamBound| match bound {
        TypeParamBound::Trait(bound) => {
            let last = bound.path.segments.last().map(|s| s.ident.to_string());
            !last.is_some_and(|name| BOUNDS_OF_STD.contains(&name.as_str()))
        }
        _ => false,
    };
    let bounded_elsewhere: Vec<String> = generics
        .where_clause
        .iter()
        .flat_map(|clause| &clause.predicates)
        .filter_map(|predicate| match predicate {
            WherePredicate::Type(p) if p.bounds.iter().any(names_a_trait_of_ours) => {
                Some(p.bounded_ty.to_token_stream().to_string())
            }
            _ => None,
        })
        .collect();
    for param in &mut generics.params {
        let GenericParam::Type(param) = param else { continue };
        let known = param.bounds.iter().any(names_a_trait_of_ours)
            || bounded_elsewhere.contains(&param.ident.to_string());
        if !known {
            let name = &param.ident;
            errors.at(
                name,
                format!(
                    "write `{name}: Float`: a {} is generic over floats; a constant is then `{name}::of(0.5)`",
                    kind.noun()
                ),
            );
            param.bounds = syn::parse_quote!(::ebbtide::__lang::Float);
        }
    }
}

/// The type of a parameter, or one of the language in its place.
pub fn parameter(kind: Kind, passing: Passing, ty: Type, errors: &mut Errors) -> (Passing, Type) {
    let Some((name, argument)) = named(&ty) else { return (passing, ty) };
    let name = name.as_str();
    let array = |element: Option<Type>| {
        let element = element.filter(|e| named(e).is_none_or(|(name, _)| !unknown_element(&name)));
        let element = element.map_or(quote!(::core::primitive::f64), |e| quote!(#e));
        let rank = Ident::new("Array1", Span::call_site());
        syn::parse_quote!(::ebbtide::#rank<#element>)
    };
    let by = if passing == Passing::Mut { "&mut " } else { "&" };
    match (name, &argument) {
        ("Vec" | "Box" | "VecDeque", _) => {
            let element = argument.as_ref().map_or("f64".to_string(), |e| e.to_token_stream().to_string());
            errors.at(
                &ty,
                format!(
                    "write `{by}Array1<{element}>`: programs work on arrays of a device; `device.array(&elements)?` makes \
                     one of a `Vec`, `to_vec()` makes a `Vec` of it"
                ),
            );
            (if passing == Passing::Value { Passing::Ref } else { passing }, array(argument))
        }
        ("String" | "str" | "char", _) => {
            errors.at(
                &ty,
                "there is no text in programs: keep it on the host, in a field with `#[arrays(skip)]`",
            );
            (Passing::Value, syn::parse_quote!(::core::primitive::f64))
        }
        (number, _) if OTHER_NUMBERS.contains(&number) => {
            errors.at(&ty, format!("there is no `{number}` in programs: write `i32`, `i64` or `u32`"));
            (passing, syn::parse_quote!(::core::primitive::i64))
        }
        (scalar, _) if SCALARS.contains(&scalar) && passing == Passing::Ref => {
            errors.at(&ty, format!("scalars are passed by value: write `{scalar}` without `&`"));
            (Passing::Value, ty)
        }
        (scalar, _) if SCALARS.contains(&scalar) && passing == Passing::Mut && kind == Kind::Program => {
            errors.at(
                &ty,
                format!(
                    "a result goes into an array: write `&mut Array0<{scalar}>`, and `x[[]] = …` in the body"
                ),
            );
            (passing, syn::parse_quote!(::ebbtide::Array0<#ty>))
        }
        (array_name, Some(element)) if array_rank_of(array_name).is_some() => {
            let Some((element_name, _)) = named(element).filter(|(e, _)| unknown_element(e)) else {
                return (passing, ty);
            };
            errors.at(
                element,
                format!(
                    "`{element_name}` is not an element type: elements are `f32 f64 i32 i64 u32 bool`; store indices as \
                     `i32` or `i64` and cast them where they index: `u[idx[i] as usize]`"
                ),
            );
            let rank = Ident::new(array_name, Span::call_site());
            (passing, syn::parse_quote!(::ebbtide::#rank<::core::primitive::i64>))
        }
        _ => (passing, ty),
    }
}

fn unknown_element(name: &str) -> bool {
    OTHER_NUMBERS.contains(&name) || matches!(name, "usize" | "char" | "String")
}

fn array_rank_of(name: &str) -> Option<usize> {
    array_rank(&Ident::new(name, Span::call_site()))
}

/// The last name of a path and its first type argument.
fn named(ty: &Type) -> Option<(String, Option<Type>)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let argument = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.iter().find_map(|a| match a {
            GenericArgument::Type(ty) => Some(ty.clone()),
            _ => None,
        }),
        _ => None,
    };
    Some((last.ident.to_string(), argument))
}

/// The tokens, all of them at one place: what rustc says about them twice is then the same to the letter.
pub fn at_one_place(tokens: impl ToTokens, span: Span) -> TokenStream {
    let respan = |mut tree: TokenTree| {
        if let TokenTree::Group(group) = &tree {
            let mut inside = proc_macro2::Group::new(group.delimiter(), at_one_place(group.stream(), span));
            inside.set_span(span);
            return TokenTree::Group(inside);
        }
        tree.set_span(tree.span().located_at(span));
        tree
    };
    tokens.to_token_stream().into_iter().map(respan).collect()
}

/// Is one of the names among the tokens?
pub fn mentions(tokens: TokenStream, names: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        _ => false,
    })
}
