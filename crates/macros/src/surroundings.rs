//! Where a function with an attribute stands in its file.
//!
//! An attribute sees its function alone: not the `impl` block around it, where the items that a program becomes may not stand, nor
//! whether the file has the prelude. rustc would speak of `enum`s that the user did not write, and of each name that is missing. So
//! the file is read, for messages alone: where this finds a mistake, rustc would refuse the file as well. What is not found here,
//! because there is no file or it is written in another way, has rustc's own messages.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::quote_spanned;
use syn::ext::IdentExt;

use crate::body::ITEMS;
use crate::known::SMALL;
use crate::signature::array_rank;

/// What is wrong with the place of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// It stands in an `impl` block.
    InImpl,
    /// These names of the prelude are used, and nothing in the file brings them.
    WithoutPrelude(Vec<String>),
}

/// Looks for the function in the file that it is in.
pub fn misplaced(function: &Ident, attribute: &str, item: &TokenStream) -> Option<Misplaced> {
    if !proc_macro::is_available() {
        return None;
    }
    let text = std::fs::read_to_string(function.span().unwrap().local_file()?).ok()?;
    // Most files need no second look.
    let indented = proc_macro::Span::call_site().column() > 1;
    if !(indented && text.contains("impl")) && text.contains("::prelude::*") {
        return None;
    }
    in_text(&text, &function.unraw().to_string(), attribute, item)
}

fn in_text(text: &str, function: &str, attribute: &str, item: &TokenStream) -> Option<Misplaced> {
    let mut search = Search { function, attribute, ..Search::default() };
    search.items(TokenStream::from_str(text).ok()?, false);
    // Two functions of one name: which one this is, the file does not say.
    let [place] = search.found[..] else { return None };
    if place.in_impl {
        return Some(Misplaced::InImpl);
    }
    // A file with neither may be included by one that has the prelude.
    let has_attribute = place.by_path || search.brought.iter().any(|name| name == attribute);
    if search.brings_any || !has_attribute {
        return None;
    }
    let mut missing: Vec<String> = Vec::new();
    each_name_of_prelude(item.clone(), &mut |name| {
        let text = name.to_string();
        if !missing.contains(&text) && !search.brought.contains(&text) {
            missing.push(text);
        }
        None
    });
    (!missing.is_empty()).then_some(Misplaced::WithoutPrelude(missing))
}

/// The tokens, with the path of the crate before these names of the prelude.
pub fn with_paths(tokens: TokenStream, names: &[String]) -> TokenStream {
    each_name_of_prelude(tokens, &mut |name| {
        let is_missing = names.iter().any(|missing| name == missing);
        is_missing.then(|| quote_spanned!(name.span()=> ::ebbtide::#name))
    })
}

/// Visits the names of the prelude that are used without a path, and writes what the visitor gives in their place.
fn each_name_of_prelude(
    tokens: TokenStream,
    visit: &mut dyn FnMut(&Ident) -> Option<TokenStream>,
) -> TokenStream {
    let mut out = TokenStream::new();
    let mut before = [String::new(), String::new()];
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let text = token.to_string();
        let is_called = matches!(tokens.peek(), Some(TokenTree::Group(_)));
        let is_member = before[1] == "." || before[1] == "fn" || before == [":", ":"];
        match token {
            TokenTree::Ident(name) if !is_member && is_of_prelude(&name, is_called) => match visit(&name) {
                Some(instead) => out.extend(instead),
                None => out.extend([TokenTree::Ident(name)]),
            },
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), each_name_of_prelude(group.stream(), visit));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            other => out.extend([other]),
        }
        before.rotate_left(1);
        before[1] = text;
    }
    out
}

fn is_of_prelude(name: &Ident, is_called: bool) -> bool {
    let is_one_of = |list: &[&str]| list.iter().any(|known| name == known);
    let is_function = name == "par" || is_one_of(ITEMS);
    array_rank(name).is_some() || name == "Float" || is_one_of(SMALL) || is_function && is_called
}

/// A function of that name with that attribute.
#[derive(Clone, Copy)]
struct Place {
    in_impl: bool,
    /// Is the attribute written `#[ebbtide::program]`?
    by_path: bool,
}

#[derive(Default)]
struct Search<'a> {
    function: &'a str,
    attribute: &'a str,
    found: Vec<Place>,
    /// Names that the file imports or defines.
    brought: Vec<String>,
    /// Is there something that may bring any name: `use other::*`, or a macro beside the function?
    brings_any: bool,
}

/// What was seen of an item so far.
#[derive(Default)]
struct Seen {
    attribute: bool,
    by_path: bool,
    programs: bool,
    is_impl: bool,
    is_fn: bool,
    is_use: bool,
}

impl Search<'_> {
    /// Goes through a list of items, or of statements.
    fn items(&mut self, tokens: TokenStream, in_impl: bool) {
        let mut seen = Seen::default();
        let mut before = String::new();
        let (found, mut calls_macros) = (self.found.len(), false);
        for token in tokens {
            let text = match &token {
                TokenTree::Ident(ident) => ident.unraw().to_string(),
                TokenTree::Punct(punct) => punct.to_string(),
                _ => String::new(),
            };
            match &token {
                _ if seen.is_use && text != ";" => self.imported(token),
                TokenTree::Ident(_) => {
                    if before == "fn" && seen.attribute && text == self.function {
                        self.found.push(Place { in_impl, by_path: seen.by_path });
                    } else if ["fn", "type", "struct", "enum", "trait", "mod", "const"]
                        .contains(&before.as_str())
                    {
                        self.brought.push(text.clone());
                    }
                    seen.is_impl |= text == "impl" && !seen.is_fn;
                    seen.is_fn |= text == "fn";
                    seen.is_use |= text == "use";
                    self.brings_any |= text == "macro_rules";
                }
                TokenTree::Group(group) if before == "#" => self.attribute(group.stream(), &mut seen),
                TokenTree::Group(group) => {
                    calls_macros |= before == "!" && !seen.is_fn;
                    if group.delimiter() == Delimiter::Brace {
                        if !(seen.is_impl && seen.programs) {
                            self.items(group.stream(), seen.is_impl);
                        }
                        seen = Seen::default();
                    }
                }
                TokenTree::Punct(_) if text == ";" => seen = Seen::default(),
                _ => {}
            }
            // `#![…]` stands for the file, and is no macro.
            before = if before == "#" && text == "!" { "#!".to_string() } else { text };
        }
        // What a macro brings, it brings to what stands beside it.
        self.brings_any |= calls_macros && self.found.len() > found;
    }

    fn attribute(&self, tokens: TokenStream, seen: &mut Seen) {
        let path = tokens.into_iter().take_while(|token| !matches!(token, TokenTree::Group(_)));
        let names: Vec<String> =
            path.filter(|t| matches!(t, TokenTree::Ident(_))).map(|t| t.to_string()).collect();
        let Some(last) = names.last() else { return };
        if last == self.attribute {
            (seen.attribute, seen.by_path) = (true, names.len() > 1);
        }
        seen.programs |= last == "programs";
    }

    fn imported(&mut self, token: TokenTree) {
        match token {
            TokenTree::Group(group) => group.stream().into_iter().for_each(|token| self.imported(token)),
            TokenTree::Ident(ident) => self.brought.push(ident.to_string()),
            other => self.brings_any |= other.to_string() == "*",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use proc_macro2::TokenStream;

    use super::{Misplaced, in_text};

    const STEP: &str = "fn step(u: &mut Array1<f64>) { for i in par(0..u.len()) { u[i] = max(u); } }";

    fn of(text: &str) -> Option<Misplaced> {
        in_text(text, "step", "program", &TokenStream::from_str(STEP).unwrap())
    }

    #[test]
    fn functions_in_impl_blocks_are_found() {
        let block = format!("struct W; impl W {{ fn a(&self) {{}} #[program] pub {STEP} }}");
        assert_eq!(of(&format!("use ebbtide::prelude::*; {block}")), Some(Misplaced::InImpl));
        let inside = format!("use ebbtide::prelude::*; mod m {{ fn f() -> u8 {{ {block} 0 }} }}");
        assert_eq!(of(&inside), Some(Misplaced::InImpl));
        assert_eq!(of("impl W { #[ebbtide::program(args = A)] fn step() {} }"), Some(Misplaced::InImpl));
    }

    #[test]
    fn functions_elsewhere_are_where_they_should_be() {
        for text in [
            "#[program] fn step() {} impl W { fn step() {} }",
            "impl W { fn f() { #[program] fn step() {} } }",
            "fn f() -> impl Fn() { #[program] fn step() {} || {} }",
            "#[programs] impl W { #[program] fn step(&self) {} }",
            // Which of the two is asked about, nothing says.
            "#[program] fn step() {} impl W { #[program] fn step() {} }",
            "impl W { #[func] fn step() {} }",
        ] {
            assert_eq!(of(&format!("use ebbtide::prelude::*; {text}")), None, "{text}");
        }
    }

    #[test]
    fn names_that_nothing_brings_are_of_the_prelude() {
        let missing = |names: &[&str]| {
            Some(Misplaced::WithoutPrelude(names.iter().map(|name| name.to_string()).collect()))
        };
        assert_eq!(of(&format!("#[ebbtide::program] {STEP}")), missing(&["Array1", "par", "max"]));
        assert_eq!(
            of(&format!("//! Of the file.\nfn f() {{ println!(); }} #[ebbtide::program] {STEP}")),
            missing(&["Array1", "par", "max"])
        );
        let one = "use ebbtide::{program, par}; type Array1<T> = ebbtide::Array1<T>;";
        assert_eq!(of(&format!("{one} #[program] {STEP}")), missing(&["max"]));
        for text in [
            "use other::*; #[ebbtide::program]",
            "declare!(); #[ebbtide::program]",
            "fn f() { declare!(); mod m {} } declare!{} mod m { fn g() {} } #[ebbtide::program]",
            "use ebbtide::{program, par, Array1, max}; #[program]",
            "use ebbtide::{program, par, Array1}; #[func] fn max() {} #[program]",
            // The file may be included by one that has the prelude.
            "#[program]",
        ] {
            assert_eq!(of(&format!("{text} {STEP}")), None, "{text}");
        }
    }

    #[test]
    fn names_behind_paths_and_fields_are_not_of_the_prelude() {
        let item = "fn step(u: &ebbtide::Array1<f64>, w: World) { let max = w.max; x.min(y); q(max); }";
        let text = format!("#[ebbtide::program] {item}");
        assert_eq!(in_text(&text, "step", "program", &TokenStream::from_str(item).unwrap()), None);
    }
}
