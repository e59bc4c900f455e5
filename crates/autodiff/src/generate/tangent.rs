//! Tangents: beside every active number, how it changes along a direction of the inputs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    Access, ArrayId, Block, Branch, Combine, LibraryCall, LibraryOp, LocalId, Loop, LoopKind, Op,
    OperationId, Par, Param, Program, Role, ScalarId, Stmt, Store, Undo, ValueId, walk_program_level,
};

use crate::analysis::activity::Activity;
use crate::analysis::extremes::{check, extreme_arrays};
use crate::analysis::operation_arguments::{float_arrays, saved_arrays};
use crate::analysis::operation_rules::{Derivatives, Wanted, derivatives, without_derivative};
use crate::analysis::store_forwarding::store_forwarding;
use crate::error::Error;
use crate::generate::custom_call::{call_rule, declare_scratch};
use crate::generate::extremes::{Duel, Extremes, declare};
use crate::generate::par::copy_read_again;
use crate::generate::par::iterations::over_iterations;
use crate::generate::task::Purpose;
use crate::plan::shadow_state::Shadows;
use crate::rules::{partials, pull};
use crate::writer::Writer;

/// A tangent program. Its parameters are those of the source, each active one followed by its tangent: `dot_x`
/// beside array `x`, and a scalar `dot_c` beside scalar `c`.
#[derive(Clone, Debug)]
pub struct Tangent {
    /// The program.
    pub program: Program,
    /// The parameters that have a tangent, and what that is called.
    pub dots: BTreeMap<String, String>,
}

/// Writes the tangent of a program along a direction of the parameters `wrt`.
pub(crate) fn build_tangent(source: &Program, wrt: &[String]) -> Result<Tangent, Error> {
    crate::request::check_inputs(source, wrt)?;
    let mut arrays = Vec::new();
    let mut scalars = Vec::new();
    for name in wrt {
        match (source.find_scalar(name), source.find_array(name)) {
            (Some(s), _) if source.scalars[s.index()].ty.is_float() => scalars.push(s),
            (None, Some(a)) if source.array(a).ty.is_float() => arrays.push(a),
            (None, None) => {
                let known = crate::request::parameter_names(source);
                return Err(Error::UnknownName { program: source.name.clone(), name: name.clone(), known });
            }
            (Some(s), _) => {
                return Err(Error::NotDifferentiable {
                    name: name.clone(),
                    ty: source.scalars[s.index()].ty,
                });
            }
            (None, Some(a)) => {
                return Err(Error::NotDifferentiable { name: name.clone(), ty: source.array(a).ty });
            }
        }
    }
    let everything: Vec<ArrayId> = source.array_ids().filter(|a| source.array(*a).ty.is_float()).collect();
    let activity = Activity::of(source, &arrays, &scalars, &everything);
    let derivatives = derivatives(source, &activity, Wanted::Tangent)?;
    let mut builder = TangentBuilder {
        source,
        activity: &activity,
        arrays: HashMap::new(),
        values: HashMap::new(),
        locals: HashMap::new(),
        extremes: Extremes::new(),
        copies: BTreeMap::new(),
        derivatives: &derivatives,
        scratch: HashMap::new(),
        inside: false,
    };
    builder.tangent(&scalars)
}

struct TangentBuilder<'a> {
    source: &'a Program,
    activity: &'a Activity,
    arrays: HashMap<ArrayId, ArrayId>,
    values: HashMap<ValueId, ValueId>,
    locals: HashMap<LocalId, LocalId>,
    /// Beside arrays that take minima or maxima.
    extremes: Extremes,
    /// Of arrays that loops with minima or maxima read after they have written them: these loops run three times.
    copies: BTreeMap<ArrayId, ArrayId>,
    /// Of custom operations, by what they bring themselves.
    derivatives: &'a Derivatives,
    /// Beside arrays of custom operations that have no tangent.
    scratch: HashMap<ArrayId, ArrayId>,
    /// Are we inside a parallel loop?
    inside: bool,
}

impl TangentBuilder<'_> {
    fn tangent(&mut self, scalars: &[ScalarId]) -> Result<Tangent, Error> {
        let mut program = self.source.clone();
        program.name = format!("{}_tangent", self.source.name);
        program.body.clear();
        program.params.clear();
        let mut w = Writer::of_tangent(program);
        let mut dots = BTreeMap::new();
        let mut directions: HashMap<ScalarId, ScalarId> = HashMap::new();
        for param in &self.source.params {
            w.program.params.push(*param);
            match *param {
                Param::Array(a) if self.activity.arrays.contains(&a) => {
                    let decl = self.source.array(a).clone();
                    // A direction may be followed in place even where the array itself is only read.
                    let role = match decl.role {
                        Role::Param(Access::Read) => Role::Param(Access::Read),
                        _ => Role::Param(Access::Write),
                    };
                    let name = w.free_name(format!("dot_{}", decl.name));
                    let dot = w.array(name.clone(), decl.ty, decl.rank, role);
                    w.program.params.push(Param::Array(dot));
                    self.arrays.insert(a, dot);
                    dots.insert(decl.name, name);
                }
                Param::Scalar(s) if scalars.contains(&s) => {
                    let decl = self.source.scalars[s.index()].clone();
                    let name = w.free_name(format!("dot_{}", decl.name));
                    w.program.scalars.push(ebbtide_ir::ScalarDecl { name: name.clone(), ty: decl.ty });
                    let dot = ScalarId::from_index(w.program.scalars.len() - 1);
                    w.program.params.push(Param::Scalar(dot));
                    directions.insert(s, dot);
                    dots.insert(decl.name, name);
                }
                _ => {}
            }
        }
        let body = self.source.body.clone();
        for a in extreme_arrays(self.activity, &body) {
            if let Role::Param(_) = self.source.array(a).role {
                let shape = (0..self.source.array(a).rank).map(|k| w.dim(a, k)).collect();
                let beside = declare(&mut w, self.source, a, shape);
                self.extremes.insert(a, beside);
            }
        }
        for a in self.read_again() {
            if let Role::Param(_) = self.source.array(a).role {
                let shape = (0..self.source.array(a).rank).map(|k| w.dim(a, k)).collect();
                self.declare_copy(&mut w, a, shape);
            }
        }
        for a in without_derivative(self.source, self.activity) {
            if let Role::Param(_) = self.source.array(a).role {
                let shape = (0..self.source.array(a).rank).map(|k| w.dim(a, k)).collect();
                let scratch = declare_scratch(&mut w, self.source, a, shape);
                self.scratch.insert(a, scratch);
            }
        }
        self.block(&mut w, &body, &directions)?;
        w.program.body = w.end();
        Ok(Tangent { program: w.program, dots })
    }

    fn nested(
        &mut self,
        w: &mut Writer,
        block: &Block,
        d: &HashMap<ScalarId, ScalarId>,
    ) -> Result<Block, Error> {
        w.begin();
        self.block(w, block, d)?;
        Ok(w.end())
    }

    /// The tangent of a value: zero where it does not change.
    fn dot(&self, w: &mut Writer, v: ValueId) -> ValueId {
        match self.values.get(&v) {
            Some(dot) => *dot,
            None => w.real(self.source.ty(v), 0.0),
        }
    }

    fn block(&mut self, w: &mut Writer, block: &Block, d: &HashMap<ScalarId, ScalarId>) -> Result<(), Error> {
        block.iter().try_for_each(|stmt| self.statement(w, stmt, d))
    }

    fn statement(
        &mut self,
        w: &mut Writer,
        stmt: &Stmt,
        d: &HashMap<ScalarId, ScalarId>,
    ) -> Result<(), Error> {
        match stmt {
            Stmt::Let(v) => {
                w.push(stmt.clone());
                if self.activity.values.contains(v) {
                    self.value(w, *v, d);
                }
            }
            Stmt::Declare(local, v) => {
                w.push(stmt.clone());
                if self.activity.locals.contains(local) {
                    let dot = self.dot(w, *v);
                    let name = format!("dot_{}", self.source.locals[local.index()].name);
                    let dot = w.local(&name, dot);
                    self.locals.insert(*local, dot);
                }
            }
            Stmt::Set(local, v) => {
                w.push(stmt.clone());
                if let Some(dot_local) = self.locals.get(local).copied() {
                    let dot = self.dot(w, *v);
                    w.push(Stmt::Set(dot_local, dot));
                }
            }
            Stmt::Store(s) => {
                if let Some(shadow) = self.arrays.get(&s.array).copied() {
                    let dot = self.dot(w, s.value);
                    w.push(Stmt::Store(Store { array: shadow, value: dot, ..s.clone() }));
                }
                w.push(stmt.clone());
            }
            Stmt::Update(how, s) => {
                self.update(w, *how, s);
                w.push(stmt.clone());
            }
            Stmt::If(_) | Stmt::Loop(_) | Stmt::Par(_) | Stmt::Region(_) => self.with_blocks(w, stmt, d)?,
            Stmt::Swap(a, b) => {
                w.push(stmt.clone());
                if let (Some(x), Some(y)) = (self.arrays.get(a), self.arrays.get(b)) {
                    w.push(Stmt::Swap(*x, *y));
                }
            }
            Stmt::Fill(a, v, _) => {
                w.push(stmt.clone());
                if let Some(shadow) = self.arrays.get(a).copied() {
                    let dot = self.dot(w, *v);
                    w.fill(shadow, dot);
                }
            }
            Stmt::Copy { from, to, .. } => {
                w.push(stmt.clone());
                match (self.arrays.get(from), self.arrays.get(to)) {
                    (Some(x), Some(y)) => w.copy(*x, *y),
                    (None, Some(y)) => {
                        let (y, zero) = (*y, w.real(self.source.array(*to).ty, 0.0));
                        w.fill(y, zero);
                    }
                    _ => {}
                }
            }
            Stmt::Library(call) => {
                w.push(stmt.clone());
                match call.op {
                    LibraryOp::Custom(id) => self.custom(w, call, id),
                    _ => crate::generate::library::tangent(w, call, &self.arrays),
                }
            }
            Stmt::Temp(a) => {
                w.push(stmt.clone());
                self.temp(w, *a);
            }
            other => w.push(other.clone()),
        }
        Ok(())
    }

    /// The tangent of what is combined into an element.
    fn update(&mut self, w: &mut Writer, how: Combine, s: &Store) {
        let Some(shadow) = self.arrays.get(&s.array).copied() else { return };
        let dot = self.dot(w, s.value);
        match (how, self.inside) {
            (Combine::Add, _) => w.accumulate(shadow, s.index, dot, s.site.clone()),
            (_, true) => {
                if let Some(beside) = self.extremes.get(&s.array) {
                    let part = beside.part(w, s.index, s.value, dot);
                    w.accumulate(shadow, s.index, part, s.site.clone());
                }
            }
            (_, false) => {
                let old = w.load(s.array, s.index, s.site.clone());
                let duel = Duel::new(w, how, old, s.value);
                let old_dot = w.load(shadow, s.index, s.site.clone());
                let parts = [duel.olds_part(w, old_dot), duel.values_part(w, dot)];
                let sum = w.add(parts[0], parts[1]);
                w.store(shadow, s.index, sum, s.site.clone());
            }
        }
    }

    /// A statement with blocks, and tangents in its blocks.
    fn with_blocks(
        &mut self,
        w: &mut Writer,
        stmt: &Stmt,
        d: &HashMap<ScalarId, ScalarId>,
    ) -> Result<(), Error> {
        match stmt {
            Stmt::If(branch) => {
                let then = self.nested(w, &branch.then, d)?;
                let otherwise = self.nested(w, &branch.otherwise, d)?;
                w.push(Stmt::If(Branch { condition: branch.condition, then, otherwise }));
            }
            Stmt::Loop(l) => {
                let body = self.nested(w, &l.body, d)?;
                let kind = match &l.kind {
                    LoopKind::While { head, condition } => {
                        LoopKind::While { head: self.nested(w, head, d)?, condition: *condition }
                    }
                    other => other.clone(),
                };
                let dots = l.sums.iter().filter_map(|local| self.locals.get(local));
                let sums = l.sums.iter().chain(dots).copied().collect();
                w.push(Stmt::Loop(Loop { kind, body, sums, ..l.clone() }));
            }
            Stmt::Par(par) => {
                self.find_extremes(w, par)?;
                self.inside = true;
                let body = self.nested(w, &par.body, d)?;
                self.inside = false;
                w.push(Stmt::Par(Par { body, ..par.clone() }));
            }
            Stmt::Region(region) => {
                let body = self.nested(w, &region.body, d)?;
                // What is put back takes its tangent with it.
                let undo = match &region.undo {
                    Undo::Arrays(named) => {
                        let tangents = named.iter().filter_map(|a| self.arrays.get(a));
                        Undo::Arrays(named.iter().chain(tangents).copied().collect())
                    }
                    all_or_nothing => all_or_nothing.clone(),
                };
                w.push(Stmt::Region(ebbtide_ir::Region { body, undo, ..region.clone() }));
            }
            _ => {}
        }
        Ok(())
    }

    /// A temporary has come to life: so do the arrays beside it.
    fn temp(&mut self, w: &mut Writer, a: ArrayId) {
        if let Role::Temp(shape) = &self.source.array(a).role
            && self.read_again().contains(&a)
        {
            self.declare_copy(w, a, shape.clone());
        }
        if let Role::Temp(shape) = &self.source.array(a).role
            && without_derivative(self.source, self.activity).contains(&a)
        {
            let scratch = declare_scratch(w, self.source, a, shape.clone());
            self.scratch.insert(a, scratch);
        }
        if self.activity.arrays.contains(&a) {
            let decl = self.source.array(a).clone();
            let dot_role = decl.role;
            let dot = w.array(format!("dot_{}", decl.name), decl.ty, decl.rank, dot_role.clone());
            let shape = match &dot_role {
                Role::Temp(shape) => shape.clone(),
                _ => Vec::new(),
            };
            self.arrays.insert(a, dot);
            w.push(Stmt::Temp(dot));
            if extreme_arrays(self.activity, &self.source.body).contains(&a) {
                let beside = declare(w, self.source, a, shape);
                self.extremes.insert(a, beside);
            }
        }
    }

    /// A custom operation has left what it leaves: its tangent follows.
    fn custom(&self, w: &mut Writer, call: &LibraryCall, id: OperationId) {
        let Some(rule) = self.derivatives.get(&id) else { return };
        for scratch in float_arrays(self.source, call).iter().filter_map(|a| self.scratch.get(a)) {
            let zero = w.real(w.program.array(*scratch).ty, 0.0);
            w.fill(*scratch, zero);
        }
        let beside = |a: ArrayId| self.arrays.get(&a).or_else(|| self.scratch.get(&a)).copied();
        call_rule(w, self.source, call, (rule, Wanted::Tangent), |v| v, beside);
        for dot in saved_arrays(self.source, call).iter().filter_map(|a| self.arrays.get(a)) {
            let zero = w.real(w.program.array(*dot).ty, 0.0);
            w.fill(*dot, zero);
        }
    }

    /// The arrays that loops with minima or maxima read after they have written them.
    fn read_again(&self) -> BTreeSet<ArrayId> {
        let affines = ebbtide_ir::Affines::of(self.source);
        let mut arrays = BTreeSet::new();
        walk_program_level(&self.source.body, &mut |stmt| {
            if let Stmt::Par(par) = stmt
                && !extreme_arrays(self.activity, &par.body).is_empty()
            {
                arrays.extend(store_forwarding(self.source, &affines, par).arrays);
            }
        });
        arrays
    }

    fn declare_copy(&mut self, w: &mut Writer, array: ArrayId, shape: Vec<ValueId>) {
        let decl = self.source.array(array);
        let name = w.free_name(format!("again_{}", decl.name));
        let copy = w.array(name, decl.ty, decl.rank, Role::Temp(shape));
        w.push(Stmt::Temp(copy));
        self.copies.insert(array, copy);
    }

    /// Before a loop that takes minima or maxima: what they will be, and how many values they will be equal to.
    fn find_extremes(&self, w: &mut Writer, par: &Par) -> Result<(), Error> {
        let here = extreme_arrays(self.activity, &par.body);
        let beside: Extremes =
            self.extremes.iter().filter(|(a, _)| here.contains(a)).map(|(a, e)| (*a, *e)).collect();
        if beside.is_empty() {
            return Ok(());
        }
        let affines = ebbtide_ir::Affines::of(self.source);
        let forwarding = store_forwarding(self.source, &affines, par);
        let again = |w: &mut Writer, purpose: Purpose<'_>| {
            let none = Shadows::default();
            let copies = copy_read_again(w, &self.copies, &forwarding);
            let body = (par, &forwarding, copies);
            over_iterations(w, (self.source, self.activity), (&none, &beside), &HashMap::new(), body, purpose)
        };
        for (array, extreme) in &beside {
            check(self.source, par, *array)?;
            w.copy(*array, extreme.best);
        }
        again(w, Purpose::Find(&beside))?;
        for (array, extreme) in &beside {
            extreme.begin_ties(w, *array);
        }
        again(w, Purpose::Count(&beside))?;
        for (array, extreme) in &beside {
            if let Some(dot) = self.arrays.get(array) {
                extreme.keep_olds_part(w, *array, *dot);
            }
        }
        Ok(())
    }

    fn value(&mut self, w: &mut Writer, v: ValueId, d: &HashMap<ScalarId, ScalarId>) {
        let ty = self.source.ty(v);
        let dot = match *self.source.op(v) {
            Op::Scalar(s) => d.get(&s).map(|dot| w.value(Op::Scalar(*dot), ty)),
            Op::Load(a, index) => {
                self.arrays.get(&a).copied().map(|dot| w.load(dot, index, self.source.value(v).site.clone()))
            }
            Op::Get(local) => self.locals.get(&local).copied().map(|dot| w.get(dot)),
            op => {
                let operands: Vec<ValueId> = op.operands().collect();
                let active = |k: usize| self.values.get(&operands[k]).copied();
                let mut sum: Option<ValueId> = None;
                for (k, partial) in partials(w, op, v) {
                    let Some(dot) = active(k) else { continue };
                    // The same products as in the adjoint, taken forward; a cast goes to the result's type.
                    let term = pull(w, &partial, dot, ty);
                    sum = Some(match sum {
                        Some(sum) => w.add(sum, term),
                        None => term,
                    });
                }
                sum
            }
        };
        if let Some(dot) = dot {
            self.values.insert(v, dot);
        }
    }
}
