//! Files that are far larger than anything we write, or claim to be: an error or linear time, and bounded memory.

use std::fs::File;
use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::{
    Checkpoint, Error, Label, Manifest, SnapshotReader, State, free_memory, read_journal, read_snapshot,
    write_snapshot,
};
use serde_json::{Value, json};

/// A file whose one array claims so many bytes, all of them zero and none of them on disk; header and checksum are right.
fn sparse(path: &Path, bytes: u64) {
    let mut checkpoint = Checkpoint::default();
    checkpoint.state.put("u", &[0u8; 4]).unwrap();
    write_snapshot(&Disks, path, &Label::of_no_run("f00d"), &checkpoint).unwrap();
    let file = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
    header["u"]["shape"] = json!([bytes]);
    header["u"]["data_offsets"] = json!([0, bytes]);
    header["__metadata__"].as_object_mut().unwrap().remove("checksum");
    let checksum = format!("{:08x}", crc32fast::hash(header.to_string().as_bytes()));
    header["__metadata__"]["checksum"] = json!(checksum);
    let text = header.to_string();
    let file = File::create(path).unwrap();
    let mut out = BufWriter::new(&file);
    out.write_all(&(text.len() as u64).to_le_bytes()).unwrap();
    out.write_all(text.as_bytes()).unwrap();
    drop(out);
    file.set_len(8 + text.len() as u64 + bytes).unwrap();
}

#[test]
fn c60_a_snapshot_of_more_than_there_is_memory_is_refused_with_both_numbers() {
    let Some(free) = free_memory() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tebibyte");
    const TEBIBYTE: u64 = 1 << 40;
    assert!(free < TEBIBYTE, "this test needs a smaller machine");
    sparse(&path, TEBIBYTE);
    // Its header is small and sound.
    assert_eq!(SnapshotReader::open(&Disks, &path).unwrap().bytes(), TEBIBYTE);
    let error = read_snapshot(&Disks, &path, &mut Checkpoint::default()).unwrap_err();
    let Error::TooLarge { bytes, free, .. } = error else { panic!("{error}") };
    assert!(bytes == TEBIBYTE && free < bytes);
    let said = error.to_string();
    let free = format!("{:.2} GiB of memory are free", free as f64 / f64::from(1 << 30));
    assert!(said.contains("holds 1.00 TiB") && said.contains(&free), "{said}");
}

#[test]
fn c60_memory_that_cannot_be_had_is_an_error() {
    for bytes in [1_usize << 60, usize::MAX / 2, usize::MAX] {
        let error = State::new().reserve(bytes).unwrap_err();
        assert!(matches!(error, ebbtide_checkpoint::Error::NoMemory { .. }), "{error}");
    }
    let mut state = State::new();
    state.put("u", &[1.0]).unwrap();
    assert!(state.put_with("v", ebbtide_snapshot::Dtype::F64, &[1 << 58], |_| ()).is_err());
    // What was there before is there still, and there is room for more of a reasonable size.
    assert_eq!(state.get_vec::<f64>("u").unwrap(), [1.0]);
    state.put("w", &[2.0]).unwrap();
}

#[test]
fn c60_a_journal_of_gigabytes_is_an_error_and_one_of_garbage_is_read_in_bounded_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.txt");
    let mut file = File::create(&path).unwrap();
    file.set_len(4 << 30).unwrap();
    let error = read_journal(&Disks, &path).unwrap_err().to_string();
    assert!(error.contains("more than any journal") && error.contains("set it aside"), "{error}");

    // A million lines, each of them damaged, and one that never ends.
    file.set_len(0).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&b"x\n".repeat(1 << 20)).unwrap();
    file.write_all(&vec![b'y'; 8 << 20]).unwrap();
    let history = read_journal(&Disks, &path).unwrap();
    assert!(history.records.is_empty());
    assert_eq!(history.damage.len(), 21);
    assert!(history.damage[20].contains(&((1 << 20) + 1 - 20).to_string()), "{}", history.damage[20]);

    file.set_len(1 << 30).unwrap();
    std::fs::rename(&path, dir.path().join("manifest.json")).unwrap();
    let error = Manifest::read(&Disks, dir.path()).unwrap_err().to_string();
    assert!(error.contains("more than any manifest"), "{error}");
}

/// Time in proportion to their number: with time in proportion to its square this test would take minutes.
#[test]
fn c60_very_many_arrays_in_a_file_are_read_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many");
    let mut checkpoint = Checkpoint::default();
    for k in 0..20_000 {
        checkpoint.state.put_scalar(&k.to_string(), k as u8).unwrap();
    }
    write_snapshot(&Disks, &path, &Label::of_no_run(""), &checkpoint).unwrap();
    let mut back = Checkpoint::default();
    read_snapshot(&Disks, &path, &mut back).unwrap();
    assert_eq!(back.state.scalar::<u8>("19999").unwrap(), 19_999_u32 as u8);
    for k in 20_000..400_000 {
        checkpoint.state.put_scalar(&k.to_string(), k as u8).unwrap();
    }
    let error = write_snapshot(&Disks, &path, &Label::of_no_run(""), &checkpoint).unwrap_err().to_string();
    assert!(error.contains("too many arrays"), "{error}");
    // A header that claims to be longer than any is not read.
    let mut file = vec![0; 64];
    file[..8].copy_from_slice(&(1_u64 << 33).to_le_bytes());
    std::fs::write(&path, &file).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(1 << 34).unwrap();
    let error = read_snapshot(&Disks, &path, &mut Checkpoint::default()).unwrap_err().to_string();
    assert!(error.contains("its header claims"), "{error}");
}

/// What the shell's limit leaves is what is free.
#[cfg(target_os = "linux")]
#[test]
fn c60_under_a_limit_of_the_address_space_a_file_that_does_not_fit_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gibibyte");
    sparse(&path, 1 << 30);
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg("ulimit -v 600000; exec \"$0\" --exact hostile_sizes::reader --ignored --test-threads=1")
        .arg(std::env::current_exe().unwrap())
        .env("EBBTIDE_TEST_FILE", &path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{:?} {}", output.status, String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "a process with little memory, for the test above"]
fn reader() {
    let Some(path) = std::env::var_os("EBBTIDE_TEST_FILE") else { return };
    let error = read_snapshot(&Disks, Path::new(&path), &mut Checkpoint::default()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    // A failed allocation too is an error here, not the end of the process.
    let error = State::new().reserve(1 << 30).unwrap_err();
    assert!(matches!(error, ebbtide_checkpoint::Error::NoMemory { .. }), "{error}");
}
