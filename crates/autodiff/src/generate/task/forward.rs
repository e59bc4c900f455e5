//! The body of a parallel loop run forward once more, without its writes.

use ebbtide_ir::{Block, Branch, Combine, Op, Stmt, Store};

use super::replay::Iterations;
use super::{Purpose, Task};
use crate::error::Error;
use crate::generate::extremes::find;
use crate::writer::Writer;

impl Task<'_> {
    pub(super) fn forward(&mut self, w: &mut Writer, block: &[Stmt]) -> Result<(), Error> {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    let new = match (self.forwarding.forwarded.get(v), *self.source.op(*v)) {
                        (Some(stored), _) => self.mapped(*stored),
                        (None, _) if self.forwarding.left.contains_key(v) => {
                            let (array, index) = self.forwarding.left[v];
                            w.load(array, self.index(index), self.source.value(*v).site.clone())
                        }
                        (None, Op::Load(array, index)) if self.copies.contains_key(&array) => {
                            self.load_copy(w, *v, self.copies[&array], index)?
                        }
                        (None, Op::Load(array, index)) if self.forwarding.compared.contains_key(v) => {
                            self.load_compared(w, *v, array, index)
                        }
                        (None, Op::Get(local)) => match self.locals.get(&local) {
                            Some(new) => w.get(*new),
                            None => w.get(local),
                        },
                        (None, op) => {
                            let decl = self.source.value(*v);
                            let id =
                                w.program.add_value(op.map(|o| self.mapped(o)), decl.ty, decl.site.clone());
                            w.program.values[id.index()].name.clone_from(&decl.name);
                            w.push(Stmt::Let(id));
                            id
                        }
                    };
                    self.map.insert(*v, new);
                }
                Stmt::Declare(local, v) => {
                    let new = w.local(&self.source.locals[local.index()].name, self.mapped(*v));
                    self.locals.insert(*local, new);
                }
                Stmt::Set(local, v) => {
                    let new = self.locals.get(local).copied().unwrap_or(*local);
                    w.push(Stmt::Set(new, self.mapped(*v)));
                }
                Stmt::If(branch) => {
                    let condition = self.mapped(branch.condition);
                    let mut arms = [Block::new(), Block::new()];
                    for (arm, block) in arms.iter_mut().zip([&branch.then, &branch.otherwise]) {
                        self.look_anew();
                        w.begin();
                        self.forward(w, block)?;
                        *arm = w.end();
                    }
                    self.look_anew();
                    let [then, otherwise] = arms;
                    w.push(Stmt::If(Branch { condition, then, otherwise }));
                }
                Stmt::Loop(l) => self.forward_loop(w, l, Iterations::Forgotten)?,
                Stmt::Update(how @ (Combine::Min | Combine::Max), s) => self.forward_extreme(w, *how, s),
                Stmt::Store(s) | Stmt::Update(_, s) if self.again && self.copies.contains_key(&s.array) => {}
                Stmt::Store(s) if self.store_in_run(w, None, s) => {}
                Stmt::Update(how, s) if self.store_in_run(w, Some(*how), s) => {}
                Stmt::Store(s) if self.copies.contains_key(&s.array) => {
                    let array = self.copies[&s.array];
                    w.store(array, self.index(s.index), self.mapped(s.value), s.site.clone());
                }
                Stmt::Update(how, s) if self.copies.contains_key(&s.array) => {
                    let (index, value) = (self.index(s.index), self.mapped(s.value));
                    w.push(Stmt::Update(
                        *how,
                        Store { array: self.copies[&s.array], index, value, ..s.clone() },
                    ));
                }
                // Other writes are not repeated.
                _ => {}
            }
        }
        Ok(())
    }

    fn forward_extreme(&mut self, w: &mut Writer, how: Combine, s: &Store) {
        let (index, value) = (self.index(s.index), self.mapped(s.value));
        match self.purpose {
            Purpose::Find(extremes) => {
                if let Some(extreme) = extremes.get(&s.array) {
                    find(w, *extreme, how, &Store { index, value, ..s.clone() });
                }
            }
            Purpose::Count(extremes) => {
                if let Some(extreme) = extremes.get(&s.array) {
                    extreme.count(w, index, value, s.site.clone());
                }
            }
            _ => {}
        }
    }
}
