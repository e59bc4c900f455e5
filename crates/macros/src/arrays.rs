//! `#[derive(Arrays)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Field, Fields, GenericParam, parse_quote};

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
        handle_of(quote!(::ebbtide::__lang::Ref)),
        handle_of(quote!(::ebbtide::__lang::Mut)),
    );
    let type_params: Vec<_> = input.generics.type_params().map(|t| &t.ident).collect();

    let idents: Vec<&Ident> = fields.iter().map(|(_, ident)| *ident).collect();
    let types: Vec<_> = fields.iter().map(|(field, _)| &field.ty).collect();
    let handle_fields = fields.iter().map(|(field, ident)| {
        let (vis, ty) = (&field.vis, &field.ty);
        let handle = quote_spanned!(ty.span()=> <#ty as ::ebbtide::__lang::Field>::Handle<__B>);
        quote!(#vis #ident: #handle)
    });
    let names: Vec<String> = idents.iter().map(|ident| format!("{{}}.{ident}")).collect();
    quote! {
        const _: () = {
            #[doc = #doc]
            pub struct #handle #borrowed #where_clause {
                #(#handle_fields,)*
                #[doc(hidden)]
                __types: ::core::marker::PhantomData<(#(#type_params,)* __B,)>,
            }

            impl #handle_impl ::core::clone::Clone for #handle #handle_ty #where_clause {
                fn clone(&self) -> Self { *self }
            }

            impl #handle_impl ::core::marker::Copy for #handle #handle_ty #where_clause {}

            impl #handle_impl ::ebbtide::__lang::Handle for #handle #handle_ty #where_clause {
                fn arrays(
                    &self,
                    visit: &mut dyn ::core::ops::FnMut(::ebbtide::__lang::ArrayId, ::ebbtide::__lang::Access),
                ) {
                    #(::ebbtide::__lang::Handle::arrays(&self.#idents, visit);)*
                }
            }

            impl #handle_impl ::ebbtide::__lang::Argument<#of_ref> for #of_b #where_clause {
                fn pass(&self, cx: &::ebbtide::__lang::Cx) -> #of_ref {
                    #handle {
                        #(#idents: ::ebbtide::__lang::Argument::pass(&self.#idents, cx),)*
                        __types: ::core::marker::PhantomData,
                    }
                }
            }

            impl #impl_generics ::ebbtide::__lang::Argument<#of_mut> for #of_mut #where_clause {
                fn pass(&self, _: &::ebbtide::__lang::Cx) -> #of_mut { *self }
            }

            impl #impl_generics ::ebbtide::__lang::Field for #name #ty_generics #where_clause {
                type Handle<__B: ::ebbtide::__lang::Borrow> = #of_b;

                fn declare<__B: ::ebbtide::__lang::Borrow>(
                    cx: &::ebbtide::__lang::Cx,
                    name: &str,
                ) -> #of_b {
                    #handle {
                        #(#idents: <#types as ::ebbtide::__lang::Field>::declare::<__B>(
                            cx,
                            &::std::format!(#names, name),
                        ),)*
                        __types: ::core::marker::PhantomData,
                    }
                }

                fn read_args<'__a>(&'__a self, args: &mut ::std::vec::Vec<::ebbtide::__lang::Arg<'__a>>) {
                    #(::ebbtide::__lang::Field::read_args(&self.#idents, args);)*
                }

                fn write_args<'__a>(&'__a mut self, args: &mut ::std::vec::Vec<::ebbtide::__lang::Arg<'__a>>) {
                    #(::ebbtide::__lang::Field::write_args(&mut self.#idents, args);)*
                }
            }

            impl #impl_generics ::ebbtide::__lang::Arrays for #name #ty_generics #where_clause {}
        };
    }
}
