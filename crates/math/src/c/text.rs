//! The operations as lines of C.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};
use std::marker::PhantomData;

use super::{Item, Shape};
use crate::ops::{Format, Ops, Table};
use crate::{Kernel, MathError};

/// A format as a type, so that [`CText`] has one.
pub trait Width {
    /// The format.
    const FORMAT: Format;
}

/// `f64` and 64-bit integers.
#[derive(Debug, Clone, Copy)]
pub enum Double {}

/// `f32` and 32-bit integers.
#[derive(Debug, Clone, Copy)]
pub enum Single {}

impl Width for Double {
    const FORMAT: Format = Format::F64;
}

impl Width for Single {
    const FORMAT: Format = Format::F32;
}

/// A float variable of the printed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// A parameter `x0`, `x1`, ...
    Parameter(u32),
    /// A local variable `v0`, `v1`, ...
    Local(u32),
}

/// An integer variable of the printed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Int {
    /// A parameter `n0`, `n1`, ...
    Parameter(u32),
    /// A local variable `k0`, `k1`, ...
    Local(u32),
}

/// A mask variable `c0`, `c1`, ... of the printed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mask(u32);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Parameter(n) => write!(f, "x{n}"),
            Value::Local(n) => write!(f, "v{n}"),
        }
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Int::Parameter(n) => write!(f, "n{n}"),
            Int::Local(n) => write!(f, "k{n}"),
        }
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

/// Prints each operation as a line `type name = op_operation_shape(arguments);`.
///
/// The text relies on the [`prelude`](super::prelude()) of its shape.
#[derive(Debug)]
pub struct CText<W> {
    shape: Shape,
    suffix: String,
    body: String,
    next: u32,
    floats: HashMap<u64, Value>,
    ints: HashMap<i64, Int>,
    needs: BTreeSet<Item>,
    /// Functions out of line that the body calls, by name.
    helpers: Vec<(String, String)>,
    width: PhantomData<W>,
}

impl<W: Width> CText<W> {
    /// An empty body for vectors of so many lanes, or for plain numbers if it is one.
    ///
    /// # Errors
    ///
    /// [`MathError::WrongShape`] as [`Shape::new`].
    pub fn new(lanes: usize) -> Result<CText<W>, MathError> {
        let shape = Shape::new(W::FORMAT, lanes)?;
        Ok(CText {
            shape,
            suffix: shape.suffix(),
            body: String::new(),
            next: 0,
            floats: HashMap::new(),
            ints: HashMap::new(),
            needs: BTreeSet::new(),
            helpers: Vec::new(),
            width: PhantomData,
        })
    }

    /// The lines printed so far.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The functions that the lines call.
    pub fn needs(&self) -> impl Iterator<Item = Item> + '_ {
        self.needs.iter().copied()
    }

    /// The functions out of line that the lines call, to be defined before.
    pub fn helpers(&self) -> impl Iterator<Item = &str> {
        self.helpers.iter().map(|(_, text)| text.as_str())
    }

    fn fresh(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn line(&mut self, letter: char, name: &dyn fmt::Display, value: fmt::Arguments<'_>) {
        writeln!(self.body, "  {letter}{} {name} = {value};", self.suffix)
            .expect("writing to a string does not fail");
    }

    /// `op_operation_f64x8(args)` as a new float.
    fn float_op(&mut self, operation: &str, args: fmt::Arguments<'_>) -> Value {
        let name = Value::Local(self.fresh());
        let suffix = self.suffix.clone();
        self.line('f', &name, format_args!("op_{operation}_f{suffix}({args})"));
        name
    }

    fn int_op(&mut self, operation: &str, args: fmt::Arguments<'_>) -> Int {
        let name = Int::Local(self.fresh());
        let suffix = self.suffix.clone();
        self.line('i', &name, format_args!("op_{operation}_i{suffix}({args})"));
        name
    }

    fn mask_op(&mut self, operation: &str, args: fmt::Arguments<'_>) -> Mask {
        let name = Mask(self.fresh());
        let suffix = self.suffix.clone();
        self.line('m', &name, format_args!("op_{operation}_m{suffix}({args})"));
        name
    }

    fn need(&mut self, kernel: Kernel, shape: Shape) -> String {
        let item = Item { kernel, shape };
        self.needs.insert(item);
        item.name()
    }
}

/// The number as a C literal that is exact.
fn literal(value: f64, format: Format) -> String {
    let (end, bits) = match format {
        Format::F32 => ("f", f64::from(value as f32).to_bits()),
        Format::F64 => ("", value.to_bits()),
    };
    let sign = if bits >> 63 == 1 { "-" } else { "" };
    let exponent = (bits >> 52 & 0x7ff) as i64;
    let fraction = bits & ((1 << 52) - 1);
    match exponent {
        0x7ff if fraction == 0 => format!("{sign}EB_INFINITY"),
        0x7ff => "EB_NAN".to_owned(),
        0 => format!("{sign}0x0.{fraction:013x}p-1022{end}"),
        _ => format!("{sign}0x1.{fraction:013x}p{}{end}", exponent - 1023),
    }
}

macro_rules! print_ops {
    ($($method:ident($($arg:ident: $type:ty),*) -> $out:ty = $how:ident;)*) => {
        $(fn $method(&mut self, $($arg: $type),*) -> $out {
            self.$how(stringify!($method), print_ops!(@args $($arg),*))
        })*
    };
    (@args $a:ident) => { format_args!("{}", $a) };
    (@args $a:ident, $b:ident) => { format_args!("{}, {}", $a, $b) };
    (@args $a:ident, $b:ident, $c:ident) => { format_args!("{}, {}, {}", $a, $b, $c) };
}

impl<W: Width> Ops for CText<W> {
    const FORMAT: Format = W::FORMAT;
    type F = Value;
    type I = Int;
    type B = Mask;

    fn float(&mut self, value: f64) -> Value {
        if let Some(&known) = self.floats.get(&value.to_bits()) {
            return known;
        }
        let text = literal(value, W::FORMAT);
        let name = self.float_op("float", format_args!("{text}"));
        self.floats.insert(value.to_bits(), name);
        name
    }

    fn int(&mut self, value: i64) -> Int {
        if let Some(&known) = self.ints.get(&value) {
            return known;
        }
        // Unsigned, because C has no literal for the least integer.
        let name = match W::FORMAT {
            Format::F32 => self.int_op("int", format_args!("(i32)0x{:x}u", value as u32)),
            Format::F64 => self.int_op("int", format_args!("(i64)0x{value:x}ull")),
        };
        self.ints.insert(value, name);
        name
    }

    print_ops! {
        add(a: Value, b: Value) -> Value = float_op;
        sub(a: Value, b: Value) -> Value = float_op;
        mul(a: Value, b: Value) -> Value = float_op;
        div(a: Value, b: Value) -> Value = float_op;
        fma(a: Value, b: Value, c: Value) -> Value = float_op;
        fnma(a: Value, b: Value, c: Value) -> Value = float_op;
        scale(a: Value, n: Value) -> Value = float_op;
        sqrt(a: Value) -> Value = float_op;
        neg(a: Value) -> Value = float_op;
        abs(a: Value) -> Value = float_op;
        floor(a: Value) -> Value = float_op;
        ceil(a: Value) -> Value = float_op;
        trunc(a: Value) -> Value = float_op;
        select(condition: Mask, yes: Value, no: Value) -> Value = float_op;
        lesser(a: Value, b: Value) -> Value = float_op;
        greater(a: Value, b: Value) -> Value = float_op;
        of_bits(a: Int) -> Value = float_op;
        lt(a: Value, b: Value) -> Mask = mask_op;
        le(a: Value, b: Value) -> Mask = mask_op;
        eq(a: Value, b: Value) -> Mask = mask_op;
        and(a: Mask, b: Mask) -> Mask = mask_op;
        or(a: Mask, b: Mask) -> Mask = mask_op;
        not(a: Mask) -> Mask = mask_op;
        int_eq(a: Int, b: Int) -> Mask = mask_op;
        int_below(a: Int, b: Int) -> Mask = mask_op;
        bits(a: Value) -> Int = int_op;
        int_add(a: Int, b: Int) -> Int = int_op;
        int_sub(a: Int, b: Int) -> Int = int_op;
        int_mul(a: Int, b: Int) -> Int = int_op;
        int_and(a: Int, b: Int) -> Int = int_op;
        int_or(a: Int, b: Int) -> Int = int_op;
        int_xor(a: Int, b: Int) -> Int = int_op;
        shl(a: Int, places: u32) -> Int = int_op;
        shr(a: Int, places: u32) -> Int = int_op;
        sar(a: Int, places: u32) -> Int = int_op;
        shl_by(a: Int, places: Int) -> Int = int_op;
        shr_by(a: Int, places: Int) -> Int = int_op;
        mul_halves(a: Int, b: Int) -> Int = int_op;
        mul_high(a: Int, b: Int) -> Int = int_op;
    }

    fn table(&mut self, table: Table, index: Int) -> Int {
        match table {
            Table::TwoOverPi => self.int_op("two_over_pi", format_args!("{index}")),
        }
    }

    fn rare(&mut self, mask: Mask, usual: Value, x: Value, kernel: Kernel) -> Value {
        let callee = self.need(kernel, Shape::scalar(Format::F64));
        let (shape, suffix) = (self.shape, self.suffix.clone());
        let name = Value::Local(self.fresh());
        self.line('f', &name, format_args!("{usual}"));
        let call = if shape.lanes() == 1 {
            format!("(f{suffix}){callee}((f64){x})")
        } else {
            let helper = format!("eb_rare_{}_{shape}", kernel.name());
            let text = format!(
                "EB_COLD {shape} {helper}(m{suffix} mask, {shape} usual, {shape} x) {{\n  \
                 for (int i = 0; i < {}; i++)\n    \
                 if (op_lane_m{suffix}(mask, i)) usual[i] = (f{})({callee}((f64)x[i]));\n  return usual;\n}}\n\n",
                shape.lanes(),
                shape.bits(),
            );
            let call = format!("{helper}({mask}, {usual}, {x})");
            if !self.helpers.iter().any(|(known, _)| *known == helper) {
                self.helpers.push((helper, text));
            }
            call
        };
        writeln!(self.body, "  if (EB_UNLIKELY(op_any_m{suffix}({mask}))) {name} = {call};")
            .expect("writing to a string does not fail");
        name
    }

    fn widened(&mut self, kernel: Kernel, args: &[Value]) -> Value {
        let callee = self.need(kernel, self.shape.widened());
        let list = |part: &str| {
            let parts: Vec<String> = args.iter().map(|arg| format!("{part}({arg})")).collect();
            format!("{callee}({})", parts.join(", "))
        };
        let (shape, name) = (self.shape, Value::Local(self.fresh()));
        if shape.lanes() == 1 {
            self.line('f', &name, format_args!("({shape}){}", list("(f64)")));
        } else {
            let (low, high) = (list(&format!("op_low_{shape}")), list(&format!("op_high_{shape}")));
            self.line('f', &name, format_args!("op_join_{shape}({low}, {high})"));
        }
        name
    }
}

/// The definition of an item, and what it calls.
pub(super) fn function(item: Item) -> Result<(String, Vec<Item>), MathError> {
    match item.shape.format() {
        Format::F32 => define::<Single>(item),
        Format::F64 => define::<Double>(item),
    }
}

fn define<W: Width>(item: Item) -> Result<(String, Vec<Item>), MathError> {
    let Item { kernel, shape } = item;
    let mut text = CText::<W>::new(shape.lanes())?;
    let floats: Vec<Value> = (0..kernel.floats() as u32).map(Value::Parameter).collect();
    let ints: Vec<Int> = (0..kernel.ints() as u32).map(Int::Parameter).collect();
    let result = kernel.emit(&mut text, &floats, &ints)?;
    let suffix = shape.suffix();
    let parameters: Vec<String> = (floats.iter().map(|x| format!("f{suffix} {x}")))
        .chain(ints.iter().map(|n| format!("i{suffix} {n}")))
        .collect();
    let mut out: String = text.helpers().collect();
    write!(
        out,
        "EB_FUNCTION {shape} {}({}) {{\n{}  return {result};\n}}\n\n",
        item.name(),
        parameters.join(", "),
        text.body()
    )
    .expect("writing to a string does not fail");
    Ok((out, text.needs().collect()))
}
