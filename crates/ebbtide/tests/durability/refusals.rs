//! Launches that are refused change nothing.

use std::time::Duration;

use ebbtide::prelude::*;
use ebbtide_snapshot::Manifest;
use ebbtide_snapshot::fs::Disks;

use crate::kill;
use crate::problems::{nested, of_nested};

#[test]
fn c61_a_launch_that_is_refused_has_changed_nothing() {
    let folder = crate::folder::folder();
    let run = folder.path().join("run");
    let device = crate::cpu();
    let mut u = device.array(&[0.1, 0.2]).unwrap();
    let (mut c, mut loss) = (device.zeros([2]).unwrap(), device.scalar(0.0).unwrap());
    let g = nested().grad(nested::loss).wrt(nested::u).compile(&device).unwrap();
    g.launch_durable(&run, (&mut u, &mut c, 3, 2, &mut loss)).unwrap();
    // Files that the journal does not name, and no lock: a copy.
    std::fs::remove_file(run.join("lock")).unwrap();
    std::fs::write(run.join("00000099.safetensors"), "who knows").unwrap();
    std::fs::write(run.join("00000098.safetensors.tmp"), "half").unwrap();
    let before = kill::contents(&run);
    let mut refused = |u: &mut Array1<f64>, steps: usize, part: &str| {
        let error = g.launch_durable(&run, (u, &mut c, steps, 2, &mut loss)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(kill::contents(&run), before, "{error}");
    };
    refused(&mut u, 4, "`outer`");
    let mut other = device.array(&[0.1, 0.3]).unwrap();
    refused(&mut other, 3, "`u`");
    let other = nested().value_and_grad(nested::loss).wrt(nested::u).compile(&device).unwrap();
    let error = other.launch_durable(&run, (&mut u, &mut c, 3, 2, &mut loss)).unwrap_err().to_string();
    assert!(error.contains("the hash of the program"), "{error}");
    assert_eq!(kill::contents(&run), before, "{error}");
    g.launch_durable(&run, (&mut u, &mut c, 3, 2, &mut loss)).unwrap();
}

/// Changes the manifest as if it had been written so, checksum and all.
fn rewrite_manifest(run: &std::path::Path, from: &str, to: &str) {
    let compact = serde_json::to_string(&Manifest::read(&Disks, run).unwrap()).unwrap();
    let changed = compact.replace(from, to);
    assert_ne!(changed, compact, "{compact}");
    let (head, _) = changed.split_once(r#""checksum":"#).unwrap();
    let bare = format!(r#"{head}"checksum":""}}"#);
    let sealed = format!(r#"{head}"checksum":"{:08x}"}}"#, crc32fast::hash(bare.as_bytes()));
    std::fs::write(run.join("manifest.json"), sealed).unwrap();
}

#[test]
fn c61_a_run_of_other_laws_is_refused_with_the_version_that_continues_it() {
    let folder = crate::folder::folder();
    let run = folder.path().join("run");
    let mut problem = of_nested(4, Budget::StoreAll);
    problem.launch_in(&run).unwrap();
    let laws = format!(r#""laws":{}"#, ebbtide::ir::LAWS);
    rewrite_manifest(&run, &laws, r#""laws":99"#);
    let before = kill::contents(&run);
    let error = problem.launch_in(&run).unwrap_err().to_string();
    assert!(
        error.contains("version 99 of the laws") && error.contains("continue it with Ebbtide"),
        "{error}"
    );
    assert_eq!(kill::contents(&run), before);
}

#[test]
#[ignore = "a process with other flags of the compiler, for the test below"]
fn with_flags() {
    let Some(run) = std::env::var_os("EBBTIDE_TEST_RUN") else { return };
    let said = of_nested(4, Budget::StoreAll).launch_in(std::path::Path::new(&run)).unwrap_err().to_string();
    assert!(said.contains("input `EBBTIDE_CFLAGS` was not given and is now `-O1`"), "{said}");
}

#[test]
fn c61_a_run_of_other_compiler_flags_is_refused() {
    let folder = crate::folder::folder();
    let run = folder.path().join("run");
    of_nested(4, Budget::StoreAll).launch_in(&run).unwrap();
    let before = kill::contents(&run);
    let output = kill::child("refusals::with_flags")
        .env("EBBTIDE_TEST_RUN", &run)
        .env("EBBTIDE_CFLAGS", "-O1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(kill::contents(&run), before);
}

#[test]
fn c58_a_launch_that_cannot_fit_is_refused_with_both_numbers() {
    let device = crate::cpu();
    let mut u = device.array(&[0.1; 1000]).unwrap();
    let (mut c, mut loss) = (device.zeros([1000]).unwrap(), device.scalar(0.0).unwrap());
    let g = nested().grad(nested::loss).wrt(nested::u).budget(Budget::StoreAll).compile(&device).unwrap();
    let needed = g.plan((&mut u, &mut c, 1 << 30, 2, &mut loss)).unwrap().peak_bytes();
    let folder = crate::folder::folder();
    let run = folder.path().join("run");
    for durable in [false, true] {
        let args = (&mut u, &mut c, 1 << 30, 2, &mut loss);
        let error = if durable { g.launch_durable(&run, g.shared(args)) } else { g.launch(g.shared(args)) }
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("takes {:.2} TiB of memory", needed as f64 / (1_u64 << 40) as f64))
                && error.contains("B are free"),
            "{error}"
        );
    }
    assert!(!run.exists());
}

#[test]
fn a_run_is_continued_under_any_interval() {
    let folder = crate::folder::folder();
    let device = crate::cpu();
    let mut u = device.array(&[0.1, 0.2]).unwrap();
    let (mut c, mut loss) = (device.zeros([2]).unwrap(), device.scalar(0.0).unwrap());
    let g = nested().grad(nested::loss).wrt(nested::u).compile(&device).unwrap();
    let first = g
        .launch_durable_every(folder.path().join("run"), Duration::ZERO, (&mut u, &mut c, 3, 2, &mut loss))
        .unwrap();
    let again = g.launch_durable(folder.path().join("run"), (&mut u, &mut c, 3, 2, &mut loss)).unwrap();
    assert_eq!(first.get(nested::u).unwrap().to_vec(), again.get(nested::u).unwrap().to_vec());
}
