//! Tapes that take values and no memory. Input: the segments of a program; output: the arrays whose tapes can lie packed.
//!
//! Autodiff puts a value of a loop on the tape through an array of rank 0 of its own: `aside[[]] = v; push(aside)` on the way
//! forward, `pop(aside); let v = aside[[]]` on the way back. Nothing else reads or writes that array, so the value can go straight
//! to its place, and come back from it: places lie side by side, and no table of addresses is needed, which would be as large as
//! what is recorded.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{After, ArrayId, Block, Op, Program, Stmt, Store, ValueId};

use crate::analysis::names::arrays_of;

/// A statement or two that put a value on a tape or take one from it.
pub(crate) enum OnTape<'p> {
    /// This value is pushed.
    Push(&'p Store),
    /// What is popped becomes this value, where somebody wants it.
    Pop(ArrayId, Option<ValueId>),
}

impl OnTape<'_> {
    pub fn array(&self) -> ArrayId {
        match self {
            OnTape::Push(store) => store.array,
            OnTape::Pop(array, _) => *array,
        }
    }

    /// How many statements it is.
    pub fn statements(&self) -> usize {
        if let OnTape::Pop(_, None) = self { 1 } else { 2 }
    }
}

/// What the statements at the start of a block do with the tape of an array of rank 0, if that is all that they do.
pub(crate) fn on_tape<'p>(program: &Program, block: &'p [Stmt]) -> Option<OnTape<'p>> {
    let found = match block {
        [Stmt::Store(store), Stmt::Push(push), ..] if store.array == push.array => {
            (push.after == After::Same).then_some(OnTape::Push(store))?
        }
        [Stmt::Pop(array), Stmt::Let(v), ..] => match program.op(*v) {
            Op::Load(loaded, _) if loaded == array => OnTape::Pop(*array, Some(*v)),
            _ => OnTape::Pop(*array, None),
        },
        [Stmt::Pop(array), ..] => OnTape::Pop(*array, None),
        _ => return None,
    };
    (program.array(found.array()).rank == 0).then_some(found)
}

/// Packed tapes that have the same number of places in use wherever a block begins: each block that pushes one of them, or pops
/// one, does so with all of them, once.
pub(crate) type Group = Vec<ArrayId>;

/// The packed tapes of a program.
#[derive(Debug, Default)]
pub(crate) struct PackedTapes {
    pub groups: Vec<Group>,
}

impl PackedTapes {
    /// The arrays that do nothing but take values to their tapes and back.
    pub fn of(program: &Program, segments: &[&Block]) -> PackedTapes {
        let mut uses = Uses { program, straight: 0, taped: BTreeMap::new(), others: BTreeSet::new() };
        segments.iter().for_each(|block| uses.block(block));
        let Uses { mut taped, others, .. } = uses;
        taped.retain(|array, _| !others.contains(array));
        let mut groups: BTreeMap<Vec<(usize, Way)>, Group> = BTreeMap::new();
        let mut alone = Vec::new();
        for (array, uses) in taped {
            let once = uses.windows(2).all(|pair| pair[0].0 != pair[1].0);
            match once {
                true => groups.entry(uses).or_default().push(array),
                false => alone.push(vec![array]),
            }
        }
        PackedTapes { groups: groups.into_values().chain(alone).collect() }
    }

    /// The group of an array, and its number there.
    pub fn find(&self, array: ArrayId) -> Option<(usize, usize)> {
        let number = |group: &Group| group.iter().position(|member| *member == array);
        self.groups.iter().enumerate().find_map(|(k, group)| Some((k, number(group)?)))
    }

    pub fn arrays(&self) -> impl Iterator<Item = ArrayId> {
        self.groups.iter().flatten().copied()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    Push,
    Pop,
}

/// How arrays are used.
struct Uses<'a> {
    program: &'a Program,
    /// The number of the statements that are run one after the other here. A run may begin or end at a label.
    straight: usize,
    /// Where values are pushed and popped.
    taped: BTreeMap<ArrayId, Vec<(usize, Way)>>,
    /// Arrays that are used in another way.
    others: BTreeSet<ArrayId>,
}

impl Uses<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &[Stmt]) {
        self.straight += 1;
        let mut here = self.straight;
        let mut rest = block;
        while let Some(first) = rest.first() {
            if let Some(found) = on_tape(self.program, rest) {
                let way = if let OnTape::Push(_) = found { Way::Push } else { Way::Pop };
                self.taped.entry(found.array()).or_default().push((here, way));
                rest = &rest[found.statements()..];
                continue;
            }
            // Making an array is no use of it.
            if !matches!(first, Stmt::Temp(_)) {
                self.others.extend(arrays_of(self.program, first));
            }
            first.blocks().for_each(|inner| self.block(inner));
            if matches!(first, Stmt::Region(_) | Stmt::Call(_)) {
                self.straight += 1;
                here = self.straight;
            }
            rest = &rest[1..];
        }
    }
}
