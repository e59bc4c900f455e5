//! What is scattered into halos must reach its owner.
//!
//! - Input: a verified program and its facts.
//! - Output: a flaw for each array that is exchanged while it may hold, in its halos, what was scattered there.

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::dependence::{ParFacts, Sharing};
use crate::syntax::Flaw;
use crate::syntax::{ArrayId, Block, LoopKind, ParId, Program, Stmt};
use crate::syntax::{LibraryCall, LibraryOp};

use super::collective::Collective;

/// Names the first `exchange` that overwrites what was scattered into halos and not yet added to its owners.
pub fn check_scatters(program: &Program, pars: &BTreeMap<ParId, ParFacts>) -> Option<Flaw> {
    if !super::has_collectives(program) {
        return None;
    }
    let mut walk = Walk { program, pars, scattered: BTreeSet::new(), found: None };
    walk.block(&program.body);
    walk.found
}

struct Walk<'a> {
    program: &'a Program,
    pars: &'a BTreeMap<ParId, ParFacts>,
    /// Arrays with contributions of this part to what others own.
    scattered: BTreeSet<ArrayId>,
    found: Option<Flaw>,
}

impl Walk<'_> {
    /// The depth of recursion is the depth of nesting in the source.
    fn block(&mut self, block: &Block) {
        for stmt in block {
            match stmt {
                Stmt::Par(par) => {
                    let Some(facts) = self.pars.get(&par.id) else { continue };
                    for (array, sharing) in &facts.sharing {
                        if *sharing == Sharing::Scatter {
                            self.scattered.insert(*array);
                        }
                    }
                }
                Stmt::Swap(a, b) => {
                    let (had_a, had_b) = (self.scattered.remove(a), self.scattered.remove(b));
                    self.scattered.extend(had_a.then_some(*b));
                    self.scattered.extend(had_b.then_some(*a));
                }
                Stmt::Fill(a, ..) | Stmt::Temp(a) => drop(self.scattered.remove(a)),
                Stmt::Copy { from, to, .. } => {
                    self.scattered.remove(to);
                    self.scattered.extend(self.scattered.contains(from).then_some(*to));
                }
                Stmt::If(branch) => {
                    let before = self.scattered.clone();
                    self.block(&branch.then);
                    let then = std::mem::replace(&mut self.scattered, before);
                    self.block(&branch.otherwise);
                    self.scattered.extend(then);
                }
                // Twice: what one iteration scatters, the next may exchange.
                Stmt::Loop(l) => {
                    for _ in 0..2 {
                        if let LoopKind::While { head, .. } = &l.kind {
                            self.block(head);
                        }
                        self.block(&l.body);
                    }
                }
                Stmt::Region(region) => self.block(&region.body),
                Stmt::Call(call) => self.block(&call.body),
                Stmt::Library(call) => self.collective(call),
                _ => {}
            }
        }
    }

    fn collective(&mut self, call: &LibraryCall) {
        let LibraryOp::Custom(_) = call.op else { return };
        let name = self.program.operation(call).and_then(|operation| Collective::named(&operation.name));
        match name {
            Some(Collective::ExchangeAdd) => {
                for array in &call.writes {
                    self.scattered.remove(array);
                }
            }
            Some(Collective::Exchange) => {
                let lost = call.writes.iter().find(|array| self.scattered.contains(array));
                if let (Some(array), None) = (lost, &self.found) {
                    let name = &self.program.array(*array).name;
                    self.found = Some(Flaw {
                        law: "15",
                        message: format!(
                            "`{name}` takes a scatter, and `exchange` overwrites what was scattered into its halos: write \
                             `exchange_add({name})` first, which adds it to the parts that own those elements"
                        ),
                        site: call.site.clone(),
                    });
                }
            }
            _ => {}
        }
    }
}
