//! Which operations a limited sweep has to run, what each needs of the others, and how many values cross from
//! one to the next.

use crate::arena::Body;
use crate::execution::{Execution, Load};
use crate::graph::NodeRef;
use crate::{Differentiable, SecondOrder};

/// The operations that give or need something in a limited sweep, in the order of recording.
///
/// A *position* is an index into that order; the state before a position is the set of earlier operations whose
/// outputs are used at or after it.
#[derive(Default)]
pub(crate) struct Plan {
    /// The head of the operation at each position.
    pub(crate) heads: Vec<u32>,
    /// The position of each node, or [`NOWHERE`].
    positions: Vec<u32>,
    roles: Vec<Role>,
    /// The last position that uses the outputs of each, or zero: nothing can use them at the first position.
    pub(crate) last_use: Vec<u32>,
    /// The weight of the state before each position.
    widths: RangeMax,
    /// The last position not after each where the state is empty: a chain that ends there starts anew.
    starts: Vec<u32>,
    /// The most weight alive at one time in a single forward run.
    pub(crate) working: u64,
}

const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Default)]
pub(crate) struct Role {
    /// It is checkpointed: it needs values and gives values.
    pub(crate) replays: bool,
    /// It needs the tangents of its inputs.
    takes_tangents: bool,
    /// Its own tangent is needed.
    pub(crate) gives_tangent: bool,
}

/// What is asked of a node by those after it.
#[derive(Clone, Copy, Default)]
struct Asked {
    cotangent: bool,
    value: bool,
    tangent: bool,
    /// Its tangent is not zero.
    moves: bool,
}

/// What a limit counts.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    Values,
    Bytes,
}

impl Measure {
    pub(crate) fn of(self, load: Load) -> u64 {
        match self {
            Measure::Values => load.values,
            Measure::Bytes => load.bytes,
        }
    }
}

impl Plan {
    /// The plan for the rest of a sweep that is at operation `top`.
    pub(crate) fn new<V: Differentiable>(sweep: &Execution<'_, V>, top: usize, measure: Measure) -> Plan {
        let length = sweep.graph.op(top).outputs().end;
        let mut asked = vec![Asked::default(); length];
        find_moving(sweep, top, &mut asked);

        let (mut heads, mut roles) = (Vec::new(), Vec::new());
        let mut positions = vec![NOWHERE; length];
        for op in sweep.graph.ops_down_from(top) {
            let role = ask(sweep, &op, &mut asked);
            if role.replays || role.takes_tangents {
                heads.push(op.index as u32);
                roles.push(role);
            }
        }
        heads.reverse();
        roles.reverse();
        for (position, &head) in heads.iter().enumerate() {
            positions[sweep.graph.op(head as usize).outputs()].fill(position as u32);
        }
        let last_use = vec![0; heads.len()];
        let mut plan = Plan { heads, positions, roles, last_use, ..Plan::default() };
        plan.measure(sweep, measure);
        plan
    }

    fn measure<V: Differentiable>(&mut self, sweep: &Execution<'_, V>, measure: Measure) {
        let count = self.heads.len();
        for position in 0..count {
            let op = sweep.graph.op(self.heads[position] as usize);
            for needed in self.needs(position, &op).collect::<Vec<_>>() {
                self.last_use[needed] = position as u32;
            }
        }
        let weights: Vec<u64> =
            self.heads.iter().map(|&head| measure.of(sweep.load(&sweep.graph.op(head as usize)))).collect();
        let mut leaving = vec![0u64; count + 1];
        let mut widths = vec![0u64; count + 1];
        let (mut width, mut start) = (0, 0);
        for position in 0..count {
            widths[position] = width;
            if width == 0 {
                start = position as u32;
            }
            self.starts.push(start);
            self.working = self.working.max(width + weights[position]);
            let last = self.last_use[position] as usize;
            if last > position {
                width += weights[position];
                leaving[last] += weights[position];
            }
            width -= leaving[position];
        }
        self.widths = RangeMax::new(&widths);
    }

    pub(crate) fn position(&self, node: usize) -> Option<usize> {
        self.positions.get(node).filter(|&&position| position != NOWHERE).map(|&position| position as usize)
    }

    pub(crate) fn role(&self, position: usize) -> Role {
        self.roles[position]
    }

    /// The positions whose outputs the operation at `position` needs.
    pub(crate) fn needs<'a, V: Differentiable>(
        &'a self,
        position: usize,
        op: &NodeRef<'a, V>,
    ) -> impl Iterator<Item = usize> + 'a {
        let role = self.roles[position];
        op.edges.iter().filter_map(move |edge| {
            let input = self.position(edge.node())?;
            let of_input = self.roles[input];
            let value = role.replays && of_input.replays;
            let tangent = role.takes_tangents && edge.wanted() && of_input.gives_tangent;
            (value || tangent).then_some(input)
        })
    }

    /// Where the chain that `position` belongs to starts: nothing before it is needed from there on.
    pub(crate) fn start(&self, position: usize) -> usize {
        self.starts[position] as usize
    }

    /// The largest weight of the states before positions `first..=last`.
    pub(crate) fn widest(&self, first: usize, last: usize) -> u64 {
        self.widths.max(first, last + 1)
    }
}

/// Marks the nodes whose tangent is not zero: those that a leaf with a direction leads to.
fn find_moving<V: Differentiable>(sweep: &Execution<'_, V>, top: usize, asked: &mut [Asked]) {
    let Some(second) = &sweep.second else { return };
    for op in sweep.graph.ops_up_to(top) {
        let moves = match op.node.body {
            Body::Leaf => second.tangents[op.index].is_some(),
            _ => op.edges.iter().any(|edge| edge.wanted() && asked[edge.node()].moves),
        };
        asked[op.outputs()].iter_mut().for_each(|asked| asked.moves = moves);
    }
}

/// Passes on to the inputs of an operation what is asked of it, and says what part it has to play.
fn ask<V: Differentiable>(sweep: &Execution<'_, V>, op: &NodeRef<'_, V>, asked: &mut [Asked]) -> Role {
    if matches!(op.node.body, Body::Leaf | Body::Constant) {
        return Role::default();
    }
    let outputs = &asked[op.outputs()];
    let moves = outputs.iter().any(|asked| asked.moves);
    let reversed = sweep.received(op) || outputs.iter().any(|asked| asked.cotangent);
    let gives_tangent = moves && outputs.iter().any(|asked| asked.tangent);
    let value = outputs.iter().any(|asked| asked.value);
    // The rule of a checkpointed operation is not known yet: it may need tangents.
    let linear = op.retained_rule().is_some_and(|rule| rule.second_order() == SecondOrder::Linear);
    let takes_tangents = gives_tangent || (moves && reversed && !linear);
    let replays = op.is_checkpointed() && (reversed || gives_tangent || value);
    for edge in op.edges {
        let input = &mut asked[edge.node()];
        input.cotangent |= reversed && edge.wanted();
        input.tangent |= takes_tangents && edge.wanted();
        input.value |= replays;
    }
    Role { replays, takes_tangents, gives_tangent }
}

/// Maxima over ranges of a fixed sequence: a segment tree.
#[derive(Default)]
struct RangeMax {
    tree: Vec<u64>,
}

impl RangeMax {
    fn new(values: &[u64]) -> Self {
        let mut tree = vec![0; values.len()];
        tree.extend_from_slice(values);
        for parent in (1..values.len()).rev() {
            tree[parent] = tree[2 * parent].max(tree[2 * parent + 1]);
        }
        RangeMax { tree }
    }

    /// The largest of the values `from..to`; zero if there is none.
    fn max(&self, from: usize, to: usize) -> u64 {
        let length = self.tree.len() / 2;
        let (mut low, mut high, mut largest) = (from + length, to + length, 0);
        while low < high {
            if low % 2 == 1 {
                largest = largest.max(self.tree[low]);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                largest = largest.max(self.tree[high]);
            }
            (low, high) = (low / 2, high / 2);
        }
        largest
    }
}
