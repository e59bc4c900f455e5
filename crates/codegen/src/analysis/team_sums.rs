//! Which parallel loops several threads of a grid take together, an iteration at a time. Input: a parallel loop; output: yes
//! or no.
//!
//! Iterations with sums over a range are few and long: sixteen threads take the lanes of a leaf of a sum (law 8) side by side, and
//! several times sixteen take several leaves where iterations are few. Everything else of the iteration they do alike, and one of
//! them stores.

use ebbtide_ir::{Facts, Par, Program, Sharing, Stmt, walk};

/// Has the loop sums inside its iterations, and do its iterations store into elements of their own alone?
pub(crate) fn suits_teams(program: &Program, facts: &Facts, par: &Par) -> bool {
    let Some(facts) = facts.pars.get(&par.id) else { return false };
    let (mut sums, mut own) = (false, true);
    walk(&par.body, &mut |stmt| match stmt {
        Stmt::Loop(l) => sums |= !l.sums.is_empty(),
        Stmt::Update(_, s) => own &= !matches!(facts.of(s), Sharing::Scatter | Sharing::Reduce),
        Stmt::Claim(_) => own = false,
        Stmt::If(branch) => own &= program.print(branch).is_none(),
        _ => {}
    });
    sums && own
}
