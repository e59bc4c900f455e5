use crate::{ArrayInfo, Header, Label, Position, State};

/// Where a program stands, and what the rest of it still needs.
///
/// ```
/// use ebbtide_checkpoint::{Checkpoint, Label, Position};
///
/// let mut checkpoint = Checkpoint::at(Position::root().then(0, "simulate").then_in_loop(0, "for t", 41));
/// checkpoint.state.put("u", &[1.0, 2.5])?;
/// let header = checkpoint.header(&Label::of_no_run("3f9a"));
/// assert_eq!(header.position.to_string(), "simulate/for t=41");
/// # Ok::<(), ebbtide_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Where in the program.
    pub position: Position,
    /// The arrays that the rest of the program reads.
    pub state: State,
}

impl Checkpoint {
    /// A checkpoint at a position, with a state that is still to be filled.
    pub fn at(position: Position) -> Self {
        Self { position, state: State::new() }
    }

    /// Forgets position and arrays; storage stays for the next filling.
    pub fn clear(&mut self) {
        self.position = Position::root();
        self.state.clear();
    }

    /// What a file that holds this checkpoint says about itself.
    pub fn header(&self, label: &Label) -> Header {
        let arrays = self.state.arrays().map(|array| ArrayInfo {
            name: array.name.to_owned(),
            dtype: array.dtype,
            shape: array.shape.to_vec(),
            bytes: array.bytes.len(),
            checksum: crc32fast::hash(array.bytes),
        });
        Header { label: label.clone(), position: self.position.clone(), arrays: arrays.collect() }
    }
}
