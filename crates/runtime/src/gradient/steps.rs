//! A program with reversed loops as a list of things to do: segments that run natively, sweeps that a schedule
//! drives, and what stands around sweeps inside sweeps.

use ebbtide_autodiff::{Pushes, pushes};
use ebbtide_ir::{
    Again, ArrayId, Block, Forward, Length, LocalDecl, LocalId, Loop, LoopId, LoopKind, Program, RegionId,
    ReverseHint, Stmt, ValueId, walk_program_level, written,
};

/// One thing to do.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Run a segment.
    Run(usize),
    /// Run a loop forward until its schedule turns.
    Forward(Sweep),
    /// Continue with the schedule to its end; each piece is reversed by these steps.
    Backward(LoopId, Vec<Step>),
    /// Do again, or undo, what the host did when this region of the source yielded.
    Host(RegionId, Again),
    /// Do the steps once for each number; the variables hold the bounds.
    For { var: ValueId, from: LocalId, to: LocalId, body: Vec<Step> },
    /// Do the first steps or the second, as the variable says.
    If { condition: LocalId, then: Vec<Step>, otherwise: Vec<Step> },
}

/// A reversed loop: its segments and what they share.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    pub id: LoopId,
    pub length: Length,
    pub piece: (ValueId, ValueId),
    pub carried: Vec<ArrayId>,
    /// Arrays that its iterations write and slots do not hold: a restored state has nothing in them.
    pub lost: Vec<ArrayId>,
    /// Arrays that its iterations write and that no state is restored of: they are their own tape.
    pub kept: Vec<ArrayId>,
    pub advance: usize,
    pub record: usize,
    pub hint: Option<ReverseHint>,
}

/// What to do, and the segments it is made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    pub steps: Vec<Step>,
    pub segments: Vec<Block>,
    /// By segment: what it pushes, where it is run by itself.
    pub pushes: Vec<Vec<Pushes>>,
}

impl Steps {
    /// Cuts a program at its sweeps. What the host must know between segments, bounds and conditions, the program
    /// keeps in variables that are added to it.
    pub fn cut(program: &mut Program) -> Steps {
        let body = program.body.clone();
        let mut steps = Steps::default();
        steps.steps = steps.block(program, body);
        steps
    }

    /// Is there a loop that a schedule drives?
    pub fn has_sweeps(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, Step::Run(_)))
    }

    /// The arrays that are their own tape in some loop.
    pub fn kept_arrays(&self) -> Vec<ArrayId> {
        let mut kept = Vec::new();
        let mut work: Vec<&Step> = self.steps.iter().collect();
        while let Some(step) = work.pop() {
            match step {
                Step::Forward(sweep) => kept.extend(&sweep.kept),
                Step::Backward(_, body) | Step::For { body, .. } => work.extend(body),
                Step::If { then, otherwise, .. } => work.extend(then.iter().chain(otherwise)),
                Step::Run(_) | Step::Host(..) => {}
            }
        }
        kept
    }

    /// The steps of a block. The depth of recursion is that of nesting in the source.
    fn block(&mut self, program: &mut Program, block: Block) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut open = Block::new();
        for stmt in block {
            if !has_sweeps(&stmt) {
                open.push(stmt);
                continue;
            }
            match stmt {
                Stmt::Forward(f) => {
                    self.close(program, &mut steps, &mut open);
                    let lost = lost(&f);
                    let (advance, record) =
                        (self.segment(program, f.advance), self.segment(program, f.record));
                    steps.push(Step::Forward(Sweep {
                        id: f.id,
                        length: f.length,
                        piece: (f.from, f.to),
                        carried: f.carried,
                        lost,
                        kept: f.kept,
                        advance,
                        record,
                        hint: f.schedule,
                    }));
                }
                Stmt::Backward(b) => {
                    self.close(program, &mut steps, &mut open);
                    let reverse = self.block(program, b.reverse);
                    steps.push(Step::Backward(b.id, reverse));
                }
                Stmt::Loop(Loop { kind: LoopKind::For { var, from, to }, body, .. }) => {
                    let [from, to] = [from, to].map(|v| keep(program, &mut open, v));
                    self.close(program, &mut steps, &mut open);
                    let body = self.block(program, body);
                    steps.push(Step::For { var, from, to, body });
                }
                Stmt::If(branch) => {
                    let condition = keep(program, &mut open, branch.condition);
                    self.close(program, &mut steps, &mut open);
                    let then = self.block(program, branch.then);
                    let otherwise = self.block(program, branch.otherwise);
                    steps.push(Step::If { condition, then, otherwise });
                }
                Stmt::Host(region, again) => {
                    self.close(program, &mut steps, &mut open);
                    steps.push(Step::Host(region, again));
                }
                // Autodiff puts sweeps nowhere else.
                other => open.push(other),
            }
        }
        self.close(program, &mut steps, &mut open);
        steps
    }

    fn segment(&mut self, program: &Program, block: Block) -> usize {
        self.pushes.push(pushes(program, &block, None));
        self.segments.push(block);
        self.segments.len() - 1
    }

    fn close(&mut self, program: &Program, steps: &mut Vec<Step>, open: &mut Block) {
        if !open.is_empty() {
            let segment = self.segment(program, std::mem::take(open));
            steps.push(Step::Run(segment));
        }
    }
}

/// What the forward half of a loop writes and neither carries nor keeps.
fn lost(f: &Forward) -> Vec<ArrayId> {
    let mut lost = written(&f.advance);
    lost.extend(written(&f.record));
    lost.sort_unstable();
    lost.dedup();
    lost.retain(|array| !f.carried.contains(array) && !f.kept.contains(array));
    lost
}

fn has_sweeps(stmt: &Stmt) -> bool {
    let mut found = false;
    walk_program_level(std::slice::from_ref(stmt), &mut |s| {
        found |= matches!(s, Stmt::Forward(_) | Stmt::Backward(_) | Stmt::Host(..));
    });
    found
}

/// Lets the segment that ends here keep a value where the host finds it.
fn keep(program: &mut Program, open: &mut Block, v: ValueId) -> LocalId {
    let local = LocalId::from_index(program.locals.len());
    program.locals.push(LocalDecl { name: format!("host{}", local.index()), ty: program.ty(v) });
    open.push(Stmt::Declare(local, v));
    local
}
