//! The oracle: a reference interpreter over taped scalars, which judges derivatives.
//!
//! Input: any source program, its arguments, the inputs to differentiate by and a direction of them. Output: the
//! program's own bits, and with them every derivative that the engine offers. Invariant: it shares no code with the crate
//! that it judges. The operations' results are those of `ebbtide_ir::evaluate`, so that it takes the branches that
//! the program takes; the derivatives are a table of its own, accumulated in `f64`.
//!
//! One run gives all of them: each node of the tape has its tangent along the direction (`jvp`), the sweep back from
//! an output gives the cotangents of all inputs (`vjp`, gradients), and since partial derivatives are duals, that
//! sweep also gives how the gradient moves along the direction (`hvp`).

mod dual;
mod host;
mod library;
mod machine;
mod par;
mod table;
mod tape;

use std::collections::BTreeMap;

use ebbtide_ir::{Literal, Param, Program, Type, verify};

use crate::{Input, element};
pub use dual::Dual;
pub use host::{Host, Lent, Yield};
pub use machine::PATIENCE;
use machine::{Machine, Taped, TapedArray};
use tape::{Node, Tape};

/// Why there is no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program's run meets a fault, as the interpreter's does.
    Fault(String),
    /// The oracle does not judge such programs.
    Unsupported(String),
    /// The program is not valid, or its arguments do not fit it.
    Invalid(String),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Fault(what) => write!(f, "a fault: {what}"),
            Stop::Unsupported(what) => write!(f, "not judged: {what}"),
            Stop::Invalid(what) => f.write_str(what),
        }
    }
}

/// How inputs move, by name: one number per element. Inputs that are not named do not move.
pub type Direction = BTreeMap<String, Vec<f64>>;

/// A finished run of the oracle.
#[derive(Debug)]
pub struct Trace {
    tape: Tape,
    /// The nodes of each input that can be differentiated by, by name.
    inputs: BTreeMap<String, Vec<Node>>,
    outputs: BTreeMap<String, (Type, Vec<Taped>)>,
    /// The number of yields.
    pub yields: usize,
    /// The least distance, relative to its size, of anything that moves from a place where a derivative jumps.
    pub nearest_kink: f64,
}

/// Runs a program with these arguments, for at most so many statements. Every float input can be differentiated by;
/// those in `along` move.
pub fn trace(
    program: &Program,
    inputs: &[Input],
    along: &Direction,
    host: Option<&Host<'_>>,
    most_statements: u64,
) -> Result<Trace, Stop> {
    let facts = verify(program).map_err(|e| Stop::Invalid(e.to_string()))?;
    let mut machine = Machine::new(program, &facts);
    machine.host = host;
    machine.most_statements = most_statements;
    let mut nodes = BTreeMap::new();
    if program.params.len() != inputs.len() {
        return Err(Stop::Invalid(format!("{} parameters, {} inputs", program.params.len(), inputs.len())));
    }
    for (param, input) in program.params.iter().zip(inputs) {
        let (name, ty) = match param {
            Param::Array(id) => (&program.array(*id).name, program.array(*id).ty),
            Param::Scalar(id) => (&program.scalars[id.index()].name, program.scalars[id.index()].ty),
        };
        let literals = input.elements(ty);
        let mut elements: Vec<Taped> = literals.iter().map(|l| Taped::constant(l.bits())).collect();
        if ty.is_float() {
            let moves = along.get(name);
            for (k, element) in elements.iter_mut().enumerate() {
                let tangent = moves.and_then(|m| m.get(k)).copied().unwrap_or(0.0);
                element.node = machine.tape.input(tangent);
            }
            nodes.insert(name.clone(), elements.iter().map(|e| e.node).collect());
        }
        match param {
            Param::Array(id) => {
                let shape = input.shape().iter().map(|n| *n as i64).collect();
                machine.arrays[id.index()] = TapedArray { shape, elements };
            }
            Param::Scalar(id) => {
                let missing = || Stop::Invalid(format!("`{name}` is a scalar"));
                machine.scalars[id.index()] = elements.first().copied().ok_or_else(missing)?;
            }
        }
    }
    machine.block(&program.body)?;
    let mut outputs = BTreeMap::new();
    for param in &program.params {
        if let Param::Array(id) = param {
            let decl = program.array(*id);
            let elements = std::mem::take(&mut machine.arrays[id.index()].elements);
            outputs.insert(decl.name.clone(), (decl.ty, elements));
        }
    }
    let (tape, yields, nearest_kink) = (machine.tape, machine.yields, machine.nearest_kink);
    Ok(Trace { tape, inputs: nodes, outputs, yields, nearest_kink })
}

impl Trace {
    /// What an array parameter holds at the end, every NaN the same.
    pub fn values(&self, name: &str) -> Option<Vec<Literal>> {
        let (ty, elements) = self.outputs.get(name)?;
        Some(elements.iter().map(|e| crate::one_nan(Literal::from_bits(*ty, e.bits))).collect())
    }

    /// How each element of an array parameter moves at the end: value and size of its tangent.
    pub fn tangents(&self, of: &str) -> Option<Vec<Dual>> {
        let (_, elements) = self.outputs.get(of)?;
        let tangent = |e: &Taped| {
            let moved = self.tape.tangent(e.node);
            Dual { value: moved.value, value_size: moved.size, ..Dual::default() }
        };
        Some(elements.iter().map(tangent).collect())
    }

    /// The cotangents of every input, given that of one output: by name, one dual per element. The value of a dual is
    /// the derivative, its tangent how that moves along the direction.
    pub fn cotangents(&self, of: &str, seed: &[f64]) -> Option<BTreeMap<String, Vec<Dual>>> {
        let (_, elements) = self.outputs.get(of)?;
        let seeds: Vec<(Node, f64)> =
            elements.iter().zip(seed).map(|(e, s)| (e.node, *s)).filter(|(n, _)| !n.is_constant()).collect();
        let all = self.tape.reverse(&seeds);
        let of_input = |nodes: &Vec<Node>| nodes.iter().map(|n| Tape::of(&all, *n).0).collect();
        Some(self.inputs.iter().map(|(name, nodes)| (name.clone(), of_input(nodes))).collect())
    }

    /// The number of nodes of the tape.
    pub fn nodes(&self) -> usize {
        self.tape.len()
    }

    /// The number of edges of the tape.
    pub fn edges(&self) -> usize {
        self.tape.edges()
    }

    /// Are all partial derivatives on the tape numbers?
    pub fn is_finite(&self) -> bool {
        self.tape.is_finite()
    }
}

impl Input {
    /// Its shape; that of a scalar is empty.
    pub fn shape(&self) -> &[usize] {
        match self {
            Input::Array(shape, _) | Input::Elements(shape, _) => shape,
            Input::Scalar(_) => &[],
        }
    }

    /// Its elements, for a parameter of this type.
    pub fn elements(&self, ty: Type) -> Vec<Literal> {
        match self {
            Input::Array(shape, seed) => {
                (0..shape.iter().product::<usize>()).map(|k| element(ty, *seed, k as u64)).collect()
            }
            Input::Elements(_, elements) => elements.clone(),
            Input::Scalar(literal) => vec![*literal],
        }
    }
}
