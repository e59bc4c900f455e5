//! What it takes to enter a program at a region instead of at its beginning.

use std::collections::BTreeSet;

use crate::analysis::dataflow::{Analysis, Edge, Facts, at_end_of_body, backward};
use crate::syntax::*;

/// Things that statements at program level make and that others use later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Values, the variables of loops among them.
    pub values: BTreeSet<ValueId>,
    /// Local variables.
    pub locals: BTreeSet<LocalId>,
    /// Temporary arrays.
    pub temps: BTreeSet<ArrayId>,
}

impl Made {
    /// What both have.
    pub fn intersection(&self, other: &Made) -> Made {
        Made {
            values: self.values.intersection(&other.values).copied().collect(),
            locals: self.locals.intersection(&other.locals).copied().collect(),
            temps: self.temps.intersection(&other.temps).copied().collect(),
        }
    }

    /// What this has and the other has not.
    pub fn difference(&self, other: &Made) -> Made {
        Made {
            values: self.values.difference(&other.values).copied().collect(),
            locals: self.locals.difference(&other.locals).copied().collect(),
            temps: self.temps.difference(&other.temps).copied().collect(),
        }
    }
}

impl Facts for Made {
    fn join(&mut self, other: &Made) {
        self.values.extend(&other.values);
        self.locals.extend(&other.locals);
        self.temps.extend(&other.temps);
    }

    fn swap(&mut self, a: ArrayId, b: ArrayId) {
        let (had_a, had_b) = (self.temps.remove(&a), self.temps.remove(&b));
        self.temps.extend(had_a.then_some(b));
        self.temps.extend(had_b.then_some(a));
    }
}

/// A region seen from outside.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The loops around it, outermost first.
    pub loops: Vec<LoopId>,
    /// What was made before it and is in scope there.
    pub visible: Made,
    /// The same by the number of loops around the statement that makes it.
    pub visible_in: Vec<Made>,
    /// What is made before it and may be read from it on.
    pub needed: Made,
    /// The visible temporaries that another iteration of a loop may make anew.
    pub remade: BTreeSet<ArrayId>,
    /// The visible values that are computed from arguments, shapes and other values, operands before uses: all but
    /// elements, local variables and the variables of loops.
    pub computed: Vec<ValueId>,
    /// The visible values in the order in which they are computed: numbers of values need not follow it.
    order: Vec<ValueId>,
}

/// How the values that a run needs at an entry come about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Derivation {
    /// Values to be computed before the run, operands before uses.
    pub compute: Vec<ValueId>,
    /// What cannot be had, as a user would call it.
    pub missing: Vec<String>,
}

impl Entry {
    /// The entry at a region; `None` if the program has no such region.
    pub fn of(program: &Program, region: RegionId) -> Option<Entry> {
        let path = path_to(program, region)?;
        let mut entry = Entry {
            loops: Vec::new(),
            visible: Made::default(),
            visible_in: Vec::new(),
            needed: Made::default(),
            remade: BTreeSet::new(),
            computed: Vec::new(),
            order: Vec::new(),
        };
        let mut liveness = Liveness { program };
        let mut block = &program.body;
        let mut after = Made::default();
        let mut here = Made::default();
        for turn in path {
            let (before, rest) = block.split_at(turn.child);
            for stmt in before {
                match stmt {
                    Stmt::Let(v) => {
                        entry.order.push(*v);
                        here.values.insert(*v);
                    }
                    Stmt::Declare(local, _) => drop(here.locals.insert(*local)),
                    Stmt::Temp(a) => drop(here.temps.insert(*a)),
                    _ => {}
                }
            }
            let (stmt, rest) = rest.split_first()?;
            after = backward(&mut liveness, rest, after);
            if let Stmt::Loop(l) = stmt {
                entry.loops.push(l.id);
                entry.visible_in.push(std::mem::take(&mut here));
                if let LoopKind::For { var, .. } = l.kind {
                    entry.order.push(var);
                    here.values.insert(var);
                }
                after = at_end_of_body(&mut liveness, stmt, &after)?;
            }
            if let Stmt::Region(region) = stmt {
                entry.needed = backward(&mut liveness, &region.body, after);
                entry.needed.temps.retain(|a| liveness.is_temp(*a));
                break;
            }
            block = stmt.blocks().nth(turn.block)?;
        }
        entry.visible_in.push(here);
        for (depth, made) in entry.visible_in.iter().enumerate() {
            entry.visible.join(made);
            if depth > 0 {
                entry.remade.extend(&made.temps);
            }
        }
        let exchanged = exchanged_with_parameters(program);
        entry.needed.temps.extend(exchanged.intersection(&entry.visible.temps));
        let computed = |v: &ValueId| !matches!(program.op(*v), Op::Load(..) | Op::Get(_) | Op::LoopVar);
        entry.computed = entry.order.iter().copied().filter(computed).collect();
        Some(entry)
    }

    /// What a run that was entered here, in the iterations `entered`, and that knew `known`, still does not know in
    /// the iterations `now`: what it skipped and has not come by since.
    pub fn unknown(&self, known: &Made, entered: &[u64], now: &[u64]) -> Made {
        let mut unknown = Made::default();
        for (depth, made) in self.visible_in.iter().enumerate() {
            if entered.get(..depth) == now.get(..depth) {
                unknown.join(&made.difference(known));
            }
        }
        unknown
    }

    /// How to have what is needed if only `known` is, in a run that enters all loops but the `kept` outermost
    /// ones anew.
    pub fn derive(&self, program: &Program, known: &Made, kept: usize) -> Derivation {
        let bounds = loop_bounds(program, &self.loops[kept.min(self.loops.len())..]);
        let mut derivation = Derivation::default();
        let mut have = known.values.intersection(&self.visible.values).copied().collect::<BTreeSet<_>>();
        for v in &self.order {
            let derivable = match program.op(*v) {
                Op::Load(..) | Op::Get(_) => false,
                Op::Dim(array, _) => {
                    !matches!(program.array(*array).role, Role::Temp(_)) || known.temps.contains(array)
                }
                // The variable of a loop that is entered anew has its first value.
                Op::LoopVar => bounds.iter().any(|(var, from, _)| var == v && have.contains(from)),
                op => op.operands().all(|operand| have.contains(&operand)),
            };
            if derivable {
                have.insert(*v);
                derivation.compute.push(*v);
            }
        }
        let bounds = bounds.iter().flat_map(|(_, from, to)| [*from, *to]);
        let needed: BTreeSet<ValueId> = self.needed.values.iter().copied().chain(bounds).collect();
        for v in needed.difference(&have) {
            derivation.missing.push(describe(program, *v));
        }
        for local in self.needed.locals.difference(&known.locals) {
            derivation.missing.push(format!("local `{}`", program.locals[local.index()].name));
        }
        for temp in self.needed.temps.difference(&known.temps) {
            derivation.missing.push(format!("temporary `{}`", program.array(*temp).name));
        }
        derivation
    }
}

/// The temporaries that parameters may have exchanged their elements with: at the end, and where the program yields, the caller looks at
/// what these hold.
fn exchanged_with_parameters(program: &Program) -> BTreeSet<ArrayId> {
    let is_temp = |a: &ArrayId| matches!(program.array(*a).role, Role::Temp(_));
    let swaps = program.swaps();
    let params = swaps.iter().flat_map(|(a, b)| [*a, *b]).filter(|a| !is_temp(a));
    let mut found: BTreeSet<ArrayId> = params.collect();
    loop {
        let reached = swaps.iter().filter(|(a, b)| found.contains(a) != found.contains(b));
        let reached: Vec<ArrayId> = reached.flat_map(|(a, b)| [*a, *b]).collect();
        if reached.is_empty() {
            break;
        }
        found.extend(reached);
    }
    found.retain(is_temp);
    found
}

/// The variable and the bounds of each `for` among these loops.
pub fn loop_bounds(program: &Program, loops: &[LoopId]) -> Vec<(ValueId, ValueId, ValueId)> {
    let mut bounds = Vec::new();
    walk(&program.body, &mut |stmt| {
        if let Stmt::Loop(Loop { id, kind: LoopKind::For { var, from, to }, .. }) = stmt
            && loops.contains(id)
        {
            bounds.push((*var, *from, *to));
        }
    });
    bounds
}

fn describe(program: &Program, v: ValueId) -> String {
    let decl = program.value(v);
    let site = decl.site.as_ref().map_or(String::new(), |site| format!(" ({site})"));
    match (&decl.name, decl.op) {
        (Some(name), _) => format!("`{name}`{site}"),
        (None, Op::Load(array, _)) => format!("an element of `{}`{site}", program.array(array).name),
        (None, Op::Get(local)) => format!("local `{}`{site}", program.locals[local.index()].name),
        (None, _) => format!("value {}{site}", v.index()),
    }
}

/// Liveness: what may be read later.
struct Liveness<'a> {
    program: &'a Program,
}

impl Liveness<'_> {
    fn is_temp(&self, a: ArrayId) -> bool {
        matches!(self.program.array(a).role, Role::Temp(_))
    }

    fn read(&self, live: &mut Made, arrays: impl IntoIterator<Item = ArrayId>) {
        live.temps.extend(arrays.into_iter().filter(|a| self.is_temp(*a)));
    }
}

impl Analysis for Liveness<'_> {
    type Facts = Made;

    fn statement(&mut self, stmt: &Stmt, live: &mut Made) {
        match stmt {
            Stmt::Let(v) => {
                live.values.remove(v);
                let op = self.program.op(*v);
                live.values.extend(op.operands());
                match *op {
                    Op::Get(local) => drop(live.locals.insert(local)),
                    Op::Load(a, _) | Op::Dim(a, _) => self.read(live, [a]),
                    _ => {}
                }
            }
            Stmt::Declare(local, _) | Stmt::Set(local, _) => drop(live.locals.remove(local)),
            // A write of one element keeps the others.
            Stmt::Store(s) | Stmt::Update(_, s) => self.read(live, [s.array]),
            Stmt::Fill(a, ..) => drop(live.temps.remove(a)),
            Stmt::Temp(a) => {
                live.temps.remove(a);
                if let Role::Temp(shape) = &self.program.array(*a).role {
                    live.values.extend(shape);
                }
            }
            Stmt::Copy { from, to, .. } => {
                live.temps.remove(to);
                self.read(live, [*from]);
            }
            Stmt::Library(call) => {
                if call.op.replaces_all() {
                    live.temps.retain(|a| !call.writes.contains(a));
                } else {
                    self.read(live, call.writes.iter().copied());
                }
                self.read(live, call.reads.iter().copied());
            }
            Stmt::Push(Push { array, .. }) | Stmt::Pop(array) => self.read(live, [*array]),
            Stmt::Forward(f) => self.read(live, f.carried.iter().chain(&f.kept).copied()),
            _ => {}
        }
        live.values.extend(stmt.uses());
    }

    fn edge(&mut self, stmt: &Stmt, edge: Edge, live: &mut Made) {
        match (stmt, edge) {
            // What a `while` or a `loop` computes for its conditions is not needed before it.
            (Stmt::Loop(l), Edge::Entry) => {
                if let LoopKind::For { from, to, .. } = l.kind {
                    live.values.extend([from, to]);
                }
            }
            (_, Edge::Entry) => live.values.extend(stmt.uses()),
            (Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }), Edge::IterationStart) => {
                live.values.remove(var);
            }
            (Stmt::Par(par), Edge::IterationStart) => {
                live.values.retain(|v| par.ranges.iter().all(|range| range.var != *v));
            }
            (Stmt::Loop(Loop { kind: LoopKind::While { condition, .. }, .. }), Edge::Condition) => {
                live.values.insert(*condition);
            }
            (Stmt::Loop(l), Edge::IterationEnd) => live.values.extend(l.until),
            _ => {}
        }
    }

    /// What the driver carries between the pieces of a driven loop is named by the loop.
    fn goes_into(&self, stmt: &Stmt) -> bool {
        !matches!(stmt, Stmt::Forward(_) | Stmt::Backward(_))
    }
}
