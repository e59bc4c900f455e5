use ebbtide_schedule::Action::{self, Advance, Drop, Load, Record, Reverse, Store, Turn};
use ebbtide_sweep::{Error, Sweep};

use crate::support::{Chain, memory, script};

fn error(steps: u64, actions: &[Action]) -> String {
    let mut chain = Chain::new();
    match Sweep::new(script(steps, actions)).run(&mut chain) {
        Err(error @ (Error::Illegal { .. } | Error::Unfinished { .. })) => error.to_string(),
        other => panic!("{actions:?} gave {other:?}"),
    }
}

#[test]
fn an_illegal_schedule_is_refused_with_the_reason() {
    let slot = memory(0);
    let cases: [(&[Action], &str); 11] = [
        (&[Advance { from: 1, to: 2 }], "the state is the one before step 0"),
        (&[Load { step: 0, slot }], "memory[0] holds nothing"),
        (&[Store { step: 0, slot }, Load { step: 1, slot }], "memory[0] holds the state before step 0"),
        (&[Drop { slot }], "memory[0] holds nothing"),
        (&[Record { from: 0, to: 2 }, Reverse { from: 0, to: 2 }], "the turn has not come"),
        (&[Record { from: 0, to: 2 }, Turn, Turn], "it has come before"),
        (&[Advance { from: 0, to: 2 }, Turn, Reverse { from: 1, to: 2 }], "no tape is kept"),
        (&[Record { from: 0, to: 2 }, Turn, Reverse { from: 0, to: 1 }], "the tape is of 0..2"),
        (&[Advance { from: 0, to: 1 }, Turn], "the state is the one before step 1"),
        (&[Record { from: 0, to: 2 }, Turn, Reverse { from: 1, to: 2 }], "steps 0..1 are not reversed"),
        (&[Advance { from: 0, to: 2 }], "the turn never came"),
    ];
    for (actions, reason) in cases {
        let message = error(2, actions);
        assert!(message.contains(reason), "{actions:?}: {message}");
    }
}

#[test]
fn a_tape_may_be_reversed_in_parts() {
    let mut chain = Chain::new();
    let actions = [
        Record { from: 0, to: 2 },
        Record { from: 2, to: 5 },
        Turn,
        Reverse { from: 4, to: 5 },
        Reverse { from: 1, to: 4 },
        Reverse { from: 0, to: 1 },
    ];
    Sweep::new(script(5, actions)).run(&mut chain).unwrap();
    assert_eq!(chain.dx.to_bits(), Chain::plain_gradient(5).to_bits());
}
