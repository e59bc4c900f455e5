//! Time loops that can run inside their parallel loops, since these touch only elements of their own iterations.
//!
//! Where every parallel loop in a sequential one has the same domain, and every iteration touches, of what the loop
//! writes, elements that no other one touches at any time, the two kinds of loops can change places: one thread
//! takes an iteration through all of the time loop and meets nobody. Elements at the iteration's very index are then held in
//! variables: loaded before the loop, stored behind it. That holds for what is put on tapes and brought back
//! too, an element at a time, where the domain is the whole array; so both halves of a reversed loop are such loops.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ebbtide_ir::{
    After, ArrayId, Binary, Block, Facts, Indices, Loop, LoopKind, Op, Par, Program, Role, Sharing, Stmt,
    ValueId, walk,
};

use crate::kernel::interchange::{Held, Tape};

#[cfg(test)]
mod tests;

/// Iterations of at most so many statements are taken so many as one.
const UNROLLED: [(usize, usize); 3] = [(40, 8), (100, 4), (usize::MAX, 1)];

/// So many elements are on their way at a time, to and from all tapes together.
const AHEAD: usize = 8;

/// How a loop runs inside the parallel loops of its iterations.
#[derive(Debug)]
pub(crate) struct Interchange<'l> {
    /// The parallel loops of an iteration, all over the domain of the first.
    pub pars: Vec<&'l Par>,
    /// The arrays in whose memory it finds elements, or puts them.
    pub arrays: BTreeSet<ArrayId>,
    /// The arrays whose elements are held in variables.
    pub held: BTreeMap<ArrayId, Held>,
    /// The tapes that every iteration uses.
    pub tapes: BTreeMap<ArrayId, Tape>,
    /// What comes to life inside the loop.
    pub inside: BTreeSet<ValueId>,
    /// Those of them that the domain is computed from, operands first.
    pub early: BTreeSet<ValueId>,
}

impl Interchange<'_> {
    /// How many iterations of the loop are taken as one: only what one hands to the next makes a thread wait then.
    pub fn iterations_as_one(&self, l: &Loop) -> usize {
        let mut statements = 0;
        walk(&l.body, &mut |_| statements += 1);
        let unrolled =
            UNROLLED.iter().find(|(most, _)| statements <= *most).map_or(1, |(_, iterations)| *iterations);
        let used: u32 = self.tapes.values().map(Tape::places).sum();
        match used {
            0 => unrolled,
            used => unrolled.max(2).min(AHEAD / used as usize).max(1),
        }
    }
}

/// Why a loop stays outside its parallel loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NotCounted,
    NoParallelLoop,
    Statement(&'static str),
    Domain,
    MayFail,
    Shared(String),
    Elsewhere(String),
    BothWays(String),
    Scalar(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotCounted => write!(f, "the number of iterations is not known on entry"),
            Refusal::NoParallelLoop => write!(f, "there is no parallel loop in it"),
            Refusal::Statement(what) => write!(f, "there is {what} in it"),
            Refusal::Domain => write!(f, "not all parallel loops have one domain that stays the same"),
            Refusal::MayFail => write!(f, "a division at program level may fail"),
            Refusal::Shared(array) => write!(f, "iterations combine into shared elements of `{array}`"),
            Refusal::Elsewhere(array) => {
                write!(f, "`{array}` is written, and touched at elements that are not an iteration's own")
            }
            Refusal::BothWays(array) => write!(f, "the tape of `{array}` is used both ways"),
            Refusal::Scalar(local) => write!(f, "`{local}` outlives an iteration that sets it"),
        }
    }
}

/// What a loop does with one array.
#[derive(Default)]
struct Touches {
    written: bool,
    /// Is it exchanged, taped or given new elements as a whole?
    whole: bool,
    /// By parallel loop, in the order of [`Interchange::pars`].
    elements: Vec<(usize, Indices)>,
    /// Does program-level code read an element?
    uniform: bool,
}

struct Analysis<'l, 'p> {
    program: &'p Program,
    facts: &'p Facts,
    touches: BTreeMap<ArrayId, Touches>,
    declared: BTreeSet<ebbtide_ir::LocalId>,
    found: Interchange<'l>,
}

/// Can the loop run inside the parallel loops of its iterations?
pub(crate) fn interchange<'l>(
    program: &Program,
    facts: &Facts,
    l: &'l Loop,
) -> Result<Interchange<'l>, Refusal> {
    let LoopKind::For { var, .. } = l.kind else { return Err(Refusal::NotCounted) };
    if l.until.is_some() {
        return Err(Refusal::NotCounted);
    }
    let mut inside = BTreeSet::from([var]);
    walk(&l.body, &mut |stmt| match stmt {
        Stmt::Let(v) => drop(inside.insert(*v)),
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => drop(inside.insert(*var)),
        Stmt::Par(par) => inside.extend(par.ranges.iter().map(|r| r.var)),
        _ => {}
    });
    let mut analysis = Analysis {
        program,
        facts,
        touches: BTreeMap::new(),
        declared: BTreeSet::new(),
        found: Interchange {
            pars: Vec::new(),
            arrays: BTreeSet::new(),
            held: BTreeMap::new(),
            tapes: BTreeMap::new(),
            inside,
            early: BTreeSet::new(),
        },
    };
    analysis.block(&l.body, Certain::Yes)?;
    analysis.verdict()
}

/// Does a statement run in every iteration?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certain {
    Yes,
    No,
}

impl<'l> Analysis<'l, '_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &'l Block, certain: Certain) -> Result<(), Refusal> {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => self.value(*v)?,
                Stmt::Declare(local, _) => drop(self.declared.insert(*local)),
                Stmt::Set(local, _) if self.declared.contains(local) => {}
                Stmt::Set(local, _) => {
                    return Err(Refusal::Scalar(self.program.locals[local.index()].name.clone()));
                }
                Stmt::If(branch) => {
                    self.block(&branch.then, Certain::No)?;
                    self.block(&branch.otherwise, Certain::No)?;
                }
                Stmt::Call(call) => self.block(&call.body, certain)?,
                Stmt::Par(par) => self.par(par)?,
                Stmt::Swap(a, b) => [a, b].into_iter().for_each(|a| self.replaced(*a)),
                Stmt::Copy { from, to, .. } => {
                    self.replaced(*to);
                    self.touches.entry(*from).or_default().whole = true;
                }
                Stmt::Fill(a, ..) | Stmt::Temp(a) => self.replaced(*a),
                Stmt::Push(_) | Stmt::Pop(_) if certain == Certain::No => {
                    return Err(Refusal::Statement("a tape that some iterations alone use"));
                }
                Stmt::Push(push) => {
                    self.replaced(push.array);
                    if let After::Anything(old) = push.after {
                        self.replaced(old);
                    }
                    self.tape(push.array, Tape::Pushes(1))?;
                }
                Stmt::Pop(a) => {
                    self.replaced(*a);
                    self.tape(*a, Tape::Pops(1))?;
                }
                Stmt::Loop(_) => return Err(Refusal::Statement("another sequential loop")),
                Stmt::Region(_) => return Err(Refusal::Statement("a region")),
                Stmt::Library(_) => return Err(Refusal::Statement("a library operation")),
                Stmt::Store(_) | Stmt::Update(..) => {
                    return Err(Refusal::Statement("the write of a single element"));
                }
                Stmt::Claim(_) | Stmt::Forward(_) | Stmt::Backward(_) | Stmt::Host(..) => {
                    return Err(Refusal::Statement("what the host drives"));
                }
            }
        }
        Ok(())
    }

    /// All elements of the array change, or its name does.
    fn replaced(&mut self, array: ArrayId) {
        let touches = self.touches.entry(array).or_default();
        (touches.written, touches.whole) = (true, true);
    }

    fn tape(&mut self, array: ArrayId, one: Tape) -> Result<(), Refusal> {
        let used = match (self.found.tapes.get(&array), one) {
            (None, one) => one,
            (Some(Tape::Pushes(n)), Tape::Pushes(_)) => Tape::Pushes(n + 1),
            (Some(Tape::Pops(n)), Tape::Pops(_)) => Tape::Pops(n + 1),
            _ => return Err(Refusal::BothWays(self.program.array(array).name.clone())),
        };
        self.found.tapes.insert(array, used);
        Ok(())
    }

    /// A value of program level.
    fn value(&mut self, v: ValueId) -> Result<(), Refusal> {
        if let Op::Load(array, _) = self.program.op(v) {
            self.touches.entry(*array).or_default().uniform = true;
        }
        if may_divide_by_zero(self.program, v) { Err(Refusal::MayFail) } else { Ok(()) }
    }

    fn par(&mut self, par: &'l Par) -> Result<(), Refusal> {
        let number = self.found.pars.len();
        let first = *self.found.pars.first().unwrap_or(&par);
        let form = |v| self.facts.affines.form(v);
        let same = first.ranges.len() == par.ranges.len()
            && first
                .ranges
                .iter()
                .zip(&par.ranges)
                .all(|(a, b)| form(a.from) == form(b.from) && form(a.to) == form(b.to));
        if !same {
            return Err(Refusal::Domain);
        }
        for range in &par.ranges {
            self.bound(range.from)?;
            self.bound(range.to)?;
        }
        if !par.requires.is_empty() {
            return Err(Refusal::Statement("a condition on the iterations of a loop"));
        }
        let sharing = self.facts.pars.get(&par.id).map(|facts| facts.sharing.clone()).unwrap_or_default();
        if let Some((array, _)) = sharing.iter().find(|(_, sharing)| **sharing != Sharing::Own) {
            return Err(Refusal::Shared(self.program.array(*array).name.clone()));
        }
        let mut claims = false;
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Let(v) => {
                if let Op::Load(array, index) = self.program.op(*v) {
                    self.touches.entry(*array).or_default().elements.push((number, *index));
                }
            }
            Stmt::Store(s) | Stmt::Update(_, s) => {
                let touches = self.touches.entry(s.array).or_default();
                touches.written = true;
                touches.elements.push((number, s.index));
            }
            Stmt::Claim(_) => claims = true,
            _ => {}
        });
        self.found.pars.push(par);
        if claims { Err(Refusal::Statement("an element that is claimed")) } else { Ok(()) }
    }

    /// A bound of the domain is the same in all iterations: it is made of what is known before the loop.
    fn bound(&mut self, bound: ValueId) -> Result<(), Refusal> {
        let mut work = vec![bound];
        while let Some(v) = work.pop() {
            let op = self.program.op(v);
            if !self.found.inside.contains(&v) || matches!(op, Op::Literal(_)) {
                continue;
            }
            if !op.is_pure() || *op == Op::LoopVar || may_divide_by_zero(self.program, v) {
                return Err(Refusal::Domain);
            }
            self.found.early.insert(v);
            work.extend(op.operands());
        }
        Ok(())
    }

    /// Is this the element at the very index of the iteration?
    fn is_own(&self, (par, index): &(usize, Indices)) -> bool {
        let variables: Vec<ValueId> = self.found.pars[*par].ranges.iter().map(|r| r.var).collect();
        is_at(self.facts, &variables, *index)
    }

    /// Does one dimension for each parallel variable, the same everywhere, tell iterations apart at all times?
    fn is_told_apart(&self, elements: &[(usize, Indices)]) -> bool {
        let Some(first) = self.found.pars.first() else { return false };
        (0..first.ranges.len()).all(|variable| {
            let is_variable = |(par, index): &(usize, Indices), d: usize| {
                let var = self.found.pars[*par].ranges[variable].var;
                index.as_slice().get(d).is_some_and(|v| self.facts.affines.form(*v).as_atom() == Some(var))
            };
            (0..Indices::MAX_RANK).any(|d| elements.iter().all(|e| is_variable(e, d)))
        })
    }

    fn verdict(mut self) -> Result<Interchange<'l>, Refusal> {
        let Some(first) = self.found.pars.first() else { return Err(Refusal::NoParallelLoop) };
        let dimensions = first.ranges.len();
        for (array, touches) in &self.touches {
            let decl = self.program.array(*array);
            let own = touches.elements.iter().filter(|e| self.is_own(e)).count();
            let all_own = own == touches.elements.len() && decl.rank == dimensions;
            let held = if !touches.written {
                // What nobody writes can be read anywhere.
                own > 0 || touches.whole && decl.rank == dimensions
            } else if touches.uniform {
                false
            } else {
                all_own
            };
            let fine = if touches.whole || touches.written && touches.uniform {
                held
            } else {
                held || !touches.written || self.is_told_apart(&touches.elements)
            };
            if !fine {
                return Err(Refusal::Elsewhere(decl.name.clone()));
            }
            let old = matches!(decl.role, Role::Old(_));
            if !old {
                self.found.arrays.insert(*array);
            }
            if held {
                let held = Held { old, written: touches.written && !old, whole: touches.whole };
                self.found.held.insert(*array, held);
            }
        }
        Ok(self.found)
    }
}

/// Is the index that of the iteration itself?
pub(crate) fn is_at(facts: &Facts, variables: &[ValueId], index: Indices) -> bool {
    let index = index.as_slice();
    index.len() == variables.len()
        && index.iter().zip(variables).all(|(v, var)| facts.affines.form(*v).as_atom() == Some(*var))
}

fn may_divide_by_zero(program: &Program, v: ValueId) -> bool {
    match *program.op(v) {
        Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b) if !program.ty(v).is_float() => {
            program.literal(b).and_then(|l| l.to_i64()).is_none_or(|divisor| divisor == 0)
        }
        _ => false,
    }
}
