//! What rank 0 alone does: it has the optimiser, keeps the run durable, and reports.

use std::time::Instant;

use ebbtide::prelude::*;
use ebbtide_grid::Wire;

use super::durable::{Durable, Options};
use super::gather::Gathers;
use super::lbfgs::{Lbfgs, Verdict};
use super::progress::{History, Progress};
use super::report::{self, Figures, Findings};
use super::{Args, Survey, physics, ranks};
use crate::{Failure, output, size};

/// The largest change of an unknown in the first step: about 0.1 km/s.
const FIRST_CHANGE: f64 = 0.15;

/// The state of an inversion.
pub struct Lead {
    durable: Option<Durable>,
    optimiser: Lbfgs,
    history: History,
    steps: usize,
    resumed_after: u64,
}

impl Lead {
    /// Opens the folder of a durable run, and takes what an earlier job left there.
    pub fn open(args: &Args, device: &Device, steps: usize, start: &[f64]) -> Result<Lead, Failure> {
        let options = Options {
            grid: args.grid.to_string(),
            steps,
            sources: args.sources as usize,
            iterations: args.iterations,
            memory: args.memory.0,
            device: device.name().to_owned(),
            data: describe_data(args),
            program: fingerprint(),
        };
        let durable = args.durable.as_ref().map(|dir| Durable::open(dir, options)).transpose()?;
        let earlier = durable.as_ref().map(|durable| durable.load(start.len())).transpose()?.flatten();
        let resumed_after = earlier.as_ref().map_or(0, |(optimiser, _)| optimiser.evaluations());
        let (optimiser, history) =
            earlier.unwrap_or_else(|| (Lbfgs::new(start.to_vec(), FIRST_CHANGE), History::default()));
        Ok(Lead { durable, optimiser, history, steps, resumed_after })
    }

    /// Inverts with all ranks; gives how far the gradient is from a finite difference.
    pub fn invert(&mut self, args: &Args, survey: &mut Survey, ranks: &mut dyn Wire) -> Result<f64, Failure> {
        let (grid, budget, sources) = (args.grid, args.memory.0, args.sources as usize);
        let progress = Progress::new(args.iterations, sources, budget);
        progress.say(&format!(
            "{} of {} on {grid} cells: {} a gradient to store all, {} allowed",
            size::counted(sources, "shot"),
            size::counted(self.steps, "step"),
            size::Human(survey.plan.store_all_bytes.into()),
            size::Human(budget.into()),
        ));
        if survey.device.name() == "interpreter" && args.device.is_none() {
            progress.say(
                "the program is interpreted, which is slow: is there a C compiler? --grid 32x44 is quick",
            );
        }
        if self.resumed_after > 0 {
            let after = size::counted(self.resumed_after as usize, "evaluation");
            progress.say(&format!("continuing after {after}"));
        }
        let gradient_check = survey.inversion.check_gradient(&survey.start)?;
        while self.optimiser.evaluations() == 0 || self.optimiser.iterations() < args.iterations {
            let Some(point) = self.optimiser.ask() else { break };
            let begun = Instant::now();
            ranks::send(ranks, Some(&point))?;
            let history = &self.history;
            let heed = |k, used| progress.shot(k, history, used);
            let found = survey.inversion.evaluate(&point, ranks, heed)?;
            let used = survey.inversion.used();
            let verdict = self.optimiser.tell(found.value, &found.gradient);
            self.history.note(found.value, &found.gradient, verdict, used, begun.elapsed());
            if verdict == Verdict::Accepted {
                let error = survey.earth.model_error(grid, &survey.inversion.unknowns(&point));
                self.history.model_errors.push(error);
            }
            if let Some(durable) = &self.durable {
                durable.save(&self.optimiser, &self.history)?;
            }
            progress.evaluated(self.optimiser.iterations(), verdict, &self.history, used);
        }
        progress.finish();
        Ok(gradient_check)
    }

    /// Writes the pictures and the page, and prints the figures.
    pub fn report(self, args: &Args, mut survey: Survey, gradient_check: f64) -> Result<(), Failure> {
        let Lead { optimiser, history, steps, resumed_after, .. } = self;
        let Survey { device, earth, inversion, plan, start } = &mut survey;
        let (grid, sources) = (args.grid, args.sources as usize);
        let figures = Figures {
            grid: grid.to_string(),
            steps_per_shot: steps,
            shots: sources,
            device: device.name().to_owned(),
            iterations: optimiser.iterations(),
            evaluations: optimiser.evaluations(),
            gradients: optimiser.evaluations() * args.sources,
            store_all_bytes: plan.store_all_bytes,
            budget_bytes: args.memory.0,
            peak_bytes: history.peak_bytes.max(inversion.used().peak_bytes),
            recompute_factor: inversion.used().recompute_factor,
            misfit_first: history.misfits.first().copied().unwrap_or(f64::NAN),
            misfit_last: optimiser.value(),
            model_error_first: history.model_errors.first().copied().unwrap_or(f64::NAN),
            model_error_last: earth.model_error(grid, &inversion.unknowns(optimiser.best())),
            data_grid: args.data_grid.map(|grid| grid.to_string()),
            noise_percent: args.noise,
            gradient_check,
            seconds: history.seconds,
            resumed_after,
        };
        let result = inversion.unknowns(optimiser.best());
        let middle = sources / 2;
        let (column, heard, at_start) = inversion.gather(middle, start)?;
        let (_, _, at_end) = inversion.gather(middle, optimiser.best())?;
        report::write(
            &Findings {
                figures: &figures,
                grid,
                earth,
                result: &result,
                first_gradient: &history.first_gradient,
                misfits: &history.misfits,
                model_errors: &history.model_errors,
                gathers: Gathers { heard: &heard, start: &at_start, result: &at_end, column },
                plan,
            },
            &args.out,
        )?;
        let text = match args.json {
            true => serde_json::to_string_pretty(&figures)? + "\n",
            false => format!("{}\nsee {}\n", figures.table(), args.out.join("report.html").display()),
        };
        output::write(format_args!("{text}"))
    }
}

/// Where the data come from: part of what makes two inversions the same one.
fn describe_data(args: &Args) -> String {
    let grid = args.data_grid.map_or("the same grid".to_owned(), |grid| grid.to_string());
    format!("{grid}, {} % noise", args.noise)
}

/// Tells programs apart: FNV-1a of the text of the program and of the version.
fn fingerprint() -> String {
    let text = format!("{} {}", env!("CARGO_PKG_VERSION"), physics::misfit());
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
