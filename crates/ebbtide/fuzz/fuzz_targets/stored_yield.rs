//! Stored yields: raw bytes, and sound files whose parts were changed and whose checksums are right. Reading ends in an
//! error or in a yield that can be resumed without an access out of bounds.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use ebbtide::prelude::*;
use ebbtide_snapshot::fs::Disks;
use ebbtide_snapshot::{Checkpoint, Dtype, Label as SnapshotLabel, Position, read_snapshot, write_snapshot};

#[path = "../entropy.rs"]
mod entropy;
use entropy::Entropy;

#[derive(Label)]
enum Stage {
    Here,
}

/// Temporaries of several types are alive where it yields, and two are exchanged.
#[program]
fn paused(u: &mut Array1<f64>, stop: &mut Array0<i32>, steps: usize) {
    let n = u.len();
    let mut kept = Array1::<f64>::zeros([n]);
    let mut other = Array1::<f64>::zeros([n]);
    let mut high = Array1::<bool>::zeros([n]);
    for t in 0..steps {
        let scale = (t as f64) * 0.5;
        for i in par(0..n) {
            high[i] = u[i] > 0.5;
            kept[i] += u[i] * scale;
        }
        #[checkpoint(Stage::Here, yield_on = stop)]
        {
            for i in par(0..n) {
                if high[i] {
                    kept[i] += 1.0;
                }
            }
        }
        for i in par(0..n) {
            other[i] = kept[i] * scale + u[i];
        }
        swap(kept, other);
    }
    for i in par(0..n) {
        if high[i] {
            u[i] += kept[i];
        }
    }
}

#[derive(Clone)]
struct Part {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

struct Sound {
    compiled: Compiled<paused>,
    device: Device,
    path: PathBuf,
    bytes: Vec<u8>,
    label: SnapshotLabel,
    position: Position,
    parts: Vec<Part>,
    _folder: tempfile::TempDir,
}

static SOUND: LazyLock<Sound> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let device = Device::interpreter();
    let compiled = paused().compile(&device).expect("it compiles");
    let mut u = device.array(&[0.1, 0.9, 0.4, 0.7]).expect("an array");
    let mut stop = device.scalar(1).expect("a scalar");
    let Status::Yielded(at) = compiled.launch((&mut u, &mut stop, 3)).expect("it runs") else {
        panic!("it did not yield")
    };
    let path = folder.path().join("yield");
    at.save(&path).expect("the disk works");
    let bytes = std::fs::read(&path).expect("it was just written");
    let mut checkpoint = Checkpoint::default();
    let label = read_snapshot(&Disks, &path, &mut checkpoint).expect("it is sound");
    let parts = checkpoint
        .state
        .arrays()
        .map(|a| Part { name: a.name.into(), dtype: a.dtype, shape: a.shape.to_vec(), bytes: a.bytes.to_vec() })
        .collect();
    let position = checkpoint.position;
    Sound { compiled, device, path, bytes, label, position, parts, _folder: folder }
});

impl Sound {
    /// Reads what is at the path, and goes on from there.
    fn resume(&self) {
        let Ok(at) = self.compiled.load(&self.path) else { return };
        let mut u = self.device.array(&[0.1, 0.9, 0.4, 0.7]).expect("an array");
        let mut stop = self.device.scalar(0).expect("a scalar");
        let _ = self.compiled.resume(&at, (&mut u, &mut stop, 3));
    }

    /// A file with right checksums whose parts are not those that were written; `false` if there is no such file.
    fn write_changed(&self, entropy: &mut Entropy) -> bool {
        let mut parts = self.parts.clone();
        let mut position = self.position.clone();
        for _ in 0..8 {
            if entropy.is_empty() || parts.is_empty() {
                break;
            }
            let (at, with) = (entropy.below(parts.len()), entropy.below(parts.len()));
            let part = &mut parts[at];
            let size = part.dtype.size();
            match entropy.below(8) {
                // The lowest byte of a word: bounds of loops become other ones, not endless ones.
                0 | 1 if !part.bytes.is_empty() => {
                    let place = entropy.below(part.bytes.len()) / size * size;
                    part.bytes[place] = entropy.byte();
                }
                2 => drop(parts.remove(at)),
                3 => parts.swap(at, with),
                4 => {
                    let other = parts[with].clone();
                    (parts[at].bytes, parts[at].shape, parts[at].dtype) = (other.bytes, other.shape, other.dtype);
                }
                5 => {
                    let rows = entropy.below(9);
                    let row: usize = part.shape.iter().skip(1).product();
                    if let Some(first) = part.shape.first_mut() {
                        *first = rows;
                        part.bytes.resize(rows * row * size, 1);
                    }
                }
                6 => {
                    let kinds = [Dtype::U8, Dtype::Bool, Dtype::F32, Dtype::F64, Dtype::I64, Dtype::U64];
                    part.dtype = kinds[entropy.below(kinds.len())];
                    let count: usize = part.shape.iter().product();
                    part.bytes.resize(count * part.dtype.size(), 0);
                }
                _ => position = Position::root(),
            }
        }
        let mut checkpoint = Checkpoint::at(position);
        for part in &parts {
            // A byte that is no `bool` cannot be written.
            let bytes: Vec<u8> = match part.dtype {
                Dtype::Bool => part.bytes.iter().map(|byte| byte & 1).collect(),
                _ => part.bytes.clone(),
            };
            let put = checkpoint.state.put_with(&part.name, part.dtype, &part.shape, |place| place.copy_from_slice(&bytes));
            if put.is_err() {
                return false;
            }
        }
        write_snapshot(&Disks, &self.path, &self.label, &checkpoint).is_ok()
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let sound = &*SOUND;
    if sound.write_changed(&mut Entropy(data)) {
        sound.resume();
    }
    // Bytes over a sound file, and bytes alone.
    let mut bytes = sound.bytes.clone();
    let mut entropy = Entropy(data);
    while !entropy.is_empty() {
        let at = entropy.below(bytes.len());
        bytes[at] = entropy.byte();
    }
    for file in [&bytes[..], data] {
        std::fs::write(&sound.path, file).expect("the disk works");
        sound.resume();
    }
});
