//! The derivatives that custom operations bring, built and checked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ebbtide_ir::{
    Access, ArrayId, Bound, LibraryCall, LibraryOp, Op, OperationId, Param, Program, Role, Rule, Rules, Stmt,
    walk,
};

use crate::analysis::activity::Activity;
use crate::analysis::operation_arguments::{float_arrays, flowing};
use crate::error::Error;

/// The derivatives of the operations that a program uses, built.
pub(crate) type Derivatives = BTreeMap<OperationId, Arc<Program>>;

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

    pub fn rule(self, rules: &Rules) -> Option<Rule> {
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
