//! The codec of checkpoints: the header of a file, which says what the file is and where its arrays are.
//!
//! A file starts with the length of its header (8 bytes), the header, and then the arrays, one after the other. The header
//! is filled up with spaces so that the arrays start at a multiple of 4 KiB: they can be written and read from where they lie.
//!
//! Input and output: JSON text in the form of `safetensors`, whose notes (`__metadata__`) hold the label, the checksum of
//! each array, and the checksum of the header itself. A header that decodes is as it was written, to the last bit that
//! matters; whether the arrays are too is seen when they are read.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::buffer::{ALIGNMENT, Buffer};
use crate::{Dtype, Error, Position};

/// The format that this version writes and reads.
pub const FORMAT: &str = "ebbtide snapshot 2";
/// What a header may take at most. A hundred thousand arrays fit; a hostile length does not.
pub const LARGEST_HEADER: u64 = 32 << 20;

/// What a snapshot file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A working state, from which the run can go forward.
    State,
    /// An adjoint, with which the run can continue reversing.
    Adjoint,
    /// The complete gradient.
    Result,
}

impl Kind {
    fn parse(text: &str) -> Option<Self> {
        [Kind::State, Kind::Adjoint, Kind::Result].into_iter().find(|kind| kind.to_string() == text)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::State => "state",
            Kind::Adjoint => "adjoint",
            Kind::Result => "result",
        })
    }
}

/// What a snapshot file says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// What it holds.
    pub kind: Kind,
    /// How far the run had come, as its journal counts it: the step that the state stands before, or the number of steps
    /// that the adjoint has still to be taken through.
    pub step: u64,
    /// The number of steps of the run, where it is known.
    pub steps: Option<u64>,
    /// The run that it belongs to; empty if none.
    pub run: String,
    /// The hash of what is computed; empty if none.
    pub program: String,
}

impl Label {
    /// The label of a state that belongs to no run.
    pub fn of_no_run(program: impl Into<String>) -> Self {
        Self { kind: Kind::State, step: 0, steps: None, run: String::new(), program: program.into() }
    }
}

/// One array of a snapshot file, as its header describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its extents, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// The bytes of all its elements.
    pub bytes: usize,
    /// The checksum of these bytes.
    pub checksum: u32,
}

impl ArrayInfo {
    /// Describes an array whose bytes have this checksum; `None` if no array can have this shape.
    pub fn new(name: impl Into<String>, dtype: Dtype, shape: &[usize], checksum: u32) -> Option<Self> {
        let elements = shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent))?;
        let bytes = elements.checked_mul(dtype.size()).filter(|bytes| isize::try_from(*bytes).is_ok())?;
        Some(Self { name: name.into(), dtype, shape: shape.to_vec(), bytes, checksum })
    }
}

/// A whole header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the file says about itself.
    pub label: Label,
    /// The position of the checkpoint.
    pub position: Position,
    /// The arrays, in the order in which their bytes stand in the file.
    pub arrays: Vec<ArrayInfo>,
}

impl Header {
    /// The bytes of all arrays together.
    pub fn data_bytes(&self) -> u64 {
        self.arrays.iter().map(|array| array.bytes as u64).sum()
    }

    /// Everything that stands before the arrays: length, header and padding.
    pub fn encode(&self) -> Result<Buffer, Error> {
        let text = self.text().map_err(bad)?;
        let total = (8 + text.len()).next_multiple_of(ALIGNMENT);
        if (total - 8) as u64 > LARGEST_HEADER {
            return Err(bad("its header would be too large: there are too many arrays"));
        }
        let mut buffer = Buffer::default();
        let bytes = buffer.extend(total)?;
        bytes[..8].copy_from_slice(&((total - 8) as u64).to_le_bytes());
        bytes[8..8 + text.len()].copy_from_slice(text.as_bytes());
        bytes[8 + text.len()..].fill(b' ');
        Ok(buffer)
    }

    fn text(&self) -> Result<String, String> {
        let (mut header, checksum) = self.without_checksum()?;
        if let Some(Value::Object(notes)) = header.get_mut("__metadata__") {
            notes.insert("checksum".to_owned(), Value::String(checksum));
        }
        serde_json::to_string(&header).map_err(|error| error.to_string())
    }

    /// The header as a JSON object without its own checksum, and that checksum.
    fn without_checksum(&self) -> Result<(Map<String, Value>, String), String> {
        let label = &self.label;
        let mut notes = BTreeMap::from([
            ("format".to_owned(), FORMAT.to_owned()),
            ("kind".to_owned(), label.kind.to_string()),
            ("step".to_owned(), label.step.to_string()),
            ("run".to_owned(), label.run.clone()),
            ("program".to_owned(), label.program.clone()),
            ("position".to_owned(), self.position.to_string()),
        ]);
        if let Some(steps) = label.steps {
            notes.insert("steps".to_owned(), steps.to_string());
        }
        let mut header = Map::new();
        let mut offset = 0_usize;
        for array in &self.arrays {
            notes.insert(format!("crc32.{}", array.name), crc_text(array.checksum));
            let end = offset.checked_add(array.bytes).ok_or("its arrays are too large")?;
            let dtype = array.dtype.in_file().to_string();
            let info = json!({ "dtype": dtype, "shape": array.shape, "data_offsets": [offset, end] });
            header.insert(array.name.clone(), info);
            offset = end;
        }
        header.insert("__metadata__".to_owned(), json!(notes));
        let text = serde_json::to_string(&header).map_err(|error| error.to_string())?;
        Ok((header, crc_text(crc32fast::hash(text.as_bytes()))))
    }

    /// Reads the text of a header, whose file has so many bytes of arrays.
    pub fn decode(text: &[u8], data_bytes: u64) -> Result<Self, Error> {
        let metadata: safetensors::tensor::Metadata = serde_json::from_slice(text)
            .map_err(|error| bad(format!("its header does not parse: {error}")))?;
        if metadata.data_len() as u64 != data_bytes {
            let claimed = metadata.data_len();
            return Err(bad(format!("its arrays claim {claimed} bytes, the file has {data_bytes}")));
        }
        let notes = metadata.metadata().as_ref();
        match notes.and_then(|notes| notes.get("format")).map(String::as_str) {
            Some(FORMAT) => {}
            // Every format begins so; what follows is its number.
            Some(other) if other.starts_with("ebbtide snapshot ") => {
                return Err(Error::OtherFormat { found: other.to_owned(), reads: FORMAT });
            }
            _ => return Err(bad("it is not a snapshot: its header has no `format` of ours")),
        }
        Self::of_metadata(&metadata).map_err(bad)
    }

    fn of_metadata(metadata: &safetensors::tensor::Metadata) -> Result<Self, String> {
        let empty = Default::default();
        let notes = metadata.metadata().as_ref().unwrap_or(&empty);
        let note = |key: &str| notes.get(key).map(String::as_str);
        let missing = |key: &str| format!("its header has no `{key}`");
        let mut arrays = Vec::new();
        for name in metadata.offset_keys() {
            let Some(info) = metadata.info(&name) else { continue };
            let dtype = Dtype::from_file(info.dtype)
                .ok_or_else(|| format!("array `{name}` has elements of type {:?}", info.dtype))?;
            let key = format!("crc32.{name}");
            let checksum = note(&key).and_then(parse_crc).ok_or_else(|| missing(&key))?;
            let array = ArrayInfo::new(name.clone(), dtype, &info.shape, checksum)
                .ok_or_else(|| format!("array `{name}` does not fit into memory"))?;
            arrays.push(array);
        }
        let position: Position = note("position")
            .ok_or_else(|| missing("position"))?
            .parse()
            .map_err(|error: Error| error.to_string())?;
        let header = Header {
            label: Label {
                kind: note("kind").and_then(Kind::parse).ok_or_else(|| missing("kind"))?,
                step: note("step").and_then(|text| text.parse().ok()).ok_or_else(|| missing("step"))?,
                steps: match note("steps") {
                    Some(text) => Some(text.parse().map_err(|_| missing("steps"))?),
                    None => None,
                },
                run: note("run").unwrap_or_default().to_owned(),
                program: note("program").unwrap_or_default().to_owned(),
            },
            position,
            arrays,
        };
        // Writing the same header again is the simplest way to see that not a bit of it has changed.
        if note("checksum") != Some(&header.without_checksum()?.1) {
            return Err("the checksum of its header does not match".to_owned());
        }
        Ok(header)
    }
}

fn bad(what: impl Into<String>) -> Error {
    Error::BadHeader { what: what.into() }
}

fn crc_text(checksum: u32) -> String {
    format!("{checksum:08x}")
}

fn parse_crc(text: &str) -> Option<u32> {
    // Only the spelling that we write is ours.
    u32::from_str_radix(text, 16).ok().filter(|checksum| crc_text(*checksum) == text)
}
