//! `#[derive(Arrays)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Field, Fields, GenericParam, Type, parse_quote};

use crate::errors::Errors;

/// Expands the derive.
pub fn derive(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let mut errors = Errors::default();
    let fields = fields(&input, &mut errors);
    for param in &input.generics.params {
        if let GenericParam::Lifetime(lifetime) = param {
            errors.at(lifetime, "a struct of arrays owns its arrays: it has no lifetimes");
        }
    }
    if errors.any() {
        return errors.into_tokens();
    }
    implementation(&input, &fields)
}

/// The fields that programs see.
fn fields<'a>(input: &'a DeriveInput, errors: &mut Errors) -> Vec<(&'a Field, &'a Ident)> {
    let Data::Struct(data) = &input.data else {
        errors.at(&input.ident, "only a struct can be a struct of arrays");
        return Vec::new();
    };
    let Fields::Named(named) = &data.fields else {
        errors.at(&input.ident, "a struct of arrays has named fields: `struct World { pos: Array2<f32> }`");
        return Vec::new();
    };
    let mut seen = Vec::new();
    for field in &named.named {
        if !skipped(&field.attrs, errors) {
            seen.extend(field.ident.as_ref().map(|ident| (field, ident)));
        }
    }
    seen
}

fn skipped(attrs: &[Attribute], errors: &mut Errors) -> bool {
    let mut skip = false;
    for attr in attrs.iter().filter(|a| a.path().is_ident("arrays")) {
        let parsed = attr.parse_nested_meta(|meta| {
            if meta.path.is_ident("skip") {
                skip = true;
                return Ok(());
            }
            Err(meta.error("the only option is `skip`: the field is the host's alone"))
        });
        if let Err(error) = parsed {
            errors.add(error);
        }
    }
    skip
}

/// What one field contributes to the implementation.
struct Part {
    /// The field of the handle.
    field: TokenStream,
    declare: TokenStream,
    read: TokenStream,
    write: TokenStream,
    paths: TokenStream,
    set: TokenStream,
    leaves: Leaves,
}

/// What one field contributes to the float leaves of the struct.
struct Leaves {
    want: TokenStream,
    of_gradients: TokenStream,
    add: TokenStream,
    add_mut: TokenStream,
}

impl Part {
    fn of(field: &Field, ident: &Ident, type_params: &[&Ident]) -> Part {
        let (vis, ty) = (&field.vis, &field.ty);
        let text = ident.unraw().to_string();
        let name = quote!(&::ebbtide::__lang::member(name, #text));
        // A type parameter by itself is a value, of which no more is known than that.
        if matches!(ty, Type::Path(path) if type_params.iter().any(|t| path.path.is_ident(*t))) {
            let push = quote!(::ebbtide::__lang::values::args(self.#ident, args););
            return Part {
                field: quote!(#vis #ident: ::ebbtide::__lang::Expr<#ty>),
                declare: quote!(::ebbtide::__lang::emit::scalar::<#ty>(cx, #name)),
                read: push.clone(),
                write: push,
                paths: quote!(::ebbtide::__lang::values::paths::<#ty>(#name, paths);),
                set: quote!(::ebbtide::__lang::values::set_scalars(&mut self.#ident, values);),
                leaves: Leaves::of(quote!(::ebbtide::__lang::struct_leaves::values), Some(ty), ident, &name),
            };
        }
        let handle = quote_spanned!(ty.span()=> <#ty as ::ebbtide::__lang::Field>::Handle<__B>);
        Part {
            field: quote!(#vis #ident: #handle),
            declare: quote!(<#ty as ::ebbtide::__lang::Field>::declare::<__B>(cx, #name)),
            read: quote!(::ebbtide::__lang::Field::read_args(&self.#ident, args);),
            write: quote!(::ebbtide::__lang::Field::write_args(&mut self.#ident, args);),
            paths: quote!(<#ty as ::ebbtide::__lang::Field>::paths(#name, paths);),
            set: quote!(::ebbtide::__lang::Field::set_scalars(&mut self.#ident, values);),
            leaves: Leaves::of(quote!(<#ty as ::ebbtide::__lang::Leaves>), None, ident, &name),
        }
    }
}

impl Leaves {
    /// Calls of the functions below `path`, of the type `of` where the path does not say it.
    fn of(path: TokenStream, of: Option<&Type>, ident: &Ident, name: &TokenStream) -> Leaves {
        let of = of.map(|ty| quote!(::<#ty>));
        Leaves {
            want: quote!(#path::want #of(#name, wanted);),
            of_gradients: quote!(#ident: #path::of_gradients #of(#name, from)?),
            add: quote!(#path::add_leaves(&self.#ident, #name, leaves);),
            add_mut: quote!(#path::add_leaves_mut(&mut self.#ident, #name, leaves);),
        }
    }
}

fn implementation(input: &DeriveInput, fields: &[(&Field, &Ident)]) -> TokenStream {
    let name = &input.ident;
    let handle = format_ident!("{name}Handle");
    let doc = format!("What stands for a `{name}` while a program is being built.");
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();

    // The handle has the struct's own parameters and one more: how it is borrowed.
    let mut borrowed = input.generics.clone();
    borrowed.params.push(parse_quote!(__B: ::ebbtide::__lang::Borrow));
    let (handle_impl, handle_ty, _) = borrowed.split_for_impl();
    let arguments: Vec<TokenStream> = input
        .generics
        .params
        .iter()
        .map(|param| match param {
            GenericParam::Type(t) => {
                let ident = &t.ident;
                quote!(#ident,)
            }
            GenericParam::Const(c) => {
                let ident = &c.ident;
                quote!(#ident,)
            }
            _ => TokenStream::new(),
        })
        .collect();
    let handle_of = |borrow: TokenStream| quote!(#handle<#(#arguments)* #borrow>);
    let (of_b, of_ref, of_mut) = (
        handle_of(quote!(__B)),
        handle_of(quote!(::ebbtide::__lang::ByRef)),
        handle_of(quote!(::ebbtide::__lang::ByMut)),
    );
    let written = [quote!(::ebbtide::__lang::ByMut), quote!(::ebbtide::__lang::ByLoan)];
    let type_params: Vec<_> = input.generics.type_params().map(|t| &t.ident).collect();

    let idents: Vec<&Ident> = fields.iter().map(|(_, ident)| *ident).collect();
    let parts: Vec<Part> = fields.iter().map(|(field, ident)| Part::of(field, ident, &type_params)).collect();
    let names_of = format_ident!("{name}Names");
    let names_doc = format!("The names of the members of a `{name}`.");
    let name_fields = fields.iter().map(|(field, ident)| {
        let (vis, ty) = (&field.vis, &field.ty);
        quote!(#vis #ident: ::ebbtide::__lang::Name<#ty>)
    });
    let member_names = fields.iter().map(|(_, ident)| {
        let text = ident.unraw().to_string();
        quote!(#ident: ::ebbtide::__lang::name_of_member(name, #text))
    });
    let (paths, sets) = (parts.iter().map(|p| &p.paths), parts.iter().map(|p| &p.set));
    let leaves = leaves_of(input, &parts);
    let (handle_fields, declares, reads, writes) = (
        parts.iter().map(|p| &p.field),
        parts.iter().map(|p| &p.declare),
        parts.iter().map(|p| &p.read),
        parts.iter().map(|p| &p.write),
    );
    quote! {
        const _: () = {
            #[doc = #doc]
            pub struct #handle #borrowed #where_clause {
                #(#handle_fields,)*
                #[doc(hidden)]
                __types: ::core::marker::PhantomData<(#(#type_params,)* __B,)>,
            }

            #[doc = #names_doc]
            pub struct #names_of #impl_generics #where_clause {
                #(#name_fields,)*
                #[doc(hidden)]
                __types: ::core::marker::PhantomData<fn() -> (#(#type_params,)*)>,
            }

            #[automatically_derived]
            impl #handle_impl ::core::clone::Clone for #handle #handle_ty #where_clause {
                fn clone(&self) -> Self { *self }
            }

            #[automatically_derived]
            impl #handle_impl ::core::marker::Copy for #handle #handle_ty #where_clause {}

            #[automatically_derived]
            impl #handle_impl ::ebbtide::__lang::Handle for #handle #handle_ty #where_clause {
                fn bound(&self, visit: &mut dyn ::core::ops::FnMut(::ebbtide::__lang::Behind)) {
                    #(::ebbtide::__lang::Handle::bound(&self.#idents, visit);)*
                }
            }

            #[automatically_derived]
            impl #handle_impl ::ebbtide::__lang::Argument<#of_ref> for #of_b #where_clause {
                fn pass(&self, cx: &::ebbtide::__lang::Cx) -> #of_ref {
                    #handle {
                        #(#idents: ::ebbtide::__lang::Argument::pass(&self.#idents, cx),)*
                        __types: ::core::marker::PhantomData,
                    }
                }
            }

            #[automatically_derived]
            impl #impl_generics ::ebbtide::__lang::Argument<#of_mut> for #of_mut #where_clause {
                fn pass(&self, _: &::ebbtide::__lang::Cx) -> #of_mut { *self }
            }

            #[automatically_derived]
            impl #handle_impl ::ebbtide::__lang::Passed<#name #ty_generics, ::ebbtide::__lang::ByRef> for #of_b #where_clause {
                fn handle(&self, cx: &::ebbtide::__lang::Cx) -> ::std::boxed::Box<dyn ::core::any::Any> {
                    ::std::boxed::Box::new(::ebbtide::__lang::Argument::<#of_ref>::pass(self, cx))
                }
            }

            #(#[automatically_derived]
            impl #impl_generics ::ebbtide::__lang::Passed<#name #ty_generics, #written> for #of_mut #where_clause {
                fn handle(&self, _: &::ebbtide::__lang::Cx) -> ::std::boxed::Box<dyn ::core::any::Any> {
                    ::std::boxed::Box::new(*self)
                }
            })*

            #[automatically_derived]
            impl #impl_generics ::ebbtide::__lang::Field for #name #ty_generics #where_clause {
                type Handle<__B: ::ebbtide::__lang::Borrow> = #of_b;
                type Names = #names_of #ty_generics;

                fn names(name: &'static ::core::primitive::str) -> Self::Names {
                    #names_of { #(#member_names,)* __types: ::core::marker::PhantomData }
                }

                fn paths(name: &::core::primitive::str, paths: &mut ::std::vec::Vec<::std::string::String>) {
                    #(#paths)*
                }

                #[allow(unused_variables)]
                fn set_scalars(
                    &mut self,
                    values: &mut dyn ::core::iter::Iterator<Item = ::ebbtide::__lang::Literal>,
                ) {
                    #(#sets)*
                }

                fn declare<__B: ::ebbtide::__lang::Borrow>(
                    cx: &::ebbtide::__lang::Cx,
                    name: &::core::primitive::str,
                ) -> #of_b {
                    #handle {
                        #(#idents: #declares,)*
                        __types: ::core::marker::PhantomData,
                    }
                }

                fn read_args<'__a>(&'__a self, args: &mut ::std::vec::Vec<::ebbtide::__lang::Arg<'__a>>) {
                    #(#reads)*
                }

                fn write_args<'__a>(&'__a mut self, args: &mut ::std::vec::Vec<::ebbtide::__lang::Arg<'__a>>) {
                    #(#writes)*
                }
            }

            #leaves

            #[automatically_derived]
            impl #impl_generics ::ebbtide::__lang::Arrays for #name #ty_generics #where_clause {}

            #[automatically_derived]
            impl #impl_generics ::ebbtide::__lang::Lent for #name #ty_generics #where_clause {
                type Handle = #of_mut;
            }
        };
    }
}

/// The float leaves of the struct, and derivatives with respect to it.
fn leaves_of(input: &DeriveInput, parts: &[Part]) -> TokenStream {
    let name = &input.ident;
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let wants = parts.iter().map(|p| &p.leaves.want);
    let made = parts.iter().map(|p| &p.leaves.of_gradients);
    let adds = parts.iter().map(|p| &p.leaves.add);
    let adds_mut = parts.iter().map(|p| &p.leaves.add_mut);
    let skipped = skipped_fields(input).into_iter().map(|field| {
        let (ident, ty) = (&field.ident, &field.ty);
        let text = ident.as_ref().map(|ident| ident.unraw().to_string());
        quote! {
            #ident: {
                #[allow(unused_imports)]
                use ::ebbtide::__lang::struct_leaves::{WithDefault as _, WithoutDefault as _};
                (&::ebbtide::__lang::struct_leaves::Skipped::<#ty>::new()).make(#text)?
            }
        }
    });
    quote! {
        #[automatically_derived]
        #[allow(unused_variables, clippy::needless_borrow)]
        impl #impl_generics ::ebbtide::__lang::Leaves for #name #ty_generics #where_clause {
            fn want(name: &::core::primitive::str, wanted: &mut ::ebbtide::__lang::struct_leaves::Wanted) {
                #(#wants)*
            }

            fn of_gradients(
                name: &::core::primitive::str,
                from: &::ebbtide::__lang::Gradients,
            ) -> ::ebbtide::__lang::Result<Self> {
                ::core::result::Result::Ok(#name { #(#made,)* #(#skipped,)* })
            }

            fn add_leaves<'__a>(
                &'__a self,
                name: &::core::primitive::str,
                leaves: &mut ::std::vec::Vec<(::std::string::String, ::ebbtide::__lang::Floats<'__a>)>,
            ) {
                #(#adds)*
            }

            fn add_leaves_mut<'__a>(
                &'__a mut self,
                name: &::core::primitive::str,
                leaves: &mut ::std::vec::Vec<(::std::string::String, ::ebbtide::__lang::FloatsMut<'__a>)>,
            ) {
                #(#adds_mut)*
            }
        }

        #[automatically_derived]
        impl #impl_generics ::ebbtide::__lang::Differentiable for #name #ty_generics #where_clause {
            type Derivative<'__a> = #name #ty_generics;

            fn want(name: &::core::primitive::str, wanted: &mut ::ebbtide::__lang::struct_leaves::Wanted) {
                <Self as ::ebbtide::__lang::Leaves>::want(name, wanted);
            }

            fn derivative(
                from: &::ebbtide::__lang::Gradients,
                name: &::core::primitive::str,
            ) -> ::ebbtide::__lang::Result<Self> {
                <Self as ::ebbtide::__lang::Leaves>::of_gradients(name, from)
            }
        }
    }
}

/// The fields that programs do not see.
fn skipped_fields(input: &DeriveInput) -> Vec<&Field> {
    let Data::Struct(data) = &input.data else { return Vec::new() };
    data.fields.iter().filter(|field| skipped(&field.attrs, &mut Errors::default())).collect()
}
