//! What statements change, with all that stands in them.
//!
//! A loop is asked for it once for each loop around it. So what is found of a statement is kept: what a nest of loops costs grows
//! with its size, and not with its size times its depth.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::syntax::*;

/// What a statement changes.
#[derive(Default)]
pub(super) struct Changed {
    /// Local variables that it sets or declares, but for those that its blocks declare: nobody behind it knows them.
    pub locals: BTreeSet<LocalId>,
    /// Arrays whose contents are others after it.
    pub arrays: BTreeSet<ArrayId>,
    /// May a host or a driver change anything in between?
    pub anything: bool,
}

/// What the statements of one program change, by their address: the program stays as it is while this exists.
#[derive(Default)]
pub(super) struct Changes(HashMap<*const Stmt, Rc<Changed>>);

impl Changes {
    /// The depth of recursion is that of nesting in the source.
    pub fn of(&mut self, stmt: &Stmt) -> Rc<Changed> {
        if let Some(known) = self.0.get(&std::ptr::from_ref(stmt)) {
            return known.clone();
        }
        let mut changed = Changed::default();
        match stmt {
            Stmt::Set(local, _) | Stmt::Declare(local, _) => drop(changed.locals.insert(*local)),
            Stmt::Store(s) | Stmt::Update(_, s) => drop(changed.arrays.insert(s.array)),
            Stmt::Fill(a, ..) | Stmt::Copy { to: a, .. } => drop(changed.arrays.insert(*a)),
            Stmt::Swap(a, b) => changed.arrays.extend([*a, *b]),
            Stmt::Library(call) => changed.arrays.extend(&call.writes),
            Stmt::Temp(a) | Stmt::Pop(a) => drop(changed.arrays.insert(*a)),
            Stmt::Push(push) => drop(changed.arrays.insert(push.array)),
            Stmt::Claim(claim) => drop(changed.arrays.insert(claim.taken)),
            // What the host or a driver does in between is not known.
            Stmt::Host(..) | Stmt::Forward(_) | Stmt::Backward(_) => changed.anything = true,
            Stmt::Region(region) => changed.anything = region.flag.is_some(),
            Stmt::Let(_) | Stmt::If(_) | Stmt::Loop(_) | Stmt::Par(_) | Stmt::Call(_) => {}
        }
        let mut declared = Vec::new();
        for inner in stmt.blocks().flatten().filter(|inner| !matches!(inner, Stmt::Let(_))) {
            declared.extend(if let Stmt::Declare(local, _) = inner { Some(*local) } else { None });
            let inner = self.of(inner);
            changed.locals.extend(&inner.locals);
            changed.arrays.extend(&inner.arrays);
            changed.anything |= inner.anything;
        }
        for local in &declared {
            changed.locals.remove(local);
        }
        let changed = Rc::new(changed);
        self.0.insert(stmt, changed.clone());
        changed
    }
}
