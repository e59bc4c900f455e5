//! Where the text of a parallel loop goes, on a CPU: it is printed apart, and put in its place, or into a function, when it is known how
//! long the whole segment is.

use ebbtide_ir::{Op, Type, ValueId};

use crate::kernel::name::Name;
use crate::print::emitter::Emitter;

/// A segment of so many bytes is compiled in a moment, whatever it is made of.
const SHORT_SEGMENT: usize = 60_000;

/// A loop of so many bytes is worth a call, which takes some nanoseconds each time that the loop runs.
const LONG_LOOP: usize = 5_000;

/// What stands around the number of a loop that was printed apart, until it is known where its text belongs.
const MARK: char = '\u{1}';

impl Emitter<'_> {
    /// Lets the loops of the segment know what a value is, where that takes no time to compute again. Its operands are in scope where
    /// it is, and have not changed since.
    pub fn tell_loops(&mut self, v: ValueId) {
        let program = self.program;
        let whole = |v: ValueId| program.ty(v).is_integer() || program.ty(v) == Type::Index;
        let value = match (self.on_entry(v), program.op(v)) {
            (Some(value), _) => value.to_string(),
            (None, Op::Cast(a)) if whole(v) && whole(*a) => self.operation(v),
            _ => return,
        };
        self.loops.known_values.insert(Name::value(v).to_string(), value);
    }

    /// Leaves a mark where the text of a loop belongs.
    pub fn loop_apart(&mut self, domain: String, text: String) {
        self.out.push_str(&format!("{MARK}{}{MARK}", self.loops.apart.len()));
        self.loops.apart.push((domain, text));
    }

    /// Puts the loops of a segment where their marks are.
    pub fn place_loops(&mut self, statements: &str) -> String {
        let loops = std::mem::take(&mut self.loops.apart);
        let long = statements.len() + loops.iter().map(|(_, text)| text.len()).sum::<usize>() > SHORT_SEGMENT;
        let mut placed = String::new();
        for (k, piece) in statements.split(MARK).enumerate() {
            let marked = (k % 2 == 1).then(|| loops.get(piece.parse::<usize>().ok()?)).flatten();
            match marked {
                None => placed.push_str(piece),
                Some((domain, text)) if long && text.len() > LONG_LOOP => {
                    placed.push_str(&self.loops.call(&format!("{domain}{text}")));
                }
                Some((_, text)) => placed.push_str(text),
            }
        }
        placed
    }
}
