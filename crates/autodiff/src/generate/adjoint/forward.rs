//! The forward half of a gradient program: the program with its tape.

use std::collections::{BTreeSet, HashMap};

use ebbtide_ir::{
    After, ArrayId, Binary, Block, Branch, Combine, Compare, Forward, Length, Literal, LocalId, Loop,
    LoopKind, Op, Push, Role, Stmt, Type, Unary, ValueId,
};

use crate::analysis::dead_on_entry::dead_on_entry;
use crate::analysis::effects::{changes, reads, reads_of};
use crate::analysis::extremes::extreme_arrays;
use crate::error::Error;
use crate::generate::adjoint::{Aside, Maker};
use crate::generate::record::Recorder;
use crate::gradient::{Inner, pushes};
use crate::request::Optimisation;
use crate::writer::Writer;
use crate::writer::rename::rename;

impl Maker<'_> {
    pub(crate) fn recorder(&self) -> Recorder<'_> {
        Recorder {
            source: self.source,
            affines: self.affines,
            needed: self.needed,
            pars: self.pars,
            exchanges: self.uses(Optimisation::TapeByExchange),
            position: self.position,
        }
    }

    /// Writes statements with their tape.
    pub(crate) fn forward(&mut self, w: &mut Writer, block: &[Stmt]) -> Result<(), Error> {
        for (k, stmt) in block.iter().enumerate() {
            match stmt {
                Stmt::Let(v) => {
                    w.push(stmt.clone());
                    if self.nested && self.cannot_repeat(*v) {
                        let array = self.aside(w, Aside::Value(*v), self.source.ty(*v));
                        w.store(array, Writer::no_index(), *v, None);
                        w.push(Stmt::Push(Push { array, after: After::Same }));
                    }
                }
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    if self.puts_aside(block, k) {
                        let old = w.load(s.array, s.index, s.site.clone());
                        let array =
                            self.aside(w, Aside::Element(s.array, s.value), self.source.array(s.array).ty);
                        w.store(array, Writer::no_index(), old, None);
                        w.push(Stmt::Push(Push { array, after: After::Same }));
                    }
                    w.push(stmt.clone());
                }
                Stmt::Fill(a, _) | Stmt::Copy { to: a, .. } => {
                    if self.needed.before(*a, self.position) {
                        w.push(Stmt::Push(Push { array: *a, after: After::Same }));
                    }
                    w.push(stmt.clone());
                }
                Stmt::Par(par) => self.recorder().par(w, par),
                Stmt::Library(call) => self.recorder().library(w, call),
                Stmt::If(branch) => {
                    let outer = std::mem::replace(&mut self.nested, true);
                    w.begin();
                    self.forward(w, &branch.then)?;
                    let then = w.end();
                    w.begin();
                    self.forward(w, &branch.otherwise)?;
                    let otherwise = w.end();
                    self.nested = outer;
                    w.push(Stmt::If(Branch { condition: branch.condition, then, otherwise }));
                }
                Stmt::Loop(l) => self.forward_loop(w, l)?,
                Stmt::Region(region) => self.forward_region(w, region),
                _ => w.push(stmt.clone()),
            }
        }
        Ok(())
    }

    fn forward_loop(&mut self, w: &mut Writer, l: &Loop) -> Result<(), Error> {
        if !self.nested {
            for array in self.around(l) {
                w.push(Stmt::Push(Push { array, after: After::Same }));
            }
            return self.forward_half(w, l);
        }
        match (self.inner, &l.kind) {
            // It will be run again from here when this pass is reversed.
            (Inner::Swept, _) => {
                for array in self.loop_entry(l) {
                    w.push(Stmt::Push(Push { array, after: After::Same }));
                }
                w.push(Stmt::Loop(l.clone()));
            }
            (Inner::Recorded, LoopKind::For { .. }) if l.until.is_none() => {
                w.begin();
                self.forward(w, &l.body)?;
                let body = w.end();
                w.push(Stmt::Loop(Loop { body, schedule: None, ..l.clone() }));
            }
            (Inner::Recorded, _) => {
                return Err(self.unsupported("a loop of unknown length whose tape is part of another's"));
            }
        }
        Ok(())
    }

    /// The forward half of a loop under a schedule.
    pub(crate) fn forward_half(&mut self, w: &mut Writer, l: &Loop) -> Result<(), Error> {
        let outer = std::mem::replace(&mut self.nested, true);
        w.begin();
        self.forward(w, &l.body)?;
        let recording = w.end();
        self.nested = outer;
        self.pushes.insert(l.id, pushes(&recording));
        let piece = (w.loop_var("from"), w.loop_var("to"));
        self.pieces.insert(l.id, piece);
        let (length, [advance, record]) = match l.kind {
            LoopKind::For { var, from, to } if self.has_known_length(l) => {
                let run = |body: Block| {
                    let kind = LoopKind::For { var, from: piece.0, to: piece.1 };
                    let plain = Loop { id: l.id, kind, body, until: None, schedule: None };
                    rename(w, vec![Stmt::Loop(plain)], &mut self.env.clone())
                };
                (Length::Known(self.known(from), self.known(to)), [l.body.clone(), recording].map(run))
            }
            _ => {
                let ends = (w.declare("reached", Type::Index), w.declare("ended", Type::Bool));
                let run = |body: Block| self.unknown_passes(w, l, piece, ends, body);
                let (reached, ended) = ends;
                (Length::Unknown { reached, ended }, [l.body.clone(), recording].map(run))
            }
        };
        let (carried, schedule) = (self.kept_in_slots(l), l.schedule);
        w.push(Stmt::Forward(Forward {
            id: l.id,
            length,
            from: piece.0,
            to: piece.1,
            carried,
            advance,
            record,
            schedule,
        }));
        Ok(())
    }

    /// Is the number of passes known before the program starts?
    pub(crate) fn has_known_length(&self, l: &Loop) -> bool {
        let known = |v| ebbtide_ir::depends_on_arguments_alone(self.source, v);
        matches!(l.kind, LoopKind::For { from, to, .. } if l.until.is_none() && known(from) && known(to))
    }

    /// Runs passes of a loop until it ends, or the piece does; says how far it came.
    pub(crate) fn unknown_passes(
        &self,
        w: &mut Writer,
        l: &Loop,
        piece: (ValueId, ValueId),
        (reached, ended): (LocalId, LocalId),
        mut body: Block,
    ) -> Block {
        let mut until = l.until;
        w.begin();
        w.push(Stmt::Declare(reached, piece.0));
        let no = w.literal(Literal::from(false));
        w.push(Stmt::Declare(ended, no));
        w.begin();
        let at = w.get(reached);
        let mut goes_on = w.compare(Compare::Lt, at, piece.1);
        let source_head: Block = match &l.kind {
            LoopKind::While { head, .. } => head.clone(),
            _ => Block::new(),
        };
        source_head.into_iter().for_each(|stmt| w.push(stmt));
        let condition = match l.kind {
            LoopKind::While { condition, .. } => Some(condition),
            LoopKind::For { from, to, .. } => {
                let var = w.add(from, at);
                Some(w.compare(Compare::Lt, var, to))
            }
            LoopKind::Forever => None,
        };
        if let Some(condition) = condition {
            goes_on = w.value(Op::Binary(Binary::And, goes_on, condition), Type::Bool);
        }
        let over = w.get(ended);
        let not_over = w.unary(Unary::Not, over);
        goes_on = w.value(Op::Binary(Binary::And, goes_on, not_over), Type::Bool);
        let head = w.end();
        w.begin();
        if let LoopKind::For { var, from, .. } = l.kind {
            // The loop variable is computed here, where the loop counted it before.
            let at = w.get(reached);
            let counted = w.add(from, at);
            w.program.values[counted.index()].name.clone_from(&self.source.value(var).name);
            let mut map = HashMap::from([(var, counted)]);
            body = rename(w, body, &mut map);
            until = until.map(|v| map.get(&v).copied().unwrap_or(v));
        }
        body.into_iter().for_each(|stmt| w.push(stmt));
        let (at, one) = (w.get(reached), w.index(1));
        let next = w.add(at, one);
        w.push(Stmt::Set(reached, next));
        if let Some(until) = until {
            w.push(Stmt::Set(ended, until));
        }
        let body = w.end();
        let kind = LoopKind::While { head, condition: goes_on };
        w.push(Stmt::Loop(Loop { id: l.id, kind, body, until: None, schedule: None }));
        // Stopped before the end of the piece: the loop is over.
        let at = w.get(reached);
        let short = w.compare(Compare::Lt, at, piece.1);
        let over = w.get(ended);
        let over = w.value(Op::Binary(Binary::Or, over, short), Type::Bool);
        w.push(Stmt::Set(ended, over));
        let passes = w.end();
        rename(w, passes, &mut self.env.clone())
    }

    /// What a slot holds: what is carried, but for what a pass replaces before anything reads it.
    fn kept_in_slots(&self, l: &Loop) -> Vec<ArrayId> {
        let mut carried = self.carried(l);
        // What stands before the loop may want back what the loop replaced, and of a loop inside another that is
        // not known.
        if matches!(&self.source.body[self.position], Stmt::Loop(top) if top.id == l.id) {
            let replaced = match self.uses(Optimisation::TrimSlots) {
                true => dead_on_entry(self.source, self.affines, l),
                false => BTreeSet::new(),
            };
            carried.retain(|a| !replaced.contains(a) || self.needed.earlier(*a, self.position));
        } else {
            // Passes that run again record what they overwrite: they must find what the loop found.
            let wanted = self.wanted_back(&l.body).filter(|a| !carried.contains(a));
            carried.extend(wanted.collect::<Vec<_>>());
        }
        carried
    }

    /// What passes hand on: arrays that the loop writes and that a later pass, or the adjoint, reads.
    pub(crate) fn carried(&self, l: &Loop) -> Vec<ArrayId> {
        let classes = crate::analysis::effects::swap_classes(self.source);
        let read: BTreeSet<ArrayId> = reads(self.source, l).iter().map(|a| classes[a]).collect();
        // Where everything is recorded, a pass that runs again must find everything as it was.
        let carried = |a: &ArrayId| self.needed.everything || read.contains(&classes[a]);
        changes(self.source, &l.body).into_iter().filter(carried).collect()
    }

    /// Arrays that are recorded once before a loop that overwrites them, for what stands before it.
    pub(crate) fn around(&self, l: &Loop) -> Vec<ArrayId> {
        changes(self.source, &l.body).into_iter().filter(|a| self.needed.around(*a, self.position)).collect()
    }

    /// What a loop inside a recorded pass needs to be run again: it is recorded on entry.
    pub(crate) fn loop_entry(&self, l: &Loop) -> Vec<ArrayId> {
        let mut read = reads(self.source, l);
        read.extend(self.carried(l));
        self.entry(read, &l.body)
    }

    /// What a block that reads these arrays needs to be run again.
    pub(crate) fn entry(&self, read: BTreeSet<ArrayId>, block: &Block) -> Vec<ArrayId> {
        let classes = crate::analysis::effects::swap_classes(self.source);
        let whole = std::slice::from_ref(&self.source.body[self.position]).to_vec();
        let changing: BTreeSet<ArrayId> = changes(self.source, &whole).iter().map(|a| classes[a]).collect();
        let mut touched = read;
        touched.extend(self.wanted_back(block));
        touched.into_iter().filter(|a| changing.contains(&classes[a])).collect()
    }

    /// What a block overwrites and the reversal reads.
    fn wanted_back(&self, block: &Block) -> impl Iterator<Item = ArrayId> {
        changes(self.source, block).into_iter().filter(|a| self.needed.before(*a, self.position))
    }

    /// Is the value made of data that a later pass overwrites?
    pub(crate) fn cannot_repeat(&self, v: ValueId) -> bool {
        match self.source.op(v) {
            Op::Get(_) => true,
            Op::Load(a, _) => {
                let classes = crate::analysis::effects::swap_classes(self.source);
                changes(self.source, &self.source.body).iter().any(|b| classes[a] == classes[b])
            }
            _ => false,
        }
    }

    /// Must the element that the program-level write `block[at]` replaces be put aside? Not where its array comes back
    /// from the tape whole, on the way back, before anything reads it.
    pub(crate) fn puts_aside(&self, block: &[Stmt], at: usize) -> bool {
        let Some(Stmt::Store(s) | Stmt::Update(_, s)) = block.get(at) else { return false };
        if !self.needed.before(s.array, self.position) {
            return false;
        }
        // Who won is told from what was there.
        let extreme = |stmt: &Stmt| matches!(stmt, Stmt::Update(Combine::Min | Combine::Max, _));
        if extreme(&block[at]) {
            return true;
        }
        let mut array = s.array;
        for stmt in block[..at].iter().rev() {
            match stmt {
                Stmt::Swap(a, b) if *a == array => array = *b,
                Stmt::Swap(a, b) if *b == array => array = *a,
                Stmt::Par(par) if self.recorder().pushed_by(par).contains(&array) => {
                    return extreme_arrays(self.activity, &par.body).contains(&array);
                }
                Stmt::Par(par) if !reads_of(self.source, &par.body).contains(&array) => {}
                Stmt::Fill(a, _) if *a == array => return false,
                // Their reversal reads no elements of the program's own arrays.
                Stmt::Let(_) | Stmt::Swap(..) | Stmt::Fill(..) | Stmt::Store(_) => {}
                Stmt::Update(..) if !extreme(stmt) => {}
                _ => return true,
            }
        }
        true
    }

    /// The array of rank 0 through which something goes on the tape.
    pub(crate) fn aside(&mut self, w: &mut Writer, what: Aside, ty: Type) -> ArrayId {
        if let Some(array) = self.kept.get(&what) {
            return *array;
        }
        let ty = if ty == Type::Index { Type::I64 } else { ty };
        let array = w.array(format!("aside{}", self.kept.len()), ty, 0, Role::Temp(Vec::new()));
        // Its memory exists for the whole launch; nothing reads it before it is written.
        self.kept.insert(what, array);
        array
    }
}
