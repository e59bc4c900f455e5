//! What programs print where they are interpreted.
//!
//! A `println!` is a branch whose condition is the constant `false`: devices leave it out, and so do derivatives. The
//! interpreter knows it by its condition, computes what stands in it and prints. A program that is built for a device that
//! prints nothing does not have it.

use std::fmt::{self, Write as _};

use crate::syntax::ids::ValueId;
use crate::syntax::types::{Literal, Type};

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// `println!`
    Out,
    /// `eprintln!`
    Error,
}

/// How a value is written: `{:8.3e}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// The least number of characters.
    pub width: usize,
    /// The number of digits behind the point, of floats.
    pub precision: Option<usize>,
    /// Is it written as `1.5e3`?
    pub scientific: bool,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text.
    Text(String),
    /// A value; of more than one, a small value with these components.
    Value(Vec<ValueId>, Format),
}

/// A line that the interpreter prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Print {
    /// The condition of its branch.
    pub condition: ValueId,
    /// Where it goes.
    pub stream: Stream,
    /// The line.
    pub pieces: Vec<Piece>,
}

impl Print {
    /// The line, where values are what `of` gives.
    pub fn line(&self, of: impl Fn(ValueId) -> Literal) -> String {
        let mut line = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => line += text,
                Piece::Value(values, format) => {
                    let shown: Vec<String> = values.iter().map(|v| format.shown(of(*v))).collect();
                    match &shown[..] {
                        [one] => line += one,
                        several => line += &format!("({})", several.join(", ")),
                    }
                }
            }
        }
        line
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.width == 0 { String::new() } else { self.width.to_string() };
        let precision = self.precision.map_or(String::new(), |p| format!(".{p}"));
        let scientific = if self.scientific { "e" } else { "" };
        let all = width + &precision + scientific;
        write!(f, "{{{}{all}}}", if all.is_empty() { "" } else { ":" })
    }
}

impl Format {
    fn shown(self, value: Literal) -> String {
        let mut text = String::new();
        let bits = value.bits();
        // Writing to a string does not fail.
        let _ = match (value.ty(), self.precision, self.scientific) {
            (Type::F64, None, false) => write!(text, "{}", f64::from_bits(bits)),
            (Type::F32, None, false) => write!(text, "{}", f32::from_bits(bits as u32)),
            (Type::F64, None, true) => write!(text, "{:e}", f64::from_bits(bits)),
            (Type::F32, None, true) => write!(text, "{:e}", f32::from_bits(bits as u32)),
            (Type::F64 | Type::F32, Some(p), false) => write!(text, "{:.p$}", value.to_f64()),
            (Type::F64 | Type::F32, Some(p), true) => write!(text, "{:.p$e}", value.to_f64()),
            (Type::Bool, ..) => write!(text, "{}", bits != 0),
            _ => write!(text, "{}", value.to_i64().unwrap_or(i64::MIN)),
        };
        format!("{text:>width$}", width = self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_rust_writes_them() {
        let values = [Literal::from(1.5), Literal::from(-7i32), Literal::from(true), Literal::from(0.1f32)];
        let value = |k: usize, format: Format| Piece::Value(vec![ValueId::from_index(k)], format);
        let usual = Format::default();
        let pieces = vec![
            Piece::Text("x ".to_string()),
            value(0, Format { width: 8, precision: Some(3), scientific: false }),
            value(0, Format { width: 0, precision: Some(2), scientific: true }),
            Piece::Text(" ".to_string()),
            value(1, Format { width: 4, ..usual }),
            value(2, usual),
            Piece::Value(vec![ValueId::from_index(0), ValueId::from_index(3)], usual),
        ];
        let print = Print { condition: ValueId::from_index(0), stream: Stream::Out, pieces };
        let expected = format!("x {:8.3}{:.2e} {:4}{}({}, {})", 1.5, 1.5, -7, true, 1.5, 0.1);
        assert_eq!(print.line(|v| values[v.index()]), expected);
    }
}
