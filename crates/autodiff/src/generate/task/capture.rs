//! Bodies that read what they wrote: they are run over a copy of the array, and what each load found is kept for the way
//! back.

use ebbtide_ir::{
    ArrayId, Binary, Block, Indices, Literal, LocalId, Loop, LoopKind, Op, Program, Stmt, Type, ValueId,
    depends_on_arguments_alone, walk_program_level,
};

use super::Task;
use crate::error::Error;
use crate::plan::scratch_arrays::Places;
use crate::writer::Writer;

/// Where a load puts what it found, for when the block around it is run again.
#[derive(Clone, Debug)]
pub(super) enum Capture {
    Local(LocalId),
    /// A place for each pass of the loops around it.
    Tape(ArrayId),
}

/// A loop around what is written now: which pass it is in, and the bounds of all, as values of the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub pass: ValueId,
    pub bounds: (ValueId, ValueId),
}

/// A value that depends on arguments alone and is never less than an index that may be data.
fn above(source: &Program, v: ValueId) -> Option<ValueId> {
    let known = |v: &ValueId| depends_on_arguments_alone(source, *v);
    let positive = |v: ValueId| source.literal(v).and_then(Literal::to_i64).is_some_and(|c| c > 0);
    match *source.op(v) {
        _ if source.ty(v) != Type::Index => None,
        Op::Binary(Binary::Rem | Binary::RemEuclid, _, b)
            if positive(b) || matches!(source.op(b), Op::Dim(..)) =>
        {
            Some(b)
        }
        Op::Binary(Binary::Min, a, b) => [a, b].into_iter().find(known),
        _ => None,
    }
}

impl Task<'_> {
    /// Makes room for what the loads of copied arrays find inside of branches and loops.
    pub(super) fn make_room(&mut self, w: &mut Writer, body: &Block) -> Result<(), Error> {
        if self.copies.is_empty() {
            return Ok(());
        }
        for stmt in body {
            for block in stmt.blocks() {
                let outer: Vec<&Loop> = if let Stmt::Loop(l) = stmt { vec![l] } else { Vec::new() };
                self.make_room_in(w, block, &outer)?;
            }
        }
        Ok(())
    }

    /// The depth of recursion is that of nesting in the source.
    fn make_room_in(&mut self, w: &mut Writer, block: &Block, loops: &[&Loop]) -> Result<(), Error> {
        for stmt in block {
            if let Stmt::Let(v) = stmt
                && let Op::Load(array, _) = *self.source.op(*v)
                && self.copies.contains_key(&array)
            {
                let capture = self.room(w, *v, array, loops)?;
                self.captures.insert(*v, capture);
            }
            for inner in stmt.blocks() {
                let mut around = loops.to_vec();
                around.extend(if let Stmt::Loop(l) = stmt { Some(l) } else { None });
                self.make_room_in(w, inner, &around)?;
            }
        }
        Ok(())
    }

    fn room(
        &mut self,
        w: &mut Writer,
        v: ValueId,
        array: ArrayId,
        loops: &[&Loop],
    ) -> Result<Capture, Error> {
        let ty = self.source.ty(v);
        if loops.is_empty() {
            let zero = w.literal(Literal::from_bits(ty, 0));
            return Ok(Capture::Local(w.local("found", zero)));
        }
        let tape = self.widest(loops).and_then(|all| self.lasting(w, ty, &Places::Passes(all)));
        tape.map(Capture::Tape).ok_or_else(|| {
            self.unsupported(&format!(
                "a parallel loop that reads `{0}` after writing it, in an inner loop whose number of passes is not known \
                 from the arguments (read `{0}` into a variable before that loop, and write it after it)",
                self.source.array(array).name
            ))
        })
    }

    /// For each of the loops, one inside the other, bounds that hold its passes whatever iteration and pass it is in.
    fn widest(&mut self, loops: &[&Loop]) -> Option<Vec<(ValueId, ValueId)>> {
        let domain = self.store.as_ref()?.domain;
        let mut around: Vec<(ValueId, (ValueId, ValueId))> =
            domain.ranges.iter().map(|r| (r.var, (r.from, r.to))).collect();
        // Variables of the program's loops stay in ranges that are known from the start.
        walk_program_level(&self.source.body, &mut |stmt| {
            if let Stmt::Loop(Loop { kind: LoopKind::For { var, from, to }, .. }) = stmt
                && [from, to].iter().all(|v| depends_on_arguments_alone(self.source, **v))
            {
                around.push((*var, (*from, *to)));
            }
        });
        let mut all = Vec::new();
        for l in loops {
            let LoopKind::For { var, from, to } = l.kind else { return None };
            let known = |v: ValueId| depends_on_arguments_alone(self.source, v);
            // The variable of a loop around it, and what is added to it.
            let outer = |v: ValueId| match *domain.affines.form(v).terms.as_slice() {
                [(atom, 1)] => {
                    let at = around.iter().find(|(var, _)| *var == atom)?;
                    Some((at.1, domain.affines.form(v).constant))
                }
                _ => None,
            };
            let least = match outer(from) {
                _ if known(from) => from,
                Some((bounds, more)) if more >= 0 => bounds.0,
                _ => return None,
            };
            let most = match outer(to) {
                _ if known(to) => to,
                // The variable is below the end of its own loop.
                Some((bounds, more)) if more <= 1 => bounds.1,
                _ => above(self.source, to)?,
            };
            around.push((var, (least, most)));
            self.widest.insert(l.id, (least, most));
            all.push((least, most));
        }
        Some(all)
    }

    /// A load of an array that the body runs over a copy of.
    pub(super) fn load_copy(&mut self, w: &mut Writer, v: ValueId, copy: ArrayId, index: Indices) -> ValueId {
        let capture = self.captures.get(&v).cloned();
        let place = self.place(w);
        match (capture, self.again) {
            (Some(Capture::Local(local)), true) => w.get(local),
            (Some(Capture::Tape(tape)), true) => match place {
                Some(place) => w.load(tape, place, None),
                None => w.load(copy, self.index(index), None),
            },
            (capture, _) => {
                let found = w.load(copy, self.index(index), self.source.value(v).site.clone());
                match (capture, place) {
                    (Some(Capture::Local(local)), _) => w.push(Stmt::Set(local, found)),
                    (Some(Capture::Tape(tape)), Some(place)) => w.store(tape, place, found, None),
                    _ => {}
                }
                found
            }
        }
    }

    /// The place of this pass of the loops around, in this iteration.
    fn place(&mut self, w: &mut Writer) -> Option<Indices> {
        let mut place: Option<ValueId> = None;
        for Around { pass, bounds: (from, to) } in self.around.clone() {
            let [from, to] = [from, to].map(|v| self.bound(w, v));
            let number = w.sub(pass, from);
            place = Some(match place {
                None => number,
                Some(outer) => {
                    let extent = w.sub(to, from);
                    let whole = w.mul(outer, extent);
                    w.add(whole, number)
                }
            });
        }
        self.store.as_ref()?.index(place?)
    }

    /// A bound that is known from the arguments, here. The depth of recursion is that of one bound.
    fn bound(&mut self, w: &mut Writer, v: ValueId) -> ValueId {
        match *self.source.op(v) {
            _ if self.map.contains_key(&v) || !self.inside.contains(&v) => self.mapped(v),
            op => {
                let op = op.map(|o| self.bound(w, o));
                w.value(op, self.source.ty(v))
            }
        }
    }

    fn lasting(&mut self, w: &mut Writer, ty: Type, places: &Places) -> Option<ArrayId> {
        let store = self.store.as_mut().filter(|store| store.own.len() < Indices::MAX_RANK)?;
        Some(store.array(w, ty, places, super::replay::Written::Once))
    }
}
