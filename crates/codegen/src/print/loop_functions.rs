//! Parallel loops as functions of their own, on a CPU. Input: the text of the loops around iterations; output: a call of a function
//! that has it. Which loops are worth that is decided in `print::loops_apart`.
//!
//! A compiler follows every variable of a function through all of its text, which takes time that grows with the square of the
//! text. And many loops are printed several times: in the step that runs alone, in the one that records and in the one that
//! is reversed, and where a program calls another one twice. Two loops that differ in names alone share one function: it has what
//! they find around them as parameters.

use std::collections::{BTreeMap, HashMap};

use ebbtide_ir::{Block, Program, Stmt, walk_program_level};

use crate::analysis::names::Names;
use crate::kernel::name::{Name, Variable};
use crate::print::c_types::c_type;

/// The loops of the segment being printed, and the functions of all segments.
#[derive(Debug, Default)]
pub(crate) struct LoopFunctions {
    /// The variables of the segment that its loops may read, with their types.
    pub variables: BTreeMap<String, String>,
    /// The variables of the iteration that is printed, with their types.
    pub in_iteration: BTreeMap<String, String>,
    /// What some of them are, as expressions of others. A compiler that knows it keeps fewer variables, and asks fewer questions of
    /// numbers that cannot be negative.
    pub known_values: BTreeMap<String, String>,
    /// The texts of its loops, by number: their domains, which are known in their places, and the rest.
    pub apart: Vec<(String, String)>,
    /// By the text of a function, in which names are numbers: its name.
    known: BTreeMap<String, String>,
    /// Their declarations.
    pub declared: String,
    /// Their texts, in the order in which they were met.
    pub texts: Vec<String>,
}

/// What stands in place of the name of a function and of its first parameters until they are known.
pub(crate) const FUNCTION: &str = "FUNCTION(";

/// A loop as the text of a function.
pub(crate) struct Outlined {
    /// The text with numbers for its names: equal for two loops that differ in names alone.
    pub key: String,
    pub text: String,
    /// The variables around it that it names.
    pub parameters: Vec<String>,
    /// Where its faults stand in the source, by number in the text.
    pub sites: Vec<String>,
}

impl LoopFunctions {
    /// Notes the variables of a segment.
    pub fn enter(&mut self, program: &Program, block: &Block, names: &Names) {
        let mut variables = BTreeMap::new();
        for a in &names.arrays {
            let (decl, a) = (program.array(*a), a.index());
            variables.insert(format!("a{a}"), format!("{} *", c_type(decl.ty)));
            variables.extend((0..decl.rank).map(|d| (format!("d{a}_{d}"), "i64".to_string())));
        }
        for v in names.used.iter().chain(&names.defined) {
            variables.insert(Name::value(*v).to_string(), c_type(program.ty(*v)).to_string());
        }
        for l in &names.locals {
            variables.insert(Name::local(*l).to_string(), c_type(program.locals[l.index()].ty).to_string());
        }
        walk_program_level(block, &mut |stmt| {
            if let Stmt::Loop(l) = stmt {
                variables.insert(Name::from(Variable::Finished(l.id)).to_string(), "i64".to_string());
            }
        });
        self.variables = variables;
        self.known_values.clear();
    }

    /// The call of the function of a loop, which is declared where it is new.
    pub fn call(&mut self, text: &str) -> String {
        let text = self.declarations(text) + text;
        let given = |word: &str| self.variables.get(word).filter(|_| !self.known_values.contains_key(word));
        let Outlined { key, text, parameters, sites } = outline(&text, &|word| given(word).cloned(), &is_own);
        let typed = parameters.iter().map(|p| format!(", {} const {p}", self.variables[p]));
        let typed: String = typed.collect();
        let name = self.function(key, &format!("void {FUNCTION}{typed})"), &text);
        let given: String = parameters.iter().map(|p| format!(", {p}")).collect();
        format!("{{ {} {name}(f, sites{given}); }}\n", declared_sites(&sites))
    }

    /// The name of the function of a text, which is declared where it is new; `head` has `FUNCTION` in place of its name and of the
    /// first parameters.
    pub fn function(&mut self, key: String, head: &str, text: &str) -> String {
        let number = self.texts.len();
        let name = self.known.entry(key).or_insert_with(|| format!("loop_{number}")).clone();
        if name == format!("loop_{number}") {
            let head = head.replace(FUNCTION, &format!("{name}(eb_frame *f, const i32 *sites"));
            self.declared.push_str(&format!("EB_LOOP {head};\n"));
            self.texts.push(format!("EB_LOOP {head} {{\n{text}}}\n"));
        }
        name
    }

    /// What is known of the values that a text names, as declarations: those that others speak of come first.
    fn declarations(&self, text: &str) -> String {
        let mut named: Vec<&str> = Vec::new();
        let mut texts = vec![text];
        while let Some(text) = texts.pop() {
            for word in words(text) {
                if let Some((v, value)) = self.known_values.get_key_value(word) {
                    named.retain(|other| other != v);
                    named.push(v);
                    texts.push(value);
                }
            }
        }
        let declare = |v: &&str| format!("{} const {v} = {};\n", self.variables[*v], self.known_values[*v]);
        named.iter().rev().map(declare).collect()
    }
}

/// Finds what a text names: what it is given, by type, and what is its own.
pub(crate) fn outline(
    loop_text: &str,
    given: &dyn Fn(&str) -> Option<String>,
    is_own: &dyn Fn(&str) -> bool,
) -> Outlined {
    let (mut key_text, mut text) = (String::new(), String::new());
    let [mut parameters, mut own, mut sites] = [(); 3].map(|()| Numbered::default());
    for word in words(loop_text) {
        let mut shown = word.to_string();
        let key = if let Some(ty) = given(word) {
            format!("{ty}${}", parameters.number(word))
        } else if is_own(word) {
            format!("%{}", own.number(word))
        } else if is_number(word) && names_site(&text) {
            shown = format!("sites[{}]", sites.number(word));
            shown.clone()
        } else {
            word.to_string()
        };
        key_text.push_str(&key);
        text.push_str(&shown);
    }
    Outlined { key: key_text, text, parameters: parameters.words(), sites: sites.words() }
}

/// The declaration of what a function is given as `sites`.
pub(crate) fn declared_sites(sites: &[String]) -> String {
    // There is no array without elements in C.
    let sites = if sites.is_empty() { "0".to_string() } else { sites.join(", ") };
    format!("static const i32 sites[] = {{{sites}}};")
}

/// The names and numbers of a text, and each character between them.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let wordy = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let first = rest.chars().next()?;
        let length = match wordy(first) {
            true => rest.find(|c| !wordy(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, behind) = rest.split_at(length);
        rest = behind;
        Some(word)
    })
}

/// Words, numbered in the order in which they are met.
#[derive(Default)]
struct Numbered<'t> {
    words: Vec<&'t str>,
    numbers: HashMap<&'t str, usize>,
}

impl<'t> Numbered<'t> {
    fn number(&mut self, word: &'t str) -> usize {
        let next = self.words.len();
        let number = *self.numbers.entry(word).or_insert(next);
        if number == next {
            self.words.push(word);
        }
        number
    }

    fn words(self) -> Vec<String> {
        self.words.into_iter().map(str::to_string).collect()
    }
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit())
}

/// Is this a name that the text of one iteration declares (see [`crate::kernel::name::Variable`]), or a label?
fn is_own(word: &str) -> bool {
    let number = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let prefix = &word[..word.len() - number.len()];
    matches!(prefix, "v" | "l" | "m" | "ok" | "p" | "old" | "in" | "exit")
        && number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|b| b.is_ascii_digit() || b == b'_')
}

/// Does the number of an access follow this text? `eb_fault(f, EB_BOUNDS, 53, …`
fn names_site(text: &str) -> bool {
    let kind = text.strip_suffix(", ").map(|text| text.trim_end_matches(|c: char| c.is_ascii_uppercase()));
    kind.is_some_and(|before| before.ends_with("eb_fault(f, EB_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> LoopFunctions {
        let variables = variables.iter().map(|(name, ty)| (name.to_string(), ty.to_string())).collect();
        LoopFunctions { variables, ..LoopFunctions::default() }
    }

    const A_LOOP: &str = "for (i64 r = first; r < v1; r++) { const f64 v2_1 = a3[r] * 1.5e3; if (v2_1 > 0.5) { eb_fault(f, \
                          EB_BOUNDS, 53, 0, r, v1); goto exit4; } a5[r] = v2_1; }\nexit4: ;\n";

    #[test]
    fn a_loop_has_what_it_finds_around_it_as_parameters() {
        let mut functions = of(&[("v1", "i64"), ("a3", "f64 *"), ("a5", "f64 *"), ("v9", "i64")]);
        let call = functions.call(A_LOOP);
        assert_eq!(call, "{ static const i32 sites[] = {53}; loop_0(f, sites, v1, a3, a5); }\n");
        let head = "EB_LOOP void loop_0(eb_frame *f, const i32 *sites, i64 const v1, f64 * const a3, f64 * const a5)";
        assert_eq!(functions.declared, format!("{head};\n"));
        let text = A_LOOP.replace("53", "sites[0]");
        assert_eq!(functions.texts, [format!("{head} {{\n{text}}}\n")]);
    }

    #[test]
    fn loops_that_differ_in_names_alone_share_a_function() {
        let mut functions =
            of(&[("v1", "i64"), ("v6", "i64"), ("a3", "f64 *"), ("a5", "f64 *"), ("a7", "f32 *")]);
        functions.call(A_LOOP);
        let other = A_LOOP.replace("v1", "v6").replace("v2_", "v8_").replace("exit4", "exit11");
        let other = other.replace("53", "7").replace("a3", "a9").replace("a5", "a3").replace("a9", "a5");
        let call = functions.call(&other);
        assert_eq!(call, "{ static const i32 sites[] = {7}; loop_0(f, sites, v6, a5, a3); }\n");
        assert_eq!(functions.texts.len(), 1);
    }

    #[test]
    fn a_function_knows_what_is_known_of_a_value() {
        let mut functions =
            of(&[("v0", "i64"), ("v1", "i64"), ("d3_0", "i64"), ("a3", "f64 *"), ("a5", "f64 *")]);
        functions.known_values.insert("v1".to_string(), "((i64)v0)".to_string());
        functions.known_values.insert("v0".to_string(), "eb_index_div(d3_0, 2)".to_string());
        let call = functions.call(A_LOOP);
        assert_eq!(call, "{ static const i32 sites[] = {53}; loop_0(f, sites, d3_0, a3, a5); }\n");
        let known = "{\ni64 const v0 = eb_index_div(d3_0, 2);\ni64 const v1 = ((i64)v0);\nfor";
        assert!(functions.texts[0].contains(known), "{:?}", functions.texts);
    }

    #[test]
    fn loops_that_differ_in_more_do_not() {
        let mut functions = of(&[("v1", "i64"), ("a3", "f64 *"), ("a5", "f64 *"), ("a7", "f32 *")]);
        functions.call(A_LOOP);
        // Another number, another type, one array for two.
        for other in
            [A_LOOP.replace("1.5e3", "1.5e4"), A_LOOP.replace("a3", "a7"), A_LOOP.replace("a3", "a5")]
        {
            functions.call(&other);
        }
        assert_eq!(functions.texts.len(), 4);
    }
}
