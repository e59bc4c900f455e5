//! The form of a program: declarations, values, statements.

use std::fmt;
use std::sync::Arc;

use crate::function::Function;
use crate::library::LibraryCall;
use crate::types::{Literal, Type};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// The place in the program's table.
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The identifier of the place `index` in the program's table.
            pub fn from_index(index: usize) -> $name {
                $name(index as u32)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}

ids! {
    /// An array: a parameter or a temporary.
    ArrayId;
    /// A scalar parameter.
    ScalarId;
    /// A value: computed once by one [`Stmt::Let`], or the variable of a loop.
    ValueId;
    /// A mutable local variable.
    LocalId;
    /// A sequential loop.
    LoopId;
    /// A parallel loop.
    ParId;
    /// A label of regions.
    LabelId;
    /// A region: one occurrence of a label.
    RegionId;
}

/// A place in the user's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What a program may do with an array parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read it (`&Array`).
    Read,
    /// Read and write it (`&mut Array`).
    Write,
}

/// Where an array comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The caller's.
    Param(Access),
    /// The program's own: allocated once per launch, cleared where it is declared. The extents are values of
    /// the index type that depend on shapes and scalar arguments alone.
    Temp(Vec<ValueId>),
    /// What another array held before its last [`Stmt::Push`]; made by autodiff alone, read only.
    Old(ArrayId),
}

/// An array.
#[derive(Clone, Debug)]
pub struct ArrayDecl {
    /// The name, with the path through structs: `w.pos`.
    pub name: String,
    /// The type of its elements.
    pub ty: Type,
    /// The number of dimensions, 0 to 4.
    pub rank: usize,
    /// Where it comes from.
    pub role: Role,
}

/// A scalar parameter.
#[derive(Clone, Debug)]
pub struct ScalarDecl {
    /// The name, with the path through structs.
    pub name: String,
    /// The type.
    pub ty: Type,
}

/// A parameter of the program, in the order of the (flattened) argument list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Param {
    /// An array.
    Array(ArrayId),
    /// A scalar.
    Scalar(ScalarId),
}

/// A mutable local variable.
#[derive(Clone, Debug)]
pub struct LocalDecl {
    /// The name in the source, or a made-up one.
    pub name: String,
    /// The type.
    pub ty: Type,
}

/// A label: an enum and one of its variants, by name, so that it is the same in another process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The name of the enum.
    pub family: String,
    /// The name of the variant.
    pub variant: String,
}

impl From<&Label> for Label {
    fn from(label: &Label) -> Label {
        label.clone()
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.family, self.variant)
    }
}

/// The index of an element: one value per dimension.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Indices {
    rank: u8,
    values: [ValueId; 4],
}

impl Indices {
    /// The most dimensions an array can have.
    pub const MAX_RANK: usize = 4;

    /// The index with these coordinates; `None` if there are more than four.
    pub fn new(values: &[ValueId]) -> Option<Indices> {
        let mut all = [ValueId(0); 4];
        all.get_mut(..values.len())?.copy_from_slice(values);
        Some(Indices { rank: values.len() as u8, values: all })
    }

    /// The coordinates.
    pub fn as_slice(&self) -> &[ValueId] {
        &self.values[..self.rank as usize]
    }

    /// The same index with each coordinate replaced.
    pub fn map(mut self, mut f: impl FnMut(ValueId) -> ValueId) -> Indices {
        for value in &mut self.values[..self.rank as usize] {
            *value = f(*value);
        }
        self
    }
}

impl fmt::Debug for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x`; wrapping for integers.
    Neg,
    /// `!x`: logical for `bool`, bitwise for integers.
    Not,
    /// `x.abs()`; wrapping for integers.
    Abs,
    /// Square root, correctly rounded.
    Sqrt,
    /// Largest integral value not above.
    Floor,
    /// Smallest integral value not below.
    Ceil,
    /// Nearest integral value, halves away from zero.
    Round,
    /// Integral part.
    Trunc,
}

/// An operation on two values of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`; truncating for integers, an error for a zero divisor.
    Div,
    /// `a % b`; the sign of the dividend; an error for a zero divisor.
    Rem,
    /// The remainder that is never negative (`rem_euclid`), integers alone; an error for a zero divisor.
    RemEuclid,
    /// The smaller; of a number and NaN the number; of zeros the negative one.
    Min,
    /// The larger; of a number and NaN the number; of zeros the positive one.
    Max,
    /// `a & b`, integers and `bool`.
    And,
    /// `a | b`, integers and `bool`.
    Or,
    /// `a ^ b`, integers and `bool`.
    Xor,
    /// `a << b`, the count taken modulo the width.
    Shl,
    /// `a >> b`, the count taken modulo the width; arithmetic for signed types.
    Shr,
}

/// A comparison; gives `bool`. Every comparison with NaN is false but `!=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `a == b`.
    Eq,
    /// `a != b`.
    Ne,
    /// `a < b`.
    Lt,
    /// `a <= b`.
    Le,
    /// `a > b`.
    Gt,
    /// `a >= b`.
    Ge,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A constant.
    Literal(Literal),
    /// A scalar parameter.
    Scalar(ScalarId),
    /// The extent of an array in one dimension.
    Dim(ArrayId, u8),
    /// The variable of the loop that introduces this value.
    LoopVar,
    /// What a local variable holds now.
    Get(LocalId),
    /// An operation on one value.
    Unary(Unary, ValueId),
    /// An operation on two values.
    Binary(Binary, ValueId, ValueId),
    /// A comparison.
    Compare(Compare, ValueId, ValueId),
    /// `if c { a } else { b }`, both computed.
    Select(ValueId, ValueId, ValueId),
    /// `a * b + c`, rounded once.
    Fma(ValueId, ValueId, ValueId),
    /// Conversion to the value's type: Rust's `as`.
    Cast(ValueId),
    /// An elementary function of one or two arguments (a second one that is not used repeats the first).
    Math(Function, ValueId, ValueId),
    /// A uniform random number in [0, 1) from a seed and a counter, both `i64`.
    Rand(ValueId, ValueId),
    /// An element of an array, as it is now.
    Load(ArrayId, Indices),
}

impl Op {
    /// The values that this one is computed from.
    pub fn operands(&self) -> impl Iterator<Item = ValueId> {
        let mut list = [None; 4];
        match *self {
            Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) | Op::LoopVar | Op::Get(_) => {}
            Op::Unary(_, a) | Op::Cast(a) => list[0] = Some(a),
            Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::Rand(a, b) => {
                (list[0], list[1]) = (Some(a), Some(b))
            }
            Op::Math(f, a, b) => {
                list[0] = Some(a);
                list[1] = (f.arity() == 2).then_some(b);
            }
            Op::Select(a, b, c) | Op::Fma(a, b, c) => list = [Some(a), Some(b), Some(c), None],
            Op::Load(_, index) => index.as_slice().iter().zip(&mut list).for_each(|(v, l)| *l = Some(*v)),
        }
        list.into_iter().flatten()
    }

    /// The same operation with each operand replaced.
    pub fn map(self, mut f: impl FnMut(ValueId) -> ValueId) -> Op {
        match self {
            Op::Literal(_) | Op::Scalar(_) | Op::Dim(..) | Op::LoopVar | Op::Get(_) => self,
            Op::Unary(op, a) => Op::Unary(op, f(a)),
            Op::Cast(a) => Op::Cast(f(a)),
            Op::Binary(op, a, b) => Op::Binary(op, f(a), f(b)),
            Op::Compare(op, a, b) => Op::Compare(op, f(a), f(b)),
            Op::Rand(a, b) => Op::Rand(f(a), f(b)),
            Op::Math(op, a, b) => Op::Math(op, f(a), f(b)),
            Op::Select(a, b, c) => Op::Select(f(a), f(b), f(c)),
            Op::Fma(a, b, c) => Op::Fma(f(a), f(b), f(c)),
            Op::Load(array, index) => Op::Load(array, index.map(f)),
        }
    }

    /// Does the operation give the same result wherever it stands? (Loads and local variables do not.)
    pub fn is_pure(&self) -> bool {
        !matches!(self, Op::Load(..) | Op::Get(_))
    }
}

/// A value.
#[derive(Clone, Debug)]
pub struct ValueDecl {
    /// How it is computed.
    pub op: Op,
    /// Its type.
    pub ty: Type,
    /// Its name in the source, where it has one.
    pub name: Option<String>,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// How an element is combined with a value in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combine {
    /// `a[i] += x`.
    Add,
    /// `a[i].min_assign(x)`.
    Min,
    /// `a[i].max_assign(x)`.
    Max,
}

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// Compute a value here.
    Let(ValueId),
    /// Bring a local variable to life with its first value.
    Declare(LocalId, ValueId),
    /// Give a local variable another value.
    Set(LocalId, ValueId),
    /// `array[index] = value`.
    Store(Store),
    /// `array[index] += value` and its kin.
    Update(Combine, Store),
    /// A branch.
    If(Branch),
    /// A sequential loop.
    Loop(Loop),
    /// A parallel loop; at program level alone.
    Par(Par),
    /// A labelled region; at program level alone.
    Region(Region),
    /// The body of a program that this one calls; at program level alone.
    Call(Call),
    /// Exchange the names of two arrays; at program level alone.
    Swap(ArrayId, ArrayId),
    /// Give every element of an array one value; at program level alone.
    Fill(ArrayId, ValueId),
    /// Copy all elements; at program level alone.
    Copy {
        /// The array that is read.
        from: ArrayId,
        /// The array that is written.
        to: ArrayId,
    },
    /// A library operation; at program level alone.
    Library(LibraryCall),
    /// A temporary comes to life here, zeroed; at program level alone.
    Temp(ArrayId),
    /// Puts what an array holds on its tape; made by autodiff alone, at program level.
    Push(Push),
    /// Brings back what the array's last [`Stmt::Push`] put on its tape.
    Pop(ArrayId),
    /// A loop that will be reversed, run forward under a schedule; made by autodiff alone, at program level.
    Forward(Forward),
    /// The reverse half of a [`Stmt::Forward`], in the mirrored place.
    Backward(Backward),
}

/// What an array holds after it was put on its tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The same as before.
    Same,
    /// Anything: the next statement writes every element, and reads the old ones through this alias.
    Anything(ArrayId),
}

/// Puts what an array holds on its tape.
#[derive(Clone, Copy, Debug)]
pub struct Push {
    /// The array.
    pub array: ArrayId,
    /// What it holds then.
    pub after: After,
}

/// The forward half of a reversed loop. Its blocks run passes `from..to` of the loop, which the driver sets.
#[derive(Clone, Debug)]
pub struct Forward {
    /// Which loop, as in the source program.
    pub id: LoopId,
    /// How many passes the whole loop has.
    pub length: Length,
    /// Set by the driver: the first pass to run.
    pub from: ValueId,
    /// Set by the driver: the pass after the last one to run.
    pub to: ValueId,
    /// Arrays that a later pass or the adjoint may read: what a slot holds.
    pub carried: Vec<ArrayId>,
    /// Runs passes and keeps nothing.
    pub advance: Block,
    /// Runs passes and keeps their tape.
    pub record: Block,
    /// How the source says that it is to be reversed.
    pub schedule: Option<ReverseHint>,
}

/// How many passes a reversed loop has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One for each number from the first value to before the second, both known before the program starts.
    Known(ValueId, ValueId),
    /// It is known when the loop ends. Passes are counted from zero.
    Unknown {
        /// After its blocks have run: the pass before which they stopped.
        reached: LocalId,
        /// After its blocks have run: a `bool`, whether the loop has ended.
        ended: LocalId,
    },
}

/// The reverse half of a reversed loop: consumes the tape of passes `from..to`, last pass first.
#[derive(Clone, Debug)]
pub struct Backward {
    /// Which loop, as in the source program.
    pub id: LoopId,
    /// Reverses the passes that the forward half's `from` and `to` name.
    pub reverse: Block,
}

/// The write of one element.
#[derive(Clone, Debug)]
pub struct Store {
    /// The array.
    pub array: ArrayId,
    /// Which element.
    pub index: Indices,
    /// What is written or combined.
    pub value: ValueId,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// `if condition { then } else { otherwise }`.
#[derive(Clone, Debug)]
pub struct Branch {
    /// A `bool`.
    pub condition: ValueId,
    /// Runs where the condition holds.
    pub then: Block,
    /// Runs where it does not.
    pub otherwise: Block,
}

/// A sequential loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Which loop.
    pub id: LoopId,
    /// How it counts or goes on.
    pub kind: LoopKind,
    /// What it repeats.
    pub body: Block,
    /// A `bool` computed in the body: the loop is left after a pass in which it holds.
    pub until: Option<ValueId>,
    /// How it is to be reversed, where the source says so.
    pub schedule: Option<ReverseHint>,
}

/// `#[reverse(…)]`: how a loop is to be reversed, as the source says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReverseHint {
    /// Keep the tape of every pass.
    StoreAll,
    /// Keep the state before every so many passes.
    Periodic(u64),
    /// Keep at most so many states, placed so that the least is recomputed.
    Revolve(u64),
    /// As [`ReverseHint::Revolve`], without knowing the number of passes.
    Online(u64),
    /// Let states and tapes share so many slots.
    Mixed(u64),
}

impl fmt::Display for ReverseHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReverseHint::StoreAll => write!(f, "#[reverse(store_all)]"),
            ReverseHint::Periodic(period) => write!(f, "#[reverse(periodic = {period})]"),
            ReverseHint::Revolve(slots) => write!(f, "#[reverse(revolve = {slots})]"),
            ReverseHint::Online(slots) => write!(f, "#[reverse(online = {slots})]"),
            ReverseHint::Mixed(slots) => write!(f, "#[reverse(mixed = {slots})]"),
        }
    }
}

/// How a sequential loop goes on.
#[derive(Clone, Debug)]
pub enum LoopKind {
    /// `for var in from..to`; the bounds are evaluated once, on entry.
    For {
        /// The loop variable, of the index type.
        var: ValueId,
        /// The first value.
        from: ValueId,
        /// The value after the last one.
        to: ValueId,
    },
    /// `while condition`: the head computes the condition before each pass.
    While {
        /// Statements that compute the condition.
        head: Block,
        /// A `bool`.
        condition: ValueId,
    },
    /// `loop`; left through [`Loop::until`] alone.
    Forever,
}

/// One dimension of a parallel loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The loop variable, of the index type.
    pub var: ValueId,
    /// The first value.
    pub from: ValueId,
    /// The value after the last one.
    pub to: ValueId,
}

/// May a parallel loop give up repeatability?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// Sums are taken in the order that the law fixes.
    Ordered,
    /// `#[relaxed]`: sums at data-dependent indices may be taken in any order.
    Relaxed,
}

/// A parallel loop over one to four dimensions; the last one varies fastest.
#[derive(Clone, Debug)]
pub struct Par {
    /// Which loop.
    pub id: ParId,
    /// Its dimensions, outermost first.
    pub ranges: Vec<Range>,
    /// What each iteration does.
    pub body: Block,
    /// May it give up repeatability?
    pub ordering: Ordering,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// Which writes of a region are undone when it yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// None.
    Nothing,
    /// All arrays that the region writes, but for its flag.
    Everything,
    /// These arrays.
    Arrays(Vec<ArrayId>),
}

/// A labelled region.
#[derive(Clone, Debug)]
pub struct Region {
    /// Which region.
    pub id: RegionId,
    /// Its label.
    pub label: LabelId,
    /// The rank-0 array that makes the program yield when it is not zero at the end of the region.
    pub flag: Option<ArrayId>,
    /// What is undone when it yields.
    pub undo: Undo,
    /// What it does.
    pub body: Block,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

/// The body of a called program, its parameters bound to the caller's arrays and values.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the called program.
    pub name: String,
    /// What it does.
    pub body: Block,
}

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its parameters in order.
    pub params: Vec<Param>,
    /// All arrays: parameters and temporaries.
    pub arrays: Vec<ArrayDecl>,
    /// All scalar parameters.
    pub scalars: Vec<ScalarDecl>,
    /// All values.
    pub values: Vec<ValueDecl>,
    /// All local variables.
    pub locals: Vec<LocalDecl>,
    /// All labels.
    pub labels: Vec<Label>,
    /// The number of sequential loops.
    pub loops: u32,
    /// The number of parallel loops.
    pub pars: u32,
    /// The number of regions.
    pub regions: u32,
    /// What it does.
    pub body: Block,
}

impl Program {
    /// The declaration of an array.
    pub fn array(&self, id: ArrayId) -> &ArrayDecl {
        &self.arrays[id.index()]
    }

    /// The declaration of a value.
    pub fn value(&self, id: ValueId) -> &ValueDecl {
        &self.values[id.index()]
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> Type {
        self.value(id).ty
    }

    /// The operation of a value.
    pub fn op(&self, id: ValueId) -> &Op {
        &self.value(id).op
    }

    /// The constant that a value is, where it is one.
    pub fn literal(&self, id: ValueId) -> Option<Literal> {
        match self.op(id) {
            Op::Literal(literal) => Some(*literal),
            _ => None,
        }
    }

    /// All identifiers of arrays.
    pub fn array_ids(&self) -> impl Iterator<Item = ArrayId> + use<> {
        (0..self.arrays.len()).map(ArrayId::from_index)
    }

    /// The array with this name.
    pub fn find_array(&self, name: &str) -> Option<ArrayId> {
        self.arrays.iter().position(|a| a.name == name).map(ArrayId::from_index)
    }

    /// The scalar parameter with this name.
    pub fn find_scalar(&self, name: &str) -> Option<ScalarId> {
        self.scalars.iter().position(|s| s.name == name).map(|i| ScalarId(i as u32))
    }

    /// Adds a value that no statement computes yet.
    pub fn add_value(&mut self, op: Op, ty: Type, site: Option<Site>) -> ValueId {
        self.values.push(ValueDecl { op, ty, name: None, site });
        ValueId(self.values.len() as u32 - 1)
    }
}

impl Stmt {
    /// The blocks that stand inside this statement.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (first, second): (Option<&Block>, Option<&Block>) = match self {
            Stmt::If(branch) => (Some(&branch.then), Some(&branch.otherwise)),
            Stmt::Loop(l) => match &l.kind {
                LoopKind::While { head, .. } => (Some(head), Some(&l.body)),
                _ => (Some(&l.body), None),
            },
            Stmt::Par(par) => (Some(&par.body), None),
            Stmt::Region(region) => (Some(&region.body), None),
            Stmt::Call(call) => (Some(&call.body), None),
            Stmt::Forward(f) => (Some(&f.advance), Some(&f.record)),
            Stmt::Backward(b) => (Some(&b.reverse), None),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The blocks that stand inside this statement, to be changed.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        let (first, second): (Option<&mut Block>, Option<&mut Block>) = match self {
            Stmt::If(branch) => (Some(&mut branch.then), Some(&mut branch.otherwise)),
            Stmt::Loop(l) => match &mut l.kind {
                LoopKind::While { head, .. } => (Some(head), Some(&mut l.body)),
                _ => (Some(&mut l.body), None),
            },
            Stmt::Par(par) => (Some(&mut par.body), None),
            Stmt::Region(region) => (Some(&mut region.body), None),
            Stmt::Call(call) => (Some(&mut call.body), None),
            Stmt::Forward(f) => (Some(&mut f.advance), Some(&mut f.record)),
            Stmt::Backward(b) => (Some(&mut b.reverse), None),
            _ => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The values that this statement itself uses (not those used inside its blocks).
    pub fn uses(&self) -> Vec<ValueId> {
        match self {
            Stmt::Let(_) | Stmt::Region(_) | Stmt::Call(_) | Stmt::Swap(..) | Stmt::Copy { .. } => Vec::new(),
            Stmt::Library(_) | Stmt::Temp(_) | Stmt::Push(_) | Stmt::Pop(_) | Stmt::Backward(_) => Vec::new(),
            Stmt::Forward(f) => match f.length {
                Length::Known(from, to) => vec![from, to],
                Length::Unknown { .. } => Vec::new(),
            },
            Stmt::Declare(_, v) | Stmt::Set(_, v) | Stmt::Fill(_, v) => vec![*v],
            Stmt::Store(s) | Stmt::Update(_, s) => {
                s.index.as_slice().iter().copied().chain([s.value]).collect()
            }
            Stmt::If(branch) => vec![branch.condition],
            Stmt::Loop(l) => {
                let mut uses = match &l.kind {
                    LoopKind::For { from, to, .. } => vec![*from, *to],
                    LoopKind::While { condition, .. } => vec![*condition],
                    LoopKind::Forever => Vec::new(),
                };
                uses.extend(l.until);
                uses
            }
            Stmt::Par(par) => par.ranges.iter().flat_map(|r| [r.from, r.to]).collect(),
        }
    }
}

/// Visits every statement of a block, outer before inner, in source order.
pub fn walk<'a>(block: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    let mut stack: Vec<std::slice::Iter<'a, Stmt>> = vec![block.iter()];
    while let Some(top) = stack.last_mut() {
        let Some(stmt) = top.next() else {
            stack.pop();
            continue;
        };
        visit(stmt);
        let inner: Vec<_> = stmt.blocks().map(|b| b.iter()).collect();
        stack.extend(inner.into_iter().rev());
    }
}

/// Visits every statement outside parallel loops (the loops themselves included), outer before inner. The depth of
/// recursion is that of nesting in the source.
pub fn walk_program_level<'a>(block: &'a [Stmt], visit: &mut dyn FnMut(&'a Stmt)) {
    for stmt in block {
        visit(stmt);
        if !matches!(stmt, Stmt::Par(_)) {
            stmt.blocks().for_each(|inner| walk_program_level(inner, visit));
        }
    }
}
