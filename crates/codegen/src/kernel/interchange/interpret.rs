//! The reference interpreter of loops inside their parallel loops: what a tree means. Tests run it without a compiler.

use std::collections::BTreeMap;

use ebbtide_ir::evaluate::Bits;
use ebbtide_ir::{ArrayId, LoopKind, ValueId};

use super::{Guard, Interchanged, Tape};
use crate::kernel::evaluate::World;
use crate::kernel::interpret::{Ended, Iteration, Memory};
use crate::kernel::name::{Name, Variable};

/// The values of names.
type Names = BTreeMap<Name, Vec<Bits>>;

/// The tapes of arrays, their last place last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tapes {
    pub places: BTreeMap<ArrayId, Vec<Vec<Bits>>>,
    /// So many places each of them has.
    pub capacity: usize,
}

/// What a tree is run with.
pub(crate) struct Outside<'a> {
    /// The names that are known before the loop.
    pub names: &'a Names,
    /// A value that is known before the loop.
    pub value: &'a dyn Fn(ValueId) -> i64,
    /// Do iterations of the domain come last to first?
    pub last_first: bool,
}

/// Runs the loop, if it can run inside its parallel loops: says whether it does.
pub(crate) fn run(
    tree: &Interchanged,
    memory: &mut Memory,
    tapes: &mut Tapes,
    outside: &Outside,
) -> Result<bool, Ended> {
    let LoopKind::For { var, from, to } = tree.source.kind else { return Ok(false) };
    let (begin, end) = ((outside.value)(from), (outside.value)(to));
    let ranges: Vec<(i64, i64)> =
        tree.domain.ranges.iter().map(|r| ((outside.value)(r.from), (outside.value)(r.to))).collect();
    let iterations = (end - begin).max(0) as usize;
    let holds = |guard: &Guard| guard_holds(guard, memory, tapes, outside, &ranges, iterations);
    if iterations == 0 || !tree.guards.iter().all(holds) {
        return Ok(false);
    }
    // Pushes take places that are there, pops give places back behind the loop.
    let shape = |array: &ArrayId| memory.shapes[array.index()].iter().product::<i64>() as usize;
    for (array, tape) in &tree.tapes {
        let places = tapes.places.entry(*array).or_default();
        if let Tape::Pushes(count) = tape {
            places.resize(places.len() + *count as usize * iterations, vec![0; shape(array)]);
        }
    }
    let mut all = vec![Vec::new()];
    for (from, to) in &ranges {
        let longer = |at: &Vec<i64>| (*from..*to).map(|k| [&at[..], &[k]].concat()).collect::<Vec<_>>();
        all = all.iter().flat_map(longer).collect();
    }
    if outside.last_first {
        all.reverse();
    }
    for at in all {
        element(tree, memory, tapes, outside.names, &at, (var, begin, iterations))?;
    }
    for (array, tape) in &tree.tapes {
        if let (Tape::Pops(count), Some(places)) = (tape, tapes.places.get_mut(array)) {
            places.truncate(places.len() - *count as usize * iterations);
        }
    }
    Ok(true)
}

fn guard_holds(
    guard: &Guard,
    memory: &Memory,
    tapes: &Tapes,
    outside: &Outside,
    ranges: &[(i64, i64)],
    iterations: usize,
) -> bool {
    let extent = |array: ArrayId, k: usize| memory.shapes[array.index()][k];
    let world = World { value: outside.value, extent: &extent, wrapped: &|_| 0, ranges };
    let end = |k: usize| ranges[k].1.max(ranges[k].0);
    match guard {
        Guard::Proof(test) => world.holds(test),
        Guard::Number(v) => (outside.value)(*v) != i64::MIN,
        Guard::Whole(array, k) => ranges[*k].0 == 0 && end(*k) == extent(*array, *k),
        Guard::Within(array, k) => ranges[*k].0 >= 0 && end(*k) <= extent(*array, *k),
        Guard::Places(array, tape) => {
            let taken = tapes.places.get(array).map_or(0, Vec::len);
            let room = if let Tape::Pushes(_) = tape { tapes.capacity - taken } else { taken };
            tape.places() as usize * iterations <= room
        }
    }
}

/// Takes one iteration of the domain through all iterations of the loop.
fn element(
    tree: &Interchanged,
    memory: &mut Memory,
    tapes: &mut Tapes,
    known: &Names,
    at: &[i64],
    (var, begin, iterations): (ValueId, i64, usize),
) -> Result<(), Ended> {
    let place = |memory: &Memory, array: ArrayId| {
        let index = at.iter().zip(&memory.shapes[array.index()]);
        index.fold(0, |place, (i, extent)| place * extent + i) as usize
    };
    let held = |array: &ArrayId| Name::from(Variable::Held(*array));
    let mut names = known.clone();
    let variables = tree.domain.ranges.iter().zip(at);
    names.extend(variables.map(|(range, at)| (Name::value(range.var), vec![*at as Bits])));
    for (var, is) in &tree.same {
        names.insert(Name::value(*var), names[&Name::value(*is)].clone());
    }
    for (array, what) in &tree.held {
        let bits = if what.old { 0 } else { memory.arrays[array.index()][place(memory, *array)] };
        names.insert(held(array), vec![bits]);
    }
    for t in 0..iterations {
        names.insert(Name::value(var), vec![(begin + t as i64) as Bits]);
        // The place of a tape that the iteration uses as its `n`th.
        let number = |tapes: &Tapes, array: &ArrayId, tape: &Tape, n: usize| {
            let (count, all) = (tape.places() as usize, tapes.places[array].len());
            match tape {
                Tape::Pushes(_) => all - count * (iterations - t) + n,
                Tape::Pops(_) => all - 1 - count * t - n,
            }
        };
        let none = |_: ValueId| -> i64 { unreachable!("nothing wraps here") };
        let mut one = Iteration::new(memory, &none, []);
        one.names = names;
        for (array, tape) in &tree.tapes {
            let at = place(one.memory, *array);
            for n in 0..tape.places() {
                let bits = tapes.places[array][number(tapes, array, tape, n as usize)][at];
                one.tapes.insert((*array, n), bits);
            }
        }
        one.run(&tree.body)?;
        for (array, tape) in &tree.tapes {
            let at = place(one.memory, *array);
            for n in 0..tape.places() {
                let number = number(tapes, array, tape, n as usize);
                let bits = one.tapes[&(*array, n)];
                if let (Tape::Pushes(_), Some(places)) = (tape, tapes.places.get_mut(array)) {
                    places[number][at] = bits;
                }
            }
        }
        names = one.names;
    }
    for (array, _) in tree.held.iter().filter(|(_, held)| held.written) {
        let at = place(memory, *array);
        memory.arrays[array.index()][at] = names[&held(array)][0];
    }
    Ok(())
}
