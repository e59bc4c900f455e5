//! Memory of devices and of the host, and the elements in it.

pub(crate) mod buffer;
pub(crate) mod by_type;
pub(crate) mod byte_count;
pub(crate) mod codec;
pub(crate) mod device_memory;
pub(crate) mod element;
pub(crate) mod meter;
pub(crate) mod pinned;
pub(crate) mod shared;
pub(crate) mod spare;
