//! What a gradient run did.

/// What a gradient run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Iterations run forward without a tape.
    pub advanced: u64,
    /// Iterations run forward with their tape.
    pub recorded: u64,
    /// Iterations reversed.
    pub reversed: u64,
    /// States put into slots.
    pub stored: u64,
    /// States taken from slots.
    pub loaded: u64,
    /// Bytes of states sent to host memory beyond that of the device.
    pub to_host: u64,
    /// Bytes of states that came back from there.
    pub from_host: u64,
    /// Bytes of states written to disk.
    pub to_disk: u64,
    /// Bytes of states read from disk.
    pub from_disk: u64,
}

/// Iterations that are run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replay {
    /// They give what they gave before.
    #[default]
    Trusted,
    /// The state that they lead to is compared with the one that they led to before.
    Checked,
}
