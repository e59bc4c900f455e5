//! The parts of a text, which compilers can work on at the same time: each segment belongs to one.

/// For a compiler of C: where there is much text, the longest segment has a part for itself. Such compilers take more than twice as
/// long for twice the text.
pub(super) fn longest_apart(segments: &[String]) -> Vec<usize> {
    /// A text of so many bytes is compiled in a moment.
    const SHORT: usize = 40_000;
    let longest = segments.iter().enumerate().max_by_key(|(_, text)| text.len()).map(|(k, _)| k);
    let others: usize =
        segments.iter().enumerate().filter(|(k, _)| Some(*k) != longest).map(|(_, t)| t.len()).sum();
    let worth = others > SHORT && segments.iter().any(|text| text.len() > SHORT);
    (0..segments.len()).map(|k| usize::from(worth && Some(k) == longest)).collect()
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

/// The segments, each for the part that it belongs to, where there are several.
pub(super) fn in_parts(segments: Vec<String>, parts: &[usize]) -> String {
    if parts.iter().all(|part| *part == 0) {
        return segments.concat();
    }
    let guarded = |(text, part): (String, &usize)| {
        format!("#if !defined(EB_PART) || EB_PART == {part}\n{text}#endif\n")
    };
    segments.into_iter().zip(parts).map(guarded).collect()
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
        assert_eq!(longest_apart(&of(&[10, 20_000, 50_000])), [0, 0, 0]);
        assert_eq!(longest_apart(&of(&[41_000, 20_000, 50_000])), [0, 0, 1]);
    }
}
