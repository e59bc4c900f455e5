//! Transformations: a program in, a program out that means the same.
//!
//! All of them leave the program level as it was written, but for pure values that they bring there: what a run
//! holds between statements (and so what a yield carries) does not depend on whether they ran. Identifiers keep
//! their meaning; what is no longer needed stays in the tables, unused. Operands stay before their uses in the
//! table of values.
//!
//! [`simplify`] is what devices run before they print code. It changes no rounding and no error. [`fuse_multiply_add`]
//! changes roundings and is not part of it: it runs once, on the source, before a program is differentiated.

mod common;
mod dead;
mod fma;
mod fold;
mod fuse;
mod hoist;

use crate::analysis::affine::Affines;
use crate::analysis::dependence::{Analysis, Findings, Trust};
use crate::syntax::*;
use crate::verify::Facts;

pub use common::share_common_values;
pub use dead::drop_dead_code;
pub use fma::fuse_multiply_add;
pub use fold::fold_constants;
pub use fuse::fuse_parallel_loops;
pub use hoist::hoist_invariant_values;

/// A transformation.
pub type Pass = fn(&Program) -> Program;

/// The transformations of [`simplify`], in order.
pub const PIPELINE: [(&str, Pass); 6] = [
    ("fold constants", fold_constants),
    ("fuse parallel loops", fuse_parallel_loops),
    ("share common values", share_common_values),
    ("fold constants", fold_constants),
    ("hoist invariant values", hoist_invariant_values),
    ("drop dead code", drop_dead_code),
];

/// Every transformation, by name: what case files and people who look for a broken one call it by.
pub const ALL: [(&str, Pass); 7] = [
    ("fold constants", fold_constants),
    ("fuse parallel loops", fuse_parallel_loops),
    ("share common values", share_common_values),
    ("hoist invariant values", hoist_invariant_values),
    ("drop dead code", drop_dead_code),
    ("fuse multiply-add", fuse_multiply_add),
    ("simplify", simplify),
];

/// The transformation with this name.
pub fn by_name(name: &str) -> Option<Pass> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, pass)| *pass)
}

/// The program as devices want it: the same roundings, the same errors, less work.
///
/// ```
/// use ebbtide_ir::{Access, Binary, Builder, Literal, Type, passes};
///
/// let mut b = Builder::new("scale");
/// let x = b.array("x", Type::F64, 1, Access::Write);
/// let a = b.scalar("a", Type::F64);
/// let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
/// let i = b.begin_par(&[("i", zero, n)])[0];
/// let factor = b.binary(Binary::Mul, a, a);
/// b.name(factor, "factor");
/// let v = b.load(x, &[i]);
/// let v = b.binary(Binary::Mul, v, factor);
/// b.store(x, &[i], v);
/// b.end_par();
/// let program = passes::simplify(&b.finish()?);
/// let text = program.to_string();
/// assert!(text.find("let factor = a * a;") < text.find("for i in par"));
/// # Ok::<(), ebbtide_ir::Error>(())
/// ```
pub fn simplify(program: &Program) -> Program {
    PIPELINE.iter().fold(program.clone(), |before, (name, pass)| {
        let after = pass(&before);
        if cfg!(debug_assertions) && crate::verify(&before).is_ok() {
            debug_assert!(
                crate::verify(&after).is_ok(),
                "`{name}` broke the law: {:?}\n{before}\n{after}",
                crate::verify(&after).err()
            );
        }
        after
    })
}

/// Blocks of one program, simplified, and what the verifier would find out about them.
#[derive(Debug)]
pub struct Simplified {
    /// The tables that the blocks refer to; its body is the one before.
    pub program: Program,
    /// The blocks, in the order given.
    pub segments: Vec<Block>,
    /// What is known of their loops.
    pub facts: Facts,
}

/// Simplifies blocks of a verified program that run apart, one after the other: law 1 says that a value is computed in
/// one place, so what is right for one block touches no other. An error says which loop a pass made unlawful; then the
/// blocks are as good as they were.
pub fn simplify_segments(program: &Program, segments: &[&Block]) -> Result<Simplified, Flaw> {
    let whole = &program.body;
    let mut program = Program { body: Block::new(), ..program.clone() };
    let mut simplified = Vec::new();
    for segment in segments {
        program.body = (*segment).clone();
        program = PIPELINE.iter().fold(program, |before, (_, pass)| pass(&before));
        simplified.push(std::mem::take(&mut program.body));
    }
    // Swaps anywhere in the program say which shapes are equal.
    program.body.clone_from(whole);
    let affines = Affines::of(&program);
    let mut analysis = Analysis::new(&program, &affines, whole);
    let mut findings = Findings::default();
    for segment in &simplified {
        walk(segment, &mut |stmt| {
            if let Stmt::Par(par) = stmt {
                analysis.par(par, Trust::Proved, &mut findings);
            }
        });
    }
    drop(analysis);
    let (pars, flaw) = (findings.pars, findings.flaws.pop());
    debug_assert!(flaw.is_none(), "a pass made a race: {flaw:?}");
    match flaw {
        None => Ok(Simplified { program, segments: simplified, facts: Facts { affines, pars } }),
        Some(flaw) => Err(flaw),
    }
}

/// Replaces the values that a statement itself uses (not those used inside its blocks).
fn replace_uses(stmt: &mut Stmt, with: &dyn Fn(ValueId) -> ValueId) {
    match stmt {
        Stmt::Declare(_, v) | Stmt::Set(_, v) | Stmt::Fill(_, v, _) => *v = with(*v),
        Stmt::Store(s) | Stmt::Update(_, s) => {
            s.index = s.index.map(with);
            s.value = with(s.value);
        }
        Stmt::Claim(claim) => claim.index = claim.index.map(with),
        Stmt::Library(call) => {
            for bound in &mut call.arguments {
                if let Bound::Scalar(v) = bound {
                    *v = with(*v);
                }
            }
        }
        Stmt::If(branch) => branch.condition = with(branch.condition),
        Stmt::Loop(l) => {
            match &mut l.kind {
                LoopKind::For { from, to, .. } => (*from, *to) = (with(*from), with(*to)),
                LoopKind::While { condition, .. } => *condition = with(*condition),
                LoopKind::Forever => {}
            }
            l.until = l.until.map(with);
        }
        Stmt::Par(par) => {
            for range in &mut par.ranges {
                (range.from, range.to) = (with(range.from), with(range.to));
            }
            for requirement in &mut par.requires {
                requirement.condition = with(requirement.condition);
            }
        }
        _ => {}
    }
}

/// Replaces values everywhere inside a block: in statements and in what they compute.
fn replace_inside(program: &mut Program, block: &mut Block, with: &dyn Fn(ValueId) -> ValueId) {
    for stmt in block {
        if let Stmt::Let(v) = stmt {
            let op = program.op(*v).map(with);
            program.values[v.index()].op = op;
        }
        replace_uses(stmt, with);
        stmt.blocks_mut().for_each(|inner| replace_inside(program, inner, with));
    }
}

/// Calls `change` with every parallel loop of a block.
fn for_each_par(block: &mut Block, change: &mut dyn FnMut(&mut Par)) {
    for stmt in block {
        match stmt {
            Stmt::Par(par) => change(par),
            _ => stmt.blocks_mut().for_each(|inner| for_each_par(inner, change)),
        }
    }
}
