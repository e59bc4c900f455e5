//! Writes statements into a program that is being made from another one.

pub(crate) mod prune;
pub(crate) mod rename;

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    ArrayDecl, ArrayId, Binary, Block, Combine, Compare, Function, Indices, Literal, LocalDecl, LocalId,
    LoopId, Op, Par, ParId, Program, Range, RegionId, Role, Site, Stmt, Store, Type, Unary, ValueId, WriteId,
};

/// A program and the blocks of it that are open, innermost last.
#[derive(Clone)]
pub(crate) struct Writer {
    pub program: Program,
    open: Vec<Block>,
    /// Derivatives that may be zero because an arm was not taken: times an infinite slope they stay zero.
    masked: BTreeMap<ValueId, Mask>,
    /// How it is known whether an arm was taken.
    masks: Masks,
    /// Locals in which cotangents are added up: in which order is ours to say.
    pub sums: BTreeSet<LocalId>,
    /// Regions that are copies, and what they are copies of.
    pub copies: BTreeMap<RegionId, RegionId>,
}

/// How it is known whether a derivative is zero because an arm was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Masks {
    /// It is zero. A program that is not differentiated again can be told so: it needs nothing but the number.
    ByValue,
    /// By the condition of the arm. A derivative that happens to be zero still moves, so this is what a program needs
    /// that is differentiated again.
    ByCondition,
}

/// Why a derivative may be zero.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mask {
    Value,
    /// It is not where this holds.
    Condition(ValueId),
}

impl Writer {
    /// A writer that adds to the tables of `program`.
    pub fn new(program: Program) -> Writer {
        Writer {
            program,
            open: vec![Block::new()],
            masked: BTreeMap::new(),
            masks: Masks::ByValue,
            sums: BTreeSet::new(),
            copies: BTreeMap::new(),
        }
    }

    /// A writer of a program that may be differentiated again.
    pub fn of_tangent(program: Program) -> Writer {
        Writer { masks: Masks::ByCondition, ..Writer::new(program) }
    }

    /// Remembers that a cotangent may be zero because an arm was not taken.
    pub fn mask(&mut self, bar: ValueId) -> ValueId {
        self.masked.insert(bar, Mask::Value);
        bar
    }

    /// Remembers that `part`, the part of `bar` that flows where `taken` holds, may be zero because it does not hold.
    pub fn mask_arm(
        &mut self,
        part: ValueId,
        bar: ValueId,
        taken: impl FnOnce(&mut Writer) -> ValueId,
    ) -> ValueId {
        let mask = match (self.masks, self.masked.get(&bar).copied()) {
            (Masks::ByValue, _) | (_, Some(Mask::Value)) => Mask::Value,
            (Masks::ByCondition, None) => Mask::Condition(taken(self)),
            (Masks::ByCondition, Some(Mask::Condition(before))) => {
                let taken = taken(self);
                Mask::Condition(self.value(Op::Binary(Binary::And, before, taken), Type::Bool))
            }
        };
        self.masked.insert(part, mask);
        part
    }

    /// The product of a derivative with a slope: nothing where an arm was not taken, however steep the slope.
    pub fn scaled(&mut self, bar: ValueId, slope: ValueId) -> ValueId {
        let product = self.mul(bar, slope);
        let Some(mask) = self.masked.get(&bar).copied() else { return product };
        let zero = self.real(self.ty(bar), 0.0);
        let flowing = match mask {
            Mask::Value => {
                let nothing = self.compare(Compare::Eq, bar, zero);
                self.select(nothing, zero, product)
            }
            Mask::Condition(taken) => self.select(taken, product, zero),
        };
        self.masked.insert(flowing, mask);
        flowing
    }

    /// `to` is zero where `from` is.
    pub fn mask_like(&mut self, to: ValueId, from: ValueId) -> ValueId {
        if let Some(mask) = self.masked.get(&from).copied() {
            self.masked.insert(to, mask);
        }
        to
    }

    /// May the cotangent be zero because an arm was not taken?
    pub fn is_masked(&self, bar: ValueId) -> bool {
        self.masked.contains_key(&bar)
    }

    /// The sum of two cotangents.
    pub fn add_cotangents(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let sum = self.add(a, b);
        if self.is_masked(a) || self.is_masked(b) { self.mask(sum) } else { sum }
    }

    /// Puts a statement at the end of the innermost open block.
    pub fn push(&mut self, stmt: Stmt) {
        match self.open.last_mut() {
            Some(block) => block.push(stmt),
            None => self.open.push(vec![stmt]),
        }
    }

    /// Opens a block.
    pub fn begin(&mut self) {
        self.open.push(Block::new());
    }

    /// Closes the innermost block.
    pub fn end(&mut self) -> Block {
        self.open.pop().unwrap_or_default()
    }

    /// Writes a block by itself.
    pub fn block(&mut self, write: impl FnOnce(&mut Writer)) -> Block {
        self.begin();
        write(self);
        self.end()
    }

    // ---- declarations

    /// A name that no parameter has: this one, or one like it.
    pub fn free_name(&self, mut name: String) -> String {
        while self.program.find_array(&name).is_some() || self.program.find_scalar(&name).is_some() {
            name.push('_');
        }
        name
    }

    pub fn array(&mut self, name: String, ty: Type, rank: usize, role: Role) -> ArrayId {
        self.program.arrays.push(ArrayDecl { name, ty, rank, role });
        ArrayId::from_index(self.program.arrays.len() - 1)
    }

    pub fn local(&mut self, name: &str, init: ValueId) -> LocalId {
        let ty = self.program.ty(init);
        self.program.locals.push(LocalDecl { name: name.to_string(), ty });
        let id = LocalId::from_index(self.program.locals.len() - 1);
        self.push(Stmt::Declare(id, init));
        id
    }

    /// A local in which cotangents are added up.
    pub fn sum(&mut self, init: ValueId) -> LocalId {
        let sum = self.local("sum", init);
        self.sums.insert(sum);
        sum
    }

    /// A local that statements declare themselves.
    pub fn declare(&mut self, name: &str, ty: Type) -> LocalId {
        self.program.locals.push(LocalDecl { name: name.to_string(), ty });
        LocalId::from_index(self.program.locals.len() - 1)
    }

    pub fn new_par(&mut self) -> ParId {
        self.program.pars += 1;
        ParId::from_index(self.program.pars as usize - 1)
    }

    pub fn new_loop(&mut self) -> LoopId {
        self.program.loops += 1;
        LoopId::from_index(self.program.loops as usize - 1)
    }

    /// A region that is a copy of another, or of a copy of it.
    pub fn new_region(&mut self, of: RegionId) -> RegionId {
        let source = self.copies.get(&of).copied().unwrap_or(of);
        let copy = RegionId::from_index(self.program.regions as usize);
        self.program.regions += 1;
        self.copies.insert(copy, source);
        copy
    }

    /// The variable of a loop that is being made.
    pub fn loop_var(&mut self, name: &str) -> ValueId {
        let id = self.program.add_value(Op::LoopVar, Type::Index, None);
        self.program.values[id.index()].name = Some(name.to_string());
        id
    }

    // ---- values

    /// Computes a value here.
    pub fn value(&mut self, op: Op, ty: Type) -> ValueId {
        let id = self.program.add_value(op, ty, None);
        self.push(Stmt::Let(id));
        id
    }

    pub fn literal(&mut self, literal: Literal) -> ValueId {
        self.value(Op::Literal(literal), literal.ty())
    }

    pub fn index(&mut self, value: i64) -> ValueId {
        self.literal(Literal::index(value))
    }

    pub fn real(&mut self, ty: Type, value: f64) -> ValueId {
        self.literal(Literal::of(ty, value))
    }

    pub fn ty(&self, v: ValueId) -> Type {
        self.program.ty(v)
    }

    pub fn unary(&mut self, op: Unary, a: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Unary(op, a), ty)
    }

    pub fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Binary(op, a, b), ty)
    }

    pub fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Add, a, b)
    }

    pub fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Sub, a, b)
    }

    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Mul, a, b)
    }

    pub fn div(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary(Binary::Div, a, b)
    }

    pub fn neg(&mut self, a: ValueId) -> ValueId {
        self.unary(Unary::Neg, a)
    }

    pub fn compare(&mut self, op: Compare, a: ValueId, b: ValueId) -> ValueId {
        self.value(Op::Compare(op, a, b), Type::Bool)
    }

    pub fn select(&mut self, c: ValueId, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Select(c, a, b), ty)
    }

    pub fn math(&mut self, f: Function, a: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Math(f, a, a), ty)
    }

    pub fn math2(&mut self, f: Function, a: ValueId, b: ValueId) -> ValueId {
        let ty = self.ty(a);
        self.value(Op::Math(f, a, b), ty)
    }

    pub fn cast(&mut self, a: ValueId, ty: Type) -> ValueId {
        self.value(Op::Cast(a), ty)
    }

    pub fn get(&mut self, local: LocalId) -> ValueId {
        let ty = self.program.locals[local.index()].ty;
        self.value(Op::Get(local), ty)
    }

    pub fn dim(&mut self, array: ArrayId, k: usize) -> ValueId {
        self.value(Op::Dim(array, k as u8), Type::Index)
    }

    pub fn load(&mut self, array: ArrayId, index: Indices, site: Option<Site>) -> ValueId {
        let ty = self.program.array(array).ty;
        let id = self.program.add_value(Op::Load(array, index), ty, site);
        self.push(Stmt::Let(id));
        id
    }

    // ---- elements

    pub fn store(&mut self, array: ArrayId, index: Indices, value: ValueId, site: Option<Site>) {
        self.push(Stmt::Store(Store { array, index, value, site, id: WriteId::UNNUMBERED }));
    }

    pub fn accumulate(&mut self, array: ArrayId, index: Indices, value: ValueId, site: Option<Site>) {
        let id = WriteId::UNNUMBERED;
        self.push(Stmt::Update(Combine::Add, Store { array, index, value, site, id }));
    }

    // ---- whole arrays

    pub fn fill(&mut self, array: ArrayId, value: ValueId) {
        self.push(Stmt::Fill(array, value, WriteId::UNNUMBERED));
    }

    pub fn copy(&mut self, from: ArrayId, to: ArrayId) {
        self.push(Stmt::Copy { from, to, id: WriteId::UNNUMBERED });
    }

    /// The index of the one element of an array of rank 0.
    pub fn no_index() -> Indices {
        Indices::new(&[]).unwrap_or_else(|| unreachable!("no coordinates are few enough"))
    }
}

/// Is `from <= i < to`?
pub(crate) fn within(w: &mut Writer, i: ValueId, from: ValueId, to: ValueId) -> ValueId {
    let (low, high) = (w.compare(Compare::Ge, i, from), w.compare(Compare::Lt, i, to));
    both(w, Some(low), high)
}

/// Both conditions, if there is a first one.
pub(crate) fn both(w: &mut Writer, first: Option<ValueId>, second: ValueId) -> ValueId {
    match first {
        Some(first) => w.value(Op::Binary(Binary::And, first, second), Type::Bool),
        None => second,
    }
}

/// Writes a parallel loop over all elements of an array; for an array of rank 0 the statements alone.
pub(crate) fn each_element(w: &mut Writer, array: ArrayId, write: impl FnOnce(&mut Writer, Indices)) {
    let zero = w.index(0);
    let ranges: Vec<Range> = (0..w.program.array(array).rank)
        .map(|d| {
            let to = w.dim(array, d);
            Range { var: w.loop_var(&format!("k{d}")), from: zero, to }
        })
        .collect();
    let at: Vec<ValueId> = ranges.iter().map(|r| r.var).collect();
    let Some(index) = Indices::new(&at) else { return };
    if ranges.is_empty() {
        return write(w, index);
    }
    let body: Block = w.block(|w| write(w, index));
    let id = w.new_par();
    w.push(Stmt::Par(Par::over(id, ranges, body)));
}
