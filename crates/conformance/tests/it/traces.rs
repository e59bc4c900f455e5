//! Random nests of loops and regions, flags that fire in random passes, hosts that resume or move: the trace of
//! every executed stage must equal that of the model.

use ebbtide_cases::renumbered;
use ebbtide_ir::{Label, Program};
use ebbtide_runtime::{Arg, Compiled, Device, Next, Result, Status, Yielded, interpreter};

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

/// Runs one tree on random data and compares it with the model. Who is asked to go on after a yield is `resume`.
fn case(
    compiled: &Compiled,
    (nodes, labels): (&[Node], usize),
    random: &mut Random,
    tally: &mut Tally,
    resume: impl FnMut(&Yielded, Vec<Arg<'_>>) -> Result<Status>,
) {
    let mut fire: Vec<i32> = (0..random.below(14)).map(|_| [0, 0, 1, 7][random.below(4)]).collect();
    fire.push(0);
    let mut data: Vec<i32> = (0..random.below(40)).map(|_| random.below(3) as i32).collect();
    data.push(0);
    // Runs that would fill the trace say nothing more than short ones.
    if Model::run(nodes, &fire, &data, &[]).seen.trace.len() > 400 {
        return;
    }
    let mut world = World::new(compiled.device(), 1 << 13, &fire, &data);
    let host = |at: &Yielded| {
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
    };
    let decisions = drive_by(compiled, nodes, &mut world, host, resume)
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
            let resume = |at: &Yielded, args: Vec<Arg<'_>>| compiled.resume(at, args);
            case(&compiled, (&nodes, labels), &mut random, &mut tally, resume);
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

/// The same program, its values made in another order and among others that nothing uses.
pub fn renumbered_at_random(program: &Program, random: &mut Random) -> Program {
    let mut order: Vec<usize> = (0..program.values.len()).collect();
    (1..order.len()).for_each(|k| order.swap(k, random.below(k + 1)));
    let places: Vec<usize> = order.into_iter().map(|place| 2 * place + random.below(2)).collect();
    let other = renumbered(program, &places);
    assert_eq!(other.hash(), program.hash());
    other
}

/// At each yield another of some programs goes on that have other numbers for the same values, from memory or from a file.
fn in_turns(device: &Device, seed: u64, programs: usize, most: usize, cases_each: usize) {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("yielded");
    for _ in 0..programs {
        let (nodes, labels) = tree(&mut random, most);
        let source = program(&nodes);
        let same = [source.clone(), source.clone(), source].map(|p| renumbered_at_random(&p, &mut random));
        let same = same.map(|program| Compiled::new(&program, device).unwrap());
        for _ in 0..cases_each {
            let mut turn = 0;
            let resume = |at: &Yielded, args: Vec<Arg<'_>>| {
                turn += 1;
                let next = &same[turn % 3];
                if turn % 2 == 0 {
                    return next.resume(at, args);
                }
                at.save(&path)?;
                next.resume(&next.load(&path)?, args)
            };
            case(&same[0], (&nodes, labels), &mut random, &mut tally, resume);
        }
    }
    assert!(tally.yields > tally.cases && tally.moves > tally.cases / 10, "{tally:?}");
}

#[test]
pub fn c42_a_program_whose_values_have_other_numbers_goes_on_where_its_equal_yielded() {
    in_turns(&interpreter(), 5, 150, usize::MAX, 3);
    in_turns(&cpu(2), 6, 2, 24, 20);
}
