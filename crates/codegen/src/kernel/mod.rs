//! The kernel IR: what stands between a program and a text. It knows nothing of the text.
//!
//! Expressions of indices are trees ([`expr`]), with a reference interpreter for tests (`evaluate`); what a text is for is in
//! [`machine`].

#[cfg(test)]
pub(crate) mod evaluate;
pub(crate) mod expr;
pub(crate) mod machine;
