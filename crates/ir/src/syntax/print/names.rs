//! Names in the printed form: one for each array, scalar, local variable and value, all different.
//!
//! A name that is taken gets a number: `i`, `i_2`, `i_3`. Names that are all different stay as they are, so that a text that
//! was read prints as it was.

use std::collections::HashMap;

use crate::syntax::ids::{ArrayId, LocalId, ScalarId, ValueId};
use crate::syntax::op::Op;
use crate::syntax::program::{Param, Program};

/// Words of the printed form that cannot be names.
pub(in crate::syntax) const RESERVED: [&str; 16] = [
    "as", "break", "else", "false", "for", "if", "in", "inf", "inff32", "let", "loop", "mut", "NaN",
    "NaNf32", "true", "while",
];

/// The names of everything that a program declares.
pub(super) struct Names {
    arrays: Vec<String>,
    scalars: Vec<String>,
    locals: Vec<String>,
    values: Vec<String>,
}

/// Which names are taken, and how many of each were asked for.
#[derive(Default)]
struct Taken(HashMap<String, u32>);

impl Taken {
    fn take(&mut self, name: &str) -> String {
        let mut count = self.0.get(name).copied().unwrap_or(0) + 1;
        let mut free = if count == 1 { name.to_string() } else { format!("{name}_{count}") };
        while count > 1 && self.0.contains_key(&free) {
            count += 1;
            free = format!("{name}_{count}");
        }
        self.0.insert(name.to_string(), count);
        self.0.entry(free.clone()).or_insert(1);
        spelled(&free)
    }
}

impl Names {
    /// The names of a program in which the values `inlined` are printed where they are used.
    pub fn of(program: &Program, inlined: &[bool]) -> Names {
        let mut taken = Taken::default();
        let mut arrays = vec![String::new(); program.arrays.len()];
        let mut scalars = vec![String::new(); program.scalars.len()];
        for param in &program.params {
            match *param {
                Param::Array(a) => arrays[a.index()] = taken.take(&program.array(a).name),
                Param::Scalar(s) => scalars[s.index()] = taken.take(&program.scalars[s.index()].name),
            }
        }
        for (name, decl) in arrays.iter_mut().zip(&program.arrays).filter(|(name, _)| name.is_empty()) {
            *name = taken.take(&decl.name);
        }
        let locals = program.locals.iter().map(|local| taken.take(&local.name)).collect();
        let mut values = vec![String::new(); program.values.len()];
        for (name, value) in values.iter_mut().zip(&program.values) {
            match (&value.op, &value.name) {
                (Op::Scalar(s), _) => name.clone_from(&scalars[s.index()]),
                (_, Some(given)) => *name = taken.take(given),
                _ => {}
            }
        }
        // Names that were made up give way to chosen ones.
        for (i, name) in values.iter_mut().enumerate().filter(|(i, name)| name.is_empty() && !inlined[*i]) {
            *name = taken.take(&format!("v{i}"));
        }
        Names { arrays, scalars, locals, values }
    }

    pub fn array(&self, id: ArrayId) -> &str {
        &self.arrays[id.index()]
    }

    pub fn scalar(&self, id: ScalarId) -> &str {
        &self.scalars[id.index()]
    }

    pub fn local(&self, id: LocalId) -> &str {
        &self.locals[id.index()]
    }

    pub fn value(&self, id: ValueId) -> &str {
        &self.values[id.index()]
    }

    /// Arrays, separated by commas.
    pub fn list(&self, arrays: &[ArrayId]) -> String {
        arrays.iter().map(|a| self.array(*a)).collect::<Vec<_>>().join(", ")
    }
}

/// A name as it stands in the text: as it is, or between backquotes where it would be read as something else.
pub(super) fn spelled(name: &str) -> String {
    if is_plain(name) { name.to_string() } else { quoted(name) }
}

/// A name between backquotes.
pub(super) fn quoted(name: &str) -> String {
    let escaped = name.replace('\\', "\\\\").replace('`', "\\`").replace('\n', "\\n");
    format!("`{escaped}`")
}

/// The path of a program or label: names with `::` between them.
pub(super) fn path(name: &str) -> String {
    let plain = name.split("::").all(|part| is_plain(part) && !part.contains('.'));
    if plain { name.to_string() } else { quoted(name) }
}

/// Is it a name, or the path to a field of a struct: `w.pos`, `pair.0`?
fn is_plain(name: &str) -> bool {
    let mut parts = name.split('.');
    parts.next().is_some_and(is_identifier)
        && !RESERVED.contains(&name)
        && parts.all(|part| is_identifier(part) || is_number(part))
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_digit())
}

fn is_identifier(part: &str) -> bool {
    part.starts_with(begins_name) && part.chars().all(continues_name)
}

/// Can a name begin with this character?
pub(in crate::syntax) fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Can a name contain this character? Autodiff marks copies by `'`.
pub(in crate::syntax) fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}
