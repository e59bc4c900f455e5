//! Data that are harder to explain than those of the same solver on the same grid: of another grid, and with noise.

/// Receivers' records over time, row by row of time, `columns` to a row.
pub struct Records {
    pub values: Vec<f32>,
    pub columns: usize,
}

impl Records {
    fn at(&self, t: usize, j: usize) -> f64 {
        let rows = self.values.len() / self.columns.max(1);
        let (t, j) = (t.min(rows.saturating_sub(1)), j.min(self.columns.saturating_sub(1)));
        self.values.get(t * self.columns + j).copied().map_or(0.0, f64::from)
    }

    /// The value between samples, linear in time and along the receivers.
    pub fn between(&self, time: f64, place: f64) -> f32 {
        let (time, place) = (time.max(0.0), place.max(0.0));
        let (t, j) = (time as usize, place as usize);
        let (a, b) = (time - t as f64, place - j as f64);
        let before = (1.0 - b) * self.at(t, j) + b * self.at(t, j + 1);
        let after = (1.0 - b) * self.at(t + 1, j) + b * self.at(t + 1, j + 1);
        ((1.0 - a) * before + a * after) as f32
    }
}

/// Adds Gaussian noise whose standard deviation is this part of the root mean square of the values. The same seed gives the
/// same noise.
pub fn add_noise(values: &mut [f32], part: f64, seed: u64) {
    let square: f64 = values.iter().map(|v| f64::from(*v).powi(2)).sum();
    let deviation = part * (square / values.len().max(1) as f64).sqrt();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xd1b5_4a32_d192_ed03;
    let mut uniform = move || {
        // SplitMix64 (Steele, Lea and Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    for value in values {
        // Box and Muller 1958.
        let (radius, angle) = ((-2.0 * (1.0 - uniform()).ln()).sqrt(), std::f64::consts::TAU * uniform());
        *value += (deviation * radius * angle.cos()) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_samples_are_linear() {
        let records = Records { values: vec![0.0, 2.0, 4.0, 6.0], columns: 2 };
        assert_eq!(records.between(0.0, 0.0), 0.0);
        assert_eq!(records.between(0.5, 0.5), 3.0);
        assert_eq!(records.between(9.0, 9.0), 6.0);
        assert_eq!(records.between(-1.0, -1.0), 0.0);
    }

    #[test]
    fn noise_has_the_size_that_was_asked_for_and_is_the_same_again() {
        let signal: Vec<f32> = (0..20_000).map(|k| (k as f32 * 0.1).sin()).collect();
        let mut noisy = signal.clone();
        add_noise(&mut noisy, 0.1, 7);
        let rms = |v: &mut dyn Iterator<Item = f64>| (v.map(|x| x * x).sum::<f64>() / 20_000.0).sqrt();
        let noise = rms(&mut noisy.iter().zip(&signal).map(|(n, s)| f64::from(n - s)));
        let size = rms(&mut signal.iter().map(|s| f64::from(*s)));
        assert!((noise / size - 0.1).abs() < 0.005, "{}", noise / size);
        let mut again = signal.clone();
        add_noise(&mut again, 0.1, 7);
        assert_eq!(again, noisy);
        let mut silent = vec![0.0; 4];
        add_noise(&mut silent, 0.5, 1);
        assert_eq!(silent, [0.0; 4]);
    }
}
