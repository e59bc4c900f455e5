//! What case files should have: held against what they have, or written.

use std::path::Path;

/// The files that have something else.
#[derive(Default)]
pub(crate) struct Expected(Vec<String>);

impl Expected {
    /// Holds what a file has against what it should have; writes that where `UPDATE_EXPECT` asks for it.
    pub fn hold(&mut self, file: &Path, text: &str, now: &str) {
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(file, now).unwrap();
        } else if now != text {
            self.0.push(format!("{} is now\n{now}", file.display()));
        }
    }

    /// Fails where a file has something else.
    pub fn finish(self) {
        let Expected(wrong) = self;
        assert!(
            wrong.is_empty(),
            "{}\n`UPDATE_EXPECT=1 cargo test` writes what cases should have",
            wrong.join("\n")
        );
    }
}
