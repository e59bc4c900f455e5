//! `println!` in programs: printed where they are interpreted, left out elsewhere.

use ebbtide::prelude::*;

#[func]
fn half(x: f64) -> f64 {
    eprintln!("half of {x}");
    0.5 * x
}

#[program]
fn prints(u: &mut Array1<f64>, v: &Array1<Vec2<f64>>) {
    println!("there are {} elements", u.len());
    for i in par(0..u.len()) {
        let old = u[i];
        u[i] = half(old);
        println!("{i}: {old:8.3} -> {:.1e}, {:?} {{{}}}", u[i], v[i], i % 2 == 0);
    }
}

#[program]
fn does_not(u: &mut Array1<f64>, v: &Array1<Vec2<f64>>) {
    for i in par(0..u.len()) {
        let old = u[i];
        u[i] = 0.5 * old;
    }
}

#[test]
fn lines_are_left_out_where_nothing_interprets_the_program() {
    let text = |program: String| program.replace("does_not", "prints");
    assert_eq!(prints().to_string(), text(does_not().to_string()));
    let device = Device::cpu();
    // The text that is compiled, but for the lines of the source that it names.
    let text = |source: Option<&str>| -> Vec<String> {
        source.unwrap().lines().filter(|line| !line.contains("/* line")).map(str::to_string).collect()
    };
    let (with, without) = (prints().compile(&device).unwrap(), does_not().compile(&device).unwrap());
    assert_eq!(text(with.source()), text(without.source()));
}

/// A process that a test starts.
#[test]
#[ignore = "a process that another test starts"]
fn process_that_prints() {
    let device = Device::cpu();
    let mut u = device.array(&[2.0, 3.0]).unwrap();
    let v = device.array(&[Vec2::new(1.0, 2.0), Vec2::new(0.25, -1.0)]).unwrap();
    prints().compile(&device).unwrap().launch((&mut u, &v)).unwrap();
    assert_eq!(u.to_vec(), [1.0, 1.5]);
}

fn output(check: &str) -> (String, String) {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "printing::process_that_prints", "--ignored", "--nocapture"])
        .env("EBBTIDE_CHECK", check)
        .output()
        .unwrap();
    assert!(output.status.success());
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_checked_run_prints_and_a_usual_one_does_not() {
    let (out, error) = output("1");
    let expected = "there are 2 elements\n\
                    0:    2.000 -> 1.0e0, (1, 2) {true}\n\
                    1:    3.000 -> 1.5e0, (0.25, -1) {false}\n";
    assert!(out.contains(expected), "{out}");
    assert!(error.contains("half of 2\nhalf of 3\n"), "{error}");
    let (out, error) = output("0");
    assert!(!out.contains("elements") && !error.contains("half"), "{out}{error}");
}
