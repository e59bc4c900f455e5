//! Derivative programs, written statement by statement.

pub(crate) mod adjoint;
pub(crate) mod custom_call;
pub(crate) mod extremes;
pub(crate) mod library;
pub(crate) mod on_copies;
pub(crate) mod outside;
pub(crate) mod par;
pub(crate) mod parts;
pub(crate) mod record;
pub(crate) mod tangent;
pub(crate) mod task;
pub(crate) mod working_copies;
