//! `#[derive(Arrays)]`.

mod handle;

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Field, Fields, GenericParam, Type};

use crate::errors::Errors;
use crate::value::as_derivative;
use handle::Handles;

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
    let (impl_generics, ty_generics, where_clause) = input.generics.split_for_impl();
    let type_params: Vec<_> = input.generics.type_params().map(|t| &t.ident).collect();
    let parts: Vec<Part> = fields.iter().map(|(field, ident)| Part::of(field, ident, &type_params)).collect();
    let handles = Handles::of(input, fields, &parts);
    let (handle, names) = (handles.handle(), handles.names());
    let (as_argument, as_field) = (handles.as_argument(), handles.as_field());
    let (leaves, as_derivative) = (leaves_of(input, &parts), as_derivative(input));
    quote! {
        const _: () = {
            #handle
            #names
            #as_argument
            #as_field
            #leaves
            #as_derivative

            #[automatically_derived]
            impl #impl_generics ::ebbtide::__lang::Arrays for #name #ty_generics #where_clause {}
        };
    }
}

/// The float leaves of the struct.
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
    }
}

/// The fields that programs do not see.
fn skipped_fields(input: &DeriveInput) -> Vec<&Field> {
    let Data::Struct(data) = &input.data else { return Vec::new() };
    data.fields.iter().filter(|field| skipped(&field.attrs, &mut Errors::default())).collect()
}
