//! Types of the user's that a function mentions, each known to rustc under an alias of the function's own.
//!
//! Input: a function. Output: one alias for each such type in its signature, and the tokens of the expansion with the alias
//! in place of the type. Invariant: an alias is the type itself where the type is part of the language. Where it is not, as a struct
//! without `#[derive(Value)]`, a constant inside the alias does not compile: that is the one error. The alias is then a type that
//! is an error already, and rustc says nothing more about it, at its other mentions, at values of it, and where the function is
//! called.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit_mut::VisitMut;
use syn::{Block, ItemFn, Path, ReturnType, Type, TypePath};

use crate::item::Kind;
use crate::signature::{Param, Passing, array_rank};
use crate::types::{SCALARS, at_one_place, mentions};

/// Small values of the language, by name.
pub const SMALL: &[&str] = &["Vec2", "Vec3", "Vec4", "Mat2", "Mat3", "Mat4"];

/// The types of one function.
#[derive(Default)]
pub struct Known {
    types: Vec<Alias>,
    /// The parameters of the function's types: what is made of them is not known before it is used.
    generics: Vec<Ident>,
}

struct Alias {
    /// The path as it is written, without spaces.
    text: String,
    name: Ident,
    ty: TypePath,
    /// The trait that the type must have at its first mention.
    wanted: TokenStream,
}

impl Known {
    /// The types in the signature of the function, which has these parameters.
    pub fn of(kind: Kind, function: &ItemFn, params: &[Param]) -> Known {
        let sig = &function.sig;
        let mut known = Known::default();
        if kind == Kind::Operation {
            return known;
        }
        let types = sig.generics.type_params().map(|param| &param.ident);
        known.generics =
            types.chain(sig.generics.const_params().map(|param| &param.ident)).cloned().collect();
        for param in params {
            let wanted = match (kind, param.passing) {
                (_, Passing::Program) => continue,
                (_, Passing::Value) => quote!(Value),
                (Kind::Func, Passing::Mut) => quote!(Lent),
                (_, Passing::Ref | Passing::Mut) => quote!(Field),
            };
            known.collect(&sig.ident, &param.ty, wanted);
        }
        if let ReturnType::Type(_, ty) = &sig.output {
            known.collect(&sig.ident, ty, quote!(Value));
        }
        known
    }

    fn collect(&mut self, function: &Ident, ty: &Type, wanted: TokenStream) {
        match ty {
            Type::Tuple(tuple) => tuple.elems.iter().for_each(|ty| self.collect(function, ty, quote!(Value))),
            Type::Array(array) => self.collect(function, &array.elem, quote!(Value)),
            Type::Paren(paren) => self.collect(function, &paren.elem, wanted),
            Type::Path(path) if path.qself.is_none() => {
                let Some(last) = path.path.segments.last() else { return };
                if array_rank(&last.ident).is_some() {
                    for argument in type_arguments(&path.path) {
                        self.collect(function, argument, quote!(Item));
                    }
                } else if !is_of_the_language(&last.ident) && !self.is_generic(path) {
                    let text = text(&path.path);
                    if self.types.iter().all(|known| known.text != text) {
                        let name = format_ident!("__{}_type{}", function.unraw(), self.types.len());
                        self.types.push(Alias { text, name, ty: path.clone(), wanted });
                    }
                }
            }
            _ => {}
        }
    }

    fn is_generic(&self, path: &TypePath) -> bool {
        mentions(path.to_token_stream(), &self.generics)
    }

    /// The aliases as items.
    pub fn aliases(&self) -> TokenStream {
        let aliases = self.types.iter().map(|Alias { name, ty, wanted, .. }| {
            let span = ty.span();
            let ty = at_one_place(ty, span);
            quote_spanned! {span=>
                #[doc(hidden)]
                #[allow(non_camel_case_types, dead_code)]
                type #name = <#ty as ::ebbtide::__lang::Known<{
                    <#ty as ::ebbtide::__lang::#wanted>::IS_KNOWN
                }>>::This;
            }
        });
        quote!(#(#aliases)*)
    }

    /// The type, with aliases in it.
    pub fn in_type(&self, ty: &Type) -> Type {
        let mut ty = ty.clone();
        self.rewriter().visit_type_mut(&mut ty);
        ty
    }

    /// The block, with aliases in it.
    pub fn in_block(&self, block: &Block) -> Block {
        let mut block = block.clone();
        self.rewriter().visit_block_mut(&mut block);
        block
    }

    fn rewriter(&self) -> Rewriter<'_> {
        Rewriter { types: &self.types }
    }
}

/// Writes aliases in paths that are a known type, or begin with one: `Body`, `Body::ZERO`.
struct Rewriter<'a> {
    types: &'a [Alias],
}

impl VisitMut for Rewriter<'_> {
    fn visit_path_mut(&mut self, path: &mut Path) {
        for known in self.types {
            let length = known.ty.path.segments.len();
            if length > path.segments.len()
                || path.leading_colon.is_some() != known.ty.path.leading_colon.is_some()
            {
                continue;
            }
            let mut front = path.clone();
            front.segments = path.segments.iter().take(length).cloned().collect();
            if text(&front) == known.text {
                let mut name = known.name.clone();
                name.set_span(path.segments[length - 1].ident.span());
                let rest = path.segments.iter().skip(length).cloned();
                path.segments = std::iter::once(name.into()).chain(rest).collect();
                path.leading_colon = None;
                break;
            }
        }
        syn::visit_mut::visit_path_mut(self, path);
    }
}

fn type_arguments(path: &Path) -> impl Iterator<Item = &Type> {
    let arguments = path.segments.last().map(|last| &last.arguments);
    let list = match arguments {
        Some(syn::PathArguments::AngleBracketed(list)) => Some(list),
        _ => None,
    };
    list.into_iter().flat_map(|list| &list.args).filter_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

fn is_of_the_language(name: &Ident) -> bool {
    SCALARS.iter().chain(SMALL).any(|known| name == known)
}

fn text(path: &Path) -> String {
    path.to_token_stream().to_string().replace(' ', "")
}
