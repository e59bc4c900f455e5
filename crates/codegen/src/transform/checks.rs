//! What is done about elements that do not exist. Input: a body whose elements are checked at once; output: one that checks them
//! later, elsewhere or not at all.

use crate::kernel::name::{Fresh, Variable};
use crate::kernel::stmt::{Body, Check, Fault, Stmt, visit_mut};

/// The body without checks.
///
/// Legal where a proof says that every index is in bounds (`analysis::bounds_proof`).
pub(crate) fn without_checks(mut body: Body) -> Body {
    set_checks(&mut body, &mut || Check::Proved);
    body
}

/// The body whose faults share a place behind the loop: where it is seldom run, what it does there costs what is often run no
/// registers.
pub(crate) fn faults_aside(mut body: Body) -> Body {
    set_checks(&mut body, &mut || Check::Aside);
    body
}

/// The body whose faults wait for the end of the iteration: elements that do not exist read as one and are not written, so
/// that nothing waits for a check. `None` where there is nothing to check, and where the iteration has loops, which may run for
/// ever on such elements, or takes elements for itself.
pub(crate) fn faults_at_end(body: &Body, fresh: &mut Fresh) -> Option<Body> {
    let mut changed = vec![Stmt::DeferFaults];
    changed.extend(body.iter().cloned());
    changed.push(Stmt::RaiseDeferred);
    let mut legal = true;
    visit_mut(&mut changed, &mut |stmt| match stmt {
        Stmt::Loop(_) | Stmt::Claim { .. } => legal = false,
        Stmt::Fault { kind, .. } => {
            if let Fault::Division(v) = *kind {
                *kind = Fault::DivisionAfterDeferred(v);
            }
        }
        _ => {}
    });
    let mut checks = false;
    set_checks(&mut changed, &mut || {
        checks = true;
        Check::Deferred(Variable::Exists(fresh.next()).into())
    });
    (legal && checks).then_some(changed)
}

/// Sets the checks that are made at once.
fn set_checks(body: &mut Body, check: &mut dyn FnMut() -> Check) {
    visit_mut(body, &mut |stmt| {
        if let Some(element) = stmt.element_mut()
            && element.check == Check::AtOnce
        {
            element.check = check();
        }
    });
}
