//! `println!("x = {x:.3}, v = {}", v);`
//!
//! Input: the macro as it was written. Output: a call that prints where the program is interpreted. The format is taken apart
//! here: text, names in braces, and values that follow, each with width, precision and `e` or `?`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Ident, LitStr};

use super::Translator;

impl Translator<'_> {
    /// A line that is printed.
    pub(super) fn printed_line(&mut self, mac: &syn::Macro) -> TokenStream {
        let parser = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        let Ok(args) = mac.parse_body_with(parser) else {
            self.errors.at(mac, "write `println!(\"x = {}\", x);`");
            return TokenStream::new();
        };
        let mut args = args.iter();
        let format = match args.next() {
            Some(Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(format), .. })) => format.clone(),
            None => LitStr::new("", mac.span()),
            Some(other) => {
                self.errors.at(other, "the first argument is the text: `println!(\"x = {}\", x);`");
                return TokenStream::new();
            }
        };
        let pieces = match pieces(&format.value()) {
            Ok(pieces) => pieces,
            Err(message) => {
                self.errors.at(format, message);
                return TokenStream::new();
            }
        };
        let mut shown = Vec::new();
        for piece in pieces {
            let (value, spec) = match piece {
                Piece::Text(text) => {
                    shown.push(quote!(::ebbtide::__lang::emit::Shown::from(#text)));
                    continue;
                }
                Piece::Named(name, spec) => {
                    let name = Ident::new(&name, format.span());
                    (self.expr(&syn::parse_quote!(#name)), spec)
                }
                Piece::Next(spec) => match args.next() {
                    Some(value) => (self.expr(value), spec),
                    None => {
                        self.errors.at(&format, "there are more braces than values");
                        return TokenStream::new();
                    }
                },
            };
            let Spec { width, precision, scientific } = spec;
            let precision = match precision {
                Some(p) => quote!(::core::option::Option::Some(#p)),
                None => quote!(::core::option::Option::None),
            };
            shown.push(quote_spanned! {format.span()=>
                ::ebbtide::__lang::emit::shown(#value, ::ebbtide::__lang::Format {
                    width: #width,
                    precision: #precision,
                    scientific: #scientific,
                })
            });
        }
        if let Some(extra) = args.next() {
            self.errors.at(extra, "there are more values than braces");
        }
        let stream = if mac.path.is_ident("eprintln") { quote!(Error) } else { quote!(Out) };
        let line = quote!(|| ::std::vec![#(#shown),*]);
        let print = self.emit(mac.path.span(), "print", &[quote!(::ebbtide::__lang::Stream::#stream), line]);
        quote!(#print;)
    }
}

/// A part of a format.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Named(String, Spec),
    Next(Spec),
}

#[derive(Debug, Default, PartialEq)]
struct Spec {
    width: usize,
    precision: Option<usize>,
    scientific: bool,
}

fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut text) = (Vec::new(), String::new());
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        text += &rest[..at];
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            text += brace;
            rest = after;
            continue;
        }
        let Some((inside, after)) = rest.split_once('}').filter(|_| brace == "{") else {
            return Err(format!("a `{brace}` alone: write `{brace}{brace}` for the character"));
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        let (name, spec) = inside.split_once(':').unwrap_or((inside, ""));
        let spec = parse_spec(spec)?;
        match name.trim() {
            "" => pieces.push(Piece::Next(spec)),
            name if syn::parse_str::<Ident>(name).is_ok() => {
                pieces.push(Piece::Named(name.to_string(), spec))
            }
            name => {
                return Err(format!("`{name}` is not a name: write `{{}}` and the value behind the text"));
            }
        }
        rest = after;
    }
    text += rest;
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn parse_spec(spec: &str) -> Result<Spec, String> {
    let unknown =
        || format!("`{{:{spec}}}` is not understood: write a width, a precision and `e`, as in `{{:8.3e}}`");
    let number = |text: &str| match text {
        "" => Ok(None),
        digits => digits.parse().map(Some).map_err(|_| unknown()),
    };
    let plain = spec.trim_end_matches('?');
    let (plain, scientific) = (plain.trim_end_matches('e'), plain.ends_with('e'));
    let (width, precision) = plain.split_once('.').unwrap_or((plain, ""));
    Ok(Spec { width: number(width)?.unwrap_or(0), precision: number(precision)?, scientific })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_taken_apart() {
        let plain = Spec::default;
        let found = pieces("a {{{}}} {x:8.3e}{:?}").unwrap();
        let expected = [
            Piece::Text("a {".to_string()),
            Piece::Next(plain()),
            Piece::Text("} ".to_string()),
            Piece::Named("x".to_string(), Spec { width: 8, precision: Some(3), scientific: true }),
            Piece::Next(plain()),
        ];
        assert_eq!(found, expected);
        for wrong in ["{", "}", "{0}", "{:x}", "{x.y}"] {
            assert!(pieces(wrong).is_err(), "{wrong}");
        }
    }
}
