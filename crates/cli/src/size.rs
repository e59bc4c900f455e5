//! Numbers of bytes and of things, as people write them.

use std::fmt;
use std::str::FromStr;

/// So many of something.
pub fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A number of bytes: `1000`, `64MiB`, `1.5GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

const UNITS: [(&str, u64); 15] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1000),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1_000_000),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1_000_000_000),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1_000_000_000_000),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let hint =
            || format!("`{text}` is not a size: write a number and a unit, such as 64MiB, 1.5GB or 1000");
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let unit = unit.trim().to_ascii_lowercase();
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(hint)?;
        let bytes = match number.parse::<u64>() {
            Ok(whole) => whole.checked_mul(*factor),
            Err(_) => {
                let bytes = number.parse::<f64>().map_err(|_| hint())? * *factor as f64;
                (bytes < u64::MAX as f64).then_some(bytes as u64)
            }
        };
        bytes.map(Bytes).ok_or_else(|| format!("`{text}` is more bytes than can be counted"))
    }
}

/// Bytes in binary units, with three significant digits.
pub struct Human(pub u128);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.0 as f64;
        for unit in ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] {
            if value < 1024.0 || unit == "PiB" {
                let digits = if value.fract() == 0.0 || value >= 100.0 {
                    0
                } else if value >= 10.0 {
                    1
                } else {
                    2
                };
                return f.pad(&format!("{value:.digits$} {unit}"));
            }
            value /= 1024.0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("1000", 1000),
            ("64MiB", 64 << 20),
            ("1.5GB", 1_500_000_000),
            ("2 kib", 2048),
            ("0.5k", 512),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }
        for text in ["", "MiB", "-1", "1.2.3", "5 lightyears", "1e9", "99999999999GB", "NaN"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_with_three_digits() {
        for (bytes, text) in
            [(0, "0 B"), (1023, "1023 B"), (1536, "1.50 KiB"), (640 << 20, "640 MiB"), (1 << 30, "1 GiB")]
        {
            assert_eq!(Human(bytes).to_string(), text);
        }
    }
}
