//! What it takes to enter a program at a region instead of at its beginning.

use std::collections::BTreeSet;

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

    fn join(&mut self, other: Made) {
        self.values.extend(other.values);
        self.locals.extend(other.locals);
        self.temps.extend(other.temps);
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
    /// The visible temporaries that another pass of a loop may make anew.
    pub remade: BTreeSet<ArrayId>,
    /// The visible values that are computed from arguments, shapes and other values, operands before uses: all but
    /// elements, local variables and the variables of loops.
    pub computed: Vec<ValueId>,
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
        };
        let mut block = &program.body;
        let mut after = Made::default();
        let mut here = Made::default();
        for turn in path {
            let (before, rest) = block.split_at(turn.child);
            for stmt in before {
                match stmt {
                    Stmt::Let(v) => drop(here.values.insert(*v)),
                    Stmt::Declare(local, _) => drop(here.locals.insert(*local)),
                    Stmt::Temp(a) => drop(here.temps.insert(*a)),
                    _ => {}
                }
            }
            let (stmt, rest) = rest.split_first()?;
            after = needed_before(program, rest, after);
            if let Stmt::Loop(l) = stmt {
                entry.loops.push(l.id);
                entry.visible_in.push(std::mem::take(&mut here));
                if let LoopKind::For { var, .. } = l.kind {
                    here.values.insert(var);
                }
                after = needed_at_end_of_body(program, l, after);
            }
            if let Stmt::Region(region) = stmt {
                entry.needed = needed_in_region(program, region, after);
                break;
            }
            block = stmt.blocks().nth(turn.block)?;
        }
        entry.visible_in.push(here);
        for (depth, made) in entry.visible_in.iter().enumerate() {
            entry.visible.join(made.clone());
            if depth > 0 {
                entry.remade.extend(&made.temps);
            }
        }
        let computed = |v: &ValueId| !matches!(program.op(*v), Op::Load(..) | Op::Get(_) | Op::LoopVar);
        entry.computed = entry.visible.values.iter().copied().filter(computed).collect();
        Some(entry)
    }

    /// What a run that was entered here, in the passes `entered`, and that knew `known`, still does not know in
    /// the passes `now`: what it skipped and has not come by since.
    pub fn unknown(&self, known: &Made, entered: &[u64], now: &[u64]) -> Made {
        let mut unknown = Made::default();
        for (depth, made) in self.visible_in.iter().enumerate() {
            if entered.get(..depth) == now.get(..depth) {
                unknown.join(made.difference(known));
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
        for v in &self.visible.values {
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

// ---- what may be read later; the depth of recursion is the depth of nesting in the source

fn needed_before(program: &Program, statements: &[Stmt], after: Made) -> Made {
    statements.iter().rev().fold(after, |after, stmt| needed_before_one(program, stmt, after))
}

fn needed_before_one(program: &Program, stmt: &Stmt, mut live: Made) -> Made {
    let is_temp = |a: ArrayId| matches!(program.array(a).role, Role::Temp(_));
    match stmt {
        Stmt::Let(v) => {
            live.values.remove(v);
            let op = program.op(*v);
            live.values.extend(op.operands());
            match *op {
                Op::Get(local) => drop(live.locals.insert(local)),
                Op::Load(a, _) | Op::Dim(a, _) if is_temp(a) => drop(live.temps.insert(a)),
                _ => {}
            }
        }
        Stmt::Declare(local, _) | Stmt::Set(local, _) => drop(live.locals.remove(local)),
        // A write of one element keeps the others.
        Stmt::Store(s) | Stmt::Update(_, s) if is_temp(s.array) => drop(live.temps.insert(s.array)),
        Stmt::Fill(a, _) | Stmt::Temp(a) => drop(live.temps.remove(a)),
        Stmt::Copy { from, to } => {
            live.temps.remove(to);
            if is_temp(*from) {
                live.temps.insert(*from);
            }
        }
        Stmt::Library(call) => {
            for a in &call.writes {
                if call.op.replaces_all() {
                    live.temps.remove(a);
                } else if is_temp(*a) {
                    live.temps.insert(*a);
                }
            }
            live.temps.extend(call.reads.iter().copied().filter(|a| is_temp(*a)));
        }
        Stmt::Swap(a, b) => {
            let (had_a, had_b) = (live.temps.remove(a), live.temps.remove(b));
            live.temps.extend(had_a.then_some(*b));
            live.temps.extend(had_b.then_some(*a));
        }
        Stmt::Push(Push { array: a, .. }) | Stmt::Pop(a) if is_temp(*a) => drop(live.temps.insert(*a)),
        Stmt::If(branch) => {
            let mut either = needed_before(program, &branch.then, live.clone());
            either.join(needed_before(program, &branch.otherwise, live));
            live = either;
        }
        Stmt::Loop(l) => {
            let end = needed_at_end_of_body(program, l, live.clone());
            live.join(needed_at_head(program, l, &live, end));
        }
        Stmt::Par(par) => {
            let mut inside = needed_before(program, &par.body, live.clone());
            inside.values.retain(|v| par.ranges.iter().all(|range| range.var != *v));
            live.join(inside);
        }
        Stmt::Region(region) => return needed_in_region(program, region, live),
        Stmt::Call(call) => return needed_before(program, &call.body, live),
        Stmt::Forward(f) => {
            live.temps.extend(f.carried.iter().chain(&f.kept).copied().filter(|a| is_temp(*a)));
        }
        _ => {}
    }
    // What the inside of a `while` or a `loop` defines for its end is not needed before it.
    match stmt {
        Stmt::Loop(Loop { kind: LoopKind::For { from, to, .. }, .. }) => live.values.extend([*from, *to]),
        Stmt::Loop(_) => {}
        Stmt::Temp(a) => {
            if let Role::Temp(shape) = &program.array(*a).role {
                live.values.extend(shape);
            }
        }
        other => live.values.extend(other.uses()),
    }
    live
}

fn needed_in_region(program: &Program, region: &Region, after: Made) -> Made {
    needed_before(program, &region.body, after)
}

/// What is needed where a loop is about to begin a pass or to end, if `end` is needed at the end of a pass.
fn needed_at_head(program: &Program, l: &Loop, after: &Made, end: Made) -> Made {
    let mut pass = needed_before(program, &l.body, end);
    match &l.kind {
        LoopKind::For { var, .. } => {
            pass.values.remove(var);
            pass
        }
        LoopKind::While { head, condition } => {
            pass.join(after.clone());
            pass.values.insert(*condition);
            needed_before(program, head, pass)
        }
        LoopKind::Forever => pass,
    }
}

/// What is needed at the end of a loop's body: by its condition, by another pass, by what comes after it.
fn needed_at_end_of_body(program: &Program, l: &Loop, after: Made) -> Made {
    let mut end = after.clone();
    end.values.extend(l.until);
    loop {
        let mut more = end.clone();
        more.join(needed_at_head(program, l, &after, end.clone()));
        if more == end {
            return end;
        }
        end = more;
    }
}
