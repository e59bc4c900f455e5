//! Named arrays and scalars in a file: `safetensors`, versioned, every byte checksummed.

use std::path::Path;

use ebbtide_checkpoint::{ArrayView, Checkpoint, Dtype, State};
use ebbtide_ir::{Literal, Type};
use ebbtide_snapshot::{self as snapshot, fs::Disks};

use crate::array::arguments::Arg;
use crate::error::{Error, Result};
use crate::memory::by_type::by_type;
use crate::memory::codec::{ByteOrder, elements};
use crate::memory::element::Element;

fn dtype(ty: Type) -> Dtype {
    macro_rules! dtype {
        ($t:ty) => {
            <$t as ebbtide_checkpoint::Element>::DTYPE
        };
    }
    by_type!(ty, dtype)
}

/// The type, the shape and the bytes of a member; scalars have rank 0.
fn parts<'a>(arg: &'a Arg<'_>) -> (Type, &'a [usize], Option<&'a [u8]>) {
    match arg {
        Arg::Read(array) => (array.ty(), array.shape(), Some(array.bytes())),
        Arg::Write(array) => (array.ty(), array.shape(), Some(array.bytes())),
        Arg::Scalar(literal) => (literal.ty(), &[], None),
    }
}

/// Writes arrays and scalars under their names. The file is complete, and safe against a power cut, when this
/// returns; one that has this name already is replaced in one move.
pub fn save(path: &Path, members: &[(String, Arg<'_>)]) -> Result<()> {
    let mut checkpoint = Checkpoint::default();
    let state = &mut checkpoint.state;
    for (name, arg) in members {
        let (ty, shape, bytes) = parts(arg);
        macro_rules! put {
            ($t:ty) => {{
                let elements: Vec<$t> = match (bytes, arg) {
                    (Some(bytes), _) => elements::<$t>(bytes, ByteOrder::MEMORY),
                    (None, Arg::Scalar(literal)) => {
                        vec![<$t>::from_literal(Literal::from_bits(<$t>::TYPE, literal.bits()))]
                    }
                    _ => Vec::new(),
                };
                state.put_shaped(name, shape, &elements)?
            }};
        }
        by_type!(ty, put);
    }
    let label = snapshot::Label::of_no_run("");
    Ok(snapshot::write_snapshot(&Disks, path, &label, &checkpoint)?)
}

/// Reads into arrays what [`save`] wrote, and gives the scalars in order. Names, types and shapes must be those of the
/// file, all of them; nothing changes where one is not.
pub fn load(path: &Path, members: &mut [(String, Arg<'_>)]) -> Result<Vec<Literal>> {
    let mut checkpoint = Checkpoint::default();
    snapshot::read_snapshot(&Disks, path, &mut checkpoint)?;
    let state = checkpoint.state;
    let misfits = misfits(&state, members);
    if !misfits.is_empty() {
        return Err(Error::WrongFile { path: path.to_path_buf(), misfits: misfits.join("; ") });
    }
    let mut scalars = Vec::new();
    for (name, arg) in members {
        let ty = parts(arg).0;
        macro_rules! get {
            ($t:ty) => {{
                let elements = state.get_vec::<$t>(name)?;
                match arg {
                    Arg::Write(array) => {
                        let places = array.as_mut_slice::<$t>().unwrap_or_default();
                        places.iter_mut().zip(elements).for_each(|(place, element)| *place = element);
                    }
                    _ => scalars
                        .extend(elements.first().map(|e| Literal::from_bits(ty, e.to_literal().bits()))),
                }
            }};
        }
        by_type!(ty, get);
    }
    Ok(scalars)
}

/// What of the file does not fit, one by one.
fn misfits(state: &State, members: &[(String, Arg<'_>)]) -> Vec<String> {
    let mut misfits = Vec::new();
    for (name, arg) in members {
        let (ty, shape, _) = parts(arg);
        match state.array(name) {
            None => misfits.push(format!("it has no `{name}`")),
            Some(ArrayView { dtype: found, .. }) if found != dtype(ty) => {
                misfits.push(format!("`{name}` is `{found}` in it, not `{}`", dtype(ty)));
            }
            Some(ArrayView { shape: found, .. }) if found != shape => {
                misfits.push(format!("`{name}` has shape {found:?} in it, not {shape:?}"));
            }
            Some(_) => {}
        }
    }
    let unknown = state.arrays().filter(|array| members.iter().all(|(name, _)| name != array.name));
    misfits.extend(unknown.map(|array| format!("there is no place for its `{}`", array.name)));
    misfits
}
