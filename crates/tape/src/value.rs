//! What a value must be able to do to be on a tape.

use std::ops::Deref;
use std::sync::Arc;

/// A value that can be differentiated: the tape asks no more of it than this, in particular no `Clone`.
///
/// The tangent type holds tangents and cotangents alike and may differ from the value's own type.
pub trait Differentiable: Send + Sync + Sized + 'static {
    /// The type of its tangents and cotangents.
    type Tangent: Send + Sync + 'static;

    /// How the tape, its handles and its rules share one value: `Arc<Self>`, or [`Inline<Self>`](Inline) for
    /// small `Copy` types, of which sharers keep a copy each.
    type Shared: Share<Self>;

    /// The tangent that changes nothing.
    fn zero_tangent(&self) -> Self::Tangent;

    /// Adds `other` to `sum`.
    fn accumulate(sum: &mut Self::Tangent, other: Self::Tangent);

    /// Whether this is a tangent, or cotangent, of the value: asked of the seeds and directions that a sweep is given.
    /// Unless the type says otherwise, everything is.
    fn admits(&self, _tangent: &Self::Tangent) -> bool {
        true
    }

    /// The number of elements; a plain pullback starts from a value that has exactly one.
    fn element_count(&self) -> usize;

    /// The cotangent of ones, from which a plain pullback starts.
    fn unit_cotangent(&self) -> Self::Tangent;

    /// The memory that the value takes, as a limit in bytes counts it.
    fn byte_count(&self) -> u64 {
        u64::try_from(size_of::<Self>()).unwrap_or(u64::MAX)
    }

    /// A number that differs, in all likelihood, between different values; checked mode compares it between
    /// the recorded value and its replay. `None` (the default) makes checked mode refuse the type.
    fn fingerprint(&self) -> Option<u64> {
        None
    }
}

/// Shared ownership of a value: `Arc<V>` or [`Inline<V>`](Inline).
pub trait Share<V>: Deref<Target = V> + Clone + From<V> + Send + Sync + sealed::Sealed + 'static {}

impl<V: Send + Sync + 'static> Share<V> for Arc<V> {}
impl<V: Copy + Send + Sync + 'static> Share<V> for Inline<V> {}

// Sharing happens under the tape's lock, where no foreign code may run.
mod sealed {
    pub trait Sealed {}
    impl<V> Sealed for std::sync::Arc<V> {}
    impl<V> Sealed for super::Inline<V> {}
}

/// A value so small that its sharers keep a copy each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Inline<V>(V);

impl<V> From<V> for Inline<V> {
    fn from(value: V) -> Self {
        Inline(value)
    }
}

impl<V> Deref for Inline<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

/// Mixes a sequence of 64-bit words into one (FNV-1a over words with a final avalanche): a helper for
/// [`Differentiable::fingerprint`].
///
/// ```
/// let a = ebbtide_tape::mix_words([1.0f64, 2.0].map(f64::to_bits));
/// assert_ne!(a, ebbtide_tape::mix_words([2.0f64, 1.0].map(f64::to_bits)));
/// ```
pub fn mix_words(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut mixed = 0xcbf2_9ce4_8422_2325u64;
    for word in words {
        mixed = (mixed ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }
    mixed ^= mixed >> 33;
    mixed = mixed.wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}

macro_rules! differentiable_float {
    ($float:ty) => {
        impl Differentiable for $float {
            type Tangent = $float;
            type Shared = Inline<$float>;

            fn zero_tangent(&self) -> $float {
                0.0
            }

            fn accumulate(sum: &mut $float, other: $float) {
                *sum += other;
            }

            fn element_count(&self) -> usize {
                1
            }

            fn unit_cotangent(&self) -> $float {
                1.0
            }

            fn fingerprint(&self) -> Option<u64> {
                Some(mix_words([u64::from(self.to_bits())]))
            }
        }
    };
}

differentiable_float!(f32);
differentiable_float!(f64);
