//! Which elements the iterations of a parallel loop touch, and whether two of them may meet.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::analysis::affine::{Affine, Affines, is_zero};
use crate::syntax::*;

/// How the iterations of one parallel loop share an array that they write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each element is touched by one iteration alone.
    Own,
    /// All iterations combine into one element that does not depend on the iteration: an ordered tree (law 8).
    Reduce,
    /// Iterations combine into elements that they may share: in iteration order (law 8).
    Scatter,
}

/// What is known of one parallel loop.
#[derive(Clone, Debug, Default)]
pub struct ParFacts {
    /// How each written array is shared.
    pub sharing: BTreeMap<ArrayId, Sharing>,
}

/// What a value can depend on, seen from a parallel loop.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Dependence {
    /// The same in all iterations.
    Invariant,
    /// Computed from the iteration or from data: may differ between iterations.
    Varying,
}

struct Touch<'a> {
    array: ArrayId,
    index: &'a [ValueId],
    kind: Kind,
    site: &'a Option<Site>,
    /// What its block claims.
    claims: Rc<Vec<&'a Claim>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Combine(Combine),
}

/// For each parallel variable, the dimension that tells iterations apart and how.
type Owner = Vec<(usize, Affine)>;

/// Looks at one parallel loop.
pub fn analyse(program: &Program, affines: &Affines, par: &Par) -> Result<ParFacts, Flaw> {
    let inside = Inside::of(par);
    let mut touches: Vec<Touch> = Vec::new();
    let mut blocks: Vec<&Block> = vec![&par.body];
    while let Some(block) = blocks.pop() {
        let claims = block.iter().filter_map(|s| if let Stmt::Claim(claim) = s { Some(claim) } else { None });
        let claims = Rc::new(claims.collect::<Vec<_>>());
        for stmt in block {
            let (array, index, kind, site) = match stmt {
                Stmt::Let(v) => match &program.value(*v).op {
                    Op::Load(array, index) => (*array, index, Kind::Read, &program.value(*v).site),
                    _ => continue,
                },
                Stmt::Store(s) => (s.array, &s.index, Kind::Write, &s.site),
                Stmt::Update(c, s) => (s.array, &s.index, Kind::Combine(*c), &s.site),
                _ => {
                    blocks.extend(stmt.blocks());
                    continue;
                }
            };
            touches.push(Touch { array, index: index.as_slice(), kind, site, claims: claims.clone() });
        }
    }
    let mut facts = ParFacts::default();
    let written: BTreeSet<ArrayId> =
        touches.iter().filter(|t| t.kind != Kind::Read).map(|t| t.array).collect();
    for array in written {
        let here: Vec<&Touch> = touches.iter().filter(|t| t.array == array).collect();
        facts.sharing.insert(array, share(program, affines, par, &inside, &here)?);
    }
    Ok(facts)
}

fn share(
    program: &Program,
    affines: &Affines,
    par: &Par,
    inside: &Inside,
    touches: &[&Touch],
) -> Result<Sharing, Flaw> {
    let owners: Vec<Option<Owner>> =
        touches.iter().map(|t| owner(program, affines, par, inside, t.index)).collect();
    if owners[0].is_some() && owners.iter().all(|o| *o == owners[0]) {
        return Ok(Sharing::Own);
    }
    let apart =
        |a: usize, b: usize| never_meet(program, affines, par, inside, touches[a].index, touches[b].index);
    let one_each = |a: usize| (0..a).all(|b| owners[a] == owners[b] || apart(a, b));
    if owners.iter().all(Option::is_some) && (0..touches.len()).all(one_each) {
        return Ok(Sharing::Own);
    }
    if claimed(affines, touches) {
        return Ok(Sharing::Own);
    }
    let first = touches[0].kind;
    if matches!(first, Kind::Combine(_)) && touches.iter().all(|t| t.kind == first) {
        let fixed = |t: &&Touch| {
            t.index.iter().all(|v| dependence(program, affines, inside, *v) == Dependence::Invariant)
        };
        return Ok(if touches.iter().all(fixed) { Sharing::Reduce } else { Sharing::Scatter });
    }
    Err(race(program, touches, &owners))
}

/// Is every touch at an index that its own block claims, all of them among the elements of one array?
fn claimed(affines: &Affines, touches: &[&Touch]) -> bool {
    let forms = |index: &[ValueId]| index.iter().map(|v| affines.form(*v).clone()).collect::<Vec<_>>();
    let mut taken = touches.iter().map(|touch| {
        let at = forms(touch.index);
        touch.claims.iter().find(|claim| forms(claim.index.as_slice()) == at).map(|claim| claim.taken)
    });
    let Some(Some(first)) = taken.next() else { return false };
    taken.all(|other| other == Some(first))
}

fn race(program: &Program, touches: &[&Touch], owners: &[Option<Owner>]) -> Flaw {
    let name = &program.array(touches[0].array).name;
    let culprit = touches
        .iter()
        .zip(owners)
        .position(|(t, o)| t.kind != Kind::Read && o.is_none())
        .or_else(|| owners.iter().position(|o| *o != owners[0]))
        .unwrap_or(0);
    let combined = touches.iter().any(|t| matches!(t.kind, Kind::Combine(_)));
    let advice = if combined {
        "an array that iterations combine into (`+=`, `min_assign`, `max_assign`) may not be read, written or \
         combined in another way in the same parallel loop"
    } else if owners.iter().any(Option::is_some) {
        "read neighbours from another array and `swap` the two after the loop"
    } else {
        "write `a[i]` with `i` the parallel index, combine with `+=`, or write `scatter_unique(a, k, x)` where all \
         `k` differ; a single element can be written outside the parallel loop"
    };
    let message = format!(
        "a race: two iterations of the parallel loop may touch the same element of `{name}`, one of them writing: {advice}"
    );
    Flaw { law: "7", message, site: touches[culprit].site.clone() }
}

/// The dimensions by which an index tells all iterations apart, if it does.
fn owner(
    program: &Program,
    affines: &Affines,
    par: &Par,
    inside: &Inside,
    index: &[ValueId],
) -> Option<Owner> {
    let mut owner = Owner::new();
    for range in &par.ranges {
        let dimension = (0..index.len()).find(|d| {
            !owner.iter().any(|(taken, _)| taken == d)
                && tells_apart(program, affines, inside, range, index[*d])
        })?;
        owner.push((dimension, affines.form(index[dimension]).clone()));
    }
    Some(owner)
}

/// Is the value `c · var + invariant` with `c ≠ 0`, or `(var + invariant) % n` for a loop over `0..n`?
fn tells_apart(program: &Program, affines: &Affines, inside: &Inside, range: &Range, value: ValueId) -> bool {
    let form = affines.form(value);
    let rest_is_invariant = |form: &Affine| {
        form.terms.iter().all(|(atom, _)| {
            *atom == range.var || dependence(program, affines, inside, *atom) == Dependence::Invariant
        })
    };
    if form.coefficient(range.var) != 0 {
        return rest_is_invariant(form);
    }
    let Some((dividend, divisor)) = form.as_atom().and_then(|atom| affines.remainder(program, atom)) else {
        return false;
    };
    let dividend = affines.form(dividend);
    dividend.coefficient(range.var).abs() == 1
        && rest_is_invariant(dividend)
        && is_zero(program, range.from)
        && affines.form(range.to) == affines.form(divisor)
        && dependence(program, affines, inside, divisor) == Dependence::Invariant
}

/// Are two indices certain to differ, whatever the iterations: in some dimension by a constant that no difference of
/// parallel variables makes up for, as in `a[2 * i]` and `a[2 * i + 1]`?
fn never_meet(
    program: &Program,
    affines: &Affines,
    par: &Par,
    inside: &Inside,
    a: &[ValueId],
    b: &[ValueId],
) -> bool {
    a.iter().zip(b).any(|(a, b)| {
        let (a, b) = (affines.form(*a), affines.form(*b));
        let Some(difference) = a.add_scaled(b, -1).and_then(|d| d.as_constant()) else { return false };
        let parallel = |atom: ValueId| par.ranges.iter().any(|r| r.var == atom);
        let known = |t: &(ValueId, i64)| {
            parallel(t.0) || dependence(program, affines, inside, t.0) == Dependence::Invariant
        };
        let steps = a.terms.iter().filter(|t| parallel(t.0)).map(|t| t.1.unsigned_abs());
        let step = steps.fold(0, greatest_common_divisor);
        a.terms.iter().all(known) && difference != 0 && (step == 0 || difference.unsigned_abs() % step != 0)
    })
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// What comes to life inside a parallel loop.
#[derive(Default)]
struct Inside {
    values: BTreeSet<ValueId>,
    locals: BTreeSet<LocalId>,
}

impl Inside {
    fn of(par: &Par) -> Inside {
        let mut inside =
            Inside { values: par.ranges.iter().map(|r| r.var).collect(), locals: BTreeSet::new() };
        walk(&par.body, &mut |stmt| match stmt {
            Stmt::Let(v) => {
                inside.values.insert(*v);
            }
            Stmt::Declare(local, _) => {
                inside.locals.insert(*local);
            }
            Stmt::Loop(Loop { kind: LoopKind::For { var, .. }, .. }) => {
                inside.values.insert(*var);
            }
            _ => {}
        });
        inside
    }
}

fn dependence(program: &Program, affines: &Affines, inside: &Inside, value: ValueId) -> Dependence {
    // Operands stand before their uses, so a work list ends.
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        if !inside.values.contains(&v) {
            continue;
        }
        match program.op(v) {
            // What it is made of decides: that the same value is also made elsewhere says nothing, since it may be
            // made of this loop's variable there too.
            op if op.is_pure() && *op != Op::LoopVar => work.extend(op.operands()),
            Op::Get(local) if !inside.locals.contains(local) => {}
            _ if !inside.values.contains(&affines.representative(v)) => {}
            _ => return Dependence::Varying,
        }
    }
    Dependence::Invariant
}
