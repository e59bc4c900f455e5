//! The statements of the body of a parallel loop, taken backwards.

use std::collections::HashMap;

use ebbtide_ir::{ArrayId, Block, Branch, Claim, Combine, Indices, LocalId, Op, Stmt, Store, ValueId};

use super::replay::Iterations;
use super::{Purpose, ShadowWrite, Sink, Task};
use crate::analysis::needed::claims_for;
use crate::error::Error;
use crate::rules::{partials, pull};
use crate::writer::Writer;

impl Task<'_> {
    /// Runs a block forward and then takes its statements backwards.
    pub(super) fn reverse(&mut self, w: &mut Writer, block: &Block) -> Result<(), Error> {
        self.look_anew();
        // What locals hold when each nested statement is entered.
        let mut entries: HashMap<usize, HashMap<LocalId, ValueId>> = HashMap::new();
        for (k, stmt) in block.iter().enumerate() {
            if stmt.blocks().next().is_some() {
                let mut held: Vec<(LocalId, LocalId)> = self.locals.iter().map(|(l, n)| (*l, *n)).collect();
                held.sort_unstable();
                let entry = held.into_iter().map(|(l, new)| (l, w.get(new))).collect();
                entries.insert(k, entry);
            }
            match stmt {
                // It is reversed below.
                Stmt::Loop(l) => self.forward_loop(w, l, Iterations::Kept)?,
                _ => self.forward(w, std::slice::from_ref(stmt))?,
            }
            if let Stmt::Declare(local, _) = stmt
                && self.activity.locals.contains(local)
            {
                let zero = w.real(self.source.locals[local.index()].ty, 0.0);
                let bar = w.local(&format!("d_{}", self.source.locals[local.index()].name), zero);
                self.local_cotangents.insert(*local, bar);
            }
        }
        for (k, stmt) in block.iter().enumerate().rev() {
            match stmt {
                Stmt::Let(v) => self.reverse_value(w, *v)?,
                Stmt::Declare(local, v) | Stmt::Set(local, v) => self.reverse_set(w, *local, *v),
                Stmt::Store(s) => self.reverse_store(w, s),
                Stmt::Update(how, s) => self.reverse_update(w, *how, s),
                Stmt::Claim(claim) => self.reverse_claim(w, claim, block),
                Stmt::If(branch) => self.reverse_branch(w, branch, entries.remove(&k).unwrap_or_default())?,
                Stmt::Loop(l) => self.reverse_loop(w, l, entries.remove(&k).unwrap_or_default())?,
                _ => {}
            }
        }
        Ok(())
    }

    /// What flows to a local goes on to what was put into it.
    fn reverse_set(&mut self, w: &mut Writer, local: LocalId, v: ValueId) {
        if let Some(flowing) = self.steady.get(&local).copied() {
            return self.contribute(w, v, flowing);
        }
        let Some(bar) = self.local_cotangents.get(&local).copied() else { return };
        let flowing = w.get(bar);
        if !self.reached.remove(&local) {
            w.mask(flowing);
        }
        self.contribute(w, v, flowing);
        let zero = w.real(w.ty(flowing), 0.0);
        w.push(Stmt::Set(bar, zero));
    }

    fn reverse_value(&mut self, w: &mut Writer, v: ValueId) -> Result<(), Error> {
        if !self.active(v) || !self.inside.contains(&v) {
            return Ok(());
        }
        let Some(bar) = self.take_bar(w, v) else {
            // A shadow that is replaced by what flows here is zero where nothing does.
            if let Op::Load(array, index) = *self.source.op(v)
                && let Purpose::All { writes, .. } = &self.purpose
                && writes.get(&array) == Some(&ShadowWrite::Replace(v))
                && let Some(shadow) = self.shadows.arrays.get(&array)
            {
                let zero = w.real(self.source.ty(v), 0.0);
                w.store(*shadow, self.index(index), zero, None);
            }
            return Ok(());
        };
        if let Some(stored) = self.forwarding.forwarded.get(&v).copied() {
            self.contribute(w, stored, bar);
            return Ok(());
        }
        match *self.source.op(v) {
            Op::Load(array, index) => self.site(w, v, array, index, bar),
            Op::Get(local) if self.steady.contains_key(&local) => {}
            Op::Get(local) => {
                if !w.is_masked(bar) {
                    self.reached.insert(local);
                }
                if let Some(local_bar) = self.local_cotangents.get(&local).copied() {
                    let old = w.get(local_bar);
                    let sum = w.add(old, bar);
                    w.push(Stmt::Set(local_bar, sum));
                }
            }
            op => {
                let operands: Vec<ValueId> = op.operands().collect();
                let mapped = op.map(|o| self.mapped(o));
                for (k, partial) in partials(w, mapped, self.mapped(v)) {
                    if self.active(operands[k]) {
                        let flowing = pull(w, &partial, bar, self.source.ty(operands[k]));
                        self.contribute(w, operands[k], flowing);
                    }
                }
            }
        }
        Ok(())
    }

    fn site(&mut self, w: &mut Writer, v: ValueId, array: ArrayId, index: Indices, bar: ValueId) {
        let Some(shadow) = self.shadows.arrays.get(&array).copied() else { return };
        match &self.purpose {
            Purpose::Sites(sites) => {
                match sites.iter().find(|(number, _)| self.sites.get(&v) == Some(number)) {
                    None => {}
                    Some((_, Sink::Value)) => self.found = Some(bar),
                    Some((_, Sink::Local(local))) => {
                        let local = *local;
                        let old = w.get(local);
                        let sum = w.add(old, bar);
                        w.push(Stmt::Set(local, sum));
                    }
                }
            }
            Purpose::Find(_) | Purpose::Count(_) => {}
            Purpose::All { gathered, writes } => {
                if gathered.contains(&v) {
                    return;
                }
                let site = self.source.value(v).site.clone();
                let index = self.index(index);
                if let Some(followed) = self.followed.as_mut().filter(|followed| followed.loads.contains(&v))
                {
                    followed.elements.push((shadow, index));
                }
                match writes.get(&array) {
                    // What flows through it unchanged is there.
                    Some(ShadowWrite::Replace(own))
                        if *own == v && *w.program.op(bar) == Op::Load(shadow, index) => {}
                    Some(ShadowWrite::Replace(own)) if *own == v => w.store(shadow, index, bar, site),
                    _ => w.accumulate(shadow, index, bar, site),
                }
            }
        }
    }

    fn reverse_store(&mut self, w: &mut Writer, s: &Store) {
        let Some(shadow) = self.shadows.arrays.get(&s.array).copied() else { return };
        let index = self.index(s.index);
        let bar = w.load(shadow, index, s.site.clone());
        if let Purpose::All { writes, .. } = &self.purpose
            && writes.get(&s.array) == Some(&ShadowWrite::Zero)
        {
            let zero = w.real(w.ty(bar), 0.0);
            w.store(shadow, index, zero, s.site.clone());
        }
        self.contribute(w, s.value, bar);
    }

    /// The shadow of what an iteration took is its own as well.
    fn reverse_claim(&mut self, w: &mut Writer, claim: &Claim, block: &Block) {
        if let Purpose::All { .. } = self.purpose
            && claims_for(block, self.activity)
        {
            w.push(Stmt::Claim(Claim { index: self.index(claim.index), ..claim.clone() }));
        }
    }

    fn reverse_update(&mut self, w: &mut Writer, how: Combine, s: &Store) {
        let Some(shadow) = self.shadows.arrays.get(&s.array).copied() else { return };
        let index = self.index(s.index);
        let mut bar = w.load(shadow, index, s.site.clone());
        if how != Combine::Add
            && let Some(extreme) = self.extremes.get(&s.array)
        {
            bar = extreme.part(w, index, self.mapped(s.value), bar);
        }
        self.contribute(w, s.value, bar);
    }

    fn reverse_branch(
        &mut self,
        w: &mut Writer,
        branch: &Branch,
        entry: HashMap<LocalId, ValueId>,
    ) -> Result<(), Error> {
        if !self.touches_active(&branch.then) && !self.touches_active(&branch.otherwise) {
            return Ok(());
        }
        self.prepare(w, &branch.then);
        self.prepare(w, &branch.otherwise);
        let condition = self.mapped(branch.condition);
        let mut arms = Vec::new();
        let before = self.reached.clone();
        let mut after = before.clone();
        let again = std::mem::replace(&mut self.again, true);
        for block in [&branch.then, &branch.otherwise] {
            w.begin();
            let outer = self.enter(w, &entry);
            self.reached.clone_from(&before);
            self.reverse(w, block)?;
            after.retain(|local| self.reached.contains(local));
            self.locals = outer;
            arms.push(w.end());
        }
        self.reached = after;
        self.again = again;
        let otherwise = arms.pop().unwrap_or_default();
        let then = arms.pop().unwrap_or_default();
        w.push(Stmt::If(Branch { condition, then, otherwise }));
        Ok(())
    }
}
