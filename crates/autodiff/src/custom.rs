//! Programs and custom operations that bring their own derivatives.
//!
//! A call of such a program is made one operation before anything else happens, and put back in the end: between the
//! two nobody looks inside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ebbtide_ir::{
    Access, ArrayId, Block, Bound, Call, LibraryCall, LibraryOp, Op, Operation, OperationId, Param, Program,
    Role, Rule, Ruled, Rules, Stmt, ValueId, Work, walk,
};

use crate::activity::Activity;
use crate::adjoint::Maker;
use crate::error::Error;
use crate::par::Held;
use crate::writer::Writer;

/// The derivatives of the operations that a program uses, built.
pub(crate) type Derivatives = BTreeMap<OperationId, Arc<Program>>;

/// A call of a program that brings its own derivatives, as one operation.
pub(crate) fn closed(program: &mut Program, name: String, body: Block, ruled: Ruled) -> Stmt {
    let arrays = |wanted: Access| {
        let of = |bound: &Bound| match *bound {
            Bound::Array(array, access) => (access == wanted).then_some(array),
            Bound::Scalar(_) => None,
        };
        ruled.arguments.iter().filter_map(of).collect()
    };
    let (reads, writes) = (arrays(Access::Read), arrays(Access::Write));
    program.operations.push(Arc::new(Operation { name, work: Work::Inline(body), rules: ruled.rules }));
    let op = LibraryOp::Custom(OperationId::from_index(program.operations.len() - 1));
    Stmt::Library(LibraryCall { op, reads, writes, arguments: ruled.arguments, site: None })
}

/// Puts the bodies of called programs back in their places.
pub(crate) fn open(program: &mut Program) {
    let operations = std::mem::take(&mut program.operations);
    let mut body = std::mem::take(&mut program.body);
    open_block(&operations, &mut body);
    program.body = body;
    program.operations = operations;
}

/// The depth of recursion is the depth of nesting in the source.
fn open_block(operations: &[Arc<Operation>], block: &mut Block) {
    for stmt in block {
        stmt.blocks_mut().for_each(|inner| open_block(operations, inner));
        if let Stmt::Library(LibraryCall { op: LibraryOp::Custom(id), arguments, .. }) = stmt
            && let Some(Operation { name, work: Work::Inline(body), rules }) =
                operations.get(id.index()).map(|operation| &**operation)
        {
            let ruled = Ruled { arguments: std::mem::take(arguments), rules: *rules };
            *stmt = Stmt::Call(Call { name: name.clone(), body: body.clone(), ruled: Some(ruled) });
        }
    }
}

/// Nothing yields inside a called program that brings its own derivatives, in a differentiated run.
pub(crate) fn refuse_yields(source: &Program) -> Result<(), Error> {
    for operation in &source.operations {
        let Work::Inline(body) = &operation.work else { continue };
        let mut yields = false;
        walk(body, &mut |stmt| yields |= matches!(stmt, Stmt::Region(region) if region.flag.is_some()));
        if yields {
            return Err(Error::Unsupported {
                program: source.name.clone(),
                what: format!("`{}`, which brings its own derivative and can yield,", operation.name),
            });
        }
    }
    Ok(())
}

/// Which derivative of an operation is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Adjoint,
    Tangent,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Wanted::Adjoint => "adjoint",
            Wanted::Tangent => "tangent",
        }
    }

    fn rule(self, rules: &Rules) -> Option<Rule> {
        match self {
            Wanted::Adjoint => rules.adjoint,
            Wanted::Tangent => rules.tangent,
        }
    }
}

/// The derivatives of all operations through which something flows.
pub(crate) fn derivatives(
    source: &Program,
    activity: &Activity,
    wanted: Wanted,
) -> Result<Derivatives, Error> {
    let mut calls: Vec<&LibraryCall> = Vec::new();
    walk(&source.body, &mut |stmt| {
        if let Stmt::Library(call) = stmt
            && flows_through(call, activity)
        {
            calls.push(call);
        }
    });
    let mut all = Derivatives::new();
    for call in calls {
        let (LibraryOp::Custom(id), Some(operation)) = (call.op, source.operation(call)) else { continue };
        let Some(rule) = wanted.rule(&operation.rules) else {
            return Err(Error::NoRule { operation: operation.name.clone(), rule: wanted.name() });
        };
        for v in call.arguments.iter().filter_map(|bound| bound.scalar()) {
            if activity.values.contains(&v) {
                let name = source.value(v).name.clone();
                return Err(Error::ActiveScalar {
                    operation: operation.name.clone(),
                    scalar: name.unwrap_or_else(|| "an argument".to_string()),
                });
            }
        }
        let program = (rule.build)()?;
        check(source, call, &operation.name, rule, &program, wanted)?;
        all.insert(id, Arc::new(program));
    }
    Ok(all)
}

/// Does a derivative flow through a custom operation?
pub(crate) fn flows_through(call: &LibraryCall, activity: &Activity) -> bool {
    matches!(call.op, LibraryOp::Custom(_)) && call.writes.iter().any(|a| activity.arrays.contains(a))
}

/// The float arrays among the arguments through which derivatives flow, in order, and what is done with them.
fn flowing(source: &Program, call: &LibraryCall) -> Vec<(ArrayId, Access)> {
    let saved = source.operation(call).map(|operation| operation.rules.saved).unwrap_or_default();
    let array = |(at, bound): (usize, &Bound)| match *bound {
        Bound::Array(a, access) if source.array(a).ty.is_float() && !saved.contains(at) => Some((a, access)),
        _ => None,
    };
    call.arguments.iter().enumerate().filter_map(array).collect()
}

/// The float arrays among the arguments through which derivatives flow, in order.
pub(crate) fn float_arrays(source: &Program, call: &LibraryCall) -> Vec<ArrayId> {
    flowing(source, call).into_iter().map(|(array, _)| array).collect()
}

/// The arrays that an operation writes for its derivatives alone.
pub(crate) fn saved_arrays(source: &Program, call: &LibraryCall) -> BTreeSet<ArrayId> {
    let Some(operation) = source.operation(call) else { return BTreeSet::new() };
    let saved = call.arguments.iter().enumerate().filter(|(at, _)| operation.rules.saved.contains(*at));
    saved.filter_map(|(_, bound)| bound.array()).collect()
}

/// The arrays among the arguments whose contents the derivative reads.
pub(crate) fn read_by(rule: &Program, call: &LibraryCall) -> BTreeSet<ArrayId> {
    let mut read = BTreeSet::new();
    walk(&rule.body, &mut |stmt| match stmt {
        Stmt::Let(v) => {
            if let Op::Load(a, _) = rule.op(*v) {
                read.insert(*a);
            }
        }
        Stmt::Copy { from, .. } => drop(read.insert(*from)),
        Stmt::Library(call) => read.extend(call.arrays()),
        _ => {}
    });
    let pairs = rule.params.iter().zip(&call.arguments);
    pairs
        .filter_map(|(param, bound)| match (param, bound) {
            (Param::Array(a), Bound::Array(outer, _)) if read.contains(a) => Some(*outer),
            _ => None,
        })
        .collect()
}

/// Does the derivative take what it will be given?
fn check(
    source: &Program,
    call: &LibraryCall,
    operation: &str,
    rule: Rule,
    program: &Program,
    wanted: Wanted,
) -> Result<(), Error> {
    let array = |access: Access, a: ArrayId| {
        let decl = source.array(a);
        let borrow = if access == Access::Write { "&mut " } else { "&" };
        format!("{borrow}Array{}<{}>", decl.rank, decl.ty)
    };
    let mut expected: Vec<String> = Vec::new();
    for bound in &call.arguments {
        expected.push(match bound {
            Bound::Array(a, _) => array(Access::Read, *a),
            Bound::Scalar(v) => source.ty(*v).to_string(),
        });
    }
    for (a, access) in flowing(source, call) {
        let access = if wanted == Wanted::Adjoint { Access::Write } else { access };
        expected.push(array(access, a));
    }
    let found: Vec<String> = program
        .params
        .iter()
        .map(|param| match param {
            Param::Array(a) => {
                let decl = program.array(*a);
                let borrow = if decl.role == Role::Param(Access::Write) { "&mut " } else { "&" };
                format!("{borrow}Array{}<{}>", decl.rank, decl.ty)
            }
            Param::Scalar(s) => program.scalars[s.index()].ty.to_string(),
        })
        .collect();
    // What may be written need not be.
    let fits =
        |(expected, found): (&String, &String)| expected == found || expected.replace("&mut ", "&") == *found;
    if expected.len() == found.len() && expected.iter().zip(&found).all(fits) {
        return Ok(());
    }
    Err(Error::WrongRule {
        operation: operation.to_string(),
        rule: rule.name.to_string(),
        kind: wanted.name(),
        expected: expected.join(", ").into(),
        found: found.join(", ").into(),
    })
}

/// Calls the derivative of an operation: with its own arguments, then with one array for each of its float arrays.
pub(crate) fn call_rule(
    w: &mut Writer,
    source: &Program,
    call: &LibraryCall,
    (rule, wanted): (&Program, Wanted),
    known: impl Fn(ValueId) -> ValueId,
    beside: impl Fn(ArrayId) -> Option<ArrayId>,
) {
    let mut bound: Vec<Bound> = call
        .arguments
        .iter()
        .map(|argument| match *argument {
            Bound::Array(a, _) => Bound::Array(a, Access::Read),
            Bound::Scalar(v) => Bound::Scalar(known(v)),
        })
        .collect();
    for (a, access) in flowing(source, call) {
        if let Some(beside) = beside(a) {
            let access = if wanted == Wanted::Adjoint { Access::Write } else { access };
            bound.push(Bound::Array(beside, access));
        }
    }
    let Some(body) = w.program.instance(rule, &bound) else { return };
    let rules = source.operation(call).and_then(|operation| wanted.rule(&operation.rules));
    let rules = rules.map_or(Rules::none(), |rule| (rule.rules)());
    let ruled = rules.any().then_some(Ruled { arguments: bound, rules });
    w.push(Stmt::Call(Call { name: rule.name.clone(), body, ruled }));
}

/// An array of zeros beside one that carries no derivative, for rules that want one.
pub(crate) fn declare_scratch(
    w: &mut Writer,
    source: &Program,
    array: ArrayId,
    shape: Vec<ValueId>,
) -> ArrayId {
    let decl = source.array(array);
    let id = w.array(format!("no_d_{}", decl.name), decl.ty, decl.rank, Role::Temp(shape));
    w.push(Stmt::Temp(id));
    id
}

/// The float arrays of operations through which something flows that carry no derivative themselves.
pub(crate) fn without_derivative(source: &Program, activity: &Activity) -> BTreeSet<ArrayId> {
    let mut arrays = BTreeSet::new();
    walk(&source.body, &mut |stmt| {
        if let Stmt::Library(call) = stmt
            && flows_through(call, activity)
        {
            arrays.extend(float_arrays(source, call).iter().filter(|a| !activity.arrays.contains(a)));
        }
    });
    arrays
}

impl Maker<'_> {
    /// Lets what a custom operation left flow back through its own adjoint.
    pub(crate) fn reverse_custom(&mut self, w: &mut Writer, call: &LibraryCall) {
        let LibraryOp::Custom(id) = call.op else { return };
        let Some(rule) = self.derivatives.get(&id).cloned() else { return };
        // Nothing flows back from results that nobody used.
        if call.writes.iter().all(|a| self.held.get(a) != Some(&Held::Numbers)) {
            return;
        }
        for a in float_arrays(self.source, call) {
            match self.scratch.get(&a).copied() {
                Some(scratch) => {
                    let zero = w.real(self.source.array(a).ty, 0.0);
                    w.push(Stmt::Fill(scratch, zero));
                }
                None => {
                    self.make_real(w, a);
                    self.held.insert(a, Held::Numbers);
                }
            }
        }
        let beside = |a: ArrayId| self.shadows.arrays.get(&a).or_else(|| self.scratch.get(&a)).copied();
        call_rule(w, self.source, call, (&rule, Wanted::Adjoint), |v| self.known(v), beside);
        // What it saved overwrote what was there, and depends on nothing.
        for a in saved_arrays(self.source, call) {
            if self.shadows.arrays.contains_key(&a) {
                self.held.insert(a, Held::Nothing);
            }
        }
    }
}
