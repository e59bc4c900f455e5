//! Copies of the caller's arrays.

use ebbtide_ir::{Access, Param, Program, Role, Stmt, ValueId};

use crate::analysis::effects::is_written_param;
use crate::writer::Writer;

/// The caller's arrays are only read: what the program writes are copies.
pub(crate) fn working_copies(source: &Program, w: &mut Writer) {
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
        let shape: Vec<ValueId> = (0..decl.rank).map(|k| w.dim(given, k)).collect();
        let working = &mut w.program.arrays[a.index()];
        working.name = format!("{}'", decl.name);
        working.role = Role::Temp(shape);
        w.push(Stmt::Temp(a));
        w.push(Stmt::Copy { from: given, to: a });
    }
}
