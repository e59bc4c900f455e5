//! The functions that multiply matrices: their innermost loops, unrolled for one shape of vectors.
//!
//! What chooses between them is in `matmul.c`.

use std::fmt::Write as _;

use ebbtide_math::c::Shape;

/// The widths of tiles, in vectors: what is left over takes the smaller one.
const WIDTHS: [usize; 2] = [3, 1];

/// The heights of tiles. The elements of the largest tile and a line of each factor fill the registers: 32 of 64
/// bytes, 16 of fewer.
fn heights(shape: Shape) -> &'static [usize] {
    if shape.bytes() == 64 { &[8, 4, 2, 1] } else { &[4, 2, 1] }
}

/// The width of a tile of one or two rows, in vectors.
fn strip(shape: Shape) -> usize {
    if shape.bytes() == 64 { 8 } else { 4 }
}

/// The functions that multiply matrices of the type of `shape`.
pub(crate) fn products(shape: Shape, ty: &str) -> String {
    let lanes = shape.lanes();
    let bits = shape.bytes() * 8 / lanes;
    let (mut text, mut tiles, mut across) = (String::new(), String::new(), String::new());
    for &height in heights(shape) {
        let strips = (height <= 2).then(|| strip(shape));
        for width in strips.into_iter().chain(WIDTHS) {
            tile(&mut text, shape, ty, height, width);
            let _ = writeln!(
                tiles,
                "if (height == {height} && width == {}) {{ eb_tile_{ty}_{height}x{width}(terms, a, row, column, b, line, c, stride, begin); return; }}",
                width * lanes
            );
        }
        // The steps of one row wait for each other: those of a second vector fill the time.
        for width in if height == 1 { &[2, 1][..] } else { &[1] } {
            tile_across(&mut text, shape, ty, height, *width);
            let _ = writeln!(
                across,
                "if (height == {height} && width == {}) eb_across_{ty}_{height}x{width}(kn, left, right, b.column, in, lanes, out, c.row, begin);",
                width * lanes
            );
        }
    }
    let lines: String =
        (0..lanes).map(|k| format!("eb_store_{shape}(line + {k} * width, t[{k}]);\n")).collect();
    let mut gradual_rows = String::new();
    gradual(&mut gradual_rows, shape, ty, "wide", 2, WIDTHS[0]);
    gradual(&mut gradual_rows, shape, ty, "one", 1, 1);
    text.push_str(
        &[include_str!("underflow.c"), include_str!("matmul.c")]
            .concat()
            .replace("$GRADUAL", &gradual_rows)
            .replace("$TILES", &tiles)
            .replace("$LINES", &lines)
            .replace("$ACROSS", &across)
            .replace("$CHUNK", &ebbtide_ir::MATMUL_CHUNK.to_string())
            .replace("$TALL", &heights(shape)[0].to_string())
            .replace("$T", ty)
            .replace("$V", &shape.to_string())
            .replace("$WIDE", &(WIDTHS[0] * lanes).to_string())
            .replace("$STRIP", &(strip(shape) * lanes).to_string())
            .replace("$I", &format!("i{bits}x{lanes}"))
            .replace("$U", &format!("u{bits}x{lanes}"))
            .replace("$S", &format!("i{bits}"))
            .replace("$E", &format!("epi{bits}"))
            .replace("$W", if bits == 64 { "(long long)" } else { "(int)" })
            .replace("$M", &(512 / bits).to_string())
            .replace("$B", &shape.bytes().to_string())
            .replace("$N", &lanes.to_string()),
    );
    text
}

/// Rows and vectors of a tile.
fn each(height: usize, width: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..height).flat_map(move |r| (0..width).map(move |v| (r, v)))
}

/// One tile of one chunk of a product: its elements stay in registers over all `terms`.
fn tile(text: &mut String, shape: Shape, ty: &str, height: usize, width: usize) {
    let lanes = shape.lanes();
    let _ = writeln!(
        text,
        "static void eb_tile_{ty}_{height}x{width}(i64 terms, const {ty} *a, i64 row, i64 column, const {ty} *b, i64 line, {ty} *c, i64 stride, i32 begin) {{"
    );
    for (r, v) in each(height, width) {
        let _ = writeln!(
            text,
            "{shape} c{r}_{v} = begin != EB_AT_ELEMENT ? ({shape}){{0}} : eb_load_{shape}(c + {r} * stride + {});",
            v * lanes
        );
    }
    for r in 0..height {
        let _ = writeln!(text, "const {ty} *p{r} = a + {r} * row;");
    }
    text.push_str("for (i64 k = 0, q = 0; k < terms; k++, q += column, b += line) {\n");
    for v in 0..width {
        let _ = writeln!(text, "const {shape} b{v} = eb_load_{shape}(b + {});", v * lanes);
    }
    for r in 0..height {
        let _ = writeln!(text, "const {shape} a{r} = op_float_{shape}(p{r}[q]);");
        for v in 0..width {
            let _ = writeln!(text, "c{r}_{v} = op_fma_{shape}(a{r}, b{v}, c{r}_{v});");
        }
    }
    text.push_str("}\nif (begin == EB_LATER) {\n");
    for (r, v) in each(height, width) {
        let _ = writeln!(text, "c{r}_{v} = eb_load_{shape}(c + {r} * stride + {}) + c{r}_{v};", v * lanes);
    }
    text.push_str("}\n");
    for (r, v) in each(height, width) {
        let _ = writeln!(text, "eb_store_{shape}(c + {r} * stride + {}, c{r}_{v});", v * lanes);
    }
    text.push_str("}\n");
}

/// One tile of a product whose right factor is read along its columns, as many of them as a vector has lanes, turned
/// round in registers. The left factor is packed. `rows` rows exist, and `lanes` columns of the last vector.
fn tile_across(text: &mut String, shape: Shape, ty: &str, height: usize, width: usize) {
    let lanes = shape.lanes();
    // The k-th element of each row, times a column.
    let step = |text: &mut String, v: usize, k: usize, column: &str| {
        for r in 0..height {
            let _ = writeln!(
                text,
                "c{r}_{v} = op_fma_{shape}(op_float_{shape}(a[{}]), {column}, c{r}_{v});",
                k * height + r
            );
        }
    };
    let _ = writeln!(
        text,
        "static void eb_across_{ty}_{height}x{width}(i64 terms, const {ty} *a, const {ty} *b, i64 line, i64 rows, i64 lanes, {ty} *c, i64 stride, i32 begin) {{"
    );
    for (r, v) in each(height, width) {
        let _ = writeln!(
            text,
            "{shape} c{r}_{v} = begin != EB_AT_ELEMENT || {r} >= rows ? ({shape}){{0}} : eb_load_part_{shape}(c + {r} * stride + {}, lanes);",
            v * lanes
        );
    }
    let _ = writeln!(
        text,
        "i64 k = 0;\nif (lanes == {lanes}) for (; k + {lanes} <= terms; k += {lanes}, a += {}) {{",
        lanes * height
    );
    for v in 0..width {
        let _ = writeln!(
            text,
            "{{ {shape} t[{lanes}]; eb_transpose_{shape}(b + {} * line + k, line, t);",
            v * lanes
        );
        (0..lanes).for_each(|k| step(text, v, k, &format!("t[{k}]")));
        text.push_str("}\n");
    }
    let _ = writeln!(text, "}}\nfor (; k < terms; k++, a += {height}) {{");
    for v in 0..width {
        let _ = writeln!(
            text,
            "{{ const {shape} t = eb_gather_{shape}(b + {} * line + k, line, lanes);",
            v * lanes
        );
        step(text, v, 0, "t");
        text.push_str("}\n");
    }
    text.push_str("}\n");
    text.push_str("if (begin == EB_LATER) {\n");
    for (r, v) in each(height, width) {
        let _ = writeln!(
            text,
            "if ({r} < rows) c{r}_{v} = eb_load_part_{shape}(c + {r} * stride + {}, lanes) + c{r}_{v};",
            v * lanes
        );
    }
    text.push_str("}\n");
    for (r, v) in each(height, width) {
        let _ = writeln!(
            text,
            "if ({r} < rows) eb_store_part_{shape}(c + {r} * stride + {}, lanes, c{r}_{v});",
            v * lanes
        );
    }
    text.push_str("}\n");
}

/// One or two rows of a chunk whose sums are subnormal (`underflow.c`): `eb_raised_rows` has the left factor, what is raised
/// is raised by `raised` in all. Zero, and nothing is written, where a sum leaves the range of its type.
fn gradual(text: &mut String, shape: Shape, ty: &str, name: &str, height: usize, width: usize) {
    let (lanes, row) = (shape.lanes(), width * shape.lanes());
    let _ = writeln!(
        text,
        "static i32 eb_gradual_{ty}_{name}(i64 terms, i64 raised, const {ty} *b, i64 line, {ty} *c, i64 stride, i32 begin) {{"
    );
    let _ = writeln!(
        text,
        "const $S least = eb_pattern_{ty}(eb_power_{ty}(EB_LEAST_{ty} + raised)), top = eb_pattern_{ty}(eb_power_{ty}(EB_LEAST_{ty} + 1 + raised));"
    );
    let _ = writeln!(text, "{ty} up[{}] = {{0}};", height * row);
    text.push_str("if (begin == EB_AT_ELEMENT) {\n");
    for r in 0..height {
        let _ = writeln!(text, "memcpy(up + {}, c + {r} * stride, {row} * sizeof({ty}));", r * row);
    }
    let _ = writeln!(
        text,
        "for (i64 k = 0; k < raised; k += EB_RAISED_{ty}) eb_raise_{ty}(up, up, {});\n}}",
        height * row
    );
    for (r, v) in each(height, width) {
        let _ = writeln!(text, "{shape} c{r}_{v} = eb_load_{shape}(up + {});", r * row + v * lanes);
    }
    text.push_str("for (i64 k = 0; k < terms; k++, b += line) {\n");
    for r in 0..height {
        let _ = writeln!(text, "const {shape} a{r} = op_float_{shape}(eb_raised_rows_{ty}[{r}][k]);");
    }
    for v in 0..width {
        let _ = writeln!(text, "const {shape} b{v} = eb_load_{shape}(b + {});", v * lanes);
    }
    for (r, v) in each(height, width) {
        let _ = writeln!(text, "c{r}_{v} = eb_step_{shape}(a{r}, b{v}, c{r}_{v}, least, top);");
    }
    text.push_str("}\n$I far = {0};\n");
    for (r, v) in each(height, width) {
        let _ = writeln!(text, "far |= (($I)c{r}_{v} & EB_EXPONENT_{ty}) == EB_EXPONENT_{ty};");
    }
    let _ = writeln!(text, "for (int k = 0; k < {lanes}; k++) if (far[k]) return 0;");
    for (r, v) in each(height, width) {
        let at = format!("c + {r} * stride + {}", v * lanes);
        let _ = writeln!(
            text,
            "c{r}_{v} = eb_lower_{shape}(c{r}_{v}, raised);\neb_store_{shape}({at}, begin == EB_LATER ? eb_load_{shape}({at}) + c{r}_{v} : c{r}_{v});"
        );
    }
    text.push_str("return 1; }\n");
}
