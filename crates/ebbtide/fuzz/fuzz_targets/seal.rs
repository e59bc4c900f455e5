//! The cache of compiled code: an entry or a seal that was changed is built again, never taken for what it is not.
#![no_main]

use std::fs;
use std::sync::LazyLock;

use ebbtide_runtime::cache::{Cache, Found, Kind};

#[path = "../entropy.rs"]
mod entropy;
use entropy::Entropy;

const CONTENT: &[u8] = b"what was built";

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let cache = Cache::at(FOLDER.path());
    let mut entropy = Entropy(data);
    let entry = |parts: &[&str]| {
        cache.entry(Kind::Library, parts, |_| Ok(CONTENT.to_vec())).expect("the disk works")
    };
    let (file, _) = entry(&["compiler", "flags", "text"]);
    let (_, found) = entry(&["compiler", "flags", "text"]);
    assert_eq!(found, Found::Hit);
    let seal = file.with_extension("seal");
    let sound = [fs::read(&file).expect("it is there"), fs::read(&seal).expect("it is there")];
    let mut changed = sound.clone();
    let raw = entropy.byte() & 3;
    let which = usize::from(raw & 1);
    if raw & 2 == 0 {
        while !entropy.is_empty() {
            let at = entropy.below(changed[which].len() + 1);
            let byte = entropy.byte();
            match changed[which].get_mut(at) {
                Some(place) => *place = byte,
                None => changed[which].push(byte),
            }
        }
    } else {
        changed[which] = entropy.0.to_vec();
    }
    fs::write(&file, &changed[0]).expect("the disk works");
    fs::write(&seal, &changed[1]).expect("the disk works");
    let (file, found) = entry(&["compiler", "flags", "text"]);
    assert_eq!(fs::read(&file).expect("it is there"), CONTENT);
    assert_eq!(found == Found::Hit, changed == sound, "a changed entry was taken for a sound one, or a sound one was not");
});
