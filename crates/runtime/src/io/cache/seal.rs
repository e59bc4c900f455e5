//! Seals: what binds the file of a cache entry to its key.
//!
//! Input: the name of a file, which is its key, and its bytes. Output: one line of text. The line has the schema, the
//! name, and a checksum over both and the bytes, so that neither a changed file, nor a file under the name of another
//! entry, nor an entry of another schema fits its seal. The key is a hash over everything that the file depends on.

/// Changes when what is stored changes its meaning.
pub(super) const SCHEMA: &str = "ebbtide-cache-2";

/// The hexadecimal digits of a key.
pub(super) const KEY_DIGITS: usize = 40;

/// The most bytes that a seal has: what is longer is none, and is not read.
pub(super) const MOST_BYTES: u64 = 256;

/// The key of what depends on these parts alone.
pub(super) fn key(parts: &[&str]) -> String {
    let laws = ebbtide_ir::LAWS.to_string();
    let hasher =
        hashed([SCHEMA, env!("CARGO_PKG_VERSION"), &laws].iter().chain(parts).map(|part| part.as_bytes()));
    hasher.finalize().to_hex()[..KEY_DIGITS].to_string()
}

/// The seal of a file with this name.
pub(super) fn seal(name: &str, bytes: &[u8]) -> String {
    let sum = hashed([SCHEMA.as_bytes(), name.as_bytes(), bytes].into_iter()).finalize();
    format!("{SCHEMA} {name} {}\n", sum.to_hex())
}

/// Parts one after the other, each with its length: no two lists of parts look alike.
fn hashed<'a>(parts: impl Iterator<Item = &'a [u8]>) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher
}
