//! Labels of checkpoints.

use std::borrow::Cow;

/// An enum whose variants label the regions of a program, derived with `#[derive(Label)]`; or `i32`, for regions that are
/// numbered: `#[checkpoint(3)]`.
///
/// A label is known by the names of its enum and variant, so that it is the same in another process.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a label",
    label = "not a label",
    note = "a label is a variant of an enum with `#[derive(Label)]`"
)]
pub trait Label: Into<ebbtide_ir::Label> + 'static {
    /// The name of the enum.
    const FAMILY: &'static str;

    /// The names of all variants, in order; none of numbers.
    const VARIANTS: &'static [&'static str];

    /// The name of this variant.
    fn variant(&self) -> Cow<'static, str>;

    /// The variant with this name.
    fn from_variant(name: &str) -> Option<Self>;
}

impl Label for i32 {
    const FAMILY: &'static str = ebbtide_ir::Label::NUMBERS;
    const VARIANTS: &'static [&'static str] = &[];

    fn variant(&self) -> Cow<'static, str> {
        Cow::Owned(self.to_string())
    }

    fn from_variant(name: &str) -> Option<i32> {
        name.parse().ok()
    }
}
