//! Philox4x32-10 as published, and the documented mapping to numbers.

use ebbtide_math::{Native64, philox4x32_10, rand_f32, rand_f64};

/// The known answers that the authors of Philox distribute with Random123.
#[test]
fn philox_gives_the_published_answers() {
    let answers: [([i64; 4], [i64; 2], [i64; 4]); 3] = [
        ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
        ([0xffffffff; 4], [0xffffffff; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
        (
            [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
            [0xa4093822, 0x299f31d0],
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
        ),
    ];
    for (counter, key, words) in answers {
        assert_eq!(philox4x32_10(&mut Native64, counter, key), words);
    }
}

#[test]
fn numbers_come_from_the_words_as_documented() {
    for (seed, index) in [(0, 0), (-1, 1 << 40), (0x0123_4567_89ab_cdef, -7), (i64::MIN, i64::MAX)] {
        let half = |x: i64| [x & 0xffff_ffff, (x as u64 >> 32) as i64];
        let ([c0, c1], key) = (half(index), half(seed));
        let [w0, w1, _, _] = philox4x32_10(&mut Native64, [c0, c1, 0, 0], key);
        assert_eq!(rand_f64(seed, index), (w0 * (1 << 21) + (w1 >> 11)) as f64 / 9007199254740992.0);
        assert_eq!(rand_f32(seed, index), (w0 >> 8) as f32 / 16777216.0);
    }
}

#[test]
fn numbers_look_uniform() {
    let count = 20_000;
    let numbers: Vec<f64> = (0..count).map(|i| rand_f64(42, i)).collect();
    assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)));
    let mean = numbers.iter().sum::<f64>() / count as f64;
    let square = numbers.iter().map(|x| x * x).sum::<f64>() / count as f64;
    // Five standard deviations of the means of x and of x^2.
    assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0 / count as f64).sqrt(), "{mean}");
    assert!((square - 1.0 / 3.0).abs() < 5.0 * (4.0 / 45.0 / count as f64).sqrt(), "{square}");
    assert_ne!(rand_f64(42, 0), rand_f64(43, 0));
}
