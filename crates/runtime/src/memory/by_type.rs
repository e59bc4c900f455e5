//! From a type that is known when a program runs to one that is known when Rust is compiled.

/// Runs a macro with the Rust type of the elements.
macro_rules! by_type {
    ($ty:expr, $run:ident) => {
        match $ty {
            ebbtide_ir::Type::F32 => $run!(f32),
            ebbtide_ir::Type::F64 => $run!(f64),
            ebbtide_ir::Type::I32 => $run!(i32),
            ebbtide_ir::Type::I64 | ebbtide_ir::Type::Index => $run!(i64),
            ebbtide_ir::Type::U32 => $run!(u32),
            ebbtide_ir::Type::Bool => $run!(bool),
        }
    };
}

pub(crate) use by_type;
