//! What the analyses promise, against all accesses of small loops.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Access, ArrayId, Binary, Block, Builder, Compare, Function, Literal, LoopKind, Op, Par, Program, Stmt,
    Type, ValueId, evaluate, verify, walk,
};

use super::bounds_proof::Prover;
use super::interior::{Decide, interior};
use super::lane_order::in_lane_order;
use super::vectors::{Vectors, refusal};
use crate::kernel::bounds_test::Test;
use crate::kernel::evaluate::{World, evaluate as number, narrowed, remainders};
use crate::kernel::interval::Interval;
use crate::kernel::machine::SMALL;

/// `for i in par(first..n - last) { … }`, with an array `w` of `n` elements, an array `u`, and a scalar `m`, which is an
/// extent of an array too.
struct Loop {
    b: Builder,
    u: ArrayId,
    w: ArrayId,
    m: ValueId,
    n: ValueId,
    i: ValueId,
}

impl Loop {
    fn new(first: i64, last: i64) -> Loop {
        let mut b = Builder::new("loop");
        let u = b.array("u", Type::F64, 1, Access::Read);
        let w = b.array("w", Type::F64, 1, Access::Write);
        let counts = b.array("counts", Type::F64, 1, Access::Read);
        let (m, n) = (b.dim(counts, 0), b.dim(w, 0));
        let [first, last] = [first, last].map(|k| b.literal(Literal::index(k)));
        let end = b.binary(Binary::Sub, n, last);
        let i = b.begin_par(&[("i", first, end)])[0];
        Loop { b, u, w, m, n, i }
    }

    fn plus(&mut self, v: ValueId, k: i64) -> ValueId {
        let k = self.b.literal(Literal::index(k));
        self.b.binary(Binary::Add, v, k)
    }

    /// `w[i] = u[at]`.
    fn copy(&mut self, at: ValueId) {
        let x = self.b.load(self.u, &[at]);
        self.b.store(self.w, &[self.i], x);
    }

    fn finish(mut self) -> Program {
        self.b.end_par();
        self.b.finish().unwrap()
    }
}

/// `u[i - 1] + u[i + 1]`, away from the ends.
fn stencil() -> Program {
    let mut l = Loop::new(1, 1);
    let (left, right) = (l.plus(l.i, -1), l.plus(l.i, 1));
    let [a, b] = [left, right].map(|at| l.b.load(l.u, &[at]));
    let sum = l.b.binary(Binary::Add, a, b);
    l.b.store(l.w, &[l.i], sum);
    l.finish()
}

/// `if i > 0 { u[i - 1] }`.
fn guarded() -> Program {
    let mut l = Loop::new(0, 0);
    let zero = l.b.literal(Literal::index(0));
    let inner = l.b.compare(Compare::Gt, l.i, zero);
    let left = l.plus(l.i, -1);
    l.b.begin_if(inner);
    l.copy(left);
    l.b.end_if();
    l.finish()
}

/// `u[(i + n - 1) % n]`.
fn periodic() -> Program {
    let mut l = Loop::new(0, 0);
    let far = l.b.binary(Binary::Add, l.i, l.n);
    let far = l.plus(far, -1);
    let left = l.b.binary(Binary::Rem, far, l.n);
    l.copy(left);
    l.finish()
}

/// `u[2 i + 1]`.
fn strided() -> Program {
    let mut l = Loop::new(0, 0);
    let two = l.b.literal(Literal::index(2));
    let even = l.b.binary(Binary::Mul, l.i, two);
    let odd = l.plus(even, 1);
    l.copy(odd);
    l.finish()
}

/// `for k in 0..m { u[i + k] }`.
fn nested() -> Program {
    let mut l = Loop::new(0, 0);
    let zero = l.b.literal(Literal::index(0));
    let k = l.b.begin_for("k", zero, l.m);
    let at = l.b.binary(Binary::Add, l.i, k);
    l.copy(at);
    l.b.end_loop(None);
    l.finish()
}

/// `for k in from..to { w[i] = 4 k }`.
fn multiples(from: i64, to: i64) -> Program {
    let mut l = Loop::new(0, 0);
    let [from, to, four] = [from, to, 4].map(|k| l.b.literal(Literal::index(k)));
    let k = l.b.begin_for("k", from, to);
    let product = l.b.binary(Binary::Mul, k, four);
    let product = l.b.cast(product, Type::F64);
    l.b.store(l.w, &[l.i], product);
    l.b.end_loop(None);
    l.finish()
}

/// `u[max(i - 1, 0)]`.
fn clamped() -> Program {
    let mut l = Loop::new(0, 0);
    let zero = l.b.literal(Literal::index(0));
    let left = l.plus(l.i, -1);
    let left = l.b.binary(Binary::Max, left, zero);
    l.copy(left);
    l.finish()
}

/// A program at some sizes.
struct Sized<'p> {
    program: &'p Program,
    /// By array.
    extents: [i64; 3],
}

impl Sized<'_> {
    fn par(&self) -> &Par {
        let found = self.program.body.iter().find_map(|stmt| match stmt {
            Stmt::Par(par) => Some(par),
            _ => None,
        });
        found.unwrap()
    }

    fn inside(&self) -> BTreeSet<ValueId> {
        let mut inside: BTreeSet<ValueId> = self.par().ranges.iter().map(|r| r.var).collect();
        walk(&self.par().body, &mut |stmt| match stmt {
            Stmt::Let(v) => drop(inside.insert(*v)),
            Stmt::Loop(l) => {
                if let LoopKind::For { var, .. } = l.kind {
                    inside.insert(var);
                }
            }
            _ => {}
        });
        inside
    }

    /// A value, where the variables of loops are these.
    fn value(&self, v: ValueId, variables: &BTreeMap<ValueId, i64>) -> i64 {
        match *self.program.op(v) {
            Op::LoopVar => variables[&v],
            Op::Dim(array, _) => self.extents[array.index()],
            _ => {
                let bits = |o: ValueId| self.value(o, variables) as u64;
                evaluate::evaluate(self.program, v, bits).unwrap().unwrap_or(0) as i64
            }
        }
    }

    /// First value and end of the parallel loop.
    fn range(&self) -> (i64, i64) {
        let [from, to] =
            [self.par().ranges[0].from, self.par().ranges[0].to].map(|v| self.value(v, &BTreeMap::new()));
        (from, to.max(from))
    }

    /// Calls `touch` with every access of an iteration: its array, its index as values, and in numbers.
    fn accesses(
        &self,
        block: &Block,
        variables: &mut BTreeMap<ValueId, i64>,
        touch: &mut dyn FnMut(ArrayId, &[ValueId], i64),
    ) {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    if let Op::Load(array, index) = self.program.op(*v) {
                        touch(*array, index.as_slice(), self.value(index.as_slice()[0], variables));
                    }
                }
                Stmt::Store(s) => {
                    touch(s.array, s.index.as_slice(), self.value(s.index.as_slice()[0], variables))
                }
                Stmt::If(branch) => {
                    let taken = if self.value(branch.condition, variables) != 0 {
                        &branch.then
                    } else {
                        &branch.otherwise
                    };
                    self.accesses(taken, variables, touch);
                }
                Stmt::Loop(l) => {
                    let LoopKind::For { var, from, to } = l.kind else { continue };
                    for k in self.value(from, variables)..self.value(to, variables) {
                        variables.insert(var, k);
                        self.accesses(&l.body, variables, touch);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_in_bounds(&self, array: ArrayId, index: i64) -> bool {
        (0..self.extents[array.index()]).contains(&index)
    }

    /// Does the proof hold? `None` where there is none.
    fn proof_holds(&self) -> Option<bool> {
        let inside = self.inside();
        let facts = verify(self.program).unwrap();
        let prover = Prover { program: self.program, facts: &facts, inside: &inside };
        let proof = prover.proof(self.par())?;
        let (value, extent) =
            (|v| self.value(v, &BTreeMap::new()), |a: ArrayId, _: usize| self.extents[a.index()]);
        let world = World { value: &value, extent: &extent, wrapped: &|_| 0, ranges: &[self.range()] };
        Some(proof.tests.iter().all(|test| match test {
            Test::NotNegative(e) => number(e, &world).is_some_and(|e| e >= 0),
            Test::AtMost(e, array, k) => number(e, &world).is_some_and(|e| e <= extent(*array, *k)),
            Test::Narrow(e) => number(e, &world).is_some_and(|e| e <= SMALL),
            Test::Tame(a, b) => [a, b].into_iter().all(|e| number(&e.clone().tamed(), &world).is_some()),
        }))
    }

    /// The interval that the interior has left; empty where something is wild.
    fn interval(&self, interval: &Interval) -> (i64, i64) {
        let (value, extent) =
            (|v| self.value(v, &BTreeMap::new()), |a: ArrayId, _: usize| self.extents[a.index()]);
        let row = self.range();
        let world = World { value: &value, extent: &extent, wrapped: &|_| 0, ranges: &[row] };
        let Some(wrapped) = remainders(interval, &world, row) else { return (0, 0) };
        narrowed(interval, &World { wrapped: &|v| wrapped[&v], ..world }, row).unwrap_or((0, 0))
    }
}

/// All programs at all small sizes.
fn everywhere(mut check: impl FnMut(&str, &Sized)) {
    let programs = [
        ("stencil", stencil()),
        ("guarded", guarded()),
        ("periodic", periodic()),
        ("strided", strided()),
        ("nested", nested()),
        ("clamped", clamped()),
    ];
    for (name, program) in &programs {
        for u in 0..9 {
            for w in 0..9 {
                (0..4).for_each(|m| check(name, &Sized { program, extents: [u, w, m] }));
            }
        }
    }
}

#[test]
fn what_a_proof_holds_for_is_in_bounds() {
    let mut proved: BTreeMap<String, usize> = BTreeMap::new();
    everywhere(|name, sized| {
        let holds = sized.proof_holds();
        *proved.entry(name.to_string()).or_default() += usize::from(holds == Some(true));
        if holds != Some(true) {
            return;
        }
        let (from, to) = sized.range();
        let variable = sized.par().ranges[0].var;
        for i in from..to {
            let mut variables = BTreeMap::from([(variable, i)]);
            sized.accesses(&sized.par().body, &mut variables, &mut |array, _, index| {
                assert!(sized.is_in_bounds(array, index), "{name} {:?}: {index} at {i}", sized.extents);
            });
        }
    });
    let counts: Vec<String> = proved.iter().map(|(name, n)| format!("{name} {n}")).collect();
    // What is no sum of ranges has no proof.
    expect_test::expect!["clamped 204, guarded 212, nested 162, periodic 144, stencil 140, strided 100"]
        .assert_eq(&counts.join(", "));
}

#[test]
fn the_interior_is_in_bounds_and_its_conditions_are_decided() {
    let mut iterations: BTreeMap<String, i64> = BTreeMap::new();
    everywhere(|name, sized| {
        let (inside, variable) = (sized.inside(), sized.par().ranges[0].var);
        let interior = interior(sized.program, sized.par(), &inside, Decide::Columns);
        let (lo, hi) = sized.interval(&interior.interval());
        *iterations.entry(name.to_string()).or_default() += hi - lo;
        for j in lo..hi {
            let mut variables = BTreeMap::from([(variable, j)]);
            for (condition, decided) in &interior.decided {
                assert_eq!(
                    sized.value(*condition, &variables) != 0,
                    *decided,
                    "{name} {:?} at {j}",
                    sized.extents
                );
            }
            sized.accesses(&sized.par().body, &mut variables, &mut |array, index, number| {
                if !interior.unproved.contains(index) {
                    assert!(sized.is_in_bounds(array, number), "{name} {:?}: {number} at {j}", sized.extents);
                }
            });
        }
    });
    let counts: Vec<String> = iterations.iter().map(|(name, n)| format!("{name} {n}")).collect();
    // A wider interior is faster; one that is empty would pass the test above.
    expect_test::expect!["clamped 672, guarded 672, nested 645, periodic 704, stencil 364, strided 456"]
        .assert_eq(&counts.join(", "));
}

/// Why a loop has no vector form, and why it has none of several vectors side by side.
fn refusals(name: &str, write: impl Fn(&mut Loop)) -> String {
    let mut l = Loop::new(0, 0);
    write(&mut l);
    let program = l.finish();
    let sized = Sized { program: &program, extents: [0; 3] };
    let interior = interior(&program, sized.par(), &sized.inside(), Decide::Columns);
    let facts = verify(&program).unwrap();
    let [one, several] = [Vectors::One, Vectors::Several].map(|vectors| {
        let by_lanes = in_lane_order((&program, &facts), sized.par(), &interior);
        let refused = refusal((&program, &facts), sized.par(), &interior, (Type::F64, vectors), &by_lanes);
        refused.map_or("vectors".to_string(), |why| why.to_string())
    });
    if one == several {
        format!("{name}: {one}\n")
    } else {
        format!("{name}: {one}; side by side: {several}\n")
    }
}

#[test]
fn a_loop_without_a_vector_form_says_why() {
    let positive = |l: &mut Loop| {
        let (x, zero) = (l.b.load(l.u, &[l.i]), l.b.literal(Literal::from(0.0)));
        let positive = l.b.compare(Compare::Gt, x, zero);
        l.b.begin_if(positive);
    };
    let lines = [
        refusals("pointwise", |l| l.copy(l.i)),
        refusals("from the other end", |l| {
            let left = l.b.binary(Binary::Sub, l.n, l.i);
            let left = l.plus(left, -1);
            l.copy(left);
        }),
        refusals("an index from data", |l| {
            let x = l.b.load(l.u, &[l.i]);
            let at = l.b.cast(x, Type::Index);
            l.copy(at);
        }),
        refusals("an integer power", |l| {
            let (x, three) = (l.b.load(l.u, &[l.i]), l.b.literal(Literal::from(3i32)));
            let cube = l.b.math(Function::Powi, &[x, three]);
            l.b.store(l.w, &[l.i], cube);
        }),
        refusals("a branch on data", |l| {
            positive(l);
            l.copy(l.i);
            l.b.end_if();
        }),
        refusals("a division under a branch on data", |l| {
            positive(l);
            let part = l.b.binary(Binary::Div, l.i, l.m);
            let part = l.b.cast(part, Type::F64);
            l.b.store(l.w, &[l.i], part);
            l.b.end_if();
        }),
        refusals("a loop in every iteration", |l| {
            let zero = l.b.literal(Literal::index(0));
            let k = l.b.begin_for("k", zero, l.m);
            let at = l.b.binary(Binary::Add, l.i, k);
            l.copy(at);
            l.b.end_loop(None);
        }),
    ];
    expect_test::expect![[r#"
        pointwise: vectors
        from the other end: vectors
        an index from data: an operation has no vector form
        an integer power: an operation has no vector form
        a branch on data: vectors; side by side: some lanes alone take a branch
        a division under a branch on data: lanes that take no part may divide by zero; side by side: some lanes alone take a branch
        a loop in every iteration: vectors
    "#]].assert_eq(&lines.concat());
}

#[test]
fn sums_are_asked_for_at_all_corners() {
    // The product fits at both ends of the inner loop, or at one alone.
    for (from, to, expected) in [(0, 9, (0, 5)), (-1 << 62, 9, (0, 0)), (0, 1 << 62, (0, 0))] {
        let program = multiples(from, to);
        let sized = Sized { program: &program, extents: [5, 5, 3] };
        let interior = interior(&program, sized.par(), &sized.inside(), Decide::Columns);
        assert_eq!(sized.interval(&interior.interval()), expected, "{from}..{to}");
    }
}

#[test]
fn corners_are_those_of_the_variables_of_a_sum_unless_there_are_too_many() {
    const DEPTH: usize = 40;
    // The corners of all loops around an element would be 2^40.
    for (used, proved) in [(0, true), (2, true), (DEPTH, false)] {
        let mut l = Loop::new(0, 0);
        let [zero, two] = [0, 2].map(|k| l.b.literal(Literal::index(k)));
        let variables: Vec<ValueId> = (0..DEPTH).map(|_| l.b.begin_for("k", zero, two)).collect();
        let at = variables[..used].iter().fold(l.i, |at, k| l.b.binary(Binary::Add, at, *k));
        l.copy(at);
        (0..DEPTH).for_each(|_| l.b.end_loop(None));
        let program = l.finish();
        let sized = Sized { program: &program, extents: [5, 5, 3] };
        let interior = interior(&program, sized.par(), &sized.inside(), Decide::Columns);
        assert_eq!(interior.unproved.is_empty(), proved, "{used}");
    }
}

#[test]
fn variables_that_go_against_each_other_are_asked_for_at_opposite_ends() {
    // `i + k - m` is least where `k` is first and `m` last, and greatest the other way round.
    for (signs, expected) in [([1, -1], (2, 3)), ([-1, 1], (2, 3)), ([1, 1], (0, 1)), ([-1, -1], (4, 5))] {
        let mut l = Loop::new(0, 0);
        let [zero, three] = [0, 3].map(|k| l.b.literal(Literal::index(k)));
        let variables = [(); 2].map(|()| l.b.begin_for("k", zero, three));
        let at = variables
            .iter()
            .zip(signs)
            .fold(l.i, |at, (k, sign)| l.b.binary(if sign > 0 { Binary::Add } else { Binary::Sub }, at, *k));
        l.copy(at);
        variables.iter().for_each(|_| l.b.end_loop(None));
        let program = l.finish();
        let sized = Sized { program: &program, extents: [5, 5, 3] };
        let interior = interior(&program, sized.par(), &sized.inside(), Decide::Columns);
        assert_eq!(sized.interval(&interior.interval()), expected, "{signs:?}");
    }
}
