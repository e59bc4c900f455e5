//! The adjoint of a whole program.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    Access, Affines, After, ArrayId, Backward, Binary, Block, Branch, Combine, Compare, Forward, Indices,
    Length, Literal, LocalId, Loop, LoopId, LoopKind, Op, Param, Program, Push, Role, ScalarId, Stmt, Store,
    Type, Unary, ValueId, verify, walk, written,
};

use crate::activity::Activity;
use crate::error::Error;
use crate::library::LibraryAdjoint;
use crate::needed::{Needed, needed_arrays};
use crate::par::{Held, ParAdjoint};
use crate::prepare::{prepare, walk_program_level};
use crate::record::{Recorder, is_written_param};
use crate::rules::{partials, pull};
use crate::task::Shadows;
use crate::writer::Writer;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The output: a rank-0 array, or any array where a cotangent is given.
    pub of: String,
    /// The inputs: arrays or scalar parameters.
    pub wrt: Vec<String>,
    /// Outputs whose values are wanted too.
    pub values: Vec<String>,
    /// Is the cotangent of the output an argument (`seed`), instead of one?
    pub seeded: bool,
}

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
}

/// How often one pass of a loop pushes an array: once for each element of the product of these loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushes {
    /// The array.
    pub array: ArrayId,
    /// The ranges of inner loops around the push.
    pub within: Vec<(ValueId, ValueId)>,
}

/// The gradient of a program.
pub fn gradient(source: &Program, request: &Request) -> Result<Gradient, Error> {
    let source = &prepare(source);
    let facts = verify(source)?;
    let names = Names::find(source, request)?;
    let activity = Activity::of(source, &names.arrays, &names.scalars, &[names.of]);
    names.check(source, request, &activity)?;
    let needed = needed_arrays(source, &activity);
    let mut maker = Maker {
        source,
        affines: &facts.affines,
        activity: &activity,
        needed: &needed,
        position: 0,
        shadows: Shadows::default(),
        held: BTreeMap::new(),
        env: HashMap::new(),
        kept: HashMap::new(),
        nested: false,
        pieces: BTreeMap::new(),
        pushes: BTreeMap::new(),
    };
    maker.gradient(request, &names)
}

/// The names of all parameters, for error messages.
pub(crate) fn parameter_names(source: &Program) -> String {
    let names = source.params.iter().map(|p| match p {
        Param::Array(a) => format!("`{}`", source.array(*a).name),
        Param::Scalar(s) => format!("`{}`", source.scalars[s.index()].name),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The parameters that a request names.
struct Names {
    of: ArrayId,
    arrays: Vec<ArrayId>,
    scalars: Vec<ScalarId>,
    values: Vec<ArrayId>,
}

impl Names {
    fn find(source: &Program, request: &Request) -> Result<Names, Error> {
        let unknown = |name: &str| Error::UnknownName {
            program: source.name.clone(),
            name: name.to_string(),
            known: parameter_names(source),
        };
        let array = |name: &str| {
            let id = source.find_array(name).filter(|id| matches!(source.array(*id).role, Role::Param(_)));
            let id = id.ok_or_else(|| unknown(name))?;
            let ty = source.array(id).ty;
            if ty.is_float() { Ok(id) } else { Err(Error::NotDifferentiable { name: name.to_string(), ty }) }
        };
        let of = array(&request.of)?;
        if !request.seeded && source.array(of).rank != 0 {
            return Err(Error::NotScalar { name: request.of.clone(), rank: source.array(of).rank });
        }
        let mut names = Names { of, arrays: Vec::new(), scalars: Vec::new(), values: Vec::new() };
        for name in &request.wrt {
            match source.find_scalar(name) {
                Some(id) if !source.scalars[id.index()].ty.is_float() => {
                    let ty = source.scalars[id.index()].ty;
                    return Err(Error::NotDifferentiable { name: name.clone(), ty });
                }
                Some(id) => names.scalars.push(id),
                None => names.arrays.push(array(name)?),
            }
        }
        for name in &request.values {
            names.values.push(source.find_array(name).ok_or_else(|| unknown(name))?);
        }
        Ok(names)
    }

    fn check(&self, source: &Program, request: &Request, activity: &Activity) -> Result<(), Error> {
        let independent = |wrt: &str| Error::Independent {
            program: source.name.clone(),
            of: request.of.clone(),
            wrt: wrt.to_string(),
        };
        for a in &self.arrays {
            if !activity.arrays.contains(a) {
                return Err(independent(&source.array(*a).name));
            }
        }
        for s in &self.scalars {
            let active = activity.values.iter().any(|v| *source.op(*v) == Op::Scalar(*s));
            if !active {
                return Err(independent(&source.scalars[s.index()].name));
            }
        }
        Ok(())
    }
}

struct Maker<'a> {
    source: &'a Program,
    affines: &'a Affines,
    activity: &'a Activity,
    needed: &'a Needed,
    /// The top-level statement that is being written.
    position: usize,
    shadows: Shadows,
    held: BTreeMap<ArrayId, Held>,
    /// Program-level values as they are known where the adjoint is written now.
    env: HashMap<ValueId, ValueId>,
    /// For values and elements that are put aside in the forward half: the array of rank 0 that takes them.
    kept: HashMap<Aside, ArrayId>,
    /// Are we inside a loop or a branch, so that values must be computed again, or put aside, for the reverse half?
    nested: bool,
    /// The bounds of the piece of a loop that a schedule runs.
    pieces: BTreeMap<LoopId, (ValueId, ValueId)>,
    pushes: BTreeMap<LoopId, Vec<Pushes>>,
}

/// Something of a loop's pass that the reverse half cannot compute again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Aside {
    Value(ValueId),
    /// The element that a program-level write replaces, by the value that it writes and the array.
    Element(ArrayId, ValueId),
}

impl Maker<'_> {
    fn unsupported(&self, what: impl Into<String>) -> Error {
        Error::Unsupported { program: self.source.name.clone(), what: what.into() }
    }

    fn gradient(&mut self, request: &Request, names: &Names) -> Result<Gradient, Error> {
        let mut program = self.source.clone();
        program.name = format!("{}_gradient", self.source.name);
        program.body.clear();
        program.params.clear();
        let mut w = Writer::new(program);
        self.parameters(&mut w);
        let seed = request.seeded.then(|| {
            let decl = self.source.array(names.of);
            let id = w.array(format!("seed_{}", decl.name), decl.ty, decl.rank, Role::Param(Access::Read));
            w.program.params.push(Param::Array(id));
            id
        });
        let output = |w: &mut Writer, prefix: &str, name: &str, ty: Type, rank: usize| {
            let id = w.array(format!("{prefix}{name}"), ty, rank, Role::Param(Access::Write));
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
        w.program.body = asides.into_iter().map(Stmt::Temp).chain(body).collect();
        let program = w.program;
        verify(&program)?;
        let pushes_outside = pushes(&program.body);
        Ok(Gradient {
            program,
            seed,
            values,
            derivatives,
            pushes: std::mem::take(&mut self.pushes),
            pushes_outside,
        })
    }

    /// The caller's arrays are only read: what the program writes are copies.
    fn parameters(&mut self, w: &mut Writer) {
        for param in &self.source.params {
            let Param::Array(a) = *param else {
                w.program.params.push(*param);
                continue;
            };
            if !is_written_param(self.source, a) {
                w.program.params.push(*param);
                continue;
            }
            let decl = self.source.array(a).clone();
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

    fn make_shadows(&mut self, w: &mut Writer) {
        for a in self.source.array_ids() {
            // The shape of a temporary is known before everything else.
            if let Role::Temp(shape) = &self.source.array(a).role {
                let shape = shape.iter().map(|v| self.early(w, *v)).collect();
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

    /// A value that depends on arguments alone, computed before everything else.
    fn early(&self, w: &mut Writer, v: ValueId) -> ValueId {
        // The shape of a working copy is the caller's.
        if let Op::Dim(a, k) = *self.source.op(v)
            && let Role::Temp(shape) = &w.program.array(a).role
            && let Some(extent) = shape.get(k as usize)
        {
            return *extent;
        }
        let op = self.source.op(v).map(|o| self.early(w, o));
        w.value(op, self.source.ty(v))
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
            } else if let Some(array) = self.source.find_array(name)
                && let Some(shadow) = self.shadows.arrays.get(&array).copied()
            {
                if self.held.get(&array) == Some(&Held::Nothing) {
                    let zero = w.real(self.source.array(array).ty, 0.0);
                    w.push(Stmt::Fill(shadow, zero));
                }
                w.push(Stmt::Copy { from: shadow, to: *to });
            }
        }
    }

    // ---- the forward half

    fn recorder(&self) -> Recorder<'_> {
        Recorder { source: self.source, affines: self.affines, needed: self.needed, position: self.position }
    }

    /// Writes statements with their tape.
    fn forward(&mut self, w: &mut Writer, block: &[Stmt]) -> Result<(), Error> {
        for stmt in block {
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
                    if self.needed.before(s.array, self.position) {
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
                Stmt::Temp(a) => {
                    if self.needed.before(*a, self.position) && self.nested {
                        return Err(self.unsupported(format!(
                            "a temporary (`{}`) that is declared inside a loop: declare it before the loop and `fill` it",
                            self.source.array(*a).name
                        )));
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
                Stmt::Region(region) if region.flag.is_none() => self.forward(w, &region.body)?,
                Stmt::Region(_) => return Err(self.unsupported("a program that can yield")),
                _ => w.push(stmt.clone()),
            }
        }
        Ok(())
    }

    fn forward_loop(&mut self, w: &mut Writer, l: &Loop) -> Result<(), Error> {
        let known = match l.kind {
            LoopKind::For { var, from, to } if l.until.is_none() => Some((var, from, to)),
            _ => None,
        };
        let outer = std::mem::replace(&mut self.nested, true);
        w.begin();
        self.forward(w, &l.body)?;
        let body = w.end();
        self.nested = outer;
        if outer {
            let Some((var, from, to)) = known else {
                return Err(self.unsupported(
                    "a `while`, `loop` or `break` inside another loop at program level, whose number of passes is data",
                ));
            };
            // Inside a recorded pass the whole tape is kept.
            let kind = LoopKind::For { var, from, to };
            w.push(Stmt::Loop(Loop { id: l.id, kind, body, until: None, schedule: None }));
            return Ok(());
        }
        self.pushes.insert(l.id, pushes(&body));
        let piece = (w.loop_var("from"), w.loop_var("to"));
        self.pieces.insert(l.id, piece);
        let before_start = |v| ebbtide_ir::depends_on_arguments_alone(self.source, v);
        let (length, advance, record) = match known {
            Some((var, from, to)) if before_start(from) && before_start(to) => {
                let run = |body: Block| {
                    let kind = LoopKind::For { var, from: piece.0, to: piece.1 };
                    vec![Stmt::Loop(Loop { id: l.id, kind, body, until: None, schedule: None })]
                };
                (Length::Known(from, to), run(l.body.clone()), run(body))
            }
            _ => {
                let (reached, ended) = (w.declare("reached", Type::Index), w.declare("ended", Type::Bool));
                let advance = self.unknown_passes(w, l, piece, (reached, ended), l.body.clone());
                let record = self.unknown_passes(w, l, piece, (reached, ended), body);
                (Length::Unknown { reached, ended }, advance, record)
            }
        };
        let (carried, schedule) = (self.carried(l), l.schedule);
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

    /// Runs passes of a loop until it ends, or the piece does; says how far it came.
    fn unknown_passes(
        &self,
        w: &mut Writer,
        l: &Loop,
        piece: (ValueId, ValueId),
        (reached, ended): (LocalId, LocalId),
        body: Block,
    ) -> Block {
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
            // The loop variable is computed now, where the loop counted it before: alike in both halves.
            let at = match w.program.op(var) {
                Op::Binary(_, _, at) => *at,
                _ => w.program.add_value(Op::Get(reached), Type::Index, None),
            };
            w.program.values[var.index()].op = Op::Binary(Binary::Add, from, at);
            w.push(Stmt::Let(at));
            w.push(Stmt::Let(var));
        }
        body.into_iter().for_each(|stmt| w.push(stmt));
        let (at, one) = (w.get(reached), w.index(1));
        let next = w.add(at, one);
        w.push(Stmt::Set(reached, next));
        if let Some(until) = l.until {
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
        w.end()
    }

    /// What a slot holds: arrays that the loop writes and that a later pass, or the adjoint, reads.
    fn carried(&self, l: &Loop) -> Vec<ArrayId> {
        let mut read: BTreeSet<ArrayId> = BTreeSet::new();
        // The head of a `while` reads too.
        let whole = [Stmt::Loop(l.clone())];
        walk(&whole, &mut |stmt| match stmt {
            Stmt::Let(v) => {
                if let Op::Load(a, _) = self.source.op(*v) {
                    read.insert(*a);
                }
            }
            Stmt::Copy { from, .. } => drop(read.insert(*from)),
            Stmt::Library(call) => read.extend(&call.reads),
            _ => {}
        });
        let classes = crate::needed::swap_classes(self.source);
        let read: BTreeSet<ArrayId> = read.iter().map(|a| classes[a]).collect();
        written(&l.body).into_iter().filter(|a| read.contains(&classes[a])).collect()
    }

    /// Is the value made of data that a later pass overwrites?
    fn cannot_repeat(&self, v: ValueId) -> bool {
        match self.source.op(v) {
            Op::Get(_) => true,
            Op::Load(a, _) => {
                let classes = crate::needed::swap_classes(self.source);
                written(&self.source.body).iter().any(|b| classes[a] == classes[b])
            }
            _ => false,
        }
    }

    /// The array of rank 0 through which something goes on the tape.
    fn aside(&mut self, w: &mut Writer, what: Aside, ty: Type) -> ArrayId {
        if let Some(array) = self.kept.get(&what) {
            return *array;
        }
        let ty = if ty == Type::Index { Type::I64 } else { ty };
        let array = w.array(format!("aside{}", self.kept.len()), ty, 0, Role::Temp(Vec::new()));
        // Its memory exists for the whole launch; nothing reads it before it is written.
        self.kept.insert(what, array);
        array
    }

    // ---- the reverse half

    fn reverse(&mut self, w: &mut Writer, block: &[Stmt]) -> Result<(), Error> {
        for stmt in block.iter().rev() {
            match stmt {
                Stmt::Let(v) => self.reverse_value(w, *v)?,
                Stmt::Store(s) => self.reverse_store(w, s, None)?,
                Stmt::Update(how, s) => self.reverse_store(w, s, Some(*how))?,
                Stmt::Par(par) => {
                    for array in self.recorder().pushed_by(par).into_iter().rev() {
                        w.push(Stmt::Pop(array));
                    }
                    let mut adjoint = ParAdjoint {
                        source: self.source,
                        affines: self.affines,
                        activity: self.activity,
                        shadows: &self.shadows,
                        held: &mut self.held,
                        env: &self.env,
                    };
                    adjoint.write(w, par)?;
                }
                Stmt::Swap(a, b) => {
                    w.push(Stmt::Swap(*a, *b));
                    if let (Some(x), Some(y)) = (self.shadows.arrays.get(a), self.shadows.arrays.get(b)) {
                        w.push(Stmt::Swap(*x, *y));
                        let (p, q) = (self.held.get(a).copied(), self.held.get(b).copied());
                        self.held.extend(q.map(|q| (*a, q)));
                        self.held.extend(p.map(|p| (*b, p)));
                    }
                }
                Stmt::Fill(a, v) => {
                    if self.needed.before(*a, self.position) {
                        w.push(Stmt::Pop(*a));
                    }
                    if self.activity.values.contains(v) {
                        return Err(self.unsupported("`fill` with a value that depends on the inputs"));
                    }
                    if self.shadows.arrays.contains_key(a) {
                        self.held.insert(*a, Held::Nothing);
                    }
                }
                Stmt::Copy { from, to } => self.reverse_copy(w, *from, *to),
                Stmt::Library(call) => {
                    for array in self.recorder().pushed_by_call(call).into_iter().rev() {
                        w.push(Stmt::Pop(array));
                    }
                    LibraryAdjoint { shadows: &self.shadows, held: &mut self.held }.write(w, call);
                }
                Stmt::Temp(a) if self.shadows.arrays.contains_key(a) => {
                    self.held.insert(*a, Held::Nothing);
                }
                Stmt::If(branch) => self.reverse_branch(w, branch)?,
                Stmt::Loop(l) => self.reverse_loop(w, l)?,
                Stmt::Region(region) => self.reverse(w, &region.body)?,
                Stmt::Declare(local, _) | Stmt::Set(local, _) if self.activity.locals.contains(local) => {
                    return Err(self.unsupported("a program-level local variable that depends on the inputs"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn known(&self, v: ValueId) -> ValueId {
        self.env.get(&v).copied().unwrap_or(v)
    }

    fn make_real(&mut self, w: &mut Writer, array: ArrayId) {
        ParAdjoint {
            source: self.source,
            affines: self.affines,
            activity: self.activity,
            shadows: &self.shadows,
            held: &mut self.held,
            env: &self.env,
        }
        .make_real(w, array);
    }

    fn reverse_value(&mut self, w: &mut Writer, v: ValueId) -> Result<(), Error> {
        let Some(shadow) = self.shadows.values.get(&v).copied() else { return Ok(()) };
        let op = *self.source.op(v);
        if let Op::Scalar(_) = op {
            return Ok(());
        }
        let bar = w.load(shadow, Writer::no_index(), None);
        w.mask(bar);
        let zero = w.real(self.source.ty(v), 0.0);
        w.store(shadow, Writer::no_index(), zero, None);
        if let Op::Load(array, index) = op {
            if let Some(target) = self.shadows.arrays.get(&array).copied() {
                self.make_real(w, array);
                w.accumulate(target, index.map(|i| self.known(i)), bar, self.source.value(v).site.clone());
                self.held.insert(array, Held::Numbers);
            }
            return Ok(());
        }
        let operands: Vec<ValueId> = op.operands().collect();
        let mapped = op.map(|o| self.known(o));
        for (k, partial) in partials(w, mapped, self.known(v)) {
            if let Some(target) = self.shadows.values.get(&operands[k]).copied() {
                let flowing = pull(w, &partial, bar, self.source.ty(operands[k]));
                w.accumulate(target, Writer::no_index(), flowing, None);
            }
        }
        Ok(())
    }

    fn reverse_store(&mut self, w: &mut Writer, s: &Store, how: Option<Combine>) -> Result<(), Error> {
        let index: Indices = s.index.map(|v| self.known(v));
        if let Some(array) = self.kept.get(&Aside::Element(s.array, s.value)).copied() {
            w.push(Stmt::Pop(array));
            let old = w.load(array, Writer::no_index(), None);
            w.store(s.array, index, old, s.site.clone());
        }
        let Some(shadow) = self.shadows.arrays.get(&s.array).copied() else { return Ok(()) };
        if matches!(how, Some(Combine::Min | Combine::Max)) {
            return Err(self.unsupported("`min_assign` or `max_assign` on an active array"));
        }
        self.make_real(w, s.array);
        let bar = w.load(shadow, index, s.site.clone());
        if how.is_none() {
            let zero = w.real(self.source.array(s.array).ty, 0.0);
            w.store(shadow, index, zero, s.site.clone());
        }
        if let Some(target) = self.shadows.values.get(&s.value).copied() {
            w.accumulate(target, Writer::no_index(), bar, None);
        }
        Ok(())
    }

    fn reverse_copy(&mut self, w: &mut Writer, from: ArrayId, to: ArrayId) {
        if self.needed.before(to, self.position) {
            w.push(Stmt::Pop(to));
        }
        let (Some(source), Some(target)) =
            (self.shadows.arrays.get(&from).copied(), self.shadows.arrays.get(&to).copied())
        else {
            if self.shadows.arrays.contains_key(&to) {
                self.held.insert(to, Held::Nothing);
            }
            return;
        };
        if self.held.get(&to) == Some(&Held::Numbers) {
            if self.held.get(&from) == Some(&Held::Numbers) {
                let zero = w.index(0);
                let ranges: Vec<ebbtide_ir::Range> = (0..self.source.array(from).rank)
                    .map(|d| {
                        let to = w.dim(source, d);
                        ebbtide_ir::Range { var: w.loop_var(&format!("k{d}")), from: zero, to }
                    })
                    .collect();
                let at: Vec<ValueId> = ranges.iter().map(|r| r.var).collect();
                let Some(index) = Indices::new(&at) else { return };
                let add = |w: &mut Writer| {
                    let flowing = w.load(target, index, None);
                    w.accumulate(source, index, flowing, None);
                };
                if ranges.is_empty() {
                    add(w);
                } else {
                    let body = w.block(add);
                    let id = w.new_par();
                    w.push(Stmt::Par(ebbtide_ir::Par {
                        id,
                        ranges,
                        body,
                        ordering: ebbtide_ir::Ordering::Ordered,
                        site: None,
                    }));
                }
            } else {
                w.push(Stmt::Copy { from: target, to: source });
            }
            self.held.insert(from, Held::Numbers);
        }
        self.held.insert(to, Held::Nothing);
    }

    fn reverse_branch(&mut self, w: &mut Writer, branch: &Branch) -> Result<(), Error> {
        let condition = self.known(branch.condition);
        let before = self.held.clone();
        let mut arms = Vec::new();
        let mut ends = Vec::new();
        let env = self.env.clone();
        let outer = std::mem::replace(&mut self.nested, true);
        for block in [&branch.then, &branch.otherwise] {
            self.held.clone_from(&before);
            w.begin();
            self.repeat_values(w, block);
            self.reverse(w, block)?;
            arms.push(w.end());
            ends.push(self.held.clone());
            self.env.clone_from(&env);
        }
        self.nested = outer;
        // After the branch a shadow is what both arms agree on, with real zeros where they do not.
        for (arm, end) in arms.iter_mut().zip(&ends) {
            w.begin();
            for (a, held) in end {
                if *held == Held::Nothing
                    && ends.iter().any(|e| e.get(a) != Some(held))
                    && let Some(shadow) = self.shadows.arrays.get(a)
                {
                    let zero = w.real(self.source.array(*a).ty, 0.0);
                    w.push(Stmt::Fill(*shadow, zero));
                }
            }
            arm.extend(w.end());
        }
        self.held = before.keys().map(|a| (*a, join(ends[0][a], ends[1][a]))).collect();
        let otherwise = arms.pop().unwrap_or_default();
        let then = arms.pop().unwrap_or_default();
        w.push(Stmt::If(Branch { condition, then, otherwise }));
        Ok(())
    }

    fn reverse_loop(&mut self, w: &mut Writer, l: &Loop) -> Result<(), Error> {
        let nested = self.nested;
        let before_start = |v| ebbtide_ir::depends_on_arguments_alone(self.source, v);
        // Passes of a loop of unknown length are counted from zero: its variable is `from` further on.
        let (var, shift) = match l.kind {
            LoopKind::For { var, from, to }
                if nested || (l.until.is_none() && before_start(from) && before_start(to)) =>
            {
                (Some(var), None)
            }
            LoopKind::For { var, from, .. } => (Some(var), Some(from)),
            _ => (None, None),
        };
        let piece = match (self.pieces.get(&l.id), &l.kind) {
            (Some(piece), _) if !nested => *piece,
            (_, LoopKind::For { from, to, .. }) => (self.known(*from), self.known(*to)),
            _ => return Ok(()),
        };
        let outer = std::mem::replace(&mut self.nested, true);
        let start = self.held.clone();
        let mut assumed = start.clone();
        // What shadows hold at the beginning of a pass must be what they hold at its end: weaken until it is so.
        let body = loop {
            let tables = w.program.clone();
            let (env, kept) = (self.env.clone(), self.kept.clone());
            self.held.clone_from(&assumed);
            let name = var.and_then(|v| self.source.value(v).name.clone()).unwrap_or_else(|| "t".to_string());
            let back = w.loop_var(&format!("{name}_back"));
            w.begin();
            let sum = w.add(piece.0, piece.1);
            let one = w.index(1);
            let last = w.sub(sum, one);
            let pass = w.sub(last, back);
            w.program.values[pass.index()].name = Some(name);
            if let Some(var) = var {
                let counted = match shift {
                    Some(from) => w.add(self.known(from), pass),
                    None => pass,
                };
                self.env.insert(var, counted);
            }
            self.repeat_values(w, &l.body);
            self.reverse(w, &l.body)?;
            let weaker: BTreeMap<ArrayId, Held> =
                assumed.iter().map(|(a, h)| (*a, join(*h, self.held[a]))).collect();
            if weaker == assumed {
                for (a, held) in self.held.clone() {
                    if held == Held::Nothing && assumed[&a] != Held::Nothing {
                        self.make_real(w, a);
                    }
                }
                let body = w.end();
                self.env = env;
                break vec![Stmt::Loop(Loop {
                    id: l.id,
                    kind: LoopKind::For { var: back, from: piece.0, to: piece.1 },
                    body,
                    until: None,
                    schedule: None,
                })];
            }
            w.end();
            w.program = tables;
            (self.env, self.kept) = (env, kept);
            assumed = weaker;
        };
        self.nested = outer;
        // Before the loop, zeros that passes will read as numbers must be real.
        self.held = start;
        for (a, held) in &assumed {
            if *held != Held::Nothing {
                self.make_real(w, *a);
            }
        }
        self.held = assumed;
        if nested {
            body.into_iter().for_each(|stmt| w.push(stmt));
        } else {
            w.push(Stmt::Backward(Backward { id: l.id, reverse: body }));
        }
        Ok(())
    }

    /// Computes the program-level values of a block again, in the reverse half.
    fn repeat_values(&mut self, w: &mut Writer, block: &Block) {
        for stmt in block {
            if let Stmt::Let(v) = stmt {
                let decl = self.source.value(*v);
                let new = match self.kept.get(&Aside::Value(*v)).copied() {
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

fn join(a: Held, b: Held) -> Held {
    match (a, b) {
        _ if a == b => a,
        (Held::Numbers, _) | (_, Held::Numbers) => Held::Numbers,
        _ => Held::Nothing,
    }
}

/// The pushes of a block, with the inner loops around each.
fn pushes(block: &Block) -> Vec<Pushes> {
    fn collect(block: &Block, within: &mut Vec<(ValueId, ValueId)>, out: &mut Vec<Pushes>) {
        for stmt in block {
            match stmt {
                Stmt::Push(push) => out.push(Pushes { array: push.array, within: within.clone() }),
                Stmt::Loop(Loop { kind: LoopKind::For { from, to, .. }, body, .. }) => {
                    within.push((*from, *to));
                    collect(body, within, out);
                    within.pop();
                }
                Stmt::Par(_) | Stmt::Forward(_) => {}
                _ => stmt.blocks().for_each(|b| collect(b, within, out)),
            }
        }
    }
    let mut out = Vec::new();
    collect(block, &mut Vec::new(), &mut out);
    out
}
