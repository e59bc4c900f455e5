//! Law 14: what is put on a tape is taken back, once, in the mirrored order.

use ebbtide_ir::*;
use expect_test::{Expect, expect};

/// What bodies are made of.
struct Parts {
    x: ArrayId,
    y: ArrayId,
    flag: ValueId,
    zero: ValueId,
    piece: [ValueId; 2],
}

impl Parts {
    fn push(&self, array: ArrayId) -> Stmt {
        Stmt::Push(Push { array, after: After::Same })
    }

    fn branch(&self, then: Block, otherwise: Block) -> Stmt {
        Stmt::If(Branch { condition: self.flag, then, otherwise })
    }

    fn repeat(&self, id: usize, body: Block) -> Stmt {
        let kind = LoopKind::While { head: Block::new(), condition: self.flag };
        Stmt::Loop(Loop {
            id: LoopId::from_index(id),
            kind,
            body,
            sums: Vec::new(),
            until: None,
            schedule: None,
        })
    }

    fn forward(&self, id: usize, advance: Block, record: Block) -> Stmt {
        Stmt::Forward(Forward {
            id: LoopId::from_index(id),
            length: Length::Known(self.zero, self.zero),
            from: self.piece[0],
            to: self.piece[1],
            carried: vec![self.x],
            kept: Vec::new(),
            advance,
            record,
            schedule: None,
        })
    }

    fn backward(&self, id: usize, reverse: Block) -> Stmt {
        Stmt::Backward(Backward { id: LoopId::from_index(id), reverse })
    }
}

/// Is a program with this body lawful? If not, why?
fn law(body: impl FnOnce(&Parts) -> Block) -> Result<(), Error> {
    let mut b = Builder::new("p");
    let x = b.array("x", Type::F64, 1, Access::Write);
    let y = b.array("y", Type::F64, 1, Access::Write);
    let flag = b.literal(Literal::from(true));
    let zero = b.literal(Literal::index(0));
    let mut program = b.finish().unwrap();
    let piece = ["from", "to"].map(|_| program.add_value(Op::LoopVar, Type::Index, None));
    program.loops = 4;
    let parts = Parts { x, y, flag, zero, piece };
    program.body.extend(body(&parts));
    verify(&program).map(drop)
}

fn check_flaw(body: impl FnOnce(&Parts) -> Block, expected: Expect) {
    expected.assert_eq(&law(body).expect_err("the program must be refused").to_string());
}

#[test]
fn mirrored_programs_are_lawful() {
    law(|p| vec![p.push(p.x), p.push(p.y), p.push(p.x), Stmt::Pop(p.x), Stmt::Pop(p.x), Stmt::Pop(p.y)])
        .unwrap();
    law(|p| {
        vec![
            p.push(p.x),
            p.branch(vec![p.push(p.x), p.push(p.x)], vec![p.push(p.y)]),
            p.repeat(0, vec![p.push(p.x), p.branch(vec![p.push(p.x)], vec![])]),
            p.repeat(1, vec![p.branch(vec![Stmt::Pop(p.x)], vec![]), Stmt::Pop(p.x)]),
            p.branch(vec![Stmt::Pop(p.x), Stmt::Pop(p.x)], vec![Stmt::Pop(p.y)]),
            Stmt::Pop(p.x),
        ]
    })
    .unwrap();
    // A loop inside a loop that is swept when an iteration of the outer one is reversed.
    law(|p| {
        let inner = [p.forward(1, vec![], vec![p.push(p.y)]), p.backward(1, vec![Stmt::Pop(p.y)])];
        let mut reverse = vec![Stmt::Pop(p.x)];
        reverse.extend(inner);
        vec![
            p.forward(0, vec![], vec![p.repeat(2, vec![p.push(p.x)])]),
            p.backward(0, vec![p.repeat(3, reverse)]),
        ]
    })
    .unwrap();
    // What both arms do alike is done whatever the condition.
    law(|p| vec![p.push(p.x), p.branch(vec![Stmt::Pop(p.x)], vec![Stmt::Pop(p.x)])]).unwrap();
}

#[test]
fn a_push_without_a_pop_is_refused() {
    check_flaw(
        |p| vec![p.push(p.x)],
        expect![[r#"
        build error: program `p` is not valid:
          the tape of `x` is pushed, and not popped (law 14)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn a_pop_without_a_push_is_refused() {
    check_flaw(
        |p| vec![p.push(p.x), Stmt::Pop(p.x), Stmt::Pop(p.x)],
        expect![[r#"
        build error: program `p` is not valid:
          the tape of `x` is popped where nothing is left on it (law 14)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn each_arm_of_a_branch_pops_what_it_pushed() {
    check_flaw(
        |p| vec![p.branch(vec![p.push(p.x)], vec![]), p.branch(vec![], vec![Stmt::Pop(p.x)])],
        expect![[r#"
            build error: program `p` is not valid:
              the tape of `x` is popped by a branch, which does not mirror a branch, the last to push (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |p| vec![p.push(p.x), p.branch(vec![Stmt::Pop(p.x)], vec![])],
        expect![[r#"
            build error: program `p` is not valid:
              the tape of `x` is popped by a branch, which does not mirror a single statement, the last to push (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn an_iteration_pops_what_its_mirror_pushed() {
    check_flaw(
        |p| vec![p.repeat(0, vec![p.push(p.x)]), p.repeat(1, vec![Stmt::Pop(p.x), Stmt::Pop(p.x)])],
        expect![[r#"
            build error: program `p` is not valid:
              the tape of `x` is popped by a loop, which does not mirror a loop, the last to push (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |p| vec![p.repeat(0, vec![p.push(p.x)]), Stmt::Pop(p.x)],
        expect![[r#"
            build error: program `p` is not valid:
              the tape of `x` is popped by a single statement, which does not mirror a loop, the last to push (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |p| vec![p.push(p.x), p.repeat(0, vec![Stmt::Pop(p.x), p.push(p.x)]), Stmt::Pop(p.x)],
        expect![[r#"
            build error: program `p` is not valid:
              the tape of `x` is popped and pushed in one loop (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn the_order_of_one_tape_is_mirrored() {
    check_flaw(
        |p| {
            vec![
                p.push(p.x),
                p.repeat(0, vec![p.push(p.x)]),
                Stmt::Pop(p.x),
                p.repeat(1, vec![Stmt::Pop(p.x)]),
            ]
        },
        expect![[r#"
            build error: program `p` is not valid:
              the tape of `x` is popped by a single statement, which does not mirror a loop, the last to push (law 14)
              the tape of `x` is popped by a loop, which does not mirror a single statement, the last to push (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}

#[test]
fn the_reverse_half_of_a_loop_pops_what_its_forward_half_recorded() {
    check_flaw(
        |p| vec![p.forward(0, vec![], vec![p.push(p.x)]), p.backward(0, vec![])],
        expect![[r#"
        build error: program `p` is not valid:
          the tape of `x` is pushed, and not popped (law 14)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |p| {
            vec![
                p.forward(0, vec![], vec![p.repeat(0, vec![p.push(p.x), p.push(p.y)])]),
                p.backward(0, vec![p.repeat(0, vec![Stmt::Pop(p.x), Stmt::Pop(p.x)])]),
            ]
        },
        expect![[r#"
            build error: program `p` is not valid:
              the tape of `x` is popped by a half of loop 0, which does not mirror a half of loop 0, the last to push (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |p| vec![p.forward(0, vec![p.push(p.x)], vec![]), p.backward(0, vec![])],
        expect![[r#"
        build error: program `p` is not valid:
          the tape of `x` changes in iterations that keep nothing (law 14)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |p| vec![p.push(p.x), p.forward(0, vec![], vec![Stmt::Pop(p.x)]), p.backward(0, vec![])],
        expect![[r#"
            build error: program `p` is not valid:
              the tape of `x` is popped in the forward half of a loop (law 14)
              the tape of `x` is popped by a half of loop 0, which does not mirror a single statement, the last to push (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |p| vec![p.forward(0, vec![], vec![])],
        expect![[r#"
        build error: program `p` is not valid:
          loop 0 is run to be reversed, and is not reversed (law 14)
          the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
    check_flaw(
        |p| {
            vec![
                p.forward(0, vec![], vec![p.push(p.x)]),
                p.backward(0, vec![Stmt::Pop(p.x)]),
                p.backward(0, vec![Stmt::Pop(p.x)]),
            ]
        },
        expect![[r#"
            build error: program `p` is not valid:
              loop 0 is reversed, and was not run before (law 14)
              the laws: https://github.com/ebbtide/ebbtide/blob/main/docs/src/laws.md"#]],
    );
}
