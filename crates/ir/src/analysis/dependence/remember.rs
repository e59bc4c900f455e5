//! Remembers which systems were refuted.
//!
//! A loop is looked at many times on its way from the source to a device: in the program, in each form of its gradient, in
//! each segment. The question is the same each time but for the numbers of its atoms, so answers are kept by the system
//! with its atoms numbered anew, in their order.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use super::poly::{Atom, Poly};
use super::system::{Residual, System};

/// A system whose atoms are `0, 1, …`, and which of them vary.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Question {
    pub system: System,
    pub varies: Vec<bool>,
    /// How much work may be done.
    pub budget: usize,
}

/// The ways in which a system can hold, and the work that is left.
#[derive(Clone)]
pub struct Answer {
    pub ways: Option<Vec<Residual>>,
    pub budget: usize,
}

/// At most this many answers are kept. Programs have some hundreds.
const MOST: usize = 1 << 14;

thread_local! {
    static ANSWERS: RefCell<HashMap<Question, Answer>> = RefCell::new(HashMap::new());
}

/// The answer to a question about a system: from memory, or by `solve`, which is a function of the question alone.
pub fn answer(
    system: &System,
    varies: &dyn Fn(Atom) -> bool,
    budget: usize,
    solve: impl FnOnce(&Question) -> Answer,
) -> Answer {
    let mut atoms: BTreeSet<Atom> = BTreeSet::new();
    system.visit(&mut |p| atoms.extend(p.atoms()));
    let atoms: Vec<Atom> = atoms.into_iter().collect();
    // The numbers are in the order that the atoms were in, so that all choices by order stay what they are.
    let number = |atom: Atom| Atom(atoms.binary_search(&atom).unwrap_or(0) as u32);
    let question = Question {
        system: system.map(&mut |p| renumber(p, &number)),
        varies: atoms.iter().map(|atom| varies(*atom)).collect(),
        budget,
    };
    let known = ANSWERS.with_borrow(|answers| answers.get(&question).cloned());
    let answer = known.unwrap_or_else(|| {
        let answer = solve(&question);
        ANSWERS.with_borrow_mut(|answers| {
            if answers.len() >= MOST {
                answers.clear();
            }
            answers.insert(question, answer.clone());
        });
        answer
    });
    let back = |atom: Atom| atoms[atom.0 as usize];
    let residual = |way: &Residual| way.iter().map(|f| f.map(&mut |p| renumber(p, &back))).collect();
    Answer { ways: answer.ways.map(|ways| ways.iter().map(residual).collect()), ..answer }
}

fn renumber(poly: &Poly, number: &dyn Fn(Atom) -> Atom) -> Poly {
    let terms = poly.terms.iter().map(|(monomial, c)| (monomial.iter().map(|a| number(*a)).collect(), *c));
    Poly { terms: terms.collect() }
}
