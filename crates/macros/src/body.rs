//! The body of a program or function, rewritten to calls that build it.

mod assignments;
mod calls;
mod expressions;
mod loops;
mod patterns;
mod printing;
mod refusals;
mod regions;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Block, Expr, ExprIf, Item, Local, Pat, Stmt, Type};

use crate::errors::Errors;
use crate::item::{self, Kind};
use crate::jumps;
use crate::signature::array_rank;

pub(crate) use assignments::compound;
pub(crate) use calls::{ITEMS, advice, is_constructor, is_item};
pub(crate) use loops::closing_break;

/// Where a statement stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// In the code around parallel loops.
    Program,
    /// Inside a parallel loop.
    Parallel,
}

/// Rewrites a body; what the language does not have goes to `errors`.
pub struct Translator<'a> {
    kind: Kind,
    level: Level,
    cx: Ident,
    /// How many ranges with `.rev()` or `.step_by(k)` there were.
    strided: usize,
    /// The parameters of a `#[func]` that are lent by `&mut`: `*x` is what they lend.
    lent: Vec<String>,
    /// The parameters that are programs, and their types.
    programs: Vec<(Ident, Type)>,
    /// The elements that the call being rewritten lends.
    loans: Vec<Loan>,
    errors: &'a mut Errors,
}

/// An element of an array: the array and its indices.
struct Element {
    array: TokenStream,
    index: TokenStream,
}

/// An element of an array that a call lends by `&mut`: a variable holds it during the call.
struct Loan {
    /// What fills the variable.
    before: TokenStream,
    /// What stores it back.
    after: TokenStream,
}

impl<'a> Translator<'a> {
    pub fn new(
        kind: Kind,
        lent: Vec<String>,
        programs: Vec<(Ident, Type)>,
        errors: &'a mut Errors,
    ) -> Translator<'a> {
        Translator {
            kind,
            level: Level::Program,
            cx: item::cx(),
            strided: 0,
            lent,
            programs,
            loans: Vec::new(),
            errors,
        }
    }

    /// A call of a function of `lang::emit` at the user's place `span`.
    fn emit(&self, span: Span, function: &str, args: &[TokenStream]) -> TokenStream {
        let cx = &self.cx;
        let function = Ident::new(function, span);
        quote_spanned!(span=> ::ebbtide::__lang::emit::#function(#cx #(, #args)*))
    }

    /// A name for expanded code alone.
    fn hidden(&self, name: &str) -> Ident {
        Ident::new(name, Span::mixed_site())
    }

    /// A name for expanded code, at the place of what it holds: rustc shows this place where its type does not fit.
    fn hidden_at(&self, name: &str, span: Span) -> Ident {
        Ident::new(&format!("__{name}"), span)
    }

    /// The statements of a block that has no value.
    pub fn statements(&mut self, block: &Block) -> TokenStream {
        self.list(&block.stmts)
    }

    fn list(&mut self, stmts: &[Stmt]) -> TokenStream {
        let stmts: Vec<TokenStream> = stmts.iter().map(|stmt| self.stmt(stmt)).collect();
        quote!(#(#stmts)*)
    }

    /// The statements of a block and the value of its last expression.
    pub fn value_block(&mut self, block: &Block) -> TokenStream {
        match block.stmts.split_last() {
            Some((Stmt::Expr(tail, None), first)) => {
                let first = self.list(first);
                let tail = self.expr(tail);
                quote!(#first #tail)
            }
            _ => {
                self.errors.at(block, "this block must end with an expression: the value that it has");
                TokenStream::new()
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> TokenStream {
        match stmt {
            Stmt::Local(local) => self.local(local),
            Stmt::Item(item @ (Item::Const(_) | Item::Use(_))) => quote!(#item),
            Stmt::Item(item) => {
                self.refuse_item(item);
                TokenStream::new()
            }
            Stmt::Macro(stmt) if stmt.mac.path.is_ident("assert") => self.assertion(&stmt.mac),
            Stmt::Macro(stmt) if stmt.mac.path.is_ident("println") || stmt.mac.path.is_ident("eprintln") => {
                self.printed_line(&stmt.mac)
            }
            Stmt::Macro(stmt) => {
                self.refuse_macro(&stmt.mac);
                TokenStream::new()
            }
            Stmt::Expr(expr, _) => self.stmt_expr(expr),
        }
    }

    /// `assert!(x > 0.0, "what is wrong");`
    fn assertion(&mut self, mac: &syn::Macro) -> TokenStream {
        let parser = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
        let Ok(args) = mac.parse_body_with(parser) else {
            self.errors.at(mac, "write `assert!(x > 0.0, \"what is wrong\");`");
            return TokenStream::new();
        };
        let text = match args.iter().collect::<Vec<_>>()[..] {
            [condition] => {
                let text = quote!(#condition).to_string();
                format!("assertion failed: {text}")
            }
            [_, Expr::Lit(text)] if matches!(&text.lit, syn::Lit::Str(_)) => match &text.lit {
                syn::Lit::Str(text) if text.value().contains('{') => {
                    self.errors.at(text, "an assertion has a fixed text: remove the braces");
                    return TokenStream::new();
                }
                syn::Lit::Str(text) => text.value(),
                _ => String::new(),
            },
            _ => {
                self.errors
                    .at(mac, "an assertion has a condition and a fixed text: `assert!(x > 0.0, \"text\");`");
                return TokenStream::new();
            }
        };
        let condition = self.expr(&args[0]);
        let assert = self.emit(args[0].span(), "assert", &[condition, quote!(#text)]);
        quote!(#assert;)
    }

    /// `let` in all its forms.
    fn local(&mut self, local: &Local) -> TokenStream {
        self.no_attributes(&local.attrs);
        let (pat, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            pat => (pat, None),
        };
        let Some(init) = &local.init else {
            self.errors.at(local, "a variable needs a first value: write `let mut x = 0.0;`");
            return TokenStream::new();
        };
        if let Some((token, _)) = &init.diverge {
            self.errors.at(token, "there is no `let … else`: write `if`");
        }
        if let Pat::Tuple(_) | Pat::Struct(_) | Pat::Slice(_) = pat {
            if let Some(temporaries) = self.temporaries(pat, &init.expr) {
                return temporaries;
            }
            let mut value = self.expr(&init.expr);
            if let Some(ty) = ty {
                let span = init.expr.span();
                value = quote_spanned!(span=> ::ebbtide::__lang::emit::ascribe::<#ty, _>(#value));
            }
            return self.pattern(pat, value, 0);
        }
        let (ident, mutable) = match pat {
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
                (pat.ident.clone(), pat.mutability.is_some())
            }
            Pat::Wild(wild) => (Ident::new("_unused", wild.underscore_token.span), false),
            pat => {
                self.errors
                    .at(pat, "`let` takes a name, or a tuple, an array or a struct with names for its parts");
                return TokenStream::new();
            }
        };
        let name = ident.unraw().to_string();
        if let Some((rank, element, shape)) = zeros(&init.expr) {
            return self.temporary(&ident, mutable, ty, rank, element, shape);
        }
        let mut value = self.expr(&init.expr);
        if let Some(ty) = ty {
            let span = init.expr.span();
            value = quote_spanned!(span=> ::ebbtide::__lang::emit::ascribe::<#ty, _>(#value));
        }
        let function = if mutable { "local" } else { "named" };
        let value = self.emit(ident.span(), function, &[quote!(#name), value]);
        quote!(let #ident = #value;)
    }

    /// `let (mut a, mut b) = (Array1::<f64>::zeros([n]), Array1::<f64>::zeros([n]));` is two of them.
    fn temporaries(&mut self, pat: &Pat, value: &Expr) -> Option<TokenStream> {
        let (names, values) = match (pat, value) {
            (Pat::Tuple(names), Expr::Tuple(values)) => (&names.elems, &values.elems),
            (Pat::Slice(names), Expr::Array(values)) => (&names.elems, &values.elems),
            _ => return None,
        };
        if names.len() != values.len() || !values.iter().all(|value| zeros(value).is_some()) {
            return None;
        }
        let mut lets = TokenStream::new();
        for (pat, value) in names.iter().zip(values) {
            let one: Stmt = syn::parse_quote!(let #pat = #value;);
            lets.extend(self.stmt(&one));
        }
        Some(lets)
    }

    /// `let mut t = Array2::<f64>::zeros([n, m]);`
    fn temporary(
        &mut self,
        ident: &Ident,
        mutable: bool,
        ty: Option<&Type>,
        rank: usize,
        element: Option<Type>,
        shape: &Expr,
    ) -> TokenStream {
        if self.level == Level::Parallel || self.kind == Kind::Func {
            self.errors.at(
                ident,
                "a temporary array belongs to the program, not to an iteration: declare it before the parallel loop",
            );
        }
        let name = ident.unraw().to_string();
        let Expr::Array(extents) = shape else {
            self.errors.at(shape, "write the shape as a list: `Array2::zeros([n, m])`");
            return TokenStream::new();
        };
        if extents.elems.len() != rank {
            self.errors
                .at(extents, format!("`Array{rank}` has {rank} extents, here are {}", extents.elems.len()));
        }
        let index = self.indices(extents.span(), extents.elems.iter());
        let element = element.or_else(|| element_of(ty?)).map_or(quote!(_), |ty| quote!(#ty));
        let borrow = if mutable { quote!(ByMut) } else { quote!(ByRef) };
        let cx = &self.cx;
        quote_spanned! {ident.span()=>
            let #ident = ::ebbtide::__lang::emit::temp::<#element, ::ebbtide::__lang::#borrow, #rank>(#cx, #name, #index);
        }
    }

    /// An expression that stands as a statement.
    fn stmt_expr(&mut self, expr: &Expr) -> TokenStream {
        match expr {
            Expr::Paren(paren) => self.stmt_expr(&paren.expr),
            Expr::Group(group) => self.stmt_expr(&group.expr),
            Expr::ForLoop(stmt) => self.for_loop(stmt),
            Expr::While(stmt) => self.while_loop(stmt),
            Expr::Loop(stmt) => self.endless_loop(stmt),
            Expr::If(stmt) => {
                self.no_attributes(&stmt.attrs);
                self.branch(stmt)
            }
            Expr::Block(block) => self.block_statement(block),
            Expr::Match(matched) => {
                self.no_attributes(&matched.attrs);
                let stmts = jumps::match_to_if(matched, self.errors);
                let stmts = self.list(&stmts);
                quote!({ #stmts })
            }
            Expr::Verbatim(tokens) => quote!(#tokens;),
            Expr::Assign(assign) => self.assign(&assign.left, &assign.right, assign.eq_token.span),
            Expr::Binary(binary) if compound(&binary.op).is_some() => {
                self.compound_assign(&binary.left, &binary.op, &binary.right)
            }
            Expr::Call(call) => {
                let call = self.call(call);
                quote!(#call;)
            }
            Expr::MethodCall(call)
                if matches!(call.method.to_string().as_str(), "min_assign" | "max_assign") =>
            {
                self.assigning_method(call)
            }
            Expr::MethodCall(call) if !calls::is_method(&call.method) => self.program_method(call),
            Expr::MethodCall(_)
            | Expr::Binary(_)
            | Expr::Unary(_)
            | Expr::Path(_)
            | Expr::Lit(_)
            | Expr::Index(_)
            | Expr::Field(_)
            | Expr::Cast(_) => {
                self.expr(expr);
                self.errors
                    .at(expr, "this computes a value that nothing uses: name it with `let`, or assign it");
                TokenStream::new()
            }
            _ => {
                self.refuse(expr);
                TokenStream::new()
            }
        }
    }

    fn branch(&mut self, stmt: &ExprIf) -> TokenStream {
        let span = stmt.if_token.span;
        let condition = self.expr(&stmt.cond);
        let begin = self.emit(stmt.cond.span(), "begin_if", &[condition]);
        let then = self.statements(&stmt.then_branch);
        let otherwise = match &stmt.else_branch {
            None => TokenStream::new(),
            Some((token, expr)) => {
                let begin = self.emit(token.span, "begin_else", &[]);
                let arm = self.stmt_expr(expr);
                quote!(#begin; { #arm })
            }
        };
        let end = self.emit(span, "end_if", &[]);
        quote!({ #begin; { #then } #otherwise #end; })
    }

    /// A statement that takes no attributes of ours; those that only speak to tools are dropped.
    fn no_attributes(&mut self, attrs: &[Attribute]) {
        for attr in attrs.iter().filter(|a| !is_tool_attribute(a)) {
            self.errors.at(
                attr,
                "this attribute has no place here: `#[checkpoint(..)]` stands before a block, `#[reverse(..)]` before a \
                 sequential loop, `#[relaxed]` before a parallel loop",
            );
        }
    }
}

/// `&place`, all of it at the user's place.
fn borrow(place: &TokenStream) -> TokenStream {
    quote_spanned!(place.span()=> &#place)
}

/// Attributes that say something to rustc, clippy, rustfmt or the reader, and nothing to the program.
fn is_tool_attribute(attr: &Attribute) -> bool {
    let first = attr.path().segments.first().map(|s| s.ident.to_string());
    matches!(first.as_deref(), Some("allow" | "expect" | "warn" | "doc" | "rustfmt" | "clippy"))
}

/// The expression without parentheses around it.
fn strip(mut expr: &Expr) -> &Expr {
    loop {
        match expr {
            Expr::Paren(paren) => expr = &paren.expr,
            Expr::Group(group) => expr = &group.expr,
            _ => return expr,
        }
    }
}

/// Rank, element type and shape, where the expression is `Array2::<f64>::zeros([n, m])`.
fn zeros(expr: &Expr) -> Option<(usize, Option<Type>, &Expr)> {
    let Expr::Call(call) = strip(expr) else { return None };
    let Expr::Path(path) = &*call.func else { return None };
    let mut segments = path.path.segments.iter().rev();
    let (method, array) = (segments.next()?, segments.next()?);
    let rank = array_rank(&array.ident).filter(|_| method.ident == "zeros")?;
    let shape = call.args.first().filter(|_| call.args.len() == 1)?;
    Some((rank, first_type(&array.arguments), shape))
}

/// The element type written in an array type: `f64` of `Array2<f64>`.
fn element_of(ty: &Type) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    first_type(&path.path.segments.last()?.arguments)
}

fn first_type(arguments: &syn::PathArguments) -> Option<Type> {
    let syn::PathArguments::AngleBracketed(arguments) = arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}
