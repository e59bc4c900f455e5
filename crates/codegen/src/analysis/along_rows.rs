//! Which arrays a loop inside an iteration goes through row by row, so that vectors need not gather them
//! (`transform::windows`, `transform::row_tiles`). It decides speed, never what is computed: the steps look for themselves.

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{Affines, ArrayId, Indices, Loop, LoopKind, Op, Program, Stmt, ValueId, walk};

use crate::analysis::motion::Motion;

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
        let apart: Option<Vec<i64>> =
            touches.iter().map(|(index, _)| motion.iterations_until(touches[0].0, *index)).collect();
        let handed = touches.iter().any(|touch| touch.1) && apart.iter().flatten().any(|apart| *apart != 0);
        found.recurs |= handed;
        let written = touches.iter().any(|touch| touch.1);
        let in_rows = touches.iter().all(|(index, _)| goes(*index).is_some());
        // What is written must be known by its place, and no other statement may touch it.
        let known = !written || (apart.is_some() && touched[&array] == touches.len());
        if in_rows && known && !(handed && (l.until.is_some() || !l.sums.is_empty())) {
            found.arrays.insert(array);
        }
    }
    found
}

fn defined(stmt: &Stmt) -> Option<ValueId> {
    match stmt {
        Stmt::Let(v) => Some(*v),
        Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => Some(*var),
        _ => None,
    }
}
