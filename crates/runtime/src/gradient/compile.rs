//! One gradient program, compiled when it is first wanted.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use ebbtide_autodiff::{Hosted, Inner, Pushes, Request};
use ebbtide_ir::{Access, ArrayId, Block, Facts, Literal, LoopId, Program, RegionId, Role};

use crate::device::frame::View;
use crate::device::frame::extents::extents;
use crate::device::{Device, Executable};
use crate::error::{Error, Result};
use crate::gradient::given_data::arrays_that_count;
use crate::gradient::guesses::Guesses;
use crate::gradient::last_needs::LastNeeds;
use crate::gradient::lent::LentArrays;
use crate::gradient::steps::Steps;
use crate::launch::undone_arrays;
use ebbtide_autodiff as autodiff;

/// One gradient program.
pub(crate) struct Variant {
    pub inner: Inner,
    /// The program as written.
    pub source: Arc<Program>,
    pub program: Arc<Program>,
    pub facts: Arc<Facts>,
    /// The pairs of arrays that the source swaps.
    pub swaps: Vec<(ArrayId, ArrayId)>,
    pub last_needs: LastNeeds,
    /// What is expected of loops whose iterations nobody can count.
    pub guesses: Guesses,
    pub steps: Steps,
    /// By loop: what an iteration pushes.
    pub pushes: BTreeMap<LoopId, Vec<Pushes>>,
    pub pushes_outside: Vec<Pushes>,
    /// The regions of the source that yield.
    pub hosted: BTreeMap<RegionId, Hosted>,
    /// Which region of the source each region of the program is a copy of.
    pub copies: BTreeMap<RegionId, RegionId>,
    pub shadows: BTreeMap<ArrayId, ArrayId>,
    /// Of a tangent program: the tangent of each array that has one.
    pub tangents: BTreeMap<ArrayId, ArrayId>,
    /// What hangs on the shapes of arrays that the host may change.
    pub lent: LentArrays,
    /// The arrays of which some region keeps a copy.
    pub undone: Vec<ArrayId>,
    /// The temporaries and the results: when a launch begins, they hold nothing.
    pub empty: Vec<ArrayId>,
    pub device: Device,
    /// Compiled when it is first wanted.
    pub executable: OnceLock<Arc<dyn Executable>>,
}

/// The arrays that have tangents, and these, by the names in the request.
fn tangents(source: &Program, request: &Request) -> BTreeMap<ArrayId, ArrayId> {
    let pair =
        |(array, tangent): (&String, &String)| Some((source.find_array(array)?, source.find_array(tangent)?));
    request.tangents.iter().filter_map(pair).collect()
}

impl Variant {
    /// The gradient programs of a source program, in order of preference.
    pub fn all(source: &Program, request: &Request, device: &Device) -> Result<Arc<[Variant]>> {
        let recorded = Variant::new(source, request, Inner::Recorded, device);
        if !autodiff::has_inner_loops(source, request) {
            return Ok(Arc::new([recorded?]));
        }
        let swept = Variant::new(source, request, Inner::Swept, device)?;
        // Where a loop puts whole arrays on its tape and nobody can say how often, its tape cannot be part of an iteration's.
        Ok(recorded.ok().into_iter().chain([swept]).collect())
    }

    /// A pair of these arrays that differ in shape in a launch with these arguments.
    pub fn unequal(
        &self,
        pairs: &[(ArrayId, ArrayId)],
        views: &[View],
        scalars: &[Literal],
    ) -> Result<Option<(ArrayId, ArrayId)>> {
        let shape = |a: ArrayId| match self.program.array(a).role {
            Role::Temp(_) => extents(&self.program, a, views, scalars),
            _ => {
                Ok(views[a.index()].shape[..self.program.array(a).rank].iter().map(|n| *n as usize).collect())
            }
        };
        for (a, b) in pairs {
            if shape(*a)? != shape(*b)? {
                return Ok(Some((*a, *b)));
            }
        }
        Ok(None)
    }

    fn new(source: &Program, request: &Request, inner: Inner, device: &Device) -> Result<Variant> {
        let gradient = autodiff::unverified_gradient(source, request, inner)?;
        let mut program = gradient.program;
        let steps = Steps::cut(&mut program);
        let undone = undone_arrays(&program);
        let facts = autodiff::verify_generated(&program)?;
        let empty =
            |a: &ArrayId| matches!(program.array(*a).role, Role::Temp(_) | Role::Param(Access::Write));
        let empty = program.array_ids().filter(empty).collect();
        let segments = steps.pushes.iter().flatten().chain(&gradient.pushes_outside);
        let all = gradient.pushes.values().flatten().chain(segments);
        let yields = !gradient.hosted.is_empty();
        let lent = if yields { LentArrays::of(source, &program) } else { LentArrays::default() };
        Ok(Variant {
            inner,
            lent,
            swaps: source.swaps(),
            last_needs: LastNeeds::of(&program, arrays_that_count(&program, all)),
            guesses: Guesses::default(),
            source: Arc::new(source.clone()),
            program: Arc::new(program),
            facts: Arc::new(facts),
            steps,
            pushes: gradient.pushes,
            pushes_outside: gradient.pushes_outside,
            hosted: gradient.hosted,
            copies: gradient.copies,
            shadows: gradient.shadows,
            tangents: tangents(source, request),
            undone,
            empty,
            device: device.clone(),
            executable: OnceLock::new(),
        })
    }

    pub fn executable(&self, device: &Device) -> Result<&Arc<dyn Executable>> {
        if let Some(compiled) = self.executable.get() {
            return Ok(compiled);
        }
        let _span = tracing::debug_span!("compile", program = self.program.name).entered();
        let segments: Vec<&Block> = self.steps.segments.iter().collect();
        let compiled = device.backend().compile(&self.program, &self.facts, &segments)?;
        Ok(self.executable.get_or_init(|| compiled))
    }

    pub fn lost(&self, message: &str) -> Error {
        Error::Plan { program: self.program.name.clone(), message: message.to_string() }
    }

    /// What no program and no caller can cause: a flaw of Ebbtide.
    pub fn internal(&self, message: &str) -> Error {
        self.lost(&format!("internal error, please report it: {message}"))
    }
}
