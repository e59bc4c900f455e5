//! Sums `coefficient · j + base`, and the statements that narrow an interval of `j` by them.

/// `coefficient · j + base`.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub coefficient: i64,
    /// The base as the body computes it: it wraps.
    pub base: String,
    /// The base as proofs compute it: what overflows sets `wild`, and the interior is empty then.
    pub exact: String,
}

impl Linear {
    pub fn new(coefficient: i64, base: String) -> Linear {
        Linear { coefficient, exact: base.clone(), base }
    }

    /// A value that is the same for all `j`; where it is no number, the interior is empty.
    pub fn uniform(name: String, may_overflow: bool) -> Linear {
        let exact = if may_overflow { tamed(&name) } else { name.clone() };
        Linear { coefficient: 0, base: name, exact }
    }

    /// The base for proofs, which is then far from the ends of its type.
    pub fn tame(&self) -> String {
        if self.exact == "0" { "0".to_string() } else { tamed(&self.exact) }
    }
}

/// A sum that empties the interior where it is not tame.
pub(super) fn tamed(sum: &str) -> String {
    if sum.starts_with("eb_tame(") { sum.to_string() } else { format!("eb_tame(&wild, {sum})") }
}

/// The statement that narrows to where `sum >= 0`.
pub(super) fn from_zero(sum: &Linear) -> String {
    let base = &sum.tame();
    match sum.coefficient {
        0 => format!("if ({base} < 0) hi = lo;"),
        1 => format!("lo = eb_max(lo, -{base});"),
        -1 => format!("hi = eb_min(hi, {base} + 1);"),
        c if c > 0 => format!("lo = eb_max(lo, -eb_floor_div({base}, {c}));"),
        c => format!("hi = eb_min(hi, eb_floor_div({base}, {}) + 1);", -c),
    }
}

/// The statements that narrow to where `0 <= sum < extent`.
pub(super) fn within(sum: &Linear, extent: &str) -> [String; 2] {
    let rest = Linear::new(-sum.coefficient, format!("({extent} - 1 - {})", sum.tame()));
    [from_zero(sum), from_zero(&rest)]
}

/// Is this name in the text, and not as the beginning of a longer one?
pub(super) fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| !text[at + name.len()..].starts_with(|c: char| c.is_ascii_digit()))
}
