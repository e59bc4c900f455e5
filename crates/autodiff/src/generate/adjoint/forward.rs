//! The forward half of a gradient program: the program with its tape.

use std::collections::HashMap;

use ebbtide_ir::{
    After, ArrayId, Binary, Block, Branch, Compare, Forward, Length, Literal, LocalId, Loop, LoopKind, Op,
    Push, Role, Stmt, Type, Unary, ValueId,
};

use crate::analysis::effects::changes;
use crate::analysis::loop_length::counts;
use crate::error::Error;
use crate::generate::adjoint::AdjointBuilder;
use crate::generate::record::Recorder;
use crate::gradient::pushes;
use crate::plan::tape_plan::Aside;
use crate::request::Optimisation;
use crate::writer::Writer;
use crate::writer::rename::rename;

impl AdjointBuilder<'_> {
    pub(crate) fn recorder(&self) -> Recorder<'_> {
        Recorder {
            source: self.source,
            affines: self.affines,
            plan: self.plan,
            pars: self.pars,
            exchanges: self.uses(Optimisation::TapeByExchange),
            position: self.position,
        }
    }

    /// Writes statements with their tape.
    pub(crate) fn forward(&mut self, w: &mut Writer, block: &[Stmt]) -> Result<(), Error> {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    w.push(stmt.clone());
                    if self.plan.puts_aside(Aside::Value(*v)) {
                        let array = self.aside(w, Aside::Value(*v), self.source.ty(*v));
                        w.store(array, Writer::no_index(), *v, None);
                        w.push(Stmt::Push(Push { array, after: After::Same }));
                    }
                }
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    if self.plan.puts_aside(Aside::Element(s.id)) {
                        let old = w.load(s.array, s.index, s.site.clone());
                        let array = self.aside(w, Aside::Element(s.id), self.source.array(s.array).ty);
                        w.store(array, Writer::no_index(), old, None);
                        w.push(Stmt::Push(Push { array, after: After::Same }));
                    }
                    w.push(stmt.clone());
                }
                Stmt::Fill(a, ..) | Stmt::Copy { to: a, .. } => {
                    if self.plan.records_whole(stmt) {
                        w.push(Stmt::Push(Push { array: *a, after: After::Same }));
                    }
                    w.push(stmt.clone());
                }
                Stmt::Par(par) => self.forward_par(w, par),
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
        let plan = self.plan.loop_plan(l);
        if !self.nested {
            for array in plan.around {
                w.push(Stmt::Push(Push { array, after: After::Same }));
            }
            if !plan.recorded_whole {
                return self.forward_half(w, l);
            }
        }
        let outer = std::mem::replace(&mut self.nested, true);
        if plan.swept {
            // It will be run again from here when this iteration is reversed.
            for array in plan.entry {
                w.push(Stmt::Push(Push { array, after: After::Same }));
            }
            w.push(Stmt::Loop(l.clone()));
        } else if counts(l) {
            w.begin();
            self.forward(w, &l.body)?;
            let body = w.end();
            w.push(Stmt::Loop(Loop { body, schedule: None, ..l.clone() }));
        } else {
            self.forward_uncounted(w, l)?;
        }
        self.nested = outer;
        Ok(())
    }

    /// A loop that runs until something that it computes says that it is done: it counts its iterations, and puts their number on
    /// the tape behind what they put there.
    fn forward_uncounted(&mut self, w: &mut Writer, l: &Loop) -> Result<(), Error> {
        let (zero, one) = (w.index(0), w.index(1));
        let iterations = w.local("passes", zero);
        w.begin();
        self.forward(w, &l.body)?;
        let counted = w.get(iterations);
        let next = w.add(counted, one);
        w.push(Stmt::Set(iterations, next));
        let body = w.end();
        let recorded = pushes(&w.program, &body, None);
        if !self.is_reversed(l) && recorded.is_empty() {
            w.push(Stmt::Loop(l.clone()));
            return Ok(());
        }
        w.push(Stmt::Loop(Loop { body, schedule: None, ..l.clone() }));
        let array = self.aside(w, Aside::Iterations(l.id), Type::Index);
        let counted = w.get(iterations);
        let counted = w.cast(counted, Type::I64);
        w.store(array, Writer::no_index(), counted, None);
        w.push(Stmt::Push(Push { array, after: After::Same }));
        Ok(())
    }

    /// Does anything flow through the iterations of a loop?
    fn is_reversed(&self, l: &Loop) -> bool {
        changes(self.source, &l.body).iter().any(|array| self.activity.arrays.contains(array))
    }

    /// The forward half of a loop under a schedule.
    pub(crate) fn forward_half(&mut self, w: &mut Writer, l: &Loop) -> Result<(), Error> {
        let plan = self.plan.loop_plan(l);
        let outer = std::mem::replace(&mut self.nested, true);
        w.begin();
        self.forward(w, &l.body)?;
        let recording = w.end();
        self.nested = outer;
        let counted = match l.kind {
            LoopKind::For { var, .. } if plan.known_length => Some(var),
            _ => None,
        };
        self.pushes.insert(l.id, pushes(&w.program, &recording, counted));
        let piece = (w.loop_var("from"), w.loop_var("to"));
        self.pieces.insert(l.id, piece);
        let (length, [advance, record]) = match l.kind {
            LoopKind::For { var, from, to } if plan.known_length => {
                let run = |body: Block| {
                    let kind = LoopKind::For { var, from: piece.0, to: piece.1 };
                    let plain = Loop { id: l.id, kind, body, sums: Vec::new(), until: None, schedule: None };
                    rename(w, vec![Stmt::Loop(plain)], &mut self.env.clone())
                };
                (Length::Known(self.known(from), self.known(to)), [l.body.clone(), recording].map(run))
            }
            _ => {
                let ends = (w.declare("reached", Type::Index), w.declare("ended", Type::Bool));
                let run = |body: Block| self.unknown_iterations(w, l, piece, ends, body);
                let (reached, ended) = ends;
                (Length::Unknown { reached, ended }, [l.body.clone(), recording].map(run))
            }
        };
        let (carried, kept, schedule) = (plan.slots, plan.kept, l.schedule);
        w.push(Stmt::Forward(Forward {
            id: l.id,
            length,
            from: piece.0,
            to: piece.1,
            carried,
            kept,
            advance,
            record,
            schedule,
        }));
        Ok(())
    }

    /// Runs iterations of a loop until it ends, or the piece does; says how far it came.
    pub(crate) fn unknown_iterations(
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
        w.push(Stmt::Loop(Loop { id: l.id, kind, body, sums: Vec::new(), until: None, schedule: None }));
        // Stopped before the end of the piece: the loop is over.
        let at = w.get(reached);
        let short = w.compare(Compare::Lt, at, piece.1);
        let over = w.get(ended);
        let over = w.value(Op::Binary(Binary::Or, over, short), Type::Bool);
        w.push(Stmt::Set(ended, over));
        let iterations = w.end();
        rename(w, iterations, &mut self.env.clone())
    }

    /// The array of rank 0 through which something goes on the tape.
    pub(crate) fn aside(&mut self, w: &mut Writer, what: Aside, ty: Type) -> ArrayId {
        if let Some(array) = self.aside_arrays.get(&what) {
            return *array;
        }
        let ty = if ty == Type::Index { Type::I64 } else { ty };
        let array = w.array(format!("aside{}", self.aside_arrays.len()), ty, 0, Role::Temp(Vec::new()));
        // Its memory exists for the whole launch; nothing reads it before it is written.
        self.aside_arrays.insert(what, array);
        array
    }
}
