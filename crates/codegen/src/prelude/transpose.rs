//! The functions that turn round as many rows as a vector has lanes: on the way to registers, and back.

use std::fmt::Write as _;

use ebbtide_math::c::Shape;

/// `eb_transpose` makes vectors of rows: `t[k]` has element `k` of each of them. `eb_transpose_back` makes rows of such vectors.
/// `eb_turn` and `eb_turn_back` are the same as calls. Halves change places on the way between memory and registers, quarters and smaller parts in registers.
pub(crate) fn transposes(shape: Shape, ty: &str) -> String {
    let (lanes, half) = (shape.lanes(), shape.lanes() / 2);
    let mut text = include_str!("transpose.c")
        .replace("$V", &shape.to_string())
        .replace("$T", ty)
        .replace("$I", &format!("i{}x{lanes}", shape.bytes() * 8 / lanes))
        .replace("$B", &shape.bytes().to_string())
        .replace("$H", &half.to_string());
    let places = |row: usize| {
        let column = row / half * half;
        [row % half, row % half + half].map(|row| format!("p + {row} * line + {column}")).join(", ")
    };
    let name = |row: usize| format!("r{row}");
    let function = "static inline __attribute__((always_inline)) void";
    let _ = writeln!(text, "{function} eb_transpose_{shape}(const {ty} *p, i64 line, {shape} *t) {{");
    for row in 0..lanes {
        let _ = writeln!(text, "const {shape} {} = eb_halves_{shape}({});", name(row), places(row));
    }
    for (row, name) in
        parts_change_places(&mut text, shape, (0..lanes).map(name).collect()).iter().enumerate()
    {
        let _ = writeln!(text, "t[{row}] = {name};");
    }
    text.push_str("}\n");
    let _ = writeln!(text, "{function} eb_transpose_back_{shape}({ty} *p, i64 line, const {shape} *t) {{");
    for row in 0..lanes {
        let _ = writeln!(text, "const {shape} {} = t[{row}];", name(row));
    }
    for (row, name) in
        parts_change_places(&mut text, shape, (0..lanes).map(name).collect()).iter().enumerate()
    {
        let _ = writeln!(text, "eb_put_halves_{shape}({}, {name});", places(row));
    }
    text.push_str("}\n");
    // A function for all tiles: their text is long, and compilers take their time over every copy.
    let apart = "static __attribute__((noinline)) void";
    let _ = writeln!(
        text,
        "{apart} eb_turn_{shape}(const {ty} *p, i64 line, {shape} *t) {{ eb_transpose_{shape}(p, line, t); }}"
    );
    let _ = writeln!(
        text,
        "{apart} eb_turn_back_{shape}({ty} *p, i64 line, const {shape} *t) {{ eb_transpose_back_{shape}(p, line, t); }}"
    );
    text
}

/// Lets quarters of the vectors with these names change places, then smaller parts; the names of what that makes.
fn parts_change_places(text: &mut String, shape: Shape, mut names: Vec<String>) -> Vec<String> {
    let lanes = shape.lanes();
    let mut distance = lanes / 4;
    while distance > 0 {
        let before = names.clone();
        for first in (0..lanes).filter(|row| row & distance == 0) {
            let second = first + distance;
            // Lane by lane, from the first vector or from the second, whose lanes count on.
            let low = |lane: usize| if lane & distance == 0 { lane } else { lanes + lane - distance };
            let high = |lane: usize| if lane & distance == 0 { lane + distance } else { lanes + lane };
            let chosen: [Vec<usize>; 2] = [(0..lanes).map(low).collect(), (0..lanes).map(high).collect()];
            for (row, chosen) in [first, second].into_iter().zip(chosen) {
                names[row] = format!("{}_{distance}", before[row]);
                let chosen: Vec<String> = chosen.iter().map(usize::to_string).collect();
                let _ = writeln!(
                    text,
                    "const {shape} {} = EB_CHOOSE_{shape}({}, {}, {});",
                    names[row],
                    before[first],
                    before[second],
                    chosen.join(", ")
                );
            }
        }
        distance /= 2;
    }
    names
}
