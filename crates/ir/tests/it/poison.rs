//! Dead contents are overwritten where the mode asks for it, and nothing else is.

use ebbtide_ir::*;

const POISONED: Modes = Modes {
    checks: Checks::Usual,
    order: IterationOrder::Ascending,
    races: Races::Ignored,
    dead: Dead::Poisoned,
};

fn numbers(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()
}

fn array<'a>(elements: &[f64]) -> HostArray<'a> {
    let bytes = elements.iter().flat_map(|x| x.to_ne_bytes()).collect();
    HostArray { shape: vec![elements.len() as i64], bytes: Bytes::Own(bytes) }
}

/// A program with arrays `x` and `y`, an alias of old contents of `x`, and two parallel loops over them: `y[i] = old[i]`
/// and `x[i] = 2.0`.
struct Taped {
    program: Program,
    x: ArrayId,
    old: ArrayId,
    read_old: Stmt,
    write_x: Stmt,
}

impl Taped {
    fn new() -> Taped {
        let mut b = Builder::new("p");
        let x = b.array("x", Type::F64, 1, Access::Write);
        let y = b.array("y", Type::F64, 1, Access::Write);
        let (zero, n) = (b.literal(Literal::index(0)), b.dim(x, 0));
        let i = b.begin_par(&[("i", zero, n)])[0];
        let v = b.load(x, &[i]);
        b.store(y, &[i], v);
        b.end_par();
        let i = b.begin_par(&[("i", zero, n)])[0];
        let two = b.literal(Literal::from(2.0));
        b.store(x, &[i], two);
        b.end_par();
        let mut program = b.finish().unwrap();
        let decl = ArrayDecl { name: "x_old".into(), role: Role::Old(x), ..program.array(x).clone() };
        program.arrays.push(decl);
        let old = ArrayId::from_index(2);
        if let Op::Load(array, _) = &mut program.values[v.index()].op {
            *array = old;
        }
        let (write_x, read_old) = (program.body.pop().unwrap(), program.body.pop().unwrap());
        Taped { program, x, old, read_old, write_x }
    }

    /// What `x`, `y` and the alias hold after these statements, and the place on the tape of `x`.
    fn run(mut self, statements: Vec<Stmt>, modes: Modes) -> [Vec<f64>; 4] {
        // Balanced, so that it is a lawful program; what is added does not run.
        let count = statements.len();
        let mut pops = 0;
        walk(&statements, &mut |stmt| {
            pops += i32::from(matches!(stmt, Stmt::Push(_))) - i32::from(matches!(stmt, Stmt::Pop(_)));
        });
        let first = self.program.body.len();
        self.program.body.extend(statements);
        self.program.body.extend((0..pops).map(|_| Stmt::Pop(self.x)));
        let facts = verify(&self.program).unwrap();
        let part: Block = self.program.body[..first + count].to_vec();
        let arrays = vec![array(&[1.0, 1.5]), array(&[3.0, 3.5]), array(&[])];
        let mut machine = Machine::new(&self.program, &facts, &[], arrays);
        machine.modes = modes;
        machine.tapes[self.x.index()].places = vec![array(&[7.0, 7.5])];
        machine.run_block(&part).unwrap();
        let held = |k: usize| numbers(machine.arrays[k].bytes.read());
        [held(0), held(1), held(self.old.index()), numbers(machine.tapes[0].places[0].bytes.read())]
    }

    fn exchange(&self) -> Stmt {
        Stmt::Push(Push { array: self.x, after: After::Anything(self.old) })
    }
}

fn is_poison(elements: &[f64]) -> bool {
    elements.iter().all(|x| x.is_nan())
}

#[test]
fn an_array_whose_memory_went_on_its_tape_is_dead() {
    let taped = Taped::new();
    let statements = vec![taped.exchange()];
    let [x, _, old, place] = taped.run(statements, POISONED);
    assert!(is_poison(&x), "{x:?}");
    assert_eq!((old, place), (vec![1.0, 1.5], vec![1.0, 1.5]));
    let taped = Taped::new();
    let statements = vec![taped.exchange()];
    let [x, ..] = taped.run(statements, Modes::default());
    assert_eq!(x, [7.0, 7.5], "without the mode it holds what the place held");
}

#[test]
fn an_alias_is_dead_after_the_statement_that_it_was_made_for() {
    let taped = Taped::new();
    let statements = vec![taped.exchange(), taped.read_old.clone()];
    let [_, y, old, place] = taped.run(statements, POISONED);
    assert_eq!((y, place), (vec![1.0, 1.5], vec![1.0, 1.5]), "it was there when it was read");
    assert!(is_poison(&old), "{old:?}");
    let taped = Taped::new();
    let statements = vec![taped.exchange(), taped.write_x.clone(), taped.read_old.clone()];
    let [x, y, ..] = taped.run(statements, POISONED);
    assert_eq!(x, [2.0, 2.0]);
    assert!(is_poison(&y), "read too late: {y:?}");
}

#[test]
fn a_popped_place_is_dead() {
    let taped = Taped::new();
    let statements = vec![taped.exchange(), taped.write_x.clone(), Stmt::Pop(taped.x)];
    let [x, _, _, place] = taped.run(statements, POISONED);
    assert_eq!(x, [1.0, 1.5]);
    assert!(is_poison(&place), "{place:?}");
}

/// `if true { let t = temp(n); t[0] = 1 }; out = t[0]`, with the read before, inside or after.
fn reads_temporary(place: Place) -> f64 {
    let mut b = Builder::new("p");
    let out = b.array("out", Type::F64, 1, Access::Write);
    let (zero, n) = (b.literal(Literal::index(0)), b.dim(out, 0));
    let (one, yes) = (b.literal(Literal::from(1.0)), b.literal(Literal::from(true)));
    let read = |b: &mut Builder, t: ArrayId| {
        let v = b.load(t, &[zero]);
        b.store(out, &[zero], v);
    };
    b.begin_if(yes);
    let t = b.temp("t", Type::F64, &[n]);
    if place == Place::Fresh {
        read(&mut b, t);
    }
    b.store(t, &[zero], one);
    if place == Place::Inside {
        read(&mut b, t);
    }
    b.end_if();
    if place == Place::After {
        read(&mut b, t);
    }
    let program = b.finish().unwrap();
    let facts = verify(&program).unwrap();
    let mut machine = Machine::new(&program, &facts, &[], vec![array(&[0.5]), array(&[0.5])]);
    machine.modes = POISONED;
    machine.run().unwrap();
    numbers(machine.arrays[0].bytes.read())[0]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Fresh,
    Inside,
    After,
}

#[test]
fn a_temporary_is_zero_where_it_is_declared_and_dead_after_its_block() {
    assert_eq!(reads_temporary(Place::Fresh), 0.0);
    assert_eq!(reads_temporary(Place::Inside), 1.0);
    assert!(reads_temporary(Place::After).is_nan());
}
