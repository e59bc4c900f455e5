#![no_main]

#[path = "../hostile.rs"]
#[allow(dead_code)]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hostile::check_manifest(hostile::manifest(&mut hostile::Entropy(data)));
    hostile::check_manifest(data.to_vec());
});
