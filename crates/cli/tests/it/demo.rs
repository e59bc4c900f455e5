use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::kill::{self, Life};

/// A ground so small that it is inverted in a second, in a budget far below store-all.
const TINY: &str = "--grid 32x44 --steps 200 --sources 2 --iterations 2 --memory 200KiB --json";

fn command(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebbtide"));
    command.arg("demo").args(arguments.split_whitespace()).arg("--out").arg(dir.join("out")).current_dir(dir);
    command
}

fn demo(dir: &Path, arguments: &str) -> Output {
    command(dir, arguments).output().unwrap()
}

fn figures(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(arguments: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let output = demo(dir.path(), arguments);
    assert!(output.stdout.is_empty(), "{arguments}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_misfit_falls_the_gradient_is_right_and_the_budget_is_obeyed() {
    let dir = tempfile::tempdir().unwrap();
    let figures = figures(&demo(dir.path(), TINY));
    let number = |key: &str| figures[key].as_f64().unwrap();
    assert!(number("misfit_last") < 0.8 * number("misfit_first"), "{figures}");
    assert!(number("gradient_check") < 1e-2, "{figures}");
    assert_eq!(figures["budget_bytes"], 200 << 10);
    assert!(number("peak_bytes") <= number("budget_bytes"), "{figures}");
    assert!(number("peak_bytes") > 0.5 * number("budget_bytes"), "{figures}");
    assert!(number("store_all_bytes") > 4.0 * number("budget_bytes"), "{figures}");
    assert!(number("recompute_factor") > 1.0, "{figures}");
    assert_eq!(figures["iterations"], 2);

    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(
        page.contains("What lies under the sea") && !page.contains("http://") && !page.contains("https://")
    );
    assert!(!["{shots}", "{rows}", "{models}", "{check}"].iter().any(|hole| page.contains(hole)));
    let pictures = "five fields, the traces, the misfit, the model error, the memory, the schedule";
    assert_eq!(page.matches("<figure").count(), 10, "{pictures}");
    assert!(page.contains("The data come from the same solver on the same grid"));
    // Two iterations from two shots need not come closer to the truth; both errors are those of speeds.
    for key in ["model_error_first", "model_error_last"] {
        assert!(number(key) > 0.1 && number(key) < 1.0, "{figures}");
    }
    for name in ["true", "start", "result", "error", "gradient"] {
        let png = std::fs::read(dir.path().join(format!("out/{name}.png"))).unwrap();
        assert_eq!(&png[..4], b"\x89PNG", "{name}");
        let svg = std::fs::read_to_string(dir.path().join(format!("out/{name}.svg"))).unwrap();
        assert!(svg.contains("500 m"), "{name}");
    }
}

#[test]
fn another_budget_changes_no_bit_of_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let small = figures(&demo(dir.path(), TINY));
    let large = figures(&demo(dir.path(), &TINY.replace("200KiB", "20MiB")));
    assert_eq!(small["misfit_last"], large["misfit_last"]);
    assert_eq!(large["recompute_factor"], 1.0);
}

#[test]
fn data_of_another_grid_with_noise_are_inverted_too() {
    let dir = tempfile::tempdir().unwrap();
    let harder = format!("{TINY} --data-grid 48x66 --noise 10");
    let (easy, hard) = (figures(&demo(dir.path(), TINY)), figures(&demo(dir.path(), &harder)));
    assert!(hard["misfit_last"].as_f64() < hard["misfit_first"].as_f64(), "{hard}");
    assert!(hard["misfit_last"].as_f64() > easy["misfit_last"].as_f64(), "{hard}");
    assert_eq!((&hard["data_grid"], &hard["noise_percent"]), (&Value::from("48x66"), &Value::from(10.0)));
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("on another grid, of 48 × 66 cells") && page.contains("Gaussian noise of 10 %"));
    for wrong in ["--noise much", "--noise=-1", "--data-grid 3x3"] {
        assert_eq!(refused(wrong).0, Some(2), "{wrong}");
    }
}

/// Each evaluation is one file that is written under a name of its own and renamed: killed on both sides of every such
/// commit, it goes on with what was safe.
#[test]
fn c62_killed_at_any_evaluation_it_goes_on_to_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let steps = kill::sized(60);
    let options = format!("--grid 24x32 --steps {steps} --sources 1 --iterations 1 --memory 1MiB --json");
    let whole = figures(&demo(dir.path(), &options));
    let evaluations = whole["evaluations"].as_u64().unwrap();
    let mut killed = 0;
    for k in 1..=evaluations {
        for (side, safe) in [("before", k - 1), ("after", k)] {
            let folder = tempfile::tempdir().unwrap();
            let durable = format!("{options} --durable run");
            let life = kill::run_until(command(folder.path(), &durable), &format!("{side}:rename:{k}"));
            assert_eq!(life, Life::Killed, "{side} evaluation {k} of {evaluations}");
            killed += 1;
            let rest = figures(&demo(folder.path(), &durable));
            assert_eq!(rest["resumed_after"].as_u64().unwrap_or(0), safe, "{side} {k}: {rest}");
            for key in ["misfit_first", "misfit_last", "evaluations", "gradient_check", "peak_bytes"] {
                assert_eq!(rest[key], whole[key], "{side} {k}: {key}");
            }
        }
    }
    assert!(killed >= 2, "{killed}");
}

#[test]
fn an_inversion_of_other_options_is_refused_and_one_that_is_done_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let whole = figures(&demo(dir.path(), TINY));
    let durable = format!("{TINY} --durable run");
    figures(&demo(dir.path(), &durable));
    let other = demo(dir.path(), &durable.replace("--steps 200", "--steps 201"));
    let error = String::from_utf8(other.stderr).unwrap();
    assert!(error.contains("--steps was 200 and is 201") && error.contains("another directory"), "{error}");
    let told: Value = serde_json::from_slice(&other.stdout).unwrap();
    assert!(told["error"].as_str().unwrap().contains("--steps was 200 and is 201"), "{told}");

    // Run again when all is done, it has only to report.
    let again = figures(&demo(dir.path(), &durable));
    assert_eq!(again["resumed_after"], again["evaluations"]);
    assert_eq!(again["misfit_last"], whole["misfit_last"]);
}

#[test]
fn a_budget_too_small_names_the_least() {
    let (code, error) = refused("--grid 32x44 --steps 50 --memory 10KiB");
    assert_eq!(code, Some(1));
    assert!(error.contains("--memory") && error.contains("the least that works here is"), "{error}");
}

#[test]
fn bad_options_are_refused_with_a_hint() {
    for (arguments, hint) in [
        ("--grid 160", "such as 160x240"),
        ("--grid 4x4", "between 24 and 4096"),
        ("--memory lots", "such as 64MiB"),
        ("--steps 0", "1..=1000000"),
        ("--device abacus", "interpreter"),
    ] {
        let (code, error) = refused(arguments);
        assert_eq!(code, Some(2), "{arguments}");
        assert!(error.contains(hint), "{arguments}: {error}");
    }
}

#[test]
fn one_shot_of_one_step_hears_nothing_and_says_so_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let output = demo(dir.path(), "--grid 32x44 --steps 1 --sources 1 --iterations 1");
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(output.status.success() && said.contains("1 shot of 1 step on"), "{said}");
    assert!(page.contains("1 shot was fired"));
    // Pictures are base64, in which any three letters may stand.
    let words: Vec<&str> =
        page.split("base64,").flat_map(|part| part.split_once('"').map(|(_, rest)| rest)).collect();
    for text in [said, words.concat()] {
        assert!(!text.contains("NaN") && !text.contains("1 shots"), "{text}");
    }
}
