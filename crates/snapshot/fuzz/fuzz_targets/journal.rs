#![no_main]

#[path = "../hostile.rs"]
#[allow(dead_code)]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hostile::check_journal(hostile::journal(&mut hostile::Entropy(data)));
    hostile::check_journal(data.to_vec());
});
