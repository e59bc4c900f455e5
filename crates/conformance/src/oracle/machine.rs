//! Statements over taped values. The depth of recursion is the depth of nesting in the source.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::evaluate::{Bits, evaluate};
use ebbtide_ir::{
    ArrayId, Binary, Block, Claim, Compare, Entry, Facts, Function, Indices, Literal, Loop, LoopKind, Op,
    Program, Region, Role, Stmt, Type, Unary, Undone, ValueId, WriteId,
};

use super::Stop;
use super::dual::Dual;
use super::host::{Host, Yield};
use super::par::{Reduction, Run, Ties};
use super::table;
use super::tape::{Node, Tape};

/// A value of the program, and the node of what it depends on.
#[derive(Clone, Copy, Debug)]
pub struct Taped {
    pub bits: Bits,
    pub node: Node,
}

impl Taped {
    pub fn constant(bits: Bits) -> Taped {
        Taped { bits, node: Node::CONSTANT }
    }
}

/// An array of taped elements.
#[derive(Clone, Debug, Default)]
pub struct TapedArray {
    pub shape: Vec<i64>,
    pub elements: Vec<Taped>,
}

/// A host that was asked this often at one place will not let the program continue.
pub const PATIENCE: u32 = 1000;

pub struct Machine<'p> {
    pub program: &'p Program,
    pub facts: &'p Facts,
    pub tape: Tape,
    pub scalars: Vec<Taped>,
    pub arrays: Vec<TapedArray>,
    pub values: Vec<Taped>,
    pub locals: Vec<Taped>,
    pub reductions: BTreeMap<WriteId, Reduction>,
    /// The lane of the iteration that runs now.
    pub lane: usize,
    /// Elements that the parallel loop that runs now takes minima or maxima of.
    pub ties: BTreeMap<(ArrayId, usize), Ties>,
    /// Arrays whose minima and maxima are operations on two numbers in the parallel loop that runs now.
    pub paired: BTreeSet<ArrayId>,
    /// The updates of the parallel loop that runs now whose terms are counted, and the elements that they added to.
    pub counted: BTreeSet<WriteId>,
    pub runs: BTreeMap<(ArrayId, usize), Run>,
    pub in_parallel: bool,
    pub host: Option<&'p Host<'p>>,
    pub yields: usize,
    /// The least distance from a kink of anything that moves, relative to its size.
    pub nearest_kink: f64,
    statements: u64,
    /// A run gives up after this many statements.
    pub most_statements: u64,
}

impl<'p> Machine<'p> {
    pub fn new(program: &'p Program, facts: &'p Facts) -> Machine<'p> {
        let nothing = Taped::constant(0);
        Machine {
            program,
            facts,
            tape: Tape::default(),
            scalars: vec![nothing; program.scalars.len()],
            arrays: vec![TapedArray::default(); program.arrays.len()],
            values: vec![nothing; program.values.len()],
            locals: vec![nothing; program.locals.len()],
            reductions: BTreeMap::new(),
            lane: 0,
            ties: BTreeMap::new(),
            paired: BTreeSet::new(),
            counted: BTreeSet::new(),
            runs: BTreeMap::new(),
            in_parallel: false,
            host: None,
            yields: 0,
            nearest_kink: f64::INFINITY,
            statements: 0,
            most_statements: u64::MAX,
        }
    }

    pub fn block(&mut self, block: &'p Block) -> Result<(), Stop> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'p Stmt) -> Result<(), Stop> {
        self.statements += 1;
        if self.statements > self.most_statements {
            return Err(Stop::Unsupported(format!("a run of more than {} statements", self.most_statements)));
        }
        match stmt {
            Stmt::Let(v) => self.values[v.index()] = self.compute(*v)?,
            Stmt::Declare(local, v) | Stmt::Set(local, v) => {
                self.locals[local.index()] = self.values[v.index()]
            }
            Stmt::Store(s) => {
                let at = self.element(s.array, s.index)?;
                self.arrays[s.array.index()].elements[at] = self.values[s.value.index()];
                self.ties.remove(&(s.array, at));
            }
            Stmt::Update(how, s) => self.update(*how, s)?,
            Stmt::Claim(claim) => self.claim(claim)?,
            Stmt::If(branch) if self.bits(branch.condition) != 0 => self.block(&branch.then)?,
            Stmt::If(branch) => self.block(&branch.otherwise)?,
            Stmt::Loop(l) => self.sequential(l)?,
            Stmt::Par(par) => self.par(par)?,
            Stmt::Region(region) => self.region(region)?,
            Stmt::Call(call) if call.ruled.as_ref().is_some_and(|ruled| ruled.rules.any()) => {
                return Err(Stop::Unsupported(format!("`{}` brings its own derivatives", call.name)));
            }
            Stmt::Call(call) => self.block(&call.body)?,
            Stmt::Swap(a, b) => {
                self.equal_shapes(*a, *b)?;
                self.arrays.swap(a.index(), b.index());
            }
            Stmt::Fill(a, v, _) => {
                let value = self.values[v.index()];
                self.arrays[a.index()].elements.fill(value);
            }
            Stmt::Copy { from, to, .. } => {
                self.equal_shapes(*from, *to)?;
                self.arrays[to.index()] = self.arrays[from.index()].clone();
            }
            Stmt::Library(call) => self.library(call)?,
            Stmt::Temp(a) => self.temp(*a),
            Stmt::Push(_) | Stmt::Pop(_) | Stmt::Forward(_) | Stmt::Backward(_) | Stmt::Host(..) => {
                return Err(Stop::Unsupported("statements of gradient programs".to_string()));
            }
        }
        Ok(())
    }

    pub fn bits(&self, v: ValueId) -> Bits {
        self.values[v.index()].bits
    }

    pub fn index(&self, v: ValueId) -> i64 {
        self.bits(v) as i64
    }

    /// The place of an element in its array.
    pub fn element(&self, array: ArrayId, index: Indices) -> Result<usize, Stop> {
        let mut at = 0;
        for (v, extent) in index.as_slice().iter().zip(&self.arrays[array.index()].shape) {
            let index = self.index(*v);
            if index < 0 || index >= *extent {
                let name = &self.program.array(array).name;
                return Err(Stop::Fault(format!("index {index} of `{name}` is outside extent {extent}")));
            }
            at = at * *extent as usize + index as usize;
        }
        Ok(at)
    }

    fn compute(&mut self, v: ValueId) -> Result<Taped, Stop> {
        Ok(match *self.program.op(v) {
            Op::Scalar(s) => self.scalars[s.index()],
            Op::Dim(array, k) => Taped::constant(self.arrays[array.index()].shape[k as usize] as Bits),
            Op::LoopVar => self.values[v.index()],
            Op::Get(local) => self.locals[local.index()],
            Op::Load(array, index) => {
                let at = self.element(array, index)?;
                self.arrays[array.index()].elements[at]
            }
            op => {
                let bits = evaluate(self.program, v, |operand| self.bits(operand))
                    .ok_or_else(|| Stop::Unsupported(format!("{op:?}")))?
                    .map_err(|_| Stop::Fault("an integer is divided by zero".to_string()))?;
                Taped { bits, node: self.node(v, op, bits) }
            }
        })
    }

    /// What a value is in `f64`, and how it moves.
    pub fn dual(&self, v: ValueId) -> Dual {
        self.taped_dual(self.program.ty(v), self.values[v.index()])
    }

    pub fn taped_dual(&self, ty: Type, taped: Taped) -> Dual {
        let value = Literal::from_bits(ty, taped.bits).to_f64();
        let tangent = self.tape.tangent(taped.node);
        Dual { value, value_size: value.abs(), tangent: tangent.value, tangent_size: tangent.size }
    }

    /// The node of a computed value.
    fn node(&mut self, v: ValueId, op: Op, bits: Bits) -> Node {
        if op.operands().all(|operand| self.values[operand.index()].node.is_constant()) {
            return Node::CONSTANT;
        }
        self.note_kinks(op);
        let node_of = |v: ValueId| self.values[v.index()].node;
        if !self.program.ty(v).is_float() {
            return Node::CONSTANT;
        }
        let result = Literal::from_bits(self.program.ty(v), bits).to_f64();
        match op {
            Op::Unary(op, a) => {
                let slope = table::unary(op, self.dual(a));
                match op {
                    Unary::Neg | Unary::Abs | Unary::Sqrt | Unary::Norm => {
                        self.tape.push(&[(node_of(a), slope)])
                    }
                    Unary::Not | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => Node::CONSTANT,
                }
            }
            Op::Binary(op @ (Binary::Min | Binary::Max), a, b) => {
                let (x, y) = (self.dual(a).value, self.dual(b).value);
                let second = if op == Binary::Min { y < x } else { y > x };
                if x.is_nan() || second { node_of(b) } else { node_of(a) }
            }
            Op::Binary(op, a, b) => {
                let [by_a, by_b] = table::binary(op, self.dual(a), self.dual(b), result);
                self.tape.push(&[(node_of(a), by_a), (node_of(b), by_b)])
            }
            Op::Select(c, a, b) => node_of(if self.bits(c) != 0 { a } else { b }),
            Op::Fma(a, b, c) => {
                let [by_a, by_b, by_c] = table::fma(self.dual(a), self.dual(b));
                self.tape.push(&[(node_of(a), by_a), (node_of(b), by_b), (node_of(c), by_c)])
            }
            // Between floats a cast is the identity; integers carry no derivative.
            Op::Cast(a) => node_of(a),
            Op::Math(f, a, b) => {
                let [by_a, by_b] = table::function(f, self.dual(a), self.dual(b));
                match f.arity() {
                    2 if f != Function::Powi => self.tape.push(&[(node_of(a), by_a), (node_of(b), by_b)]),
                    _ => self.tape.push(&[(node_of(a), by_a)]),
                }
            }
            _ => Node::CONSTANT,
        }
    }

    /// Notes how far what moves is from a place where the derivative jumps.
    fn note_kinks(&mut self, op: Op) {
        let value = |v: ValueId| self.dual(v).value;
        let whole = |x: f64| (x - x.round()).abs();
        let distance = match op {
            Op::Compare(
                Compare::Eq | Compare::Ne | Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge,
                a,
                b,
            )
            | Op::Binary(Binary::Min | Binary::Max, a, b)
                if self.program.ty(a).is_float() =>
            {
                (value(a) - value(b)).abs() / value(a).abs().max(value(b).abs()).max(1e-3)
            }
            Op::Binary(Binary::Rem, a, b) if self.program.ty(a).is_float() => whole(value(a) / value(b)),
            Op::Unary(Unary::Abs | Unary::Sqrt | Unary::Norm, a) => value(a).abs(),
            Op::Unary(Unary::Floor | Unary::Ceil | Unary::Trunc, a) => whole(value(a)),
            Op::Unary(Unary::Round, a) => whole(value(a) + 0.5),
            _ => return,
        };
        self.nearest_kink = self.nearest_kink.min(distance);
    }

    fn sequential(&mut self, l: &'p Loop) -> Result<(), Stop> {
        let bounds = match l.kind {
            LoopKind::For { from, to, .. } => [self.index(from), self.index(to)],
            _ => [0, i64::MAX],
        };
        if let LoopKind::For { var, .. } = l.kind
            && !l.sums.is_empty()
        {
            return self.summed(l, var, bounds);
        }
        for pass in bounds[0]..bounds[1] {
            match &l.kind {
                LoopKind::For { var, .. } => self.values[var.index()] = Taped::constant(pass as Bits),
                LoopKind::While { head, condition } => {
                    self.block(head)?;
                    if self.bits(*condition) == 0 {
                        break;
                    }
                }
                LoopKind::Forever => {}
            }
            self.block(&l.body)?;
            if l.until.is_some_and(|until| self.bits(until) != 0) {
                break;
            }
        }
        Ok(())
    }

    /// Law 9. A resumed run begins with the region, in the same iterations, with what was left: the region runs again.
    fn region(&mut self, region: &'p Region) -> Result<(), Stop> {
        let undone = Undone::by(region);
        for _ in 0..PATIENCE {
            let arrays: Vec<TapedArray> =
                undone.arrays.iter().map(|a| self.arrays[a.index()].clone()).collect();
            let locals: Vec<Taped> = undone.locals.iter().map(|l| self.locals[l.index()]).collect();
            self.block(&region.body)?;
            let Some(flag) = region.flag else { return Ok(()) };
            let reason = self.arrays[flag.index()].elements.first().map_or(0, |e| e.bits);
            let reason = Literal::from_bits(self.program.array(flag).ty, reason).to_i64().unwrap_or(0);
            if reason == 0 {
                return Ok(());
            }
            for (array, old) in undone.arrays.iter().zip(arrays) {
                self.arrays[array.index()] = old;
            }
            for (local, old) in undone.locals.iter().zip(locals) {
                self.locals[local.index()] = old;
            }
            let label = self.program.labels[region.label.index()].clone();
            let Some(host) = self.host else {
                return Err(Stop::Unsupported(format!("a yield at `{label}`, and no host")));
            };
            self.yields += 1;
            if self.ask(host, &Yield { label, reason })? {
                // A resumed run computes anew what it had computed from shapes.
                for v in Entry::of(self.program, region.id).into_iter().flat_map(|entry| entry.computed) {
                    self.values[v.index()] = self.compute(v)?;
                }
            }
        }
        Err(Stop::Fault(format!("the host was asked {PATIENCE} times and did not clear the flag")))
    }

    fn claim(&mut self, claim: &Claim) -> Result<(), Stop> {
        let at = self.element(claim.array, claim.index)?;
        let taken = &mut self.arrays[claim.taken.index()].elements[at];
        if taken.bits != 0 {
            let name = &self.program.array(claim.array).name;
            return Err(Stop::Fault(format!("an element of `{name}` is written twice")));
        }
        *taken = Taped::constant(1);
        Ok(())
    }

    fn temp(&mut self, array: ArrayId) {
        if let Role::Temp(shape) = &self.program.array(array).role {
            let shape: Vec<i64> = shape.iter().map(|v| self.index(*v).max(0)).collect();
            let elements = vec![Taped::constant(0); shape.iter().product::<i64>() as usize];
            self.arrays[array.index()] = TapedArray { shape, elements };
        }
    }

    fn equal_shapes(&self, a: ArrayId, b: ArrayId) -> Result<(), Stop> {
        if self.arrays[a.index()].shape == self.arrays[b.index()].shape {
            return Ok(());
        }
        let (a, b) = (&self.program.array(a).name, &self.program.array(b).name);
        Err(Stop::Fault(format!("`{a}` and `{b}` have different shapes")))
    }
}
