//! Segments for people. Input: steps; output: a line for each, with arrays by their names.

use std::fmt::Write as _;

use ebbtide_ir::{ArrayId, Combine, Indices, LocalId, LoopKind, Op, Program, ValueId};

use super::{Barrier, By, Manner, Product, Step, Steps, TimeLoop, Whole};
use crate::kernel::show::literal;

/// The text of a segment.
pub(crate) fn show(program: &Program, steps: &Steps) -> String {
    let mut text = String::new();
    Shown { program, out: &mut text }.steps(steps, 1);
    text
}

struct Shown<'a> {
    program: &'a Program,
    out: &'a mut String,
}

impl Shown<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn steps(&mut self, steps: &Steps, depth: usize) {
        for step in steps {
            let line = self.line(step);
            let _ = writeln!(self.out, "{}{line}", "  ".repeat(depth));
            match step {
                Step::If { then, otherwise, .. } => {
                    self.steps(then, depth + 1);
                    if !otherwise.is_empty() {
                        let _ = writeln!(self.out, "{}else", "  ".repeat(depth));
                        self.steps(otherwise, depth + 1);
                    }
                }
                Step::Loop(TimeLoop { head, body, .. }) => {
                    self.steps(head, depth + 1);
                    self.steps(body, depth + 1);
                }
                Step::Alone(steps, _)
                | Step::Interchanged(_, steps)
                | Step::Par(_, steps)
                | Step::Library(_, steps)
                | Step::Push(_, steps)
                | Step::Keep(_, steps)
                | Step::Restore(_, steps)
                | Step::Yield { undo: steps, .. } => self.steps(steps, depth + 1),
                _ => {}
            }
        }
    }

    fn line(&self, step: &Step) -> String {
        let (value, name) = (|v: ValueId| self.value(v), |a: ArrayId| self.name(a));
        let index = |at: Indices| at.as_slice().iter().map(|v| self.value(*v)).collect::<Vec<_>>().join(", ");
        match step {
            Step::Barrier(Barrier::Always) => "barrier".to_string(),
            Step::Barrier(Barrier::UnlessByLeaves(mapping)) => {
                format!("barrier; of each block, where blocks keep to the leaves of mapping {}", mapping.0)
            }
            Step::Barrier(Barrier::UnlessProved) => {
                "barrier, unless no iteration can have failed".to_string()
            }
            Step::Label(region) => format!("label region{}", region.id.index()),
            Step::Let(v) => match self.program.op(*v) {
                Op::Load(array, at) => format!("let v{} = {}[{}]", v.index(), name(*array), index(*at)),
                _ => format!("let v{}", v.index()),
            },
            Step::Set(local, v) => format!("l{} = {}", local.index(), value(*v)),
            Step::Store { store, how, by } => {
                let how = match how {
                    None => "=",
                    Some(Combine::Add) => "+=",
                    Some(Combine::Min) => "min=",
                    Some(Combine::Max) => "max=",
                };
                let by = match by {
                    By::Anyone => "anyone".to_string(),
                    By::First => "thread 0".to_string(),
                    By::Owner(mapping) => format!("its owner in loops of mapping {}", mapping.0),
                    By::Block(product) => format!("the block that has it of product {}", product.0),
                    By::Leaf(mapping) => format!("the block of its leaf of mapping {}", mapping.0),
                };
                format!("{}[{}] {how} {} by {by}", name(store.array), index(store.index), value(store.value))
            }
            Step::SameShape(a, b) => format!("fault unless {} and {} have one shape", name(*a), name(*b)),
            Step::Swap(a, b) => format!("swap {}, {}", name(*a), name(*b)),
            Step::Whole(whole) => match whole {
                Whole::Fill(a, v) => format!("fill {} with {}", name(*a), value(*v)),
                Whole::Clear(a) => format!("clear {}", name(*a)),
                Whole::Copy { from, to } => format!("copy {} to {}", name(*from), name(*to)),
                Whole::Keep(a) => format!("keep the elements of {}", name(*a)),
                Whole::Restore(a) => format!("restore the elements of {}", name(*a)),
            },
            Step::If { condition, .. } => format!("if {}", value(*condition)),
            Step::Loop(l) => self.time_loop(l),
            Step::Alone(_, locals) if locals.is_empty() => "thread 0 alone".to_string(),
            Step::Alone(_, locals) => format!("thread 0 alone, for {}", names_of(locals)),
            Step::Take(locals) => format!("take {}", names_of(locals)),
            Step::Interchanged(l, _) => {
                format!("loop {} inside its parallel loops, where it can be; elsewhere", l.id.index())
            }
            Step::Par(par, _) => {
                let ranges = par.ranges.iter();
                let ranges: Vec<String> = ranges
                    .map(|r| format!("v{} in {}..{}", r.var.index(), value(r.from), value(r.to)))
                    .collect();
                format!("parallel loop {} over {}", par.id.index(), ranges.join(", "))
            }
            Step::Iterations(_, manner) => match manner {
                Manner::Shares => "iterations, shared between threads".to_string(),
                Manner::Tiles(product) => {
                    format!("iterations, by the blocks that have these elements of product {}", product.0)
                }
                Manner::Teams => "iterations, by teams of threads".to_string(),
                Manner::Leaves => "iterations, leaf by leaf".to_string(),
                Manner::Ordered => "iterations, with ordered sums".to_string(),
            },
            Step::CombineLeaves(_) => "combine leaves".to_string(),
            Step::CombineForAll(_) => "all combine leaves".to_string(),
            Step::Sum(v, par, number) => {
                format!("let v{} = sum {number} of loop {}", v.index(), par.id.index())
            }
            Step::Library(call, _) => format!("library {}, if arrays fit", call.name(self.program)),
            Step::Operation(_, Product::AtOnce) => "operation".to_string(),
            Step::Operation(_, Product::Tiled { id, behind: None }) => format!("product {}", id.0),
            Step::Operation(_, Product::Tiled { id, behind: Some(other) }) => {
                format!("product {}, beside product {}", id.0, other.0)
            }
            Step::Operation(_, Product::Waits) => "operation, which waits".to_string(),
            Step::Push(push, _) => format!("push {}", name(push.array)),
            Step::PushExchanged(push) => format!("push {} by exchange", name(push.array)),
            Step::Pop(a) => format!("pop {}", name(*a)),
            Step::NextPlace(group) => format!("find the next place of tapes {group}"),
            Step::PushValue(a, v) => format!("put v{} there for {}", v.index(), name(*a)),
            Step::TakePlace(group) => format!("take that place of tapes {group}"),
            Step::LastPlace(group) => format!("leave the last place of tapes {group}"),
            Step::PopValue(a, v) => format!("take v{} from there for {}", v.index(), name(*a)),
            Step::Keep(a, _) => format!("for an undo of {}", name(*a)),
            Step::Restore(a, _) => format!("undo {}", name(*a)),
            Step::KeepLocal(local) => format!("keep l{}", local.index()),
            Step::RestoreLocal(local) => format!("restore l{}", local.index()),
            Step::Yield { region, flag, .. } => {
                format!("yield at region{} if {}", region.id.index(), name(*flag))
            }
            Step::Settle(a) => format!("settle {}", name(*a)),
        }
    }

    fn time_loop(&self, l: &TimeLoop) -> String {
        let head = match l.source.kind {
            LoopKind::For { var, from, to } => {
                format!("for v{} in {}..{}", var.index(), self.value(from), self.value(to))
            }
            LoopKind::While { condition, .. } => format!("while {}", self.value(condition)),
            LoopKind::Forever => "loop".to_string(),
        };
        let until = l.source.until.map_or(String::new(), |until| format!(" until {}", self.value(until)));
        let meets = if l.meets() { ", all meet in each iteration" } else { "" };
        format!("{head}{until}{meets}")
    }

    fn name(&self, a: ArrayId) -> &str {
        &self.program.array(a).name
    }

    fn value(&self, v: ValueId) -> String {
        self.program.literal(v).map_or_else(|| format!("v{}", v.index()), literal)
    }
}

fn names_of(locals: &[LocalId]) -> String {
    let names: Vec<String> = locals.iter().map(|l| format!("l{}", l.index())).collect();
    names.join(", ")
}
