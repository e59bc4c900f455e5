//! The tape: one node per float that depends on an input, with the partial derivatives by its operands.

use super::dual::{Dual, times};

/// A node of the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node(u32);

impl Node {
    /// What depends on no input.
    pub const CONSTANT: Node = Node(0);

    /// Does it depend on no input?
    pub fn is_constant(self) -> bool {
        self == Node::CONSTANT
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a node moves along the direction of the inputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tangent {
    /// The tangent.
    pub value: f64,
    /// The size of its terms.
    pub size: f64,
}

/// The derivative of an output by a node or an input, with its own tangent along the direction of the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cotangent(pub Dual);

/// Nodes in the order of their computation. Edges lead to earlier nodes alone.
#[derive(Debug)]
pub struct Tape {
    /// Where the edges of each node end; they begin where those of the node before end.
    ends: Vec<usize>,
    operands: Vec<Node>,
    partials: Vec<Dual>,
    tangents: Vec<Tangent>,
}

impl Default for Tape {
    fn default() -> Tape {
        Tape { ends: vec![0], operands: Vec::new(), partials: Vec::new(), tangents: vec![Tangent::default()] }
    }
}

impl Tape {
    /// An input that moves like this.
    pub fn input(&mut self, tangent: f64) -> Node {
        self.ends.push(self.operands.len());
        self.tangents.push(Tangent { value: tangent, size: tangent.abs() });
        Node(self.tangents.len() as u32 - 1)
    }

    /// A node with these operands and the partial derivatives by them. Constants are left out.
    pub fn push(&mut self, edges: &[(Node, Dual)]) -> Node {
        let mut tangent = Tangent::default();
        let before = self.operands.len();
        for (operand, partial) in edges.iter().filter(|(operand, _)| !operand.is_constant()) {
            self.operands.push(*operand);
            self.partials.push(*partial);
            let moved = self.tangents[operand.index()];
            tangent.value += times(partial.value, moved.value);
            tangent.size += times(partial.value_size, moved.size);
        }
        if self.operands.len() == before {
            return Node::CONSTANT;
        }
        self.ends.push(self.operands.len());
        self.tangents.push(tangent);
        Node(self.tangents.len() as u32 - 1)
    }

    /// The sum of two nodes.
    pub fn sum(&mut self, a: Node, b: Node) -> Node {
        match (a.is_constant(), b.is_constant()) {
            (true, _) => b,
            (_, true) => a,
            _ => self.push(&[(a, Dual::constant(1.0)), (b, Dual::constant(1.0))]),
        }
    }

    /// How a node moves.
    pub fn tangent(&self, node: Node) -> Tangent {
        self.tangents[node.index()]
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.tangents.len()
    }

    /// The number of edges.
    pub fn edges(&self) -> usize {
        self.operands.len()
    }

    /// The cotangents of all nodes, given those of some.
    pub fn reverse(&self, seeds: &[(Node, f64)]) -> Vec<Cotangent> {
        let mut cotangents = vec![Cotangent::default(); self.len()];
        for (node, seed) in seeds {
            let Cotangent(at) = &mut cotangents[node.index()];
            *at = *at + Dual::constant(*seed);
        }
        for node in (1..self.len()).rev() {
            let Cotangent(here) = cotangents[node];
            if here == Dual::default() {
                continue;
            }
            for edge in self.ends[node - 1]..self.ends[node] {
                let Cotangent(at) = &mut cotangents[self.operands[edge].index()];
                *at = *at + self.partials[edge] * here;
            }
        }
        cotangents
    }

    /// The cotangent of one node in a list of all.
    pub fn of(cotangents: &[Cotangent], node: Node) -> Cotangent {
        if node.is_constant() { Cotangent::default() } else { cotangents[node.index()] }
    }

    /// Are all partial derivatives numbers?
    pub fn is_finite(&self) -> bool {
        self.partials.iter().all(|p| p.is_finite())
    }
}
