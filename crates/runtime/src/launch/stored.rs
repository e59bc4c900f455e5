//! Yields on disk: one snapshot file, resumed by whoever has the same program.
//!
//! The file is a checkpoint (`safetensors`, versioned, every byte checksummed) whose position is the place, whose
//! program is the program's hash, and whose arrays are what is known there: values by their canonical number
//! ([`Program::numbering`]), which programs of one hash share, and locals as bits, the bounds of loops, and the temporaries.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use ebbtide_checkpoint::{Checkpoint, State};
use ebbtide_ir::{
    ArrayId, Entry, LAWS, LocalId, LoopKind, Made, Place, Program, Role, Scalars, Stmt, Type, ValueId,
    enclosing,
};
use ebbtide_snapshot::{self as snapshot, fs::Disks};

use crate::device::frame::Temp;
use crate::error::{Error, Result};
use crate::launch::yielded::{Yielded, entry, unused};
use crate::memory::by_type::by_type;
use crate::memory::codec::{ByteOrder, elements, put_elements};
use crate::memory::meter::Meter;

/// Changes when the meaning of the arrays in the file does.
const VERSION: u32 = 3;

impl Yielded {
    /// Writes it to a file, from which [`Compiled::load`](crate::Compiled::load) reads it back, in this process or
    /// another. The file is complete, and safe against a power cut, when this returns; one that has this name
    /// already is replaced in one move.
    ///
    /// The caller's arrays are not part of it: who resumes in another process brings them.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let label = snapshot::Label::of_no_run(self.program.hash().to_string());
        Ok(snapshot::write_snapshot(&Disks, path.as_ref(), &label, &self.checkpoint()?)?)
    }

    fn checkpoint(&self) -> Result<Checkpoint> {
        let entry = entry(&self.program, self.place.region)?;
        let known = self.known(&entry);
        let mut checkpoint = Checkpoint::at(self.position());
        let state = &mut checkpoint.state;
        state.put_scalar("yielded", VERSION)?;
        state.put_scalar("laws", LAWS)?;
        state.put("engine", env!("CARGO_PKG_VERSION").as_bytes())?;
        state.put_scalar("reason", self.reason)?;
        state.put_scalar("kept", self.kept as u64)?;
        let numbering = self.program.numbering();
        let numbered = known.values.iter().filter_map(|v| Some((numbering.number(*v)?, *v)));
        // In the order of their numbers, so that programs of one hash write one file.
        let numbered: BTreeMap<usize, ValueId> = numbered.collect();
        let values: Vec<u64> =
            numbered.iter().flat_map(|(n, v)| [*n as u64, self.scalars.values[v.index()]]).collect();
        state.put_shaped("values", &[values.len() / 2, 2], &values)?;
        let locals: Vec<u64> =
            known.locals.iter().flat_map(|l| [l.index() as u64, self.scalars.locals[l.index()]]).collect();
        state.put_shaped("locals", &[locals.len() / 2, 2], &locals)?;
        let bounds: Vec<i64> = entry.loops.iter().flat_map(|l| self.scalars.bounds[l.index()]).collect();
        state.put_shaped("bounds", &[entry.loops.len(), 2], &bounds)?;
        for temp in self.temps.iter().filter(|temp| known.temps.contains(&temp.array)) {
            put_temp(&self.program, state, temp)?;
        }
        Ok(checkpoint)
    }

    /// All that is known at its place.
    fn known(&self, entry: &Entry) -> Made {
        match &self.known {
            Some(known) => Made::clone(known),
            None => {
                let mut known = entry.visible.clone();
                known.temps.extend(&entry.needed.temps);
                known
            }
        }
    }
}

/// Several temporaries may have one name.
fn temp_name(program: &Program, array: ArrayId) -> String {
    format!("temp.{}.{}", array.index(), program.array(array).name)
}

fn put_temp(program: &Program, state: &mut State, temp: &Temp) -> Result<()> {
    let decl = program.array(temp.array);
    let shape: Vec<usize> = temp.shape[..decl.rank].iter().map(|extent| *extent as usize).collect();
    let name = temp_name(program, temp.array);
    macro_rules! put {
        ($t:ty) => {{ state.put_shaped(&name, &shape, &elements::<$t>(temp.buffer.bytes(), ByteOrder::MEMORY))? }};
    }
    by_type!(decl.ty, put);
    Ok(())
}

fn get_temp(program: &Program, state: &State, array: ArrayId, meter: &Arc<Meter>) -> Result<Option<Temp>> {
    let decl = program.array(array);
    let name = temp_name(program, array);
    let Some(view) = state.array(&name) else { return Ok(None) };
    if view.shape.len() != decl.rank {
        return Err(Error::launch(program, format!("`{name}` in the file has rank {}", view.shape.len())));
    }
    let mut temp = Temp::zeroed(program, array, view.shape, meter)?;
    macro_rules! get {
        ($t:ty) => {{
            let elements = state.get_vec::<$t>(&name)?;
            put_elements(temp.buffer.bytes_mut(), &elements, ByteOrder::MEMORY);
        }};
    }
    by_type!(decl.ty, get);
    Ok(Some(temp))
}

/// Reads a yield of this program.
pub(crate) fn load(program: &Arc<Program>, path: &Path, meter: &Arc<Meter>) -> Result<Yielded> {
    let mut checkpoint = Checkpoint::default();
    let label = snapshot::read_snapshot(&Disks, path, &mut checkpoint)?;
    let Checkpoint { position, state } = checkpoint;
    let fail = |what: &str| Error::launch(program, format!("{} cannot be resumed: {what}", path.display()));
    match state.scalar::<u32>("yielded") {
        Ok(VERSION) => {}
        Ok(version) => {
            let engine = state.get_vec::<u8>("engine").unwrap_or_default();
            let engine = String::from_utf8_lossy(&engine).into_owned();
            let by = if engine.is_empty() { engine } else { format!(", written by Ebbtide {engine}") };
            return Err(fail(&format!("its version is {version}{by}; this one reads {VERSION}")));
        }
        Err(_) => return Err(fail("it is a snapshot, but not of a yielded program")),
    }
    let laws = state.scalar::<u32>("laws")?;
    if laws != LAWS {
        let engine = String::from_utf8_lossy(&state.get_vec::<u8>("engine")?).into_owned();
        let other = snapshot::Error::OtherLaws { path: path.to_path_buf(), then: laws, now: LAWS, engine };
        return Err(other.into());
    }
    let hash = program.hash().to_string();
    if label.program != hash {
        return Err(fail(&format!(
            "it belongs to another program, or to another version of this one (hash {}, expected {hash})",
            label.program
        )));
    }
    let mut scalars = Scalars::of(program);
    let mut known = Made::default();
    check_shapes(program, &state).map_err(|what| fail(&what))?;
    let numbering = program.numbering();
    known.values.extend(unused(program, &numbering));
    for pair in state.get_vec::<u64>("values")?.chunks_exact(2) {
        let v = numbering.values().get(pair[0] as usize);
        let v = *v.ok_or_else(|| fail("it has a value of no program"))?;
        scalars.values[v.index()] = plain(program.ty(v), pair[1]);
        known.values.insert(v);
    }
    for pair in state.get_vec::<u64>("locals")?.chunks_exact(2) {
        let decl =
            program.locals.get(pair[0] as usize).ok_or_else(|| fail("it has a local of no program"))?;
        scalars.locals[pair[0] as usize] = plain(decl.ty, pair[1]);
        known.locals.insert(LocalId::from_index(pair[0] as usize));
    }
    // The bounds say which iteration is which: they come before the place.
    let bounds = state.get_vec::<i64>("bounds")?;
    let wrong_place = || fail(&format!("there is no region at {position}"));
    let target =
        Place::at_position(program, &position, &Scalars::of(program)).ok_or_else(wrong_place)?.region;
    let entry = entry(program, target)?;
    if bounds.len() != 2 * entry.loops.len() {
        return Err(fail("it has bounds of other loops"));
    }
    for (id, pair) in entry.loops.iter().zip(bounds.chunks_exact(2)) {
        scalars.bounds[id.index()] = [pair[0], pair[1]];
    }
    let place = Place::at_position(program, &position, &scalars).ok_or_else(wrong_place)?;
    let kept = state.scalar::<u64>("kept")?;
    let kept = usize::try_from(kept).ok().filter(|kept| *kept <= entry.loops.len());
    let kept = kept.ok_or_else(|| fail("it has more loops than its position"))?;
    if !within_bounds(program, &place, &scalars, kept) {
        return Err(fail(&format!("{position} names iterations that its loops do not have")));
    }
    let mut temps = Vec::new();
    for array in program.array_ids().filter(|a| matches!(program.array(*a).role, Role::Temp(_))) {
        if let Some(temp) = get_temp(program, &state, array, meter)? {
            known.temps.insert(array);
            temps.push(temp);
        }
    }
    let missing = entry.derive(program, &known, kept).missing;
    if !missing.is_empty() {
        return Err(fail(&format!("it lacks {}", missing.join(", "))));
    }
    Ok(Yielded {
        program: program.clone(),
        place,
        reason: state.scalar("reason")?,
        scalars,
        temps: Arc::new(temps),
        known: Some(Arc::new(known)),
        kept,
        shortage: None,
    })
}

/// Every array of the file must be one that a yield of this program has, in a shape that it can have there.
fn check_shapes(program: &Program, state: &State) -> std::result::Result<(), String> {
    let temps: Vec<String> = program
        .array_ids()
        .filter(|a| matches!(program.array(*a).role, Role::Temp(_)))
        .map(|a| temp_name(program, a))
        .collect();
    for array in state.arrays() {
        let fits = match array.name {
            "yielded" | "laws" | "reason" | "kept" => array.shape.is_empty(),
            "engine" => array.shape.len() == 1,
            "values" | "locals" | "bounds" => matches!(array.shape, [_, 2]),
            name => temps.iter().any(|temp| temp == name),
        };
        if !fits {
            return Err(format!("`{}` of shape {:?} is not of this program", array.name, array.shape));
        }
    }
    Ok(())
}

/// Bits as a value of this type has them.
pub(crate) fn plain(ty: Type, bits: u64) -> u64 {
    match ty {
        Type::Bool => u64::from(bits != 0),
        Type::F32 | Type::I32 | Type::U32 => u64::from(bits as u32),
        Type::F64 | Type::I64 | Type::Index => bits,
    }
}

/// Is each iteration of the loops that continue one that the loop can be in?
fn within_bounds(program: &Program, place: &Place, scalars: &Scalars, kept: usize) -> bool {
    let loops = enclosing(program, place.region).into_iter().filter_map(|stmt| match stmt {
        Stmt::Loop(l) => Some(l),
        _ => None,
    });
    loops.zip(&place.iterations).enumerate().all(|(depth, (l, iteration))| {
        let [from, to] = scalars.bounds[l.id.index()];
        let iteration = i64::try_from(*iteration).ok();
        match l.kind {
            _ if depth >= kept => iteration == Some(0),
            // A run that moved into a loop is in its first iteration, even if the loop has none.
            LoopKind::For { .. } if iteration == Some(0) => true,
            LoopKind::For { .. } => {
                iteration.and_then(|iteration| from.checked_add(iteration)).is_some_and(|at| at < to)
            }
            _ => iteration.is_some(),
        }
    })
}
