//! The steps from a program to its derivatives, in order.
//!
//! Each step is a function in the module of its name; `EBBTIDE_DUMP=adjoint` prints the program after each of them to
//! standard error.

use ebbtide_ir::parts::has_collectives;
use ebbtide_ir::{Affines, Program, Stmt, SwappedShapes, verify, walk_program_level};

use crate::analysis::activity::Activity;
use crate::analysis::loop_length::has_known_length;
use crate::analysis::names::Names;
use crate::analysis::needed::needed_arrays;
use crate::analysis::operation_rules::{Wanted, derivatives};
use crate::error::{Error, verify_generated};
use crate::generate::adjoint::AdjointBuilder;
use crate::generate::on_copies::on_copies;
use crate::generate::par::join_gather::ShadowDoubleBuffer;
use crate::generate::tangent::{Tangent, build_tangent};
use crate::gradient::{Gradient, Inner, pushes};
use crate::normalize::custom_calls::{open, refuse_yields};
use crate::normalize::number_apart::number_apart;
use crate::normalize::prepare::prepare;
use crate::normalize::visits::count_visits;
use crate::plan::killed_boxes::KilledBoxes;
use crate::plan::scratch_arrays::Domain;
use crate::plan::swept_loops::swept_loops;
use crate::plan::tape_plan::{TapePlan, Tapes};
use crate::request::{Mode, Optimisation, Request};

/// A step that changes a derivative program in place.
pub type Pass = fn(&mut Program);

/// What a gradient program goes through once it is written.
const FINISH_GRADIENT: [(&str, Pass); 2] =
    [("put called programs back", open), ("number values apart", number_apart)];

/// What a tangent program goes through once it is written.
const FINISH_TANGENT: [(&str, Pass); 1] = [("put called programs back", open)];

/// The steps that need nothing but the program, by the names under which `EBBTIDE_DUMP` shows what they leave.
pub const STEPS: [(&str, Pass); 4] = [
    ("prepare", |program| *program = prepare(program)),
    ("count visits", |program| drop(count_visits(program))),
    FINISH_GRADIENT[0],
    FINISH_GRADIENT[1],
];

/// The gradient of a program.
pub fn gradient(source: &Program, request: &Request, inner: Inner) -> Result<Gradient, Error> {
    let gradient = unverified_gradient(source, request, inner)?;
    verify_generated(&gradient.program)?;
    Ok(gradient)
}

/// The gradient of a program, for whoever changes it first, and then calls [`verify_generated`] for it: that is a good part of the
/// time that a gradient takes to build.
pub fn unverified_gradient(source: &Program, request: &Request, inner: Inner) -> Result<Gradient, Error> {
    dump("source", source);
    let gradient = match request.mode {
        Mode::Adjoint => adjoint(source, request, inner)?,
        Mode::Values => on_copies(source, &request.values)?,
    };
    let program = finish(gradient.program, &FINISH_GRADIENT);
    let pushes_outside =
        if request.mode == Mode::Values { Vec::new() } else { pushes(&program, &program.body, None) };
    Ok(Gradient { program, pushes_outside, ..gradient })
}

/// Normalises the program, finds the facts, plans the tape, and writes both halves.
fn adjoint(source: &Program, request: &Request, inner: Inner) -> Result<Gradient, Error> {
    let mut source = prepare(source);
    dump("prepare", &source);
    let hosted = count_visits(&mut source);
    dump("count visits", &source);
    let source = &source;
    let facts = verify(source)?;
    let names = Names::find(source, request)?;
    let activity = Activity::of(source, &names.arrays, &names.scalars, &[names.of]);
    names.check(source, request, &activity)?;
    refuse_yields(source)?;
    let derivatives = derivatives(source, &activity, Wanted::Adjoint)?;
    let uses = |optimisation| !request.without.contains(&optimisation);
    let mut needed = needed_arrays((source, &facts.affines), &activity, &derivatives, &hosted);
    if uses(Optimisation::ReadAgain) {
        needed.read_again(source, &facts.affines);
    }
    needed.everything = !uses(Optimisation::RecordWhatIsRead);
    let mut swept = swept_loops((source, &facts.affines), inner);
    // Where the host may stop a run, and where others run it too, it cannot begin again.
    let begins_again = inner == Inner::Recorded && hosted.is_empty() && !has_collectives(source);
    let tapes = if begins_again { Tapes::Guessed } else { Tapes::Counted };
    let plan = loop {
        let mut needed = needed.clone();
        needed.run_again(source, &swept);
        let plan = TapePlan::new((source, &facts), &activity, needed, &request.without, (&swept, tapes));
        // Where a loop puts whole arrays on its tape and nobody can say how often, that tape cannot be part of another.
        let unbounded = plan.unbounded(source);
        if unbounded.is_empty() {
            break plan;
        }
        swept.extend(unbounded);
    };
    // One buffer serves all arrays that are swapped with one another: they must be of one shape, and stay so.
    let one_shape = hosted.is_empty() && source.swapped == SwappedShapes::Equal;
    let buffers = (one_shape && uses(Optimisation::JoinGather)).then(ShadowDoubleBuffer::default);
    // Boxes of shadows keep their places for the same reason.
    let lazy = one_shape && uses(Optimisation::LazyShadows) && uses(Optimisation::LazyBoxes);
    let boxes =
        if lazy { KilledBoxes::new(source, &facts.affines, &activity) } else { KilledBoxes::default() };
    let known = (&activity, &derivatives);
    let mut builder = AdjointBuilder::new((source, &facts), known, &plan, request, (buffers, boxes));
    let gradient = builder.gradient(request, &names)?;
    dump("adjoint", &gradient.program);
    Ok(Gradient { hosted, ..gradient })
}

/// The tangent of a program along a direction of the parameters `wrt`.
pub fn tangent(source: &Program, wrt: &[String]) -> Result<Tangent, Error> {
    dump("source", source);
    let source = prepare(source);
    dump("prepare", &source);
    verify(&source)?;
    let tangent = build_tangent(&source, wrt)?;
    dump("tangent", &tangent.program);
    let program = finish(tangent.program, &FINISH_TANGENT);
    verify_generated(&program)?;
    Ok(Tangent { program, ..tangent })
}

/// Runs passes.
fn finish(mut program: Program, passes: &[(&str, Pass)]) -> Program {
    for (name, pass) in passes {
        pass(&mut program);
        dump(name, &program);
    }
    program.number_writes();
    program
}

/// Prints a program for whoever looks for the step that broke it.
fn dump(step: &str, program: &Program) {
    if std::env::var_os("EBBTIDE_DUMP").is_some_and(|what| what == "adjoint") {
        eprintln!("// {step}\n{program}");
    }
}

/// Has the program loops inside loops, or inside branches, or such as nobody can count, or parallel ones in loops whose bounds are
/// data, so that [`Inner`] makes a difference?
pub fn has_inner_loops(source: &Program, request: &Request) -> bool {
    if request.mode == Mode::Values {
        return false;
    }
    let mut found = false;
    let source = prepare(source);
    let affines = Affines::of(&source);
    for stmt in &source.body {
        let mut loops = 0;
        walk_program_level(std::slice::from_ref(stmt), &mut |s| match s {
            Stmt::Loop(_) => loops += 1,
            Stmt::Par(par) => found |= Domain::of(&source, &affines, &par.ranges).is_none(),
            _ => {}
        });
        found |= loops > usize::from(matches!(stmt, Stmt::Loop(l) if has_known_length(&source, l)));
    }
    found
}

/// The gradient of a program as it is shown: with the tapes of inner loops kept, or swept where that cannot be.
pub fn gradient_to_show(source: &Program, request: &Request) -> Result<Gradient, Error> {
    gradient(source, request, Inner::Recorded).or_else(|_| gradient(source, request, Inner::Swept))
}
