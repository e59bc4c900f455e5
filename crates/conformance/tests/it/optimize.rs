//! Quick code first, optimised code where it pays: the same bits, one build in the counters, nothing left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use ebbtide_conformance::{Input, launch};
use ebbtide_cpu::{Cache, Optimize, Options};
use ebbtide_ir::{Access, Binary, Builder, Literal, Program, Type};
use ebbtide_runtime::Compiled;

/// `for t in 0..steps { for i in par(0..n) { x[i] = x[i] * 1.000001 + 0.1 } }`.
fn program() -> Program {
    let mut b = Builder::new("steps");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let steps = b.scalar("steps", Type::Index);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    b.begin_for("t", zero, steps);
    let i = b.begin_par(&[("i", zero, n)])[0];
    let (v, factor, term) =
        (b.load(x, &[i]), b.literal(Literal::from(1.000001)), b.literal(Literal::from(0.1)));
    let product = b.binary(Binary::Mul, v, factor);
    let sum = b.binary(Binary::Add, product, term);
    b.store(x, &[i], sum);
    b.end_par();
    b.end_loop(None);
    b.finish().unwrap()
}

/// What the program makes of five elements in so many steps.
fn values(compiled: &Compiled, steps: i64) -> Vec<u8> {
    let elements = (0..5).map(|k| Literal::from(f64::from(k))).collect();
    launch(compiled, &[Input::Elements(vec![5], elements), Input::Scalar(Literal::index(steps))])
        .unwrap()
        .remove(0)
}

#[test]
fn code_is_optimised_where_it_pays() {
    let folder = tempfile::tempdir().unwrap();
    let compile = |name: &str, optimize| {
        let cache = Cache::at(folder.path().join(name));
        let (device, counters) =
            Options::new().threads(1).cache(cache.clone()).optimize(optimize).build().unwrap();
        (Compiled::new(&program(), &device).unwrap(), counters, cache)
    };
    let (compiled, counters, cache) = compile("auto", Optimize::WhereItPays);
    let few = values(&compiled, 3);
    assert_eq!(counters.builds(), 1);
    // A segment with much work waits for the optimised code, whatever runs beside it.
    let many = values(&compiled, 10_000_000);
    assert_eq!(counters.builds(), 1, "both are one build");
    assert_eq!(cache.contents().entries, 2);
    assert_eq!(values(&compiled, 3), few);
    // The next process finds the optimised code, though the quick code is there.
    let (device, counters) = Options::new().threads(1).cache(cache.clone()).build().unwrap();
    let again = Compiled::new(&program(), &device).unwrap();
    assert_eq!((counters.builds(), counters.cache_hits()), (0, 1));
    assert_eq!((values(&again, 3), cache.contents().entries), (few.clone(), 2));
    for (name, optimize) in [("always", Optimize::Always), ("never", Optimize::Never)] {
        let (compiled, counters, cache) = compile(name, optimize);
        assert_eq!(
            (values(&compiled, 3), values(&compiled, 10_000_000)),
            (few.clone(), many.clone()),
            "{name}"
        );
        assert_eq!((counters.builds(), cache.contents().entries), (1, 1), "{name}");
    }
}

/// Not a test of its own: runs quick code until the optimised code is under way, and ends.
#[test]
fn child() {
    let Some(folder) = std::env::var_os("EBBTIDE_TEST_UNDER_WAY") else { return };
    let folder = Path::new(&folder);
    let (device, _) = Options::new().threads(1).cache(Cache::at(folder.join("cache"))).build().unwrap();
    let compiled = Compiled::new(&program(), &device).unwrap();
    let few = values(&compiled, 1000);
    while !folder.join("under way").exists() {
        values(&compiled, 1000);
    }
    if std::env::var_os("EBBTIDE_TEST_FORK").is_some() {
        // SAFETY: the child uses what glibc lets the child of a process with threads use: memory, files, processes.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            // It has no thread that makes the optimised code: it makes it itself, and waits for nobody.
            let many = values(&compiled, 10_000_000);
            // SAFETY: it ends the child, and runs what is registered for the end of a process.
            unsafe { libc::exit(i32::from(values(&compiled, 1000) != few || many == few)) }
        }
        let mut status = -1;
        // SAFETY: the child is this process's own.
        unsafe { libc::waitpid(forked, &mut status, 0) };
        assert_eq!(status, 0, "the child of a fork has other bits");
        let compiler = fs::read_to_string(folder.join("under way")).unwrap().trim().parse().unwrap();
        // SAFETY: it sends nothing.
        assert_eq!(unsafe { libc::kill(compiler, 0) }, 0, "the child ended the compiler of its parent");
    }
}

/// A folder with a compiler whose first optimised code never comes: it says so, with its number, and then waits in a child of its
/// own. A process that runs quick code there until then, with what it printed.
fn run_child(forks: bool) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let compiler = folder.path().join("cc");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *-O2*) [ -e '{0}' ] && exec cc \"$@\"; echo $$ > '{0}.new'; mv '{0}.new' '{0}'; tail -f /dev/null & wait;; *) exec cc \"$@\";; esac\n",
        folder.path().join("under way").display()
    );
    fs::write(&compiler, script).unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "optimize::child", "--nocapture"]).stdout(Stdio::piped());
    child.env("EBBTIDE_TEST_UNDER_WAY", folder.path()).env("EBBTIDE_CC", &compiler);
    child.env_remove("EBBTIDE_OPTIMIZE");
    if forks {
        child.env("EBBTIDE_TEST_FORK", "1");
    }
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    (folder, said)
}

#[test]
fn the_child_of_a_fork_waits_for_no_thread_of_its_parent_and_ends_no_compiler_of_it() {
    let (_folder, said) = run_child(true);
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn a_process_that_ends_takes_its_compiler_with_it() {
    let (folder, _) = run_child(false);
    let names = fs::read_dir(folder.path().join("cache")).unwrap().map(|entry| entry.unwrap().path());
    let left: Vec<_> = names.filter(|path| path.is_dir()).collect();
    assert!(left.is_empty(), "{left:?}");
    // Those that were ended are gone within moments; one that lives on keeps this waiting.
    let group = fs::read_to_string(folder.path().join("under way")).unwrap();
    let living = || {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        stats
            .filter(|stat| {
                let fields: Vec<&str> =
                    stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
                fields.get(2) == Some(&group.trim()) && !matches!(fields.first(), Some(&("Z" | "X")))
            })
            .count()
    };
    while living() > 0 {
        std::thread::yield_now();
    }
}
