//! Copies of the caller's arrays.

use std::collections::BTreeMap;

use ebbtide_ir::{Access, ArrayId, Param, Program, Role, Stmt, SwappedShapes, ValueId};

use crate::analysis::effects::is_written_param;
use crate::analysis::subarray::Subarray;
use crate::generate::outside::outside;
use crate::writer::Writer;

/// The caller's arrays are only read: what the program writes are copies. Of arrays of which a part is `written_first` the rest is
/// copied.
pub(crate) fn working_copies(source: &Program, w: &mut Writer, written_first: &BTreeMap<ArrayId, Subarray>) {
    let mut parts: Vec<(ArrayId, ArrayId, &Subarray)> = Vec::new();
    let mut copied: BTreeMap<ArrayId, ArrayId> = BTreeMap::new();
    for param in &source.params {
        let Param::Array(a) = *param else {
            w.program.params.push(*param);
            continue;
        };
        if !is_written_param(source, a) {
            w.program.params.push(*param);
            continue;
        }
        let decl = source.array(a).clone();
        let given = w.array(decl.name.clone(), decl.ty, decl.rank, Role::Param(Access::Read));
        w.program.params.push(Param::Array(given));
        copied.insert(a, given);
        let shape: Vec<ValueId> = (0..decl.rank).map(|k| w.dim(given, k)).collect();
        let working = &mut w.program.arrays[a.index()];
        working.name = format!("{}'", decl.name);
        working.role = Role::Temp(shape);
        w.push(Stmt::Temp(a));
        match written_first.get(&a) {
            Some(part) => {
                w.program.undefined.insert(a);
                parts.push((given, a, part));
            }
            None => w.copy(given, a),
        }
    }
    // What is alike is so in the caller's arrays.
    let swaps = match source.swapped {
        SwappedShapes::Equal if !source.yields() => source.swaps(),
        _ => Vec::new(),
    };
    let given = |a: &ArrayId| copied.get(a).copied().unwrap_or(*a);
    let pairs = source.alike.iter().chain(&swaps).map(|(a, b)| (given(a), given(b)));
    w.program.alike.extend(pairs);
    // Bounds may be extents of other arrays: all of them are known now.
    for (given, a, part) in parts {
        outside(source, w, (a, a), part, |w, index| {
            let held = w.load(given, index, None);
            w.store(a, index, held, None);
        });
    }
}
