//! Making a failing sketch smaller while it still fails.
//!
//! Input: a sketch, sizes, and a test that says whether a candidate fails in the same way. Output: a sketch of which no
//! single statement, term, parameter or size can be taken away. Candidates that are not programs do not fail, so the
//! steps need not know what is valid.

use std::collections::BTreeSet;

use ebbtide_ir::Literal;

use super::sketch::{Extent, Line, Sizes, Sketch, Term};

/// Visits every statement of a sketch, callees included.
fn each_line(sketch: &Sketch, visit: &mut dyn FnMut(&Line)) {
    fn block(lines: &[Line], visit: &mut dyn FnMut(&Line)) {
        for line in lines {
            visit(line);
            line.blocks().into_iter().for_each(|inner| block(inner, visit));
        }
    }
    block(&sketch.body, visit);
    sketch.callees.iter().for_each(|callee| each_line(callee, visit));
}

fn each_term(line: &Line, visit: &mut dyn FnMut(&Term)) {
    fn inside(term: &Term, visit: &mut dyn FnMut(&Term)) {
        visit(term);
        term.parts().into_iter().for_each(|part| inside(part, visit));
    }
    let mut own = line.clone();
    own.blocks_mut().into_iter().for_each(Vec::clear);
    own.terms_mut().into_iter().for_each(|term| inside(term, visit));
}

fn arrays_of(line: &Line) -> Vec<&String> {
    match line {
        Line::Store(a, ..) | Line::Update(_, a, ..) | Line::Unique(a, ..) | Line::Fill(a, _) => vec![a],
        Line::Region { flag, .. } => vec![flag],
        Line::Call(_, arrays, _) => arrays.iter().collect(),
        Line::Swap(a, b) | Line::Copy(a, b) | Line::Scan(a, b) => vec![a, b],
        Line::Matmul(a, b, c) | Line::Compact(a, b, c) => vec![a, b, c],
        _ => Vec::new(),
    }
}

/// All names that the program itself refers to; a callee's own parameters are not among them unless they are the same.
pub fn names(sketch: &Sketch) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let own = Sketch { callees: Vec::new(), ..sketch.clone() };
    each_line(&own, &mut |line| {
        found.extend(arrays_of(line).into_iter().cloned());
        each_term(line, &mut |term| match term {
            Term::Name(name) | Term::Load(name, _) => {
                found.insert(name.clone());
            }
            _ => {}
        });
    });
    found
}

/// The arrays that the program itself writes, or lends to others.
pub fn written(sketch: &Sketch) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let own = Sketch { callees: Vec::new(), ..sketch.clone() };
    each_line(&own, &mut |line| match line {
        Line::Copy(_, to) | Line::Scan(_, to) | Line::Matmul(_, _, to) => {
            found.insert(to.clone());
        }
        Line::Compact(_, out, count) => found.extend([out.clone(), count.clone()]),
        other => found.extend(arrays_of(other).into_iter().cloned()),
    });
    // The host writes these.
    if found.contains("o") {
        found.extend(["g", "b"].map(str::to_string));
    }
    found
}

/// The extents that the program refers to by themselves.
pub fn extents(sketch: &Sketch) -> BTreeSet<Extent> {
    let mut found = BTreeSet::new();
    let own = Sketch { callees: Vec::new(), ..sketch.clone() };
    each_line(&own, &mut |line| {
        if let Line::Temp(temp) = line {
            found.extend(temp.extents.iter().filter(|e| !matches!(e, Extent::Fixed(_))));
        }
        each_term(line, &mut |term| {
            if let Term::Extent(extent @ (Extent::N | Extent::M | Extent::Times)) = term {
                found.insert(*extent);
            }
        });
    });
    found
}

/// Candidates that lack statement `at`, or have something simpler in its place. Empty beyond the last statement.
fn without_line(sketch: &Sketch, at: usize) -> Vec<Sketch> {
    let mut candidates = Vec::new();
    for way in 0..4 {
        let mut copy = sketch.clone();
        let mut count = at;
        let mut blocks: Vec<&mut Vec<Line>> = vec![&mut copy.body];
        blocks.extend(copy.callees.iter_mut().map(|callee| &mut callee.body));
        match blocks.into_iter().try_for_each(|block| edit_line(block, &mut count, way)) {
            Err(true) => candidates.push(copy),
            Err(false) => {}
            Ok(()) => return candidates,
        }
    }
    candidates
}

/// Edits the statement that `count` counts down to. `Err` says that it was found, and whether anything was changed.
fn edit_line(block: &mut Vec<Line>, count: &mut usize, way: usize) -> Result<(), bool> {
    for at in 0..block.len() {
        if *count == 0 {
            let line = block[at].clone();
            let instead: Option<Vec<Line>> = match (way, line) {
                (0, _) => Some(Vec::new()),
                (1, Line::If(_, then, _)) => Some(then),
                (2, Line::If(_, _, otherwise)) if !otherwise.is_empty() => Some(otherwise),
                (3, Line::If(c, then, otherwise)) if !otherwise.is_empty() => {
                    Some(vec![Line::If(c, then, Vec::new())])
                }
                (1, Line::For { name, from, body, .. }) => Some([vec![Line::Let(name, from)], body].concat()),
                (2, Line::For { name, from, to, hint: Some(_), body, until }) => {
                    Some(vec![Line::For { name, from, to, hint: None, body, until }])
                }
                (3, Line::For { name, from, to, hint, body, until: Some(_) }) => {
                    Some(vec![Line::For { name, from, to, hint, body, until: None }])
                }
                (1, Line::While { body, .. } | Line::Loop { body, .. } | Line::Region { body, .. }) => {
                    Some(body)
                }
                (2, Line::While { body, .. } | Line::Loop { body, .. }) => Some(vec![Line::For {
                    name: "lw".to_string(),
                    from: Term::index(0),
                    to: Term::index(2),
                    hint: None,
                    body,
                    until: None,
                }]),
                _ => None,
            };
            let Some(instead) = instead else { return Err(false) };
            block.splice(at..=at, instead);
            return Err(true);
        }
        *count -= 1;
        for inner in block[at].blocks_mut() {
            edit_line(inner, count, way)?;
        }
    }
    Ok(())
}

/// Candidates with term `at` made simpler. `None` beyond the last term.
fn simpler_term(sketch: &Sketch, at: usize) -> Option<Vec<Sketch>> {
    let mut candidates = Vec::new();
    let mut way = 0;
    loop {
        let mut copy = sketch.clone();
        let mut count = at;
        let mut blocks: Vec<&mut Vec<Line>> = vec![&mut copy.body];
        blocks.extend(copy.callees.iter_mut().map(|callee| &mut callee.body));
        match blocks.into_iter().try_for_each(|block| edit_block_term(block, &mut count, way)) {
            Ok(()) => return None,
            Err(true) => candidates.push(copy),
            Err(false) => return Some(candidates),
        }
        way += 1;
    }
}

fn edit_block_term(block: &mut [Line], count: &mut usize, way: usize) -> Result<(), bool> {
    for line in block {
        for term in line.terms_mut() {
            edit_term(term, count, way)?;
        }
        for inner in line.blocks_mut() {
            edit_block_term(inner, count, way)?;
        }
    }
    Ok(())
}

fn edit_term(term: &mut Term, count: &mut usize, way: usize) -> Result<(), bool> {
    if *count == 0 {
        let mut instead: Vec<Term> = term.parts().into_iter().cloned().collect();
        if !matches!(term, Term::Literal(_)) {
            let simple = [
                Literal::from(0.5),
                Literal::from(0.5f32),
                Literal::index(0),
                Literal::index(1),
                Literal::from(true),
                Literal::from(false),
                Literal::from(1i32),
                Literal::from(1i64),
                Literal::from(1u32),
            ];
            instead.extend(simple.map(Term::Literal));
        }
        let Some(simpler) = instead.into_iter().nth(way) else { return Err(false) };
        *term = simpler;
        return Err(true);
    }
    *count -= 1;
    for part in term.parts_mut() {
        edit_term(part, count, way)?;
    }
    Ok(())
}

/// Candidates with a parameter less, or one that is only read.
fn fewer_parameters(sketch: &Sketch) -> Vec<Sketch> {
    let used = names(sketch);
    let mut candidates = Vec::new();
    for k in 0..sketch.arrays.len() {
        if !used.contains(&sketch.arrays[k].name) && sketch.arrays[k].name != "loss" {
            let mut copy = sketch.clone();
            copy.arrays.remove(k);
            candidates.push(copy);
        }
    }
    for k in 0..sketch.scalars.len() {
        if !used.contains(&sketch.scalars[k].name) {
            let mut copy = sketch.clone();
            copy.scalars.remove(k);
            candidates.push(copy);
        }
    }
    let calls: Vec<usize> = called(sketch);
    if calls.is_empty() && !sketch.callees.is_empty() {
        candidates.push(Sketch { callees: Vec::new(), ..sketch.clone() });
    }
    candidates
}

fn called(sketch: &Sketch) -> Vec<usize> {
    let mut found = Vec::new();
    each_line(sketch, &mut |line| {
        if let Line::Call(which, ..) = line {
            found.push(*which);
        }
    });
    found
}

/// A smaller sketch and smaller sizes that fail in the same way; at most `most` candidates are tried.
pub fn shrink(
    sketch: &Sketch,
    sizes: Sizes,
    most: usize,
    fails: &dyn Fn(&Sketch, Sizes) -> bool,
) -> (Sketch, Sizes) {
    let (mut best, mut sizes, mut tried) = (sketch.clone(), sizes, 0);
    let mut try_one = |candidate: &Sketch, sizes: Sizes| {
        tried += 1;
        tried <= most && fails(candidate, sizes)
    };
    loop {
        let before = (best.clone(), sizes);
        let mut at = 0;
        loop {
            let candidates = without_line(&best, at);
            if candidates.is_empty() && at >= best.len() {
                break;
            }
            match candidates.into_iter().find(|c| try_one(c, sizes)) {
                Some(smaller) => best = smaller,
                None => at += 1,
            }
        }
        for smaller in [
            Sizes { n: 1, ..sizes },
            Sizes { n: 2, ..sizes },
            Sizes { n: 3, ..sizes },
            Sizes { n: 5, ..sizes },
            Sizes { m: 1, ..sizes },
            Sizes { m: 2, ..sizes },
            Sizes { steps: 1, ..sizes },
            Sizes { steps: 2, ..sizes },
            Sizes { steps: 3, ..sizes },
        ] {
            let total = |s: Sizes| s.n + s.m + s.steps;
            let merged = Sizes {
                n: smaller.n.min(sizes.n),
                m: smaller.m.min(sizes.m),
                steps: smaller.steps.min(sizes.steps),
            };
            if total(merged) < total(sizes) && try_one(&best, merged) {
                sizes = merged;
            }
        }
        let mut at = 0;
        while let Some(candidates) = simpler_term(&best, at) {
            match candidates.into_iter().find(|c| try_one(c, sizes)) {
                Some(smaller) => best = smaller,
                None => at += 1,
            }
        }
        while let Some(smaller) = fewer_parameters(&best).into_iter().find(|c| try_one(c, sizes)) {
            best = smaller;
        }
        if (&best, sizes) == (&before.0, before.1) {
            return (best, sizes);
        }
    }
}
