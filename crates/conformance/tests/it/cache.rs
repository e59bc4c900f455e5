//! Compiled code on disk: found again, never trusted blindly (c46).

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use ebbtide_conformance::{Input, launch};
use ebbtide_cpu::{Cache, Optimize, Options};
use ebbtide_ir::{Access, Binary, Builder, Literal, Program, Type};
use ebbtide_runtime::Compiled;

/// `x[i] = x[i] + number`.
fn program(number: f64) -> Program {
    let mut b = Builder::new("cached");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
    let i = b.begin_par(&[("i", zero, n)])[0];
    let (v, number) = (b.load(x, &[i]), b.literal(Literal::from(number)));
    let sum = b.binary(Binary::Add, v, number);
    b.store(x, &[i], sum);
    b.end_par();
    b.finish().unwrap()
}

/// Compiles and runs, with optimised code alone, so that there is one entry however slow the machine is, with this cache: how often the compiler ran, and how often it was not needed.
fn compile(cache: &Cache, number: f64) -> (u64, u64) {
    let (device, counters) =
        Options::new().threads(1).cache(cache.clone()).optimize(Optimize::Always).build().unwrap();
    let compiled = Compiled::new(&program(number), &device).unwrap();
    let elements = [1.0, 2.0, 3.0].map(Literal::from).to_vec();
    let found = launch(&compiled, &[Input::Elements(vec![3], elements)]).unwrap();
    let expected: Vec<u8> = [1.0, 2.0, 3.0].iter().flat_map(|x: &f64| (x + number).to_ne_bytes()).collect();
    assert_eq!(found[0], expected);
    (counters.builds(), counters.cache_hits())
}

/// The files of the one entry: library and seal.
fn entry(folder: &Path) -> (PathBuf, PathBuf) {
    let mut libraries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    libraries.retain(|path| path.extension().is_some_and(|e| e == "so"));
    assert_eq!(libraries.len(), 1);
    (libraries[0].clone(), libraries[0].with_extension("seal"))
}

#[test]
fn c46_an_entry_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    assert_eq!(compile(&cache, 1.5), (1, 0));
    assert_eq!(compile(&cache, 1.5), (0, 1));
    assert_eq!(compile(&cache, 2.5), (1, 0), "another program is another entry");
    assert_eq!(cache.contents().entries, 2);
    assert_eq!(cache.clear().unwrap(), 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(compile(&cache, 1.5), (1, 0));
}

/// Does something to a library and its seal.
type Harm = fn(&Path, &Path);

#[test]
fn c46_an_entry_that_is_not_sound_is_rebuilt() {
    let harms: [(&str, Harm); 8] = [
        ("a flipped byte", |library, _| {
            let mut bytes = fs::read(library).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(library, bytes).unwrap();
        }),
        ("cut short", |library, _| {
            let bytes = fs::read(library).unwrap();
            fs::write(library, &bytes[..bytes.len() / 3]).unwrap();
        }),
        ("an empty library", |library, _| fs::write(library, "").unwrap()),
        ("no seal", |_, seal| fs::remove_file(seal).unwrap()),
        ("a seal of another version", |_, seal| {
            let text = fs::read_to_string(seal).unwrap();
            fs::write(seal, text.replace("ebbtide-cache-", "ebbtide-cache-0")).unwrap();
        }),
        ("writable by the group", |library, _| {
            fs::set_permissions(library, fs::Permissions::from_mode(0o664)).unwrap();
        }),
        ("a link to a library elsewhere", |library, _| {
            let elsewhere = library.with_extension("elsewhere");
            fs::rename(library, &elsewhere).unwrap();
            symlink(&elsewhere, library).unwrap();
        }),
        ("a seal that others can write", |_, seal| {
            fs::set_permissions(seal, fs::Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (harm, inflict) in harms {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        compile(&cache, 1.5);
        let (library, seal) = entry(folder.path());
        inflict(&library, &seal);
        assert_eq!(compile(&cache, 1.5), (1, 0), "{harm}");
        assert_eq!(compile(&cache, 1.5), (0, 1), "after {harm}");
    }
}

#[test]
fn c60_entries_that_change_places_are_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    compile(&cache, 1.5);
    let first = entry(folder.path());
    compile(&cache, 2.5);
    let all = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
    let second =
        all.into_iter().find(|path| path.extension().is_some_and(|e| e == "so") && *path != first.0).unwrap();
    let second = (second.clone(), second.with_extension("seal"));
    let aside = folder.path().join("aside");
    for (a, b) in [(&first.0, &second.0), (&first.1, &second.1)] {
        fs::rename(a, &aside).unwrap();
        fs::rename(b, a).unwrap();
        fs::rename(&aside, b).unwrap();
    }
    // `compile` compares what comes out.
    assert_eq!(compile(&cache, 1.5), (1, 0));
    assert_eq!(compile(&cache, 2.5), (1, 0));
    assert_eq!((compile(&cache, 1.5), compile(&cache, 2.5)), ((0, 1), (0, 1)));
}

#[test]
fn c46_a_folder_that_others_can_write_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    for mode in [0o777, 0o770, 0o1777] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        let (device, _) = Options::new().threads(1).cache(Cache::at(folder.path())).build().unwrap();
        let error = Compiled::new(&program(1.5), &device).err().unwrap().to_string();
        assert!(error.contains("can be written by others"), "{error}");
        assert!(error.contains("chmod go-w") && error.contains("EBBTIDE_CACHE can name another"), "{error}");
        assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o7777, mode);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn c46_a_folder_that_the_cache_makes_is_private() {
    let folder = tempfile::tempdir().unwrap();
    compile(&Cache::at(folder.path().join("cache")), 1.5);
    let made = fs::metadata(folder.path().join("cache")).unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o700);
}

#[test]
fn c46_what_others_put_into_the_folder_stays() {
    let folder = tempfile::tempdir().unwrap();
    let digits = "0123456789abcdef0123456789abcdef01234567";
    let files = [
        "libmine.so".to_string(),
        "kernel.cubin".to_string(),
        "letter.seal".to_string(),
        ".tmpfile".to_string(),
        format!("{digits}8.so"),
        format!("{}.so", digits.to_uppercase()),
        format!("{digits}.txt"),
        ".ebbtide-write-notes.md".to_string(),
    ];
    let folders = ["build-release", ".ebbtide-build-of-mine"];
    files.iter().for_each(|name| fs::write(folder.path().join(name), "mine").unwrap());
    for name in folders {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("mine"), "mine").unwrap();
    }
    let all_there = || {
        files
            .iter()
            .for_each(|name| assert_eq!(fs::read(folder.path().join(name)).unwrap(), b"mine", "{name}"));
        folders.iter().for_each(|name| assert!(folder.path().join(name).join("mine").exists(), "{name}"));
    };
    let cache = Cache::at(folder.path());
    compile(&cache, 1.5);
    let cache = cache.clone().limit(cache.contents().bytes);
    compile(&cache, 2.5);
    all_there();
    assert_eq!(cache.contents().entries, 1, "the older one went");
    // What an interrupted build leaves behind goes, as entries do.
    fs::write(folder.path().join(".ebbtide-write-a1B2c3"), "").unwrap();
    fs::create_dir(folder.path().join(".ebbtide-build-a1B2c3")).unwrap();
    assert_eq!(cache.clear().unwrap(), 1);
    all_there();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), files.len() + folders.len());
}

#[test]
fn c46_a_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let (device, _) = Options::new().threads(1).cache(Cache::at(file.join("cache"))).build().unwrap();
    let error = Compiled::new(&program(1.5), &device).err().unwrap().to_string();
    assert!(error.contains("EBBTIDE_CACHE can name another"), "{error}");
}

#[test]
fn c46_the_cache_is_kept_to_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    compile(&cache, 1.0);
    let one = cache.contents().bytes;
    let cache = cache.limit(2 * one + one / 2);
    for k in 2..6 {
        compile(&cache, f64::from(k));
    }
    let contents = cache.contents();
    assert!(contents.entries == 2 && contents.bytes <= 2 * one + one / 2, "{contents:?}");
    assert_eq!(compile(&cache, 5.0), (0, 1), "the newest entries stay");
}

/// Not a test of its own: what the processes below do.
#[test]
fn child() {
    let Some(folder) = std::env::var_os("EBBTIDE_TEST_CACHE") else { return };
    let (builds, hits) = compile(&Cache::at(folder), 7.5);
    println!("builds {builds} hits {hits}");
}

fn process(folder: &Path, compiler: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "cache::child", "--nocapture"]);
    command.env("EBBTIDE_TEST_CACHE", folder).env("EBBTIDE_CC", compiler);
    command.stdout(std::process::Stdio::piped());
    command
}

#[test]
fn c46_a_fresh_process_finds_the_entry_and_runs_no_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let (compiler, log) = (folder.path().join("cc"), folder.path().join("log"));
    fs::write(&compiler, format!("#!/bin/sh\necho ran >> '{}'\nexec cc \"$@\"\n", log.display())).unwrap();
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
    let cache = folder.path().join("cache");
    let said = |expected: &str| {
        let output = process(&cache, &compiler).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).to_string();
        assert!(output.status.success() && text.contains(expected), "{text}");
    };
    said("builds 1 hits 0");
    let runs = fs::read_to_string(&log).unwrap();
    assert_eq!(runs, "ran\n");
    said("builds 0 hits 1");
    assert_eq!(fs::read_to_string(&log).unwrap(), runs);
}

#[test]
fn c46_processes_that_build_the_same_entry_at_once_are_safe() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let children: Vec<_> = (0..4).map(|_| process(&cache, Path::new("cc")).spawn().unwrap()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(Cache::at(&cache).contents().entries, 1);
    assert_eq!(compile(&Cache::at(&cache), 7.5).0, 0);
}

/// A command that is no good C compiler: what is said of it.
struct Bad {
    what: &'static str,
    /// The script; the good one if there is none.
    script: Option<&'static str>,
    flags: &'static str,
    /// What the error says, all of it.
    said: &'static [&'static str],
}

const BAD: [Bad; 9] = [
    Bad {
        what: "never ends",
        script: Some("exec tail -f /dev/null"),
        flags: "",
        said: &["did not come to an end in 1 seconds", "EBBTIDE_CC_SECONDS", "EBBTIDE_CC can"],
    },
    Bad {
        what: "starts something that never ends",
        script: Some("tail -f /dev/null & wait"),
        flags: "",
        said: &["did not come to an end in 1 seconds"],
    },
    Bad {
        what: "writes garbage",
        script: Some("while [ $# -gt 0 ]; do [ \"$1\" = -o ] && echo garbage > \"$2\"; shift; done"),
        flags: "",
        said: &[".so could not be loaded", "EBBTIDE_CC can name another", "EBBTIDE_CACHE can name another"],
    },
    Bad {
        what: "writes nothing",
        script: Some("exit 0"),
        flags: "",
        said: &["says that it compiled", "program.so cannot be read", "EBBTIDE_CC can name another"],
    },
    Bad {
        what: "is killed",
        script: Some("kill -9 $$"),
        flags: "",
        said: &["was ended by signal 9", "memory"],
    },
    Bad {
        what: "says no",
        script: Some("echo 'no such header' >&2; exit 1"),
        flags: "",
        said: &["does not compile the least of programs", "no such header", "libc6-dev"],
    },
    Bad { what: "fails without a word", script: Some("exit 1"), flags: "", said: &["failed without a word"] },
    Bad {
        what: "does not know a flag",
        script: None,
        flags: "-fno-such-thing",
        said: &["EBBTIDE_CFLAGS, `-fno-such-thing`, and works without them", "-fno-such-thing"],
    },
    Bad {
        what: "is given a flag that spoils the library",
        script: None,
        flags: "-O1 -include /nowhere.h",
        said: &["EBBTIDE_CFLAGS", "/nowhere.h"],
    },
];

#[test]
fn c46_a_compiler_that_is_none_is_an_error_that_says_what_to_do() {
    for Bad { what, script, flags, said } in BAD {
        let folder = tempfile::tempdir().unwrap();
        let (compiler, cache) = (folder.path().join("cc"), folder.path().join("cache"));
        let script = script.unwrap_or("exec cc \"$@\"");
        fs::write(&compiler, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
        let mut process = process(&cache, &compiler);
        process.env("EBBTIDE_CFLAGS", flags).stderr(std::process::Stdio::piped());
        if what.contains("never ends") {
            process.env("EBBTIDE_CC_SECONDS", "1");
        }
        let output = process.output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success(), "{what}: {text}");
        said.iter().for_each(|said| assert!(text.contains(said), "{what}: {said}: {text}"));
        assert!(!text.contains("flaw of Ebbtide"), "{what}: {text}");
        let left: Vec<_> = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{what}: {left:?}");
    }
}
