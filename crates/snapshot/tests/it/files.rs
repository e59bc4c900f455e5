use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::{Checkpoint, Error, Kind, Label, read_snapshot, write_snapshot};
use safetensors::SafeTensors;

use crate::hostile::sound_checkpoint;

#[test]
fn anyone_who_reads_safetensors_reads_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let (label, checkpoint) = sound_checkpoint();
    write_snapshot(&Disks, &path, &label, &checkpoint).unwrap();

    let bytes = std::fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let u = file.tensor("u").unwrap();
    assert_eq!((u.dtype(), u.shape()), (safetensors::Dtype::F64, &[3][..]));
    assert_eq!(u.data(), [1.0, 2.5, -3.0].map(f64::to_le_bytes).concat());
    assert_eq!(file.tensor("flags").unwrap().shape(), [2, 2]);
    let (header, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!((8 + header) % 4096, 0, "the arrays start at a multiple of 4 KiB");
    let notes = metadata.metadata().clone().unwrap();
    assert_eq!(notes["step"], "41");
    assert_eq!(notes["position"], "simulate/for t=41");
    assert_eq!(notes["program"], "f00d");
    assert_eq!(notes["crc32.u"], format!("{:08x}", crc32fast::hash(u.data())));
}

#[test]
fn a_snapshot_comes_back_as_it_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let (mut label, mut checkpoint) = sound_checkpoint();
    let mut back = Checkpoint::default();
    for step in 0..3 {
        // Over the one before, and of another size.
        label.step = step;
        checkpoint.state.put(&format!("more {step}"), &vec![step as f32; 5000 * step as usize]).unwrap();
        write_snapshot(&Disks, &path, &label, &checkpoint).unwrap();
        assert_eq!(read_snapshot(&Disks, &path, &mut back).unwrap(), label);
        for array in checkpoint.state.arrays() {
            assert_eq!(back.state.array(array.name), Some(array));
        }
        assert_eq!(back.position, checkpoint.position);
        assert_eq!(back.state.arrays().len(), checkpoint.state.arrays().len());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file stays");
}

#[test]
fn an_empty_state_is_a_snapshot_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let label = Label { kind: Kind::Adjoint, ..Label::of_no_run("") };
    write_snapshot(&Disks, &path, &label, &Checkpoint::default()).unwrap();
    let mut back = Checkpoint::default();
    assert_eq!(read_snapshot(&Disks, &path, &mut back).unwrap(), label);
    assert_eq!(back, Checkpoint::default());
}

#[test]
fn every_flipped_bit_of_the_header_and_the_arrays_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let (label, checkpoint) = sound_checkpoint();
    write_snapshot(&Disks, &path, &label, &checkpoint).unwrap();
    let sound = std::fs::read(&path).unwrap();
    let padding = sound.windows(2).position(|pair| pair == b"  ").unwrap();
    for byte in (0..padding).chain(4096..sound.len()) {
        let mut flipped = sound.clone();
        flipped[byte] ^= 1 << (byte % 8);
        crate::hostile::check_snapshot_is_damaged(flipped, byte);
    }
}

#[test]
fn damage_is_described() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.safetensors");
    let (label, checkpoint) = sound_checkpoint();
    write_snapshot(&Disks, &path, &label, &checkpoint).unwrap();
    let sound = std::fs::read(&path).unwrap();
    let message = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = sound.clone();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        match read_snapshot(&Disks, &path, &mut Checkpoint::default()) {
            Err(error @ (Error::Damaged { .. } | Error::OtherFormat { .. })) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let replace = |bytes: &mut Vec<u8>, from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        bytes.splice(at..at + from.len(), to.bytes());
    };
    assert!(message(&|b| b.truncate(5)).ends_with("it has only 5 bytes"));
    assert!(message(&|b| b[7] = 1).contains("its header claims"));
    assert!(message(&|b| b.truncate(4100)).ends_with("its arrays claim 36 bytes, the file has 4"));
    assert!(message(&|b| b[4096] ^= 1).ends_with("the checksum of array `u` does not match"));
    assert!(
        message(&|b| replace(b, r#""41""#, r#""42""#)).ends_with("the checksum of its header does not match")
    );
    assert!(
        message(&|b| replace(b, "ebbtide snapshot", "ebbtide snapshop")).contains("it is not a snapshot")
    );
    let other = message(&|b| replace(b, "snapshot 2", "snapshot 1"));
    assert!(other.contains("another version") && other.contains("this version reads `ebbtide snapshot 2`"));
    assert!(message(&|b| b[8] = b'[').contains("its header does not parse"));
}

/// The names in a directory.
fn names(dir: &tempfile::TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(dir.path()).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn saving_touches_nothing_but_the_file_that_was_named() {
    let dir = tempfile::tempdir().unwrap();
    let (label, checkpoint) = sound_checkpoint();
    std::fs::write(dir.path().join("model.tmp"), "mine").unwrap();
    write_snapshot(&Disks, &dir.path().join("model"), &label, &checkpoint).unwrap();
    assert_eq!(names(&dir), ["model", "model.tmp"]);
    assert_eq!(std::fs::read(dir.path().join("model.tmp")).unwrap(), b"mine");
}

#[test]
fn a_save_that_fails_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (label, checkpoint) = sound_checkpoint();
    let target = dir.path().join("model");
    std::fs::create_dir(&target).unwrap();
    let error = write_snapshot(&Disks, &target, &label, &checkpoint).unwrap_err().to_string();
    assert!(error.starts_with(&format!("could not write {}: ", target.display())), "{error}");
    assert_eq!(names(&dir), ["model"]);
    let target = dir.path().join("nowhere").join("model");
    let error = write_snapshot(&Disks, &target, &label, &checkpoint).unwrap_err().to_string();
    assert!(error.starts_with(&format!("could not create {}: ", target.display())), "{error}");
}

#[test]
fn savers_of_one_file_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model");
    std::thread::scope(|scope| {
        for saver in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let (mut label, checkpoint) = sound_checkpoint();
                label.step = saver;
                for _ in 0..50 {
                    write_snapshot(&Disks, path, &label, &checkpoint).unwrap();
                }
            });
        }
    });
    assert!(read_snapshot(&Disks, &path, &mut Checkpoint::default()).unwrap().step < 4);
    assert_eq!(names(&dir), ["model"]);
}
