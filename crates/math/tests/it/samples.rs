//! Arguments at which the functions are tried.

use std::f64::consts::{FRAC_PI_2, LN_2};

/// How many random samples a test takes: `usual`, or `EBBTIDE_CASES` if it is set.
pub fn cases(usual: usize) -> usize {
    std::env::var("EBBTIDE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// How many of the special numbers are not just powers of two.
pub const MOST_SPECIAL: usize = 54;

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / 9007199254740992.0
    }

    /// A number in [-limit, limit).
    pub fn within(&mut self, limit: f64) -> f64 {
        (2.0 * self.unit() - 1.0) * limit
    }

    /// A number in (-1, 1), of any size down to 2^-octaves.
    pub fn small(&mut self, octaves: u64) -> f64 {
        let octave = self.bits() % octaves;
        self.within(2f64.powi(-(octave as i32)))
    }
}

/// Zeros, infinities, NaN, limits of the format; then ones, halves, limits of functions and their neighbours
/// (up to here [`MOST_SPECIAL`]); then powers of two; and all of them negative.
pub fn special_f64() -> Vec<f64> {
    let mut out = vec![0.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, f64::MAX, f64::from_bits(1)];
    out.extend([f64::from_bits(0x000f_ffff_ffff_ffff), 1e22, 1e300]);
    for around in [
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
        5.0,
        10.0,
        FRAC_PI_2,
        LN_2,
        4503599627370496.0,
        9007199254740993.0,
        709.782712893384,
        745.1332191019411,
        710.4758600739439,
    ] {
        out.extend([around.next_down(), around, around.next_up()]);
    }
    out.extend((-1074..1024).step_by(7).map(|k| 2f64.powi(k)));
    let negative: Vec<f64> = out.iter().map(|x| -x).collect();
    out.extend(negative);
    out
}

/// As [`special_f64`].
pub fn special_f32() -> Vec<f32> {
    let mut out = vec![0.0, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX, f32::from_bits(1)];
    out.extend([f32::from_bits(0x007f_ffff), 1e22, 1e38]);
    for around in [
        0.5f32,
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
        5.0,
        10.0,
        FRAC_PI_2 as f32,
        LN_2 as f32,
        8388608.0,
        16777217.0,
        88.72284,
        103.97208,
        89.41599,
    ] {
        out.extend([around.next_down(), around, around.next_up()]);
    }
    out.extend((-149..128).step_by(3).map(|k| 2f32.powi(k)));
    let negative: Vec<f32> = out.iter().map(|x| -x).collect();
    out.extend(negative);
    out
}

/// The number, but one and the same quiet NaN for all NaNs: the reference tells signalling ones apart, as C does and
/// Rust does not.
fn quiet_f64(x: f64) -> f64 {
    if x.is_nan() { f64::NAN } else { x }
}

/// As [`quiet_f64`].
fn quiet_f32(x: f32) -> f32 {
    if x.is_nan() { f32::NAN } else { x }
}

/// `count` numbers of every size and from every neighbourhood in which a function may have trouble.
pub fn any_f64(random: &mut Random, count: usize) -> Vec<f64> {
    let limits = [0.1, 1.0, 2.0, 10.0, 50.0, 800.0, 1e5, 1e11];
    (0..count)
        .map(|i| match i % 16 {
            0..4 => quiet_f64(f64::from_bits(random.bits())),
            at @ 4..12 => random.within(limits[at - 4]),
            12 => {
                // Next to a multiple of pi/2, as far out as there are any.
                let size = random.bits() % 60;
                let x = ((random.bits() >> (63 - size)) as f64) * FRAC_PI_2;
                f64::from_bits(x.to_bits().wrapping_add(random.bits() % 5).wrapping_sub(2))
            }
            13 => 1.0 + random.small(50),
            14 => random.small(60),
            _ => f64::from_bits(random.bits() & 0x801f_ffff_ffff_ffff),
        })
        .collect()
}

/// As [`any_f64`].
pub fn any_f32(random: &mut Random, count: usize) -> Vec<f32> {
    let limits = [0.1, 1.0, 2.0, 10.0, 50.0, 100.0, 1e5, 1e7];
    (0..count)
        .map(|i| match i % 16 {
            0..4 => quiet_f32(f32::from_bits(random.bits() as u32)),
            at @ 4..12 => random.within(limits[at - 4]) as f32,
            12 => {
                let size = random.bits() % 60;
                let x = (((random.bits() >> (63 - size)) as f64) * FRAC_PI_2) as f32;
                f32::from_bits(x.to_bits().wrapping_add(random.bits() as u32 % 5).wrapping_sub(2))
            }
            13 => (1.0 + random.small(22)) as f32,
            14 => random.small(60) as f32,
            _ => f32::from_bits(random.bits() as u32 & 0x80ff_ffff),
        })
        .collect()
}

/// `count` pairs: some of any two numbers, some for which a power is neither infinite nor zero, some of about
/// the same size.
pub fn pairs_f64(random: &mut Random, count: usize) -> Vec<(f64, f64)> {
    let (first, second) = (any_f64(random, count), any_f64(random, count));
    let mut pairs: Vec<(f64, f64)> = first.into_iter().zip(second.into_iter().rev()).collect();
    for (i, pair) in pairs.iter_mut().enumerate() {
        match i % 4 {
            0 => pair.1 = random.within(745.0) / pair.0.abs().ln(),
            1 => pair.1 = pair.0 * random.within(4.0),
            2 => {
                pair.0 = 1.0 + random.small(50);
                pair.1 = random.within(745.0) / pair.0.abs().ln();
            }
            _ => {}
        }
    }
    pairs
}

/// As [`pairs_f64`].
pub fn pairs_f32(random: &mut Random, count: usize) -> Vec<(f32, f32)> {
    let (first, second) = (any_f32(random, count), any_f32(random, count));
    let mut pairs: Vec<(f32, f32)> = first.into_iter().zip(second.into_iter().rev()).collect();
    for (i, pair) in pairs.iter_mut().enumerate() {
        match i % 4 {
            0 => pair.1 = random.within(104.0) as f32 / pair.0.abs().ln(),
            1 => pair.1 = pair.0 * random.within(4.0) as f32,
            2 => {
                pair.0 = 1.0 + random.small(22) as f32;
                pair.1 = random.within(104.0) as f32 / pair.0.abs().ln();
            }
            _ => {}
        }
    }
    pairs
}
