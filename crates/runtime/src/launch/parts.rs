//! Launches of programs that run on the parts of a grid: all parts end alike.
//!
//! Only launches of programs with collectives are launches of all parts together; all others are a part's own business.

use std::sync::Arc;

use ebbtide_ir::Program;
use ebbtide_ir::parts::{self, Cause, Ending, Stop, Transport, has_collectives};

use crate::error::{Error, Result};
use crate::launch::status::Status;

/// The transport of a launch of this program, if all parts launch it together.
pub(crate) fn together(program: &Program) -> Option<Arc<dyn Transport>> {
    if has_collectives(program) { parts::current() } else { None }
}

/// Runs a launch of this program so that all parts return the same status.
pub(crate) fn around<T>(
    program: &Program,
    run: impl FnOnce() -> Result<T>,
    ended: impl Fn(&T) -> String,
) -> Result<T> {
    let Some(transport) = together(program) else { return run() };
    let result = run();
    let stopped = |cause, message| Ending::Stopped(Stop { part: transport.part(), cause, message });
    let ending = match &result {
        Ok(value) => Ending::Done(ended(value)),
        Err(Error::Part(stop)) => Ending::Stopped(stop.clone()),
        Err(error @ Error::Cancelled { .. }) => stopped(Cause::Cancelled, error.to_string()),
        Err(error) => stopped(Cause::Failed, error.to_string()),
    };
    match transport.end(&format!("the end of a launch of `{}`", program.name), ending) {
        Ok(()) => result,
        Err(stop) => Err(Error::Part(stop)),
    }
}

/// What all parts say of a status: the place where they yielded.
pub(crate) fn status_text(status: &Status) -> String {
    match status {
        Status::Done => String::new(),
        Status::Yielded(at) => at.position().to_string(),
    }
}

/// The words of all parts, in the order of their numbers; every part gives as many.
pub(crate) fn gather_words(transport: &dyn Transport, at: &str, own: &[u64]) -> Result<Vec<Vec<u64>>> {
    let bytes: Vec<u8> = own.iter().flat_map(|word| word.to_le_bytes()).collect();
    let all = transport.gather(at, &bytes).map_err(Error::Part)?;
    let words = |bytes: &Vec<u8>| bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    let all: Vec<Vec<u64>> = all.iter().map(words).collect();
    match all.iter().position(|words| words.len() != own.len()) {
        None => Ok(all),
        Some(part) => Err(disagreed(part, format!("{at} of part {part} does not fit that of the others"))),
    }
}

/// The largest of each word over all parts.
pub(crate) fn largest(transport: &dyn Transport, at: &str, own: &[u64]) -> Result<Vec<u64>> {
    let all = gather_words(transport, at, own)?;
    Ok((0..own.len()).map(|k| all.iter().map(|words| words[k]).max().unwrap_or(0)).collect())
}

pub(crate) fn disagreed(part: usize, message: String) -> Error {
    Error::Part(Stop { part, cause: Cause::Disagreed, message })
}
