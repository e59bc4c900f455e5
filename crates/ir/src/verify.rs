//! The verifier: holds a program against the laws and returns what it found out on the way.

use std::collections::{BTreeMap, BTreeSet};

mod structure;
mod tapes;
mod types;
mod whole_arrays;

use crate::analysis::affine::Affines;
use crate::analysis::dependence::{ParFacts, analyse, unchecked, with_requirements};
use crate::parts;
use crate::syntax::*;
use types::op_type;

/// What the verifier found out about a program; back ends use it instead of finding it again.
#[derive(Debug)]
pub struct Facts {
    /// Index arithmetic.
    pub affines: Affines,
    /// How each parallel loop shares what it writes.
    pub pars: BTreeMap<ParId, ParFacts>,
}

/// Holds `program` against the laws.
pub fn verify(program: &Program) -> Result<Facts, Error> {
    let mut flaws = flaws(program);
    if flaws.is_empty() {
        let affines = Affines::of(program);
        let findings = analyse(program, &affines);
        flaws = findings.flaws;
        flaws.extend(findings.unless.iter().map(|unless| unchecked(program, unless)));
        if flaws.is_empty() && !program.driven {
            flaws.extend(parts::check_scatters(program, &findings.pars));
        }
        if flaws.is_empty() {
            return Ok(Facts { affines, pars: findings.pars });
        }
    }
    Err(Error::Invalid { program: program.name.clone(), flaws })
}

/// Holds a program as written against the laws, and adds what must be asked when its parallel loops begin.
pub fn verify_source(program: &Program) -> Result<Program, Error> {
    let invalid = |flaws: Vec<Flaw>| Error::Invalid { program: program.name.clone(), flaws };
    let flaws = flaws(program);
    if !flaws.is_empty() {
        return Err(invalid(flaws));
    }
    let (checked, pars) = with_requirements(program).map_err(invalid)?;
    match parts::check_scatters(&checked, &pars) {
        Some(flaw) => Err(invalid(vec![flaw])),
        None => Ok(checked),
    }
}

/// What is wrong with a program, but for races.
fn flaws(program: &Program) -> Vec<Flaw> {
    let flaws = structure::flaws(program);
    if !flaws.is_empty() {
        return flaws;
    }
    let mut v = Verifier {
        program,
        defined: vec![false; program.values.len()],
        computed: vec![false; program.values.len()],
        alive: vec![false; program.locals.len()],
        temps: BTreeSet::new(),
        labels: vec![BTreeSet::new()],
        par: None,
        region: None,
        driven: program.driven,
        flaws: Vec::new(),
    };
    v.declarations();
    v.block(&program.body);
    if v.flaws.is_empty() { tapes::flaws(program) } else { v.flaws }
}

struct Verifier<'a> {
    program: &'a Program,
    /// Values that are known at this place.
    defined: Vec<bool>,
    /// Values that a statement before this one computes, known here or not.
    computed: Vec<bool>,
    alive: Vec<bool>,
    temps: BTreeSet<ArrayId>,
    /// Labels seen in each source program being called, innermost last.
    labels: Vec<BTreeSet<LabelId>>,
    /// The locals that were alive outside the parallel loop that encloses this place.
    par: Option<Vec<bool>>,
    region: Option<LabelId>,
    /// Is it a gradient program, in which regions of its source stand more than once?
    driven: bool,
    flaws: Vec<Flaw>,
}

impl Verifier<'_> {
    fn flaw(&mut self, law: &'static str, site: &Option<Site>, message: String) {
        self.flaws.push(Flaw { law, message, site: site.clone() });
    }

    fn declarations(&mut self) {
        let mut names = BTreeSet::new();
        let p = self.program;
        for param in &p.params {
            let name = match param {
                Param::Array(a) => &p.array(*a).name,
                Param::Scalar(s) => &p.scalars[s.index()].name,
            };
            if !names.insert(name) {
                self.flaw("2", &None, format!("two parameters are called `{name}`"));
            }
        }
    }

    /// Values and locals that come to life in a block end with it.
    fn block(&mut self, block: &Block) {
        let (defined, alive) = (self.defined.clone(), self.alive.clone());
        self.open_block(block);
        (self.defined, self.alive) = (defined, alive);
    }

    fn open_block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn used(&mut self, v: ValueId, site: &Option<Site>) {
        if !self.defined.get(v.index()).copied().unwrap_or(false) {
            self.flaw("1", site, format!("value {} is used where it is not defined", v.0));
        }
    }

    fn is(&mut self, v: ValueId, ty: Type, what: &str, site: &Option<Site>) {
        self.used(v, site);
        if self.defined.get(v.index()).is_some() && self.program.ty(v) != ty {
            self.flaw("3", site, format!("{what} must be `{ty}`, not `{}`", self.program.ty(v)));
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let p = self.program;
        match stmt {
            Stmt::Let(v) => {
                self.value(*v);
                self.defined[v.index()] = true;
                if std::mem::replace(&mut self.computed[v.index()], true) {
                    self.flaw("1", &p.value(*v).site, format!("value {} is computed twice", v.0));
                }
            }
            Stmt::Declare(local, v) => {
                self.is(*v, p.locals[local.index()].ty, "the first value of a local", &None);
                self.alive[local.index()] = true;
            }
            Stmt::Set(local, v) => self.set(*local, *v),
            Stmt::Store(s) | Stmt::Update(_, s) => {
                self.write(s.array, &s.site);
                self.element(s.array, s.index, &s.site);
                self.is(s.value, p.array(s.array).ty, "the value of an element", &s.site);
                if let (Stmt::Update(..), Type::Bool) = (stmt, p.array(s.array).ty) {
                    self.flaw("3", &s.site, "`bool` elements cannot be combined into".to_string());
                }
            }
            Stmt::Claim(claim) => self.claim(claim),
            Stmt::If(branch) => {
                self.is(branch.condition, Type::Bool, "a condition", &None);
                self.block(&branch.then);
                self.block(&branch.otherwise);
            }
            Stmt::Loop(l) => self.sequential(l),
            Stmt::Par(par) => self.parallel(par),
            Stmt::Region(region) => self.region(region),
            Stmt::Call(call) => {
                self.at_program_level("a call of a program", &None);
                self.labels.push(BTreeSet::new());
                self.block(&call.body);
                self.labels.pop();
            }
            Stmt::Swap(a, b) => self.swap(*a, *b),
            Stmt::Fill(a, v, _) => self.fill(*a, *v),
            Stmt::Copy { from, to, .. } => self.copy(*from, *to),
            Stmt::Library(call) => self.library(stmt, call),
            Stmt::Temp(a) => self.temp(*a),
            Stmt::Push(push) => {
                self.at_program_level("`push`", &None);
                self.write(push.array, &None);
            }
            Stmt::Pop(a) => {
                self.at_program_level("`pop`", &None);
                self.write(*a, &None);
            }
            Stmt::Forward(f) => self.forward(f),
            Stmt::Host(..) => self.at_program_level("what the host did", &None),
            Stmt::Backward(b) => {
                self.at_program_level("a sweep", &None);
                self.block(&b.reverse);
            }
        }
    }

    fn set(&mut self, local: LocalId, v: ValueId) {
        let p = self.program;
        let decl = &p.locals[local.index()];
        self.is(v, decl.ty, "the value of a local", &None);
        if !self.alive[local.index()] {
            self.flaw("1", &p.value(v).site, format!("`{}` is not alive here", decl.name));
        }
        if self.par.as_ref().is_some_and(|outer| outer[local.index()]) {
            let message = format!(
                "`{}` belongs to the code around the parallel loop, and its iterations would race to set it: \
                 declare it inside, or combine into an array element with `+=`",
                decl.name
            );
            self.flaw("7", &p.value(v).site, message);
        }
    }

    fn parallel(&mut self, par: &Par) {
        self.at_program_level("a parallel loop", &par.site);
        if !(1..=Indices::MAX_RANK).contains(&par.ranges.len()) {
            self.flaw("6", &par.site, "a parallel loop has one to six dimensions".to_string());
        }
        for range in &par.ranges {
            self.is(range.from, Type::Index, "a bound", &par.site);
            self.is(range.to, Type::Index, "a bound", &par.site);
        }
        for requirement in &par.requires {
            self.is(requirement.condition, Type::Bool, "a requirement", &par.site);
        }
        let outer = self.par.replace(self.alive.clone());
        let defined = self.defined.clone();
        par.ranges.iter().for_each(|r| self.defined[r.var.index()] = true);
        self.block(&par.body);
        self.defined = defined;
        self.par = outer;
    }

    fn claim(&mut self, claim: &Claim) {
        if self.par.is_none() {
            self.flaw("7", &claim.site, "only an iteration of a parallel loop claims elements".to_string());
        }
        self.write(claim.taken, &claim.site);
        self.element(claim.array, claim.index, &claim.site);
        let (array, taken) = (self.program.array(claim.array), self.program.array(claim.taken));
        if (taken.ty, taken.rank) != (Type::Bool, array.rank) {
            let message = format!(
                "what is taken of `{}` is kept in an Array{}<bool>, not in `{}`",
                array.name, array.rank, taken.name
            );
            self.flaw("7", &claim.site, message);
        }
    }

    fn sequential(&mut self, l: &Loop) {
        let defined = self.defined.clone();
        let alive = self.alive.clone();
        match &l.kind {
            LoopKind::For { var, from, to } => {
                self.is(*from, Type::Index, "a bound", &None);
                self.is(*to, Type::Index, "a bound", &None);
                self.defined[var.index()] = true;
            }
            LoopKind::While { head, condition } => {
                // The head's values are known in the condition alone.
                self.open_block(head);
                self.is(*condition, Type::Bool, "a condition", &None);
                (self.defined, self.alive) = (defined.clone(), alive.clone());
            }
            LoopKind::Forever => {}
        }
        self.sums(l);
        self.open_block(&l.body);
        match l.until {
            Some(until) => self.is(until, Type::Bool, "a condition", &None),
            None if matches!(l.kind, LoopKind::Forever) => {
                self.flaw("5", &None, "a `loop` needs `if … { break; }` as its last statement".to_string());
            }
            None => {}
        }
        (self.defined, self.alive) = (defined, alive);
    }

    fn sums(&mut self, l: &Loop) {
        let Some(first) = l.sums.first() else { return };
        let name = self.program.locals[first.index()].name.clone();
        if !matches!(l.kind, LoopKind::For { .. }) || l.until.is_some() {
            self.flaw(
                "8",
                &None,
                format!("only a `for` without `break` adds its terms to `{name}` in lanes"),
            );
        }
        if self.par.is_none() {
            self.flaw(
                "8",
                &None,
                format!("a loop that adds its terms to `{name}` in lanes stands in an iteration"),
            );
        }
        for (k, local) in l.sums.iter().enumerate() {
            let decl = &self.program.locals[local.index()];
            if !self.alive[local.index()] {
                self.flaw("1", &None, format!("`{}` is not alive here", decl.name));
            }
            if decl.ty == Type::Bool || l.sums[..k].contains(local) {
                self.flaw("8", &None, format!("`{}` is not one sum of numbers", decl.name));
            }
        }
    }

    fn region(&mut self, region: &Region) {
        let p = self.program;
        let label = &p.labels[region.label.index()];
        self.at_program_level("a `#[checkpoint]` region", &region.site);
        if let Some(outer) = self.region {
            let message = format!(
                "region `{label}` stands inside region `{}`: regions do not nest",
                p.labels[outer.index()]
            );
            self.flaw("9", &region.site, message);
        }
        if let Some(seen) = self.labels.last_mut()
            && !seen.insert(region.label)
            && !self.driven
        {
            self.flaw("9", &region.site, format!("label `{label}` is used twice in one program"));
        }
        if let Some(flag) = region.flag {
            let decl = p.array(flag);
            if !matches!(decl.role, Role::Param(_)) && !self.driven {
                let message = format!(
                    "the flag `{}` of region `{label}` is a temporary: the flag is the host's, so it must be a parameter",
                    decl.name
                );
                self.flaw("9", &region.site, message);
            }
            if decl.rank != 0 || !matches!(decl.ty, Type::I32 | Type::U32 | Type::Bool) {
                let message = format!(
                    "the flag `{}` of region `{label}` is an Array{}<{}>: a flag is an Array0 of i32, u32 or bool",
                    decl.name, decl.rank, decl.ty
                );
                self.flaw("9", &region.site, message);
            }
        }
        let outer = self.region.replace(region.label);
        // A region is part of its surroundings: what is declared in it lives on after it only within it.
        self.block(&region.body);
        self.region = outer;
    }

    fn temp(&mut self, id: ArrayId) {
        self.at_program_level("a temporary array", &None);
        let p = self.program;
        let decl = p.array(id);
        let shape = match &decl.role {
            Role::Temp(shape) => shape.as_slice(),
            // The driver says how long it is.
            Role::Tape(_) => {
                self.temps.insert(id);
                return;
            }
            _ => {
                return self.flaw("2", &None, format!("`{}` is a parameter, not a temporary", decl.name));
            }
        };
        if shape.len() != decl.rank {
            self.flaw(
                "2",
                &None,
                format!("`{}` has rank {} and {} extents", decl.name, decl.rank, shape.len()),
            );
        }
        for v in shape {
            self.is(*v, Type::Index, "an extent", &None);
            if !depends_on_arguments_alone(p, *v) {
                let message =
                    format!("the shape of `{}` may depend on shapes and scalar arguments alone", decl.name);
                self.flaw("2", &p.value(*v).site, message);
            }
        }
        if p.undefined.contains(&id) && !self.driven {
            self.flaw("2", &None, format!("`{}` holds zeros when it is declared", decl.name));
        }
        if !self.temps.insert(id) {
            self.flaw("2", &None, format!("temporary `{}` is declared twice", decl.name));
        }
    }

    fn at_program_level(&mut self, what: &str, site: &Option<Site>) {
        if self.par.is_some() {
            self.flaw("6", site, format!("{what} cannot stand inside a parallel loop"));
        }
    }

    fn read(&mut self, array: ArrayId, site: &Option<Site>) {
        let decl = self.program.array(array);
        if matches!(decl.role, Role::Temp(_) | Role::Tape(_)) && !self.temps.contains(&array) {
            self.flaw("1", site, format!("temporary `{}` is used before it is declared", decl.name));
        }
    }

    fn write(&mut self, array: ArrayId, site: &Option<Site>) {
        self.read(array, site);
        let decl = self.program.array(array);
        if let Role::Old(_) = decl.role {
            self.flaw(
                "2",
                site,
                format!("`{}` is what an array held before: it cannot be written", decl.name),
            );
        }
        if decl.role == Role::Param(Access::Read) {
            self.flaw(
                "2",
                site,
                format!("`{}` is borrowed with `&`: declare it `&mut` to write it", decl.name),
            );
        }
    }

    fn element(&mut self, array: ArrayId, index: Indices, site: &Option<Site>) {
        let decl = self.program.array(array);
        if decl.rank != index.as_slice().len() {
            self.flaw("2", site, format!("`{}` has rank {}", decl.name, decl.rank));
        }
        for v in index.as_slice() {
            self.is(*v, Type::Index, "an index", site);
        }
    }

    fn value(&mut self, id: ValueId) {
        let p = self.program;
        let decl = p.value(id);
        let site = &decl.site;
        for operand in decl.op.operands() {
            self.used(operand, site);
        }
        if !self.flaws.is_empty() {
            return;
        }
        if let Op::Load(array, index) = decl.op {
            self.read(array, site);
            self.element(array, index, site);
        }
        if let Op::Get(local) = decl.op
            && !self.alive[local.index()]
        {
            self.flaw("1", site, format!("`{}` is not alive here", p.locals[local.index()].name));
        }
        if let Err(message) = op_type(p, &decl.op, decl.ty) {
            self.flaw("3", site, message);
        }
    }
}

/// Can the value be computed before the program starts?
pub fn depends_on_arguments_alone(program: &Program, value: ValueId) -> bool {
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        match program.op(v) {
            Op::Load(..) | Op::Get(_) | Op::LoopVar => return false,
            // A temporary's extents are the values that it is declared with.
            Op::Dim(array, k) => {
                if let Role::Temp(shape) = &program.array(*array).role {
                    work.extend(shape.get(*k as usize));
                }
            }
            op => work.extend(op.operands()),
        }
    }
    true
}
