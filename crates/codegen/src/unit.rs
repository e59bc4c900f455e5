//! A translation unit: prelude, elementary functions, segments.

use std::collections::BTreeSet;

use ebbtide_ir::{
    ArrayId, Block, Facts, Function, LibraryCall, Literal, LocalId, Op, Program, Site, Type, ValueId,
};
use ebbtide_math::c::{Dialect, Item, Shape, library};
use ebbtide_math::{Format, Kernel};

use crate::library::products;

/// The processor that the text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The bytes of its vectors: 16, 32 or 64.
    pub vector_bytes: usize,
}

/// What a fault of compiled code refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The array, where an element was out of bounds.
    pub array: Option<ArrayId>,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// The text of a program and what is needed to understand its faults.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The C source.
    pub source: String,
    /// What faults refer to, by number.
    pub accesses: Vec<Access>,
    /// The most reductions that one parallel loop has.
    pub reductions: usize,
    /// The library operations, by number.
    pub calls: Vec<LibraryCall>,
}

/// Prints the segments of a program: function `segment_K` runs `segments[K]`.
pub fn c_unit(
    program: &Program,
    facts: &Facts,
    segments: &[&Block],
    target: Target,
) -> Result<Unit, ebbtide_math::MathError> {
    let mut text = Text {
        program,
        facts,
        target,
        out: String::new(),
        accesses: Vec::new(),
        items: BTreeSet::new(),
        fresh: 0,
        inside: BTreeSet::new(),
        innermost: None,
        yields: false,
        failed: false,
        reductions: 0,
        calls: Vec::new(),
        products: BTreeSet::new(),
        jam: None,
        pace: Pace::Often,
        called: BTreeSet::new(),
    };
    for (k, block) in segments.iter().enumerate() {
        text.segment(k, block, segments);
    }
    // Reductions, minima and maxima of the prelude's shapes are always wanted in scalar form.
    let scalar = |format, name| {
        Some(Item {
            kernel: Kernel::Function(ebbtide_math::Function::from_name(name)?),
            shape: Shape::scalar(format),
        })
    };
    for format in [Format::F32, Format::F64] {
        text.items.extend(["min", "max"].iter().filter_map(|name| scalar(format, name)));
    }
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
    source.push_str(include_str!("prelude.c"));
    for shape in shapes {
        source.push_str(&vectors(shape));
    }
    for (shape, ty) in shapes.into_iter().zip(["f64", "f32"]) {
        if text.products.contains(ty) {
            source.push_str(&products(shape, ty));
        }
    }
    source.push('\n');
    for (item, arguments) in &text.called {
        let (name, t) = (item.name(), item.shape);
        let [parameters, values] = if *arguments == 2 {
            [format!("{t} a, {t} b"), "a, b".into()]
        } else {
            [format!("{t} a"), "a".into()]
        };
        source.push_str(&format!(
            "static __attribute__((noinline)) {t} called_{name}({parameters}) {{ return {name}({values}); }}\n"
        ));
    }
    source.push_str(&text.out);
    Ok(Unit { source, accesses: text.accesses, reductions: text.reductions, calls: text.calls })
}

/// The text being printed.
pub(crate) struct Text<'p> {
    pub program: &'p Program,
    pub facts: &'p Facts,
    pub target: Target,
    pub out: String,
    pub accesses: Vec<Access>,
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
    /// The library operations, by number.
    pub calls: Vec<LibraryCall>,
    /// The types of which matrices are multiplied.
    pub products: BTreeSet<&'static str>,
    /// Where several vectors of iterations are printed side by side.
    pub jam: Option<Jam>,
    /// How often what is printed now will run.
    pub pace: Pace,
    /// Functions that rare code calls, with their number of arguments.
    called: BTreeSet<(Item, usize)>,
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

impl Text<'_> {
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

/// The format of a float type.
pub(crate) fn format(ty: Type) -> Format {
    if ty == Type::F32 { Format::F32 } else { Format::F64 }
}

/// The C type of a value.
pub(crate) fn c_type(ty: Type) -> &'static str {
    match ty {
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::I32 => "i32",
        Type::I64 | Type::Index => "i64",
        Type::U32 => "u32",
        Type::Bool => "b8",
    }
}

/// A constant.
pub(crate) fn c_literal(literal: Literal) -> String {
    let bits = literal.bits();
    match literal.ty() {
        Type::F64 => c_float(f64::from_bits(bits), format!("{:?}", f64::from_bits(bits)), ""),
        Type::F32 => {
            let x = f32::from_bits(bits as u32);
            c_float(f64::from(x), format!("{x:?}"), "f")
        }
        Type::I32 => match bits as u32 as i32 {
            i32::MIN => "INT32_MIN".to_string(),
            x if x < 0 => format!("({x})"),
            x => format!("{x}"),
        },
        Type::I64 | Type::Index => match bits as i64 {
            i64::MIN => "INT64_MIN".to_string(),
            x if x < 0 => format!("(INT64_C({x}))"),
            x => format!("INT64_C({x})"),
        },
        Type::U32 => format!("{}u", bits as u32),
        Type::Bool => format!("{bits}"),
    }
}

fn c_float(value: f64, digits: String, suffix: &str) -> String {
    match value {
        x if x.is_nan() => "EB_NAN".to_string(),
        x if x.is_infinite() && x > 0.0 => "EB_INFINITY".to_string(),
        x if x.is_infinite() => "(-EB_INFINITY)".to_string(),
        x if x.is_sign_negative() => format!("({digits}{suffix})"),
        _ => format!("{digits}{suffix}"),
    }
}

/// The bits of a value as C takes them from the tables of the frame.
pub(crate) fn from_bits(ty: Type, bits: &str) -> String {
    match ty {
        Type::F32 => format!("eb_f32_bits({bits})"),
        Type::F64 => format!("eb_f64_bits({bits})"),
        _ => format!("({}){bits}", c_type(ty)),
    }
}

/// The bits of a value as C puts them into the tables of the frame.
pub(crate) fn to_bits(ty: Type, value: &str) -> String {
    match ty {
        Type::F32 => format!("eb_bits_f32({value})"),
        Type::F64 => format!("eb_bits_f64({value})"),
        Type::I32 => format!("(u64)(u32){value}"),
        _ => format!("(u64){value}"),
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
