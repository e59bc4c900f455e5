//! Deep nests of loops inside iterations as functions, on a CPU. Input: the text of a loop; output: a call of a function that has it.
//!
//! The time that a compiler takes grows faster than a nest is deep. And a gradient runs the loops inside a loop once more before it
//! reverses them, at every level of the nest: the text of the innermost loops is there as often as loops are around them. Texts that
//! differ in names alone share one function, so what is compiled grows with the depth and not with its square.

use std::collections::BTreeSet;

use crate::kernel::machine::Family;
use crate::kernel::stmt::{Body, Loop, LoopKind, Stmt};
use crate::print::emitter::Emitter;
use crate::print::loop_functions::{FUNCTION, LoopFunctions, Outlined, declared_sites, outline, words};
use crate::print::operation::c_ty;
use crate::print::statements::Context;
use crate::transform::lower::Team;

/// A loop with so many loops one inside the other, itself among them, is worth a call.
const DEEP: usize = 4;

/// Words of C that are no variables.
const KEYWORDS: [&str; 8] = ["const", "for", "if", "else", "break", "goto", "return", "static"];

/// The types of single numbers.
const TYPES: [&str; 12] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "b8", "int"];

impl Emitter<'_> {
    /// Prints a loop inside an iteration, a deep one as a call.
    pub fn inner_loop(&mut self, cx: Context, l: &Loop) {
        if self.family != Family::C || cx.team != Team::Alone || cx.tiles || height(l) < DEEP {
            return self.loop_in_place(cx, l);
        }
        let (text, ()) = self.apart(|text| text.loop_in_place(cx, l));
        let call = self.loops.nest(l, &text, cx.exit);
        self.out.push_str(call.as_ref().unwrap_or(&text));
    }

    /// Notes the types of the variables that a statement of an iteration declares.
    pub fn note_declared(&mut self, stmt: &Stmt) {
        let declared = match stmt {
            Stmt::Let { name, ty, .. } | Stmt::Declare { name, ty, .. } | Stmt::Load { name, ty, .. } => {
                (*name, c_ty(*ty))
            }
            _ => return,
        };
        self.loops.in_iteration.insert(declared.0.to_string(), declared.1);
    }
}

impl LoopFunctions {
    /// The call of the function of a nest; `None` where its text speaks of more than variables with a known type.
    fn nest(&mut self, l: &Loop, text: &str, exit: usize) -> Option<String> {
        let (mut assigned, own) = (BTreeSet::new(), declared_in(text));
        assigned_in_loop(l, &mut assigned);
        // The iteration ends: that is what the function says.
        let text = text.replace(&format!("goto exit{exit};"), "return 1;");
        let known = |word: &str| self.in_iteration.get(word).or_else(|| self.variables.get(word));
        let of_caller = |word: &str| known(word).filter(|_| !own.contains(word));
        if !unknown(&text, &|word| own.contains(word) || of_caller(word).is_some()).is_empty() {
            return None;
        }
        let is_set = |word: &str| assigned.contains(word);
        let given =
            |word: &str| of_caller(word).map(|ty| format!("{ty}{}", if is_set(word) { "&" } else { "" }));
        let Outlined { key, text, parameters, sites } = outline(&text, &given, &|word| own.contains(word));
        let (mut head, mut first, mut last) = (format!("i32 {FUNCTION}"), String::new(), String::new());
        let (mut before, mut arguments, mut behind) = (String::new(), String::new(), String::new());
        for (k, p) in parameters.iter().enumerate() {
            let ty = known(p)?;
            // How vectors are passed depends on the options of the compiler, so their addresses are.
            if !is_set(p) && !is_vector(ty) {
                head += &format!(", {ty} const {p}");
                arguments += &format!(", {p}");
                continue;
            }
            head += &format!(", {ty} *const to{k}");
            first += &format!("{ty} {p} = *to{k};\n");
            before += &format!(" {ty} set{k} = {p};");
            arguments += &format!(", &set{k}");
            if is_set(p) {
                last += &format!("*to{k} = {p};\n");
                behind += &format!(" {p} = set{k};");
            }
        }
        let name = self.function(key, &format!("{head})"), &format!("{first}{text}{last}return 0;\n"));
        let sites = declared_sites(&sites);
        Some(format!("{{ {sites}{before} if ({name}(f, sites{arguments})) goto exit{exit};{behind} }}\n"))
    }
}

/// How many loops are one inside the other. The depth of recursion is that of nesting in the source.
fn height(l: &Loop) -> usize {
    fn inside(body: &Body) -> usize {
        let of = |stmt: &Stmt| match stmt {
            Stmt::Loop(l) => height(l),
            _ => stmt.blocks().into_iter().map(inside).max().unwrap_or(0),
        };
        body.iter().map(of).max().unwrap_or(0)
    }
    1 + inside(&l.body)
}

/// The variables that a loop gives other values. The depth of recursion is that of nesting in the source.
fn assigned_in_loop(l: &Loop, assigned: &mut BTreeSet<String>) {
    assigned.extend(l.sums.iter().map(|(name, _)| name.to_string()));
    let head = if let LoopKind::While { head, .. } = &l.kind { Some(head) } else { None };
    let wide = l.wide.iter().flat_map(|wide| [&wide.whole, &wide.tail]);
    head.into_iter().chain([&l.body]).chain(wide).for_each(|body| assigned_in(body, assigned));
}

fn assigned_in(body: &Body, assigned: &mut BTreeSet<String>) {
    for stmt in body {
        match stmt {
            Stmt::Assign { name, .. } | Stmt::Pop { name, .. } => drop(assigned.insert(name.to_string())),
            Stmt::Loop(l) => assigned_in_loop(l, assigned),
            _ => stmt.blocks().into_iter().for_each(|block| assigned_in(block, assigned)),
        }
    }
}

/// The variables that a text declares: a type stands before them.
fn declared_in(text: &str) -> BTreeSet<String> {
    let (mut declared, mut before) = (BTreeSet::new(), "");
    for word in words(text).filter(|word| !word.trim().is_empty() && *word != "const") {
        if is_type(before) && is_name(word) {
            declared.insert(word.to_string());
        }
        before = word;
    }
    declared
}

/// The words of a text that are nothing of C and no known variable. Constants have capital letters; what a bracket follows is a
/// function.
fn unknown<'t>(text: &'t str, is_known: &dyn Fn(&str) -> bool) -> Vec<&'t str> {
    let all: Vec<&str> = words(text).filter(|word| !word.trim().is_empty()).collect();
    let is_c = |word: &str| KEYWORDS.contains(&word) || is_type(word) || word == "f" || word == "sites";
    let behind = all.iter().skip(1).copied().chain([""]);
    let unknown = all
        .iter()
        .zip(behind)
        .filter(|(word, next)| is_name(word) && *next != "(" && !is_c(word) && !is_known(word));
    unknown.map(|(word, _)| *word).collect()
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
}

/// Is it the type of a number, or `f64x8` or `m64x4`, which have letters as variables have them?
fn is_type(word: &str) -> bool {
    let is_mask =
        |one: &str| one.strip_prefix('m').is_some_and(|bits| ["8", "16", "32", "64"].contains(&bits));
    match word.split_once('x') {
        Some((one, lanes)) => {
            (TYPES.contains(&one) || is_mask(one)) && lanes.bytes().all(|b| b.is_ascii_digit())
        }
        None => TYPES.contains(&word),
    }
}

fn is_vector(ty: &str) -> bool {
    ty.contains('x')
}
