//! The untyped builder: what every front end stands on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Flaw};
use crate::function::Function;
use crate::library::{Assign, Layout, LibraryCall, LibraryOp, Way};
use crate::operation::{Bound, Operation, Ruled, Rules};
use crate::program::*;
use crate::types::{Literal, Type};

/// Builds a program statement by statement.
///
/// Methods never fail: what is wrong is remembered and reported by [`Builder::finish`], all at once, so that a
/// front end can be written without error handling at every operator.
///
/// ```
/// use ebbtide_ir::{Access, Binary, Builder, Literal, Type};
///
/// let mut b = Builder::new("double");
/// let x = b.array("x", Type::F64, 1, Access::Write);
/// let n = b.dim(x, 0);
/// let zero = b.literal(Literal::index(0));
/// let i = b.begin_par(&[("i", zero, n)])[0];
/// let v = b.load(x, &[i]);
/// let w = b.binary(Binary::Add, v, v);
/// b.store(x, &[i], w);
/// b.end_par();
/// let program = b.finish()?;
/// assert!(program.to_string().contains("x[i] = "));
/// # Ok::<(), ebbtide_ir::Error>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    program: Program,
    open: Vec<Open>,
    site: Option<Site>,
    ordering: Ordering,
    /// What was said about the next sequential loop, and about those begun.
    next_schedule: Option<ReverseHint>,
    schedules: BTreeMap<LoopId, ReverseHint>,
    /// By array: what is taken of it in the parallel loop being built.
    taken: BTreeMap<ArrayId, ArrayId>,
    flaws: Vec<Flaw>,
}

/// A block being filled, and the statement that it will belong to.
#[derive(Debug)]
struct Open {
    block: Block,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    Root,
    Then(ValueId),
    Otherwise(ValueId, Block),
    Head(LoopId),
    Loop(LoopId, LoopKind),
    Par(ParId, Vec<Range>, Ordering, Option<Site>),
    Region(LabelId, Option<ArrayId>, Undo, Option<Site>),
    Call(String, Option<Ruled>),
}

impl Builder {
    /// A builder of an empty program.
    pub fn new(name: &str) -> Builder {
        Builder {
            program: Program { name: name.to_string(), ..Program::default() },
            open: vec![Open { block: Block::new(), owner: Owner::Root }],
            site: None,
            ordering: Ordering::Ordered,
            next_schedule: None,
            schedules: BTreeMap::new(),
            taken: BTreeMap::new(),
            flaws: Vec::new(),
        }
    }

    /// The program so far.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What follows stands here in the source.
    pub fn at(&mut self, site: Site) {
        self.site = Some(site);
    }

    /// Remembers something that is wrong, at the present place in the source.
    pub fn flaw(&mut self, law: &'static str, message: impl Into<String>) {
        self.flaws.push(Flaw { law, message: message.into(), site: self.site.clone() });
    }

    // ---- declarations

    /// Declares the next parameter, an array.
    pub fn array(&mut self, name: &str, ty: Type, rank: usize, access: Access) -> ArrayId {
        let id = self.new_array(name, ty, rank, Role::Param(access));
        self.program.params.push(Param::Array(id));
        id
    }

    fn new_array(&mut self, name: &str, ty: Type, rank: usize, role: Role) -> ArrayId {
        if rank > Indices::MAX_RANK || !ty.is_element() {
            self.flaw(
                "2",
                format!("`{name}` cannot be an array of rank {rank} of `{ty}`: rank 0 to 4, no `usize`"),
            );
        }
        self.program.arrays.push(ArrayDecl {
            name: name.to_string(),
            ty,
            rank: rank.min(Indices::MAX_RANK),
            role,
        });
        ArrayId(self.program.arrays.len() as u32 - 1)
    }

    /// Declares the next parameter, a scalar, and gives its value.
    pub fn scalar(&mut self, name: &str, ty: Type) -> ValueId {
        self.program.scalars.push(ScalarDecl { name: name.to_string(), ty });
        let id = ScalarId(self.program.scalars.len() as u32 - 1);
        self.program.params.push(Param::Scalar(id));
        let value = self.value(Op::Scalar(id), ty);
        self.name(value, name);
        value
    }

    /// A temporary array of zeros that comes to life here.
    pub fn temp(&mut self, name: &str, ty: Type, shape: &[ValueId]) -> ArrayId {
        let id = self.new_array(name, ty, shape.len(), Role::Temp(shape.to_vec()));
        self.push(Stmt::Temp(id));
        id
    }

    /// Gives a value the name that it has in the source.
    pub fn name(&mut self, value: ValueId, name: &str) {
        let decl = &mut self.program.values[value.index()];
        if decl.name.is_none() {
            decl.name = Some(name.to_string());
        }
    }

    // ---- values

    fn value(&mut self, op: Op, ty: Type) -> ValueId {
        let id = self.program.add_value(op, ty, self.site.clone());
        self.push(Stmt::Let(id));
        id
    }

    fn loop_var(&mut self, name: &str) -> ValueId {
        let id = self.program.add_value(Op::LoopVar, Type::Index, self.site.clone());
        self.name(id, name);
        id
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> Type {
        self.program.ty(value)
    }

    /// A constant.
    pub fn literal(&mut self, literal: Literal) -> ValueId {
        self.value(Op::Literal(literal), literal.ty())
    }

    /// The extent of an array in dimension `k`.
    pub fn dim(&mut self, array: ArrayId, k: usize) -> ValueId {
        let decl = self.program.array(array);
        if k >= decl.rank {
            let message = format!("`{}` has rank {}: there is no dimension {k}", decl.name, decl.rank);
            self.flaw("2", message);
            return self.literal(Literal::index(0));
        }
        self.value(Op::Dim(array, k as u8), Type::Index)
    }

    /// An operation on one value.
    pub fn unary(&mut self, op: Unary, a: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Unary(op, a), ty)
    }

    /// An operation on two values of one type.
    pub fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Binary(op, a, b), ty)
    }

    /// A comparison.
    pub fn compare(&mut self, op: Compare, a: ValueId, b: ValueId) -> ValueId {
        self.value(Op::Compare(op, a, b), Type::Bool)
    }

    /// `if c { a } else { b }`, both computed.
    pub fn select(&mut self, c: ValueId, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Select(c, a, b), ty)
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: ValueId, b: ValueId, c: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Fma(a, b, c), ty)
    }

    /// Rust's `as`.
    pub fn cast(&mut self, a: ValueId, ty: Type) -> ValueId {
        self.value(Op::Cast(a), ty)
    }

    /// An elementary function of one argument, or of two.
    pub fn math(&mut self, function: Function, args: &[ValueId]) -> ValueId {
        match *args {
            [a] | [a, _] if function.arity() != args.len() => {
                self.flaw("3", format!("`{}` takes {} arguments", function.name(), function.arity()));
                a
            }
            [a] => {
                let ty = self.ty(a);
                self.value(Op::Math(function, a, a), ty)
            }
            [a, b] => {
                let ty = self.ty(a);
                self.value(Op::Math(function, a, b), ty)
            }
            _ => {
                self.flaw("3", format!("`{}` takes {} arguments", function.name(), function.arity()));
                self.literal(Literal::from(0.0))
            }
        }
    }

    /// A uniform random number of float type `ty` in [0, 1) from a seed and a counter, both `i64`.
    pub fn rand(&mut self, ty: Type, seed: ValueId, counter: ValueId) -> ValueId {
        self.value(Op::Rand(seed, counter), ty)
    }

    /// What a local variable holds now.
    pub fn get(&mut self, local: LocalId) -> ValueId {
        let ty = self.program.locals[local.index()].ty;
        self.value(Op::Get(local), ty)
    }

    /// An element of an array, as it is now.
    pub fn load(&mut self, array: ArrayId, index: &[ValueId]) -> ValueId {
        let ty = self.program.array(array).ty;
        match self.indices(array, index) {
            Some(index) => self.value(Op::Load(array, index), ty),
            None => self.literal(Literal::zero(ty)),
        }
    }

    fn indices(&mut self, array: ArrayId, index: &[ValueId]) -> Option<Indices> {
        let decl = self.program.array(array);
        if decl.rank != index.len() {
            let message = format!(
                "`{}` has rank {}, but is indexed with {} indices",
                decl.name,
                decl.rank,
                index.len()
            );
            self.flaw("2", message);
            return None;
        }
        Indices::new(index)
    }

    // ---- statements

    fn push(&mut self, stmt: Stmt) {
        if let Some(open) = self.open.last_mut() {
            open.block.push(stmt);
        }
    }

    /// `array[index] = value`.
    pub fn store(&mut self, array: ArrayId, index: &[ValueId], value: ValueId) {
        if let Some(index) = self.indices(array, index) {
            self.push(Stmt::Store(Store { array, index, value, site: self.site.clone() }));
        }
    }

    /// `array[index] += value` and its kin.
    pub fn update(&mut self, combine: Combine, array: ArrayId, index: &[ValueId], value: ValueId) {
        if let Some(index) = self.indices(array, index) {
            self.push(Stmt::Update(combine, Store { array, index, value, site: self.site.clone() }));
        }
    }

    /// `array[index] = value`, at an index that no other iteration of the parallel loop writes: checked at run time.
    pub fn store_unique(&mut self, array: ArrayId, index: &[ValueId], value: ValueId) {
        let inside = self.open.iter().any(|open| matches!(open.owner, Owner::Par(..)));
        if inside && let Some(index) = self.indices(array, index) {
            let taken = match self.taken.get(&array) {
                Some(taken) => *taken,
                None => {
                    let (name, rank) = (&self.program.array(array).name, self.program.array(array).rank);
                    let name = format!("{name}_taken");
                    let taken = self.new_array(&name, Type::Bool, rank, Role::Temp(Vec::new()));
                    self.taken.insert(array, taken);
                    taken
                }
            };
            self.push(Stmt::Claim(Claim { array, taken, index, site: self.site.clone() }));
        }
        self.store(array, index, value);
    }

    /// A mutable local variable with its first value.
    pub fn local(&mut self, name: &str, init: ValueId) -> LocalId {
        let ty = self.ty(init);
        self.program.locals.push(LocalDecl { name: name.to_string(), ty });
        let id = LocalId(self.program.locals.len() as u32 - 1);
        self.push(Stmt::Declare(id, init));
        id
    }

    /// Gives a local variable another value.
    pub fn set(&mut self, local: LocalId, value: ValueId) {
        self.push(Stmt::Set(local, value));
    }

    /// Exchanges the names of two arrays.
    pub fn swap(&mut self, a: ArrayId, b: ArrayId) {
        self.push(Stmt::Swap(a, b));
    }

    /// Gives every element of an array one value.
    pub fn fill(&mut self, array: ArrayId, value: ValueId) {
        self.push(Stmt::Fill(array, value));
    }

    /// Copies all elements.
    pub fn copy(&mut self, from: ArrayId, to: ArrayId) {
        self.push(Stmt::Copy { from, to });
    }

    /// A library operation.
    pub fn library(&mut self, op: LibraryOp, reads: &[ArrayId], writes: &[ArrayId]) {
        let (reads, writes, site) = (reads.to_vec(), writes.to_vec(), self.site.clone());
        self.push(Stmt::Library(LibraryCall { op, reads, writes, arguments: Vec::new(), site }));
    }

    /// A custom operation with these arguments, in order.
    pub fn operation(&mut self, operation: Operation, arguments: &[Bound]) {
        let arrays = |wanted: Access| {
            let of = |bound: &Bound| match *bound {
                Bound::Array(array, access) => (access == wanted).then_some(array),
                Bound::Scalar(_) => None,
            };
            arguments.iter().filter_map(of).collect()
        };
        let (reads, writes) = (arrays(Access::Read), arrays(Access::Write));
        self.program.operations.push(Arc::new(operation));
        let op = LibraryOp::Custom(OperationId(self.program.operations.len() as u32 - 1));
        let (arguments, site) = (arguments.to_vec(), self.site.clone());
        self.push(Stmt::Library(LibraryCall { op, reads, writes, arguments, site }));
    }

    /// `c = a · b`.
    pub fn matmul(&mut self, a: ArrayId, b: ArrayId, c: ArrayId) {
        let op = LibraryOp::Matmul { left: Layout::Plain, right: Layout::Plain, into: Assign::Replace };
        self.library(op, &[a, b], &[c]);
    }

    /// `out[i] = x[0] + … + x[i]`, added in that order.
    pub fn scan(&mut self, x: ArrayId, out: ArrayId) {
        self.library(LibraryOp::Scan { way: Way::Forth, into: Assign::Replace }, &[x], &[out]);
    }

    /// The indices of what is not zero in `flags`, in order, into `out` as far as it has room, and their number into
    /// `count`.
    pub fn compact(&mut self, flags: ArrayId, out: ArrayId, count: ArrayId) {
        self.library(LibraryOp::Compact, &[flags], &[out, count]);
    }

    // ---- blocks

    fn begin(&mut self, owner: Owner) {
        self.open.push(Open { block: Block::new(), owner });
    }

    /// Ends the innermost block, if `expected` says that it is of the right kind.
    fn end(&mut self, what: &str, expected: impl Fn(&Owner) -> bool) -> Option<(Owner, Block)> {
        match self.open.pop_if(|open| expected(&open.owner)) {
            Some(open) => Some((open.owner, open.block)),
            None => {
                self.flaw("1", format!("the end of {what} does not match a beginning"));
                None
            }
        }
    }

    /// Begins `if condition {`.
    pub fn begin_if(&mut self, condition: ValueId) {
        self.begin(Owner::Then(condition));
    }

    /// `} else {`.
    pub fn begin_else(&mut self) {
        if let Some((Owner::Then(condition), then)) = self.end("an `if`", |o| matches!(o, Owner::Then(_))) {
            self.begin(Owner::Otherwise(condition, then));
        }
    }

    /// Ends an `if`, with or without `else`.
    pub fn end_if(&mut self) {
        let ended = self.end("an `if`", |o| matches!(o, Owner::Then(_) | Owner::Otherwise(..)));
        let branch = match ended {
            Some((Owner::Then(condition), then)) => Branch { condition, then, otherwise: Block::new() },
            Some((Owner::Otherwise(condition, then), otherwise)) => Branch { condition, then, otherwise },
            _ => return,
        };
        self.push(Stmt::If(branch));
    }

    /// Ends an `if` whose arms both set `local`, which nothing else uses, and gives its value. Where both arms are cheap
    /// and cannot fail it becomes a `select`, which index arithmetic and vectors understand.
    pub fn end_value_if(&mut self, local: LocalId) -> ValueId {
        let Some(Open { owner: Owner::Otherwise(condition, then), block: otherwise }) = self.open.last()
        else {
            self.end_if();
            return self.get(local);
        };
        let arms = (self.arm(then, local), self.arm(otherwise, local));
        let (Some(yes), Some(no)) = arms else {
            self.end_if();
            return self.get(local);
        };
        let (condition, mut values) = (*condition, then.clone());
        values.extend_from_slice(otherwise);
        self.open.pop();
        if let Some(open) = self.open.last_mut() {
            // Its first value was never read.
            let mut unread = None;
            open.block.retain(|stmt| match stmt {
                Stmt::Declare(declared, value) if *declared == local => {
                    unread = Some(*value);
                    false
                }
                _ => true,
            });
            if let Some(v) = unread.filter(|v| self.program.literal(*v).is_some()) {
                open.block.retain(|stmt| !matches!(stmt, Stmt::Let(value) if *value == v));
            }
            open.block.extend(values.into_iter().filter(|stmt| matches!(stmt, Stmt::Let(_))));
        }
        self.select(condition, yes, no)
    }

    /// What an arm sets `local` to, where it does nothing else that costs or fails.
    fn arm(&self, block: &Block, local: LocalId) -> Option<ValueId> {
        let (last, rest) = block.split_last()?;
        let cheap = |stmt: &Stmt| match stmt {
            Stmt::Let(v) => match self.program.op(*v) {
                Op::Get(_) => true,
                Op::Math(..) | Op::Rand(..) => false,
                op => op.is_pure() && !crate::passes::may_fail(&self.program, *v),
            },
            _ => false,
        };
        match last {
            Stmt::Set(set, value) if *set == local && rest.iter().all(cheap) => Some(*value),
            _ => None,
        }
    }

    fn new_loop(&mut self) -> LoopId {
        self.program.loops += 1;
        let id = LoopId(self.program.loops - 1);
        if let Some(hint) = self.next_schedule.take() {
            self.schedules.insert(id, hint);
        }
        id
    }

    /// Begins `for name in from..to {` and gives the loop variable.
    pub fn begin_for(&mut self, name: &str, from: ValueId, to: ValueId) -> ValueId {
        let id = self.new_loop();
        let var = self.loop_var(name);
        self.begin(Owner::Loop(id, LoopKind::For { var, from, to }));
        var
    }

    /// Begins a `while`: the statements that compute its condition come next.
    pub fn begin_while(&mut self) {
        let id = self.new_loop();
        self.begin(Owner::Head(id));
    }

    /// The condition of the `while` is known: its body comes next.
    pub fn while_condition(&mut self, condition: ValueId) {
        if let Some((Owner::Head(id), head)) =
            self.end("a `while` condition", |o| matches!(o, Owner::Head(_)))
        {
            self.begin(Owner::Loop(id, LoopKind::While { head, condition }));
        }
    }

    /// Begins `loop {`.
    pub fn begin_loop(&mut self) {
        let id = self.new_loop();
        self.begin(Owner::Loop(id, LoopKind::Forever));
    }

    /// Ends a `for`, `while` or `loop`; `until` is the condition of a last `if … { break; }`.
    pub fn end_loop(&mut self, until: Option<ValueId>) {
        if let Some((Owner::Loop(id, kind), body)) = self.end("a loop", |o| matches!(o, Owner::Loop(..))) {
            if until.is_none() && matches!(kind, LoopKind::Forever) {
                self.flaw("5", "a `loop` needs `if … { break; }` as its last statement: it would never end");
            }
            let schedule = self.schedules.remove(&id);
            self.push(Stmt::Loop(Loop { id, kind, body, until, schedule }));
        }
    }

    /// The next sequential loop is to be reversed in this way.
    pub fn reverse(&mut self, hint: ReverseHint) {
        if let ReverseHint::Periodic(0)
        | ReverseHint::Revolve(0)
        | ReverseHint::Online(0)
        | ReverseHint::Mixed(0) = hint
        {
            self.flaw("5", format!("`{hint}`: a loop is reversed from at least one stored state"));
        }
        self.next_schedule = Some(hint);
    }

    /// The next parallel loop is `#[relaxed]`.
    pub fn relaxed(&mut self) {
        self.ordering = Ordering::Relaxed;
    }

    /// Begins a parallel loop and gives its variables, one per `(name, from, to)`.
    pub fn begin_par(&mut self, ranges: &[(&str, ValueId, ValueId)]) -> Vec<ValueId> {
        self.program.pars += 1;
        let id = ParId(self.program.pars - 1);
        let ranges: Vec<Range> =
            ranges.iter().map(|&(name, from, to)| Range { var: self.loop_var(name), from, to }).collect();
        let vars = ranges.iter().map(|r| r.var).collect();
        let ordering = std::mem::replace(&mut self.ordering, Ordering::Ordered);
        self.begin(Owner::Par(id, ranges, ordering, self.site.clone()));
        vars
    }

    /// Ends a parallel loop.
    pub fn end_par(&mut self) {
        let ended = self.end("a parallel loop", |o| matches!(o, Owner::Par(..)));
        if let Some((Owner::Par(id, ranges, ordering, site), body)) = ended {
            // Nothing is taken when the loop begins.
            for (array, taken) in std::mem::take(&mut self.taken) {
                let shape = (0..self.program.array(array).rank).map(|k| self.dim(array, k)).collect();
                self.program.arrays[taken.index()].role = Role::Temp(shape);
                self.push(Stmt::Temp(taken));
            }
            self.push(Stmt::Par(Par { id, ranges, body, ordering, site }));
        }
    }

    /// Begins a labelled region.
    pub fn begin_region(&mut self, label: Label, flag: Option<ArrayId>, undo: Undo) {
        let id = match self.program.labels.iter().position(|l| *l == label) {
            Some(known) => LabelId(known as u32),
            None => {
                self.program.labels.push(label);
                LabelId(self.program.labels.len() as u32 - 1)
            }
        };
        self.begin(Owner::Region(id, flag, undo, self.site.clone()));
    }

    /// Ends a labelled region.
    pub fn end_region(&mut self) {
        let ended = self.end("a region", |o| matches!(o, Owner::Region(..)));
        if let Some((Owner::Region(label, flag, undo, site), body)) = ended {
            let id = RegionId(self.program.regions);
            self.program.regions += 1;
            self.push(Stmt::Region(Region { id, label, flag, undo, body, site }));
        }
    }

    /// Begins the body of a called program; an error if it is being called already.
    pub fn begin_call(&mut self, name: &str) {
        self.begin(Owner::Call(name.to_string(), None));
    }

    /// Begins the body of a called program that brings its own derivatives.
    pub fn begin_ruled_call(&mut self, name: &str, arguments: Vec<Bound>, rules: Rules) {
        self.begin(Owner::Call(name.to_string(), Some(Ruled { arguments, rules })));
    }

    /// The names of the programs being called now, outermost first, this one included.
    pub fn call_stack(&self) -> Vec<&str> {
        let calls = self.open.iter().filter_map(|open| match &open.owner {
            Owner::Call(name, _) => Some(name.as_str()),
            _ => None,
        });
        std::iter::once(self.program.name.as_str()).chain(calls).collect()
    }

    /// Ends the body of a called program.
    pub fn end_call(&mut self) {
        if let Some((Owner::Call(name, ruled), body)) = self.end("a call", |o| matches!(o, Owner::Call(..))) {
            self.push(Stmt::Call(Call { name, body, ruled }));
        }
    }

    /// The program, verified; all that is wrong with it otherwise.
    pub fn finish(mut self) -> Result<Program, Error> {
        if self.open.len() != 1 {
            self.flaw("1", format!("{} blocks were begun and not ended", self.open.len() - 1));
        }
        self.open.truncate(1);
        if let Some(root) = self.open.pop() {
            self.program.body = root.block;
        }
        if !self.flaws.is_empty() {
            return Err(Error::Invalid { program: self.program.name, flaws: self.flaws });
        }
        crate::verify::verify(&self.program)?;
        Ok(self.program)
    }
}
