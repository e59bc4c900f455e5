//! Which arrays a loop inside an iteration goes through row by row, so that vectors need not gather them
//! (`transform::windows`, `transform::row_tiles`). It decides speed, never what is computed: the steps look for themselves.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affines, ArrayId, Indices, Loop, LoopKind, Op, Program, Stmt, ValueId, walk};

use crate::analysis::motion::Motion;

/// So many elements of an array are handed on at most: more would not stay in registers.
const WIDEST: i64 = 4;

/// What a loop does with arrays that it goes through along their rows.
#[derive(Default)]
pub(crate) struct AlongRows {
    /// These it goes through from element to element.
    pub arrays: BTreeSet<ArrayId>,
    /// Does an iteration read what one before it has stored?
    pub recurs: bool,
}

/// The arrays that a loop goes through along their rows.
pub(crate) fn along_rows(program: &Program, affines: &Affines, l: &Loop) -> AlongRows {
    let LoopKind::For { var, .. } = l.kind else { return AlongRows::default() };
    let (mut inside, mut touched) = (BTreeSet::new(), BTreeMap::<ArrayId, usize>::new());
    let touch = |stmt: &Stmt| -> Option<(ArrayId, Indices, bool)> {
        match stmt {
            Stmt::Let(v) => match *program.op(*v) {
                Op::Load(array, index) => Some((array, index, false)),
                _ => None,
            },
            Stmt::Store(s) | Stmt::Update(_, s) => Some((s.array, s.index, true)),
            _ => None,
        }
    };
    walk(&l.body, &mut |stmt| {
        inside.extend(defined(stmt));
        if let Some((array, ..)) = touch(stmt) {
            *touched.entry(array).or_default() += 1;
        }
    });
    let motion = Motion { affines, variable: var, inside };
    let mut own: BTreeMap<ArrayId, Vec<(Indices, bool)>> = BTreeMap::new();
    for (array, index, writes) in l.body.iter().filter_map(touch) {
        own.entry(array).or_default().push((index, writes));
    }
    let mut found = AlongRows::default();
    for (array, touches) in own {
        let goes = |index: Indices| {
            let by = motion.of(index)?;
            let (last, others) = by.split_last()?;
            (last.abs() == 1 && others.iter().all(|by| *by == 0)).then_some(())
        };
        let written = touches.iter().any(|touch| touch.1);
        let apart: Option<BTreeSet<i64>> =
            touches.iter().map(|(index, _)| motion.iterations_until(touches[0].0, *index)).collect();
        found.recurs |= written && apart.as_ref().is_some_and(|apart| apart.len() > 1);
        // What is written must be known by its place, and no other statement may touch it.
        let known = match apart {
            Some(apart) => touched[&array] == touches.len() && is_window(&apart) && l.sums.is_empty(),
            None => false,
        };
        let in_rows = l.until.is_none()
            && program.array(array).ty.is_float()
            && touches.iter().all(|(index, _)| goes(*index).is_some());
        if in_rows && (known || !written) {
            found.arrays.insert(array);
        }
    }
    found
}

/// Do elements that are so many iterations apart fill a window, which is not too wide to be held in registers?
pub(crate) fn is_window(apart: &BTreeSet<i64>) -> bool {
    let (Some(last), Some(first)) = (apart.first(), apart.last()) else { return false };
    first - last < WIDEST && apart.len() as i64 == first - last + 1
}

fn defined(stmt: &Stmt) -> Option<ValueId> {
    match stmt {
        Stmt::Let(v) => Some(*v),
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => Some(*var),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{Affines, Stmt, parse, walk};
    use expect_test::expect;

    use super::along_rows;

    #[test]
    fn arrays_that_a_loop_goes_through_along_rows_are_found() {
        let bodies = [
            "x[[i, k]] = w[[i, k]];",
            "x[[i, k]] = x[[i, k - 1]] + w[[i, n - k]];",
            "let e = x[[i, k]]; x[[i, k]] = 0.0; x[[i, k - 1]] += e;",
            "x[[i, k]] = x[[i, k - 2]];",
            "x[[k, i]] = x[[k - 1, i]] + w[[k, k]];",
            "x[[i, k]] = x[[i, 2 * k]];",
            "if w[[i, k]] > 0.0 { x[[i, k]] = 0.0; }",
        ];
        let mut lines = String::new();
        for body in bodies {
            let text = format!(
                "program p(w: &Array2<f64>, x: &mut Array2<f64>) {{ let n = w.dim(1);
                 for i in par(0..w.dim(0)) {{ for k in 1..n {{ {body} }} }} }}"
            );
            let program = parse(&text).unwrap();
            let affines = Affines::of(&program);
            walk(&program.body, &mut |stmt| {
                let Stmt::Loop(l) = stmt else { return };
                let found = along_rows(&program, &affines, l);
                let names: Vec<&str> = found.arrays.iter().map(|a| program.array(*a).name.as_str()).collect();
                let recurs = if found.recurs { ", recurs" } else { "" };
                lines += &format!("{body} [{}]{recurs}\n", names.join(" "));
            });
        }
        expect![[r#"
            x[[i, k]] = w[[i, k]]; [w x]
            x[[i, k]] = x[[i, k - 1]] + w[[i, n - k]]; [w x], recurs
            let e = x[[i, k]]; x[[i, k]] = 0.0; x[[i, k - 1]] += e; [x], recurs
            x[[i, k]] = x[[i, k - 2]]; [], recurs
            x[[k, i]] = x[[k - 1, i]] + w[[k, k]]; [], recurs
            x[[i, k]] = x[[i, 2 * k]]; []
            if w[[i, k]] > 0.0 { x[[i, k]] = 0.0; } [w]
        "#]].assert_eq(&lines);
    }
}
