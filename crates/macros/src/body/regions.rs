//! Blocks, and what their attributes say.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ExprArray, ExprBlock, Ident, LitInt, Path, Token};

use super::{Level, Translator, is_tool_attribute};

/// `Stage::Detect, yield_on = w.overflow, undo = [w.pairs]`.
struct Checkpoint {
    label: Written,
    options: Vec<(Ident, Option<Expr>)>,
}

/// A label as it is written: a variant of an enum, or a number.
enum Written {
    Variant(Path),
    Number(LitInt),
}

impl Parse for Written {
    fn parse(input: ParseStream) -> syn::Result<Written> {
        match input.peek(LitInt) {
            true => Ok(Written::Number(input.parse()?)),
            false => Ok(Written::Variant(input.parse()?)),
        }
    }
}

impl ToTokens for Written {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Written::Variant(path) => path.to_tokens(tokens),
            Written::Number(number) => number.to_tokens(tokens),
        }
    }
}

impl Parse for Checkpoint {
    fn parse(input: ParseStream) -> syn::Result<Checkpoint> {
        let label = input.parse()?;
        let mut options = Vec::new();
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let name: Ident = input.parse()?;
            let value = match input.parse::<Option<Token![=]>>()? {
                Some(_) => Some(input.parse()?),
                None => None,
            };
            options.push((name, value));
        }
        Ok(Checkpoint { label, options })
    }
}

/// `store_all`, `revolve = 10`, or in full `revolve(slots = 10)`, `periodic(period = 32)`.
struct Reverse {
    name: Ident,
    number: Option<LitInt>,
}

impl Parse for Reverse {
    fn parse(input: ParseStream) -> syn::Result<Reverse> {
        let name: Ident = input.parse()?;
        if input.peek(syn::token::Paren) {
            let inside;
            syn::parenthesized!(inside in input);
            let what: Ident = inside.parse()?;
            if what != if name == "periodic" { "period" } else { "slots" } {
                return Err(syn::Error::new(what.span(), "`slots`, or `period` for a periodic schedule"));
            }
            inside.parse::<Token![=]>()?;
            return Ok(Reverse { name, number: Some(inside.parse()?) });
        }
        let number = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Reverse { name, number })
    }
}

impl Translator<'_> {
    /// A block that stands as a statement, labelled or not.
    pub(super) fn block_statement(&mut self, block: &ExprBlock) -> TokenStream {
        if let Some(label) = &block.label {
            self.errors.at(label, "blocks have no labels of Rust's kind: write `#[checkpoint(Stage::X)]`");
        }
        let mut region = None;
        for attr in block.attrs.iter().filter(|a| !is_tool_attribute(a)) {
            match attr.path().segments.last() {
                Some(last) if last.ident == "checkpoint" && region.is_none() => region = Some(attr),
                Some(last) if last.ident == "checkpoint" => {
                    self.errors.at(attr, "a region has one label: write two blocks");
                }
                _ => self.no_attributes(std::slice::from_ref(attr)),
            }
        }
        let begin = match region {
            Some(attr) => self.begin_region(attr),
            None => TokenStream::new(),
        };
        let body = self.statements(&block.block);
        let end = match region {
            Some(attr) => {
                let end = self.emit(attr.span(), "end_region", &[]);
                quote!(#end;)
            }
            None => TokenStream::new(),
        };
        quote!({ #begin { #body } #end })
    }

    fn begin_region(&mut self, attr: &Attribute) -> TokenStream {
        if self.level == Level::Parallel {
            self.errors.at(attr, "a checkpoint stands at program level, outside parallel loops");
        }
        let checkpoint: Checkpoint = match attr.parse_args() {
            Ok(checkpoint) => checkpoint,
            Err(_) => {
                self.errors.at(
                    attr,
                    "write `#[checkpoint(Stage::X)]`, with `yield_on = flag` and `undo` as you need",
                );
                return TokenStream::new();
            }
        };
        let mut flag = quote!(::core::option::Option::None);
        let mut undo = quote!(::ebbtide::__lang::Undo::Nothing);
        for (name, value) in &checkpoint.options {
            match (name.to_string().as_str(), value) {
                ("yield_on", Some(array)) => {
                    let place = self.place(array);
                    let span = array.span();
                    flag = quote::quote_spanned!(span=> ::ebbtide::__lang::emit::flag(#place));
                }
                ("yield_on", None) => self.errors.at(name, "write the flag: `yield_on = w.overflow`"),
                ("undo", None) => undo = quote!(::ebbtide::__lang::Undo::Everything),
                ("undo", Some(Expr::Array(arrays))) => undo = self.undone(arrays),
                ("undo", Some(other)) => self.errors.at(other, "write a list of arrays: `undo = [w.pairs]`"),
                _ => self
                    .errors
                    .at(name, "the options of a checkpoint are `yield_on = flag`, `undo` and `undo = [..]`"),
            }
        }
        let label = &checkpoint.label;
        let begin = self.emit(label.span(), "begin_region", &[quote!(#label), flag, undo]);
        quote!(#begin;)
    }

    fn undone(&mut self, arrays: &ExprArray) -> TokenStream {
        let arrays: Vec<TokenStream> = arrays.elems.iter().map(|array| self.place(array)).collect();
        quote!(::ebbtide::__lang::emit::Undone::new()#(.and(#arrays))*.done())
    }

    /// `#[reverse(..)]` before a sequential loop.
    pub(super) fn reverse(&mut self, attr: &Attribute) -> TokenStream {
        const FORMS: &str = "write `#[reverse(store_all)]`, `#[reverse(periodic = 32)]`, `#[reverse(revolve = 10)]`, \
                             `#[reverse(online = 10)]` or `#[reverse(mixed = 10)]`";
        let Ok(Reverse { name, number }) = attr.parse_args() else {
            self.errors.at(attr, FORMS);
            return TokenStream::new();
        };
        let variant = match (name.to_string().as_str(), &number) {
            ("store_all", None) => quote!(StoreAll),
            ("periodic", Some(period)) => quote!(Periodic(#period)),
            ("revolve", Some(slots)) => quote!(Revolve(#slots)),
            ("online", Some(slots)) => quote!(Online(#slots)),
            ("mixed", Some(slots)) => quote!(Mixed(#slots)),
            _ => {
                self.errors.at(attr, FORMS);
                return TokenStream::new();
            }
        };
        let hint = quote!(::ebbtide::__lang::ReverseHint::#variant);
        let reverse = self.emit(attr.span(), "reverse", &[hint]);
        quote!(#reverse;)
    }
}
