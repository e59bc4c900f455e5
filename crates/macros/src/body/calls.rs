//! Calls of programs, functions and methods.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, ExprField, ExprIndex, ExprMethodCall, ExprPath, Lit, UnOp};

use super::loops::{Strided, is_range};
use super::{Translator, strip};
use crate::signature::array_rank;

/// The methods of numbers and how many arguments each takes.
const METHODS: &[(&str, usize)] = &[
    ("abs", 0),
    ("acos", 0),
    ("asin", 0),
    ("atan", 0),
    ("atan2", 1),
    ("cbrt", 0),
    ("ceil", 0),
    ("cholesky", 0),
    ("clamp", 2),
    ("cos", 0),
    ("cosh", 0),
    ("cross", 1),
    ("determinant", 0),
    ("dot", 1),
    ("erf", 0),
    ("exp", 0),
    ("exp2", 0),
    ("exp_m1", 0),
    ("floor", 0),
    ("hypot", 1),
    ("inverse", 0),
    ("ln", 0),
    ("ln_1p", 0),
    ("log10", 0),
    ("log2", 0),
    ("max", 1),
    ("min", 1),
    ("mul_add", 2),
    ("norm", 0),
    ("norm_squared", 0),
    ("normalize", 0),
    ("outer", 1),
    ("powf", 1),
    ("powi", 1),
    ("rem_euclid", 1),
    ("round", 0),
    ("signum", 0),
    ("sin", 0),
    ("sinh", 0),
    ("solve", 1),
    ("sqrt", 0),
    ("tan", 0),
    ("tanh", 0),
    ("trace", 0),
    ("transpose", 0),
    ("trunc", 0),
];

/// The functions of the prelude that programs call.
pub const ITEMS: &[&str] = &[
    "all_max",
    "all_min",
    "all_sum",
    "compact",
    "copy",
    "dot",
    "exchange",
    "exchange_add",
    "fill",
    "matmul",
    "max",
    "min",
    "norm",
    "rand",
    "scan",
    "select",
    "shared",
    "sum",
    "swap",
    "transposed",
];

/// Is this a function of the prelude? Its name is always known; a function of the user's own with this name comes before it, but
/// not in `use`.
pub fn is_item(path: &syn::Path) -> bool {
    ITEMS.iter().any(|item| path.is_ident(item))
}

fn is_type(ident: &Ident) -> bool {
    ident.to_string().starts_with(char::is_uppercase)
}

/// Is this a function of a type, as `Vec3::new` is?
pub fn is_constructor(path: &syn::Path) -> bool {
    path.segments.iter().rev().nth(1).is_some_and(|before| is_type(&before.ident))
}

/// What a function is called where programs call it. A plain function has no expansion. rustc can only say that by its name: so
/// the name says what to do.
pub fn advice(path: &syn::Path) -> Option<Ident> {
    let last = &path.segments.last()?.ident;
    Some(Ident::new(&format!("put_func_before_{}", last.unraw()), last.span()))
}

impl Translator<'_> {
    /// `f(a, b)`: the expansion of a program, a `#[func]` or an item of the language. Elements that it lends are copied to
    /// variables before the call, and back after it.
    pub(super) fn call(&mut self, call: &ExprCall) -> TokenStream {
        let outer = std::mem::take(&mut self.loans);
        self.no_element_twice(call);
        let made = self.call_with_loans(call);
        let loans = std::mem::replace(&mut self.loans, outer);
        if loans.is_empty() {
            return made;
        }
        let (before, after) = (loans.iter().map(|loan| &loan.before), loans.iter().map(|loan| &loan.after));
        let result = self.hidden("result");
        quote_spanned!(call.span()=> { #(#before)* let #result = #made; #(#after)* #result })
    }

    /// As in Rust: elements of one array are not lent twice at a time.
    fn no_element_twice(&mut self, call: &ExprCall) {
        let mut lent: Vec<String> = Vec::new();
        for argument in &call.args {
            let Expr::Reference(reference) = strip(argument) else { continue };
            let mut place = strip(&reference.expr);
            let mut indexed = false;
            while let Expr::Index(ExprIndex { expr, .. }) | Expr::Field(ExprField { base: expr, .. }) = place
            {
                indexed |= matches!(place, Expr::Index(_));
                if indexed && matches!(strip(expr), Expr::Path(_)) {
                    let array = quote!(#expr).to_string();
                    if lent.contains(&array) {
                        self.errors.at(
                            argument,
                            format!(
                                "elements of `{array}` are lent twice: copy one of them to a `let mut` variable, and back \
                                 after the call"
                            ),
                        );
                    }
                    lent.push(array);
                }
                place = strip(expr);
            }
        }
    }

    fn call_with_loans(&mut self, call: &ExprCall) -> TokenStream {
        let Expr::Path(path) = &*call.func else {
            self.errors.at(&call.func, "only a program or a `#[func]` can be called, by its name");
            return TokenStream::new();
        };
        let segments = &path.path.segments;
        let Some(last) = segments.last() else { return TokenStream::new() };
        if last.ident == "of" && segments.len() > 1 && call.args.len() == 1 {
            return self.constant_of_type(path, &call.args[0]);
        }
        if let Some(before) = segments.iter().rev().nth(1) {
            if array_rank(&before.ident).is_some() {
                let mistake = match last.ident == "zeros" {
                    true => "a temporary has a name".to_string(),
                    false => format!("there is no `{}::{}`", before.ident, last.ident),
                };
                let message = format!("{mistake}: write `let mut t = Array2::<f64>::zeros([n, m]);`");
                self.errors.at(call, message);
                return TokenStream::new();
            }
            if METHODS.iter().any(|(name, _)| last.ident == name) {
                self.errors.at(call, format!("write it as a method: `x.{}(..)`", last.ident));
                return TokenStream::new();
            }
        }
        if segments.len() > 1
            && segments.first().is_some_and(|first| first.ident == "std" || first.ident == "core")
        {
            let message = match last.ident == "swap" {
                true => "write `swap(a, b)` for arrays, `(a, b) = (b, a)` for values",
                false => {
                    "programs call `#[func]`s and what the prelude has, not functions of `std`: functions of numbers are methods"
                }
            };
            self.errors.at(&call.func, message);
            return TokenStream::new();
        }
        if is_constructor(&path.path) {
            return self.constructor(call, path);
        }
        if is_type(&last.ident) {
            self.errors.at(call, format!("write `{0}::new(..)`, or a literal, `{0} {{ .. }}`", last.ident));
            return TokenStream::new();
        }
        if last.ident == "par" {
            self.errors.at(call, "`par` stands in the head of a loop: `for i in par(0..n) { … }`");
            return TokenStream::new();
        }
        if ["sum", "max", "min"].iter().any(|name| last.ident == name) && call.args.len() == 2 {
            return self.reduction(call, &last.ident);
        }
        if last.ident == "scatter_unique" {
            return self.scatter(call, path);
        }
        let args: Vec<TokenStream> = call.args.iter().map(|argument| self.argument(argument)).collect();
        let span = last.ident.span();
        if let Some((_, program)) = self.programs.iter().find(|(name, _)| path.path.is_ident(name)) {
            let args = given(&args);
            return quote_spanned!(span=> <#program as ::ebbtide::__lang::Callable<_>>::call((#(#args,)*)));
        }
        let expand = Ident::new("__expand", span);
        let path = &path.path;
        // The user's own parentheses: rustc shows there what an argument too few or too many looks like.
        let mut list = proc_macro2::Group::new(proc_macro2::Delimiter::Parenthesis, quote!(#(#args),*));
        list.set_span(call.paren_token.span.join());
        if path.is_ident("rand") {
            let drawn = quote_spanned!(span=> #path::#expand #list);
            return quote_spanned!(span=> ::ebbtide::__lang::emit::drawn(0.0, #drawn));
        }
        if is_item(path) || segments.iter().any(|segment| !segment.arguments.is_none()) {
            return quote_spanned!(span=> #path::#expand #list);
        }
        let advice = advice(path);
        quote_spanned! {span=> {
            #[allow(unused_imports)]
            use #path as #advice;
            #advice::#expand #list
        }}
    }

    /// `scatter_unique(a, i, x)`, `scatter_unique(a, [i, j], x)`.
    fn scatter(&mut self, call: &ExprCall, path: &ExprPath) -> TokenStream {
        let [array, index, value] = match call.args.iter().collect::<Vec<_>>()[..] {
            [array, index, value] => [array, index, value],
            _ => {
                self.errors.at(
                    call,
                    "`scatter_unique` takes an array, an index and a value: `scatter_unique(a, k, x)`, or \
                     `scatter_unique(a, [i, j], x)` of an array of rank 2",
                );
                return TokenStream::new();
            }
        };
        if !matches!(strip(array), Expr::Path(_) | Expr::Field(_)) {
            self.errors.at(array, "only an array can be written: give its name");
            return TokenStream::new();
        }
        let index = match strip(index) {
            Expr::Array(list) => self.indices(list.span(), list.elems.iter()),
            single => self.indices(single.span(), std::iter::once(single)),
        };
        let value = self.expr(value);
        let place = self.place(array);
        let array = quote_spanned!(array.span()=> ::ebbtide::__lang::emit::writable(#place));
        let (span, path) = (call.func.span(), &path.path);
        let expand = Ident::new("__expand", span);
        quote_spanned!(span=> #path::#expand(#index, #array, #value))
    }

    /// `sum(0..n, |j| x[j] * x[j])`, `sum((0..n).step_by(2), |j| x[j])`.
    fn reduction(&mut self, call: &ExprCall, name: &Ident) -> TokenStream {
        let (true, Expr::Closure(closure)) = (is_range(&call.args[0]), strip(&call.args[1])) else {
            let message = match name == "sum" {
                true => {
                    "write a range and a closure: `sum(0..n, |j| x[j])`, or an array: `sum(x)`".to_string()
                }
                false => format!(
                    "write `a.{name}(b)`; a range and a closure, `{name}(0..n, |j| x[j])`; or an array, `{name}(x)`"
                ),
            };
            self.errors.at(call, message);
            return TokenStream::new();
        };
        let Some(range) = self.strided(&call.args[0]) else { return TokenStream::new() };
        let var = match closure.inputs.iter().collect::<Vec<_>>()[..] {
            [pat] => match self.loop_variable(pat) {
                Some(var) => var,
                None => return TokenStream::new(),
            },
            _ => {
                self.errors.at(closure, "the closure takes the index: `|j| x[j]`");
                return TokenStream::new();
            }
        };
        let body = match strip(&closure.body) {
            Expr::Block(block) if block.label.is_none() => self.value_block(&block.block),
            value => self.expr(value),
        };
        let value = self.value_of_variable(&range, &var);
        let body = quote!(|#var: ::ebbtide::__lang::Expr<::core::primitive::usize>| { #value #body });
        let counter = range.name(&var);
        let Strided { before, from, to, .. } = range;
        let reduced = self.emit(name.span(), &format!("{name}_over"), &[quote!(#counter), from, to, body]);
        if before.is_empty() { reduced } else { quote!({ #before #reduced }) }
    }

    /// `Vec3::new(x, y, z)`: a function of a type of values.
    fn constructor(&mut self, call: &ExprCall, path: &ExprPath) -> TokenStream {
        let args: Vec<TokenStream> = call.args.iter().map(|argument| self.expr(argument)).collect();
        let mut path = path.path.clone();
        if let Some(last) = path.segments.last_mut() {
            last.ident = quote::format_ident!("__{}", last.ident, span = last.ident.span());
        }
        let mut list = proc_macro2::Group::new(proc_macro2::Delimiter::Parenthesis, quote!(#(#args),*));
        list.set_span(call.paren_token.span.join());
        quote_spanned!(call.span()=> #path #list)
    }

    /// `Particle { pos, mass: 1.0 }`, `Particle { mass: 1.0, ..p }`: rustc checks the fields on a literal that is never made. A struct that is no value has no
    /// draft; rustc can only say that by its name: so the name says what to do.
    pub(super) fn struct_literal(&mut self, literal: &syn::ExprStruct) -> TokenStream {
        let path = &literal.path;
        let mut fields = Vec::new();
        for (k, field) in literal.fields.iter().enumerate() {
            let syn::Member::Named(name) = &field.member else {
                self.errors.at(&field.member, "fields have names here");
                continue;
            };
            let value = self.expr(&field.expr);
            let (held, given) = (self.hidden(&format!("field{k}")), self.hidden(&format!("given{k}")));
            fields.push((name.clone(), held, given, value));
        }
        // The struct that the other fields are taken from, and one of its type for rustc.
        let rest = literal
            .rest
            .as_ref()
            .map(|rest| (self.hidden_at("rest", rest.span()), self.hidden("given_rest"), self.expr(rest)));
        let holds =
            fields.iter().map(|(name, held, _, value)| quote_spanned!(name.span()=> let #held = #value;));
        let givens = fields.iter().map(|(_, _, given, _)| given);
        let checks = fields.iter().map(|(name, held, given, _)| {
            quote_spanned!(name.span()=> #name: ::ebbtide::__lang::emit::of_type_of(#given, &#held))
        });
        let sets = fields.iter().map(|(name, held, _, _)| quote_spanned!(name.span()=> .#name(#held)));
        let cx = &self.cx;
        let (hold_rest, given_rest, check_rest, done) = match &rest {
            Some((held, given, value)) => {
                let done = quote_spanned!(value.span()=> __with(#held));
                (quote!(let #held = #value;), quote!(#given), quote!(..#given), done)
            }
            None => (TokenStream::new(), TokenStream::new(), TokenStream::new(), quote!(__done(#cx))),
        };
        quote_spanned! {path.span()=> {
            #(#holds)*
            #hold_rest
            #[allow(clippy::all)]
            let _ = |#(#givens,)* #given_rest| #path { #(#checks,)* #check_rest };
            #path::this_struct_needs_derive_value()#(#sets)*.#done
        }}
    }

    fn argument(&mut self, argument: &Expr) -> TokenStream {
        match strip(argument) {
            Expr::Path(_) | Expr::Field(_) => self.place(argument),
            Expr::Index(index) => match self.part_of_array(index) {
                Some(part) => part,
                None => self.expr(argument),
            },
            // Several arrays that one operation takes at once: `exchange((u, v))`.
            Expr::Tuple(tuple)
                if tuple.elems.iter().all(|e| matches!(strip(e), Expr::Path(_) | Expr::Field(_))) =>
            {
                let places: Vec<TokenStream> =
                    tuple.elems.iter().map(|element| self.place(element)).collect();
                quote_spanned!(tuple.span()=> (#(#places,)*))
            }
            // A variable that the function may change.
            Expr::Reference(reference) if reference.mutability.is_some() => match strip(&reference.expr) {
                Expr::Path(_) | Expr::Field(_) | Expr::Index(_) => self.lent_element(&reference.expr),
                Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.place(&reference.expr),
                other => {
                    self.errors.at(
                        other,
                        "only a `let mut` variable, or an element of an array, is lent with `&mut`: name this value with `let mut`",
                    );
                    TokenStream::new()
                }
            },
            Expr::Reference(reference) => {
                self.errors.at(
                    reference,
                    "arrays are passed on by their name alone, without `&`: the called program says how it borrows them",
                );
                TokenStream::new()
            }
            _ => self.expr(argument),
        }
    }

    /// `T::of(0.5)`.
    fn constant_of_type(&mut self, path: &ExprPath, argument: &Expr) -> TokenStream {
        let mut ty = path.path.clone();
        ty.segments.pop();
        ty.segments.pop_punct();
        let span = path.span();
        if is_number(argument) {
            let (path, cx) = (&path.path, &self.cx);
            return quote_spanned!(span=> ::ebbtide::__lang::emit::lit(#cx, #path(#argument)));
        }
        let value = self.expr(argument);
        let cx = &self.cx;
        quote_spanned!(span=> ::ebbtide::__lang::emit::cast::<#ty, ::core::primitive::f64>(#cx, #value))
    }

    /// `x.tanh()`, `u.len()`, `u.dim(0)`.
    pub(super) fn method_call(&mut self, call: &ExprMethodCall) -> TokenStream {
        let name = call.method.to_string();
        match name.as_str() {
            "len" | "dim" => return self.shape_method(call),
            "min_assign" | "max_assign" => {
                self.errors.at(call, format!("`{name}` has no value: write it as a statement"));
                return TokenStream::new();
            }
            _ => {}
        }
        let Some((_, arity)) = METHODS.iter().find(|(known, _)| *known == name) else {
            self.refuse_method(call);
            return TokenStream::new();
        };
        if call.args.len() != *arity {
            let reduces = ["max", "min"].contains(&name.as_str());
            let of_array = if reduces { format!("; of an array write `{name}(u)`") } else { String::new() };
            self.errors.at(
                &call.method,
                format!("`{name}` takes {arity} arguments, here are {}{of_array}", call.args.len()),
            );
            return TokenStream::new();
        }
        let mut args = vec![self.expr(&call.receiver)];
        args.extend(call.args.iter().map(|argument| self.expr(argument)));
        self.emit(call.method.span(), &name, &args)
    }

    /// `w.step(dt);`: a program that is a method.
    pub(super) fn program_method(&mut self, call: &ExprMethodCall) -> TokenStream {
        let on_place = matches!(strip(&call.receiver), Expr::Path(_) | Expr::Field(_));
        if !on_place || super::refusals::advice(&call.method.to_string()).is_some() {
            self.refuse_method(call);
            return TokenStream::new();
        }
        let (receiver, span) = (self.place(&call.receiver), call.method.span());
        let args: Vec<TokenStream> = call.args.iter().map(|argument| self.argument(argument)).collect();
        let (args, key) = (given(&args), crate::methods::key(&call.method));
        quote_spanned!(span=> ::ebbtide::__lang::Method::<#key>::call(#receiver, (#(#args,)*));)
    }

    fn shape_method(&mut self, call: &ExprMethodCall) -> TokenStream {
        if !matches!(strip(&call.receiver), Expr::Path(_) | Expr::Field(_)) {
            self.errors.at(&call.receiver, format!("only an array has `{}`", call.method));
            return TokenStream::new();
        }
        let array = self.place(&call.receiver);
        let span = call.receiver.span();
        match (call.method == "len", call.args.first()) {
            (true, None) => self.emit(span, "len", &[array]),
            (false, Some(Expr::Lit(k))) if matches!(k.lit, Lit::Int(_)) && call.args.len() == 1 => {
                self.emit(span, "dim", &[array, quote!(#k)])
            }
            (true, _) => {
                self.errors.at(call, "`len` takes no argument: `u.dim(0)` is the first extent");
                TokenStream::new()
            }
            (false, _) => {
                self.errors.at(call, "`dim` takes the number of the dimension, as in `u.dim(0)`");
                TokenStream::new()
            }
        }
    }
}

/// Is this a literal number, perhaps with a minus?
fn is_number(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Lit(lit) => matches!(lit.lit, Lit::Int(_) | Lit::Float(_)),
        Expr::Unary(unary) => matches!(unary.op, UnOp::Neg(_)) && is_number(&unary.expr),
        _ => false,
    }
}

/// Is this a method of numbers or arrays?
pub(super) fn is_method(name: &Ident) -> bool {
    name == "len" || name == "dim" || METHODS.iter().any(|(known, _)| name == known)
}

/// The methods of numbers, for messages.
pub(super) fn method_names() -> String {
    METHODS.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(" ")
}

/// Arguments on their way to a program that is known by its type alone; each at its own place, where rustc shows it.
fn given(args: &[TokenStream]) -> Vec<TokenStream> {
    args.iter()
        .map(|argument| quote_spanned!(argument.span()=> ::ebbtide::__lang::emit::given(#argument)))
        .collect()
}
