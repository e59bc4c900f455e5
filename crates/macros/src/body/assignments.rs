//! Assignments: `=`, `+=` and its kin, `min_assign`.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprIndex};

use super::{Element, Loan, Translator, borrow, strip};

/// What is assigned to.
enum Target {
    /// `a[i]`, `a[[i, j]]`.
    Element(Element),
    /// `a[i][k]`, `a[i][[r, c]]`: an item of an element, with its indices.
    Item(Element, TokenStream),
    /// `a[i].x`: a part of an element, with what takes it from the whole: `.x`.
    Part(Element, TokenStream),
    /// A variable, or a part of one.
    Variable(TokenStream),
}

impl Translator<'_> {
    /// `place = value`, `(place, place) = value`, `[place, place] = value`.
    pub(super) fn assign(&mut self, place: &Expr, value: &Expr, span: Span) -> TokenStream {
        let value = self.expr(value);
        self.assign_value(place, value, span, 0)
    }

    /// Assigns a value, which is computed before any of the places is written; `depth` counts the tuples and arrays around the place.
    fn assign_value(&mut self, place: &Expr, value: TokenStream, span: Span, depth: usize) -> TokenStream {
        if let Expr::Tuple(tuple) = strip(place) {
            let held = self.hidden(&format!("assigned{depth}"));
            let mut stores = TokenStream::new();
            for (k, place) in tuple.elems.iter().enumerate() {
                let k = syn::Index::from(k);
                let part = quote_spanned!(place.span()=> #held.#k);
                stores.extend(self.assign_value(place, part, span, depth + 1));
            }
            return quote!({ let #held = #value; #stores });
        }
        if let Expr::Array(list) = strip(place) {
            let names: Vec<Ident> =
                (0..list.elems.len()).map(|k| self.hidden(&format!("item{depth}_{k}"))).collect();
            let mut stores = TokenStream::new();
            for (place, name) in list.elems.iter().zip(&names) {
                stores.extend(self.assign_value(place, quote!(#name), span, depth + 1));
            }
            let items = quote_spanned!(list.span()=> ::ebbtide::__lang::emit::items(#value));
            let mut names = Group::new(Delimiter::Bracket, quote!(#(#names),*));
            names.set_span(list.bracket_token.span.join());
            return quote!({ let #names = #items; #stores });
        }
        if matches!(strip(place), Expr::Infer(_)) {
            return quote!(let _ = #value;);
        }
        match self.target(place) {
            Some(target) => self.store(target, place.span(), span, value),
            None => TokenStream::new(),
        }
    }

    fn store(&mut self, target: Target, place: Span, span: Span, value: TokenStream) -> TokenStream {
        let store = match target {
            Target::Element(Element { array, index }) => self.emit(place, "store", &[index, array, value]),
            Target::Item(Element { array, index }, item) => {
                self.emit(place, "store_item", &[index, item, array, value])
            }
            Target::Part(Element { array, index }, members) => {
                let part = self.part(place, &members);
                self.emit(place, "store_part", &[index, array, part, value])
            }
            Target::Variable(variable) => self.emit(span, "set", &[borrow(&variable), value]),
        };
        quote!(#store;)
    }

    /// `place += value` and its kin. `+=` and `-=` on an element combine, so that they may be
    /// reductions.
    pub(super) fn compound_assign(&mut self, place: &Expr, op: &BinOp, value: &Expr) -> TokenStream {
        let Some(function) = compound(op) else { return TokenStream::new() };
        let (span, right_span) = (op.span(), value.span());
        let value = self.expr(value);
        let right = self.hidden_at("right", right_span);
        let Some(target) = self.target(place) else { return TokenStream::new() };
        let update = match (target, function) {
            (Target::Element(Element { array, index }), "add" | "sub") => {
                let combine = if function == "add" { "add_to_element" } else { "subtract_from_element" };
                self.emit(place.span(), combine, &[index, array, value])
            }
            (Target::Item(Element { array, index }, item), "add" | "sub") => {
                let combine = if function == "add" { "add_to_item" } else { "subtract_from_item" };
                self.emit(place.span(), combine, &[index, item, array, value])
            }
            (Target::Part(Element { array, index }, members), "add" | "sub") => {
                let part = self.part(place.span(), &members);
                let combine = if function == "add" { "add_to_part" } else { "subtract_from_part" };
                self.emit(place.span(), combine, &[index, array, part, value])
            }
            (Target::Element(Element { array, index }), _) => {
                let at = self.hidden("at");
                let read = self.read_of(place);
                let old = self.emit(place.span(), "load", &[quote!(#at), read]);
                let new = self.emit(span, function, &[old, quote!(#right)]);
                let store = self.emit(place.span(), "store", &[quote!(#at), array, new]);
                return quote!({ let #at = #index; let #right = #value; #store; });
            }
            (Target::Variable(variable), _) => {
                let old = self.hidden("old");
                let new = self.emit(span, function, &[quote!(#old), quote!(#right)]);
                let change = self.emit(span, "change", &[borrow(&variable), quote!(|#old| #new)]);
                return quote!({ let #right = #value; #change; });
            }
            (target, _) => {
                let old = self.expr(place);
                let new = self.emit(span, function, &[old, quote!(#right)]);
                let store = self.store(target, place.span(), span, new);
                return quote!({ let #right = #value; #store });
            }
        };
        quote!(#update;)
    }

    /// `a[i].min_assign(x)`, `best.max_assign(x)`.
    pub(super) fn assigning_method(&mut self, call: &syn::ExprMethodCall) -> TokenStream {
        let (update, function) = match call.method == "min_assign" {
            true => ("min_into_element", "min"),
            false => ("max_into_element", "max"),
        };
        let Some(value) = call.args.first().filter(|_| call.args.len() == 1) else {
            self.errors.at(call, format!("`{}` takes one argument", call.method));
            return TokenStream::new();
        };
        let right = self.hidden_at("right", value.span());
        let value = self.expr(value);
        match self.target(&call.receiver) {
            None => TokenStream::new(),
            Some(Target::Element(Element { array, index })) => {
                let update = self.emit(call.receiver.span(), update, &[index, array, value]);
                quote!(#update;)
            }
            Some(Target::Variable(variable)) => {
                let old = self.hidden("old");
                let new = self.emit(call.method.span(), function, &[quote!(#old), quote!(#right)]);
                let change =
                    self.emit(call.method.span(), "change", &[borrow(&variable), quote!(|#old| #new)]);
                quote!({ let #right = #value; #change; })
            }
            Some(Target::Item(..) | Target::Part(..)) => {
                self.errors.at(
                    &call.receiver,
                    format!("`{}` changes a variable or an element of an array of numbers", call.method),
                );
                TokenStream::new()
            }
        }
    }

    /// What an assignment changes.
    fn target(&mut self, place: &Expr) -> Option<Target> {
        match strip(place) {
            Expr::Index(index) => match strip(&index.expr) {
                Expr::Index(outer) if is_place(&outer.expr) => {
                    let item = self.element_indices(index);
                    Some(Target::Item(self.written_element(outer), item))
                }
                array if is_place(array) => Some(Target::Element(self.written_element(index))),
                _ => {
                    self.errors.at(place, PART_OF_A_PART);
                    None
                }
            },
            Expr::Path(_) | Expr::Unary(_) => Some(Target::Variable(self.place(place))),
            Expr::Field(_) => {
                let mut members = Vec::new();
                let mut inner = strip(place);
                while let Expr::Field(field) = inner {
                    members.push(&field.member);
                    inner = strip(&field.base);
                }
                let Expr::Index(index) = inner else { return Some(Target::Variable(self.place(place))) };
                if !is_place(&index.expr) {
                    self.errors.at(place, PART_OF_A_PART);
                    return None;
                }
                members.reverse();
                let members = quote_spanned!(place.span()=> #(.#members)*);
                Some(Target::Part(self.written_element(index), members))
            }
            Expr::Tuple(tuple) => {
                self.errors
                    .at(tuple, "only `=` takes a tuple of places: write one assignment for each of them");
                None
            }
            other => {
                self.errors.at(other, "only a variable or an element of an array can be assigned to");
                None
            }
        }
    }

    /// The closure that takes a part from a whole element.
    fn part(&self, span: Span, members: &TokenStream) -> TokenStream {
        let whole = self.hidden("whole");
        quote_spanned!(span=> |#whole| #whole #members)
    }

    /// `&mut a[i]`, `&mut a[i].x`, `&mut a[i][k]` as an argument: a variable that holds the element during the call. What stands
    /// before and after the call is noted.
    pub(super) fn lent_element(&mut self, place: &Expr) -> TokenStream {
        let Some(target) = self.target(place) else { return TokenStream::new() };
        let (span, number) = (place.span(), self.loans.len());
        let hidden = |name: &str| Ident::new(&format!("{name}{number}"), Span::mixed_site());
        let (held, at, item) = (hidden("lent"), hidden("at"), hidden("item"));
        let load = |of: &Element| self.emit(span, "load", &[quote!(#at), of.array.clone()]);
        let at_once = |array| Element { array, index: quote!(#at) };
        let (indices, value, target) = match target {
            Target::Variable(variable) => return variable,
            Target::Element(element) => {
                let (value, index) = (load(&element), element.index);
                (quote!(let #at = #index;), value, Target::Element(at_once(element.array)))
            }
            Target::Item(element, of_item) => {
                let value = self.emit(span, "load", &[quote!(#item), load(&element)]);
                let index = element.index;
                let target = Target::Item(at_once(element.array), quote!(#item));
                (quote!(let #at = #index; let #item = #of_item;), value, target)
            }
            Target::Part(element, members) => {
                let (whole, index) = (load(&element), element.index);
                let target = Target::Part(at_once(element.array), members.clone());
                (quote!(let #at = #index;), quote_spanned!(span=> #whole #members), target)
            }
        };
        let local = self.emit(span, "numbered_local", &[quote!("lent"), value]);
        let read = self.emit(span, "read", &[quote!(&#held)]);
        let after = self.store(target, span, span, read);
        self.loans.push(Loan { before: quote!(#indices let #held = #local;), after });
        quote_spanned!(span=> #held)
    }

    /// An element that is about to be written.
    fn written_element(&mut self, index: &ExprIndex) -> Element {
        let Element { array, index: at } = self.element(index);
        let array = quote_spanned!(index.expr.span()=> ::ebbtide::__lang::emit::writable(#array));
        Element { array, index: at }
    }

    /// The array of an element that is read where it is about to be written.
    fn read_of(&mut self, place: &Expr) -> TokenStream {
        match strip(place) {
            Expr::Index(index) => self.place(&index.expr),
            _ => TokenStream::new(),
        }
    }
}

const PART_OF_A_PART: &str = "this is a part of a part of an element: copy the element to a variable, `let mut e = a[i];`, and back, `a[i] = e;`";

/// Is this a name, or a path through structs?
fn is_place(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Path(_) => true,
        Expr::Field(field) => is_place(&field.base),
        Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Deref(_)) && is_place(&unary.expr),
        _ => false,
    }
}

/// The function of a compound assignment's operator.
pub(crate) fn compound(op: &BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::AddAssign(_) => "add",
        BinOp::SubAssign(_) => "sub",
        BinOp::MulAssign(_) => "mul",
        BinOp::DivAssign(_) => "div",
        BinOp::RemAssign(_) => "rem",
        BinOp::BitAndAssign(_) => "bit_and",
        BinOp::BitOrAssign(_) => "bit_or",
        BinOp::BitXorAssign(_) => "bit_xor",
        BinOp::ShlAssign(_) => "shl",
        BinOp::ShrAssign(_) => "shr",
        _ => return None,
    })
}
