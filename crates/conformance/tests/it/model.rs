//! The contract of yields, as plain Rust over a tree of stages: no positions, no machine, no resume.
//!
//! A region that yields asks the host at once and runs again, or unwinds to the block that has the label that the
//! host wants, which seeks it from there: what the engine must be indistinguishable from.

use ebbtide_ir::Label;
use ebbtide_runtime::Next;

use crate::stages::*;

pub struct Model<'a> {
    fire: &'a [i32],
    data: &'a [i32],
    decisions: std::slice::Iter<'a, (Label, i64, Next)>,
    pub yields: Vec<(Label, i64)>,
    pub seen: Seen,
    visits: i32,
    counters: [i32; 4],
    x: i32,
    scratch: i32,
    lets: Vec<Option<i32>>,
}

enum Flow {
    Next,
    Move(usize),
}

/// The number of a label made by [`label`].
fn number(label: &Label) -> usize {
    label.variant[1..].parse().expect("labels are numbered")
}

fn contains(node: &Node, target: usize) -> bool {
    match node {
        Node::Region(spot, _) => spot.label == target,
        Node::For(_, b) | Node::ForData(_, b) | Node::Counted(_, _, b) | Node::While(b) | Node::Loop(b) => {
            b.iter().any(|node| contains(node, target))
        }
        Node::If(a, b) => a.iter().chain(b).any(|node| contains(node, target)),
        _ => false,
    }
}

impl<'a> Model<'a> {
    pub fn run(
        nodes: &[Node],
        fire: &'a [i32],
        data: &'a [i32],
        decisions: &'a [(Label, i64, Next)],
    ) -> Model<'a> {
        let seen = Seen { t: vec![0; STAGES], trace: Vec::new(), field: 0, cursor: 0, swapped: [0, 1000] };
        let mut model = Model {
            fire,
            data,
            decisions: decisions.iter(),
            yields: Vec::new(),
            seen,
            visits: 0,
            counters: [0; 4],
            x: 1,
            scratch: 0,
            lets: vec![None; LETS],
        };
        model.block(nodes, &mut None);
        model
    }

    fn datum(&self) -> i32 {
        self.data[(self.seen.cursor as usize).min(self.data.len() - 1)]
    }

    fn block(&mut self, nodes: &[Node], seek: &mut Option<usize>) -> Flow {
        let (mut at, mut begun) = (0, 0);
        while let Some(node) = nodes.get(at) {
            if let Some(target) = *seek
                && !contains(node, target)
            {
                // What was made in this pass stays; what is skipped in it is not there.
                if let (Node::Let(id) | Node::ForData(id, _), true) = (node, at >= begun) {
                    self.lets[*id] = None;
                }
                at += 1;
                continue;
            }
            begun = begun.max(at + 1);
            match self.node(node, seek) {
                Flow::Next => at += 1,
                Flow::Move(target) if nodes.iter().any(|node| contains(node, target)) => {
                    *seek = Some(target);
                    at = 0;
                }
                away => return away,
            }
        }
        Flow::Next
    }

    fn node(&mut self, node: &Node, seek: &mut Option<usize>) -> Flow {
        match node {
            Node::Stage(k) => {
                self.seen.t[*k] += 1;
                self.scratch = self.scratch.wrapping_add(1);
                let v = (*k as i32)
                    .wrapping_add(self.x.wrapping_mul(64))
                    .wrapping_add(self.scratch.wrapping_mul(4096));
                self.seen.trace.push(v);
                if k % 8 == 3 {
                    self.seen.field += *k as i32;
                }
            }
            Node::Bump => self.x = self.x.wrapping_mul(3).wrapping_add(1),
            Node::Swap => {
                self.seen.swapped.swap(0, 1);
                self.seen.swapped[0] += 1;
            }
            Node::Let(id) => {
                self.lets[*id] = Some(self.datum());
                self.seen.cursor += 1;
            }
            Node::Use(id) => {
                let v = self.lets[*id].expect("the engine must refuse to skip what is needed");
                self.seen.trace.push(v);
            }
            Node::For(n, body) => return self.counted_for(*n as i32, body, seek),
            Node::ForData(id, body) => {
                if seek.is_none() {
                    self.lets[*id] = Some(self.datum());
                    self.seen.cursor += 1;
                }
                let n = self.lets[*id].expect("the engine must refuse to enter a loop without bounds");
                return self.counted_for(n, body, seek);
            }
            Node::Counted(k, n, body) => {
                if seek.is_none() {
                    self.counters[*k] = 0;
                }
                while seek.is_some() || self.counters[*k] < *n {
                    if let away @ Flow::Move(_) = self.block(body, seek) {
                        return away;
                    }
                    self.counters[*k] += 1;
                }
            }
            Node::While(body) => {
                while seek.is_some() || self.datum() != 0 {
                    if seek.is_none() {
                        self.seen.cursor += 1;
                    }
                    if let away @ Flow::Move(_) = self.block(body, seek) {
                        return away;
                    }
                }
            }
            Node::Loop(body) => loop {
                if let away @ Flow::Move(_) = self.block(body, seek) {
                    return away;
                }
                self.seen.cursor += 1;
                if self.datum() == 0 {
                    break;
                }
            },
            Node::If(then, otherwise) => {
                let taken = match *seek {
                    Some(target) => then.iter().any(|node| contains(node, target)),
                    None => {
                        let taken = self.datum() != 0;
                        self.seen.cursor += 1;
                        taken
                    }
                };
                return self.block(if taken { then } else { otherwise }, seek);
            }
            Node::Region(spot, body) => return self.region(*spot, body, seek),
        }
        Flow::Next
    }

    fn counted_for(&mut self, n: i32, body: &[Node], seek: &mut Option<usize>) -> Flow {
        let mut i = 0;
        // A body that is sought is entered whatever the bounds.
        while seek.is_some() || i < n {
            if let away @ Flow::Move(_) = self.block(body, seek) {
                return away;
            }
            i += 1;
        }
        Flow::Next
    }

    fn region(&mut self, spot: Spot, body: &[Node], seek: &mut Option<usize>) -> Flow {
        *seek = None;
        loop {
            let (seen, scratch, x, visits, counters) =
                (self.seen.clone(), self.scratch, self.x, self.visits, self.counters);
            self.block(body, seek);
            if spot.fires != Fires::FromTable {
                return Flow::Next;
            }
            let flag = self.fire[(self.visits as usize).min(self.fire.len() - 1)];
            self.visits += 1;
            if flag == 0 {
                return Flow::Next;
            }
            match spot.undo {
                Undoes::Nothing => {}
                Undoes::Trace => (self.seen.t, self.seen.trace) = (seen.t, seen.trace),
                Undoes::Everything => {
                    (self.seen, self.scratch, self.x, self.counters) = (seen, scratch, x, counters);
                    // The host counts visits that were undone.
                    self.visits = visits + 1;
                }
            }
            self.yields.push((label(spot.label), i64::from(flag)));
            match self.decisions.next() {
                Some((_, _, Next::To(to))) if number(to) != spot.label => return Flow::Move(number(to)),
                _ => {}
            }
        }
    }
}
