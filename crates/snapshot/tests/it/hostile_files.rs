use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::write_snapshot;

use crate::hostile::{self, Entropy};
use crate::{Random, cases};

#[test]
fn hostile_snapshots_end_in_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sound.safetensors");
    let (label, checkpoint) = hostile::sound_checkpoint();
    write_snapshot(&Disks, &path, &label, &checkpoint).unwrap();
    let sound = std::fs::read(&path).unwrap();
    hostile::check_snapshot(sound.clone());
    let mut random = Random::new(2);
    for _ in 0..cases(20_000) {
        let entropy = random.bytes(120);
        hostile::check_snapshot(hostile::snapshot(&mut Entropy(&entropy), &sound));
    }
}

#[test]
fn hostile_journals_are_read_line_by_line() {
    let mut random = Random::new(3);
    for _ in 0..cases(5_000) {
        let entropy = random.bytes(160);
        hostile::check_journal(hostile::journal(&mut Entropy(&entropy)));
        hostile::check_journal(entropy);
    }
}

#[test]
fn hostile_manifests_end_in_an_error() {
    let mut random = Random::new(4);
    for _ in 0..cases(5_000) {
        let entropy = random.bytes(60);
        hostile::check_manifest(hostile::manifest(&mut Entropy(&entropy)));
    }
}
