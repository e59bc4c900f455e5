//! The steps from a program to its gradient, in order.

use std::collections::{BTreeMap, HashMap};

use ebbtide_ir::{Program, Stmt, SwappedShapes, verify, walk_program_level};

use crate::analysis::activity::Activity;
use crate::analysis::names::Names;
use crate::analysis::needed::needed_arrays;
use crate::analysis::operation_rules::{Wanted, derivatives};
use crate::error::Error;
use crate::generate::adjoint::Maker;
use crate::generate::extremes::Extremes;
use crate::generate::on_copies::on_copies;
use crate::generate::par::join_gather::Spares;
use crate::gradient::{Gradient, Inner};
use crate::normalize::custom_calls::refuse_yields;
use crate::normalize::prepare::prepare;
use crate::normalize::visits::count_visits;
use crate::plan::scratch_arrays::Kept;
use crate::plan::shadow_state::Shadows;
use crate::request::{Mode, Optimisation, Request};

/// The gradient of a program.
pub fn gradient(source: &Program, request: &Request, inner: Inner) -> Result<Gradient, Error> {
    if request.mode == Mode::Values {
        return on_copies(source, &request.values);
    }
    let mut source = prepare(source);
    let hosted = count_visits(&mut source);
    let source = &source;
    let facts = verify(source)?;
    let names = Names::find(source, request)?;
    let activity = Activity::of(source, &names.arrays, &names.scalars, &[names.of]);
    names.check(source, request, &activity)?;
    refuse_yields(source)?;
    let derivatives = derivatives(source, &activity, Wanted::Adjoint)?;
    let uses = |optimisation| !request.without.contains(&optimisation);
    let mut needed = needed_arrays((source, &facts.affines), &activity, &derivatives, &hosted);
    needed.everything = !uses(Optimisation::RecordWhatIsRead);
    // One spare serves all arrays that are swapped with one another: they must be of one shape, and stay so.
    let one_shape = hosted.is_empty() && source.swapped == SwappedShapes::Equal;
    let mut maker = Maker {
        source,
        affines: &facts.affines,
        pars: &facts.pars,
        activity: &activity,
        needed: &needed,
        position: 0,
        shadows: Shadows::default(),
        extremes: Extremes::new(),
        derivatives: &derivatives,
        scratch: BTreeMap::new(),
        held: BTreeMap::new(),
        env: HashMap::new(),
        kept: HashMap::new(),
        spares: (one_shape && uses(Optimisation::JoinGather)).then(Spares::default),
        without: &request.without,
        handed: Kept::default(),
        copies: BTreeMap::new(),
        nested: false,
        inner,
        pieces: BTreeMap::new(),
        pushes: BTreeMap::new(),
        dead_shadows: request.dead_shadows,
    };
    let mut gradient = maker.gradient(request, &names)?;
    gradient.hosted = hosted;
    Ok(gradient)
}

/// Has the program loops inside loops, or inside branches, so that [`Inner`] makes a difference?
pub fn has_inner_loops(source: &Program, request: &Request) -> bool {
    if request.mode == Mode::Values {
        return false;
    }
    let mut found = false;
    for stmt in &prepare(source).body {
        let mut loops = 0;
        walk_program_level(std::slice::from_ref(stmt), &mut |s| {
            loops += usize::from(matches!(s, Stmt::Loop(_)))
        });
        found |= loops > usize::from(matches!(stmt, Stmt::Loop(_)));
    }
    found
}

/// The gradient of a program as it is shown: with the tapes of inner loops kept, or swept where that cannot be.
pub fn gradient_to_show(source: &Program, request: &Request) -> Result<Gradient, Error> {
    gradient(source, request, Inner::Recorded).or_else(|_| gradient(source, request, Inner::Swept))
}
