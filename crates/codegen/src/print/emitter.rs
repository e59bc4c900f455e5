//! The text being printed: its state, and the names of values.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Facts, Function, LibraryCall, LocalId, LoopId, Op, Program, Requirement, Site, Store, Type,
    ValueId,
};
use ebbtide_math::c::{Item, Shape};
use ebbtide_math::{Format, Kernel};

use crate::analysis::address_reuse::Near;
use crate::analysis::barriers::Pending;
use crate::analysis::boundary_conditions::Usual;
use crate::analysis::exact::Exact;
use crate::analysis::narrow_index::Narrow;
use crate::analysis::thread_ownership::{Mapping, OnEntry};
use crate::kernel::machine::{Family, Target, Width};
use crate::print::c_types::{c_literal, format};
use crate::print::entry::Entry;
use crate::print::own::Own;
use crate::transform::sink_stores::Waiting;
use crate::unit::{Access, Unit};

/// The text being printed.
pub(crate) struct Emitter<'p> {
    pub program: &'p Program,
    pub facts: &'p Facts,
    pub family: Family,
    pub target: Target,
    pub out: String,
    pub accesses: Vec<Access>,
    pub requirements: Vec<(Requirement, Option<Site>)>,
    pub items: BTreeSet<Item>,
    fresh: usize,
    /// The values of the parallel loop being printed.
    pub inside: BTreeSet<ValueId>,
    /// Its innermost variable.
    pub innermost: Option<ValueId>,
    /// Can the segment being printed yield?
    pub yields: bool,
    /// Was something asked for that has no vector form?
    pub failed: bool,
    /// The most reductions that one parallel loop has.
    pub reductions: usize,
    /// Are terms of ordered sums at shared elements noted?
    pub notes: bool,
    /// The library operations, by number.
    pub calls: Vec<LibraryCall>,
    /// By segment: how many threads its blocks may have.
    pub widths: Vec<Width>,
    /// The types of which matrices are multiplied.
    pub products: BTreeSet<&'static str>,
    /// By loop of the segment being printed: the matrices that products wait for meanwhile.
    pub waiting: BTreeMap<LoopId, BTreeSet<ArrayId>>,
    /// Those of the loops around what is being printed.
    pub deferring: BTreeSet<ArrayId>,
    /// The most matrices of one segment that products wait for, by type.
    pub waiting_places: BTreeMap<&'static str, usize>,
    /// Where several vectors of iterations are printed side by side.
    pub jam: Option<Jam>,
    /// How often what is printed now will run.
    pub pace: Pace,
    /// Functions that rare code calls, with their number of arguments.
    called: BTreeSet<(Item, usize)>,
    /// Where a leaf's sums are while it is taken, one iteration at a time.
    pub lanes: Lanes,
    /// The arrays into which iterations combine in any order: it gives the same result, or may give another.
    pub atomics: BTreeSet<ArrayId>,
    /// The updates that are noted for later: by which array's notes, and where among them.
    pub staged: BTreeMap<*const Store, (usize, String)>,
    /// How the careful form looks at an index.
    pub checks: Checks,
    /// What happened since all threads met.
    pub pending: Pending,
    /// How often all threads have met for certain.
    pub meetings: usize,
    /// The ways in which loops of the segment being printed are dealt out between threads.
    pub mappings: Vec<Mapping>,
    /// What is known on entry to the segment being printed.
    pub known_on_entry: OnEntry,
    /// What is computed once, on entry to it.
    pub entry: Entry,
    /// Pairs of arrays of one shape, as conditions that they are not; on a GPU.
    pub unlike: Vec<String>,
    /// The index values of the loop being printed that fit the narrow type, where it is used.
    pub narrow: Narrow,
    /// The index values that need no look where they are printed now: they are proved to be numbers.
    pub exact: Exact,
    /// Those of the loop being printed, in its form without checks.
    pub proved: Exact,
    /// The elements whose addresses the iterations being printed know.
    pub near: Near,
    /// What conditions are in the iterations being printed.
    pub usual: Usual,
    /// The stores that wait for the end of the iteration being printed, where they do.
    pub late: Option<Waiting>,
    /// The name of what the last such look found.
    pub ok: Option<String>,
    /// The arrays that nobody writes while the segment being printed runs, where it pays to know.
    pub constant: BTreeSet<ArrayId>,
    /// What an iteration holds in variables, where it runs through all passes of a loop.
    pub own: Own,
    /// How many loops around parallel ones are around what is being printed.
    pub outer_loops: usize,
    /// How many loops of an iteration are around what is being printed.
    pub inner_loops: usize,
    /// The values inside them that were printed before them.
    pub moved: BTreeSet<ValueId>,
}

/// A place in the text that is being printed.
pub(crate) struct Mark {
    out: usize,
    entry: usize,
    fresh: usize,
    calls: usize,
}

/// When the careful form leaves an iteration that met an index out of bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// Before the element would be touched.
    AtOnce,
    /// At its end: elements that do not exist read as one and are not written, so that nothing waits for the check.
    AtEnd,
    /// Before the element would be touched, for where all such iterations go: the loop is seldom run with checks.
    Leave,
    /// Never: all is in bounds.
    Proved,
}

/// Where the 16 sums of a leaf are while it is taken, one iteration at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// One thread has them all.
    InTable,
    /// Each of 16 threads has one.
    InThreads,
}

/// How often code runs: elementary functions are spelt out where it is often, and called where it is rare, which
/// halves what the compiler has to read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Often,
    Rare,
}

/// One of several vectors of iterations that are printed side by side: what differs between them has its number
/// in its name.
pub(crate) struct Jam {
    pub number: usize,
    pub values: BTreeSet<ValueId>,
    pub locals: BTreeSet<LocalId>,
}

/// Prints one line of C.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => {{
        use std::fmt::Write as _;
        let _ = writeln!($text.out, $($arg)*);
    }};
}
pub(crate) use line;

impl<'p> Emitter<'p> {
    pub fn of(program: &'p Program, facts: &'p Facts, family: Family, target: Target) -> Emitter<'p> {
        Emitter {
            program,
            facts,
            family,
            target,
            out: String::new(),
            accesses: Vec::new(),
            requirements: Vec::new(),
            items: BTreeSet::new(),
            fresh: 0,
            inside: BTreeSet::new(),
            innermost: None,
            yields: false,
            failed: false,
            reductions: 0,
            notes: false,
            calls: Vec::new(),
            widths: Vec::new(),
            products: BTreeSet::new(),
            waiting: BTreeMap::new(),
            deferring: BTreeSet::new(),
            waiting_places: BTreeMap::new(),
            jam: None,
            pace: Pace::Often,
            called: BTreeSet::new(),
            lanes: Lanes::InTable,
            atomics: BTreeSet::new(),
            staged: BTreeMap::new(),
            checks: Checks::AtOnce,
            ok: None,
            pending: Pending::default(),
            meetings: 0,
            mappings: Vec::new(),
            known_on_entry: OnEntry::default(),
            entry: Entry::default(),
            unlike: Vec::new(),
            narrow: Narrow::new(),
            exact: Exact::default(),
            proved: Exact::default(),
            near: Near::default(),
            usual: Usual::new(),
            late: None,
            constant: BTreeSet::new(),
            own: Own::default(),
            outer_loops: 0,
            inner_loops: 0,
            moved: BTreeSet::new(),
        }
    }

    /// Reductions want minima and maxima in scalar form.
    pub fn want_extremes(&mut self) {
        for (format, name) in [Format::F32, Format::F64].iter().flat_map(|f| ["min", "max"].map(|n| (f, n))) {
            self.items.extend(
                ebbtide_math::Function::from_name(name).map(|function| Item {
                    kernel: Kernel::Function(function),
                    shape: Shape::scalar(*format),
                }),
            );
        }
    }

    /// The unit: `source`, the functions that rare code calls, the segments.
    pub fn finish(self, mut source: String, out_of_line: &str) -> Unit {
        source.push('\n');
        for (item, arguments) in &self.called {
            let (name, t) = (item.name(), item.shape);
            let [parameters, values] = if *arguments == 2 {
                [format!("{t} a, {t} b"), "a, b".into()]
            } else {
                [format!("{t} a"), "a".into()]
            };
            source.push_str(&format!(
                "{out_of_line} {t} called_{name}({parameters}) {{ return {name}({values}); }}\n"
            ));
        }
        source.push_str(&self.out);
        Unit {
            source,
            accesses: self.accesses,
            requirements: self.requirements,
            reductions: self.reductions,
            notes: self.notes,
            calls: self.calls,
            widths: self.widths,
            parts: 1,
        }
    }
}

impl Emitter<'_> {
    /// Where the text is, to come back to: what is printed from here on may have to be printed anew.
    pub fn mark(&self) -> Mark {
        Mark { out: self.out.len(), entry: self.entry.len(), fresh: self.fresh, calls: self.calls.len() }
    }

    /// Forgets what was printed since.
    pub fn rewind(&mut self, to: &Mark) {
        self.out.truncate(to.out);
        self.entry.truncate(to.entry);
        self.calls.truncate(to.calls);
        self.fresh = to.fresh;
    }

    /// A number that no other label or variable has.
    pub fn fresh(&mut self) -> usize {
        self.fresh += 1;
        self.fresh
    }

    /// The number of an access that may fail.
    pub fn access(&mut self, array: Option<ArrayId>, site: &Option<Site>) -> usize {
        let access = Access { array, site: site.clone() };
        match self.accesses.iter().position(|a| *a == access) {
            Some(at) => at,
            None => {
                self.accesses.push(access);
                self.accesses.len() - 1
            }
        }
    }

    /// A value as an operand: its name, or the literal that it is.
    pub fn value(&self, v: ValueId) -> String {
        match self.program.op(v) {
            Op::Literal(literal) => c_literal(*literal),
            _ => match &self.jam {
                Some(jam) if jam.values.contains(&v) => format!("v{}_{}", v.index(), jam.number),
                _ => format!("v{}", v.index()),
            },
        }
    }

    /// The name of a local variable.
    pub fn local(&self, local: LocalId) -> String {
        match &self.jam {
            Some(jam) if jam.locals.contains(&local) => format!("l{}_{}", local.index(), jam.number),
            _ => format!("l{}", local.index()),
        }
    }

    /// The C function of an elementary function, wanted from now on.
    pub fn function(&mut self, function: Function, ty: Type, lanes: usize) -> String {
        let kernel = match function {
            Function::Powi => Some(Kernel::Powi),
            other => ebbtide_math::Function::from_name(other.name()).map(Kernel::Function),
        };
        let item =
            kernel.and_then(|kernel| Some(Item { kernel, shape: Shape::new(format(ty), lanes).ok()? }));
        match item {
            Some(item) => {
                self.items.insert(item);
                match (self.pace, item.kernel) {
                    (Pace::Rare, Kernel::Function(called)) => {
                        self.called.insert((item, called.arity()));
                        format!("called_{}", item.name())
                    }
                    _ => item.name(),
                }
            }
            None => format!("eb_{}_missing", function.name()),
        }
    }

    /// The C function of a kernel without floats among its arguments.
    pub fn random(&mut self, ty: Type) -> String {
        let kernel = if ty == Type::F32 { Kernel::RandomSingle } else { Kernel::Random };
        let item = Item { kernel, shape: Shape::scalar(Format::F64) };
        self.items.insert(item);
        item.name()
    }
}
