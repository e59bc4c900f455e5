//! A translation unit: prelude, elementary functions, segments.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Block, Facts, Function, LibraryCall, LocalId, LoopId, Op, Program, Requirement, Site, Store,
    Type, ValueId,
};
use ebbtide_math::c::{Dialect, Item, Shape, library};
use ebbtide_math::{Format, Kernel};

use crate::address_reuse::Near;
use crate::barriers::Pending;
use crate::c_types::{c_literal, format};
use crate::deferred::waiting;
use crate::exact::Exact;
use crate::fault::Access;
use crate::interchanged::Own;
use crate::narrow_index::Narrow;
use crate::product::products;
use crate::sink_stores::Late;
use crate::specialise_interior::Usual;
use crate::thread_ownership::Mapping;

/// The processor that the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The bytes of its vectors: 16, 32 or 64.
    pub vector_bytes: usize,
}

/// A language of the C family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// GNU C, for a handful of threads with tables of their own.
    C,
    /// CUDA C, for a grid of threads that share all tables.
    Cuda,
}

/// The text of a program and what is needed to understand its faults.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The C source.
    pub source: String,
    /// What faults refer to, by number.
    pub accesses: Vec<Access>,
    /// The conditions that are asked when parallel loops begin, by number, and where the loops stand in the source.
    pub requirements: Vec<(Requirement, Option<Site>)>,
    /// The most reductions that one parallel loop has.
    pub reductions: usize,
    /// Are terms of ordered sums at shared elements noted?
    pub notes: bool,
    /// The library operations, by number.
    pub calls: Vec<LibraryCall>,
    /// By segment: how many threads its blocks may have, on CUDA.
    pub widths: Vec<Width>,
    /// How many parts the text has: each can be compiled by itself, with its number as `EB_PART`.
    pub parts: usize,
}

/// How many threads a block may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// As many as there can be.
    Full,
    /// Half of them, each with twice the registers: its numbers need them.
    Half,
    /// Half of them, which hardly meet, so that any number of blocks is as good.
    Apart,
}

/// Prints the segments of a program: function `segment_K` runs `segments[K]`.
pub fn c_unit(
    program: &Program,
    facts: &Facts,
    segments: &[&Block],
    target: Target,
) -> Result<Unit, ebbtide_math::MathError> {
    let mut text = Text::of(program, facts, Family::C, target);
    let mut pieces = Vec::new();
    for (k, block) in segments.iter().enumerate() {
        text.segment(k, block, segments);
        pieces.push(std::mem::take(&mut text.out));
    }
    let parts = deal(&pieces);
    text.out = in_parts(pieces, &parts);
    text.want_extremes();
    let shapes = [Format::F64, Format::F32].map(|format| {
        let lanes = target.vector_bytes / if format == Format::F64 { 8 } else { 4 };
        Shape::new(format, lanes)
    });
    let shapes = [shapes[0]?, shapes[1]?];
    text.items.extend(shapes.iter().filter_map(|shape| {
        Some(Item { kernel: Kernel::Function(ebbtide_math::Function::from_name("abs")?), shape: *shape })
    }));
    let items: Vec<Item> = text.items.iter().copied().collect();
    let mut source = library(Dialect::C, &items)?;
    source.push_str(&include_str!("prelude.c").replace("$WORTH_SHARING", &format!("{WORTH_SHARING:.1}")));
    for shape in shapes {
        source.push_str(&vectors(shape));
    }
    for (shape, ty) in shapes.into_iter().zip(["f64", "f32"]) {
        if text.products.contains(ty) {
            source.push_str(&products(shape, ty));
        }
        if let Some(places) = text.waiting_places.get(ty) {
            source.push_str(&waiting(ty, *places));
        }
    }
    let mut unit = text.finish(source, "static __attribute__((noinline))");
    unit.parts = parts.iter().max().map_or(1, |last| last + 1);
    Ok(unit)
}

/// Which part of a unit each segment belongs to. Where there is much text, the longest segment has one for itself: compilers
/// take more than twice as long for twice the text, and two of them can run at a time.
fn deal(segments: &[String]) -> Vec<usize> {
    /// A text of so many bytes is compiled in a moment.
    const SHORT: usize = 40_000;
    let longest = segments.iter().enumerate().max_by_key(|(_, text)| text.len()).map(|(k, _)| k);
    let others: usize =
        segments.iter().enumerate().filter(|(k, _)| Some(*k) != longest).map(|(_, t)| t.len()).sum();
    let worth = others > SHORT && segments.iter().any(|text| text.len() > SHORT);
    (0..segments.len()).map(|k| usize::from(worth && Some(k) == longest)).collect()
}

/// The segments, each for the part that it belongs to, where there are several.
fn in_parts(segments: Vec<String>, parts: &[usize]) -> String {
    if parts.iter().all(|part| *part == 0) {
        return segments.concat();
    }
    let guarded = |(text, part): (String, &usize)| {
        format!("#if !defined(EB_PART) || EB_PART == {part}\n{text}#endif\n")
    };
    segments.into_iter().zip(parts).map(guarded).collect()
}

/// From so much work on, in additions, threads of a CPU share a loop.
pub const WORTH_SHARING: f64 = 12000.0;

/// Prints the segments of a program as CUDA C: kernel `segment_K` runs `segments[K]` on a cooperative grid.
///
/// Whoever compiles it defines `EB_THREADS`, the threads of a block (where there are no library operations they may be
/// fewer, a power of two of at least 32), and `EB_BLOCKS`, how many of them share a multiprocessor. Whoever runs it gives a
/// segment no more threads than its [`Width`] says. Compiled with `EB_SCRIPT`, the text has one kernel, `eb_run_script`,
/// that runs one segment after the other in one block of a quarter of the threads.
pub fn cuda_unit(
    program: &Program,
    facts: &Facts,
    segments: &[&Block],
) -> Result<Unit, ebbtide_math::MathError> {
    let mut text = Text::of(program, facts, Family::Cuda, Target { vector_bytes: 8 });
    for (k, block) in segments.iter().enumerate() {
        text.segment(k, block, segments);
    }
    text.script_kernel(segments.len());
    text.want_extremes();
    let items: Vec<Item> = text.items.iter().copied().collect();
    let mut source = library(Dialect::Cuda, &items)?;
    source.push_str(include_str!("prelude.cu"));
    if text.notes {
        source.push_str(include_str!("ordered_scatter.cu"));
    }
    let row = program.extents_per_array();
    let extents = row * program.arrays.len().max(1);
    source.push_str(&format!(
        "/* The extents of all arrays, {row} each. */\nstruct eb_extents {{ i64 of[{extents}]; }};\n"
    ));
    for ty in &text.products {
        let chunk = ebbtide_ir::MATMUL_CHUNK.to_string();
        source.push_str(&include_str!("matmul.cu").replace("$CHUNK", &chunk).replace("$T", ty));
    }
    Ok(text.finish(source, "static __device__ __noinline__"))
}

/// The text being printed.
pub(crate) struct Text<'p> {
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
    /// The values that the segment being printed is given.
    pub given: BTreeSet<ValueId>,
    /// The arrays that it names.
    pub named: BTreeSet<ArrayId>,
    /// What is computed once, on entry to it.
    pub entry: String,
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
    pub late: Option<Vec<Late>>,
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

impl<'p> Text<'p> {
    fn of(program: &'p Program, facts: &'p Facts, family: Family, target: Target) -> Text<'p> {
        Text {
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
            given: BTreeSet::new(),
            named: BTreeSet::new(),
            entry: String::new(),
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
    fn want_extremes(&mut self) {
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
    fn finish(self, mut source: String, out_of_line: &str) -> Unit {
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

impl Text<'_> {
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

/// Loads, stores and gathers of one shape of vectors.
fn vectors(shape: Shape) -> String {
    let letter = if shape.format() == Format::F64 { "d" } else { "s" };
    let (bits, lanes) = (shape.bytes() * 8 / shape.lanes(), shape.lanes());
    include_str!("vectors.c")
        .replace("$V", &shape.to_string())
        .replace("$T", &format!("f{bits}"))
        .replace("$I", &format!("i{bits}"))
        .replace("$M", &format!("m{bits}x{lanes}"))
        .replace("$N", &lanes.to_string())
        .replace(
            "$P",
            if shape.bytes() == 64 {
                "_mm512"
            } else if shape.bytes() == 32 {
                "_mm256"
            } else {
                "_mm"
            },
        )
        .replace("$L", letter)
        .replace("$B", if shape.bytes() == 64 { "1" } else { "0" })
        .replace("$K", &lanes.max(8).to_string())
}
