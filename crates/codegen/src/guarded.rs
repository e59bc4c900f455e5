//! Parallel loops whose every access can be proved to be in bounds before the loop starts, guards included.
//!
//! An index is a sum of variables with known ranges; an `if` around an access narrows them. The proof is a handful of
//! comparisons of extents and bounds, the same for all threads. Where it holds, the body needs no checks, and without
//! checks no branches: conditions become predicates, and all loads of an iteration can be on their way at once.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Binary, Block, Compare, Indices, Loop, LoopKind, Op, Par, Stmt, Store, Type, ValueId};

use crate::unit::Text;

/// What conditions say of a value: at least the first, below the second, as C expressions.
type Guards = BTreeMap<ValueId, (Option<String>, Option<String>)>;

/// A range as C expressions: its first value, and the one after its last.
type Range = (String, String);

impl Text<'_> {
    /// The tests that prove all accesses of a loop; `None` where some access is not a sum of ranges.
    pub fn proof(&self, par: &Par, reductions: &[&Store]) -> Option<BTreeSet<String>> {
        let mut guards: Guards = ranges(par).collect();
        let mut tests = BTreeSet::new();
        self.prove_block(&par.body, &mut guards, reductions, &mut tests)?;
        Some(tests)
    }

    /// The tests that prove all accesses of a loop's passes, where the ranges of its parallel loops are printed.
    pub fn proof_of_passes(&self, l: &Loop) -> Option<BTreeSet<String>> {
        let (mut guards, mut tests) = (Guards::new(), BTreeSet::new());
        self.prove_loop(l, &mut guards, &[], &mut tests)?;
        Some(tests)
    }

    /// The depth of recursion is that of nesting in the source.
    fn prove_block(
        &self,
        block: &Block,
        guards: &mut Guards,
        reductions: &[&Store],
        tests: &mut BTreeSet<String>,
    ) -> Option<()> {
        for stmt in block {
            match stmt {
                Stmt::Let(v) => match *self.program.op(*v) {
                    Op::Load(array, index) => self.prove_access(array.index(), index, guards, tests)?,
                    Op::Binary(Binary::Div | Binary::Rem | Binary::RemEuclid, _, b)
                        if !self.program.ty(*v).is_float() =>
                    {
                        // A divisor that may be zero needs a look.
                        self.program.literal(b).and_then(|l| l.to_i64()).filter(|l| *l != 0)?;
                    }
                    _ => {}
                },
                Stmt::Update(_, s) if reductions.iter().any(|r| std::ptr::eq(*r, s)) => {}
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    self.prove_access(s.array.index(), s.index, guards, tests)?;
                }
                Stmt::If(branch) => {
                    let mut then = guards.clone();
                    self.learn(branch.condition, true, &mut then);
                    self.prove_block(&branch.then, &mut then, reductions, tests)?;
                    let mut otherwise = guards.clone();
                    self.learn(branch.condition, false, &mut otherwise);
                    self.prove_block(&branch.otherwise, &mut otherwise, reductions, tests)?;
                }
                Stmt::Loop(l) => self.prove_loop(l, guards, reductions, tests)?,
                Stmt::Par(par) => {
                    guards.extend(ranges(par));
                    self.prove_block(&par.body, guards, reductions, tests)?;
                }
                Stmt::Call(call) => self.prove_block(&call.body, guards, reductions, tests)?,
                // Taking an element is a fault that must be met at once.
                Stmt::Claim(_) => return None,
                _ => {}
            }
        }
        Some(())
    }

    fn prove_loop(
        &self,
        l: &Loop,
        guards: &mut Guards,
        reductions: &[&Store],
        tests: &mut BTreeSet<String>,
    ) -> Option<()> {
        let LoopKind::For { var, from, to } = l.kind else { return None };
        let (from, to) = (self.range(from, guards)?.0, self.range(to, guards)?.1);
        // The last value of the upper bound is one below its range's end.
        let to = format!("eb_difference(&wild, {to}, 1)");
        guards.insert(var, (Some(from), Some(to)));
        self.prove_block(&l.body, guards, reductions, tests)
    }

    fn prove_access(
        &self,
        array: usize,
        index: Indices,
        guards: &Guards,
        tests: &mut BTreeSet<String>,
    ) -> Option<()> {
        for (k, v) in index.as_slice().iter().enumerate() {
            let (first, end) = self.range(*v, guards)?;
            tests.insert(format!("{first} >= 0"));
            tests.insert(format!("{end} <= d{array}_{k}"));
        }
        Some(())
    }

    /// What a condition says where it holds, or does not.
    fn learn(&self, condition: ValueId, holds: bool, guards: &mut Guards) {
        match *self.program.op(condition) {
            Op::Binary(Binary::And, a, b) if holds => {
                self.learn(a, holds, guards);
                self.learn(b, holds, guards);
            }
            Op::Binary(Binary::Or, a, b) if !holds => {
                self.learn(a, holds, guards);
                self.learn(b, holds, guards);
            }
            Op::Compare(op, a, b) if self.program.ty(a) == Type::Index => {
                let op = if holds { op } else { opposite(op) };
                if let Some(bound) = self.outside(b) {
                    narrow(guards.entry(a).or_default(), op, &bound);
                }
                if let Some(bound) = self.outside(a) {
                    narrow(guards.entry(b).or_default(), mirrored(op), &bound);
                }
            }
            _ => {}
        }
    }

    /// A value that is the same in all iterations.
    fn outside(&self, v: ValueId) -> Option<String> {
        (self.program.literal(v).is_some() || !self.inside.contains(&v)).then(|| self.value(v))
    }

    /// The range of an index. The depth of recursion is that of the expression in the source.
    fn range(&self, v: ValueId, guards: &Guards) -> Option<Range> {
        if let Some(value) = self.outside(v) {
            let end = format!("eb_sum(&wild, {value}, 1)");
            return Some((value, end));
        }
        let known = guards.get(&v);
        if let Some((Some(first), Some(end))) = known {
            return Some((first.clone(), end.clone()));
        }
        let (first, end) = match *self.program.op(v) {
            Op::Binary(Binary::Add, a, b) => {
                let (a, b) = (self.range(a, guards)?, self.range(b, guards)?);
                let end = format!("eb_difference(&wild, eb_sum(&wild, {}, {}), 1)", a.1, b.1);
                (format!("eb_sum(&wild, {}, {})", a.0, b.0), end)
            }
            Op::Binary(Binary::Sub, a, b) => {
                let (a, b) = (self.range(a, guards)?, self.range(b, guards)?);
                let first = format!("eb_sum(&wild, eb_difference(&wild, {}, {}), 1)", a.0, b.1);
                (first, format!("eb_difference(&wild, {}, {})", a.1, b.0))
            }
            Op::Binary(Binary::Mul, a, b) => {
                let constant = |v| self.program.literal(v).and_then(|l| l.to_i64()).filter(|c| *c >= 0);
                let (factor, other) = match (constant(a), constant(b)) {
                    (Some(c), _) => (c, b),
                    (_, Some(c)) => (c, a),
                    _ => return None,
                };
                let (first, end) = self.range(other, guards)?;
                let end = format!("eb_product(&wild, eb_difference(&wild, {end}, 1), {factor}ll)");
                (format!("eb_product(&wild, {first}, {factor}ll)"), format!("eb_sum(&wild, {end}, 1)"))
            }
            _ => return None,
        };
        // One side may be known better.
        Some(match known {
            Some((lower, upper)) => (lower.clone().unwrap_or(first), upper.clone().unwrap_or(end)),
            None => (first, end),
        })
    }
}

/// What is known of the variables of a parallel loop.
fn ranges(par: &Par) -> impl Iterator<Item = (ValueId, (Option<String>, Option<String>))> + '_ {
    par.ranges.iter().enumerate().map(|(d, range)| {
        let (first, end) = (format!("f{d}"), format!("f{d} + e{d}"));
        (range.var, (Some(first), Some(end)))
    })
}

/// What `value op bound` says of the value.
fn narrow(known: &mut (Option<String>, Option<String>), op: Compare, bound: &str) {
    let after = format!("eb_sum(&wild, {bound}, 1)");
    match op {
        Compare::Ge => known.0 = Some(bound.to_string()),
        Compare::Gt => known.0 = Some(after),
        Compare::Lt => known.1 = Some(bound.to_string()),
        Compare::Le => known.1 = Some(after),
        Compare::Eq => *known = (Some(bound.to_string()), Some(after)),
        Compare::Ne => {}
    }
}

fn opposite(op: Compare) -> Compare {
    match op {
        Compare::Eq => Compare::Ne,
        Compare::Ne => Compare::Eq,
        Compare::Lt => Compare::Ge,
        Compare::Ge => Compare::Lt,
        Compare::Gt => Compare::Le,
        Compare::Le => Compare::Gt,
    }
}

/// The comparison with its sides exchanged.
fn mirrored(op: Compare) -> Compare {
    match op {
        Compare::Lt => Compare::Gt,
        Compare::Gt => Compare::Lt,
        Compare::Le => Compare::Ge,
        Compare::Ge => Compare::Le,
        same => same,
    }
}
