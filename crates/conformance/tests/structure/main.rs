//! The files of a crate import one another in one direction: no circle is left, but a module and its own children.
//!
//! An import is resolved to the file that defines the name, through re-exports, so that a folder's `mod.rs` hides nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A path of modules, from the root of the crate.
type Module = Vec<String>;

/// The files of a crate.
#[derive(Default)]
struct Sources {
    text: BTreeMap<Module, String>,
    /// By module: the paths that it imports, and whether it hands them on.
    imports: BTreeMap<Module, Vec<(Vec<String>, bool)>>,
}

impl Sources {
    fn read(root: &Path) -> Sources {
        let mut sources = Sources::default();
        let mut folders = vec![(root.to_path_buf(), Module::new())];
        while let Some((folder, module)) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap().to_string();
                let mut inner = module.clone();
                if path.is_dir() {
                    inner.push(name);
                    folders.push((path, inner));
                } else if path.extension().is_some_and(|e| e == "rs") && name != "tests" {
                    inner.extend((!["lib", "mod"].contains(&name.as_str())).then_some(name));
                    let text = std::fs::read_to_string(path).unwrap();
                    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
                    let lines = text.lines().map(|line| line.split("//").next().unwrap());
                    sources.text.insert(inner, lines.collect::<Vec<_>>().join("\n"));
                }
            }
        }
        let modules: Vec<Module> = sources.text.keys().cloned().collect();
        for module in modules {
            let found = sources.imports_of(&module);
            sources.imports.insert(module, found);
        }
        sources
    }

    fn imports_of(&self, module: &Module) -> Vec<(Vec<String>, bool)> {
        let mut found = Vec::new();
        for statement in self.text[module].split(';') {
            let Some(at) = statement.rfind("use ") else { continue };
            let before = statement[..at].lines().next_back().unwrap_or_default().trim();
            if !(before.is_empty() || before.starts_with("pub")) {
                continue;
            }
            for path in expanded(&statement[at + 4..]) {
                found.extend(self.absolute(module, &path).map(|path| (path, before.starts_with("pub"))));
            }
        }
        // Paths in the text itself.
        for start in ["crate::", "super::"] {
            for (at, _) in self.text[module].match_indices(start) {
                let path =
                    self.text[module][at..].split(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
                let path: Vec<String> = path
                    .take(1)
                    .flat_map(|p| p.split("::"))
                    .filter(|p| !p.is_empty())
                    .map(str::to_string)
                    .collect();
                found.extend(self.absolute(module, &path).map(|path| (path, false)));
            }
        }
        found
    }

    /// A path from the root; `None` where it leads out of the crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let up = path.iter().take_while(|part| *part == "super").count();
        let first = path.first()?;
        if first == "crate" {
            return Some(path[1..].to_vec());
        }
        if up > 0 {
            let base = &module[..module.len().checked_sub(up)?];
            return Some(base.iter().chain(&path[up..]).cloned().collect());
        }
        let inner: Module = module.iter().chain([first]).cloned().collect();
        self.text.contains_key(&inner).then(|| module.iter().chain(path).cloned().collect())
    }

    /// The modules that define what a path names.
    fn resolve(&self, path: &[String], seen: &mut BTreeSet<Vec<String>>) -> BTreeSet<Module> {
        if !seen.insert(path.to_vec()) {
            return BTreeSet::new();
        }
        let length = (0..=path.len()).rev().find(|n| self.text.contains_key(&path[..*n]));
        let Some(length) = length else { return BTreeSet::new() };
        let module = path[..length].to_vec();
        let Some(name) = path.get(length) else { return BTreeSet::from([module]) };
        let mut found = BTreeSet::new();
        for (import, _) in self.imports[&module].iter().filter(|(_, handed_on)| *handed_on) {
            let Some((last, parent)) = import.split_last() else { continue };
            if last == "*" || name == "*" || last == name {
                let wanted = if last == "*" { name } else { last };
                let target: Vec<String> = parent.iter().chain([wanted]).cloned().collect();
                let mut there = self.resolve(&target, seen);
                // Of all that is handed on, this name may not be a part.
                there.retain(|module| last != "*" || name == "*" || self.defines(module, name));
                found.extend(there);
            }
        }
        let own = self.defines(&module, name);
        if own || (found.is_empty() && !module.is_empty()) {
            found.insert(module);
        }
        found
    }

    fn defines(&self, module: &Module, name: &str) -> bool {
        let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules!"];
        kinds.iter().any(|kind| {
            let wanted = format!("{kind} {name}");
            self.text[module].match_indices(&wanted).any(|(at, _)| {
                let next = self.text[module][at + wanted.len()..].chars().next();
                next.is_none_or(|c| !(c.is_alphanumeric() || c == '_'))
            })
        })
    }

    fn edges(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut edges = BTreeMap::new();
        for (module, imports) in self.imports.iter().filter(|(module, _)| !module.is_empty()) {
            let targets = imports.iter().flat_map(|(path, _)| self.resolve(path, &mut BTreeSet::new()));
            let targets = targets.filter(|target| target != module && !target.is_empty());
            edges.insert(module.clone(), targets.collect());
        }
        edges
    }
}

/// `a::{b, c::d}` as `a::b` and `a::c::d`. The depth of recursion is that of braces.
fn expanded(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        return vec![
            path.split("::").map(|part| part.trim().to_string()).filter(|p| !p.is_empty()).collect(),
        ];
    };
    let (prefix, inner) = (&tree[..open], tree[open + 1..].trim_end().trim_end_matches('}'));
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| expanded(&format!("{prefix}{}", part.trim()))).collect()
}

/// The modules from which one can be reached again, each with those on the way. What a module and its own children import of one
/// another is left out: children that lead to each other are a circle even so.
fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reach = |from: &Module| {
        let (mut seen, mut work) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = work.pop() {
            let is_family = |other: &Module| other.starts_with(&module) || module.starts_with(other);
            for next in edges.get(&module).into_iter().flatten().filter(|next| !is_family(next)) {
                if seen.insert(next.clone()) {
                    work.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = edges.keys().map(|m| (m, reach(m))).collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for (module, all) in &reached {
        let circle: BTreeSet<Module> = all
            .iter()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(*module)))
            .cloned()
            .collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

#[test]
fn no_files_import_one_another_in_a_circle() {
    for name in ["ir", "autodiff", "runtime", "sweep", "cpu", "codegen", "cuda"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let sources = Sources::read(&root);
        let edges = sources.edges();
        assert!(
            edges.values().map(BTreeSet::len).sum::<usize>() > edges.len() / 2,
            "{name}: nothing was read"
        );
        let circles = circles(&edges);
        let show =
            |circle: &BTreeSet<Module>| circle.iter().map(|m| m.join("/")).collect::<Vec<_>>().join(", ");
        let shown: Vec<String> = circles.iter().map(show).collect();
        assert!(circles.is_empty(), "circles of files in {name}:\n{}", shown.join("\n"));
    }
}

/// The folders of crates, from the bottom up: nothing in one imports from a later one.
const LAYERS: [(&str, &[&str]); 4] = [
    ("ir", &["syntax", "analysis", "verify", "interp", "passes", "builder"]),
    ("autodiff", &["writer", "analysis", "normalize", "plan", "optimize", "generate"]),
    ("codegen", &["kernel", "analysis", "transform", "prelude", "print", "target"]),
    ("runtime", &["memory", "device", "array", "launch", "gradient"]),
];

#[test]
fn folders_are_layers() {
    for (name, layers) in LAYERS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let layer = |module: &Module| layers.iter().position(|layer| *layer == module[0]);
        let mut upward = Vec::new();
        let edges = Sources::read(&root).edges();
        for (from, targets) in &edges {
            let Some(own) = layer(from) else { continue };
            let above = targets.iter().filter(|to| layer(to).is_some_and(|other| other > own));
            upward.extend(above.map(|to| format!("{} imports {}", from.join("/"), to.join("/"))));
        }
        assert!(layers.iter().all(|l| edges.keys().any(|m| m[0] == *l)), "{name}: a folder is not there");
        assert!(upward.is_empty(), "arrows of {name} that point upward:\n{}", upward.join("\n"));
    }
}

#[test]
fn a_circle_is_found_and_a_family_is_none() {
    let module = |path: &str| path.split('/').map(str::to_string).collect::<Module>();
    let edges = |pairs: &[(&str, &str)]| {
        let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, to) in pairs {
            edges.entry(module(from)).or_default().insert(module(to));
            edges.entry(module(to)).or_default();
        }
        edges
    };
    assert_eq!(circles(&edges(&[("a", "b"), ("b", "c"), ("c", "a")])).len(), 1);
    assert_eq!(circles(&edges(&[("a", "a/b"), ("a/b", "a"), ("a", "c")])).len(), 0);
    assert_eq!(circles(&edges(&[("a", "a/b"), ("a/b", "a"), ("a/b", "a/c"), ("a/c", "a/b")])).len(), 1);
    assert_eq!(expanded("crate::a::{b, c::{d, e}}").len(), 3);
}

/// Does a file below this folder hold a unit test?
fn has_tests(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => has_tests(&path),
            false => {
                path.extension().is_some_and(|e| e == "rs")
                    && std::fs::read_to_string(&path).unwrap().contains("#[test]")
            }
        }
    })
}

/// Libraries without unit tests are not built for them; a test that is written there later must not go unseen.
#[test]
fn no_unit_test_stands_where_none_is_run() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut without = 0;
    for entry in std::fs::read_dir(crates).unwrap() {
        let package = entry.unwrap().path();
        let Ok(manifest) = std::fs::read_to_string(package.join("Cargo.toml")) else { continue };
        if manifest.contains("[lib]\ntest = false") {
            without += 1;
            assert!(
                !has_tests(&package.join("src")),
                "{}: remove `test = false` from Cargo.toml, or move its unit tests",
                package.display()
            );
        }
    }
    assert!(without > 0);
}
