//! Ends the process at a named file operation, so that tests of interruptions depend on no clock.
//!
//! Input: the variable `EBBTIDE_KILL_AT`, read once: `SIDE:OPERATION:COUNT`, for example `before:commit:3` or
//! `amid:write:1`. `SIDE` is `before`, `amid` (half of a write is done) or `after`; `OPERATION` is one of the names in
//! [`Operation`], or `any`; operations are counted from 1. Without the variable nothing here has an effect.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The operations that change something on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A directory or a new file is made.
    Create,
    /// Bytes are written to a new file, or it gets its length.
    Write,
    /// Lines are added to a file that exists: a journal commits.
    Commit,
    /// A file is synced.
    Sync,
    /// A file gets its final name.
    Rename,
    /// A file or a directory is removed.
    Remove,
    /// The names in a directory are synced.
    SyncDir,
}

/// Where, relative to the operation, the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    Amid,
    After,
}

#[derive(Debug, PartialEq, Eq)]
struct Point {
    side: Side,
    /// `None` counts every operation.
    operation: Option<Operation>,
    count: u64,
}

fn parse(text: &str) -> Option<Point> {
    let mut words = text.split(':');
    let side = match words.next()? {
        "before" => Side::Before,
        "amid" => Side::Amid,
        "after" => Side::After,
        _ => return None,
    };
    let operation = match words.next()? {
        "any" => None,
        "create" => Some(Operation::Create),
        "write" => Some(Operation::Write),
        "commit" => Some(Operation::Commit),
        "sync" => Some(Operation::Sync),
        "rename" => Some(Operation::Rename),
        "remove" => Some(Operation::Remove),
        "sync_dir" => Some(Operation::SyncDir),
        _ => return None,
    };
    let count = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Point { side, operation, count })
}

/// Which side of this operation the process is to end at, if this operation is the one.
fn due(operation: Operation) -> Option<Side> {
    static POINT: OnceLock<Option<Point>> = OnceLock::new();
    static SEEN: AtomicU64 = AtomicU64::new(0);
    let point = POINT.get_or_init(|| {
        let text = std::env::var("EBBTIDE_KILL_AT").ok()?;
        let point = parse(&text);
        if point.is_none() {
            tracing::warn!("EBBTIDE_KILL_AT is `{text}`: it takes a text such as `before:commit:3`");
        }
        point
    });
    let point = point.as_ref().filter(|point| point.operation.is_none_or(|only| only == operation))?;
    (SEEN.fetch_add(1, Ordering::Relaxed) + 1 == point.count).then_some(point.side)
}

/// Carries out an operation that is done as a whole, unless the process ends at it.
pub(super) fn at<R>(operation: Operation, run: impl FnOnce() -> R) -> R {
    match due(operation) {
        None => run(),
        Some(side) => {
            if side == Side::After {
                drop(run());
            }
            std::process::abort()
        }
    }
}

/// Writes bytes, unless the process ends at it.
pub(super) fn at_write<R>(operation: Operation, bytes: &[u8], write: impl FnOnce(&[u8]) -> R) -> R {
    match due(operation) {
        None => write(bytes),
        Some(side) => {
            match side {
                Side::Before => {}
                Side::Amid => drop(write(&bytes[..bytes.len() / 2])),
                Side::After => drop(write(bytes)),
            }
            std::process::abort()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_a_side_an_operation_and_a_count() {
        let point = |side, operation, count| Some(Point { side, operation, count });
        assert_eq!(parse("before:commit:3"), point(Side::Before, Some(Operation::Commit), 3));
        assert_eq!(parse("amid:any:1"), point(Side::Amid, None, 1));
        for text in ["", "commit:3", "before:commit", "before:commit:3:4", "during:any:1", "after:nap:1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
