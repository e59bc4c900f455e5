//! Which gradient program a launch runs, and under which plan.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use ebbtide_autodiff::Inner;
use ebbtide_ir::parts::has_collectives;
use ebbtide_ir::{self as ir, Literal, SwappedShapes};

use crate::array::arguments::{Arg, bind_first};
use crate::device::frame::View;
use crate::error::{Error, Result};
use crate::gradient::CompiledGradient;
use crate::gradient::compile::Variant;
use crate::gradient::last_needs::Needs;
use crate::gradient::parts;
use crate::gradient::plan::{Budget, Plan};
use crate::gradient::planner::{Found, Need, Schedules, plan};
use crate::gradient::tiers::{Reach, Tiers};
use crate::launch::parts::together;
use crate::launch::unequal_shapes;
use crate::size::bytes;

/// The shapes of parameters, by name, where they are not those of the launch.
pub(crate) type ShapesByName = BTreeMap<String, Vec<usize>>;

/// Plans made before: planning is worth remembering, since most launches have the shapes of the last one.
pub(super) type Plans = Arc<Mutex<Vec<(Shapes, Vec<Needs>, Budget, Tiers, Chosen)>>>;

/// What a gradient program relies on: how swapped arrays compare, and whether others are alike.
type Shapes = (SwappedShapes, bool);

/// As many plans are remembered.
const REMEMBERED: usize = 16;

/// A program that relies on parameters that look alike being equal in shape. Where the host may change one of them in a run, and
/// where the parts of a grid have parts of them, none is relied on: all must run the same program.
pub(super) fn with_alike_shapes(source: &ir::Program) -> ir::Program {
    let alone = !source.yields() && !has_collectives(source);
    let alike = if alone { ir::alike_shapes(source) } else { Vec::new() };
    ir::Program { alike, ..source.clone() }
}

/// The gradient program to run, and how.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub variant: usize,
    pub plan: Plan,
    pub schedules: Schedules,
}

impl CompiledGradient {
    /// The gradient programs for arrays of these shapes: the usual ones rely on arrays that are swapped, or that look alike, being
    /// equal in shape.
    pub(super) fn variants_for(&self, args: &[Arg<'_>]) -> Result<&Arc<[Variant]>> {
        let usual = &self.variants[0];
        let (views, scalars) = bind_first(&usual.program, &self.device, args)?;
        if let Some(pair) = usual.unequal(&usual.swaps, &views, &scalars)? {
            if let Some(variants) = self.unequal.get() {
                return Ok(variants);
            }
            let source = usual.source.with_unknown_shapes();
            if let Err(error) = ir::verify(&source) {
                return Err(unequal_shapes(&source, pair, &error));
            }
            let variants = Variant::all(&source, &self.request, &self.device)?;
            return Ok(self.unequal.get_or_init(|| variants));
        }
        if usual.unequal(&usual.source.alike, &views, &scalars)?.is_none() {
            return Ok(&self.variants);
        }
        if let Some(variants) = self.unlike.get() {
            return Ok(variants);
        }
        let source = ir::Program { alike: Vec::new(), ..(*usual.source).clone() };
        let variants = Variant::all(&source, &self.request, &self.device)?;
        Ok(self.unlike.get_or_init(|| variants))
    }

    /// A result in which cotangents are summed must have the shape of its array: no copy at the end would find that it has not.
    pub(super) fn check_results(&self, args: &[Arg<'_>]) -> Result<()> {
        let variant = &self.variants[0];
        let (views, _) = bind_first(&variant.program, &self.device, args)?;
        for name in &self.request.wrt {
            let summed = variant.source.find_array(name).and_then(|a| variant.shadows.get(&a));
            let Some((given, result)) = variant.program.find_array(name).zip(summed) else { continue };
            let decl = variant.program.array(*result);
            let shape = |a: ir::ArrayId| -> Vec<usize> {
                views[a.index()].shape[..decl.rank].iter().map(|n| *n as usize).collect()
            };
            if matches!(decl.role, ir::Role::Param(_)) && shape(given) != shape(*result) {
                return Err(Error::ShapesDiffer { left: shape(given), right: shape(*result) });
            }
        }
        Ok(())
    }

    /// The arguments, with parameters in these shapes.
    pub(super) fn bound(
        &self,
        variant: &Variant,
        args: &[Arg<'_>],
        shapes: &ShapesByName,
    ) -> Result<(Vec<View>, Vec<Literal>)> {
        let (mut views, scalars) = bind_first(&variant.program, &self.device, args)?;
        for (name, shape) in shapes {
            if let Some(array) = variant.program.find_array(name) {
                views[array.index()].shape = View::new(std::ptr::null_mut(), shape, 0).shape;
            }
        }
        Ok((views, scalars))
    }

    /// The gradient program whose plan is the cheapest, or the only one that will do.
    pub(super) fn choose_among(
        &self,
        variants: &[Variant],
        args: &[Arg<'_>],
        shapes: &ShapesByName,
        only: Option<usize>,
    ) -> Result<Chosen> {
        let only = parts::agree_variant(self.program(), only)?;
        let mut needs: Vec<Needs> = Vec::new();
        let mut of_variant = HashMap::new();
        let mut failed = None;
        for (k, variant) in variants.iter().enumerate().filter(|(k, _)| only.is_none_or(|only| only == *k)) {
            let (views, scalars) = self.bound(variant, args, shapes)?;
            match variant.needs(&views, &scalars) {
                Ok(found) => {
                    of_variant.insert(needs.len(), k);
                    needs.push(found);
                }
                Err(error) => failed = Some(error),
            }
        }
        // All parts of a grid agree before any of them looks at what it remembers.
        let mut given = self.budget;
        let mut agreed = None;
        if together(self.program()).is_some() {
            let on_device = self.device.backend().memory().is_some();
            let mut free = parts::share(self.program(), self.device.free_bytes(), on_device);
            parts::agree(self.program(), &mut needs, &mut given, &mut free)?;
            let reach = self.reach(&needs, self.whole_budget(given)?, free)?;
            agreed = Some((free, parts::agree_reach(self.program(), reach)?));
        }
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let relied: Shapes = (variants[0].source.swapped, !variants[0].source.alike.is_empty());
        let remembered = plans
            .iter()
            .find(|p| (p.0, &p.1, p.2, &p.3) == (relied, &needs, given, &self.tiers))
            .map(|p| p.4.clone());
        if let (Some(known), None) = (remembered, only) {
            return Ok(known);
        }
        let _span = tracing::debug_span!("plan", program = self.program().name).entered();
        let budget = self.whole_budget(given)?;
        let (free, reach) = match agreed {
            Some(agreed) => agreed,
            None => {
                let free = self.device.free_bytes();
                (free, self.reach(&needs, budget, free)?)
            }
        };
        let plan_for = |budget| self.cheapest(variants, &needs, &of_variant, (budget, free, reach.as_ref()));
        let best = match plan_for(budget) {
            // Half of what is free is what we take unasked; where nothing works with so little, what is free may be taken.
            Err(Error::BudgetTooSmall { program, minimum, .. })
                if budget == Budget::Auto && minimum <= free =>
            {
                crate::warn(&format!(
                    "gradient `{program}`: no plan works within half of what is free: planning for {}",
                    bytes(minimum)
                ));
                plan_for(Budget::Bytes(minimum))
            }
            found => found,
        };
        let (variant, mut found) = match best {
            Ok(found) => found,
            Err(error @ Error::BudgetTooSmall { .. }) => return Err(error),
            Err(error) => return Err(failed.unwrap_or(error)),
        };
        if let Some((first, fixed)) = needs.first()
            && let Ok(all) = plan(&self.program().name, first, *fixed, Budget::StoreAll, free, None)
        {
            found.plan.store_all_bytes = all.plan.store_all_bytes;
        }
        found.plan.beyond = (self.tiers.host, self.tiers.disk.as_ref().map(|(_, bytes)| *bytes));
        let chosen = Chosen { variant, plan: found.plan, schedules: found.schedules };
        if only.is_none() {
            if plans.len() >= REMEMBERED {
                plans.remove(0);
            }
            plans.push((relied, needs, given, self.tiers.clone(), chosen.clone()));
        }
        Ok(chosen)
    }

    /// The cheapest plan under a budget, and the variant that it is for.
    fn cheapest(
        &self,
        variants: &[Variant],
        needs: &[Needs],
        of_variant: &HashMap<usize, usize>,
        (budget, free, reach): (Budget, u64, Option<&Reach>),
    ) -> Result<(usize, Found)> {
        let mut best: Option<(usize, Found)> = None;
        let mut failed = None;
        for (at, (needs, fixed)) in needs.iter().enumerate() {
            match plan(&self.program().name, needs, *fixed, budget, free, reach) {
                Ok(found) => {
                    let k = of_variant[&at];
                    if best.as_ref().is_none_or(|(old, cheapest)| {
                        self.prefers(variants, needs, (k, &found), (*old, cheapest))
                    }) {
                        best = Some((k, found));
                    }
                }
                // The least that works is that of the gradient program which needs the least.
                Err(error) => {
                    let least = |error: &Error| match error {
                        Error::BudgetTooSmall { minimum, .. } => *minimum,
                        _ => u64::MAX,
                    };
                    if failed.as_ref().is_none_or(|old| least(&error) < least(old)) {
                        failed = Some(error);
                    }
                }
            }
        }
        best.ok_or_else(|| failed.unwrap_or_else(|| self.variants[0].internal("there is no plan")))
    }

    /// The budget of the device's memory: where that is the host's, what was said of host memory belongs to it.
    fn whole_budget(&self, budget: Budget) -> Result<Budget> {
        match budget {
            Budget::Bytes(bytes) if self.device.backend().memory().is_none() => {
                Ok(Budget::Bytes(bytes.saturating_add(self.tiers.host.unwrap_or(0))))
            }
            Budget::StoreAll | Budget::Revolve { .. } | Budget::Periodic { .. } if !self.tiers.is_empty() => {
                let message = "a schedule that is chosen by hand keeps its states in memory: host memory and disk \
                               extend `.memory(..)`";
                Err(self.variants[0].lost(message))
            }
            budget => Ok(budget),
        }
    }

    /// Refuses a launch for which there is not enough memory, unless its schedule was chosen by hand. To look takes as long
    /// as a small launch.
    pub(super) fn check_fits(&self, plan: &Plan) -> Result<()> {
        self.check_bytes(plan.peak_bytes())
    }

    /// What is beyond memory, where a plan may want it: then it is seen how fast it is.
    fn reach(&self, needs: &[Needs], budget: Budget, free: u64) -> Result<Option<Reach>> {
        let all = |(needs, fixed): &Needs| fixed + needs.iter().map(Need::store_all).sum::<u64>();
        let most = match budget {
            Budget::Bytes(bytes) => bytes,
            _ => free / 2,
        };
        let wanted = needs.iter().any(|needs| all(needs) > most);
        (wanted && !self.tiers.is_empty()).then(|| self.tiers.reach(&self.device)).transpose()
    }

    /// Is the later variant `k` better than `old`?
    fn prefers(
        &self,
        variants: &[Variant],
        needs: &[Need],
        (k, found): (usize, &Found),
        (old, cheapest): (usize, &Found),
    ) -> bool {
        let swept = variants[k].inner == Inner::Swept && variants[old].inner == Inner::Recorded;
        match self.budget {
            // A schedule for every loop is asked for.
            Budget::Revolve { .. } | Budget::Periodic { .. } => swept,
            _ => found.cost < cheapest.cost || needs.iter().any(Need::has_inner_hint),
        }
    }
}
