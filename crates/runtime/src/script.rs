//! A program with reversed loops as a list of things to do: segments that run natively, sweeps that a schedule
//! drives.

use ebbtide_ir::{ArrayId, Block, Length, LoopId, Program, ReverseHint, Stmt, ValueId};

/// One thing to do.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Run a segment.
    Run(usize),
    /// Run a loop forward until its schedule turns.
    Forward(Sweep),
    /// Go on with the schedule to its end.
    Backward(LoopId),
}

/// A reversed loop: its segments and what they share.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    pub id: LoopId,
    pub length: Length,
    pub piece: (ValueId, ValueId),
    pub carried: Vec<ArrayId>,
    pub advance: usize,
    pub record: usize,
    pub reverse: usize,
    pub hint: Option<ReverseHint>,
}

/// What to do, and the segments it is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub steps: Vec<Step>,
    pub segments: Vec<Block>,
}

impl Script {
    /// Cuts a program at its sweeps.
    pub fn of(program: &Program) -> Script {
        let mut script = Script::default();
        let mut open = Block::new();
        for stmt in &program.body {
            match stmt {
                Stmt::Forward(f) => {
                    script.close(&mut open);
                    let advance = script.segment(f.advance.clone());
                    let record = script.segment(f.record.clone());
                    script.steps.push(Step::Forward(Sweep {
                        id: f.id,
                        length: f.length,
                        piece: (f.from, f.to),
                        carried: f.carried.clone(),
                        advance,
                        record,
                        // Known when the reverse half is met.
                        reverse: usize::MAX,
                        hint: f.schedule,
                    }));
                }
                Stmt::Backward(b) => {
                    script.close(&mut open);
                    let segment = script.segment(b.reverse.clone());
                    for step in &mut script.steps {
                        if let Step::Forward(sweep) = step
                            && sweep.id == b.id
                        {
                            sweep.reverse = segment;
                        }
                    }
                    script.steps.push(Step::Backward(b.id));
                }
                other => open.push(other.clone()),
            }
        }
        script.close(&mut open);
        script
    }

    fn segment(&mut self, block: Block) -> usize {
        self.segments.push(block);
        self.segments.len() - 1
    }

    fn close(&mut self, open: &mut Block) {
        if !open.is_empty() {
            let segment = self.segment(std::mem::take(open));
            self.steps.push(Step::Run(segment));
        }
    }

    /// The reversed loops, in the order of their forward halves.
    pub fn sweeps(&self) -> impl Iterator<Item = &Sweep> {
        self.steps.iter().filter_map(|step| match step {
            Step::Forward(sweep) => Some(sweep),
            _ => None,
        })
    }
}
