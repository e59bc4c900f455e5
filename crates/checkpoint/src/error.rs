/// What can go wrong with positions, states and the headers of their files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A state was asked for an array that it does not have.
    #[error("there is no array `{name}` in this state; it has: {known}")]
    NoArray {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// An array has another type or size than the one asked for.
    #[error("array `{name}` has {found}, expected {expected}")]
    WrongArray {
        /// Its name.
        name: String,
        /// What it has.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// A name was given to two arrays of one state, or is reserved.
    #[error("the name `{name}` is taken: every array of a state needs a name of its own")]
    DuplicateArray {
        /// The name.
        name: String,
    },
    /// A text is not a position.
    #[error("`{text}` is not a position: {why}")]
    BadPosition {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A header was written in a format that this version does not read.
    #[error("its format is `{found}`, this version reads `{reads}`")]
    OtherFormat {
        /// The format that it has.
        found: String,
        /// The format that this version reads.
        reads: &'static str,
    },
    /// A header does not say what was written into it, or cannot be written.
    #[error("{what}")]
    BadHeader {
        /// What is wrong with it.
        what: String,
    },
    /// The system has no memory left.
    #[error("{} of memory could not be allocated", size(*bytes))]
    NoMemory {
        /// How much was asked for.
        bytes: u64,
    },
}

/// A number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.2} {}", units[unit]) }
}
