//! What came of it: a table, a JSON object, pictures, and one page that shows them together.

use std::path::Path;

use serde::Serialize;

use super::canvas::{base64, escape};
use super::curve::{self, percent};
use super::earth::{Earth, Grid};
use super::field::{Field, Palette};
use super::gather::Gathers;
use super::schedule;
use crate::Failure;
use crate::plan::report::grouped;
use crate::size::{Human, counted};

/// The figures, as `--json` prints them.
#[derive(Serialize)]
pub struct Figures {
    pub grid: String,
    pub steps_per_shot: usize,
    pub shots: usize,
    pub device: String,
    pub iterations: u64,
    pub evaluations: u64,
    /// Gradients, each through all steps of a shot.
    pub gradients: u64,
    pub store_all_bytes: u64,
    pub budget_bytes: u64,
    /// The most that a gradient run held beyond the caller's arrays, measured.
    pub peak_bytes: u64,
    pub recompute_factor: f64,
    pub misfit_first: f64,
    pub misfit_last: f64,
    /// The root mean square of the error of the speeds in rock, in km/s.
    pub model_error_first: f64,
    pub model_error_last: f64,
    /// The grid of the data, where it is another one.
    pub data_grid: Option<String>,
    pub noise_percent: f64,
    /// The relative distance of the slope along a direction from a finite difference.
    pub gradient_check: f64,
    /// Seconds spent on gradients, over all processes of a durable run.
    pub seconds: f64,
    /// Evaluations that an earlier process had done.
    pub resumed_after: u64,
}

/// The part of the misfit that is left: nothing where there was none.
pub fn left(first: f64, last: f64) -> f64 {
    if first > 0.0 { last / first } else { 0.0 }
}

impl Figures {
    fn left(&self) -> f64 {
        left(self.misfit_first, self.misfit_last)
    }

    fn rows(&self) -> Vec<(&'static str, String)> {
        let bytes = |n: u64| Human(n.into()).to_string();
        vec![
            ("grid", format!("{} cells, {}", self.grid.replace('x', " × "), counted(self.shots, "shot"))),
            ("steps per shot", grouped(self.steps_per_shot as u128)),
            ("steps differentiated", grouped(u128::from(self.gradients) * self.steps_per_shot as u128)),
            ("device", self.device.clone()),
            ("store-all would need", bytes(self.store_all_bytes)),
            ("memory budget", bytes(self.budget_bytes)),
            ("measured peak", bytes(self.peak_bytes)),
            ("recompute factor", format!("{:.3} runs of each step", self.recompute_factor)),
            ("gradient check", format!("{:.1e} from a finite difference", self.gradient_check)),
            ("misfit, first", format!("{:.4}", self.misfit_first)),
            ("misfit, last", format!("{:.4}, {} of the first", self.misfit_last, percent(self.left()))),
            (
                "model error (rms)",
                format!("{:.3} km/s, was {:.3} km/s", self.model_error_last, self.model_error_first),
            ),
            ("data", self.data()),
            ("iterations", format!("{} with {} evaluations", self.iterations, self.evaluations)),
            ("time", format!("{:.1} s for the gradients", self.seconds)),
        ]
    }

    /// Where the data come from.
    fn data(&self) -> String {
        let grid = match &self.data_grid {
            None => "the same solver on the same grid".to_owned(),
            Some(grid) => format!("the same solver on {} cells", grid.replace('x', " × ")),
        };
        match self.noise_percent {
            0.0 => format!("{grid}, no noise"),
            noise => format!("{grid}, {noise} % noise"),
        }
    }

    /// For people, on a terminal.
    pub fn table(&self) -> String {
        self.rows().into_iter().map(|(name, value)| format!("{name:22}{value}\n")).collect()
    }
}

/// What there is to show.
pub struct Findings<'a> {
    pub figures: &'a Figures,
    pub grid: Grid,
    pub earth: &'a Earth,
    pub result: &'a [f32],
    pub first_gradient: &'a [f32],
    pub misfits: &'a [f64],
    pub model_errors: &'a [f64],
    pub gathers: Gathers<'a>,
    pub plan: &'a ebbtide::Plan,
}

/// Makes the directory that pictures and page go to, and looks whether files can be written there.
pub fn prepare(dir: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(dir)
        .and_then(|()| tempfile::tempfile_in(dir).map(drop))
        .map_err(|error| cannot_write(dir, &error))
}

fn cannot_write(dir: &Path, error: &std::io::Error) -> Failure {
    Failure::Other(format!("cannot write into {}: {error}; --out names another directory", dir.display()))
}

/// Writes pictures and page into a directory.
pub fn write(findings: &Findings<'_>, dir: &Path) -> Result<(), Failure> {
    prepare(dir)?;
    let at = |error| cannot_write(dir, &error);
    let write = |name: &str, bytes: &[u8]| std::fs::write(dir.join(name), bytes).map_err(at);
    let Findings { grid, earth, figures, .. } = *findings;
    let sources = grid.sources(figures.shots);
    let speeds = [&earth.truth[..], &earth.start, findings.result].map(|x| earth.speeds(x));
    // Near the sources the gradient is far larger than below. Its signed root brings both into one range of colours, which
    // ends where all but one in a hundred of the cells in rock lie.
    let mut sizes: Vec<f32> = findings.first_gradient.iter().map(|g| g.abs()).filter(|g| *g > 0.0).collect();
    sizes.sort_by(f32::total_cmp);
    let large = sizes.get(sizes.len() * 99 / 100).copied().unwrap_or(1.0).max(f32::MIN_POSITIVE);
    let gradient: Vec<f32> =
        findings.first_gradient.iter().map(|g| (g.abs() / large).sqrt().copysign(*g)).collect();
    let differences: Vec<f32> =
        speeds[2].iter().zip(&speeds[0]).map(|(found, truth)| found - truth).collect();
    let field = |title, values, palette, range, unit| Field {
        title,
        values,
        range,
        palette,
        unit,
        sources: &sources,
    };
    let speed = |title, values| field(title, values, Palette::Speed, (1.4, 3.8), "speed (km/s)");
    let fields = [
        ("true", speed("The ground as it is", &speeds[0])),
        ("start", speed("What we start from", &speeds[1])),
        ("result", speed("What the echoes tell", &speeds[2])),
        (
            "error",
            field("What is wrong with it", &differences, Palette::Sign, (-1.0, 1.0), "found − true (km/s)"),
        ),
        (
            "gradient",
            field("The first gradient", &gradient, Palette::Sign, (-1.0, 1.0), "signed root, relative"),
        ),
    ];
    let mut models = String::new();
    for (name, field) in &fields {
        let png = field.png(grid)?;
        let svg = field.svg(grid, &png);
        write(&format!("{name}.png"), &png)?;
        write(&format!("{name}.svg"), svg.as_bytes())?;
        models += &figure(&svg, field.title, "");
    }
    let traces = findings.gathers.svg(grid)?;
    write("traces.svg", traces.as_bytes())?;
    let traces =
        figure(&traces, "What the receivers heard of one shot, and what the models leave unexplained", "");
    let misfit = curve::draw("Misfit of the data, relative to the start", findings.misfits);
    write("misfit.svg", misfit.as_bytes())?;
    let model = curve::draw("Error of the model (rms), relative to the start", findings.model_errors);
    write("model-error.svg", model.as_bytes())?;
    let mut charts = figure(&misfit, "The misfit over the iterations", "");
    charts += &figure(&model, "The model error over the iterations", "");
    if let Some(pictures) = schedule::draw(findings.plan) {
        write("memory.svg", pictures.curve.as_bytes())?;
        charts += &figure(&pictures.curve, "Recomputation against memory", "light");
        if let Some(drawn) = pictures.schedule {
            write("schedule.svg", drawn.as_bytes())?;
            charts += &figure(&drawn, "The checkpoint schedule of one gradient", "light");
        }
    }
    write("report.html", page(findings, &models, &traces, &charts).as_bytes())?;
    let json = serde_json::to_string_pretty(figures)? + "\n";
    write("figures.json", json.as_bytes())
}

/// A picture within the page itself. `light` ones were drawn for white paper.
fn figure(svg: &str, alternative: &str, class: &str) -> String {
    format!(
        "<figure class=\"{class}\"><img alt=\"{}\" src=\"data:image/svg+xml;base64,{}\"></figure>\n",
        escape(alternative),
        base64(svg.as_bytes())
    )
}

/// How much of the success is due to the data.
fn honest(figures: &Figures) -> String {
    let grid = match &figures.data_grid {
        None => "The data come from the same solver on the same grid, so its numerical errors are the same in the data and in the \
                 model, and cancel. Real data are harder. <code>--data-grid 240x360</code> computes the data on another grid."
            .to_owned(),
        Some(grid) => format!(
            "The data come from the same solver on another grid, of {} cells, and were interpolated to the receivers and times \
             of the model's grid. The numerical errors of the two grids differ, so they do not cancel.",
            grid.replace('x', " × ")
        ),
    };
    let noise = match figures.noise_percent {
        0.0 => "There is no noise in them; <code>--noise 10</code> adds some.".to_owned(),
        noise => format!(
            "Gaussian noise of {noise} % of the root mean square of each shot was added to them: a perfect model would have \
             a misfit above zero."
        ),
    };
    format!("{grid} {noise}")
}

fn page(findings: &Findings<'_>, models: &str, traces: &str, charts: &str) -> String {
    let figures = findings.figures;
    let bytes = |n: u64| Human(n.into()).to_string();
    let part = |n: u64| 100.0 * n as f64 / figures.store_all_bytes.max(n).max(1) as f64;
    let rows: String = figures
        .rows()
        .iter()
        .map(|(name, value)| format!("<tr><th>{name}</th><td>{}</td></tr>\n", escape(value)))
        .collect();
    let misfit = percent(figures.left());
    let were = if figures.shots == 1 { "was" } else { "were" };
    let mut check = format!("{:.0e}", figures.gradient_check);
    if let Some((digits, exponent)) = check.clone().split_once('e') {
        check = format!("{digits}·10<sup>{}</sup>", exponent.replace('-', "−"));
    }
    let replacements = [
        ("{shots}", format!("{} {were}", counted(figures.shots, "shot"))),
        ("{steps}", grouped(figures.steps_per_shot as u128)),
        ("{total}", grouped(u128::from(figures.gradients) * figures.steps_per_shot as u128)),
        ("{peak}", bytes(figures.peak_bytes)),
        ("{budget}", bytes(figures.budget_bytes)),
        ("{store_all}", bytes(figures.store_all_bytes)),
        ("{peak_part}", format!("{:.2}", part(figures.peak_bytes))),
        ("{budget_part}", format!("{:.2}", part(figures.budget_bytes))),
        ("{less}", format!("{:.0}", figures.store_all_bytes as f64 / figures.peak_bytes.max(1) as f64)),
        ("{factor}", format!("{:.2}", figures.recompute_factor)),
        ("{check}", check),
        ("{misfit}", misfit),
        ("{rows}", rows),
        ("{plan}", escape(&findings.plan.explain())),
        ("{program}", escape(include_str!("physics.rs"))),
        ("{models}", models.to_owned()),
        ("{traces}", traces.to_owned()),
        ("{charts}", charts.to_owned()),
        ("{model_error}", format!("{:.2} km/s", figures.model_error_last)),
        ("{model_error_first}", format!("{:.2} km/s", figures.model_error_first)),
        ("{honest}", honest(figures)),
    ];
    replacements
        .iter()
        .fold(include_str!("report.html").to_owned(), |page, (name, value)| page.replace(name, value))
}
