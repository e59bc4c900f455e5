//! Which values of a parallel loop differ between the lanes of a vector, and whether vectors can be had.

use std::collections::BTreeSet;

use ebbtide_ir::{Block, LocalId, Loop, LoopKind, Op, Par, Program, Stmt, Type, ValueId, walk};

/// What depends on the innermost parallel variable.
#[derive(Debug, Default)]
pub(crate) struct Varying {
    pub values: BTreeSet<ValueId>,
    pub locals: BTreeSet<LocalId>,
}

impl Varying {
    /// Follows the innermost variable through the body until nothing new varies. The variables of some loops are shared: lanes go
    /// through such a loop together, although it does not begin at the same place for all of them.
    pub fn of(program: &Program, par: &Par, shared: &BTreeSet<ValueId>) -> Varying {
        let innermost = par.ranges.last().map(|r| r.var);
        Varying::from_variables(program, par, innermost.into_iter().collect(), shared)
    }

    fn from_variables(
        program: &Program,
        par: &Par,
        variables: BTreeSet<ValueId>,
        shared: &BTreeSet<ValueId>,
    ) -> Varying {
        let mut varying = Varying { values: variables, locals: BTreeSet::new() };
        loop {
            let before = (varying.values.len(), varying.locals.len());
            varying.follow(program, &par.body, shared, false);
            if before == (varying.values.len(), varying.locals.len()) {
                return varying;
            }
        }
    }

    /// What differs between rows: the same for the variables that count them.
    pub fn between_rows(program: &Program, par: &Par) -> Varying {
        let outer = &par.ranges[..par.ranges.len().saturating_sub(1)];
        Varying::from_variables(program, par, outer.iter().map(|r| r.var).collect(), &BTreeSet::new())
    }

    /// `divergent`: may some lanes be here and others not?
    fn follow(&mut self, program: &Program, block: &Block, shared: &BTreeSet<ValueId>, divergent: bool) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    let op = program.op(*v);
                    let read = matches!(op, Op::Get(local) if self.locals.contains(local));
                    if read || op.operands().any(|o| self.values.contains(&o)) {
                        self.values.insert(*v);
                    }
                }
                Stmt::Declare(local, v) | Stmt::Set(local, v) if divergent || self.values.contains(v) => {
                    self.locals.insert(*local);
                }
                Stmt::If(branch) => {
                    let divergent = divergent || self.values.contains(&branch.condition);
                    self.follow(program, &branch.then, shared, divergent);
                    self.follow(program, &branch.otherwise, shared, divergent);
                }
                Stmt::Loop(l) => {
                    let divergent = divergent || self.loop_diverges(l);
                    if let LoopKind::For { var, from, .. } = l.kind
                        && self.values.contains(&from)
                        && !shared.contains(&var)
                    {
                        self.values.insert(var);
                    }
                    stmt.blocks().for_each(|b| self.follow(program, b, shared, divergent));
                }
                _ => {}
            }
        }
    }

    /// Do lanes run different numbers of iterations?
    pub fn loop_diverges(&self, l: &Loop) -> bool {
        let bounds = match &l.kind {
            LoopKind::For { from, to, .. } => self.values.contains(from) || self.values.contains(to),
            LoopKind::While { condition, .. } => self.values.contains(condition),
            LoopKind::Forever => false,
        };
        bounds || l.until.is_some_and(|until| self.values.contains(&until))
    }

    /// Is the value the same in all lanes?
    pub fn uniform(&self, v: ValueId) -> bool {
        !self.values.contains(&v)
    }
}

/// The one float type of all data that varies, where there is one and all statements have vector forms. Through some loops lanes go
/// together although they have different iterations. These values are indices, whatever their type is.
pub(crate) fn vector_element(
    program: &Program,
    varying: &Varying,
    par: &Par,
    indices: &BTreeSet<ValueId>,
    together: &dyn Fn(&Loop) -> bool,
) -> Option<Type> {
    let mut found: Option<Type> = None;
    let mut fine = true;
    let mut meet = |ty: Type| match ty {
        Type::F32 | Type::F64 if found.is_none() || found == Some(ty) => found = Some(ty),
        Type::Bool | Type::Index => {}
        _ => fine = false,
    };
    let (mut loops, mut loaded) = (true, BTreeSet::new());
    walk(&par.body, &mut |stmt| match stmt {
        // What is loaded may be of another type, if it is made a number of the loop's own at once.
        Stmt::Let(v) if indices.contains(v) => {}
        Stmt::Let(v) if !varying.uniform(*v) => match program.op(*v) {
            Op::Load(..) => drop(loaded.insert(program.ty(*v))),
            _ => meet(program.ty(*v)),
        },
        Stmt::Declare(local, _) if varying.locals.contains(local) => {
            meet(program.locals[local.index()].ty);
            // A varying index held in a variable is data.
            loops &= program.locals[local.index()].ty != Type::Index;
        }
        Stmt::Store(s) | Stmt::Update(_, s) => {
            meet(program.array(s.array).ty);
            // A mask is not a row of bytes.
            loops &= program.array(s.array).ty != Type::Bool;
        }
        Stmt::Loop(l) => {
            let together = !varying.loop_diverges(l) || together(l);
            loops &= together && matches!(l.kind, LoopKind::For { .. });
        }
        _ => {}
    });
    let floats: Vec<Type> = loaded.into_iter().filter(|ty| ty.is_float()).collect();
    found.or_else(|| <[Type; 1]>::try_from(floats).ok().map(|[ty]| ty)).filter(|_| fine && loops)
}
