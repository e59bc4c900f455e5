//! Loops inside their parallel loops, for people. Input: the tree; output: what must hold, what is held, and an iteration.

use std::fmt::Write as _;

use ebbtide_ir::{ArrayId, LoopKind, Program, ValueId};

use super::{Guard, Interchanged, Tape};
use crate::kernel::show::{block, literal, test};

/// The text of a tree.
pub(crate) fn show(program: &Program, tree: &Interchanged) -> String {
    let value = |v: ValueId| program.literal(v).map_or_else(|| format!("v{}", v.index()), literal);
    let name = |a: &ArrayId| program.array(*a).name.clone();
    let mut text = String::new();
    let ranges = tree.domain.ranges.iter();
    let ranges: Vec<String> =
        ranges.map(|r| format!("v{} in {}..{}", r.var.index(), value(r.from), value(r.to))).collect();
    let _ = writeln!(text, "each thread some of {}", ranges.join(", "));
    for guard in &tree.guards {
        let _ = writeln!(text, "  where {}", condition(program, guard));
    }
    for (var, is) in &tree.same {
        let _ = writeln!(text, "  let v{} = v{}", var.index(), is.index());
    }
    for (array, held) in &tree.held {
        let from = if held.old { "nothing" } else { "memory" };
        let to = if held.written { ", to memory in the end" } else { "" };
        let _ = writeln!(text, "  h{} is the element of {}, from {from}{to}", array.index(), name(array));
    }
    if let LoopKind::For { var, from, to } = tree.source.kind {
        let together = if tree.together == 1 { String::new() } else { format!(", {} as one", tree.together) };
        let _ = writeln!(text, "  for v{} in {}..{}{together}", var.index(), value(from), value(to));
    }
    block(program, &tree.body, 2, &mut text);
    text
}

fn condition(program: &Program, guard: &Guard) -> String {
    let name = |a: &ArrayId| program.array(*a).name.clone();
    match guard {
        Guard::Proof(proof) => test(program, proof),
        Guard::Number(v) => format!("v{} is a number", v.index()),
        Guard::Whole(array, k) => format!("the domain is all of {}.{k}", name(array)),
        Guard::Within(array, k) => format!("the domain lies in {}.{k}", name(array)),
        Guard::Places(array, Tape::Pushes(count)) => {
            format!("the tape of {} has room for {count} more in each iteration", name(array))
        }
        Guard::Places(array, Tape::Pops(count)) => {
            format!("the tape of {} holds {count} for each iteration", name(array))
        }
    }
}
