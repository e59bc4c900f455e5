//! A loop over the iterations of the loop that is reversed: own elements, reductions, scatters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ebbtide_ir::{
    ArrayId, Asked, Block, Branch, Literal, Par, Program, Range, Requirement, Safety, Stmt, ValueId, is_zero,
    walk,
};

use crate::analysis::activity::Activity;
use crate::analysis::store_forwarding::StoreForwarding;
use crate::error::Error;
use crate::generate::extremes::Extremes;
use crate::generate::par::alone::alone;
use crate::generate::task::{Followed, Purpose, Storage, Task};
use crate::plan::events::Events;
use crate::plan::scratch_arrays::{Domain, ScratchArrays, Tapes};
use crate::plan::shadow_state::Shadows;
use crate::writer::Writer;
use crate::writer::prune::prune;

/// A parallel loop, what it reads after it has written it, and the copies over which its body runs therefore.
pub(crate) type Run<'a> = (&'a Par, &'a StoreForwarding, BTreeMap<ArrayId, ArrayId>);
/// What iterations without a bound find, and the stamps of the copies.
pub(super) type Found<'a> = (&'a Events, BTreeMap<ArrayId, ArrayId>);

/// A loop over the original iterations: own elements, reductions, scatters.
pub(crate) fn over_iterations(
    w: &mut Writer,
    program: (&Program, &Activity),
    beside: (&Shadows, &Extremes),
    env: &HashMap<ValueId, ValueId>,
    body: Run<'_>,
    purpose: Purpose<'_>,
) -> Result<(), Error> {
    let par = body.0;
    let (ranges, body) = iterations(w, program, beside, env, (body, purpose, None), (None, None))?;
    if let Some(own) = own_iterations(w, (par, env), ranges, body) {
        push_own(w, own);
    }
    Ok(())
}

/// The ranges and the body of a loop over the original iterations.
pub(super) fn iterations(
    w: &mut Writer,
    (source, activity): (&Program, &Activity),
    beside: (&Shadows, &Extremes),
    env: &HashMap<ValueId, ValueId>,
    ((par, forwarding, copies), purpose, followed): (Run<'_>, Purpose<'_>, Option<Followed<'_>>),
    (storage, found): (Option<(&mut ScratchArrays, Domain<'_>, &mut Tapes)>, Option<Found<'_>>),
) -> Result<(Vec<Range>, Block), Error> {
    let mut map = env.clone();
    let ranges: Vec<Range> = par
        .ranges
        .iter()
        .map(|r| {
            let name = source.value(r.var).name.clone().unwrap_or_else(|| "i".to_string());
            let var = w.loop_var(&name);
            let range = Range { var, from: mapped(&map, r.from), to: mapped(&map, r.to) };
            map.insert(r.var, var);
            range
        })
        .collect();
    w.begin();
    let own: Vec<ValueId> = ranges
        .iter()
        .map(|r| if is_zero(&w.program, r.from) { r.var } else { w.sub(r.var, r.from) })
        .collect();
    let storage = storage.map(|(kept, domain, tapes)| Storage { kept, domain, own, tapes });
    let body = (&par.body, forwarding);
    let task = Task::new(source, activity, beside, purpose, map, body);
    let task = task.keeping(storage).over(copies).following(followed);
    task.with_events(w, found).write(w, &par.body)?;
    let body = w.end();
    let body = prune(&w.program, body);
    Ok((ranges, body))
}

/// A loop in place of another, if it does anything.
pub(crate) fn own_iterations(
    w: &mut Writer,
    (par, env): (&Par, &HashMap<ValueId, ValueId>),
    ranges: Vec<Range>,
    body: Block,
) -> Option<Par> {
    (!body.is_empty()).then(|| Par {
        id: w.new_par(),
        ranges,
        body,
        ordering: par.ordering,
        requires: requirements(par, env),
        safety: Safety::Proved,
        site: par.site.clone(),
    })
}

/// What was asked when a loop began, for one that reverses it: it holds there too.
pub(super) fn requirements(par: &Par, env: &HashMap<ValueId, ValueId>) -> Vec<Requirement> {
    let asked = |r: &Requirement| Requirement {
        condition: mapped(env, r.condition),
        asked: Asked::Before,
        ..r.clone()
    };
    par.requires.iter().map(asked).collect()
}

pub(crate) fn push_own(w: &mut Writer, own: Par) {
    give_back(w, &own.body);
    let stmt = match alone(w, &own) {
        Some((condition, then)) => Stmt::If(Branch { condition, then, otherwise: vec![Stmt::Par(own)] }),
        None => Stmt::Par(own),
    };
    w.push(stmt);
}

/// Nothing is taken when a loop begins that claims elements.
fn give_back(w: &mut Writer, body: &Block) {
    let mut taken = BTreeSet::new();
    walk(body, &mut |stmt| {
        if let Stmt::Claim(claim) = stmt {
            taken.insert(claim.taken);
        }
    });
    for array in taken {
        let no = w.literal(Literal::from(false));
        w.fill(array, no);
    }
}

pub(super) fn mapped(map: &HashMap<ValueId, ValueId>, v: ValueId) -> ValueId {
    map.get(&v).copied().unwrap_or(v)
}
