//! Random nests of loops and regions, flags that fire in random passes, hosts that resume or move: the trace of
//! every executed stage must equal that of the model.

use ebbtide_ir::Label;
use ebbtide_runtime::{Compiled, Device, Next, interpreter};

use crate::devices::cpu;
use crate::model::Model;
use crate::stages::*;

/// A small generator of random numbers, the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % n as u64) as usize
    }
}

#[derive(Default)]
struct Names {
    labels: usize,
    lets: usize,
    counters: usize,
    /// The values in scope.
    scope: Vec<usize>,
}

impl Names {
    fn next_let(&mut self) -> usize {
        self.lets += 1;
        self.lets - 1
    }
}

fn plain(random: &mut Random, names: &Names) -> Node {
    match random.below(6) {
        0 => Node::Bump,
        1 => Node::Swap,
        2 if !names.scope.is_empty() => Node::Use(names.scope[random.below(names.scope.len())]),
        _ => Node::Stage(random.below(STAGES)),
    }
}

fn inside_region(random: &mut Random, names: &Names) -> Vec<Node> {
    let mut body: Vec<Node> = (0..1 + random.below(2)).map(|_| plain(random, names)).collect();
    match random.below(8) {
        0 => body.push(Node::For(2, vec![plain(random, names)])),
        1 => body.push(Node::While(vec![plain(random, names)])),
        _ => {}
    }
    body
}

fn block(random: &mut Random, names: &mut Names, depth: usize) -> Vec<Node> {
    let scope = names.scope.len();
    let mut nodes = Vec::new();
    for _ in 0..1 + random.below(4) {
        let deep = depth < 3;
        nodes.push(match random.below(13) {
            0 | 1 if deep => Node::For(random.below(4), block(random, names, depth + 1)),
            2 if deep && names.lets < LETS => {
                let id = names.next_let();
                let body = block(random, names, depth + 1);
                names.scope.push(id);
                Node::ForData(id, body)
            }
            3 if deep && names.counters < 4 => {
                names.counters += 1;
                Node::Counted(names.counters - 1, random.below(4) as i32, block(random, names, depth + 1))
            }
            4 if deep => Node::While(block(random, names, depth + 1)),
            5 if deep => Node::Loop(block(random, names, depth + 1)),
            6 if deep => Node::If(block(random, names, depth + 1), block(random, names, depth + 1)),
            7 if names.lets < LETS => {
                let id = names.next_let();
                names.scope.push(id);
                Node::Let(id)
            }
            8..=10 => {
                names.labels += 1;
                let fires =
                    [Fires::FromTable, Fires::FromTable, Fires::FromTable, Fires::Never, Fires::NoFlag];
                let undo = [Undoes::Nothing, Undoes::Nothing, Undoes::Trace, Undoes::Everything];
                let spot = Spot {
                    label: names.labels - 1,
                    fires: fires[random.below(fires.len())],
                    undo: undo[random.below(undo.len())],
                };
                Node::Region(spot, inside_region(random, names))
            }
            _ => plain(random, names),
        });
    }
    names.scope.truncate(scope);
    nodes
}

/// The number of nodes of a tree.
fn size(nodes: &[Node]) -> usize {
    let inner = |node: &Node| match node {
        Node::For(_, b) | Node::ForData(_, b) | Node::Counted(_, _, b) | Node::While(b) | Node::Loop(b) => {
            size(b)
        }
        Node::If(a, b) => size(a) + size(b),
        Node::Region(_, b) => size(b),
        _ => 0,
    };
    nodes.iter().map(|node| 1 + inner(node)).sum()
}

/// A random tree of at most so many nodes with several regions, one of which fires, and the number of its labels.
fn tree(random: &mut Random, most: usize) -> (Vec<Node>, usize) {
    loop {
        let mut names = Names::default();
        let nodes = block(random, &mut names, 0);
        if size(&nodes) <= most && names.labels > 1 && format!("{nodes:?}").contains("FromTable") {
            return (nodes, names.labels);
        }
    }
}

#[derive(Default, Debug)]
struct Tally {
    cases: usize,
    yields: usize,
    moves: usize,
    refused: usize,
}

/// Runs one tree on random data and compares it with the model.
fn case(compiled: &Compiled, nodes: &[Node], labels: usize, random: &mut Random, tally: &mut Tally) {
    let mut fire: Vec<i32> = (0..random.below(14)).map(|_| [0, 0, 1, 7][random.below(4)]).collect();
    fire.push(0);
    let mut data: Vec<i32> = (0..random.below(40)).map(|_| random.below(3) as i32).collect();
    data.push(0);
    // Runs that would fill the trace say nothing more than short ones.
    if Model::run(nodes, &fire, &data, &[]).seen.trace.len() > 400 {
        return;
    }
    let mut world = World::new(compiled.device(), 1 << 13, &fire, &data);
    let decisions = drive(compiled, nodes, &mut world, |at| {
        tally.yields += 1;
        if random.below(3) > 0 {
            return Next::Resume;
        }
        let target: Label = label(random.below(labels));
        match at.to(&target) {
            Ok(_) => {
                tally.moves += 1;
                Next::To(target)
            }
            Err(_) => {
                tally.refused += 1;
                Next::Resume
            }
        }
    })
    .unwrap_or_else(|e| panic!("{e}\n{nodes:?}\nfire {fire:?} data {data:?}\n{}", compiled.program()));
    let model = Model::run(nodes, &fire, &data, &decisions);
    let told: Vec<(Label, i64)> =
        decisions.iter().map(|(label, reason, _)| (label.clone(), *reason)).collect();
    let context = || format!("{nodes:?}\nfire {fire:?} data {data:?}\n{decisions:?}\n{}", compiled.program());
    assert_eq!(told, model.yields, "{}", context());
    assert_eq!(world.seen(), model.seen, "{}", context());
    tally.cases += 1;
}

fn cases(normally: usize) -> usize {
    std::env::var("EBBTIDE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(normally)
}

fn run(device: &Device, seed: u64, programs: usize, most: usize, cases_each: usize) -> Tally {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    for _ in 0..programs {
        let (nodes, labels) = tree(&mut random, most);
        let compiled = Compiled::new(&program(&nodes), device).unwrap();
        for _ in 0..cases_each {
            case(&compiled, &nodes, labels, &mut random, &mut tally);
        }
    }
    tally
}

#[test]
pub fn c48_random_traces_equal_the_model_on_the_interpreter() {
    let tally = run(&interpreter(), 1, cases(1500), usize::MAX, 2);
    assert!(tally.cases >= cases(1500), "{tally:?}");
    // A short run need not meet everything that the generator can do.
    if cases(1500) >= 500 {
        assert!(
            tally.yields > tally.cases && tally.moves > tally.cases / 10 && tally.refused > 0,
            "{tally:?}"
        );
    }
}

#[test]
pub fn c48_random_traces_equal_the_model_natively() {
    // Compiling takes the time: a few programs, many runs each.
    let programs = cases(1500).div_ceil(125);
    let tally = run(&cpu(1), 2, programs, 24, 40);
    if programs >= 4 {
        assert!(tally.cases >= 10 * programs, "{tally:?}");
        assert!(tally.yields > tally.cases && tally.moves > tally.cases / 10, "{tally:?}");
    }
}

#[test]
pub fn c48_random_traces_equal_the_model_on_two_threads() {
    let tally = run(&cpu(2), 2, cases(1500).div_ceil(500), 24, 8);
    assert!(tally.yields > 0, "{tally:?}");
}
