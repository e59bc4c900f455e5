//! What is known of the number of iterations of a loop.

use ebbtide_ir::{Loop, LoopKind, Program, depends_on_arguments_alone};

/// Does a loop count its iterations, between bounds that are known when it begins?
pub(crate) fn counts(l: &Loop) -> bool {
    matches!(l.kind, LoopKind::For { .. }) && l.until.is_none()
}

/// Is the number of iterations known before the program starts?
pub(crate) fn has_known_length(source: &Program, l: &Loop) -> bool {
    let known = |v| depends_on_arguments_alone(source, v);
    matches!(l.kind, LoopKind::For { from, to, .. } if counts(l) && known(from) && known(to))
}
