use ebbtide_checkpoint::{ALIGNMENT, Checkpoint, Error, Header, Label, Position};

fn checkpoint() -> Checkpoint {
    let mut checkpoint = Checkpoint::at(Position::root().then(0, "simulate").then_in_loop(2, "for t", 41));
    checkpoint.state.put_shaped("u", &[2, 2], &[1.0, 2.5, -3.0, 0.0]).unwrap();
    checkpoint.state.put_scalar("t", 7_i64).unwrap();
    checkpoint
}

/// The text of a header, without its length and padding.
fn text(header: &Header) -> Vec<u8> {
    header.encode().unwrap().as_slice()[8..].to_vec()
}

#[test]
fn a_header_comes_back_as_it_was_written() {
    let checkpoint = checkpoint();
    for checkpoint in [checkpoint, Checkpoint::default(), Checkpoint::at(Position::before_step(u64::MAX))] {
        let header = checkpoint.header(&Label::of_no_run("f00d"));
        let bytes = header.encode().unwrap();
        assert!(bytes.len().is_multiple_of(ALIGNMENT), "arrays begin at a block");
        assert_eq!(Header::decode(&text(&header), checkpoint.state.bytes()).unwrap(), header);
    }
}

#[test]
fn a_changed_character_never_makes_another_header() {
    let header = checkpoint().header(&Label::of_no_run("f00d"));
    let sound = text(&header);
    let end = sound.iter().rposition(|byte| *byte != b' ').unwrap();
    for at in 0..=end {
        let mut spoilt = sound.clone();
        spoilt[at] ^= 1;
        if let Ok(read) = Header::decode(&spoilt, 40) {
            assert_eq!(read, header, "{at}");
        }
    }
}

#[test]
fn another_format_is_named() {
    let header = checkpoint().header(&Label::of_no_run("f00d"));
    let old = String::from_utf8(text(&header)).unwrap().replace("snapshot 2", "snapshot 1");
    match Header::decode(old.as_bytes(), 40) {
        Err(error @ Error::OtherFormat { .. }) => assert_eq!(
            error.to_string(),
            "its format is `ebbtide snapshot 1`, this version reads `ebbtide snapshot 2`"
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_header_without_a_position_is_refused() {
    let header = checkpoint().header(&Label::of_no_run("f00d"));
    let without = String::from_utf8(text(&header)).unwrap().replace("\"position\"", "\"posture\"");
    let error = Header::decode(without.as_bytes(), 40).unwrap_err();
    assert_eq!(error.to_string(), "its header has no `position`");
}
