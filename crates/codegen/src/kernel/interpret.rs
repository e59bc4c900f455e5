//! The reference interpreter: what a body means. Tests run transforms on it, without a compiler.

mod elements;

use std::collections::BTreeMap;

use ebbtide_ir::evaluate::{self, Bits, combine, neutral};
use ebbtide_ir::leaf::{LANES, Leaves};
use ebbtide_ir::{ArrayId, Binary, Combine, Type, ValueId};

use self::elements::{is_masked, whole};
use super::evaluate::{World, evaluate as number};
use super::expr::{Expr, Overflow};
use super::index_expr::IndexExpr;
use super::name::{Name, Ty, Variable};
use super::stmt::{Body, Ends, Fault, Loop, LoopKind, Manner, Partly, Stmt, Wide};

/// What iterations find and leave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    pub shapes: Vec<Vec<i64>>,
    pub arrays: Vec<Vec<Bits>>,
    pub scalars: Vec<Bits>,
    /// By reduction: its lanes, and whether any iteration had a term.
    pub reductions: Vec<(Vec<Bits>, bool)>,
    /// What iterations noted, in buckets or tables: the array, the place of an element, and the term.
    pub noted: Vec<(ArrayId, usize, Bits)>,
}

/// Why an iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    OutOfBounds {
        array: ArrayId,
        dimension: usize,
        index: i64,
        extent: i64,
    },
    Division,
    Overflow,
    Taken,
    /// A test did not hold: its iterations run one by one.
    FallBack,
}

/// One iteration, or as many as a vector has lanes.
pub(crate) struct Iteration<'a> {
    pub memory: &'a mut Memory,
    /// The values of names, one for each lane that they have.
    pub names: BTreeMap<Name, Vec<Bits>>,
    /// The bases of remainders in the interior (see [`crate::analysis::interior`]).
    pub wrapped: &'a dyn Fn(ValueId) -> i64,
    /// The lanes of a vector.
    pub lanes: usize,
    /// How many lanes are iterations where not all are.
    pub tail: usize,
    /// The lane of a leaf to which the first lane adds.
    pub lane: usize,
    /// The first element that did not exist, while faults are deferred.
    pub deferred: Option<Ended>,
    /// Where the elements of addresses are.
    pub addresses: BTreeMap<Name, Vec<i64>>,
    /// What is in the places of tapes that the iteration uses, by array and number.
    pub tapes: BTreeMap<(ArrayId, u32), Bits>,
    /// Are all rows one row, so that an index behind the end of one is in the next?
    pub as_one: bool,
}

/// How a statement ends.
#[derive(PartialEq, Eq)]
enum Flow {
    Next,
    Break,
}

impl<'a> Iteration<'a> {
    pub fn new(
        memory: &'a mut Memory,
        wrapped: &'a dyn Fn(ValueId) -> i64,
        values: impl IntoIterator<Item = (ValueId, Bits)>,
    ) -> Iteration<'a> {
        let names = values.into_iter().map(|(v, bits)| (Name::value(v), vec![bits])).collect();
        let (addresses, tapes) = (BTreeMap::new(), BTreeMap::new());
        Iteration {
            memory,
            names,
            wrapped,
            lanes: LANES_OF_TESTS,
            tail: 0,
            lane: 0,
            deferred: None,
            addresses,
            tapes,
            as_one: false,
        }
    }

    pub fn run(&mut self, body: &[Stmt]) -> Result<(), Ended> {
        self.block(body).map(drop)
    }

    fn block(&mut self, body: &[Stmt]) -> Result<Flow, Ended> {
        for stmt in body {
            if self.statement(stmt)? == Flow::Break {
                return Ok(Flow::Break);
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<Flow, Ended> {
        match stmt {
            Stmt::Let { name, value, .. }
            | Stmt::Declare { name, value, .. }
            | Stmt::Assign { name, value, .. } => {
                let value = self.expr(value);
                self.names.insert(*name, value);
            }
            Stmt::Load { name, element, when: Some(mask), .. } if is_masked(element) => {
                let mask = self.expr(mask);
                let found = self.masked(element, &mask);
                let value = |(at, here): (Option<usize>, &Bits)| match at {
                    Some(at) if *here != 0 => self.element(element, at),
                    // Whatever it is, nothing may depend on it.
                    _ => Bits::MAX,
                };
                let value = found.into_iter().zip(&mask).map(value).collect();
                self.names.insert(*name, value);
            }
            Stmt::Load { name, ty, element, when } => {
                let holds = self.holds(when.as_ref());
                let exists = !holds || self.exists(element)?;
                let value = match holds && exists {
                    true => self.places(element).iter().map(|at| self.element(element, *at)).collect(),
                    false => vec![ebbtide_ir::Literal::of(one(*ty), 1.0).bits()],
                };
                self.names.insert(*name, value);
            }
            Stmt::Store { .. } => self.store(stmt)?,
            Stmt::FallBack { unless, .. } => {
                if self.expr(unless)[0] == 0 {
                    return Err(Ended::FallBack);
                }
            }
            Stmt::Address { name, element, .. } => {
                let index = element.index().iter().map(|e| self.expr(e)[0] as i64).collect();
                self.addresses.insert(*name, index);
            }
            Stmt::Reduce { number, ty, how, value, when, vector } => {
                let value = self.expr(value);
                let mask = when.as_ref().map(|when| self.expr(when));
                let lanes = if let Ty::Vector(_, lanes) = ty { *lanes } else { 1 };
                for lane in 0..lanes {
                    if mask.as_ref().is_none_or(|mask| mask[lane.min(mask.len() - 1)] != 0) {
                        let at = (self.lane + vector * lanes + lane) % LANES;
                        let sum = &mut self.memory.reductions[*number].0[at];
                        *sum = combine(*how, one(*ty), *sum, value[lane.min(value.len() - 1)]);
                        self.memory.reductions[*number].1 = true;
                    }
                }
            }
            Stmt::Claim { element, taken } => {
                self.exists(element)?;
                let at = self.places(element)[0];
                if std::mem::replace(&mut self.memory.arrays[taken.index()][at], 1) != 0 {
                    return Err(Ended::Taken);
                }
            }
            Stmt::Fault { operand, kind, .. } => {
                let operand = self.expr(operand)[0];
                match kind {
                    Fault::Division(_) if operand == 0 => return Err(Ended::Division),
                    Fault::DivisionAfterDeferred(_) if operand == 0 => {
                        return Err(self.deferred.unwrap_or(Ended::Division));
                    }
                    Fault::Overflow if operand as i64 == i64::MIN => return Err(Ended::Overflow),
                    _ => {}
                }
            }
            Stmt::RaiseDeferred => self.deferred.map_or(Ok(()), Err)?,
            Stmt::DeferFaults | Stmt::Strides(_) | Stmt::Poll => {}
            Stmt::Push { array, place, value, .. } => {
                let value = self.expr(value)[0];
                self.tapes.insert((*array, *place), value);
            }
            Stmt::Pop { array, place, name, .. } => {
                let value = self.tapes[&(*array, *place)];
                self.names.insert(*name, vec![value]);
            }
            Stmt::If { condition, then, otherwise } => {
                let holds = self.expr(condition)[0] != 0;
                return self.block(if holds { then } else { otherwise });
            }
            Stmt::Loop(l) => self.inner_loop(l)?,
        }
        Ok(Flow::Next)
    }

    /// The iterations that all lanes have, between those that some of them have.
    fn partly_loop(&mut self, l: &Loop, partly: &Partly) -> Result<(), Ended> {
        let LoopKind::Counted { variable, from, to } = &l.kind else { return Ok(()) };
        let [from, to, first, end] = [from, to, &partly.from, &partly.to].map(|e| self.expr(e)[0] as i64);
        for at in first..end {
            self.names.insert(*variable, vec![at as Bits]);
            self.block(if (from..to).contains(&at) { &l.body } else { &partly.body })?;
        }
        Ok(())
    }

    /// What is done before the first iteration of a loop or behind the last one, where it has any.
    fn end(
        &mut self,
        l: &Loop,
        at: i64,
        (from, to): (i64, i64),
        which: fn(&Ends) -> &Body,
    ) -> Result<(), Ended> {
        if let (Some(ends), LoopKind::Counted { variable, .. }) = (&l.ends, &l.kind)
            && from < to
        {
            self.names.insert(*variable, vec![at as Bits]);
            self.block(which(ends))?;
        }
        Ok(())
    }

    /// What an iteration finds computed ahead, where as many follow as are computed at once.
    fn ahead(&mut self, l: &Loop, (place, all): (i64, i64)) -> Result<Vec<(Name, Bits)>, Ended> {
        let (Some(ahead), LoopKind::Counted { variable, .. }) = (&l.ahead, &l.kind) else {
            return Ok(Vec::new());
        };
        let (lane, at) = (place % lanes_of(ahead.ty) as i64, self.names[variable].clone());
        if place - lane + lanes_of(ahead.ty) as i64 > all {
            return Ok(Vec::new());
        }
        let before = self.names.clone();
        self.names.insert(*variable, vec![at[0].wrapping_sub(lane as Bits)]);
        self.block(&ahead.body)?;
        let found = ahead.values.iter().map(|name| (*name, self.names[name][lane as usize])).collect();
        self.names = before;
        Ok(found)
    }

    fn inner_loop(&mut self, l: &Loop) -> Result<(), Ended> {
        if let Some(partly) = &l.partly {
            return self.partly_loop(l, partly);
        }
        let (from, to) = match &l.kind {
            LoopKind::Counted { from, to, .. } => (self.expr(from)[0] as i64, self.expr(to)[0] as i64),
            _ => (0, i64::MAX),
        };
        let before: Vec<Vec<Bits>> = l.sums.iter().map(|(name, _)| self.names[name].clone()).collect();
        let start = |ty: &Ty| vec![neutral(Combine::Add, one(*ty)); lanes_of(*ty)];
        let mut totals: Vec<Vec<Bits>> = l.sums.iter().map(|(_, ty)| start(ty)).collect();
        let mut chains = before.clone();
        let mut lanes: Vec<Vec<Vec<Bits>>> = l.sums.iter().map(|(_, ty)| vec![start(ty); LANES]).collect();
        let size = Leaves::of(&[to.saturating_sub(from)]).size;
        if let Some(wide) = &l.wide {
            self.wide_loop(l, wide, (from, to), size, &mut lanes, &mut totals)?;
        }
        self.end(l, from, (from, to), |ends| &ends.first)?;
        let each = if l.wide.is_some() { 0 } else { to.saturating_sub(from).max(0) };
        for place in 0..each {
            if place > 0 && place % size == 0 {
                end_leaf(l, &mut lanes, &mut totals);
            }
            match &l.kind {
                LoopKind::Counted { variable, .. } => {
                    self.names.insert(*variable, vec![(from + place) as Bits]);
                }
                LoopKind::While { head, condition } => {
                    self.block(head)?;
                    if self.expr(condition)[0] == 0 {
                        break;
                    }
                }
                LoopKind::Forever => {}
            }
            for (name, ty) in &l.sums {
                self.names.insert(*name, start(ty));
            }
            let ahead = self.ahead(l, (place, each))?;
            let flow = self.block(&l.body)?;
            for (name, value) in ahead {
                assert_eq!(self.names[&name], [value], "{name} is not what was computed ahead");
            }
            for (((name, ty), lanes), chain) in l.sums.iter().zip(&mut lanes).zip(&mut chains) {
                let sum = if l.chained { chain } else { &mut lanes[place as usize % LANES] };
                add(*ty, sum, &self.names[name]);
            }
            if flow == Flow::Break || l.until.as_ref().is_some_and(|until| self.expr(until)[0] != 0) {
                break;
            }
        }
        self.end(l, to.wrapping_sub(1), (from, to), |ends| &ends.last)?;
        if l.chained {
            self.names.extend(l.sums.iter().map(|(name, _)| *name).zip(chains));
            return Ok(());
        }
        end_leaf(l, &mut lanes, &mut totals);
        for (((name, ty), before), total) in l.sums.iter().zip(before).zip(&totals) {
            let mut sum = before;
            sum.resize(lanes_of(*ty), sum[0]);
            add(*ty, &mut sum, total);
            self.names.insert(*name, sum);
        }
        Ok(())
    }

    /// The terms of a loop with sums in vectors along the lanes of its leaves, but for the end of the last leaf.
    fn wide_loop(
        &mut self,
        l: &Loop,
        wide: &Wide,
        (from, to): (i64, i64),
        size: i64,
        lanes: &mut [Vec<Vec<Bits>>],
        totals: &mut [Vec<Bits>],
    ) -> Result<(), Ended> {
        let LoopKind::Counted { variable, .. } = &l.kind else { return Ok(()) };
        let mut place = 0;
        while from + place < to {
            if place > 0 && place % size == 0 {
                end_leaf(l, lanes, totals);
            }
            // A leaf has a whole number of vectors, but for the last one.
            let tail = ((to - from - place) as usize).min(wide.lanes);
            self.names.insert(*variable, vec![(from + place) as Bits]);
            for (name, ty) in &l.sums {
                self.names.insert(*name, vec![neutral(Combine::Add, one(*ty)); wide.lanes]);
            }
            let outer = (self.lanes, self.tail);
            (self.lanes, self.tail) = (wide.lanes, tail);
            self.block(if tail == wide.lanes { &wide.whole } else { &wide.tail })?;
            (self.lanes, self.tail) = outer;
            for ((name, ty), lanes) in l.sums.iter().zip(lanes.iter_mut()) {
                for (k, term) in self.names[name].iter().take(tail).enumerate() {
                    add(*ty, &mut lanes[(place as usize + k) % LANES], &[*term]);
                }
            }
            place += tail as i64;
        }
        Ok(())
    }

    fn store(&mut self, stmt: &Stmt) -> Result<(), Ended> {
        let Stmt::Store { element, ty, how, value, more, when, manner } = stmt else { return Ok(()) };
        let values: Vec<Vec<Bits>> = [value].into_iter().chain(more).map(|value| self.expr(value)).collect();
        let mask = when.as_ref().map(|when| self.expr(when));
        let masked = is_masked(element);
        if mask.as_ref().is_some_and(|mask| mask.iter().all(|m| *m == 0))
            || !masked && !self.exists(element)?
        {
            return Ok(());
        }
        if self.deferred.is_some() {
            return Ok(());
        }
        let places = match &mask {
            Some(mask) if masked => self.masked(element, mask),
            _ => self.places(element).into_iter().map(Some).collect(),
        };
        for (lane, at) in places.into_iter().enumerate().filter_map(|(lane, at)| Some((lane, at?))) {
            if mask.as_ref().is_some_and(|mask| mask[lane.min(mask.len() - 1)] == 0) {
                continue;
            }
            for value in &values {
                let value = value[lane.min(value.len() - 1)];
                if let Manner::Bucket(_) | Manner::Noted(_) = manner {
                    self.memory.noted.push((element.array, at, value));
                    continue;
                }
                let element = &mut self.memory.arrays[element.array.index()][at];
                *element = how.map_or(value, |how| combine(how, one(*ty), *element, value));
            }
        }
        Ok(())
    }

    fn holds(&self, when: Option<&Expr>) -> bool {
        when.is_none_or(|when| self.expr(when)[0] != 0)
    }

    fn index(&self, e: &IndexExpr) -> i64 {
        let value = |v: ValueId| self.names[&Name::value(v)][0] as i64;
        let extent = |array: ArrayId, k: usize| self.memory.shapes[array.index()][k];
        let world = World { value: &value, extent: &extent, wrapped: self.wrapped, ranges: &[] };
        number(e, &world).expect("bases of bodies wrap")
    }

    /// The value of an expression, for each lane that it has.
    fn expr(&self, e: &Expr) -> Vec<Bits> {
        let operands: Vec<Vec<Bits>> = e.operands().iter().map(|e| self.expr(e)).collect();
        let lanes = operands.iter().map(Vec::len).max().unwrap_or(1);
        let each = |f: &dyn Fn(&[Bits]) -> Bits| -> Vec<Bits> {
            let of_lane =
                |lane: usize| -> Vec<Bits> { operands.iter().map(|o| o[lane.min(o.len() - 1)]).collect() };
            (0..lanes).map(|lane| f(&of_lane(lane))).collect()
        };
        let linear = |coefficient: i64, variable: &Name, lane: i64, base: &IndexExpr| {
            let at = (self.names[variable][0] as i64).wrapping_add(lane);
            coefficient.wrapping_mul(at).wrapping_add(self.index(base))
        };
        match e {
            Expr::Literal(literal) => vec![literal.bits()],
            Expr::Variable(name) => self.variable(*name),
            Expr::Scalar(s, _) => vec![self.memory.scalars[s.index()]],
            Expr::Extent(array, k) => vec![self.memory.shapes[array.index()][*k] as Bits],
            Expr::Index(index) => vec![self.index(index) as Bits],
            Expr::Linear { coefficient, variable, base } => {
                vec![linear(*coefficient, variable, 0, base) as Bits]
            }
            Expr::Ramp { ty, coefficient, variable, base } => (0..lanes_of(*ty) as i64)
                .map(|lane| {
                    let at = linear(*coefficient, variable, lane, base) as Bits;
                    evaluate::cast(Type::I64, one(*ty), at)
                })
                .collect(),
            Expr::Multiples { ty, coefficient } => (0..lanes_of(*ty) as i64)
                .map(|lane| evaluate::cast(Type::I64, one(*ty), coefficient.wrapping_mul(lane) as Bits))
                .collect(),
            Expr::Unary(op, ty, overflow, _) => {
                let ty = plain(*ty, *overflow);
                each(&|o| evaluate::unary(*op, ty, o[0]))
            }
            Expr::Binary(op, ty, overflow, _) => {
                let ty = plain(*ty, *overflow);
                each(&|o| evaluate::binary(*op, ty, o[0], o[1]).expect("a fault stands before a division"))
            }
            Expr::Compare(op, ty, _) => each(&|o| evaluate::compare(*op, one(*ty), o[0], o[1]).into()),
            Expr::Select(..) => each(&|o| if o[0] != 0 { o[1] } else { o[2] }),
            Expr::Fma(ty, _) => each(&|o| evaluate::fma(one(*ty), o[0], o[1], o[2])),
            Expr::Cast { from, to, .. } => {
                let from = if let Ty::Mask(..) = from { Type::Bool } else { one(*from) };
                each(&|o| evaluate::cast(from, one(*to), o[0]))
            }
            Expr::Math(function, ty, _) => {
                each(&|o| evaluate::math(*function, one(*ty), o[0], *o.get(1).unwrap_or(&0)))
            }
            Expr::Random(ty, _) => each(&|o| evaluate::rand(*ty, o[0] as i64, o[1] as i64)),
            Expr::All(_) => each(&|o| o.iter().all(|o| *o != 0).into()),
            Expr::Within(ty, _) => {
                let signed = |x: Bits| if one(*ty) == Type::I32 { whole(x) } else { x as i64 };
                let inside = each(&|o| (o[1] as i64 <= signed(o[0]) && signed(o[0]) < o[2] as i64).into());
                vec![inside.iter().all(|inside| *inside != 0).into()]
            }
            Expr::OneStep(ty, _) => each(&|o| {
                let rem = evaluate::binary(Binary::RemEuclid, one(*ty), o[0], o[1]);
                rem.expect("the divisor is tested")
            }),
            Expr::Nearest(_) => each(&|o| (o[0] as i64).clamp(i32::MIN.into(), i32::MAX.into()) as Bits),
            Expr::Splat(ty, _) => vec![operands[0][0]; lanes_of(*ty)],
        }
    }

    fn variable(&self, name: Name) -> Vec<Bits> {
        if let Variable::Bound(v) = name.variable {
            let wide = self.names[&Name::value(v)][0] as i64;
            return vec![wide.clamp(i32::MIN.into(), i32::MAX.into()) as Bits];
        }
        if name.variable == Variable::Tail {
            return vec![self.tail as Bits];
        }
        self.names.get(&name).unwrap_or_else(|| panic!("{name} has no value")).clone()
    }
}

/// The vectors of tests have so many lanes where nothing else is said.
pub(crate) const LANES_OF_TESTS: usize = 4;

/// The type of one lane.
fn one(ty: Ty) -> Type {
    match ty {
        Ty::One(ty) | Ty::Vector(ty, _) | Ty::Address(ty) => ty,
        Ty::Narrow => Type::Index,
        Ty::Mask(..) => Type::Bool,
    }
}

/// The type in whose arithmetic an operation computes: indices that wrap are integers of 64 bits.
fn plain(ty: Ty, overflow: Overflow) -> Type {
    match (one(ty), overflow) {
        (Type::Index, Overflow::Wraps) => Type::I64,
        (ty, _) => ty,
    }
}

fn lanes_of(ty: Ty) -> usize {
    if let Ty::Vector(_, lanes) | Ty::Mask(_, lanes) = ty { lanes } else { 1 }
}

/// Adds lane by lane.
fn add(ty: Ty, sum: &mut [Bits], term: &[Bits]) {
    for (lane, sum) in sum.iter_mut().enumerate() {
        *sum = combine(Combine::Add, one(ty), *sum, term[lane.min(term.len() - 1)]);
    }
}

/// Adds the lanes of a leaf in a tree, and that to what the leaves before came to.
fn end_leaf(l: &Loop, lanes: &mut [Vec<Vec<Bits>>], totals: &mut [Vec<Bits>]) {
    for (((_, ty), lanes), total) in l.sums.iter().zip(lanes).zip(totals) {
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                let other = lanes[lane + width].clone();
                add(*ty, &mut lanes[lane], &other);
            }
            width /= 2;
        }
        add(*ty, total, &lanes[0].clone());
        lanes.iter_mut().for_each(|lane| lane.fill(neutral(Combine::Add, one(*ty))));
    }
}
