//! The place where a program is being built.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use ebbtide_ir::{Builder, Error, Op, Program, Site, ValueId};

/// What the functions of [`emit`](crate::emit) build into: the untyped builder, shared, and the calls under way.
///
/// It is passed as `&Cx`, since the arguments of one call are themselves calls that build. The expansion of a program or
/// function finds it with [`Cx::current`]: so it has the user's parameters and no other, and rustc counts arguments as the
/// user does.
#[derive(Clone, Debug)]
pub struct Cx(Rc<Place>);

#[derive(Debug)]
struct Place {
    builder: RefCell<Builder>,
    calls: RefCell<Vec<Called>>,
    file: RefCell<Arc<str>>,
    /// Loop variables by which parts of small values were chosen.
    choosing: RefCell<BTreeSet<ValueId>>,
    /// How many loops whose number of iterations is data have begun.
    conditional_loops: Cell<usize>,
    /// The bounds of loops, by their variables.
    loops: RefCell<BTreeMap<ValueId, (ValueId, ValueId)>>,
    /// What becomes of `println!`.
    lines: Lines,
    /// Was there one?
    prints: Cell<bool>,
}

/// What becomes of the lines that a program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// They are in the program: a device that interprets it prints them.
    Printed,
    /// They are left out.
    LeftOut,
}

/// A program or function whose body is being expanded.
#[derive(Debug)]
struct Called {
    /// Its full path with type arguments: two programs in different modules may have one name.
    path: &'static str,
    name: &'static str,
}

thread_local! {
    /// The programs that this thread is building, innermost last.
    static BUILDING: RefCell<Vec<Cx>> = const { RefCell::new(Vec::new()) };
}

/// Ends the building of a program, also where a panic ends it.
struct Building;

impl Drop for Building {
    fn drop(&mut self) {
        BUILDING.with_borrow_mut(|all| drop(all.pop()));
    }
}

impl Cx {
    fn new(name: &str, lines: Lines) -> Cx {
        Cx(Rc::new(Place {
            builder: RefCell::new(Builder::new(name)),
            calls: RefCell::default(),
            file: RefCell::new(Arc::from("")),
            choosing: RefCell::default(),
            conditional_loops: Cell::new(0),
            loops: RefCell::default(),
            lines,
            prints: Cell::new(false),
        }))
    }

    /// The program that `build` builds, verified, and whether it prints something.
    pub(crate) fn build(name: &str, lines: Lines, build: impl FnOnce(&Cx)) -> Result<(Program, bool), Error> {
        let cx = Cx::new(name, lines);
        BUILDING.with_borrow_mut(|all| all.push(cx.clone()));
        {
            let _building = Building;
            build(&cx);
        }
        let program = cx.0.builder.replace(Builder::new(name)).finish()?;
        Ok((program, cx.0.prints.get()))
    }

    /// The program that is being built; outside of any, one that nothing comes of.
    pub fn current() -> Cx {
        BUILDING.with_borrow(|all| all.last().cloned()).unwrap_or_else(|| Cx::new("", Lines::LeftOut))
    }

    /// Does something with the builder, at the caller's place in the source.
    ///
    /// `action` never calls back into the language, so the builder is never borrowed twice.
    #[track_caller]
    pub(crate) fn emit<R>(&self, action: impl FnOnce(&mut Builder) -> R) -> R {
        let site = self.site(Location::caller());
        let mut builder = self.0.builder.borrow_mut();
        builder.at(site);
        action(&mut builder)
    }

    fn site(&self, at: &Location<'_>) -> Site {
        let mut file = self.0.file.borrow_mut();
        if **file != *at.file() {
            *file = Arc::from(at.file());
        }
        Site { file: file.clone(), line: at.line(), column: at.column() }
    }

    /// Remembers that the body of `name` is being expanded; `false`, and a flaw that names the cycle, if it is
    /// being expanded already.
    #[track_caller]
    pub(crate) fn enter(&self, path: &'static str, name: &'static str) -> bool {
        let mut calls = self.0.calls.borrow_mut();
        let Some(first) = calls.iter().position(|call| call.path == path) else {
            calls.push(Called { path, name });
            return true;
        };
        let cycle: Vec<&str> = calls[first..].iter().map(|call| call.name).chain([name]).collect();
        let message = format!(
            "recursion: {}: a program has no stack, write a loop instead",
            cycle.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" calls ")
        );
        self.emit(|b| b.flaw("1", message));
        false
    }

    /// Remembers the bounds of a loop.
    pub(crate) fn note_loop(&self, var: ValueId, from: ValueId, to: ValueId) {
        self.0.loops.borrow_mut().insert(var, (from, to));
    }

    /// Forgets the bounds of all loops.
    pub(crate) fn forget_loops(&self) {
        self.0.loops.borrow_mut().clear();
    }

    /// Is this the variable of a loop over `0..len`, or over a part of it that is seen to be one?
    pub(crate) fn runs_within(&self, index: ValueId, len: ValueId) -> bool {
        let builder = self.0.builder.borrow();
        let program = builder.program();
        let Some((from, to)) = self.0.loops.borrow().get(&index).copied() else { return false };
        let from = program.literal(from).and_then(|from| from.to_i64());
        matches!(program.op(index), Op::LoopVar)
            && from.is_some_and(|from| from >= 0)
            && same_value(program, to, len)
    }

    /// Notes that something is printed here; is it in the program?
    pub(crate) fn prints(&self) -> bool {
        self.0.prints.set(true);
        self.0.lines == Lines::Printed
    }

    /// Remembers that a loop begins whose number of iterations is data.
    pub(crate) fn note_conditional_loop(&self) {
        self.0.conditional_loops.set(self.conditional_loops() + 1);
    }

    /// How many loops whose number of iterations is data have begun so far.
    pub(crate) fn conditional_loops(&self) -> usize {
        self.0.conditional_loops.get()
    }

    /// Remembers that a small value is indexed by something computed.
    pub(crate) fn note_computed_index(&self, index: ValueId) {
        let builder = self.0.builder.borrow();
        let mut work = vec![index];
        while let Some(v) = work.pop() {
            match builder.program().op(v) {
                Op::LoopVar => drop(self.0.choosing.borrow_mut().insert(v)),
                op => work.extend(op.operands()),
            }
        }
    }

    /// Was a small value indexed by this loop variable, or something computed from it?
    pub(crate) fn take_computed_index(&self, var: ValueId) -> bool {
        self.0.choosing.borrow_mut().remove(&var)
    }

    /// Is the program itself being built, rather than one that it calls?
    pub(crate) fn at_root(&self) -> bool {
        self.0.calls.borrow().len() <= 1
    }

    pub(crate) fn leave(&self) {
        self.0.calls.borrow_mut().pop();
    }
}

/// Are the two computed in the same way from the same values?
pub(crate) fn same_value(program: &Program, a: ValueId, b: ValueId) -> bool {
    let mut work = vec![(a, b)];
    while let Some((a, b)) = work.pop() {
        if a == b {
            continue;
        }
        match (program.op(a), program.op(b)) {
            (Op::Literal(a), Op::Literal(b)) if a == b => {}
            (Op::Dim(a, j), Op::Dim(b, k)) if a == b && j == k => {}
            (Op::Binary(f, a1, a2), Op::Binary(g, b1, b2)) if f == g => work.extend([(*a1, *b1), (*a2, *b2)]),
            _ => return false,
        }
    }
    true
}
