//! A loop inside its parallel loops. Input: a loop and how `analysis::interchange` says that it can run there; output: the tree.
//!
//! Legal where that analysis has no reason against it, and the guards of the tree hold.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    After, ArrayId, Block, Facts, Literal, Loop, LoopKind, Op, Par, Program, Stmt as Source, ValueId,
};

use crate::analysis::bounds_proof::{Proof, Prover};
use crate::analysis::exact::may_overflow;
use crate::analysis::interchange::Interchange;
use crate::kernel::expr::Expr;
use crate::kernel::interchange::{Guard, Interchanged};
use crate::kernel::name::{Name, Ty, Variable};
use crate::kernel::stmt::{Body, Check, Stmt};
use crate::transform::forms::{Forms, Iterations};
use crate::transform::lower::{Shared, Team, element, operand, operation};

/// A loop that is to run inside the parallel loops of its iterations.
pub(crate) struct TimeLoop<'a, 'l> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    pub source: &'l Loop,
    pub plan: Interchange<'l>,
}

/// What an iteration is made with.
struct Making<'a> {
    program: &'a Program,
    held: BTreeSet<ArrayId>,
    /// The index values that are numbers, where no index needs a check.
    proved: Option<Proof>,
    /// By tape: how many of its places the iteration has used so far, and how many it uses.
    places: BTreeMap<ArrayId, (u32, u32)>,
    out: Body,
}

impl<'l> TimeLoop<'_, 'l> {
    /// The tree; `None` where there is no parallel loop, or iterations are not counted.
    pub fn tree(self, forms: &mut Forms) -> Option<Interchanged<'l>> {
        let TimeLoop { program, facts, source, plan } = self;
        let LoopKind::For { from, to, .. } = source.kind else { return None };
        let domain = *plan.pars.first()?;
        let proof = Prover { program, facts, inside: &plan.inside }.proof_of_iterations(source);
        let mut guards: BTreeSet<Guard> =
            proof.iter().flat_map(|proof| proof.tests.iter().cloned()).map(Guard::Proof).collect();
        // A bound that is no number is a fault of the other form.
        let bounds = [from, to].into_iter().chain(domain.ranges.iter().flat_map(|r| [r.from, r.to]));
        let unsure = bounds.filter(|v| may_overflow(program, &BTreeSet::new(), *v));
        guards.extend(unsure.map(Guard::Number));
        for (array, held) in &plan.held {
            let guard = if held.whole { Guard::Whole } else { Guard::Within };
            guards.extend((0..program.array(*array).rank).map(|k| guard(*array, k)));
        }
        guards.extend(plan.tapes.iter().map(|(array, tape)| Guard::Places(*array, *tape)));
        let others = plan.pars[1..].iter().flat_map(|par| par.ranges.iter().zip(&domain.ranges));
        let same = others.map(|(range, is)| (range.var, is.var)).collect();
        let mut making = Making {
            program,
            held: plan.held.keys().copied().collect(),
            proved: proof,
            places: plan.tapes.iter().map(|(array, tape)| (*array, (0, tape.places()))).collect(),
            out: Body::new(),
        };
        making.block(&source.body, forms);
        let tree = Interchanged {
            source,
            domain,
            same,
            guards,
            together: plan.iterations_as_one(source),
            early: plan.early,
            arrays: plan.arrays,
            held: plan.held,
            tapes: plan.tapes,
            body: making.out,
        };
        forms.made_interchanged(&tree);
        Some(tree)
    }
}

impl Making<'_> {
    fn held(&self, array: ArrayId) -> (Name, Ty) {
        (Variable::Held(array).into(), Ty::One(self.program.array(array).ty))
    }

    fn assign(&mut self, array: ArrayId, value: Expr) {
        let (name, ty) = self.held(array);
        self.out.push(Stmt::Assign { name, ty, value });
    }

    fn element_of(&self, array: ArrayId) -> Expr {
        Expr::Variable(self.held(array).0)
    }

    /// Which of its places of a tape the iteration uses next, and how many it uses.
    fn next_place(&mut self, array: ArrayId) -> (u32, u32) {
        let (used, all) = self.places.entry(array).or_insert((0, 1));
        *used += 1;
        (*used - 1, *all)
    }

    /// The statements of a block, for one iteration of the parallel loops. The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, forms: &mut Forms) {
        for stmt in block {
            self.statement(stmt, forms);
        }
    }

    fn statement(&mut self, stmt: &Source, forms: &mut Forms) {
        let program = self.program;
        match stmt {
            Source::Let(v) => self.value(*v),
            Source::Declare(local, v) | Source::Set(local, v) => {
                let (name, value) = (Name::local(*local), operand(program, *v));
                let ty = Ty::One(program.locals[local.index()].ty);
                self.out.push(match stmt {
                    Source::Declare(..) => Stmt::Declare { name, ty, value },
                    _ => Stmt::Assign { name, ty, value },
                });
            }
            Source::If(branch) => {
                let condition = operand(program, branch.condition);
                let [then, otherwise] = [&branch.then, &branch.otherwise].map(|arm| {
                    let before = std::mem::take(&mut self.out);
                    self.block(arm, forms);
                    std::mem::replace(&mut self.out, before)
                });
                self.out.push(Stmt::If { condition, then, otherwise });
            }
            Source::Call(call) => self.block(&call.body, forms),
            Source::Par(par) => self.iteration(par, forms),
            Source::Swap(a, b) => {
                let (name, ty) = (Variable::Old(forms.fresh.next()).into(), self.held(*a).1);
                self.out.push(Stmt::Let { name, ty, value: self.element_of(*a) });
                self.assign(*a, self.element_of(*b));
                self.assign(*b, Expr::Variable(name));
            }
            Source::Fill(a, v, _) => self.assign(*a, operand(program, *v)),
            Source::Copy { from, to, .. } => self.assign(*to, self.element_of(*from)),
            Source::Temp(a) => {
                let zero = Literal::from_bits(program.array(*a).ty, 0);
                self.assign(*a, Expr::Literal(zero));
            }
            Source::Push(push) => {
                let (place, of) = self.next_place(push.array);
                let value = self.element_of(push.array);
                self.out.push(Stmt::Push { array: push.array, place, of, value });
                if let After::Anything(old) = push.after {
                    self.assign(old, self.element_of(push.array));
                }
            }
            Source::Pop(array) => {
                let (place, of) = self.next_place(*array);
                let (name, ty) = self.held(*array);
                self.out.push(Stmt::Pop { array: *array, place, of, name, ty });
            }
            // The analysis has refused all others.
            _ => {}
        }
    }

    /// The iteration of a parallel loop, with what it holds in variables.
    fn iteration(&mut self, par: &Par, forms: &mut Forms) {
        let it = Iterations { par, shared: &Shared::default(), team: Team::Alone };
        self.out.extend(forms.holding(&it, &self.held, self.proved.as_ref()));
    }

    /// A value of program level, as each thread computes it for itself.
    fn value(&mut self, v: ValueId) {
        let (name, ty) = (Name::value(v), Ty::One(self.program.ty(v)));
        match *self.program.op(v) {
            Op::Literal(_) => {}
            Op::Load(array, index) => {
                let mut element = element(self.program, array, index, &self.program.value(v).site);
                if self.proved.is_some() {
                    element.check = Check::Proved;
                }
                self.out.push(Stmt::Load { name, ty, element, when: None });
            }
            _ => {
                let none = BTreeSet::new();
                let value =
                    operation(self.program, self.proved.as_ref().map_or(&none, |proof| &proof.exact), v);
                self.out.push(Stmt::Let { name, ty, value });
            }
        }
    }
}
