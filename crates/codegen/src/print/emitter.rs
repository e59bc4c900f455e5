//! The text being printed: its state, and the names of values.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayId, Facts, Function, LibraryCall, Op, ParId, Program, Requirement, Site, Type, ValueId,
};
use ebbtide_math::c::{Item, Shape};
use ebbtide_math::{Format, Kernel};

use crate::analysis::packed_tapes::PackedTapes;
use crate::analysis::thread_ownership::{Mapping, OnEntry};
use crate::kernel::machine::{Family, Target, Width};
use crate::kernel::name::Name;
use crate::kernel::segment::{MappingId, ProductId};
use crate::kernel::term_runs::TermRuns;
use crate::print::c_types::{c_literal, format};
use crate::print::entry::Entry;
use crate::print::loop_functions::LoopFunctions;
use crate::transform::forms::Forms;
use crate::transform::pipeline;
use crate::unit::{Access, Position, Unit};

/// The text being printed.
pub(crate) struct Emitter<'p> {
    pub program: &'p Program,
    pub facts: &'p Facts,
    pub family: Family,
    pub target: Target,
    pub out: String,
    pub accesses: Vec<Access>,
    /// Where assertions stand.
    pub positions: Vec<Position>,
    pub requirements: Vec<(Requirement, Option<Site>)>,
    pub items: BTreeSet<Item>,
    /// The forms of iterations, and numbers that tell names apart.
    pub forms: Forms<'p>,
    /// The values of the parallel loop being printed.
    pub inside: BTreeSet<ValueId>,
    /// Can the segment being printed yield?
    pub yields: bool,
    /// The most reductions that one parallel loop has.
    pub reductions: usize,
    /// By parallel loop: how many terms of ordered sums at shared elements an iteration notes, or a guess.
    pub noted: BTreeMap<ParId, usize>,
    /// By parallel loop: the bounds of the chains of additions in it, whose terms a team of threads computes; on a grid.
    pub chained: BTreeMap<ParId, Vec<(ValueId, ValueId)>>,
    /// The most reductions of one parallel loop whose terms are kept before they are added.
    pub kept_terms: usize,
    /// How functions of the prelude combine numbers, by name: function objects.
    pub combiners: BTreeMap<String, String>,
    /// The functions that combine noted terms, by name; on a CPU.
    pub combining: BTreeMap<String, String>,
    /// By parallel loop: the updates whose terms are counted. Those of the loop being printed.
    pub counted: BTreeMap<ParId, TermRuns>,
    pub counting: TermRuns,
    /// The functions that add kept terms, by name; on a CPU.
    pub adding: BTreeMap<String, String>,
    /// The library operations, by number.
    pub calls: Vec<LibraryCall>,
    /// By segment: how many threads its blocks may have.
    pub widths: Vec<Width>,
    /// The vectors of numbers that loops read beside their own: type and lanes.
    pub others: BTreeSet<(&'static str, usize)>,
    /// The types of which matrices are multiplied.
    pub products: BTreeSet<&'static str>,
    /// What the iteration that is printed finds computed ahead, where it stands among as many as are computed at once.
    pub ahead: BTreeSet<Name>,
    /// The variables of the loops inside an iteration that are being printed.
    pub running: Vec<Name>,
    /// The types of which rows are turned round.
    pub turned: BTreeSet<&'static str>,
    /// The tapes that are packed; on a CPU.
    pub packed: PackedTapes,
    /// The most matrices of one segment that products wait for, by type.
    pub waiting_places: BTreeMap<&'static str, usize>,
    /// Functions that rare code calls, with their number of arguments.
    called: BTreeSet<(Item, usize)>,
    /// The ways in which loops of the segment being printed are dealt out between threads.
    pub mappings: Vec<Mapping>,
    /// Those of them whose domain sums of a time loop have too; of several with one domain, the first.
    pub beside_sums: BTreeSet<MappingId>,
    /// By product of the segment being printed, on a GPU: the one behind whose blocks it begins.
    pub behind: BTreeMap<ProductId, Option<ProductId>>,
    /// What is known on entry to the segment being printed.
    pub known_on_entry: OnEntry,
    /// What is computed once, on entry to it.
    pub entry: Entry,
    /// Pairs of arrays of one shape, as conditions that they are not; on a GPU.
    pub unlike: Vec<String>,
    /// The arrays that nobody writes while the segment being printed runs, where it pays to know.
    pub constant: BTreeSet<ArrayId>,
    /// How many loops around parallel ones are around what is being printed.
    pub outer_loops: usize,
    /// The number of the steps that thread 0 runs alone, in them.
    pub alone: Option<usize>,
    /// The loops that are functions of their own; on a CPU.
    pub loops: LoopFunctions,
}

/// How often code runs: elementary functions are spelt out where it is often, and called where it is rare, which
/// halves what the compiler has to read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Often,
    Rare,
    /// Often, with quotients and roots that are right where `odd` stays false; on a GPU.
    Quick,
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
        let steps = match family {
            Family::C => pipeline::C,
            Family::Cuda => pipeline::CUDA,
        };
        Emitter {
            program,
            facts,
            family,
            target,
            out: String::new(),
            accesses: Vec::new(),
            positions: Vec::new(),
            requirements: Vec::new(),
            items: BTreeSet::new(),
            forms: Forms::of(program, facts, steps),
            inside: BTreeSet::new(),
            yields: false,
            reductions: 0,
            noted: BTreeMap::new(),
            chained: BTreeMap::new(),
            kept_terms: 0,
            combiners: BTreeMap::new(),
            combining: BTreeMap::new(),
            counted: BTreeMap::new(),
            counting: TermRuns::default(),
            adding: BTreeMap::new(),
            calls: Vec::new(),
            widths: Vec::new(),
            others: BTreeSet::new(),
            products: BTreeSet::new(),
            ahead: BTreeSet::new(),
            running: Vec::new(),
            turned: BTreeSet::new(),
            packed: PackedTapes::default(),
            waiting_places: BTreeMap::new(),
            called: BTreeSet::new(),
            mappings: Vec::new(),
            beside_sums: BTreeSet::new(),
            behind: BTreeMap::new(),
            known_on_entry: OnEntry::default(),
            entry: Entry::default(),
            unlike: Vec::new(),
            constant: BTreeSet::new(),
            outer_loops: 0,
            alone: None,
            loops: LoopFunctions::default(),
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
            positions: self.positions,
            requirements: self.requirements,
            reductions: self.reductions,
            noted: self.noted,
            chained: self.chained,
            counted: self.counted,
            kept_terms: self.kept_terms,
            calls: self.calls,
            widths: self.widths,
            packed_tapes: self.packed.arrays().collect(),
            parts: Vec::new(),
            part_count: 1,
        }
    }
}

impl Emitter<'_> {
    /// Prints something apart: its text, for whoever knows where it belongs.
    pub fn apart<R>(&mut self, print: impl FnOnce(&mut Self) -> R) -> (String, R) {
        let before = std::mem::take(&mut self.out);
        let result = print(self);
        (std::mem::replace(&mut self.out, before), result)
    }

    /// A number that no other label or variable has.
    pub fn fresh(&mut self) -> usize {
        self.forms.fresh.next()
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

    /// A fault, as C: an integer divided by zero, for this value. An assertion has counters of the loops around it.
    pub fn division_fault(&mut self, v: ValueId, counters: &[String]) -> String {
        let access = self.access(None, &self.program.value(v).site.clone());
        let Some(around) = self.forms.assertions.get(&v) else {
            return format!("eb_fault(f, EB_DIVISION, {access}, 0, 0, 0);");
        };
        let position = match self.positions.iter().position(|p| *p == around.position) {
            Some(at) => at,
            None => {
                self.positions.push(around.position.clone());
                self.positions.len() - 1
            }
        };
        let each = counters.iter().enumerate();
        let noted: String = each.map(|(k, counter)| format!(" f->shared->at[{k}] = {counter};")).collect();
        format!("if (eb_fault(f, EB_DIVISION, {access}, {position}, 0, 0)) {{{noted} }}")
    }

    /// A value as an operand: its name, or the literal that it is.
    pub fn value(&self, v: ValueId) -> String {
        match self.program.op(v) {
            Op::Literal(literal) => c_literal(*literal),
            _ => Name::value(v).to_string(),
        }
    }

    /// The C function of an elementary function, wanted from now on.
    pub fn function(&mut self, function: Function, ty: Type, lanes: usize, pace: Pace) -> String {
        let kernel = match function {
            Function::Powi => Some(Kernel::Powi),
            other => ebbtide_math::Function::from_name(other.name()).map(Kernel::Function),
        };
        let item =
            kernel.and_then(|kernel| Some(Item { kernel, shape: Shape::new(format(ty), lanes).ok()? }));
        match item {
            Some(item) => {
                self.items.insert(item);
                match (pace, item.kernel) {
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
