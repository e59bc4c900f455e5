//! What happened so far, and how it is shown while it happens.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use ebbtide_snapshot::{Error, State};
use indicatif::{ProgressBar, ProgressStyle};

use super::inversion::Used;
use super::lbfgs::Verdict;
use super::report::left;
use crate::output::complain;
use crate::size::Human;

/// The misfits of the accepted points, the gradient at the first, and what the runs took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub misfits: Vec<f64>,
    /// The model errors of the same points, in km/s.
    pub model_errors: Vec<f64>,
    pub first_gradient: Vec<f32>,
    pub seconds: f64,
    pub peak_bytes: u64,
}

impl History {
    /// Takes an evaluation to the record.
    pub fn note(&mut self, value: f64, gradient: &[f64], verdict: Verdict, used: Used, took: Duration) {
        if self.first_gradient.is_empty() {
            self.first_gradient = gradient.iter().map(|g| *g as f32).collect();
        }
        if verdict == Verdict::Accepted {
            self.misfits.push(value);
        }
        self.seconds += took.as_secs_f64();
        self.peak_bytes = self.peak_bytes.max(used.peak_bytes);
    }

    pub fn save(&self, state: &mut State) -> Result<(), Error> {
        state.put("misfits", &self.misfits)?;
        state.put("model errors", &self.model_errors)?;
        state.put("first gradient", &self.first_gradient)?;
        state.put("seconds", &[self.seconds])?;
        Ok(state.put("peak bytes", &[self.peak_bytes])?)
    }

    pub fn load(state: &State) -> Result<History, Error> {
        Ok(History {
            misfits: state.get_vec("misfits")?,
            model_errors: state.get_vec("model errors")?,
            first_gradient: state.get_vec("first gradient")?,
            seconds: state.scalar("seconds")?,
            peak_bytes: state.scalar("peak bytes")?,
        })
    }
}

/// A bar on a terminal, plain lines elsewhere; always on standard error.
pub struct Progress {
    bar: Option<ProgressBar>,
    iterations: u64,
    shots: usize,
    budget: u64,
    begun: Instant,
}

impl Progress {
    pub fn new(iterations: u64, shots: usize, budget: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(iterations);
            let template = "{spinner:.cyan} {bar:28.cyan/blue} {pos}/{len} iterations  {elapsed}\n  {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Progress { bar, iterations, shots, budget, begun: Instant::now() }
    }

    /// Something to know before it begins.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => complain(&format!("{line}\n")),
        }
    }

    /// A shot is done.
    pub fn shot(&self, k: usize, history: &History, used: Used) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} · shot {k}/{}", self.figures(history, used), self.shots));
        }
    }

    /// An evaluation is done.
    pub fn evaluated(&self, iterations: u64, verdict: Verdict, history: &History, used: Used) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(iterations);
                bar.set_message(self.figures(history, used));
            }
            None if verdict == Verdict::Accepted => {
                let seconds = self.begun.elapsed().as_secs_f64();
                let figures = self.figures(history, used);
                let whole = self.iterations;
                complain(&format!("{seconds:6.1} s  iteration {iterations}/{whole}  {figures}\n"));
            }
            None => {}
        }
    }

    fn figures(&self, history: &History, used: Used) -> String {
        let misfit = match (history.misfits.first(), history.misfits.last()) {
            (Some(first), Some(last)) => format!("misfit {:.1} %", 100.0 * left(*first, *last)),
            _ => "misfit …".to_owned(),
        };
        let (peak, budget) = (Human(used.peak_bytes.into()), Human(self.budget.into()));
        format!("{misfit} · memory {peak} of {budget} · each step runs {:.2} times", used.recompute_factor)
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
