//! Expressions that have a value.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, ExprIf, ExprIndex, ExprUnary, Lit, Stmt, UnOp};

use super::{Element, Translator, borrow, strip};
use crate::jumps;

impl Translator<'_> {
    /// The value of an expression.
    pub(super) fn expr(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Paren(paren) => self.expr(&paren.expr),
            Expr::Group(group) => self.expr(&group.expr),
            Expr::Lit(lit) => self.literal(&lit.lit, None),
            Expr::Path(_) | Expr::Field(_) => {
                let place = self.place(expr);
                self.emit(expr.span(), "read", &[borrow(&place)])
            }
            Expr::Index(index) => {
                let element = self.element(index);
                self.emit(index.expr.span(), "load", &[element.index, element.array])
            }
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(binary) => self.binary(binary),
            Expr::Cast(cast) => {
                let value = self.expr(&cast.expr);
                let (ty, cx) = (&cast.ty, &self.cx);
                quote_spanned!(cast.expr.span()=> ::ebbtide::__lang::emit::cast::<#ty, _>(#cx, #value))
            }
            Expr::Tuple(tuple) if tuple.elems.len() > 1 => {
                let parts: Vec<TokenStream> = tuple.elems.iter().map(|part| self.expr(part)).collect();
                quote_spanned!(tuple.span()=> ::ebbtide::__lang::emit::tuple((#(#parts),*)))
            }
            Expr::Array(array) if !array.elems.is_empty() => {
                let items: Vec<TokenStream> = array.elems.iter().map(|item| self.expr(item)).collect();
                quote_spanned!(array.span()=> ::ebbtide::__lang::emit::array_of([#(#items),*]))
            }
            // As rustc warns, a constant has a name in capitals.
            Expr::Repeat(repeat)
                if matches!(strip(&repeat.len), Expr::Path(path) if path.path.get_ident().is_some_and(|name| {
                    name.to_string().starts_with(char::is_lowercase)
                })) =>
            {
                self.errors.at(
                    &repeat.len,
                    "the length of a local array is a constant: `const N: usize = 4;`; an array whose length is known at the \
                     launch is a temporary of the program: `let mut t = Array1::<f64>::zeros([n]);`",
                );
                TokenStream::new()
            }
            Expr::Repeat(repeat) => {
                let (item, n) = (self.expr(&repeat.expr), &repeat.len);
                let n = if matches!(strip(n), Expr::Lit(_)) { quote!(#n) } else { quote!({ #n }) };
                quote_spanned!(repeat.span()=> ::ebbtide::__lang::emit::repeated::<_, #n>(#item))
            }
            Expr::Struct(literal) => self.struct_literal(literal),
            Expr::MethodCall(call) => self.method_call(call),
            Expr::Call(call) => self.call(call),
            Expr::If(branch) => self.if_value(branch),
            Expr::Match(matched) => {
                let [bind, check, chain] = jumps::match_to_if(matched, self.errors);
                let first = self.list(&[bind, check]);
                let value = match chain {
                    Stmt::Expr(chain, _) => self.expr(&chain),
                    _ => TokenStream::new(),
                };
                quote!({ #first #value })
            }
            // Tokens of the expansion's own, a value already.
            Expr::Verbatim(tokens) => tokens.clone(),
            Expr::Block(block) if block.attrs.is_empty() && block.label.is_none() => {
                let value = self.value_block(&block.block);
                quote!({ #value })
            }
            _ => {
                self.refuse(expr);
                TokenStream::new()
            }
        }
    }

    fn literal(&mut self, lit: &Lit, minus: Option<Span>) -> TokenStream {
        match lit {
            Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) => {
                let minus = minus.map(|span| quote_spanned!(span=> -));
                self.emit(lit.span(), "lit", &[quote!(#minus #lit)])
            }
            _ => {
                self.errors.at(lit, "there is no text in programs: values are numbers and `bool`s");
                TokenStream::new()
            }
        }
    }

    /// A name, or a path through structs, as the user wrote it.
    pub(super) fn place(&mut self, expr: &Expr) -> TokenStream {
        match strip(expr) {
            expr @ Expr::Path(_) => quote!(#expr),
            Expr::Field(field) => {
                let (base, member) = (strip(&field.base), &field.member);
                let base = match base {
                    Expr::Path(_) | Expr::Field(_) => self.place(base),
                    Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => self.place(base),
                    other => {
                        let value = self.expr(other);
                        quote!((#value))
                    }
                };
                quote_spanned!(expr.span()=> #base.#member)
            }
            // What is behind a `&mut` parameter.
            Expr::Unary(unary) if matches!(unary.op, UnOp::Deref(_)) => {
                if !self.is_lent(&unary.expr) {
                    self.errors.at(
                        unary,
                        "there are no references: write the element of an array, `loss[[]]` or `u[i]`, or a name without `*`; \
                         only what a `#[func]` takes by `&mut` has one",
                    );
                    return TokenStream::new();
                }
                self.place(&unary.expr)
            }
            other => {
                self.errors.at(other, "a name is wanted here");
                TokenStream::new()
            }
        }
    }

    /// Is this a parameter that was lent by `&mut`?
    fn is_lent(&self, expr: &Expr) -> bool {
        let Expr::Path(path) = strip(expr) else { return false };
        path.path.get_ident().is_some_and(|ident| self.lent.contains(&ident.unraw().to_string()))
    }

    /// `a[i]`, `a[[i, j]]`, `a[[]]`.
    pub(super) fn element(&mut self, index: &ExprIndex) -> Element {
        let array = match strip(&index.expr) {
            Expr::Path(_) | Expr::Field(_) => self.place(&index.expr),
            other => self.expr(other),
        };
        let index = self.element_indices(index);
        Element { array, index }
    }

    /// The indices in `a[i]`, `a[[i, j]]`, `a[[]]`.
    pub(super) fn element_indices(&mut self, index: &ExprIndex) -> TokenStream {
        match strip(&index.index) {
            Expr::Array(list) => {
                if let Some(range) = list.elems.iter().find(|e| matches!(strip(e), Expr::Range(_))) {
                    self.errors.at(range, PARTS);
                    return TokenStream::new();
                }
                self.indices(list.span(), list.elems.iter())
            }
            Expr::Range(range) => {
                self.errors.at(range, "there are no slices: write a loop over the indices");
                TokenStream::new()
            }
            Expr::Tuple(tuple) if tuple.elems.is_empty() => {
                self.errors.at(tuple, "the element of an array of rank 0 is `loss[[]]`");
                TokenStream::new()
            }
            Expr::Tuple(tuple) => {
                self.errors.at(tuple, "write the indices in brackets: `u[[i, j]]`");
                TokenStream::new()
            }
            single => self.indices(single.span(), std::iter::once(single)),
        }
    }

    /// `a[[i, ..]]`, `a[[i, a..b, ..]]`, `a[a..b]` as an argument: the part of the array, where this is one.
    pub(super) fn part_of_array(&mut self, index: &ExprIndex) -> Option<TokenStream> {
        let list: Vec<&Expr> = match strip(&index.index) {
            Expr::Array(list) => list.elems.iter().map(strip).collect(),
            single => vec![single],
        };
        let is_rest = |e: &&Expr| matches!(e, Expr::Range(r) if r.start.is_none() && r.end.is_none());
        let fixed = list.iter().take_while(|e| !matches!(e, Expr::Range(_))).count();
        let rest = list.len() - fixed;
        let Some(Expr::Range(range)) = list.get(fixed) else { return None };
        let inclusive = matches!(range.limits, syn::RangeLimits::Closed(_));
        if inclusive || !list.iter().skip(fixed + 1).all(is_rest) {
            self.errors.at(&index.index, PARTS);
            return Some(TokenStream::new());
        }
        let mut part = self.place(&index.expr);
        let span = index.expr.span();
        if fixed > 0 {
            let at = self.indices(index.index.span(), list.iter().copied().take(fixed));
            let units = (0..rest).map(|_| quote!(()));
            part = self.emit(span, "part", &[at, quote!([#(#units),*]), part]);
        }
        if range.start.is_some() || range.end.is_some() {
            let mut bound = |bound: &Option<Box<Expr>>| match bound {
                Some(bound) => {
                    let bound = self.index(bound);
                    quote!(::core::option::Option::Some(#bound))
                }
                None => quote!(::core::option::Option::None),
            };
            let (from, to) = (bound(&range.start), bound(&range.end));
            part = self.emit(span, "ranged", &[from, to, part]);
        }
        Some(part)
    }

    /// A list of indices or extents.
    pub(super) fn indices<'e>(&mut self, span: Span, list: impl Iterator<Item = &'e Expr>) -> TokenStream {
        let list: Vec<TokenStream> = list.map(|index| self.index(index)).collect();
        quote_spanned!(span=> [#(#list),*])
    }

    /// A value of the index type.
    pub(super) fn index(&mut self, index: &Expr) -> TokenStream {
        if let Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) = strip(index)
            && matches!(strip(expr), Expr::Lit(_))
        {
            // rustc would advise a signed type.
            self.errors.at(index, "an index is not negative: the last element is `u[u.len() - 1]`");
            return quote_spanned!(index.span()=> ::ebbtide::__lang::emit::index(0usize));
        }
        let value = self.expr(index);
        quote_spanned!(index.span()=> ::ebbtide::__lang::emit::index(#value))
    }

    fn unary(&mut self, unary: &ExprUnary) -> TokenStream {
        let span = unary.op.span();
        match unary.op {
            UnOp::Neg(minus) => match strip(&unary.expr) {
                // `-1.5` is one constant, as in Rust.
                Expr::Lit(lit) => self.literal(&lit.lit, Some(minus.span)),
                _ => {
                    let value = self.expr(&unary.expr);
                    self.emit(span, "neg", &[value])
                }
            },
            UnOp::Not(_) => {
                let value = self.expr(&unary.expr);
                self.emit(span, "not", &[value])
            }
            _ => {
                let place = self.place(&unary.expr);
                self.emit(unary.span(), "read", &[borrow(&place)])
            }
        }
    }

    fn binary(&mut self, binary: &ExprBinary) -> TokenStream {
        let function = match binary.op {
            BinOp::Add(_) => "add",
            BinOp::Sub(_) => "sub",
            BinOp::Mul(_) => "mul",
            BinOp::Div(_) => "div",
            BinOp::Rem(_) => "rem",
            BinOp::BitAnd(_) => "bit_and",
            BinOp::BitOr(_) => "bit_or",
            BinOp::BitXor(_) => "bit_xor",
            BinOp::Shl(_) => "shl",
            BinOp::Shr(_) => "shr",
            BinOp::Eq(_) => "eq",
            BinOp::Ne(_) => "ne",
            BinOp::Lt(_) => "lt",
            BinOp::Le(_) => "le",
            BinOp::Gt(_) => "gt",
            BinOp::Ge(_) => "ge",
            BinOp::And(_) | BinOp::Or(_) => return self.short_circuit(binary),
            _ => {
                self.errors.at(binary, "an assignment is a statement: write it on a line of its own");
                return TokenStream::new();
            }
        };
        if let (BinOp::Mul(_), Expr::Unary(power)) = (&binary.op, &*binary.right)
            && matches!(power.op, UnOp::Deref(_))
            && !self.is_lent(&power.expr)
        {
            self.errors.at(binary, "there is no `**`: write `x.powi(2)` or `x.powf(2.0)`");
            return TokenStream::new();
        }
        let (left, right) = (self.expr(&binary.left), self.expr(&binary.right));
        self.emit(binary.op.span(), function, &[left, right])
    }

    /// `a && b`, `a || b`. Where computing `b` could fail (an index, a division), it is computed only if it is asked
    /// for.
    fn short_circuit(&mut self, binary: &ExprBinary) -> TokenStream {
        let span = binary.op.span();
        let is_and = matches!(binary.op, BinOp::And(_));
        let truth =
            |value: TokenStream, at: Span| quote_spanned!(at=> ::ebbtide::__lang::emit::truth(#value));
        let left = self.expr(&binary.left);
        let right = self.expr(&binary.right);
        let (left, right) = (truth(left, binary.left.span()), truth(right, binary.right.span()));
        if cannot_fail(&binary.right) {
            return self.emit(span, if is_and { "bit_and" } else { "bit_or" }, &[left, right]);
        }
        let (slot, known) = (self.hidden("slot"), self.hidden("known"));
        let (name, asked) = match is_and {
            true => ("and", quote!(#known)),
            false => ("or", self.emit(span, "not", &[quote!(#known)])),
        };
        let slot_value = self.emit(span, "numbered_local", &[quote!(#name), quote!(#known)]);
        let begin = self.emit(span, "begin_if", &[asked]);
        let set = self.emit(span, "set", &[quote!(&#slot), right]);
        let end = self.emit(span, &format!("end_{name}"), &[quote!(&#slot), quote!(#known)]);
        quote!({ let #known = #left; let #slot = #slot_value; #begin; #set; #end })
    }

    /// `if` as a value.
    fn if_value(&mut self, branch: &ExprIf) -> TokenStream {
        let condition = self.expr(&branch.cond);
        let then = self.value_block(&branch.then_branch);
        let otherwise = match &branch.else_branch {
            Some((_, expr)) => self.expr(expr),
            None => {
                self.errors.at(branch.if_token, "this `if` is used as a value: it needs an `else`");
                return TokenStream::new();
            }
        };
        let span = branch.if_token.span;
        let slot = self.hidden("slot");
        let fresh = self.emit(span, "fresh", &[]);
        let begin = self.emit(branch.cond.span(), "begin_if", &[condition]);
        let set_then = self.emit(span, "set", &[quote!(&#slot), quote!({ #then })]);
        let middle = self.emit(span, "begin_else", &[]);
        let set_otherwise = self.emit(span, "set", &[quote!(&#slot), otherwise]);
        let end = self.emit(span, "end_value_if", &[quote!(&#slot)]);
        quote!({ let #slot = #fresh; #begin; #set_then; #middle; #set_otherwise; #end })
    }
}

const PARTS: &str = "a part of an array is an argument of a program: `step(x[[t, ..]])`, `step(x[[a..b, ..]])`, indices first, \
                     then perhaps a range, then one `..` for each other dimension";

/// Can this be computed anywhere without an error? (Indices can be out of bounds, divisors zero.)
fn cannot_fail(expr: &Expr) -> bool {
    match strip(expr) {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Field(field) => cannot_fail(&field.base),
        Expr::Unary(unary) => cannot_fail(&unary.expr),
        Expr::Cast(cast) => cannot_fail(&cast.expr),
        Expr::Binary(binary) => {
            !matches!(binary.op, BinOp::Div(_) | BinOp::Rem(_))
                && cannot_fail(&binary.left)
                && cannot_fail(&binary.right)
        }
        Expr::MethodCall(call) => {
            call.method != "rem_euclid" && cannot_fail(&call.receiver) && call.args.iter().all(cannot_fail)
        }
        _ => false,
    }
}
