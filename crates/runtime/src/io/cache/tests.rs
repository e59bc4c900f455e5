use std::path::Path;

use super::*;

/// The number of cases of a property test: `EBBTIDE_CASES`, or else the number given.
fn cases(usual: u64) -> u64 {
    std::env::var("EBBTIDE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// An entry with this content: was it there?
fn entry(cache: &Cache, kind: Kind, parts: &[&str], content: &str) -> (PathBuf, Found) {
    let (path, found) = cache.entry(kind, parts, |_| Ok(content.as_bytes().to_vec())).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), content, "{parts:?}");
    (path, found)
}

fn both(file: &Path) -> [PathBuf; 2] {
    [file.to_path_buf(), file.with_extension("seal")]
}

#[test]
fn c60_an_entry_is_bound_to_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let wanted = ["compiler", "flags", "processor", "text"];
    let (mine, _) = entry(&cache, Kind::Library, &wanted, "mine");
    for part in 0..wanted.len() {
        // The same entry but for one part, under the name of the one that is wanted.
        let mut other = wanted;
        other[part] = "other";
        let (theirs, found) = entry(&cache, Kind::Library, &other, "theirs");
        assert_eq!(found, Found::Built);
        for (from, to) in both(&theirs).iter().zip(both(&mine)) {
            fs::copy(from, to).unwrap();
        }
        assert_eq!(entry(&cache, Kind::Library, &wanted, "mine").1, Found::Built, "another {}", wanted[part]);
        assert_eq!(entry(&cache, Kind::Library, &wanted, "mine").1, Found::Hit);
        // The two change places.
        let [mine_file, mine_seal] = both(&mine);
        let [their_file, their_seal] = both(&theirs);
        let aside = folder.path().join("aside");
        for (a, b) in [(&mine_file, &their_file), (&mine_seal, &their_seal)] {
            fs::rename(a, &aside).unwrap();
            fs::rename(b, a).unwrap();
            fs::rename(&aside, b).unwrap();
        }
        assert_eq!(entry(&cache, Kind::Library, &wanted, "mine").1, Found::Built);
        assert_eq!(entry(&cache, Kind::Library, &other, "theirs").1, Found::Built);
    }
    // Code for one kind of machine is not code for another.
    let (library, _) = entry(&cache, Kind::Library, &wanted, "mine");
    let cubin = library.with_extension("cubin");
    fs::copy(&library, &cubin).unwrap();
    assert_eq!(entry(&cache, Kind::Cubin, &wanted, "for a GPU").1, Found::Built);
}

#[test]
fn c60_parts_that_only_look_alike_are_other_entries() {
    let keys = [&["ab", "c"][..], &["a", "bc"], &["abc"], &["ab", "c", ""], &["", "ab", "c"]].map(seal::key);
    for (k, key) in keys.iter().enumerate() {
        assert!(key.len() == KEY_DIGITS && !keys[..k].contains(key), "{k}");
    }
}

/// A random change of a file; `None` where it would change nothing.
fn changed(bytes: &[u8], random: &mut u64) -> Option<Vec<u8>> {
    let mut next = |below: usize| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) as usize % below.max(1)
    };
    let mut changed = bytes.to_vec();
    match next(6) {
        0 if !bytes.is_empty() => {
            let at = next(bytes.len());
            changed[at] ^= 1 << next(8);
        }
        1 => changed.truncate(next(bytes.len())),
        2 => changed.extend((0..=next(2 * seal::MOST_BYTES as usize)).map(|k| k as u8)),
        3 if bytes.len() > 1 => {
            let (a, b) = (next(bytes.len()), next(bytes.len()));
            changed.swap(a, b);
        }
        4 => changed = (0..next(300)).map(|_| next(256) as u8).collect(),
        _ => changed.insert(next(bytes.len() + 1), next(256) as u8),
    }
    (changed != bytes).then_some(changed)
}

#[test]
fn c60_an_entry_that_was_changed_in_any_way_is_built_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let (file, _) = entry(&cache, Kind::Library, &["text"], "some code");
    let sound = both(&file).map(|path| fs::read(path).unwrap());
    let (mut random, mut tried) = (46, 0);
    for case in 0..cases(2000) {
        let which = case as usize % 2;
        let Some(harmed) = changed(&sound[which], &mut random) else { continue };
        fs::write(&both(&file)[which], &harmed).unwrap();
        let found = entry(&cache, Kind::Library, &["text"], "some code").1;
        assert_eq!(found, Found::Built, "{:?}", String::from_utf8_lossy(&harmed));
        assert_eq!(fs::read(&both(&file)[0]).unwrap(), sound[0]);
        assert_eq!(fs::read(&both(&file)[1]).unwrap(), sound[1]);
        tried += 1;
    }
    assert!(tried > cases(2000) / 2, "{tried}");
    assert_eq!(entry(&cache, Kind::Library, &["text"], "some code").1, Found::Hit);
}

#[test]
fn c46_clearing_spares_what_is_being_built_and_takes_what_dead_processes_left() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    entry(&cache, Kind::Library, &["old"], "old");
    // A process that was killed leaves a folder, with a lock that is free, or from before there were locks without one.
    for (name, files) in [("a1B2c3", &["lock", "program.c"][..]), ("d4E5f6", &["program.c"]), ("g7H8i9", &[])]
    {
        let left = folder.path().join(format!(".ebbtide-build-{name}"));
        fs::create_dir(&left).unwrap();
        files.iter().for_each(|file| fs::write(left.join(file), "1234").unwrap());
    }
    let (path, found) = cache
        .entry(Kind::Library, &["new"], |work| {
            fs::write(work.join("program.c"), "text").unwrap();
            let Contents { entries, abandoned, abandoned_bytes, .. } = cache.contents();
            assert_eq!((entries, abandoned, abandoned_bytes), (1, 3, 12));
            assert_eq!(cache.clear().unwrap(), 1);
            assert_eq!(cache.contents(), Contents::default());
            Ok(fs::read(work.join("program.c")).unwrap())
        })
        .unwrap();
    assert_eq!((fs::read(path).unwrap(), found), (b"text".to_vec(), Found::Built));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "an entry and its seal");
}

/// Threads that build and threads that clear away what dead processes left: nobody loses the folder in which it builds.
#[test]
fn a_workplace_that_was_just_made_is_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let builders: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let place = Workplace::new(folder.path()).unwrap();
                        fs::write(place.path().join("program.c"), "text").unwrap();
                        assert_eq!(fs::read(place.path().join("program.c")).unwrap(), b"text");
                    }
                })
            })
            .collect();
        let clearing = [(); 2].map(|()| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    remove_abandoned(folder.path());
                }
            })
        });
        let built: Vec<_> = builders.into_iter().map(|builder| builder.join()).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        clearing.into_iter().for_each(|thread| thread.join().unwrap());
        built.into_iter().for_each(|built| built.unwrap());
    });
    remove_abandoned(folder.path());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn what_dead_processes_left_goes_when_something_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join(".ebbtide-build-a1B2c3");
    fs::create_dir(&left).unwrap();
    let probe = Cache::at(folder.path()).probe().unwrap();
    entry(&Cache::at(folder.path()), Kind::Cubin, &["text"], "code");
    assert!(!left.exists() && probe.cache().problem().is_none());
    entry(probe.cache(), Kind::Cubin, &["text"], "code");
    drop(probe);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "an entry and its seal");
}
