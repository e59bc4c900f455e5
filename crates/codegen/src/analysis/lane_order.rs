//! Which arrays are combined with lane by lane. Input: a parallel loop and its interior; output: the arrays with elements that the
//! lanes of a vector share, and with which they may combine one after the other.
//!
//! Iterations combine with a shared element in their order, each with all that it has before the next one comes (law 8). Lanes
//! go through their iterations side by side, and keep that order where an iteration meets each element in one place and once: its
//! updates stand together, and no two iterations of the loops around them meet the same element. Updates of other elements may stand
//! elsewhere: in one dimension their indices are different constants (`w[[t, 0]]` and `w[[s, 1]]`).

use std::collections::{BTreeMap, BTreeSet};

use ebbtide_ir::{
    Affines, ArrayId, Block, Combine, Facts, Indices, LoopKind, Op, Par, ParFacts, Program, Sharing, Stmt,
    ValueId, walk,
};

use crate::analysis::interior::Interior;
use crate::analysis::names::sharing;
use crate::analysis::vectors::{Stride, stride};

/// Where an array is updated.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    how: Combine,
    index: Indices,
    /// Which block it is in, by number.
    block: usize,
    /// The variables of the loops around it; `None` where one of them does not count.
    loops: Option<Vec<ValueId>>,
}

/// What is known of the touches of an array.
#[derive(Debug)]
enum Touched {
    /// It is updated in these places alone, each for elements of its own.
    In(Vec<Place>),
    /// It is touched in some other way.
    Otherwise,
}

/// The arrays that lanes combine with one after the other.
pub(crate) fn in_lane_order(
    (program, facts): (&Program, &Facts),
    par: &Par,
    interior: &Interior,
) -> BTreeSet<ArrayId> {
    let sharing = sharing(facts, par);
    let mut search =
        Search { program, affines: &facts.affines, sharing: &sharing, blocks: 0, touched: BTreeMap::new() };
    search.block(&par.body, Some(&[]));
    let fits = |place: &Place| {
        let together = stride(program, interior, place.index) == Stride::Same;
        let apart = |loops: &Vec<ValueId>| meet_once(&facts.affines, par, place.index, loops);
        together && place.loops.as_ref().is_some_and(apart)
    };
    let all_fit = |touched: &Touched| matches!(touched, Touched::In(places) if places.iter().all(fits));
    let arrays = search.touched.iter().filter(|(_, touched)| all_fit(touched));
    arrays.map(|(array, _)| *array).collect()
}

struct Search<'a> {
    program: &'a Program,
    affines: &'a Affines,
    sharing: &'a ParFacts,
    blocks: usize,
    touched: BTreeMap<ArrayId, Touched>,
}

impl Search<'_> {
    /// The depth of recursion is that of nesting in the source.
    fn block(&mut self, block: &Block, loops: Option<&[ValueId]>) {
        self.blocks += 1;
        let number = self.blocks;
        for stmt in block {
            match stmt {
                Stmt::Let(v) => {
                    if let Op::Load(array, _) = self.program.op(*v) {
                        self.touched.insert(*array, Touched::Otherwise);
                    }
                }
                Stmt::Update(how, s) if self.sharing.of(s) == Sharing::Scatter => {
                    let loops = loops.map(<[_]>::to_vec);
                    self.update(s.array, Place { how: *how, index: s.index, block: number, loops });
                }
                Stmt::Store(s) | Stmt::Update(_, s) => {
                    self.touched.insert(s.array, Touched::Otherwise);
                }
                Stmt::Claim(claim) => {
                    self.touched.insert(claim.array, Touched::Otherwise);
                }
                _ => {}
            }
            let inside: Option<Vec<ValueId>> = match (stmt, loops) {
                (Stmt::Loop(l), Some(loops)) => match l.kind {
                    LoopKind::For { var, .. } => Some(loops.iter().copied().chain([var]).collect()),
                    _ => None,
                },
                (_, loops) => loops.map(<[_]>::to_vec),
            };
            stmt.blocks().for_each(|block| self.block(block, inside.as_deref()));
        }
    }

    fn update(&mut self, array: ArrayId, place: Place) {
        let known = match self.touched.remove(&array) {
            None => Some(Vec::new()),
            Some(Touched::In(known)) => Some(known),
            Some(Touched::Otherwise) => None,
        };
        // Those of one element are joined where nothing else of the array stands between them.
        let fits = |known: &Vec<Place>| {
            let others = known.iter().rev().skip_while(|k| self.stand_together(k, &place));
            { others }.all(|k| self.never_meet(k, &place))
        };
        let touched = match known.filter(fits) {
            Some(mut known) => {
                known.push(place);
                Touched::In(known)
            }
            None => Touched::Otherwise,
        };
        self.touched.insert(array, touched);
    }

    /// Do two updates combine with one element, one right after the other?
    fn stand_together(&self, a: &Place, b: &Place) -> bool {
        let mut pairs = a.index.as_slice().iter().zip(b.index.as_slice());
        let equal = |(a, b): (&ValueId, &ValueId)| self.affines.form(*a) == self.affines.form(*b);
        (a.how, a.block) == (b.how, b.block) && pairs.all(equal)
    }

    /// Do they combine with different elements, in whichever iterations of the loops around them?
    fn never_meet(&self, a: &Place, b: &Place) -> bool {
        a.index.as_slice().iter().zip(b.index.as_slice()).any(|(a, b)| {
            let (a, b) = (self.affines.form(*a), self.affines.form(*b));
            a.terms.is_empty() && b.terms.is_empty() && a.constant != b.constant
        })
    }
}

/// Is this index another one in each iteration of the loops with these variables? Each of them is found from a dimension in which
/// all others are known.
fn meet_once(affines: &Affines, par: &Par, index: Indices, loops: &[ValueId]) -> bool {
    let changing = changing_inside(par, loops);
    let mut unknown: BTreeSet<ValueId> = loops.iter().copied().collect();
    loop {
        let found = index.as_slice().iter().find_map(|v| {
            let atoms = affines.form(*v).terms.iter().map(|term| term.0);
            let open: Vec<ValueId> =
                atoms.filter(|atom| unknown.contains(atom) || changing.contains(atom)).collect();
            match open[..] {
                [one] => unknown.get(&one).copied(),
                _ => None,
            }
        });
        match found {
            Some(variable) => drop(unknown.remove(&variable)),
            None => return unknown.is_empty(),
        }
    }
}

/// The values that are computed inside the loops with these variables.
fn changing_inside(par: &Par, loops: &[ValueId]) -> BTreeSet<ValueId> {
    let mut inside = BTreeSet::new();
    walk(&par.body, &mut |stmt| {
        if let Stmt::Loop(l) = stmt
            && let LoopKind::For { var, .. } = l.kind
            && loops.contains(&var)
        {
            walk(&l.body, &mut |stmt| {
                if let Stmt::Let(v) = stmt {
                    inside.insert(*v);
                }
            });
        }
    });
    inside
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use ebbtide_ir::{parse, verify};

    use super::in_lane_order;
    use crate::analysis::interior::{Decide, interior};
    use crate::analysis::names::values_inside;

    /// Do lanes combine with `s` one after the other in `for i in par(..) { body }`?
    fn keeps_order(body: &str) -> bool {
        let text = format!(
            "program p(x: &Array2<f64>, k: &Array1<i32>, s: &mut Array1<f64>, q: &mut Array2<f64>) {{
                for i in par(0..x.dim(1)) {{ {body} }}
            }}"
        );
        let program = parse(&text).unwrap_or_else(|why| panic!("{why}"));
        let facts = verify(&program).unwrap();
        let par = program.body.iter().find_map(|stmt| match stmt {
            ebbtide_ir::Stmt::Par(par) => Some(par),
            _ => None,
        });
        let par = par.unwrap();
        let interior = interior(&program, par, &values_inside(par), Decide::Columns);
        !in_lane_order((&program, &facts), par, &interior).is_empty()
    }

    #[test]
    fn lanes_keep_the_order_of_iterations_where_each_meets_an_element_once() {
        let n = "for t in 0..x.dim(0)";
        assert!(keeps_order(&format!("{n} {{ s[t] += x[[t, i]]; }}")));
        assert!(keeps_order(&format!("{n} {{ s[x.dim(0) - 1 - t] += x[[t, i]]; }}")));
        assert!(keeps_order(&format!("{n} {{ s[t] += x[[t, i]]; s[t] += 1.0; }}")));
        assert!(keeps_order(&format!("{n} {{ for r in 0..3 {{ q[[r, t + r]] += x[[t, i]]; }} }}")));
        assert!(keeps_order(&format!(
            "{n} {{ q[[0, t]] += x[[t, i]]; q[[1, t]] += 1.0; q[[1, t]] += 2.0; }}"
        )));
        assert!(keeps_order(&format!("{n} {{ q[[t, 0]] += 1.0; }} {n} {{ q[[t, 2]] += x[[t, i]]; }}")));
    }

    #[test]
    fn lanes_do_not_keep_it_where_an_iteration_meets_an_element_again() {
        let n = "for t in 0..x.dim(0)";
        assert!(!keeps_order(&format!("{n} {{ s[t / 2] += x[[t, i]]; }}")));
        assert!(!keeps_order(&format!("{n} {{ for r in 0..3 {{ s[t + r] += x[[t, i]]; }} }}")));
        assert!(!keeps_order(&format!("{n} {{ s[t] += x[[t, i]]; s[t + 1] += 1.0; }}")));
        assert!(!keeps_order(&format!("{n} {{ q[[0, t]] += x[[t, i]]; q[[t, 1]] += 1.0; }}")));
        assert!(!keeps_order(&format!(
            "{n} {{ q[[0, t]] += 1.0; q[[1, t]] += x[[t, i]]; q[[0, t]] += 2.0; }}"
        )));
        assert!(!keeps_order(&format!("{n} {{ q[[0, 0]] += x[[t, i]]; q[[0, 1]] += 1.0; }}")));
        assert!(!keeps_order(&format!("{n} {{ s[t] += x[[t, i]]; }} {n} {{ s[t] += x[[t, i]]; }}")));
        assert!(!keeps_order(&format!("{n} {{ s[t] += 1.0; if x[[t, i]] > 0.5 {{ s[t] += x[[t, i]]; }} }}")));
        assert!(!keeps_order(&format!("{n} {{ s[k[t] as usize] += x[[t, i]]; }}")));
        assert!(!keeps_order(&format!("{n} {{ s[k[i] as usize] += x[[t, i]]; }}")));
    }
}
