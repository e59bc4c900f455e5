//! What rustc says at the user's own tokens.

#[test]
fn what_the_language_does_not_have_is_refused_with_what_to_write_instead() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
