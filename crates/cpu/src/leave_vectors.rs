//! The way back from compiled code to Rust.

/// What Rust does first when compiled code returns to it or calls it: code that was not optimised leaves the upper halves of x86's vector
/// registers in use, and then every scalar operation of code for plain x86, as Rust's is, waits for them.
pub(crate) fn leave_vectors() {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") {
        // SAFETY (*Trusted code*): the processor has it. No value of Rust lives in the upper halves: by the calling convention
        // they are lost in every call.
        unsafe { std::arch::x86_64::_mm256_zeroupper() }
    }
}
