//! Activity: which arrays and values depend on the inputs and matter for the output.
//!
//! The analysis does not follow the order of statements: an array that is active somewhere is active everywhere, since it has one
//! shadow for the whole program. So it is no dataflow problem, whose facts belong to places of the program, but a question of what can
//! be reached in a graph.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{ArrayId, Block, Indices, LocalId, Op, Program, ScalarId, Stmt, ValueId, walk};

use crate::analysis::operation_arguments::saved_arrays;

/// Something that carries numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Array(ArrayId),
    Value(ValueId),
    Local(LocalId),
}

/// What is active.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub arrays: BTreeSet<ArrayId>,
    pub values: BTreeSet<ValueId>,
    pub locals: BTreeSet<LocalId>,
}

impl Activity {
    /// What depends on `wrt` (or on one of the scalar parameters) and matters for `of`.
    pub fn of(program: &Program, wrt: &[ArrayId], scalars: &[ScalarId], of: &[ArrayId]) -> Activity {
        let edges = edges(program);
        let mut sources: Vec<Node> = wrt.iter().map(|a| Node::Array(*a)).collect();
        for (i, value) in program.values.iter().enumerate() {
            if let Op::Scalar(s) = value.op
                && scalars.contains(&s)
            {
                sources.push(Node::Value(ValueId::from_index(i)));
            }
        }
        let varied = reach(&edges, sources, |e| (e.0, e.1));
        let useful = reach(&edges, of.iter().map(|a| Node::Array(*a)).collect(), |e| (e.1, e.0));
        let mut activity = Activity::default();
        for node in varied.intersection(&useful) {
            match *node {
                Node::Array(a) => drop(activity.arrays.insert(a)),
                Node::Value(v) => drop(activity.values.insert(v)),
                Node::Local(l) => drop(activity.locals.insert(l)),
            }
        }
        activity
    }
}

/// The loads of active arrays in a body, in source order.
pub(crate) fn active_loads(
    source: &Program,
    activity: &Activity,
    body: &Block,
) -> Vec<(ValueId, ArrayId, Indices)> {
    let mut loads = Vec::new();
    walk(body, &mut |stmt| {
        if let Stmt::Let(v) = stmt
            && let Op::Load(array, index) = *source.op(*v)
            && activity.values.contains(v)
        {
            loads.push((*v, array, index));
        }
    });
    loads
}

/// Pairs (from, to) along which floats flow.
fn edges(program: &Program) -> Vec<(Node, Node)> {
    let mut edges = Vec::new();
    let float = |v: &ValueId| program.ty(*v).is_float();
    walk(&program.body, &mut |stmt| match stmt {
        Stmt::Let(v) if float(v) => match program.op(*v) {
            Op::Load(a, _) => edges.push((Node::Array(*a), Node::Value(*v))),
            Op::Get(l) => edges.push((Node::Local(*l), Node::Value(*v))),
            op => edges.extend(op.operands().filter(float).map(|o| (Node::Value(o), Node::Value(*v)))),
        },
        Stmt::Declare(l, v) | Stmt::Set(l, v) if float(v) => edges.push((Node::Value(*v), Node::Local(*l))),
        Stmt::Store(s) | Stmt::Update(_, s) if float(&s.value) => {
            edges.push((Node::Value(s.value), Node::Array(s.array)));
        }
        Stmt::Swap(a, b) if program.array(*a).ty.is_float() => {
            edges.extend([(Node::Array(*a), Node::Array(*b)), (Node::Array(*b), Node::Array(*a))]);
        }
        Stmt::Fill(a, v, _) if float(v) => edges.push((Node::Value(*v), Node::Array(*a))),
        Stmt::Copy { from, to, .. } if program.array(*from).ty.is_float() => {
            edges.push((Node::Array(*from), Node::Array(*to)));
        }
        Stmt::Library(call) => {
            // Nothing flows through what is saved.
            let saved = saved_arrays(program, call);
            let float = |a: &&ArrayId| program.array(**a).ty.is_float() && !saved.contains(a);
            // Rules know arrays alone: a scalar that matters is found here, and refused.
            for v in stmt.uses().iter().filter(|v| program.ty(**v).is_float()) {
                let writes = call.writes.iter().filter(float);
                edges.extend(writes.map(|to| (Node::Value(*v), Node::Array(*to))));
            }
            // What a custom operation writes it may read, too.
            let found = if call.op.replaces_all() { &[][..] } else { &call.writes[..] };
            for from in call.reads.iter().chain(found).filter(float) {
                edges.extend(
                    call.writes.iter().filter(float).map(|to| (Node::Array(*from), Node::Array(*to))),
                );
            }
        }
        _ => {}
    });
    edges
}

/// Everything that can be reached from `start`, along edges or against them.
fn reach(
    edges: &[(Node, Node)],
    start: Vec<Node>,
    way: impl Fn(&(Node, Node)) -> (Node, Node),
) -> BTreeSet<Node> {
    let mut next: BTreeMap<Node, Vec<Node>> = BTreeMap::new();
    for edge in edges {
        let (from, to) = way(edge);
        next.entry(from).or_default().push(to);
    }
    let mut seen: BTreeSet<Node> = start.iter().copied().collect();
    let mut work = start;
    while let Some(node) = work.pop() {
        for to in next.get(&node).into_iter().flatten() {
            if seen.insert(*to) {
                work.push(*to);
            }
        }
    }
    seen
}
