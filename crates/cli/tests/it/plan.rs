use std::process::{Command, Output};

use serde_json::Value;

fn plan(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ebbtide"))
        .arg("plan")
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

fn json(arguments: &str) -> Value {
    let output = plan(&format!("{arguments} --json"));
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refused(arguments: &str) -> (Option<i32>, String) {
    let output = plan(arguments);
    assert!(output.stdout.is_empty(), "{arguments}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn ten_steps_and_three_slots_take_fifteen_advances() {
    let plan = json("--steps 10 --slots 3 --schedule revolve");
    for (key, value) in [
        ("steps", 10),
        ("slots", 3),
        ("block", 1),
        ("advances", 15),
        ("records", 10),
        ("reversals", 10),
        ("stores", 6),
        ("loads", 9),
        ("peak_slots", 3),
    ] {
        assert_eq!(plan[key], value, "{key}");
    }
    assert_eq!(plan["schedule"], "revolve");
    assert!(plan["peak_bytes"].is_null(), "the sizes are not known");
}

#[test]
fn a_billion_steps_are_answered_by_formula() {
    let plan = json("--steps 1000000000 --slots 50 --schedule revolve");
    assert_eq!(plan["advances"], 7_699_325_912_u64);
}

#[test]
fn every_schedule_answers() {
    for (arguments, kind) in [
        ("--slots 5", "revolve"),
        ("--slots 5 --schedule online", "online"),
        ("--slots 5 --schedule mixed", "mixed"),
        ("--slots 5 --schedule periodic", "periodic"),
        ("--slots 5 --disk-slots 10 --write-cost 2 --read-cost 1", "multistage"),
        ("--memory 1GB --state-bytes 1kB", "store-all"),
        ("--memory 10kB --state-bytes 1kB --tape-bytes 5kB", "revolve"),
    ] {
        let plan = json(&format!("--steps 200 {arguments}"));
        assert_eq!(plan["schedule"], kind, "{arguments}");
        assert_eq!(plan["reversals"], 200);
        let double = json(&format!(
            "--steps 200 --block 3 --primal-first --slots 9 --schedule {}",
            if kind == "online" || kind == "mixed" { kind } else { "revolve" }
        ));
        assert_eq!(double["reversals"], 200);
    }
}

#[test]
fn peak_memory_stays_within_the_budget_and_more_memory_is_no_slower() {
    let mut last = u64::MAX;
    for memory in ["4MiB", "10MiB", "33MiB", "64MiB", "1GiB", "5GiB"] {
        for schedule in ["auto", "revolve", "mixed", "online"] {
            let plan = json(&format!(
                "--steps 500 --memory {memory} --state-bytes 1MiB --tape-bytes 2MiB --schedule {schedule}"
            ));
            let bytes = json(&format!("--steps 1 --memory {memory} --state-bytes 1 --tape-bytes {memory}"));
            assert!(plan["peak_bytes"].as_u64() <= bytes["peak_bytes"].as_u64(), "{memory} {schedule}");
            if schedule == "auto" {
                let advances = plan["advances"].as_u64().unwrap();
                assert!(advances <= last, "{memory}");
                last = advances;
            }
        }
    }
}

#[test]
fn the_table_shows_the_neighbours() {
    let output = plan("--steps 1000 --slots 10");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("1 000 steps, revolve: the least recomputation\n"), "{text}");
    let row = text.lines().find(|line| line.starts_with("runs of each step")).unwrap();
    assert_eq!(row.split_whitespace().skip(4).collect::<Vec<_>>(), ["7.284", "4.636", "3.747"]);
}

#[test]
fn mistakes_in_usage_exit_with_2_and_others_with_1() {
    for arguments in [
        "--steps 10",
        "--slots 3",
        "--steps 10 --slots 3 --memory 1GB --state-bytes 1",
        "--steps 10 --memory 1GB",
        "--steps 10 --slots x",
        "--steps 10 --memory 5parsecs --state-bytes 1",
        "--steps 10 --slots 3 --schedule multistage",
        "--steps 10 --slots 3 --schedule revolve --disk-slots 4",
        "--steps 10 --slots 3 --block 0",
        "--steps 10 --slots 3 --schedule periodic --block 2",
    ] {
        let (code, text) = refused(arguments);
        assert_eq!(code, Some(2), "{arguments}: {text}");
        assert!(text.contains("--help"), "{arguments}: {text}");
    }
    let (code, text) = refused("--steps 1000 --memory 1MiB --state-bytes 1MiB");
    assert_eq!(code, Some(1));
    assert!(
        text.contains("a budget of 1.00 MiB is too small: the least that works is 2.00 MiB (2097152 bytes)"),
        "{text}"
    );
    let (code, text) = refused("--steps 1000 --slots 0");
    assert_eq!(code, Some(1));
    assert!(text.contains("at least 1"), "{text}");
}

#[test]
fn the_picture_is_drawn_and_says_when_only_the_curve_fits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.svg");
    let draw = |arguments: &str| {
        let output = plan(&format!("{arguments} --picture {}", path.display()));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (std::fs::read_to_string(&path).unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (svg, text) = draw("--steps 10 --slots 3");
    // Every Store and every Load is a dot, every record and every reversal a line, two more in the legend.
    assert_eq!(svg.matches("class=\"store\"").count(), 6);
    assert_eq!(svg.matches("class=\"load\"").count(), 9);
    assert_eq!(svg.matches("class=\"reverse\"").count(), 10 + 1);
    assert!(svg.contains(">turn</text>") && svg.ends_with("</svg>\n"));
    assert!(text.contains("the schedule and the curve"));
    let (svg, text) = draw("--steps 1000000 --slots 30");
    assert!(svg.contains("this plan: ") && svg.len() < 20_000);
    assert!(text.contains("the curve alone"));
    for arguments in ["--steps 0 --slots 1", "--steps 1 --slots 1", "--steps 3 --memory 9 --state-bytes 0"] {
        let (svg, _) = draw(arguments);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{arguments}");
    }
}

#[test]
fn a_multistage_plan_says_how_good_it_is() {
    let text = |arguments: &str| {
        let output = plan(&format!("--slots 5 --disk-slots {arguments}"));
        String::from_utf8(output.stdout).unwrap().lines().next().unwrap_or_default().to_string()
    };
    let costs = "--write-cost 5 --read-cost 5";
    for (arguments, expected) in [
        (format!("10 --steps 1000 {costs}"), "optimal in steps, writes and reads"),
        ("100 --steps 100000".into(), "optimal in steps, writes and reads"),
        (format!("100 --steps 100000 {costs}"), "periodic, within 2 % of the optimum"),
        (format!("100000 --steps 100000 {costs}"), "periodic, within 2 % of the optimum"),
    ] {
        let line = text(&arguments);
        assert!(line.ends_with(&format!("multistage: {expected}")), "{arguments}: {line}");
    }
    let json = json(&format!("--slots 5 --disk-slots 100 --steps 100000 {costs}"));
    assert_eq!(json["optimal"], false);
    assert!(json["loss"].as_f64().is_some_and(|loss| (1.0..=1.02).contains(&loss)), "{json}");
}

#[test]
fn totals_of_h_revolve_are_met() {
    for (steps, slots, disk_slots, price, total) in [
        (50, 2, 3, 0, 172),
        (100, 3, 5, 0, 345),
        (200, 2, 3, 1, 1034),
        (300, 2, 4, 2, 1613),
        (1000, 3, 5, 0, 5285),
    ] {
        let plan = json(&format!(
            "--steps {steps} --slots {slots} --disk-slots {disk_slots} --write-cost {price} --read-cost {price}"
        ));
        let count = |key: &str| plan[key].as_u64().unwrap();
        let cost =
            count("advances") + count("records") + price * (count("disk_stores") + count("disk_loads"));
        assert_eq!((cost, &plan["optimal"]), (total, &Value::Bool(true)), "n={steps}");
    }
}

#[test]
fn columns_of_large_numbers_stand_apart() {
    let output = plan("--steps 4000000000000000000 --slots 1000000");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> =
        text.lines().filter(|line| line.starts_with("advances") || line.contains("this plan")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    // Groups of three digits are one space apart, columns at least two.
    let columns = |row: &str| row.split("  ").filter(|cell| !cell.trim().is_empty()).count();
    assert_eq!((columns(rows[0]), columns(rows[1])), (3, 4), "{text}");
}

#[test]
fn a_cost_beyond_what_is_counted_is_refused_with_the_bounds() {
    let (code, text) = refused("--steps 100 --slots 3 --disk-slots 4 --write-cost 1e300");
    assert!(code == Some(2) || code == Some(1), "{code:?}");
    assert!(text.contains("the write cost must be a number from 0 to 10^18"), "{text}");
}

#[test]
fn auto_is_the_best_of_states_alone_with_slots_and_may_be_mixed_with_memory() {
    assert_eq!(json("--steps 100 --slots 5")["schedule"], "revolve");
    assert_eq!(json("--steps 100 --memory 6000 --state-bytes 1000")["schedule"], "mixed");
}
