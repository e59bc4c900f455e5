//! Device-independent tests, instantiated for each device.
//!
//! [`run`] gives a program deterministic arguments on a device and returns the bits of every array afterwards, so
//! that devices can be compared with the interpreter.
//!
//! [`oracle`] is an interpreter over taped scalars, which judges derivatives and shares no code with the crate that makes
//! them; [`judge`] holds the derivatives of a program against it.
#![forbid(unsafe_code)]

pub mod judge;
pub mod oracle;
pub mod random;

use ebbtide_ir::{Access, Literal, Param, Program, Role, Type};
use ebbtide_runtime::{AnyArray, Arg, Compiled, Device, Result};

/// Arguments of a program: a shape and a seed for each array, a value for each scalar.
#[derive(Clone, Debug)]
pub enum Input {
    /// An array of this shape with elements made from this seed.
    Array(Vec<usize>, u64),
    /// An array with these elements.
    Elements(Vec<usize>, Vec<Literal>),
    /// A scalar.
    Scalar(Literal),
}

/// Element `k` of an array made from `seed`: small numbers of both signs, with many bits.
pub fn element(ty: Type, seed: u64, k: u64) -> Literal {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(k.wrapping_mul(0xd134_2543_de82_ef95));
    x ^= x >> 29;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 32;
    match ty {
        Type::F32 | Type::F64 => Literal::of(ty, (x >> 11) as f64 / (1u64 << 52) as f64 - 1.0),
        Type::Bool => Literal::from(x & 1 == 1),
        Type::U32 => Literal::from((x % 7) as u32),
        Type::I32 => Literal::from((x % 7) as i32 - 2),
        Type::I64 | Type::Index => Literal::from((x % 7) as i64 - 2),
    }
}

/// Writes a literal into element `k` of raw bytes.
fn put(bytes: &mut [u8], ty: Type, k: usize, literal: Literal) {
    let size = ty.size();
    bytes[size * k..size * (k + 1)].copy_from_slice(&literal.bits().to_le_bytes()[..size]);
}

/// Writes a literal into element `k` of an array.
pub fn set(array: &mut AnyArray, k: usize, literal: Literal) {
    let mut bytes = array.bytes().to_vec();
    put(&mut bytes, array.ty(), k, literal);
    array.copy_from_bytes(&bytes).expect("the array has as many bytes as it had");
}

/// Runs a program on a device; the bytes of all arrays afterwards, by parameter.
pub fn run(program: &Program, device: &Device, inputs: &[Input]) -> Result<Vec<Vec<u8>>> {
    launch(&Compiled::new(program, device)?, inputs)
}

/// Runs a compiled program; the bytes of all arrays afterwards, by parameter.
pub fn launch(compiled: &Compiled, inputs: &[Input]) -> Result<Vec<Vec<u8>>> {
    let program = compiled.program();
    let mut arrays = Vec::new();
    for (param, input) in program.params.iter().zip(inputs) {
        if let Param::Array(id) = param {
            let ty = program.array(*id).ty;
            let array = match input {
                Input::Array(shape, seed) => {
                    let mut array = AnyArray::zeros(compiled.device(), ty, shape)?;
                    let mut bytes = array.bytes().to_vec();
                    (0..array.len()).for_each(|k| put(&mut bytes, ty, k, element(ty, *seed, k as u64)));
                    array.copy_from_bytes(&bytes)?;
                    array
                }
                Input::Elements(shape, elements) => {
                    let mut array = AnyArray::zeros(compiled.device(), ty, shape)?;
                    let mut bytes = array.bytes().to_vec();
                    elements.iter().enumerate().for_each(|(k, e)| put(&mut bytes, ty, k, *e));
                    array.copy_from_bytes(&bytes)?;
                    array
                }
                Input::Scalar(_) => AnyArray::zeros(compiled.device(), ty, &[])?,
            };
            arrays.push(array);
        }
    }
    let mut rest = arrays.iter_mut();
    let mut args = Vec::new();
    for (param, input) in program.params.iter().zip(inputs) {
        args.push(match (param, input) {
            (Param::Scalar(_), Input::Scalar(literal)) => Arg::Scalar(*literal),
            (Param::Scalar(_), _) => Arg::Scalar(Literal::from(false)),
            (Param::Array(id), _) => match (rest.next(), &program.array(*id).role) {
                (Some(array), Role::Param(Access::Write)) => Arg::Write(array.any_mut()),
                (Some(array), _) => Arg::Read(array),
                (None, _) => Arg::Scalar(Literal::from(false)),
            },
        });
    }
    let _done = compiled.launch(args)?;
    Ok(arrays.iter().map(|a| a.bytes().to_vec()).collect())
}

/// The elements of raw bytes as literals, every NaN the same.
pub fn literals(ty: Type, bytes: &[u8]) -> Vec<Literal> {
    let literal = |chunk: &[u8]| {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        one_nan(Literal::from_bits(ty, u64::from_le_bytes(eight)))
    };
    bytes.chunks_exact(ty.size()).map(literal).collect()
}

/// The literal, or the one NaN of its type if it is any NaN.
pub fn one_nan(literal: Literal) -> Literal {
    if literal.to_f64().is_nan() { Literal::of(literal.ty(), f64::NAN) } else { literal }
}
