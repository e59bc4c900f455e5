//! The text of programs: what is printed can be read, and means what it meant.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::sync::Arc;

use ebbtide_autodiff::{Inner, Request, gradient, tangent};
use ebbtide_cases::renumbered;
use ebbtide_conformance::random::generate::generate;
use ebbtide_conformance::random::lower::lower;
use ebbtide_conformance::random::{Case, Sizes};
use ebbtide_conformance::run;
use ebbtide_ir::{Operation, Outside, ParseError, Program, Rule, Rules, Work, parse_with, passes, verify};
use ebbtide_runtime::interpreter;

/// Random programs whose text is read, each with its adjoints and its tangent.
const CASES: u64 = 150;

/// The program that the text of another one is: it prints alike, is lawful like it, and is read again as itself.
#[track_caller]
fn read(program: &Program) -> Program {
    let text = program.to_string();
    let read = parse_with(&text, &Outside::of(program)).unwrap_or_else(|why| panic!("{why}\n{text}"));
    for (printed, read) in text.lines().zip(read.to_string().lines()) {
        assert_eq!(read, printed);
    }
    assert_eq!(read.to_string(), text);
    let refused = [program, &read].map(|program| verify(program).err().map(|why| why.to_string()));
    assert_eq!(refused[0].is_some(), refused[1].is_some(), "{refused:?}\n{text}");
    let again = parse_with(&text, &Outside::of(&read)).unwrap();
    assert_eq!(again.hash(), read.hash());
    // Its values might have been made the other way round, among others.
    let count = program.values.len();
    let places: Vec<usize> = (0..count).map(|v| 2 * (count - v)).collect();
    assert_eq!(renumbered(program, &places).hash(), program.hash(), "{text}");
    read
}

#[test]
fn random_programs_and_their_derivatives_are_read_as_they_are_printed() {
    let device = interpreter();
    let (mut derivatives, mut done) = (0, 0);
    for seed in 0..CASES {
        let case = Case { sketch: generate(seed), sizes: Sizes { n: 5, m: 3, steps: 2 }, seed };
        let Ok(program) = lower(&case.sketch) else { continue };
        let same = read(&program);
        let results = [&program, &same].map(|program| run(program, &device, &case.inputs()));
        match &results {
            [Ok(before), Ok(after)] => assert_eq!(before, after, "seed {seed}\n{program}"),
            [before, after] => assert_eq!(before.is_ok(), after.is_ok(), "seed {seed}\n{program}"),
        }
        done += u64::from(results[0].is_ok());
        read(&passes::simplify(&program));
        let wrt: Vec<String> = case.wrt().into_iter().map(str::to_string).collect();
        let request =
            Request { of: "loss".to_string(), wrt: wrt.clone(), may_be_zero: true, ..Request::default() };
        for inner in [Inner::Recorded, Inner::Swept] {
            if let Ok(gradient) = gradient(&program, &request, inner) {
                read(&gradient.program);
                derivatives += 1;
            }
        }
        if let Ok(tangent) = tangent(&program, &wrt) {
            read(&tangent.program);
            derivatives += 1;
        }
    }
    assert!(
        derivatives > CASES && done > CASES / 2,
        "{derivatives} derivatives, {done} runs: what is tested?"
    );
}

/// The texts of programs that stand in the tests and cases of all crates, with the files that they stand in.
fn golden_texts() -> Vec<(String, String)> {
    let begins =
        |line: &str| ["program ", "driven program ", "#[unknown_shapes]"].iter().any(|b| line.starts_with(b));
    let mut texts = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "eb") {
                let case = std::fs::read_to_string(&path).unwrap();
                let after = case.split("\n=>\n").nth(1).unwrap_or("");
                let after = after.split_inclusive("\n}\n").filter(|text| begins(text));
                texts.extend(after.map(|text| (path.display().to_string(), text.to_string())));
            } else if path.extension().is_some_and(|e| e == "rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                for literal in source.split("r#\"\n").skip(1) {
                    let literal = literal.split("\"#").next().unwrap();
                    let first = literal.lines().next().unwrap_or("");
                    let (text, indent) = (first.trim_start(), first.len() - first.trim_start().len());
                    if begins(text) {
                        let lines = literal.lines().filter(|line| !line.trim().is_empty());
                        let lines = lines.map(|line| line.get(indent..).unwrap_or("").to_string() + "\n");
                        let all: String = lines.collect();
                        let programs = all.split_inclusive("\n}\n").filter(|text| begins(text));
                        texts.extend(programs.map(|text| (path.display().to_string(), text.to_string())));
                    }
                }
            }
        }
    }
    texts
}

/// Reads a text, with operations and derivatives of the names that it has.
fn read_golden(text: &str) -> Result<Program, ParseError> {
    let mut outside = Outside::default();
    loop {
        match parse_with(text, &outside) {
            Err(why) if why.message.ends_with("give it to `parse_with`") => {
                let name = why.message.split('`').nth(1).unwrap().to_string();
                let work = Work::Host(Arc::new(|_| Err("the text has its name alone".to_string())));
                let build = || Ok(Program::default());
                outside.rule(Rule { name: name.clone().leak(), build, rules: Rules::none });
                outside.operation(Arc::new(Operation { name, work, rules: Rules::none() }));
            }
            other => return other,
        }
    }
}

#[test]
fn every_golden_text_can_be_read() {
    let texts = golden_texts();
    let mut seen = 0;
    for (file, text) in &texts {
        match read_golden(text) {
            Ok(program) => assert_eq!(program.to_string(), *text, "{file}"),
            Err(why) => panic!("{file}: {why}\n{text}"),
        }
        seen += usize::from(text.starts_with("driven"));
    }
    assert!(texts.len() > 80 && seen > 10, "{} texts, {seen} of adjoints: where are they?", texts.len());
}
