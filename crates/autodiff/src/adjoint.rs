//! The adjoint of a whole program.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    Access, Affines, ArrayId, Binary, Compare, Literal, LoopId, Op, ParFacts, ParId, Param, Program,
    RegionId, Role, Stmt, SwappedShapes, Type, ValueId, verify, walk_program_level,
};

use crate::activity::Activity;
use crate::custom::{
    Derivatives, Wanted, declare_scratch, derivatives, open, refuse_yields, without_derivative,
};
use crate::error::{Error, verify_generated};
use crate::extremes::{Extremes, declare, extreme_arrays};
use crate::forward::pushes;
use crate::host::{Hosted, count_visits};
use crate::kept::Kept;
use crate::needed::{Needed, needed_arrays};
use crate::number_apart::number_apart;
use crate::on_copies::on_copies;
use crate::one_pass::Spares;
use crate::par::Held;
use crate::prepare::prepare;
use crate::record::is_written_param;
use crate::request::{DeadShadows, Mode, Names, Optimisation, Request};
use crate::rewritten::rewritten;
use crate::task::Shadows;
use crate::writer::Writer;

/// A gradient program and what its parameters mean. Its parameters are those of the source, in order (arrays are
/// only read), then the seed where there is one, then the values, then the derivatives, each in the order asked
/// for.
#[derive(Clone, Debug)]
pub struct Gradient {
    /// The program.
    pub program: Program,
    /// The parameter for the cotangent of the output, if it is an argument.
    pub seed: Option<ArrayId>,
    /// The parameters that receive values.
    pub values: Vec<ArrayId>,
    /// The parameters that receive derivatives.
    pub derivatives: Vec<ArrayId>,
    /// For each loop under a schedule, how often a pass pushes each array.
    pub pushes: BTreeMap<LoopId, Vec<Pushes>>,
    /// How often arrays are pushed outside these loops.
    pub pushes_outside: Vec<Pushes>,
    /// The regions of the source that yield.
    pub hosted: BTreeMap<RegionId, Hosted>,
    /// Which region of the source each region of the program is a copy of.
    pub copies: BTreeMap<RegionId, RegionId>,
    /// The shadow of each active array.
    pub shadows: BTreeMap<ArrayId, ArrayId>,
}

/// How often one pass of a loop pushes an array: once for each element of the product of these loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushes {
    /// The array.
    pub array: ArrayId,
    /// The ranges of inner loops around the push.
    pub within: Vec<(ValueId, ValueId)>,
}

/// What becomes of a loop inside a loop (or a branch) that is reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// Its whole tape is part of the tape of the pass around it: nothing is run again, and the host is not asked.
    Recorded,
    /// The pass around it records what it needs to be run again; when that pass is reversed, it is swept under a
    /// schedule of its own.
    Swept,
}

/// Has the program loops inside loops, or inside branches, so that [`Inner`] makes a difference?
pub fn has_inner_loops(source: &Program, request: &Request) -> bool {
    if request.mode == Mode::Values {
        return false;
    }
    let mut found = false;
    for stmt in &prepare(source).body {
        let mut loops = 0;
        walk_program_level(std::slice::from_ref(stmt), &mut |s| {
            loops += usize::from(matches!(s, Stmt::Loop(_)))
        });
        found |= loops > usize::from(matches!(stmt, Stmt::Loop(_)));
    }
    found
}

/// The gradient of a program.
pub fn gradient(source: &Program, request: &Request, inner: Inner) -> Result<Gradient, Error> {
    if request.mode == Mode::Values {
        return on_copies(source, &request.values);
    }
    let mut source = prepare(source);
    let hosted = count_visits(&mut source);
    let source = &source;
    let facts = verify(source)?;
    let names = Names::find(source, request)?;
    let activity = Activity::of(source, &names.arrays, &names.scalars, &[names.of]);
    names.check(source, request, &activity)?;
    refuse_yields(source)?;
    let derivatives = derivatives(source, &activity, Wanted::Adjoint)?;
    let uses = |optimisation| !request.without.contains(&optimisation);
    let mut needed = needed_arrays((source, &facts.affines), &activity, &derivatives, &hosted);
    needed.everything = !uses(Optimisation::RecordWhatIsRead);
    // One spare serves all arrays that are swapped with one another: they must be of one shape, and stay so.
    let one_shape = hosted.is_empty() && source.swapped == SwappedShapes::Equal;
    let mut maker = Maker {
        source,
        affines: &facts.affines,
        pars: &facts.pars,
        activity: &activity,
        needed: &needed,
        position: 0,
        shadows: Shadows::default(),
        extremes: Extremes::new(),
        derivatives: &derivatives,
        scratch: BTreeMap::new(),
        held: BTreeMap::new(),
        env: HashMap::new(),
        kept: HashMap::new(),
        spares: (one_shape && uses(Optimisation::JoinGather)).then(Spares::default),
        without: &request.without,
        handed: Kept::default(),
        copies: BTreeMap::new(),
        nested: false,
        inner,
        pieces: BTreeMap::new(),
        pushes: BTreeMap::new(),
        dead_shadows: request.dead_shadows,
    };
    let mut gradient = maker.gradient(request, &names)?;
    gradient.hosted = hosted;
    Ok(gradient)
}

/// The gradient of a program as it is shown: with the tapes of inner loops kept, or swept where that cannot be.
pub fn gradient_to_show(source: &Program, request: &Request) -> Result<Gradient, Error> {
    gradient(source, request, Inner::Recorded).or_else(|_| gradient(source, request, Inner::Swept))
}

#[derive(Clone)]
pub(crate) struct Maker<'a> {
    pub source: &'a Program,
    pub affines: &'a Affines,
    /// How parallel loops share what they write.
    pub pars: &'a BTreeMap<ParId, ParFacts>,
    pub activity: &'a Activity,
    pub needed: &'a Needed,
    /// The top-level statement that is being written.
    pub position: usize,
    pub shadows: Shadows,
    /// Beside arrays that take minima or maxima.
    pub extremes: Extremes,
    /// Of custom operations, by what they bring themselves.
    pub derivatives: &'a Derivatives,
    /// Beside arrays of custom operations that have no shadow.
    pub scratch: BTreeMap<ArrayId, ArrayId>,
    pub held: BTreeMap<ArrayId, Held>,
    /// Program-level values as they are known where the adjoint is written now.
    pub env: HashMap<ValueId, ValueId>,
    /// For values and elements that are put aside in the forward half: the array of rank 0 that takes them.
    pub kept: HashMap<Aside, ArrayId>,
    /// Memory beside shadows; `None` where shapes may differ.
    pub spares: Option<Spares>,
    pub without: &'a BTreeSet<Optimisation>,
    /// What iterations of parallel loops keep for the loops that gather it.
    pub handed: Kept,
    /// Copies of arrays that parallel loops read after they have written them.
    pub copies: BTreeMap<ArrayId, ArrayId>,
    /// Are we inside a loop or a branch, so that values must be computed again, or put aside, for the reverse half?
    pub nested: bool,
    pub inner: Inner,
    /// The bounds of the piece of a loop that a schedule runs.
    pub pieces: BTreeMap<LoopId, (ValueId, ValueId)>,
    pub pushes: BTreeMap<LoopId, Vec<Pushes>>,
    pub dead_shadows: DeadShadows,
}

/// Something of a loop's pass that the reverse half cannot compute again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Aside {
    Value(ValueId),
    /// The element that a program-level write replaces, by the value that it writes and the array.
    Element(ArrayId, ValueId),
}

impl Maker<'_> {
    pub(crate) fn uses(&self, optimisation: Optimisation) -> bool {
        !self.without.contains(&optimisation)
    }

    pub(crate) fn unsupported(&self, what: impl Into<String>) -> Error {
        Error::Unsupported { program: self.source.name.clone(), what: what.into() }
    }

    fn gradient(&mut self, request: &Request, names: &Names) -> Result<Gradient, Error> {
        let mut program = self.source.clone();
        program.name = format!("{}_gradient", self.source.name);
        program.driven = true;
        program.body.clear();
        program.params.clear();
        let mut w = Writer::new(program);
        working_copies(self.source, &mut w);
        let seed = request.seeded.then(|| {
            let decl = self.source.array(names.of);
            let name = w.free_name(format!("seed_{}", decl.name));
            let id = w.array(name, decl.ty, decl.rank, Role::Param(Access::Read));
            w.program.params.push(Param::Array(id));
            id
        });
        let output = |w: &mut Writer, prefix: &str, name: &str, ty: Type, rank: usize| {
            let name = w.free_name(format!("{prefix}{name}"));
            let id = w.array(name, ty, rank, Role::Param(Access::Write));
            w.program.params.push(Param::Array(id));
            id
        };
        let values: Vec<ArrayId> = names
            .values
            .iter()
            .map(|a| {
                output(
                    &mut w,
                    "value_",
                    &self.source.array(*a).name,
                    self.source.array(*a).ty,
                    self.source.array(*a).rank,
                )
            })
            .collect();
        let mut derivatives = Vec::new();
        for name in &request.wrt {
            let (ty, rank) = match self.source.find_scalar(name) {
                Some(s) => (self.source.scalars[s.index()].ty, 0),
                None => self
                    .source
                    .find_array(name)
                    .map_or((Type::F64, 0), |a| (self.source.array(a).ty, self.source.array(a).rank)),
            };
            derivatives.push(output(&mut w, "d_", name, ty, rank));
        }
        self.make_shadows(&mut w);
        let start = w.end();
        w.begin();
        let body = self.source.body.clone();
        for (position, stmt) in body.iter().enumerate() {
            self.position = position;
            self.forward(&mut w, std::slice::from_ref(stmt))?;
        }
        for (a, value) in names.values.iter().zip(&values) {
            w.push(Stmt::Copy { from: *a, to: *value });
        }
        self.seed(&mut w, names.of, seed);
        for (position, stmt) in body.iter().enumerate().rev() {
            self.position = position;
            self.reverse(&mut w, std::slice::from_ref(stmt))?;
        }
        self.results(&mut w, request, &derivatives);
        let body = w.end();
        let mut asides: Vec<ArrayId> = self.kept.values().copied().collect();
        asides.sort_unstable();
        let asides = asides.into_iter().map(Stmt::Temp);
        let handed = std::mem::take(&mut self.handed.declared);
        w.program.body = asides.chain(start).chain(handed).chain(body).collect();
        for (shadow, spare) in self.spares.iter().flat_map(Spares::declarations) {
            let at = w.program.body.iter().position(|s| matches!(s, Stmt::Temp(a) if *a == shadow));
            w.program.body.insert(at.map_or(0, |at| at + 1), Stmt::Temp(spare));
        }
        let (mut program, copies) = (w.program, w.copies);
        open(&mut program);
        number_apart(&mut program);
        verify_generated(&program)?;
        let pushes_outside = pushes(&program.body);
        Ok(Gradient {
            program,
            seed,
            values,
            derivatives,
            pushes: std::mem::take(&mut self.pushes),
            pushes_outside,
            hosted: BTreeMap::new(),
            copies,
            shadows: self.shadows.arrays.clone(),
        })
    }

    fn make_shadows(&mut self, w: &mut Writer) {
        for a in self.source.array_ids() {
            // The shape of a temporary is known before everything else.
            if let Role::Temp(shape) = &self.source.array(a).role {
                let shape = shape.iter().map(|v| early(self.source, w, *v)).collect();
                w.program.arrays[a.index()].role = Role::Temp(shape);
            }
        }
        for a in &self.activity.arrays {
            let decl = self.source.array(*a).clone();
            let shape: Vec<ValueId> = match &w.program.array(*a).role {
                Role::Temp(shape) => shape.clone(),
                _ => (0..decl.rank).map(|k| w.dim(*a, k)).collect(),
            };
            let shadow = w.array(format!("d_{}'", decl.name), decl.ty, decl.rank, Role::Temp(shape));
            w.push(Stmt::Temp(shadow));
            self.shadows.arrays.insert(*a, shadow);
            self.held.insert(*a, Held::Zeros);
        }
        for a in extreme_arrays(self.activity, &self.source.body) {
            let shape = match &w.program.array(a).role {
                Role::Temp(shape) => shape.clone(),
                _ => (0..self.source.array(a).rank).map(|k| w.dim(a, k)).collect(),
            };
            let beside = declare(w, self.source, a, shape);
            self.extremes.insert(a, beside);
        }
        for a in without_derivative(self.source, self.activity) {
            let shape = match &w.program.array(a).role {
                Role::Temp(shape) => shape.clone(),
                _ => (0..self.source.array(a).rank).map(|k| w.dim(a, k)).collect(),
            };
            let scratch = declare_scratch(w, self.source, a, shape);
            self.scratch.insert(a, scratch);
        }
        let mut read_again = BTreeSet::new();
        walk_program_level(&self.source.body, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                read_again.extend(rewritten(self.source, self.affines, par).arrays);
            }
        });
        for a in read_again {
            let decl = self.source.array(a);
            let shape = match &w.program.array(a).role {
                Role::Temp(shape) => shape.clone(),
                _ => (0..decl.rank).map(|k| w.dim(a, k)).collect(),
            };
            let copy = w.array(format!("again_{}", decl.name), decl.ty, decl.rank, Role::Temp(shape));
            w.push(Stmt::Temp(copy));
            self.copies.insert(a, copy);
        }
        let mut program_level = BTreeSet::new();
        walk_program_level(&self.source.body, &mut |stmt| {
            if let Stmt::Let(v) = stmt
                && self.activity.values.contains(v)
            {
                program_level.insert(*v);
            }
        });
        for v in program_level {
            let decl = self.source.value(v);
            let name = decl.name.clone().unwrap_or_else(|| format!("v{}", v.index()));
            let shadow = w.array(format!("d_{name}'"), decl.ty, 0, Role::Temp(Vec::new()));
            w.push(Stmt::Temp(shadow));
            self.shadows.values.insert(v, shadow);
        }
    }

    fn seed(&mut self, w: &mut Writer, of: ArrayId, seed: Option<ArrayId>) {
        let Some(shadow) = self.shadows.arrays.get(&of).copied() else { return };
        match seed {
            Some(seed) => w.push(Stmt::Copy { from: seed, to: shadow }),
            None => {
                let one = w.real(self.source.array(of).ty, 1.0);
                w.store(shadow, Writer::no_index(), one, None);
            }
        }
        self.held.insert(of, Held::Numbers);
    }

    fn results(&mut self, w: &mut Writer, request: &Request, derivatives: &[ArrayId]) {
        for (name, to) in request.wrt.iter().zip(derivatives) {
            if let Some(scalar) = self.source.find_scalar(name) {
                let zero = w.real(self.source.scalars[scalar.index()].ty, 0.0);
                w.push(Stmt::Fill(*to, zero));
                let reads: Vec<ArrayId> = self
                    .shadows
                    .values
                    .iter()
                    .filter(|(v, _)| *self.source.op(**v) == Op::Scalar(scalar))
                    .map(|(_, shadow)| *shadow)
                    .collect();
                for shadow in reads {
                    let part = w.load(shadow, Writer::no_index(), None);
                    w.accumulate(*to, Writer::no_index(), part, None);
                }
            } else if let Some(array) = self.source.find_array(name) {
                let Some(shadow) = self.shadows.arrays.get(&array).copied() else {
                    // Nothing flows to it.
                    let zero = w.real(self.source.array(array).ty, 0.0);
                    w.push(Stmt::Fill(*to, zero));
                    continue;
                };
                if self.held.get(&array) == Some(&Held::Nothing) {
                    let zero = w.real(self.source.array(array).ty, 0.0);
                    w.push(Stmt::Fill(shadow, zero));
                }
                w.push(Stmt::Copy { from: shadow, to: *to });
            }
        }
    }
}

/// The caller's arrays are only read: what the program writes are copies.
pub(crate) fn working_copies(source: &Program, w: &mut Writer) {
    for param in &source.params {
        let Param::Array(a) = *param else {
            w.program.params.push(*param);
            continue;
        };
        if !is_written_param(source, a) {
            w.program.params.push(*param);
            continue;
        }
        let decl = source.array(a).clone();
        let given = w.array(decl.name.clone(), decl.ty, decl.rank, Role::Param(Access::Read));
        w.program.params.push(Param::Array(given));
        let shape: Vec<ValueId> = (0..decl.rank).map(|k| w.dim(given, k)).collect();
        let working = &mut w.program.arrays[a.index()];
        working.name = format!("{}'", decl.name);
        working.role = Role::Temp(shape);
        w.push(Stmt::Temp(a));
        w.push(Stmt::Copy { from: given, to: a });
    }
}

/// A value that depends on arguments alone, computed before everything else.
pub(crate) fn early(source: &Program, w: &mut Writer, v: ValueId) -> ValueId {
    // The shape of a working copy is the caller's.
    if let Op::Dim(a, k) = *source.op(v)
        && let Role::Temp(shape) = &w.program.array(a).role
        && let Some(extent) = shape.get(k as usize)
    {
        return *extent;
    }
    let op = source.op(v).map(|o| early(source, w, o));
    let (op, divisor) = without_fault(&mut w.program, op);
    divisor.into_iter().for_each(|v| w.push(Stmt::Let(v)));
    w.value(op, source.ty(v))
}

/// An operation that is computed before the guards around it are asked: it divides by one where it would divide by zero,
/// and then nothing uses its result. The second part is what must be computed for it.
pub(crate) fn without_fault(program: &mut Program, op: Op) -> (Op, Vec<ValueId>) {
    let Op::Binary(how @ (Binary::Div | Binary::Rem | Binary::RemEuclid), a, b) = op else {
        return (op, Vec::new());
    };
    let ty = program.ty(b);
    if ty.is_float() || program.literal(b).and_then(Literal::to_i64).is_some_and(|divisor| divisor != 0) {
        return (op, Vec::new());
    }
    let zero = program.add_value(Op::Literal(Literal::of(ty, 0.0)), ty, None);
    let one = program.add_value(Op::Literal(Literal::of(ty, 1.0)), ty, None);
    let is_zero = program.add_value(Op::Compare(Compare::Eq, b, zero), Type::Bool, None);
    let divisor = program.add_value(Op::Select(is_zero, one, b), ty, None);
    (Op::Binary(how, a, divisor), vec![zero, one, is_zero, divisor])
}
