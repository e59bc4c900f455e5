//! `println!` inside programs.

use ebbtide_ir::{Format, Piece, Stream};

use crate::cx::Cx;
use crate::small::{Value, ids};
use crate::value::Expr;

/// A part of a line: text, or a value.
#[derive(Clone, Debug)]
pub struct Shown(Piece);

impl From<&str> for Shown {
    fn from(text: &str) -> Shown {
        Shown(Piece::Text(text.to_string()))
    }
}

/// A value of a line, and how it is written.
pub fn shown<T: Value>(value: Expr<T>, format: Format) -> Shown {
    Shown(Piece::Value(ids(&value), format))
}

/// `println!("…", …);`: what it needs is computed where the program is interpreted, and nowhere else.
#[track_caller]
pub fn print(cx: &Cx, stream: Stream, line: impl FnOnce() -> Vec<Shown>) {
    if !cx.prints() {
        return;
    }
    let condition = cx.emit(|b| b.begin_print());
    let pieces = line().into_iter().map(|Shown(piece)| piece).collect();
    cx.emit(|b| b.end_print(condition, stream, pieces));
}
