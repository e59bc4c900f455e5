//! Memory of a device that other libraries use too.

/// How other libraries name the memory of a device, in the numbers of DLPack, and the order in which it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared {
    /// DLPack's number for the kind of device: 2 is CUDA.
    pub kind: i32,
    /// Which of them.
    pub ordinal: i32,
    /// The stream on which all happens that is asked of the device: what others put there before happens before.
    pub stream: u64,
}
