//! Law 14: what is put on the tape of an array is taken back, once, in the mirrored order.
//!
//! A program is checked array by array, since each has a tape of its own. What a block does to a tape is a list of
//! *pops*, of what was there before, then a list of *pushes*, of what it leaves there: a pop after a push cancels it. The
//! elements of these lists are single pushes and pops, branches with a list for each arm, loops with the list of one
//! iteration, and the halves of reversed loops. A pop cancels a push that it mirrors: the same element with its list
//! in the mirrored order. What is left of a whole program must be nothing.
//!
//! Conditions and numbers of iterations are not compared: the reverse half computes them again, or takes them from the
//! tape.

use std::collections::{BTreeMap, BTreeSet};

use crate::syntax::*;

/// Something that is put on a tape or taken from it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    One,
    Branch(Vec<Item>, Vec<Item>),
    Loop(Vec<Item>),
    /// The half of a reversed loop.
    Half(LoopId, Vec<Item>),
}

/// What a block does to the tape of one array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Effect {
    /// What it takes of what was there before.
    pops: Vec<Item>,
    /// What it leaves.
    pushes: Vec<Item>,
}

/// The effects of a block by array; arrays whose tapes it leaves as they are may be missing.
type Effects = BTreeMap<ArrayId, Effect>;

/// What breaks the law in a program.
pub(crate) fn flaws(program: &Program) -> Vec<Flaw> {
    let mut tapes = Tapes { program, flaws: Vec::new(), halves: BTreeMap::new() };
    let left = tapes.block(&program.body);
    // One flaw inside may leave others behind it.
    if tapes.flaws.is_empty() {
        for (array, effect) in left {
            if !effect.pops.is_empty() {
                tapes.flaw(array, "is popped where nothing is left on it");
            }
            if !effect.pushes.is_empty() {
                tapes.flaw(array, "is pushed, and not popped");
            }
        }
    }
    for (id, half) in std::mem::take(&mut tapes.halves) {
        if half != Half::Reversed {
            tapes.whole(format!("loop {} is run to be reversed, and is not reversed", id.index()));
        }
    }
    tapes.flaws
}

/// How far a reversed loop is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Run,
    Reversed,
}

struct Tapes<'p> {
    program: &'p Program,
    flaws: Vec<Flaw>,
    halves: BTreeMap<LoopId, Half>,
}

impl Tapes<'_> {
    fn flaw(&mut self, array: ArrayId, what: &str) {
        self.whole(format!("the tape of `{}` {what}", self.program.array(array).name));
    }

    fn whole(&mut self, message: String) {
        self.flaws.push(Flaw { law: "14", message, site: None });
    }

    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block) -> Effects {
        let mut effects = Effects::new();
        for stmt in block {
            match stmt {
                Stmt::Push(push) => effects.entry(push.array).or_default().pushes.push(Item::One),
                Stmt::Pop(array) => self.pop(&mut effects, *array, Item::One),
                Stmt::If(branch) => {
                    let (then, otherwise) = (self.block(&branch.then), self.block(&branch.otherwise));
                    self.branch(&mut effects, then, otherwise);
                }
                Stmt::Loop(l) => {
                    if let LoopKind::While { head, .. } = &l.kind {
                        self.neutral(head, "changes in the condition of a loop");
                    }
                    let body = self.block(&l.body);
                    self.nested(&mut effects, body, Item::Loop);
                }
                Stmt::Region(Region { body, .. }) | Stmt::Call(Call { body, .. }) => {
                    let inner = self.block(body);
                    self.follow(&mut effects, inner);
                }
                Stmt::Forward(f) => {
                    self.neutral(&f.advance, "changes in iterations that keep nothing");
                    let record = self.block(&f.record);
                    for (array, _) in record.iter().filter(|(_, effect)| !effect.pops.is_empty()) {
                        self.flaw(*array, "is popped in the forward half of a loop");
                    }
                    if self.halves.insert(f.id, Half::Run) == Some(Half::Run) {
                        self.whole(format!("loop {} is run twice before it is reversed", f.id.index()));
                    }
                    self.nested(&mut effects, record, |items| Item::Half(f.id, items));
                }
                Stmt::Backward(b) => {
                    let reverse = self.block(&b.reverse);
                    for (array, _) in reverse.iter().filter(|(_, effect)| !effect.pushes.is_empty()) {
                        self.flaw(*array, "is pushed in the reverse half of a loop");
                    }
                    if self.halves.insert(b.id, Half::Reversed) != Some(Half::Run) {
                        self.whole(format!("loop {} is reversed, and was not run before", b.id.index()));
                    }
                    self.nested(&mut effects, reverse, |items| Item::Half(b.id, items));
                }
                _ => {}
            }
        }
        effects
    }

    /// A block that leaves every tape as it is.
    fn neutral(&mut self, block: &Block, what: &str) {
        for (array, effect) in self.block(block) {
            if effect != Effect::default() {
                self.flaw(array, what);
            }
        }
    }

    /// Takes an item from a tape.
    fn pop(&mut self, effects: &mut Effects, array: ArrayId, item: Item) {
        let effect = effects.entry(array).or_default();
        match effect.pushes.pop() {
            None => effect.pops.push(item),
            Some(top) if mirrors(&top, &item) => {}
            Some(top) => {
                let message = format!(
                    "is popped by {}, which does not mirror {}, the last to push",
                    name(&item),
                    name(&top)
                );
                self.flaw(array, &message);
            }
        }
    }

    /// One block after another.
    fn follow(&mut self, effects: &mut Effects, next: Effects) {
        for (array, effect) in next {
            effect.pops.into_iter().for_each(|item| self.pop(effects, array, item));
            effects.entry(array).or_default().pushes.extend(effect.pushes);
        }
    }

    /// A branch. What both arms do alike is done whatever the condition.
    fn branch(&mut self, effects: &mut Effects, mut then: Effects, mut otherwise: Effects) {
        let arrays: BTreeSet<ArrayId> = then.keys().chain(otherwise.keys()).copied().collect();
        let either = |a: Vec<Item>, b: Vec<Item>| if a == b { a } else { vec![Item::Branch(a, b)] };
        for array in arrays {
            let [a, b] = [&mut then, &mut otherwise].map(|arm| arm.remove(&array).unwrap_or_default());
            let effect = Effect { pops: either(a.pops, b.pops), pushes: either(a.pushes, b.pushes) };
            self.follow(effects, Effects::from([(array, effect)]));
        }
    }

    /// A loop, or half of one, whose body has these effects.
    fn nested(&mut self, effects: &mut Effects, body: Effects, item: impl Fn(Vec<Item>) -> Item) {
        for (array, Effect { pops, pushes }) in body {
            match (pops.is_empty(), pushes.is_empty()) {
                (true, true) => {}
                (true, false) => effects.entry(array).or_default().pushes.push(item(pushes)),
                (false, true) => self.pop(effects, array, item(pops)),
                (false, false) => self.flaw(array, "is popped and pushed in one loop"),
            }
        }
    }
}

/// Does taking `pop` bring back what `push` put there?
fn mirrors(push: &Item, pop: &Item) -> bool {
    let all = |pushes: &[Item], pops: &[Item]| {
        pushes.len() == pops.len() && pushes.iter().zip(pops.iter().rev()).all(|(a, b)| mirrors(a, b))
    };
    match (push, pop) {
        (Item::One, Item::One) => true,
        (Item::Branch(a, b), Item::Branch(c, d)) => all(a, c) && all(b, d),
        (Item::Loop(a), Item::Loop(c)) => all(a, c),
        (Item::Half(i, a), Item::Half(j, c)) => i == j && all(a, c),
        _ => false,
    }
}

fn name(item: &Item) -> String {
    match item {
        Item::One => "a single statement".to_string(),
        Item::Branch(..) => "a branch".to_string(),
        Item::Loop(_) => "a loop".to_string(),
        Item::Half(id, _) => format!("a half of loop {}", id.index()),
    }
}
