use std::fmt;
use std::str::FromStr;

use crate::Error;

/// One step of a [`Position`]: which child of the enclosing statement, and, where that child is a loop,
/// which iteration of it.
///
/// Steps compare by child, then by iteration: the order in which a program runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// The index of the child within its enclosing statement.
    pub child: u32,
    /// The iteration, where the child is a loop.
    pub iteration: Option<u64>,
    /// What people call the child: `for t`, `Stage::Solve`.
    pub name: String,
}

/// Where in a program: for each enclosing statement, which child; for each enclosing loop, which iteration.
///
/// A position prints as a path, and the printed form parses back to the same position:
///
/// ```
/// use ebbtide_checkpoint::Position;
///
/// let at = Position::root().then(0, "simulate").then_in_loop(0, "for t", 41).then(2, "Stage::Solve");
/// assert_eq!(at.to_string(), "simulate/for t=41/Stage::Solve#2");
/// assert_eq!(at.to_string().parse::<Position>()?, at);
///
/// // Positions compare in the order in which the program passes them.
/// let later = Position::root().then(0, "simulate").then_in_loop(0, "for t", 42);
/// assert!(at < later);
/// # Ok::<(), ebbtide_checkpoint::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    steps: Vec<Step>,
}

impl Position {
    /// The program as a whole; it prints as the empty path.
    pub fn root() -> Self {
        Self::default()
    }

    /// Before a step of something that steps without a program around it.
    pub fn before_step(step: u64) -> Self {
        Self::root().then_in_loop(0, "step", step)
    }

    /// This position, one level deeper: in child number `child`.
    #[must_use]
    pub fn then(mut self, child: u32, name: impl Into<String>) -> Self {
        self.steps.push(Step { child, iteration: None, name: name.into() });
        self
    }

    /// This position, one level deeper: in the given iteration of the loop that is child number `child`.
    #[must_use]
    pub fn then_in_loop(mut self, child: u32, name: impl Into<String>, iteration: u64) -> Self {
        self.steps.push(Step { child, iteration: Some(iteration), name: name.into() });
        self
    }

    /// The steps from the outermost statement inwards.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether this position lies in `outer` or is `outer` itself.
    pub fn is_within(&self, outer: &Position) -> bool {
        self.steps.starts_with(&outer.steps)
    }
}

impl FromIterator<Step> for Position {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self { steps: steps.into_iter().collect() }
    }
}

/// Whether a character has a meaning of its own in the text form, so that a name must escape it.
fn is_special(c: char) -> bool {
    matches!(c, '/' | '=' | '#' | '%') || c.is_control()
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut utf8 = [0; 4];
        for c in self.name.chars() {
            if is_special(c) {
                for byte in c.encode_utf8(&mut utf8).bytes() {
                    write!(f, "%{byte:02x}")?;
                }
            } else {
                write!(f, "{c}")?;
            }
        }
        if let Some(iteration) = self.iteration {
            write!(f, "={iteration}")?;
        }
        // Most statements have one child that matters: the first goes without saying. A nameless first
        // child still needs a mark, or it would print as nothing.
        if self.child != 0 || (self.name.is_empty() && self.iteration.is_none()) {
            write!(f, "#{}", self.child)?;
        }
        Ok(())
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.steps.iter().enumerate() {
            if depth > 0 {
                f.write_str("/")?;
            }
            write!(f, "{step}")?;
        }
        Ok(())
    }
}

impl FromStr for Position {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Ok(Self::root());
        }
        text.split('/')
            .map(|part| step(part).map_err(|why| Error::BadPosition { text: text.to_owned(), why }))
            .collect()
    }
}

fn step(part: &str) -> Result<Step, String> {
    let (rest, child) = match part.split_once('#') {
        Some((rest, child)) => (rest, number(child)?),
        None if part.is_empty() => return Err("one of its steps is empty".to_owned()),
        None => (part, 0),
    };
    let child = u32::try_from(child).map_err(|_| format!("child {child} is out of range"))?;
    let (name, iteration) = match rest.split_once('=') {
        Some((name, iteration)) => (name, Some(number(iteration)?)),
        None => (rest, None),
    };
    Ok(Step { child, iteration, name: unescape(name)? })
}

fn number(digits: &str) -> Result<u64, String> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("`{digits}` is not a number"));
    }
    digits.parse().map_err(|_| format!("`{digits}` is not a number"))
}

fn unescape(name: &str) -> Result<String, String> {
    let bad = || format!("`{name}` has a broken escape");
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let hex = tail.get(..2).and_then(|h| std::str::from_utf8(h).ok()).ok_or_else(bad)?;
            bytes.push(u8::from_str_radix(hex, 16).map_err(|_| bad())?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).map_err(|_| bad())
}
