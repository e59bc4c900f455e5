//! The parts of a text, which compilers can work on at the same time: each segment belongs to one, and so does each function of a
//! loop.

/// For a compiler of C, which reads what stands before the pieces once more for each part: where there is much text, parts of about
/// the same length.
pub(super) fn balanced(pieces: &[String]) -> Vec<usize> {
    /// A text of so many bytes is compiled in a moment.
    const SHORT: usize = 40_000;
    /// More than so many compilers would seldom find a processor each.
    const MOST: usize = 4;
    let all: usize = pieces.iter().map(String::len).sum();
    let count = (all / SHORT).clamp(1, MOST);
    let mut longest_first: Vec<usize> = (0..pieces.len()).collect();
    longest_first.sort_by_key(|k| std::cmp::Reverse(pieces[*k].len()));
    let mut lengths = vec![0; count];
    let mut parts = vec![0; pieces.len()];
    for k in longest_first {
        let shortest = (0..count).min_by_key(|part| lengths[*part]).unwrap_or(0);
        lengths[shortest] += pieces[k].len();
        parts[k] = shortest;
    }
    parts
}

/// For a compiler that takes little time for what stands before the segments, as that of CUDA C does: each segment has a part for
/// itself, but the short ones, which are the first part.
pub(super) fn each_apart(segments: &[String]) -> Vec<usize> {
    /// A segment of so many bytes is compiled in a moment.
    const SHORT: usize = 12_000;
    let has_short = segments.iter().any(|text| text.len() <= SHORT);
    let mut parts = usize::from(has_short);
    let mut part = |text: &String| match text.len() <= SHORT {
        true => 0,
        false => {
            parts += 1;
            parts - 1
        }
    };
    segments.iter().map(&mut part).collect()
}

/// The pieces, each for the part that it belongs to, where there are several.
pub(super) fn in_parts(pieces: Vec<String>, parts: &[usize]) -> String {
    if parts.iter().all(|part| *part == 0) {
        return pieces.concat();
    }
    let guarded = |(text, part): (String, &usize)| {
        format!("#if !defined(EB_PART) || EB_PART == {part}\n{text}#endif\n")
    };
    pieces.into_iter().zip(parts).map(guarded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lengths: &[usize]) -> Vec<String> {
        lengths.iter().map(|length| "x".repeat(*length)).collect()
    }

    #[test]
    fn long_segments_have_parts_for_themselves() {
        assert_eq!(each_apart(&of(&[10, 20, 30])), [0, 0, 0]);
        assert_eq!(each_apart(&of(&[10, 20_000, 30, 30_000])), [0, 1, 0, 2]);
        assert_eq!(each_apart(&of(&[20_000, 30_000])), [0, 1]);
    }

    #[test]
    fn much_text_has_parts_of_about_the_same_length() {
        assert_eq!(balanced(&of(&[10, 20_000, 50_000])), [0, 0, 0]);
        assert_eq!(balanced(&of(&[41_000, 20_000, 50_000])), [1, 1, 0]);
        assert_eq!(balanced(&of(&[100_000, 90_000, 80_000, 70_000, 60_000])), [0, 1, 2, 3, 3]);
    }
}
