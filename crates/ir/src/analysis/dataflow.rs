//! Dataflow over the structured tree of a program: one engine, many analyses.
//!
//! - Input: an [`Analysis`], a block, and what holds at one end of it.
//! - Output: what holds at the other end. The analysis sees what holds at each statement as the engine passes it.
//! - Invariant: the result holds on every way through the block. Ways are joined behind a branch, a loop is gone through
//!   until nothing changes any more, and a `swap` renames.
//!
//! A `for`, a `while` and a parallel loop may run no iteration; a `loop` runs at least one. Facts must have finite chains:
//! joining may change them only so often. The depth of recursion is that of nesting in the source.

use std::collections::BTreeMap;

use crate::syntax::*;

/// What an analysis knows at a place of the program.
pub trait Facts: Clone + PartialEq {
    /// Keeps what holds on either of two ways that lead here.
    fn join(&mut self, other: &Self);

    /// Two arrays exchange their names.
    fn swap(&mut self, a: ArrayId, b: ArrayId);
}

/// A place of a statement with blocks, at which something besides its blocks happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Before the statement: its conditions and bounds are read.
    Entry,
    /// An iteration begins: its variables come to life.
    IterationStart,
    /// The condition of a `while` is asked, after its head has run.
    Condition,
    /// An iteration ends: the condition to leave is asked.
    IterationEnd,
}

/// An analysis: what single statements do to what is known.
pub trait Analysis {
    /// What is known.
    type Facts: Facts;

    /// What a statement without blocks does, or one that the analysis takes as a whole. Of a `swap` the engine does the
    /// renaming.
    fn statement(&mut self, stmt: &Stmt, facts: &mut Self::Facts);

    /// What a statement with blocks does at one of its places.
    fn edge(&mut self, _stmt: &Stmt, _edge: Edge, _facts: &mut Self::Facts) {}

    /// Backward alone: what holds where iterations of a loop end. It is called again when what holds around the loop became weaker.
    fn iterations_end(&mut self, _l: &Loop, _facts: &Self::Facts) {}

    /// Does the engine go through the blocks of this statement?
    fn goes_into(&self, _stmt: &Stmt) -> bool {
        true
    }
}

/// What holds after a block, if `facts` hold before it.
pub fn forward<A: Analysis>(analysis: &mut A, block: &[Stmt], facts: A::Facts) -> A::Facts {
    Engine::new(analysis).forward(block, facts)
}

/// What holds before a block, if `facts` hold after it.
pub fn backward<A: Analysis>(analysis: &mut A, block: &[Stmt], facts: A::Facts) -> A::Facts {
    Engine::new(analysis).backward(block, facts)
}

/// What holds where an iteration of a loop ends, if `after` holds behind the loop; `None` if the statement is no loop.
pub fn at_end_of_body<A: Analysis>(analysis: &mut A, stmt: &Stmt, after: &A::Facts) -> Option<A::Facts> {
    match stmt {
        Stmt::Loop(l) => Some(Engine::new(analysis).around_body(stmt, l, after).0),
        _ => None,
    }
}

struct Engine<'a, A: Analysis> {
    analysis: &'a mut A,
    /// What was found for the loops inside the outermost one that is being gone through. Meanwhile what holds around a
    /// loop only becomes weaker, so a loop can begin with what it came to before, and a nest takes a number of visits that is
    /// quadratic in its depth, not exponential.
    known: BTreeMap<LoopId, A::Facts>,
    /// How many loops are being gone through.
    depth: usize,
}

impl<'a, A: Analysis> Engine<'a, A> {
    fn new(analysis: &'a mut A) -> Engine<'a, A> {
        Engine { analysis, known: BTreeMap::new(), depth: 0 }
    }

    fn begin_loop(&mut self, l: &Loop, facts: &mut A::Facts) {
        self.depth += 1;
        if let Some(before) = self.known.get(&l.id) {
            facts.join(before);
        }
    }

    fn end_loop(&mut self, l: &Loop, facts: &A::Facts) {
        self.known.insert(l.id, facts.clone());
        self.depth -= 1;
        if self.depth == 0 {
            self.known.clear();
        }
    }

    /// Goes through a block apart from those around it: pieces of driven loops have loops of the same number.
    fn apart<R>(&mut self, go: impl FnOnce(&mut Self) -> R) -> R {
        let around = (std::mem::take(&mut self.known), std::mem::take(&mut self.depth));
        let result = go(self);
        (self.known, self.depth) = around;
        result
    }

    fn forward(&mut self, block: &[Stmt], facts: A::Facts) -> A::Facts {
        block.iter().fold(facts, |facts, stmt| self.forward_one(stmt, facts))
    }

    fn forward_one(&mut self, stmt: &Stmt, mut facts: A::Facts) -> A::Facts {
        if stmt.blocks().next().is_none() || !self.analysis.goes_into(stmt) {
            self.analysis.statement(stmt, &mut facts);
            if let Stmt::Swap(a, b) = stmt {
                facts.swap(*a, *b);
            }
            return facts;
        }
        self.analysis.edge(stmt, Edge::Entry, &mut facts);
        match stmt {
            Stmt::If(branch) => {
                let mut either = self.forward(&branch.then, facts.clone());
                either.join(&self.forward(&branch.otherwise, facts));
                either
            }
            Stmt::Loop(l) => self.forward_loop(stmt, l, facts),
            Stmt::Region(Region { body, .. }) | Stmt::Call(Call { body, .. }) => self.forward(body, facts),
            // Iterations of parallel loops, and pieces of driven ones, run any number of times.
            other => loop {
                let mut again = facts.clone();
                for block in other.blocks() {
                    let mut inside = facts.clone();
                    self.analysis.edge(stmt, Edge::IterationStart, &mut inside);
                    again.join(&self.apart(|engine| engine.forward(block, inside)));
                }
                if again == facts {
                    break facts;
                }
                facts = again;
            },
        }
    }

    fn forward_loop(&mut self, stmt: &Stmt, l: &Loop, mut facts: A::Facts) -> A::Facts {
        self.begin_loop(l, &mut facts);
        loop {
            // What holds where an iteration may begin, and, once that changes no more, where the loop is left.
            let mut start = facts.clone();
            if let LoopKind::While { head, .. } = &l.kind {
                start = self.forward(head, start);
                self.analysis.edge(stmt, Edge::Condition, &mut start);
            }
            let mut end = start.clone();
            self.analysis.edge(stmt, Edge::IterationStart, &mut end);
            end = self.forward(&l.body, end);
            self.analysis.edge(stmt, Edge::IterationEnd, &mut end);
            let mut again = facts.clone();
            again.join(&end);
            if again == facts {
                self.end_loop(l, &facts);
                return match &l.kind {
                    LoopKind::Forever => end,
                    // It may also be left after an iteration.
                    _ if l.until.is_some() => {
                        start.join(&end);
                        start
                    }
                    _ => start,
                };
            }
            facts = again;
        }
    }

    fn backward(&mut self, block: &[Stmt], facts: A::Facts) -> A::Facts {
        block.iter().rev().fold(facts, |facts, stmt| self.backward_one(stmt, facts))
    }

    fn backward_one(&mut self, stmt: &Stmt, mut facts: A::Facts) -> A::Facts {
        if stmt.blocks().next().is_none() || !self.analysis.goes_into(stmt) {
            if let Stmt::Swap(a, b) = stmt {
                facts.swap(*a, *b);
            }
            self.analysis.statement(stmt, &mut facts);
            return facts;
        }
        let mut before = match stmt {
            Stmt::If(branch) => {
                let mut either = self.backward(&branch.then, facts.clone());
                either.join(&self.backward(&branch.otherwise, facts));
                either
            }
            Stmt::Loop(l) => {
                let (end, head) = self.around_body(stmt, l, &facts);
                self.analysis.iterations_end(l, &end);
                match &l.kind {
                    // Its head asks whether there is an iteration at all; a `loop` has one.
                    LoopKind::While { .. } | LoopKind::Forever => head,
                    LoopKind::For { .. } => {
                        facts.join(&head);
                        facts
                    }
                }
            }
            Stmt::Region(Region { body, .. }) | Stmt::Call(Call { body, .. }) => self.backward(body, facts),
            other => loop {
                let mut again = facts.clone();
                for block in other.blocks() {
                    let mut inside = self.apart(|engine| engine.backward(block, facts.clone()));
                    self.analysis.edge(stmt, Edge::IterationStart, &mut inside);
                    again.join(&inside);
                }
                if again == facts {
                    break facts;
                }
                facts = again;
            },
        };
        self.analysis.edge(stmt, Edge::Entry, &mut before);
        before
    }

    /// What holds where an iteration of a loop ends, and where the loop is about to begin one.
    fn around_body(&mut self, stmt: &Stmt, l: &Loop, after: &A::Facts) -> (A::Facts, A::Facts) {
        let mut end = after.clone();
        self.analysis.edge(stmt, Edge::IterationEnd, &mut end);
        self.begin_loop(l, &mut end);
        loop {
            let head = self.before_head(stmt, l, after, end.clone());
            let mut more = end.clone();
            more.join(&head);
            if more == end {
                self.end_loop(l, &end);
                return (end, head);
            }
            end = more;
        }
    }

    /// What holds where a loop is about to begin an iteration, or to ask whether there is one, if `end` holds where it ends.
    fn before_head(&mut self, stmt: &Stmt, l: &Loop, after: &A::Facts, end: A::Facts) -> A::Facts {
        let mut start = self.backward(&l.body, end);
        self.analysis.edge(stmt, Edge::IterationStart, &mut start);
        if let LoopKind::While { head, .. } = &l.kind {
            start.join(after);
            self.analysis.edge(stmt, Edge::Condition, &mut start);
            return self.backward(head, start);
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The arrays that were written whole on every way.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Filled(BTreeSet<ArrayId>);

    impl Facts for Filled {
        fn join(&mut self, other: &Self) {
            self.0.retain(|array| other.0.contains(array));
        }

        fn swap(&mut self, a: ArrayId, b: ArrayId) {
            let (had_a, had_b) = (self.0.remove(&a), self.0.remove(&b));
            self.0.extend(had_a.then_some(b));
            self.0.extend(had_b.then_some(a));
        }
    }

    struct Fills;

    impl Analysis for Fills {
        type Facts = Filled;

        fn statement(&mut self, stmt: &Stmt, facts: &mut Filled) {
            if let Stmt::Fill(array, ..) = stmt {
                facts.0.insert(*array);
            }
        }
    }

    /// The names of the arrays that a program fills on every way, seen in both directions.
    fn filled(body: &str) -> [Vec<String>; 2] {
        let head = "program p(a: &mut Array1<f64>, b: &mut Array1<f64>, n: usize, c: bool)";
        let text = format!("{head} {{\n{body}\n}}\n");
        let program = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let ahead = forward(&mut Fills, &program.body, Filled::default());
        let back = backward(&mut Fills, &program.body, Filled::default());
        [ahead, back].map(|facts| facts.0.iter().map(|a| program.array(*a).name.clone()).collect())
    }

    fn check(body: &str, expected: &[&str]) {
        for found in filled(body) {
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn ways_are_joined_behind_branches() {
        check("if c { fill(a, 1.0); fill(b, 1.0); } else { fill(a, 2.0); }", &["a"]);
        check("if c { fill(a, 1.0); }", &[]);
    }

    #[test]
    fn what_a_loop_may_not_run_does_not_count() {
        check("for k in 0..n { fill(a, 1.0); }", &[]);
        check("fill(b, 1.0); for k in 0..n { fill(a, 1.0); }", &["b"]);
        check("while { fill(a, 1.0); c } { fill(b, 1.0); }", &["a"]);
        check("loop { fill(a, 1.0); if c { fill(b, 1.0); } if c { break; } }", &["a"]);
    }

    #[test]
    fn a_swap_renames_in_both_directions() {
        let [ahead, back] = filled("fill(a, 1.0); swap(a, b);");
        assert_eq!((ahead, back), (vec!["b".to_string()], vec!["a".to_string()]));
    }

    #[test]
    fn a_loop_is_gone_through_until_nothing_changes() {
        // What is true after one iteration is not after two.
        let [ahead, _] = filled("fill(a, 1.0); for k in 0..n { swap(a, b); }");
        assert!(ahead.is_empty(), "{ahead:?}");
    }

    /// How many statements without blocks were visited.
    struct Visits(usize);

    impl Analysis for Visits {
        type Facts = Filled;

        fn statement(&mut self, stmt: &Stmt, facts: &mut Filled) {
            self.0 += 1;
            Fills.statement(stmt, facts);
        }
    }

    #[test]
    fn the_visits_of_a_nest_are_quadratic_in_its_depth_at_most() {
        for depth in [1, 4, 16] {
            let loops: String = (0..depth).map(|k| format!("for k{k} in 0..n {{\n")).collect();
            let text = format!(
                "program p(a: &mut Array1<f64>, b: &mut Array1<f64>, n: usize) {{\nfill(a, 1.0);\n{loops}swap(a, b);\n{}}}\n",
                "}\n".repeat(depth)
            );
            let program = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            for way in [forward::<Visits>, backward::<Visits>] {
                let mut visits = Visits(0);
                way(&mut visits, &program.body, Filled::default());
                assert!(visits.0 <= 3 * (depth + 1) * (depth + 1), "{} for {depth} loops", visits.0);
            }
        }
    }
}
