//! What commands say: to people and to programs, wherever standard output leads.

use std::fmt;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use serde_json::json;

use crate::Failure;

/// Writes text to standard output. A reader that has gone away has read enough; a full disk is a failure.
pub fn write(text: fmt::Arguments<'_>) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::Told(format!("standard output could not be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard output.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::write(format_args!("{}\n", format_args!($($text)*)))
    };
}
pub(crate) use say;

/// Writes to standard error, if there is somebody.
pub fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The object that stands for an error where a program reads.
pub fn as_object(kind: &str, why: &str) -> String {
    json!({ "error": why, "kind": kind }).to_string()
}

/// Text of a file or a name, as a terminal shows it: characters that would command the terminal, or turn the direction of
/// writing, are written as escapes.
pub fn plain(text: &str) -> String {
    let commands = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if commands(c) { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// Lines of text, each as a terminal shows it.
pub fn plain_lines(text: &str) -> String {
    text.split('\n').map(plain).collect::<Vec<_>>().join("\n")
}

/// A path, as a terminal shows it.
pub fn shown(path: &Path) -> String {
    plain(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_escaped() {
        assert_eq!(plain("a\u{1b}[31mb\r\nc\u{7f}\u{9b}d"), "a\\u{1b}[31mb\\r\\nc\\u{7f}\\u{9b}d");
        assert_eq!(plain("\u{202e}évil"), "\\u{202e}évil");
        assert_eq!(plain_lines("two\nlines\u{8}"), "two\nlines\\u{8}");
    }
}
