//! Segments: the program around parallel loops, run by all threads alike.
//!
//! Every thread computes program-level scalars for itself; thread 0 alone writes elements, between barriers. All
//! scalars are variables of the whole function, so that a resumed run can jump to its region.

use std::collections::BTreeSet;

use ebbtide_ir::{
    After, ArrayId, Binary, Block, Combine, Entered, Indices, LocalId, LoopKind, Op, Push, Site, Stmt, Store,
    Undone, ValueId, walk_program_level,
};

use crate::analysis::assertions::assertions;
use crate::analysis::names::{Names, regions, taped, written};
use crate::analysis::thread_ownership::OnEntry;
use crate::kernel::machine::Family;
use crate::kernel::name::{Name, Ty};
use crate::kernel::segment::{Barrier, By, Step};
use crate::print::c_types::{c_type, from_bits, to_bits};
use crate::print::emitter::{Emitter, line};

impl Emitter<'_> {
    /// Prints the function of one segment.
    pub fn segment(&mut self, k: usize, block: &Block, all: &[&Block]) {
        let program = self.program;
        let names = Names::of(program, block);
        let elsewhere: BTreeSet<ValueId> = all
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != k)
            .flat_map(|(_, block)| Names::of(program, block).used)
            .collect();
        self.forms.assertions = assertions(program, block);
        let waiting: BTreeSet<ArrayId> = self.waiting(block).into_values().flatten().collect();
        let at_any_label = program.entered == Entered::AtAnyLabel;
        let yields = regions(block).iter().any(|r| r.flag.is_some() || at_any_label);
        self.yields = yields;
        let taped = taped(block);
        match self.family {
            Family::C => line!(self, "i64 segment_{k}(eb_frame *f) {{"),
            Family::Cuda => {
                self.constant = names.arrays.difference(&written(block)).copied().collect();
                let width = self.width(block);
                self.widths.push(width);
                self.enter_kernel(k, width, &taped);
            }
        }
        let packed = self.open_packed_tapes(&taped);
        self.variables(block, &names, &waiting);
        let steps = self.steps_of(block);
        self.behind.clear();
        self.find_products(&steps);
        let (statements, ()) = self.apart(|text| text.steps(&steps));
        let statements = self.place_loops(&statements);
        // What the statements want to be computed on entry is known when they are printed.
        let (mut computed, shared) = std::mem::take(&mut self.entry).text();
        let unlike = std::mem::take(&mut self.unlike);
        if !unlike.is_empty() {
            computed.push_str(&format!("const i32 unlike = eb_kept({});\n", unlike.join(" || ")));
        }
        if shared {
            // What the first thread of a block wrote, all read.
            computed.push_str("__syncthreads();\n");
        }
        self.out.push_str(&computed);
        if yields {
            self.jump_to_region(block, &names);
        }
        self.out.push_str(&statements);
        line!(self, "leave: ;");
        waiting.iter().for_each(|c| self.settle(*c));
        if self.family == Family::Cuda {
            self.leave_kernel(&taped);
        }
        for (g, a) in packed {
            line!(self, "f->depth[{}] = strip{g}.before + n{g};", a.index());
        }
        self.hand_back(block, &names, &elsewhere);
    }

    /// Declares the variables of a segment, which a resumed run may find in the middle of it: arrays and their extents, values,
    /// locals, the counters of loops.
    fn variables(&mut self, block: &Block, names: &Names, waiting: &BTreeSet<ArrayId>) {
        let program = self.program;
        let row = program.extents_per_array();
        self.loops.enter(program, block, names);
        for a in &names.arrays {
            let decl = program.array(*a);
            let (t, i) = (c_type(decl.ty), a.index());
            line!(self, "{t} *a{i} = ({t} *)f->data[{i}];");
            for d in 0..decl.rank {
                line!(self, "const i64 d{i}_{d} = {};", self.extent(row * i + d));
            }
        }
        self.waiting_rows(waiting);
        for v in &names.used {
            let ty = program.ty(*v);
            line!(self, "const {} v{} = {};", c_type(ty), v.index(), from_bits(ty, &self.handed_in(*v)));
        }
        self.known_on_entry = OnEntry { given: names.used.clone(), named: names.arrays.clone() };
        self.find_mappings(block);
        for v in &names.defined {
            if !matches!(program.op(*v), Op::Literal(_)) {
                // What never changes is there from the beginning.
                let value = self.on_entry(*v).map_or("0".to_string(), |value| value.to_string());
                line!(self, "{} v{} = {value};", c_type(program.ty(*v)), v.index());
                self.tell_loops(*v);
            }
        }
        for l in &names.locals {
            let (ty, value) = (c_type(program.locals[l.index()].ty), self.local_in_frame(*l));
            line!(self, "{ty} l{} = {value};", l.index());
        }
        let mut kept_locals: Vec<LocalId> =
            regions(block).iter().flat_map(|region| Undone::by(region).locals).collect();
        kept_locals.sort_unstable();
        kept_locals.dedup();
        for l in kept_locals {
            line!(self, "{} kept_l{} = 0;", c_type(program.locals[l.index()].ty), l.index());
        }
        walk_program_level(block, &mut |stmt| {
            if let Stmt::Loop(l) = stmt {
                line!(self, "i64 pass{0} = 0;", l.id.index());
                if self.yields && matches!(l.kind, LoopKind::For { .. }) {
                    line!(self, "i64 from{0} = 0, to{0} = 0;", l.id.index());
                }
            }
        });
    }

    /// Hands back to the frame what others use of a segment: where arrays are, values that stand elsewhere, locals, how far loops are.
    fn hand_back(&mut self, block: &Block, names: &Names, elsewhere: &BTreeSet<ValueId>) {
        let (program, yields) = (self.program, self.yields);
        for a in &names.arrays {
            line!(self, "f->data[{0}] = a{0};", a.index());
        }
        if self.family == Family::C {
            if self.yields || !names.locals.is_empty() {
                // Thread 0 writes the tables: all have read them by then.
                line!(self, "eb_barrier(f);");
            }
            line!(self, "if (f->thread == 0) {{");
        }
        for v in names.defined.iter().filter(|v| elsewhere.contains(v) || yields) {
            if !matches!(program.op(*v), Op::Literal(_)) {
                line!(
                    self,
                    "f->values[{0}] = {1};",
                    v.index(),
                    to_bits(program.ty(*v), &format!("v{}", v.index()))
                );
            }
        }
        for l in &names.locals {
            self.hand_back_local(*l);
        }
        if yields {
            walk_program_level(block, &mut |stmt| {
                if let Stmt::Loop(l) = stmt {
                    let l_id = l.id.index();
                    line!(self, "f->passes[{l_id}] = pass{l_id};");
                    if let LoopKind::For { .. } = l.kind {
                        line!(
                            self,
                            "f->bounds[{}] = from{l_id}; f->bounds[{}] = to{l_id};",
                            2 * l_id,
                            2 * l_id + 1
                        );
                    }
                }
            });
        }
        line!(self, "}}");
        match self.family {
            Family::C => line!(self, "return 0; }}\n"),
            Family::Cuda => line!(self, "EB_END(f) }}\n"),
        }
    }

    /// What the frame has of a local variable.
    fn local_in_frame(&self, l: LocalId) -> String {
        from_bits(self.program.locals[l.index()].ty, &format!("f->locals[{}]", l.index()))
    }

    /// Gives it to the frame.
    fn hand_back_local(&mut self, l: LocalId) {
        let bits = to_bits(self.program.locals[l.index()].ty, &format!("l{}", l.index()));
        line!(self, "f->locals[{}] = {bits};", l.index());
    }

    /// Says where the thread is on the packed tapes that a segment uses: their groups and arrays.
    fn open_packed_tapes(&mut self, taped: &BTreeSet<ArrayId>) -> Vec<(usize, ArrayId)> {
        let mut opened = Vec::new();
        for g in 0..self.packed.groups.len() {
            let group = self.packed.groups[g].clone();
            let Some(first) = group.first().filter(|a| taped.contains(*a)) else { continue };
            let member =
                |a: &ArrayId| format!("{{{}, sizeof({})}}", a.index(), c_type(self.program.array(*a).ty));
            let members: Vec<String> = group.iter().map(member).collect();
            line!(self, "static const eb_member members{g}[] = {{{}}};", members.join(", "));
            line!(self, "eb_strip strip{g} = {{0, f->depth[{}]}}; i64 n{g} = 0;", first.index());
            line!(self, "char *at{g}[{}];", group.len());
            opened.extend(group.into_iter().map(|a| (g, a)));
        }
        opened
    }

    /// A resumed run takes its scalars from the frame and jumps to its region.
    fn jump_to_region(&mut self, block: &Block, names: &Names) {
        let program = self.program;
        line!(self, "if (f->resume >= 0) {{");
        for v in &names.defined {
            if !matches!(program.op(*v), Op::Literal(_)) {
                line!(
                    self,
                    "v{0} = {1};",
                    v.index(),
                    from_bits(program.ty(*v), &format!("f->values[{}]", v.index()))
                );
            }
        }
        walk_program_level(block, &mut |stmt| {
            if let Stmt::Loop(l) = stmt {
                let l_id = l.id.index();
                line!(self, "pass{l_id} = f->passes[{l_id}];");
                if let LoopKind::For { .. } = l.kind {
                    line!(
                        self,
                        "from{l_id} = f->bounds[{}]; to{l_id} = f->bounds[{}];",
                        2 * l_id,
                        2 * l_id + 1
                    );
                }
            }
        });
        line!(self, "switch (f->resume) {{");
        for region in regions(block) {
            line!(self, "case {0}: goto region{0};", region.id.index());
        }
        line!(self, "}} }}");
    }

    /// Prints steps. The depth of recursion is that of nesting in the source.
    pub fn steps(&mut self, steps: &[Step]) {
        steps.iter().for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Barrier(Barrier::UnlessByLeaves(domain)) => self.barrier_unless_by_leaves(*domain),
            Step::Barrier(_) => self.barrier(),
            Step::Label(region) => self.label(region),
            Step::Let(v) => self.program_value(*v),
            Step::Set(local, v) => line!(self, "l{} = {};", local.index(), self.value(*v)),
            Step::Store { store, how, by } => self.program_store(store, *how, *by),
            Step::SameShape(a, b) => self.same_shape(*a, *b),
            Step::Swap(a, b) => {
                let t = c_type(self.program.array(*a).ty);
                line!(self, "{{ {t} *t = a{0}; a{0} = a{1}; a{1} = t; }}", a.index(), b.index());
            }
            Step::Whole(whole) => self.whole(*whole),
            Step::If { condition, then, otherwise } => {
                line!(self, "if ({}) {{", self.value(*condition));
                self.steps(then);
                line!(self, "}} else {{");
                self.steps(otherwise);
                line!(self, "}}");
            }
            Step::Loop(l) => self.program_loop(l),
            Step::Alone(steps, locals) => self.alone(steps, locals),
            Step::Take(locals) => {
                for l in locals {
                    let value = self.local_in_frame(*l);
                    line!(self, "l{} = {value};", l.index());
                }
            }
            Step::Interchanged(l, steps) => self.interchanged(l, steps),
            Step::Par(par, steps) => self.par(par, steps),
            Step::Library(call, steps) => self.library(call, steps),
            Step::Operation(call, product) => self.library_operation(call, *product),
            Step::Push(push, steps) => match self.family {
                Family::C => self.push(push, steps),
                Family::Cuda => self.kernel_push(push, steps),
            },
            Step::PushExchanged(push) => match self.family {
                Family::C => self.push(push, &[]),
                Family::Cuda => self.kernel_push(push, &[]),
            },
            Step::Pop(array) => match self.family {
                Family::C => self.pop(*array),
                Family::Cuda => self.kernel_pop(*array),
            },
            Step::PushValue(array, v) => self.push_value(*array, *v),
            Step::PopValue(array, v) => self.pop_value(*array, *v),
            Step::NextPlace(group) => self.piece(*group, 0),
            Step::TakePlace(group) => line!(self, "n{group}++;"),
            Step::LastPlace(group) => {
                self.piece(*group, 1);
                line!(self, "n{group}--;");
            }
            Step::Keep(array, steps) => self.keep(*array, steps),
            Step::Restore(array, steps) => self.restore(*array, steps),
            Step::KeepLocal(l) => line!(self, "kept_l{0} = l{0};", l.index()),
            Step::RestoreLocal(l) => line!(self, "l{0} = kept_l{0};", l.index()),
            Step::Yield { region, flag, undo } => self.leave_if_set(region, *flag, undo),
            Step::Settle(matrix) => self.settle(*matrix),
            Step::Sum(v, par, number) => {
                line!(self, "v{} = sum{}_{number};", v.index(), par.id.index());
            }
            // They stand in their parallel loop.
            Step::Iterations(..) | Step::CombineLeaves(_) | Step::CombineForAll(_) => {}
        }
    }

    /// Steps that thread 0 runs alone. Where it meets a fault it goes to the end of them, behind which all meet.
    fn alone(&mut self, steps: &[Step], locals: &[LocalId]) {
        let n = self.fresh();
        line!(self, "if (f->thread == 0) {{ u32 looked{n} = 0; (void)looked{n};");
        self.alone = Some(n);
        self.steps(steps);
        self.alone = None;
        locals.iter().for_each(|l| self.hand_back_local(*l));
        line!(self, "together{n}: ; }}");
    }

    /// What a thread does that has met a fault at program level: so have all, or it is alone and they learn it where they meet.
    pub fn end(&self) -> String {
        match self.alone {
            None => "eb_barrier(f); goto leave;".to_string(),
            Some(n) => format!("goto together{n};"),
        }
    }

    fn push(&mut self, push: &Push, steps: &[Step]) {
        let a = push.array.index();
        line!(self, "if (f->depth[{a}] >= f->capacity[{a}]) eb_fault(f, EB_TAPE, 0, 0, 0, 0);");
        line!(self, "else {{ void **place = f->tape[{a}] + f->depth[{a}]++;");
        match push.after {
            After::Same => {
                let t = c_type(self.program.array(push.array).ty);
                line!(self, "{t} *kept = *place;");
                self.steps(steps);
            }
            After::Anything(old) => {
                line!(self, "void *t = a{a}; a{0} = t; a{a} = *place; *place = t;", old.index())
            }
        }
        line!(self, "}}");
    }

    fn pop(&mut self, array: ArrayId) {
        let a = array.index();
        line!(self, "if (f->depth[{a}] == 0) eb_fault(f, EB_TAPE, 0, 0, 0, 0);");
        line!(
            self,
            "else {{ void **place = f->tape[{a}] + --f->depth[{a}]; void *t = a{a}; a{a} = *place; *place = t; }}"
        );
    }

    /// Goes on to other memory of packed tapes at an end of the one before; it is a fault where there is none.
    fn piece(&mut self, group: usize, back: i64) {
        let (g, count) = (group, self.packed.groups[group].len());
        let end = if back == 0 { format!("strip{g}.count") } else { "0".to_string() };
        line!(
            self,
            "if (__builtin_expect(n{g} == {end}, 0)) {{ const i64 n = eb_piece(f, members{g}, {count}, &strip{g}, at{g}, strip{g}.before + n{g}, {back}); if (n < 0) {{ {} }} n{g} = n; }}",
            self.end()
        );
    }

    fn push_value(&mut self, array: ArrayId, v: ValueId) {
        let Some((g, k)) = self.packed.find(array) else { return };
        let t = c_type(self.program.array(array).ty);
        let mine = if self.alone.is_some() { "" } else { "if (f->thread == 0) " };
        line!(self, "{mine}(({t} *)at{g}[{k}])[n{g}] = {};", self.value(v));
    }

    fn pop_value(&mut self, array: ArrayId, v: ValueId) {
        let Some((g, k)) = self.packed.find(array) else { return };
        let t = c_type(self.program.array(array).ty);
        line!(self, "v{} = ((const {t} *)at{g}[{k}])[n{g}];", v.index());
    }

    fn program_value(&mut self, v: ValueId) {
        let op = *self.program.op(v);
        match op {
            Op::Literal(_) => {}
            Op::Load(array, index) => {
                let site = self.program.value(v).site.clone();
                let offset = self.checked_offset(array, index, &site);
                line!(self, "v{} = a{}[{offset}];", v.index(), array.index());
            }
            _ => {
                if let Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) = op
                    && !self.program.ty(v).is_float()
                {
                    let around = self.forms.assertions.get(&v);
                    let counters: Vec<String> =
                        around.map_or(Vec::new(), |a| a.counters.iter().map(Name::to_string).collect());
                    let fault = self.division_fault(v, &counters);
                    line!(self, "if ({} == 0) {fault}", self.value(b));
                    line!(self, "if ({} == 0) {{ {} }}", self.value(b), self.end());
                }
                let text = self.operation(v);
                line!(self, "v{} = {text};", v.index());
            }
        }
    }

    /// Prints checks of an index at program level, where all threads compute the same, and gives the offset.
    fn checked_offset(&mut self, array: ArrayId, index: Indices, site: &Option<Site>) -> String {
        let access = self.access(Some(array), site);
        let mut offset = "0".to_string();
        for (k, v) in index.as_slice().iter().enumerate() {
            let (name, a) = (self.value(*v), array.index());
            line!(
                self,
                "if ((u64){name} >= (u64)d{a}_{k}) {{ eb_fault(f, EB_BOUNDS, {access}, {k}, {name}, d{a}_{k}); {} }}",
                self.end()
            );
            offset = if k == 0 { name } else { format!("({offset} * d{a}_{k} + {name})") };
        }
        offset
    }

    /// One thread gives an element a value, or combines it with one.
    fn program_store(&mut self, s: &Store, how: Option<Combine>, by: By) {
        let offset = self.checked_offset(s.array, s.index, &s.site);
        let element = format!("a{}[{offset}]", s.array.index());
        let operand = self.value(s.value);
        let ty = self.program.array(s.array).ty;
        let value = match how {
            Some(how) => self.combine(how, Ty::One(ty), &element, &operand),
            None => operand,
        };
        if self.alone.is_some() {
            return line!(self, "{element} = {value};");
        }
        line!(self, "{{");
        let mine = match by {
            By::Owner(mapping) => self.owns(mapping, s.index),
            By::First | By::Anyone | By::Block(_) | By::Leaf(_) => "f->thread == 0".to_string(),
        };
        line!(self, "if ({mine}) {element} = {value}; }}");
    }

    /// The offset of the element that a reduction combines into, outside its loop; where it is out of bounds the
    /// statements `otherwise`, which are given the dimension, its index and extent.
    pub fn outer_offset(&mut self, s: &Store, otherwise: impl Fn(usize, &str, &str) -> String) -> String {
        // Its index is the same in all iterations: what it is made of can be computed here, and is not proved here.
        let mut needed: Vec<ValueId> = s.index.as_slice().to_vec();
        let mut at = 0;
        while at < needed.len() {
            if self.inside.contains(&needed[at]) {
                needed.extend(self.program.op(needed[at]).operands());
            }
            at += 1;
        }
        needed.retain(|v| self.inside.contains(v) && !matches!(self.program.op(*v), Op::Literal(_)));
        needed.sort_unstable();
        needed.dedup();
        for v in needed {
            let text = self.operation(v);
            let text = match *self.program.op(v) {
                // The body reports a zero divisor.
                Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) => {
                    format!("({} ? {text} : 0)", self.value(b))
                }
                _ => text,
            };
            line!(self, "const {} v{} = {text};", c_type(self.program.ty(v)), v.index());
        }
        let mut offset = "0".to_string();
        for (k, v) in s.index.as_slice().iter().enumerate() {
            let (name, a) = (self.value(*v), s.array.index());
            let extent = format!("d{a}_{k}");
            line!(self, "if ((u64){name} >= (u64){extent}) {{ {} }}", otherwise(k, &name, &extent));
            offset = if k == 0 { name } else { format!("({offset} * d{a}_{k} + {name})") };
        }
        offset
    }

    pub fn same_shape(&mut self, a: ArrayId, b: ArrayId) {
        let differ: Vec<String> = (0..self.program.array(a).rank)
            .map(|d| format!("d{}_{d} != d{}_{d}", a.index(), b.index()))
            .collect();
        if differ.is_empty() {
            return;
        }
        let mut differ = differ.join(" || ");
        if self.family == Family::Cuda {
            // Extents do not change: where all pairs are alike on entry, that is all there is to know in an iteration.
            if !self.unlike.contains(&differ) {
                self.unlike.push(differ.clone());
            }
            differ = format!("unlike && ({differ})");
        }
        line!(
            self,
            "if ({differ}) {{ eb_fault(f, EB_SHAPES, {}, {}, 0, 0); {} }}",
            a.index(),
            b.index(),
            self.end()
        );
    }
}
