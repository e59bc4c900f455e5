//! The reverse half of a gradient program: the program backwards.

use ebbtide_ir::{
    ArrayId, Backward, Block, Branch, Combine, Indices, Loop, LoopKind, Op, Stmt, Store, Type, ValueId,
    dataflow,
};

use crate::analysis::extremes::extreme_arrays;
use crate::error::Error;
use crate::generate::adjoint::AdjointBuilder;
use crate::generate::extremes::Duel;
use crate::generate::library::LibraryAdjoint;
use crate::generate::par::ParAdjoint;
use crate::plan::shadow_state::{ShadowState, ShadowStates, of_filled_boxes};
use crate::plan::tape_plan::Aside;
use crate::request::{DeadShadows, Optimisation};
use crate::rules::{partials, pull};
use crate::writer::prune::drop_unused_values;
use crate::writer::{Writer, each_element};

impl AdjointBuilder<'_> {
    pub(crate) fn reverse(&mut self, w: &mut Writer, block: &[Stmt]) -> Result<(), Error> {
        for stmt in block.iter().rev() {
            let before = (self.dead_shadows == DeadShadows::Poisoned).then(|| self.shadow_states.clone());
            for array in of_filled_boxes(self.source, stmt) {
                self.make_box_real(w, array);
            }
            match stmt {
                Stmt::Let(v) => self.reverse_value(w, *v)?,
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    if self.plan.puts_aside(Aside::Element(s.id)) {
                        self.put_back(w, s);
                    }
                    let how = if let Stmt::Update(how, _) = stmt { Some(*how) } else { None };
                    self.reverse_store(w, s, how)?;
                }
                Stmt::Par(par) => {
                    // What minima and maxima became, before what they were is brought back.
                    for array in extreme_arrays(self.activity, &par.body) {
                        if let Some(beside) = self.extremes.get(&array) {
                            w.copy(array, beside.best);
                        }
                    }
                    self.restore_sections(w, par);
                    let popped = self.plan.par(par).iter().rev().copied();
                    let (later, now): (Vec<ArrayId>, Vec<ArrayId>) =
                        popped.partition(|a| self.plan.reads_left(par, *a));
                    now.into_iter().for_each(|array| w.push(Stmt::Pop(array)));
                    self.par_adjoint().write(w, par)?;
                    // It was read as the loop left it.
                    later.into_iter().for_each(|array| w.push(Stmt::Pop(array)));
                }
                Stmt::Swap(a, b) => {
                    w.push(Stmt::Swap(*a, *b));
                    if let (Some(x), Some(y)) = (self.shadows.arrays.get(a), self.shadows.arrays.get(b)) {
                        w.push(Stmt::Swap(*x, *y));
                        dataflow::Facts::swap(&mut self.shadow_states, *a, *b);
                    }
                }
                Stmt::Fill(a, v, _) => {
                    if self.plan.records_whole(stmt) {
                        w.push(Stmt::Pop(*a));
                    }
                    if let Some(shadow) = self.shadows.arrays.get(a).copied() {
                        if let (Some(target), Some(ShadowState::Numbers)) =
                            (self.shadows.values.get(v).copied(), self.shadow_states.get(a))
                        {
                            each_element(w, shadow, |w, index| {
                                let bar = w.load(shadow, index, None);
                                w.accumulate(target, Writer::no_index(), bar, None);
                            });
                        }
                        self.shadow_states.insert(*a, ShadowState::Nothing);
                    }
                }
                Stmt::Copy { from, to, .. } => {
                    if self.plan.records_whole(stmt) {
                        w.push(Stmt::Pop(*to));
                    }
                    self.reverse_copy(w, *from, *to);
                }
                Stmt::Library(call) => {
                    // Rules see what the operation left.
                    self.reverse_custom(w, call);
                    for array in self.plan.call(call, self.position).into_iter().rev() {
                        w.push(Stmt::Pop(array));
                    }
                    LibraryAdjoint { shadows: &self.shadows, shadow_states: &mut self.shadow_states }
                        .write(w, call);
                }
                Stmt::Temp(a) if self.shadows.arrays.contains_key(a) => {
                    self.shadow_states.insert(*a, ShadowState::Nothing);
                }
                Stmt::If(branch) => self.reverse_branch(w, branch)?,
                Stmt::Loop(l) => self.reverse_loop(w, l)?,
                Stmt::Region(region) => self.reverse_region(w, region)?,
                Stmt::Declare(local, _) | Stmt::Set(local, _) if self.activity.locals.contains(local) => {
                    return Err(self.unsupported("a program-level local variable that depends on the inputs"));
                }
                _ => {}
            }
            if let Some(before) = before {
                self.poison_dead_shadows(w, &before);
            }
            if !self.uses(Optimisation::LazyShadows) {
                let shadows: Vec<ArrayId> = self.shadow_states.iter().map(|(array, _)| array).collect();
                shadows.into_iter().for_each(|array| self.make_real(w, array));
            }
        }
        Ok(())
    }

    /// Overwrites the shadows, and the boxes of shadows, that became zero in meaning alone.
    fn poison_dead_shadows(&mut self, w: &mut Writer, before: &ShadowStates) {
        for (array, held) in self.shadow_states.clone().iter() {
            let Some(shadow) = self.shadows.arrays.get(&array).copied() else { continue };
            if before.get(&array) == Some(&held) {
                continue;
            }
            let nan = w.real(self.source.array(array).ty, f64::NAN);
            match held {
                ShadowState::Nothing => w.fill(shadow, nan),
                ShadowState::NumbersOutside(id) => self.par_adjoint().fill_box(w, (array, id), nan),
                ShadowState::Zeros | ShadowState::Numbers => {}
            }
        }
    }

    pub(crate) fn known(&self, v: ValueId) -> ValueId {
        self.env.get(&v).copied().unwrap_or(v)
    }

    /// What writes the adjoints of parallel loops, as things stand.
    fn par_adjoint(&mut self) -> ParAdjoint<'_> {
        ParAdjoint {
            source: self.source,
            affines: self.affines,
            activity: self.activity,
            plan: self.plan,
            shadows: &self.shadows,
            extremes: &self.extremes,
            shadow_states: &mut self.shadow_states,
            boxes: &self.boxes,
            first_rows: &self.first_rows,
            stored_rows: &mut self.stored_rows,
            env: &self.env,
            double_buffer: self.double_buffer.as_mut(),
            without: self.without,
            scratch_arrays: &mut self.scratch_arrays,
            copies: &self.copies,
            stamps: &self.stamps,
        }
    }

    pub(crate) fn make_real(&mut self, w: &mut Writer, array: ArrayId) {
        self.par_adjoint().make_real(w, array);
    }

    /// Fills a box of a shadow with zeros where it only stands for them.
    fn make_box_real(&mut self, w: &mut Writer, array: ArrayId) {
        if let Some(ShadowState::NumbersOutside(_)) = self.shadow_states.get(&array) {
            self.make_real(w, array);
        }
    }

    /// Lets a shadow hold what is `held` from here on, which is what it holds or weaker.
    fn weaken(&mut self, w: &mut Writer, array: ArrayId, held: ShadowState) {
        match self.shadow_states.get(&array).copied() {
            Some(ShadowState::Nothing) if held != ShadowState::Nothing => self.make_real(w, array),
            Some(now @ ShadowState::NumbersOutside(_)) if held != now => self.make_real(w, array),
            _ => {}
        }
    }

    pub(crate) fn reverse_value(&mut self, w: &mut Writer, v: ValueId) -> Result<(), Error> {
        let op = *self.source.op(v);
        if let Op::Scalar(_) = op {
            return Ok(());
        }
        let Some(bar) = self.take_cotangent(w, v) else { return Ok(()) };
        if let Op::Load(array, index) = op {
            if let Some(target) = self.shadows.arrays.get(&array).copied() {
                self.make_real(w, array);
                w.accumulate(target, index.map(|i| self.known(i)), bar, self.source.value(v).site.clone());
                self.shadow_states.insert(array, ShadowState::Numbers);
            }
            return Ok(());
        }
        let operands: Vec<ValueId> = op.operands().collect();
        let mapped = op.map(|o| self.known(o));
        for (k, partial) in partials(w, mapped, self.known(v)) {
            if self.is_active(operands[k]) {
                let flowing = pull(w, &partial, bar, self.source.ty(operands[k]));
                self.contribute(w, operands[k], flowing);
            }
        }
        Ok(())
    }

    /// Takes the element that a program-level write replaced back from the tape.
    fn put_back(&mut self, w: &mut Writer, s: &Store) {
        let Some(array) = self.aside_arrays.get(&Aside::Element(s.id)).copied() else { return };
        w.push(Stmt::Pop(array));
        let old = w.load(array, Writer::no_index(), None);
        w.store(s.array, s.index.map(|v| self.known(v)), old, s.site.clone());
    }

    pub(crate) fn reverse_store(
        &mut self,
        w: &mut Writer,
        s: &Store,
        how: Option<Combine>,
    ) -> Result<(), Error> {
        let index: Indices = s.index.map(|v| self.known(v));
        let Some(shadow) = self.shadows.arrays.get(&s.array).copied() else { return Ok(()) };
        self.make_real(w, s.array);
        let mut bar = w.load(shadow, index, s.site.clone());
        if let Some(how @ (Combine::Min | Combine::Max)) = how {
            // What it was is in its place again.
            let old = w.load(s.array, index, s.site.clone());
            let duel = Duel::new(w, how, old, self.known(s.value));
            let kept = duel.olds_part(w, bar);
            w.store(shadow, index, kept, s.site.clone());
            bar = duel.values_part(w, bar);
        }
        if how.is_none() {
            let zero = w.real(self.source.array(s.array).ty, 0.0);
            w.store(shadow, index, zero, s.site.clone());
        }
        // It may be zero because nothing reads the element.
        w.mask(bar);
        self.contribute(w, s.value, bar);
        Ok(())
    }

    pub(crate) fn reverse_copy(&mut self, w: &mut Writer, from: ArrayId, to: ArrayId) {
        let (Some(source), Some(target)) =
            (self.shadows.arrays.get(&from).copied(), self.shadows.arrays.get(&to).copied())
        else {
            if self.shadows.arrays.contains_key(&to) {
                self.shadow_states.insert(to, ShadowState::Nothing);
            }
            return;
        };
        if self.shadow_states.get(&to) == Some(&ShadowState::Numbers) {
            if self.shadow_states.get(&from) == Some(&ShadowState::Numbers) {
                each_element(w, source, |w, index| {
                    let flowing = w.load(target, index, None);
                    w.accumulate(source, index, flowing, None);
                });
            } else {
                w.copy(target, source);
            }
            self.shadow_states.insert(from, ShadowState::Numbers);
        }
        self.shadow_states.insert(to, ShadowState::Nothing);
    }

    pub(crate) fn reverse_branch(&mut self, w: &mut Writer, branch: &Branch) -> Result<(), Error> {
        let condition = self.known(branch.condition);
        let before = self.shadow_states.clone();
        let mut arms = Vec::new();
        let mut ends = Vec::new();
        let env = self.env.clone();
        let outer = std::mem::replace(&mut self.nested, true);
        for block in [&branch.then, &branch.otherwise] {
            self.shadow_states.clone_from(&before);
            w.begin();
            self.repeat_values(w, block);
            self.reverse(w, block)?;
            arms.push(w.end());
            ends.push(self.shadow_states.clone());
            self.env.clone_from(&env);
        }
        self.nested = outer;
        // After the branch a shadow is what both arms agree on, with real zeros where they do not.
        let after = match ends.as_slice() {
            [then, otherwise] => then.clone().joined(otherwise),
            _ => before,
        };
        for (arm, end) in arms.iter_mut().zip(&ends) {
            self.shadow_states.clone_from(end);
            w.begin();
            for (a, held) in end.iter() {
                let agreed = ends.iter().all(|e| e.get(&a) == Some(&held));
                match after.get(&a) {
                    Some(_) if held == ShadowState::Nothing && !agreed => self.make_real(w, a),
                    Some(after) => self.weaken(w, a, *after),
                    None => {}
                }
            }
            arm.extend(w.end());
        }
        self.shadow_states = after;
        let otherwise = arms.pop().unwrap_or_default();
        let then = arms.pop().unwrap_or_default();
        w.push(Stmt::If(Branch { condition, then, otherwise }));
        Ok(())
    }

    pub(crate) fn reverse_loop(&mut self, w: &mut Writer, l: &Loop) -> Result<(), Error> {
        let plan = self.plan.loop_plan(l);
        let driven = plan.swept || (!self.nested && !plan.recorded_whole);
        if self.nested && driven {
            for array in self.plan.loop_plan(l).entry.into_iter().rev() {
                w.push(Stmt::Pop(array));
            }
            self.forward_half(w, l)?;
        }
        let piece = match (self.pieces.get(&l.id), &l.kind) {
            (Some(piece), _) if driven => *piece,
            (_, LoopKind::For { from, to, .. }) if l.until.is_none() => (self.known(*from), self.known(*to)),
            _ => match self.counted_iterations(w, l) {
                Some(iterations) => iterations,
                None => return Ok(()),
            },
        };
        let Some(assumed) = self.loop_states.get(&l.id).cloned() else { return Ok(()) };
        let start = std::mem::replace(&mut self.shadow_states, assumed.clone());
        let outer = std::mem::replace(&mut self.nested, true);
        let reversed = self.reversed_iterations(w, l, (piece, driven), &assumed)?;
        self.nested = outer;
        // Before the loop, zeros that iterations will read as numbers must be real.
        self.shadow_states = start;
        for (a, held) in assumed.iter() {
            self.weaken(w, a, held);
        }
        self.shadow_states = assumed;
        let reversed = Stmt::Loop(reversed);
        w.push(match driven {
            true => Stmt::Backward(Backward { id: l.id, reverse: vec![reversed] }),
            false => reversed,
        });
        if !self.nested {
            for array in self.plan.loop_plan(l).around.into_iter().rev() {
                w.push(Stmt::Pop(array));
            }
        }
        Ok(())
    }

    /// The iterations of a loop that was run until it was done; `None` where nothing of it is to be reversed.
    fn counted_iterations(&mut self, w: &mut Writer, l: &Loop) -> Option<(ValueId, ValueId)> {
        let array = self.aside_arrays.get(&Aside::Iterations(l.id)).copied()?;
        w.push(Stmt::Pop(array));
        let counted = w.load(array, Writer::no_index(), None);
        let counted = w.cast(counted, Type::Index);
        let from = match l.kind {
            LoopKind::For { from, .. } => self.known(from),
            _ => w.index(0),
        };
        Some((from, w.add(from, counted)))
    }

    /// The loop over a piece of a loop that takes its iterations backwards. Shadows hold what is assumed when each of them begins.
    fn reversed_iterations(
        &mut self,
        w: &mut Writer,
        l: &Loop,
        (piece, driven): ((ValueId, ValueId), bool),
        assumed: &ShadowStates,
    ) -> Result<Loop, Error> {
        // Iterations of a loop of unknown length are counted from zero: its variable is `from` further on.
        let (var, shift) = match l.kind {
            LoopKind::For { var, .. } if !driven || self.plan.loop_plan(l).known_length => (Some(var), None),
            LoopKind::For { var, from, .. } => (Some(var), Some(from)),
            _ => (None, None),
        };
        let env = self.env.clone();
        let name = var.and_then(|v| self.source.value(v).name.clone()).unwrap_or_else(|| "t".to_string());
        let back = w.loop_var(&format!("{name}_back"));
        w.begin();
        let sum = w.add(piece.0, piece.1);
        let one = w.index(1);
        let last = w.sub(sum, one);
        let iteration = w.sub(last, back);
        w.program.values[iteration.index()].name = Some(name);
        if let Some(var) = var {
            let counted = match shift {
                Some(from) => w.add(self.known(from), iteration),
                None => iteration,
            };
            self.env.insert(var, counted);
        }
        self.repeat_values(w, &l.body);
        self.reverse(w, &l.body)?;
        // What iterations begin with is what they leave, or weaker.
        if assumed.clone().joined(&self.shadow_states) != *assumed {
            return Err(self.unsupported(
                "a loop whose shadows hold other than was found before it was reversed: a flaw of Ebbtide",
            ));
        }
        for (a, held) in assumed.iter() {
            self.weaken(w, a, held);
        }
        let body = w.end();
        let body = drop_unused_values(&w.program, body);
        self.env = env;
        // In a segment that has both, the loop and its reverse are two.
        let id = if driven { l.id } else { w.new_loop() };
        let kind = LoopKind::For { var: back, from: piece.0, to: piece.1 };
        Ok(Loop { id, kind, body, sums: Vec::new(), until: None, schedule: None })
    }

    /// Computes the program-level values of a block again, in the reverse half.
    pub(crate) fn repeat_values(&mut self, w: &mut Writer, block: &Block) {
        for stmt in block {
            if let Stmt::Let(v) = stmt {
                let decl = self.source.value(*v);
                if let Some(first) = self.plan.same_load(*v) {
                    self.env.insert(*v, self.known(first));
                    continue;
                }
                let new = match self.aside_arrays.get(&Aside::Value(*v)).copied() {
                    Some(array) => {
                        w.push(Stmt::Pop(array));
                        let kept = w.load(array, Writer::no_index(), None);
                        if decl.ty == Type::Index { w.cast(kept, Type::Index) } else { kept }
                    }
                    None => {
                        let op = decl.op.map(|o| self.known(o));
                        let id = w.program.add_value(op, decl.ty, decl.site.clone());
                        w.program.values[id.index()].name.clone_from(&decl.name);
                        w.push(Stmt::Let(id));
                        id
                    }
                };
                self.env.insert(*v, new);
            }
        }
    }
}
