//! Files that nobody should write, made from a string of bytes, and what must hold when they are read.
//!
//! The fuzz targets and the ordinary tests share this module: the one feeds it what the fuzzer finds, the other
//! pseudo-random bytes.

use std::io;
use std::path::Path;

use ebbtide_snapshot::fs::{Entry, FileSystem, InputFile, LockGuard, OutputFile};
use ebbtide_snapshot::{
    Budget, Checkpoint, Error, Identity, Kind, Label, Manifest, Position, Survey, read_journal, read_snapshot,
};

/// Numbers taken from a string of bytes; zeros when it is used up.
pub struct Entropy<'a>(pub &'a [u8]);

impl Entropy<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number % limit.max(1)
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// A number that a reader may stumble over.
    fn number(&mut self) -> u64 {
        let base = self.pick(&[0, 1, 7, 8, 16, 4088, 4096, 1 << 31, 1 << 32, 1 << 61, 1 << 63, u64::MAX]);
        base.wrapping_add(self.below(5) as u64).wrapping_sub(2)
    }
}

/// A disk with one file, whatever its name.
#[derive(Debug)]
struct OneFile(Vec<u8>);

struct Reading(io::Cursor<Vec<u8>>);

impl InputFile for Reading {
    fn size(&self) -> u64 {
        self.0.get_ref().len() as u64
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        io::Read::read_exact(&mut self.0, bytes)
    }
}

fn nothing<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

impl FileSystem for OneFile {
    fn open(&self, _: &Path) -> io::Result<Box<dyn InputFile>> {
        Ok(Box::new(Reading(io::Cursor::new(self.0.clone()))))
    }
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        nothing()
    }
    fn create_new_dir(&self, _: &Path) -> io::Result<()> {
        nothing()
    }
    fn create(&self, _: &Path) -> io::Result<Box<dyn OutputFile>> {
        nothing()
    }
    fn append(&self, _: &Path) -> io::Result<Box<dyn OutputFile>> {
        nothing()
    }
    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        nothing()
    }
    fn remove(&self, _: &Path) -> io::Result<()> {
        nothing()
    }
    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        nothing()
    }
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        nothing()
    }
    fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
        nothing()
    }
    fn lock(&self, _: &Path) -> io::Result<Option<LockGuard>> {
        nothing()
    }
}

/// A sound snapshot, to spoil.
pub fn sound_checkpoint() -> (Label, Checkpoint) {
    let label = Label {
        kind: Kind::State,
        step: 41,
        steps: Some(90),
        run: "0123abcd".into(),
        program: "f00d".into(),
    };
    let mut checkpoint = Checkpoint::at(Position::root().then(0, "simulate").then_in_loop(0, "for t", 41));
    let state = &mut checkpoint.state;
    let result = state
        .put("u", &[1.0, 2.5, -3.0])
        .and_then(|()| state.put_shaped("flags", &[2, 2], &[true, false, true, true]))
        .and_then(|()| state.put_scalar("t", 7_i64));
    assert!(result.is_ok());
    (label, checkpoint)
}

/// The bytes of a snapshot file.
pub fn snapshot(entropy: &mut Entropy<'_>, sound: &[u8]) -> Vec<u8> {
    match entropy.below(3) {
        0 => spoil(entropy, sound.to_vec()),
        1 => entropy.0.to_vec(),
        _ => {
            let header = header(entropy);
            let claimed = match entropy.below(4) {
                0 => entropy.number(),
                _ => header.len() as u64,
            };
            let mut file = claimed.to_le_bytes().to_vec();
            file.extend_from_slice(header.as_bytes());
            file.resize(file.len() + entropy.below(200), entropy.byte());
            file
        }
    }
}

fn header(entropy: &mut Entropy<'_>) -> String {
    let names =
        ["u", "v", "../../etc/passwd", "/absolute", "a\\u0000b", "", "__metadata__", "u\\u202e", "crc32.u"];
    let dtypes = ["F64", "F32", "BOOL", "I64", "F4", "BF16", "C64", "F128", ""];
    let mut entries = Vec::new();
    for _ in 0..entropy.below(5) {
        let shape: Vec<String> = (0..entropy.below(4)).map(|_| entropy.number().to_string()).collect();
        let (start, length) = (entropy.below(64) as u64, entropy.below(64) as u64);
        let (start, end) = if entropy.below(4) == 0 {
            (entropy.number(), entropy.number())
        } else {
            (start, start + length)
        };
        let (name, dtype) = (entropy.pick(&names), entropy.pick(&dtypes));
        entries.push(format!(
            r#""{name}":{{"dtype":"{dtype}","shape":[{}],"data_offsets":[{start},{end}]}}"#,
            shape.join(",")
        ));
    }
    if entropy.below(2) == 0 {
        let step = entropy.number();
        entries.push(format!(
            r#""__metadata__":{{"format":"ebbtide snapshot 2","kind":"state","step":"{step}","checksum":"00000000"}}"#
        ));
    }
    if entropy.below(8) == 0 {
        let depth = entropy.below(3000);
        entries.push(format!(r#""deep":{}{}"#, "[".repeat(depth), "]".repeat(depth)));
    }
    format!("{{{}}}", entries.join(","))
}

/// The lines of a journal.
pub fn journal(entropy: &mut Entropy<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..entropy.below(20) {
        let (step, file) = (entropy.number(), entropy.number());
        let json = match entropy.below(7) {
            0 => format!(r#"{{"n":{step},"at":{file},"did":"stored","step":{step},"file":{file}}}"#),
            1 => format!(r#"{{"n":1,"at":2,"did":"dropped","file":{file}}}"#),
            2 => format!(
                r#"{{"n":1,"at":2,"did":"reversed","step":{step},"steps":{file},"file":{file},"supersedes":{step}}}"#
            ),
            3 => format!(r#"{{"n":1,"at":2,"did":"finished","steps":{step},"file":{file}}}"#),
            4 => format!(r#"{{"n":1,"at":2,"did":"stored","step":{step},"file":"../../x"}}"#),
            5 => r#"{"did":"forgotten"}"#.to_owned(),
            _ => "[".repeat(entropy.below(3000)),
        };
        let checksum = match entropy.below(8) {
            0 => 0,
            _ => crc32fast::hash(json.as_bytes()),
        };
        text.extend_from_slice(format!("{checksum:08x} {json}\n").as_bytes());
    }
    if entropy.below(2) == 0 { spoil(entropy, text) } else { text }
}

/// The text of a manifest.
pub fn manifest(entropy: &mut Entropy<'_>) -> Vec<u8> {
    let identity = Identity::new("heat", "f00d").input("nu", 0.1);
    let sound = Manifest::new(
        identity,
        "revolve steps=3",
        Some(3),
        Budget { slots: 3, block: 1, disk_slots: 0, disk_cost: 1 },
    );
    let text = serde_json::to_vec(&sound).unwrap_or_default();
    match entropy.below(3) {
        0 => entropy.0.to_vec(),
        _ => spoil(entropy, text),
    }
}

fn spoil(entropy: &mut Entropy<'_>, mut file: Vec<u8>) -> Vec<u8> {
    for _ in 0..=entropy.below(4) {
        let at = entropy.below(file.len() + 1);
        match entropy.below(5) {
            0 => file.truncate(at),
            1 if at < file.len() => file[at] ^= 1 << entropy.below(8),
            2 if at < file.len() => file[at] = entropy.byte(),
            3 => file.insert(at, entropy.byte()),
            _ => file.extend_from_slice(&vec![entropy.byte(); entropy.below(64)]),
        }
    }
    file
}

/// Whether two checkpoints hold the same, whatever the order of their arrays.
fn same(a: &Checkpoint, b: &Checkpoint) -> bool {
    a.position == b.position
        && a.state.arrays().len() == b.state.arrays().len()
        && a.state.arrays().all(|array| b.state.array(array.name) == Some(array))
}

/// Reading must end in what was written or in an error, and take no more memory than the file has bytes.
pub fn check_snapshot(file: Vec<u8>) {
    let size = file.len() as u64;
    let mut checkpoint = Checkpoint::default();
    match read_snapshot(&OneFile(file), Path::new("snapshot"), &mut checkpoint) {
        Ok(label) => {
            let (sound_label, sound) = sound_checkpoint();
            assert!(
                label == sound_label && same(&checkpoint, &sound),
                "a spoilt snapshot passed: {label:?} {checkpoint:?}"
            );
        }
        Err(Error::Damaged { .. } | Error::OtherFormat { .. } | Error::Io { .. }) => {
            assert_eq!(checkpoint.state.bytes(), 0)
        }
        Err(error) => panic!("an error of the wrong kind: {error}"),
    }
    assert!(checkpoint.state.bytes() <= size);
}

/// A journal always reads, to good records and a list of what is damaged.
pub fn check_journal(file: Vec<u8>) {
    let lines = file.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count();
    match read_journal(&OneFile(file), Path::new("journal")) {
        Ok(history) => {
            // Of lines that are missing there is one sentence, of very many damaged ones too.
            let whole = history.damage.iter().filter(|what| what.starts_with("the journal line")).count();
            assert!(history.records.len() + whole == lines || whole == 20);
        }
        Err(error) => panic!("{error}"),
    }
}

/// A manifest reads to what was written, or not at all.
pub fn check_manifest(file: Vec<u8>) {
    match Manifest::read(&OneFile(file.clone()), Path::new("run")) {
        Ok(manifest) => {
            assert_eq!((manifest.schedule.as_str(), manifest.steps), ("revolve steps=3", Some(3)))
        }
        // A spoilt number is another number.
        Err(Error::Damaged { .. } | Error::OtherFormat { .. } | Error::Io { .. }) => {}
        Err(error) => panic!("an error of the wrong kind: {error}"),
    }
    // The same bytes as manifest and journal of one run.
    let _ = Survey::read(&OneFile(file), Path::new("run"));
}

/// A file that differs from a sound one in a byte that matters does not read.
#[allow(dead_code, reason = "the fuzz targets have no use for it")]
pub fn check_snapshot_is_damaged(file: Vec<u8>, byte: usize) {
    let result = read_snapshot(&OneFile(file), Path::new("snapshot"), &mut Checkpoint::default());
    let refused = matches!(result, Err(Error::Damaged { .. } | Error::OtherFormat { .. } | Error::Io { .. }));
    assert!(refused, "byte {byte}: {result:?}");
}
