use ebbtide_checkpoint::{Error, Position, Step};

use crate::{Random, cases};

#[test]
fn a_position_prints_as_people_say_it() {
    let at = Position::root().then(0, "simulate").then_in_loop(0, "for t", 41).then(0, "Stage::Solve");
    assert_eq!(at.to_string(), "simulate/for t=41/Stage::Solve");
    assert_eq!(Position::root().to_string(), "");
}

#[test]
fn positions_compare_in_the_order_of_execution() {
    let path = |text: &str| text.parse::<Position>().unwrap();
    let ordered =
        ["", "a", "a/for t=2", "a/for t=2/x", "a/for t=2/y#1", "a/for t=10", "b#1", "b#1/c", "d#10"];
    for pair in ordered.windows(2) {
        assert!(path(pair[0]) < path(pair[1]), "{pair:?}");
    }
    assert!(path("a/for t=2/x").is_within(&path("a/for t=2")));
    assert!(!path("a/for t=2").is_within(&path("a/for t=3")));
}

#[test]
fn the_text_of_any_position_parses_back() {
    let letters = ['a', 'Z', '/', '=', '#', '%', ' ', ':', 'µ', '\n', '\0', '雪', '4'];
    let mut random = Random::new(1);
    for _ in 0..cases(2000) {
        let position: Position = (0..random.below(5))
            .map(|_| Step {
                child: random.below(3) as u32 * (u32::MAX / 2),
                iteration: (random.below(2) == 0).then(|| random.next() >> random.below(64)),
                name: (0..random.below(5)).map(|_| letters[random.below(13) as usize]).collect(),
            })
            .collect();
        let text = position.to_string();
        assert_eq!(text.parse::<Position>().unwrap(), position, "{text}");
    }
}

#[test]
fn what_is_no_position_is_refused_with_the_reason() {
    let cases = [
        ("a//b", "one of its steps is empty"),
        ("a/", "one of its steps is empty"),
        ("for t=x", "`x` is not a number"),
        ("for t=-1", "`-1` is not a number"),
        ("a#4294967296", "child 4294967296 is out of range"),
        ("for t=99999999999999999999", "is not a number"),
        ("50%", "broken escape"),
        ("50%zz", "broken escape"),
        ("%ff", "broken escape"),
    ];
    for (text, reason) in cases {
        match text.parse::<Position>() {
            Err(error @ Error::BadPosition { .. }) => assert!(error.to_string().contains(reason), "{error}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
