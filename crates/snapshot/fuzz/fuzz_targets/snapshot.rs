#![no_main]

use std::sync::LazyLock;

use ebbtide_snapshot::fs::Disks;

#[path = "../hostile.rs"]
#[allow(dead_code)]
mod hostile;

/// The bytes of a sound snapshot.
static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("ebbtide-fuzz-{}.safetensors", std::process::id()));
    let (label, checkpoint) = hostile::sound_checkpoint();
    ebbtide_snapshot::write_snapshot(&Disks, &path, &label, &checkpoint).expect("the disk works");
    let bytes = std::fs::read(&path).expect("it was just written");
    let _ = std::fs::remove_file(&path);
    bytes
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hostile::check_snapshot(hostile::snapshot(&mut hostile::Entropy(data), &SOUND));
    hostile::check_snapshot(data.to_vec());
});
