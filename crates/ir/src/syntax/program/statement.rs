//! The statements of a program.

use std::fmt;

use super::{LibraryCall, Ruled};
use crate::syntax::error::Touched;
use crate::syntax::ids::{
    ArrayId, Indices, LabelId, LocalId, LoopId, ParId, RegionId, Site, ValueId, WriteId,
};
use crate::syntax::op::Combine;

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
    /// An iteration takes an element for itself; inside parallel loops alone.
    Claim(Claim),
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
    Fill(ArrayId, ValueId, WriteId),
    /// Copy all elements; at program level alone.
    Copy {
        /// The array that is read.
        from: ArrayId,
        /// The array that is written.
        to: ArrayId,
        /// Which write.
        id: WriteId,
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
    /// The driver does what the host did when a region yielded; made by autodiff alone, at program level.
    Host(RegionId, Again),
}

/// What the driver does where the host stepped in before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Again {
    /// Gives the arrays the shapes that they had before the host changed them.
    Shapes,
    /// Changes the arrays as the host did.
    Change,
    /// Puts back what they held before. What the host wrote is constant: no cotangent flows on from there.
    Undo,
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

/// The forward half of a reversed loop. Its blocks run iterations `from..to` of the loop, which the driver sets.
#[derive(Clone, Debug)]
pub struct Forward {
    /// Which loop, as in the source program.
    pub id: LoopId,
    /// How many iterations the whole loop has.
    pub length: Length,
    /// Set by the driver: the first iteration to run.
    pub from: ValueId,
    /// Set by the driver: the iteration after the last one to run.
    pub to: ValueId,
    /// Arrays that a later iteration or the adjoint may read: what a slot holds.
    pub carried: Vec<ArrayId>,
    /// Arrays that iterations write and of which nothing that was read is ever overwritten: no slot holds them, and they stay as
    /// they are when an earlier state comes back.
    pub kept: Vec<ArrayId>,
    /// Runs iterations and keeps nothing.
    pub advance: Block,
    /// Runs iterations and keeps their tape.
    pub record: Block,
    /// How the source says that it is to be reversed.
    pub schedule: Option<ReverseHint>,
}

/// How many iterations a reversed loop has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One for each number from the first value to before the second, both known before the program starts.
    Known(ValueId, ValueId),
    /// It is known when the loop ends. Iterations are counted from zero.
    Unknown {
        /// After its blocks have run: the iteration before which they stopped.
        reached: LocalId,
        /// After its blocks have run: a `bool`, whether the loop has ended.
        ended: LocalId,
    },
}

/// The reverse half of a reversed loop: consumes the tape of iterations `from..to`, last iteration first.
#[derive(Clone, Debug)]
pub struct Backward {
    /// Which loop, as in the source program.
    pub id: LoopId,
    /// Reverses the iterations that the forward half's `from` and `to` name.
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
    /// Which write.
    pub id: WriteId,
}

/// Takes an element for one iteration of a parallel loop: a run error if it was taken before. What the block that it
/// stands in touches at that index, in any array, is then the iteration's own.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The array whose element is taken.
    pub array: ArrayId,
    /// An array of `bool` of its shape: which elements are taken. It is all `false` when the loop begins.
    pub taken: ArrayId,
    /// Which element.
    pub index: Indices,
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
    /// How it counts or continues.
    pub kind: LoopKind,
    /// What it repeats.
    pub body: Block,
    /// Locals to which the loop adds a sum, in the order that law 8 gives a parallel loop of the same extent: an iteration
    /// finds such a local at -0.0, and what it leaves there is its term.
    pub sums: Vec<LocalId>,
    /// A `bool` computed in the body: the loop is left after an iteration in which it holds.
    pub until: Option<ValueId>,
    /// How it is to be reversed, where the source says so.
    pub schedule: Option<ReverseHint>,
}

/// `#[reverse(…)]`: how a loop is to be reversed, as the source says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReverseHint {
    /// Keep the tape of every iteration.
    StoreAll,
    /// Keep the state before every this many iterations.
    Periodic(u64),
    /// Keep at most this number of states, placed so that the least is recomputed.
    Revolve(u64),
    /// As [`ReverseHint::Revolve`], without knowing the number of iterations.
    Online(u64),
    /// Let states and tapes share this number of slots.
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

/// How a sequential loop continues.
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
    /// `while condition`: the head computes the condition before each iteration.
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

/// A parallel loop over one to six dimensions; the last one varies fastest.
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
    /// What must hold when it begins, so that no two iterations meet.
    pub requires: Vec<Requirement>,
    /// Must it be proved that no two iterations meet?
    pub safety: Safety,
    /// Where it stands in the source.
    pub site: Option<Site>,
}

impl Par {
    /// A loop over these ranges, in order and with nothing required.
    pub fn over(id: ParId, ranges: Vec<Range>, body: Block) -> Par {
        let (ordering, requires, safety) = (Ordering::Ordered, Vec::new(), Safety::Unknown);
        Par { id, ranges, body, ordering, requires, safety, site: None }
    }
}

/// Must the verifier prove that no two iterations of a parallel loop meet (law 7)?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Safety {
    /// It must.
    #[default]
    Unknown,
    /// The loop reverses one that is safe: what the verifier cannot decide is safe. It still refuses what it can show to
    /// be wrong.
    Proved,
}

/// A condition under which no two iterations of a parallel loop meet (law 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// A `bool` that is known when the loop begins.
    pub condition: ValueId,
    /// Is it asked, or known to hold?
    pub asked: Asked,
    /// The array of which iterations touch one element where it does not hold.
    pub array: ArrayId,
    /// The two accesses: how they touch it, and where they stand in the source.
    pub accesses: [(Touched, Option<Site>); 2],
}

/// When a requirement is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// When the loop begins: where it does not hold, that is a run error.
    OnEntry,
    /// It was asked where the loop stands that this one reverses: it holds.
    Before,
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
    /// Where it brings its own derivatives: these, and what it was called with.
    pub ruled: Option<Ruled>,
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
            Stmt::Library(call) => call.arguments.iter().filter_map(|bound| bound.scalar()).collect(),
            Stmt::Temp(_) | Stmt::Push(_) | Stmt::Pop(_) | Stmt::Backward(_) | Stmt::Host(..) => Vec::new(),
            Stmt::Forward(f) => match f.length {
                Length::Known(from, to) => vec![from, to],
                Length::Unknown { .. } => Vec::new(),
            },
            Stmt::Declare(_, v) | Stmt::Set(_, v) | Stmt::Fill(_, v, _) => vec![*v],
            Stmt::Store(s) | Stmt::Update(_, s) => {
                s.index.as_slice().iter().copied().chain([s.value]).collect()
            }
            Stmt::Claim(claim) => claim.index.as_slice().to_vec(),
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
            Stmt::Par(par) => {
                let asked = par.requires.iter().map(|requirement| requirement.condition);
                par.ranges.iter().flat_map(|r| [r.from, r.to]).chain(asked).collect()
            }
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

/// Every array that a block writes.
pub fn written(block: &[Stmt]) -> Vec<ArrayId> {
    let mut arrays = Vec::new();
    walk(block, &mut |stmt| match stmt {
        Stmt::Store(s) | Stmt::Update(_, s) => arrays.push(s.array),
        Stmt::Fill(a, ..) | Stmt::Copy { to: a, .. } => arrays.push(*a),
        Stmt::Swap(a, b) => arrays.extend([*a, *b]),
        Stmt::Library(call) => arrays.extend(&call.writes),
        _ => {}
    });
    arrays.sort_unstable();
    arrays.dedup();
    arrays
}
