//! What steps make of small bodies, as case files, and that it means the same.
//!
//! A case is a file of `tests/cases`: what it shows, the steps, a program with a parallel loop, and the body of its iterations
//! after these steps. `UPDATE_EXPECT=1` writes the body. The body before and the body after run on the reference interpreter,
//! in all iterations for which the steps are right, and must leave the same bits; so must the body before and the
//! interpreter of programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

pub(crate) mod expected;
mod grids;
mod interchanges;
mod nests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ebbtide_ir::evaluate::{Bits, combine};
use ebbtide_ir::{
    ArrayId, Bytes, Combine, Facts, HostArray, Literal, Machine, Par, ParFacts, Program, Role,
    Stmt as Source, Store, Tape, Type, ValueId, parse, verify,
};

use expected::Expected;

use crate::analysis::address_reuse::{always_touched, own_elements};
use crate::analysis::barriers::touches;
use crate::analysis::boundary_conditions::{
    FarFromBoundaries, conditions_far_from_boundaries, statements_of,
};
use crate::analysis::bounds_proof::{Proof, Prover};
use crate::analysis::gathers::Gathers;
use crate::analysis::interior::{Decide, Interior, interior};
use crate::analysis::names::values_inside;
use crate::analysis::narrow_index::{Narrow, narrow_values};
use crate::analysis::work::all_values;
use crate::kernel::evaluate::{World, remainders};
use crate::kernel::interpret::{Ended, Iteration, LANES_OF_TESTS, Memory};
use crate::kernel::interval::Before;
use crate::kernel::name::{Fresh, Name, Ty, Variable};
use crate::kernel::show::show;
use crate::kernel::stmt::{Body, Part};
use crate::kernel::verify::verify as lawful;
use crate::transform::address_reuse::{addresses, reuse_addresses};
use crate::transform::ahead::ahead;
use crate::transform::checks::{faults_aside, faults_at_end, without_checks};
use crate::transform::hold_elements::hold_elements;
use crate::transform::interior::{hoist_invariants, in_interior};
use crate::transform::join_updates::join_updates;
use crate::transform::lanes_of_sums::lanes_of_sums;
use crate::transform::lower::{Lowering, Shared, Team};
use crate::transform::narrow_index::narrow_index;
use crate::transform::predicate::predicate;
use crate::transform::remainders::choose_remainders;
use crate::transform::row_tiles::row_tiles;
use crate::transform::sides::{PerSide, jam, of_side};
use crate::transform::sink_stores::sink_stores;
use crate::transform::specialise::specialise;
use crate::transform::vectorise::{Idle, Iterations, Vectors, vectorise};
use crate::transform::windows::windows;

/// The extents of all arrays.
const EXTENTS: [i64; 4] = [19; 4];
/// How many places each tape has.
const PLACES: usize = 12;
/// How many iterations or vectors stand side by side.
const SIDES: usize = 2;

/// A parallel loop and what analyses say of it.
struct Loop<'p> {
    program: &'p Program,
    facts: &'p Facts,
    par: &'p Par,
    inside: BTreeSet<ValueId>,
    interior: Interior,
    decided: FarFromBoundaries,
}

/// The body after some steps, and for which iterations it is.
struct Form {
    body: Body,
    /// Bodies of iterations side by side that are not one body yet.
    sides: Vec<Body>,
    own: PerSide,
    /// Iterations of the interior alone?
    interior: bool,
    /// Those alone in which conditions are as they usually are?
    decided: bool,
    lanes: usize,
    /// The arrays whose elements an iteration holds in variables.
    held: BTreeSet<ArrayId>,
}

impl<'p> Loop<'p> {
    /// The names that the statements around the loop leave.
    fn names_around(&self, memory: &mut Memory) -> BTreeMap<Name, Vec<Bits>> {
        let none = |_: ValueId| -> i64 { unreachable!("nothing wraps outside loops") };
        let mut outside = Iteration::new(memory, &none, []);
        outside.run(&self.lowered(&self.program.body, &BTreeSet::new())).unwrap();
        outside.names
    }

    /// A value from around the loop.
    fn number(&self, names: &BTreeMap<Name, Vec<Bits>>, v: ValueId) -> i64 {
        match self.program.literal(v) {
            Some(literal) => literal.to_i64().unwrap(),
            None => names[&Name::value(v)][0] as i64,
        }
    }

    /// Combines what the reductions came to with the elements that have them.
    fn add_totals(
        &self,
        names: &BTreeMap<Name, Vec<Bits>>,
        sums: &[(Combine, &Store)],
        totals: &[Option<Bits>],
        memory: &mut Memory,
    ) {
        for ((how, s), total) in sums.iter().zip(totals) {
            let ty = self.program.array(s.array).ty;
            let at = s.index.as_slice().first().map_or(0, |v| self.number(names, *v)) as usize;
            let element = &mut memory.arrays[s.array.index()][at];
            *element = total.map_or(*element, |total| combine(*how, ty, *element, total));
        }
    }

    fn of(program: &'p Program, facts: &'p Facts) -> Loop<'p> {
        let found =
            program.body.iter().find_map(|stmt| if let Source::Par(par) = stmt { Some(par) } else { None });
        let par = found.expect("a case has a parallel loop");
        let inside = values_inside(par);
        let decided = conditions_far_from_boundaries(program, &inside, par);
        let interior = interior(program, par, &inside, Decide::Columns);
        Loop { program, facts, par, inside, interior, decided }
    }

    fn lowered(&self, block: &ebbtide_ir::Block, exact: &BTreeSet<ValueId>) -> Body {
        let shared = Shared::default();
        let lowering = Lowering {
            program: self.program,
            exact,
            sharing: &ParFacts::default(),
            shared: &shared,
            team: Team::Alone,
            assertions: &BTreeMap::new(),
        };
        lowering.body(block, &mut Fresh::default())
    }

    fn proof(&self) -> Proof {
        let prover = Prover { program: self.program, facts: self.facts, inside: &self.inside };
        prover.proof(self.par).expect("without a proof there are checks")
    }

    fn careful(&self) -> Body {
        self.lowered(&self.par.body, &BTreeSet::new())
    }

    fn innermost(&self) -> Name {
        Name::value(self.par.ranges.last().unwrap().var)
    }

    /// The body after these steps.
    fn form(&self, steps: &[&str]) -> Form {
        let (body, own) = (self.careful(), PerSide::default());
        let held = BTreeSet::new();
        let mut form = Form { body, sides: Vec::new(), own, interior: false, decided: false, lanes: 1, held };
        let (mut near, mut fresh) = (None, Fresh::default());
        let jams = steps.contains(&"jam");
        for step in steps {
            let body = std::mem::take(&mut form.body);
            form.body = match *step {
                "lower" => body,
                "faults at end" => faults_at_end(&body, &mut fresh).unwrap_or(body),
                "faults aside" => faults_aside(body),
                "hold elements" => {
                    let touched = touches(self.program, &self.facts.affines, self.par);
                    let own = touched.into_iter().filter(|(_, (_, own))| *own);
                    form.held = own.map(|(array, _)| array).collect();
                    let variables: Vec<ValueId> = self.par.ranges.iter().map(|r| r.var).collect();
                    hold_elements(body, self.facts, &form.held, &variables)
                }
                "without checks" => without_checks(self.lowered(&self.par.body, &self.proof().exact)),
                "specialise" => {
                    form.decided = true;
                    specialise(body, &self.decided)
                }
                "narrow index" => {
                    let narrow = narrow_values(self.program, self.par, &self.proof().remainders);
                    narrow_index(body, self.program, &narrow, &self.inside)
                }
                "remainders" => {
                    let remainders = self.proof().remainders;
                    let narrow = match steps.contains(&"narrow index") {
                        true => narrow_values(self.program, self.par, &remainders),
                        false => Narrow::new(),
                    };
                    choose_remainders(body, self.program, &remainders, &narrow)
                }
                "sides" => {
                    form.own = all_values(self.par).into();
                    form.sides = (0..SIDES).map(|side| of_side(body.clone(), &form.own, side)).collect();
                    Body::new()
                }
                "predicate" if form.sides.is_empty() => predicate(body, &mut fresh),
                "predicate" => {
                    let sides = std::mem::take(&mut form.sides);
                    form.sides = sides.into_iter().map(|body| predicate(body, &mut fresh)).collect();
                    body
                }
                "address reuse" => {
                    let decided = if form.decided { self.decided.clone() } else { FarFromBoundaries::new() };
                    let mut touched = always_touched(self.program, &decided, &self.par.body);
                    touched.extend(own_elements(self.program, &self.facts.affines, self.par));
                    let of = (self.program, self.facts);
                    let sides = form.sides.len().max(1);
                    let (first, known) = addresses(of, self.par, &touched, (&form.own, sides), &mut fresh);
                    let bodies =
                        if form.sides.is_empty() { vec![body] } else { std::mem::take(&mut form.sides) };
                    let each = bodies.into_iter().enumerate();
                    form.sides =
                        each.map(|(side, body)| reuse_addresses(body, self.facts, &known, side)).collect();
                    near = Some(first);
                    Body::new()
                }
                "sink stores" => {
                    let bodies =
                        if form.sides.is_empty() { vec![body] } else { std::mem::take(&mut form.sides) };
                    let mut out = near.take().unwrap_or_default();
                    out.extend(sink_stores(bodies, &mut fresh));
                    out
                }
                "interior" => {
                    form.interior = true;
                    let body = self.lowered(&self.par.body, &self.interior.exact);
                    in_interior(body, self.program, &self.interior, self.innermost())
                }
                "hoist invariants" => {
                    hoist_invariants(body, self.program, &self.interior.unproved, &self.par.body)
                }
                "join updates" => join_updates(body, &self.facts.affines),
                "lanes of sums" => lanes_of_sums(body, 8 * LANES_OF_TESTS, &mut fresh),
                "vectorise" => {
                    form.lanes = LANES_OF_TESTS;
                    let along = Iterations {
                        program: self.program,
                        interior: &self.interior,
                        innermost: self.innermost(),
                    };
                    let vectors = Vectors {
                        along: &along,
                        element: Type::F64,
                        lanes: LANES_OF_TESTS,
                        part: Part::Whole,
                        vector: 0,
                        at_once: if jams { SIDES } else { 1 } * LANES_OF_TESTS,
                        idle: Idle::Present,
                        gathers: &Gathers::default(),
                    };
                    vectorise(&body, vectors, &mut fresh).expect("the loop has a vector form")
                }
                "jam" => {
                    let varying = &self.interior.varying;
                    form.own = PerSide::from((varying.values.clone(), varying.locals.clone()));
                    jam(body, &form.own, SIDES)
                }
                "windows" => {
                    let ty = Ty::Vector(Type::F64, LANES_OF_TESTS);
                    windows(body, &self.facts.affines, ty, &mut fresh)
                }
                "ahead" => ahead(body, Ty::Vector(Type::F64, LANES_OF_TESTS), &mut fresh),
                "row tiles" => {
                    let ty = Ty::Vector(Type::F64, LANES_OF_TESTS);
                    row_tiles(body, &self.facts.affines, ty, &mut fresh)
                }
                other => panic!("there is no step {other}"),
            };
        }
        form.body.splice(0..0, near.unwrap_or_default());
        form.body.extend(form.sides.drain(..).flatten());
        lawful(self.program, &form.body)
            .unwrap_or_else(|why| panic!("{why}\n{}", show(self.program, &form.body)));
        form
    }

    /// Runs all iterations, in the form where it is for them and as they are lowered elsewhere; says how many ran in the form.
    fn run(&self, form: Option<&Form>, memory: &mut Memory) -> (usize, Result<(), Ended>) {
        let none = |_: ValueId| -> i64 { unreachable!("nothing wraps outside the interior") };
        let mut outside = Iteration::new(memory, &none, []);
        outside.run(&self.lowered(&self.program.body, &BTreeSet::new())).unwrap();
        let known = outside.names;
        let bound = |v: ValueId| match self.program.literal(v) {
            Some(literal) => literal.to_i64().unwrap(),
            None => known[&Name::value(v)][0] as i64,
        };
        let ranges: Vec<(i64, i64)> = self.par.ranges.iter().map(|r| (bound(r.from), bound(r.to))).collect();
        let (careful, mut taken) = (self.careful(), 0);
        let group = form.map_or(1, |form| if form.own.values.is_empty() { 1 } else { SIDES } * form.lanes);
        for group in groups(&ranges, group, form.is_some_and(|form| form.lanes == 1)) {
            let fits = |at: &Vec<i64>| form.is_some_and(|form| self.fits(form, at, &known, memory, &ranges));
            if let Some(form) = form
                && group.1
                && group.0.iter().all(fits)
            {
                taken += 1;
                if let Err(ended) = self.run_form(form, &group.0, &known, memory, &ranges) {
                    return (taken, Err(ended));
                }
                continue;
            }
            for at in &group.0 {
                let mut one = Iteration::new(memory, &none, []);
                one.names.extend(known.clone());
                one.names.extend(self.variables(at));
                if let Err(ended) = one.run(&careful) {
                    return (taken, Err(ended));
                }
            }
        }
        (taken, Ok(()))
    }

    fn variables(&self, at: &[i64]) -> Vec<(Name, Vec<Bits>)> {
        let each = self.par.ranges.iter().zip(at);
        each.map(|(range, at)| (Name::value(range.var), vec![*at as Bits])).collect()
    }

    /// Is the form for the iteration at this index? In the interior, iterations far from the ends of rows are.
    fn fits(
        &self,
        form: &Form,
        at: &[i64],
        known: &BTreeMap<Name, Vec<Bits>>,
        memory: &mut Memory,
        ranges: &[(i64, i64)],
    ) -> bool {
        let (last, (from, to)) = (at.last().unwrap(), ranges.last().unwrap());
        if form.interior && !(from + 2..to - 2).contains(last) {
            return false;
        }
        let none = |_: ValueId| -> i64 { unreachable!("conditions do not wrap") };
        let mut one = Iteration::new(memory, &none, []);
        one.names.extend(known.clone());
        one.names.extend(self.variables(at));
        let lets = statements_of(self.program, &self.inside, self.par, &self.decided);
        one.run(&self.lowered(&lets, &BTreeSet::new())).unwrap();
        !form.decided || self.decided.iter().all(|(v, holds)| (one.names[&Name::value(*v)][0] != 0) == *holds)
    }

    fn run_form(
        &self,
        form: &Form,
        group: &[Vec<i64>],
        known: &BTreeMap<Name, Vec<Bits>>,
        memory: &mut Memory,
        ranges: &[(i64, i64)],
    ) -> Result<(), Ended> {
        let row: BTreeMap<Name, Vec<Bits>> =
            known.clone().into_iter().chain(self.variables(&group[0])).collect();
        let wrapped = self.wrapped(&row, memory, ranges);
        let wrapped = |v: ValueId| wrapped[&v];
        let mut all = Iteration::new(memory, &wrapped, []);
        all.names = row;
        for before in self.interior.interval().before.iter().filter(|_| form.interior) {
            if let Before::Value(v) = before {
                all.run(&self.lowered(&vec![Source::Let(*v)], &BTreeSet::new()))?;
            }
        }
        for (side, first) in group.iter().step_by(form.lanes).enumerate() {
            for (name, value) in self.variables(first) {
                all.names.insert(form.own.name(name, side), value);
            }
        }
        let extents = &all.memory.shapes;
        let place = |array: &ArrayId| {
            let index = group[0].iter().zip(&extents[array.index()]);
            index.fold(0, |at, (i, extent)| at * extent + i) as usize
        };
        let held: Vec<(ArrayId, usize)> = form.held.iter().map(|array| (*array, place(array))).collect();
        let name = |array: ArrayId| Name::from(Variable::Held(array));
        for (array, at) in &held {
            all.names.insert(name(*array), vec![all.memory.arrays[array.index()][*at]]);
        }
        all.run(&form.body)?;
        for (array, at) in &held {
            all.memory.arrays[array.index()][*at] = all.names[&name(*array)][0];
        }
        Ok(())
    }

    /// The bases of remainders in the interior of a row.
    fn wrapped(
        &self,
        row: &BTreeMap<Name, Vec<Bits>>,
        memory: &Memory,
        ranges: &[(i64, i64)],
    ) -> BTreeMap<ValueId, i64> {
        let value = |v: ValueId| row[&Name::value(v)][0] as i64;
        let extent = |array: ArrayId, k: usize| memory.shapes[array.index()][k];
        let world = World { value: &value, extent: &extent, wrapped: &|_| 0, ranges };
        remainders(&self.interior.interval(), &world, *ranges.last().unwrap()).unwrap()
    }
}

/// The iterations of a domain in groups, and whether each has as many as it should: next to each other in a row, or in
/// neighbouring rows.
fn groups(ranges: &[(i64, i64)], size: usize, rows: bool) -> Vec<(Vec<Vec<i64>>, bool)> {
    let mut all = vec![Vec::new()];
    for (from, to) in ranges {
        let longer = |at: &Vec<i64>| (*from..*to).map(|k| [&at[..], &[k]].concat()).collect::<Vec<_>>();
        all = all.iter().flat_map(longer).collect();
    }
    if rows && size > 1 {
        all.sort_by_key(|at| (at[1], at[0]));
    }
    let same = |group: &[Vec<i64>]| {
        let fixed = if rows && size > 1 { 1 } else { 0 };
        group.len() == size
            && (ranges.len() == 1 || size == 1 || group.iter().all(|at| at[fixed] == group[0][fixed]))
    };
    all.chunks(size).map(|group| (group.to_vec(), same(group))).collect()
}

/// Numbers to compute with, neither sorted nor all different, in arrays with these extents along their dimensions.
pub(crate) fn memory(program: &Program, extents: &[i64]) -> Memory {
    let element = |ty: Type, at: usize| match ty {
        Type::F32 | Type::F64 => Literal::of(ty, (at * 7 % 13) as f64 * 0.375 - 1.5).bits(),
        Type::Bool => (at % 3 == 1).into(),
        _ => Literal::of(ty, (at * 5 % 7) as f64).bits(),
    };
    let shapes: Vec<Vec<i64>> = program.arrays.iter().map(|array| extents[..array.rank].to_vec()).collect();
    let fill = |(array, shape): (&ebbtide_ir::ArrayDecl, &Vec<i64>)| {
        (0..shape.iter().product::<i64>() as usize).map(|at| element(array.ty, at)).collect()
    };
    let arrays = program.arrays.iter().zip(&shapes).map(fill).collect();
    let scalars = program.scalars.iter().enumerate().map(|(k, scalar)| element(scalar.ty, k + 2)).collect();
    Memory { shapes, arrays, scalars, reductions: Vec::new(), noted: Vec::new() }
}

/// What follows this name in the head of a case, the program of the case, and what is before the expected part.
pub(crate) fn read<'t>(text: &'t str, name: &str) -> (&'t str, Program, &'t str) {
    let (before, _) = text.split_once("=>\n").expect("a case has an expected part");
    let head =
        before.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(name)?.strip_prefix(": "));
    let program = before.lines().filter(|line| !line.starts_with("//")).collect::<Vec<_>>().join("\n");
    let program = parse(&program).unwrap_or_else(|why| panic!("{why}"));
    (head.unwrap_or_else(|| panic!("a case names its {name}")), program, before)
}

/// The files of a folder with cases, and their texts.
pub(crate) fn cases(folder: &str) -> Vec<(std::path::PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), std::fs::read_to_string(file).unwrap())).collect()
}

#[test]
fn steps_make_the_bodies_of_the_cases_and_leave_the_same_bits() {
    let mut files = Expected::default();
    for (file, text) in cases("cases") {
        let (steps, program, before) = read(&text, "steps");
        let facts = verify(&program).unwrap();
        let par = Loop::of(&program, &facts);
        let form = par.form(&steps.split(", ").collect::<Vec<_>>());
        let now = format!("{before}=>\n{}", show(&program, &form.body));
        files.hold(&file, &text, &now);
        let [mut plain, mut other] = [memory(&program, &EXTENTS), memory(&program, &EXTENTS)];
        let expected = par.run(None, &mut plain);
        let found = par.run(Some(&form), &mut other);
        assert_eq!(found.1, expected.1, "{}", file.display());
        assert_eq!(other, plain, "{}", file.display());
        assert!(found.0 > 0, "{}: no iteration ran in the form", file.display());
    }
    files.finish();
}

#[test]
fn lowered_bodies_mean_what_programs_mean() {
    for (file, text) in cases("cases") {
        let (_, program, _) = read(&text, "steps");
        let facts = verify(&program).unwrap();
        let par = Loop::of(&program, &facts);
        let mut lowered = memory(&program, &EXTENTS);
        let start = lowered.clone();
        let (_, ended) = par.run(None, &mut lowered);
        compare(&program, &facts, start, &lowered, ended.is_ok(), &file.display());
    }
}

/// What the interpreter of programs leaves in arrays, and whether it ends well.
fn reference(program: &Program, facts: &Facts, start: &Memory) -> (Vec<Vec<u8>>, bool) {
    let arrays = program.arrays.iter().zip(&start.arrays).zip(&start.shapes);
    let arrays = arrays.map(|((array, elements), shape)| {
        let bytes: Vec<u8> = elements.iter().flat_map(|e| bytes(array.ty, *e)).collect();
        HostArray { shape: shape.clone(), bytes: Bytes::Own(bytes) }
    });
    let scalars: Vec<Literal> =
        program.scalars.iter().zip(&start.scalars).map(|(s, bits)| Literal::from_bits(s.ty, *bits)).collect();
    let arrays: Vec<HostArray> = arrays.collect();
    let place = |array: &HostArray| HostArray {
        shape: array.shape.clone(),
        bytes: Bytes::Own(vec![0; array.bytes.read().len()]),
    };
    let places = arrays.iter().map(|array| (0..PLACES).map(|_| place(array)).collect());
    let tapes = places.map(|places| Tape { places, depth: 0 }).collect();
    let mut machine = Machine::new(program, facts, &scalars, arrays);
    machine.tapes = tapes;
    let ended_well = machine.run().is_ok();
    (machine.arrays.iter().map(|array| array.bytes.read().to_vec()).collect(), ended_well)
}

fn bytes(ty: Type, element: Bits) -> Vec<u8> {
    element.to_le_bytes()[..ty.size()].to_vec()
}

/// Holds what is left in memory against what the interpreter of programs leaves.
pub(crate) fn compare(
    program: &Program,
    facts: &Facts,
    start: Memory,
    found: &Memory,
    ended_well: bool,
    case: &dyn std::fmt::Display,
) {
    let (left, well) = reference(program, facts, &start);
    assert_eq!(well, ended_well, "{case}");
    let arrays = program.arrays.iter().zip(&left).zip(&found.arrays);
    // What an array held before is a name for something else by now.
    for ((array, left), elements) in arrays.filter(|((array, _), _)| !matches!(array.role, Role::Old(_))) {
        let found: Vec<u8> = elements.iter().flat_map(|e| bytes(array.ty, *e)).collect();
        assert_eq!(&found, left, "{case}: {}", array.name);
    }
}
