
/* Products of matrices. A chunk of an element is one chain of fused steps over ascending k, and chunks are added in order,
   so tiles and threads change nothing in its bits. */
enum { EB_ROWS_$T = 256 };
static _Thread_local __attribute__((aligned(64))) $T eb_left_$T[EB_ROWS_$T * $CHUNK], eb_right_$T[$WIDE * $CHUNK];

/* A matrix: where it begins, and how far apart its rows and its columns are. */
typedef struct { $T *at; i64 row, column; } eb_matrix_$T;

static inline i64 eb_height_$T(i64 rows) { return rows >= $TALL ? $TALL : rows >= 4 ? 4 : rows >= 2 ? 2 : 1; }
/* A row or two leave most registers to a strip that is as long as they allow: it is read in long pieces. */
static inline i64 eb_width_$T(i64 columns, i32 strips) { return strips && columns >= $STRIP ? $STRIP : columns > $WIDE - $N ? $WIDE : $N; }

/* Lines of `width` elements, one for each k; what is beyond `count` is zero. */
static void eb_pack_$T($T *to, i64 width, const $T *from, i64 count, i64 stride, i64 step, i64 terms) {
    if (stride == 1 && count == width) {
        /* Whole lines, of lengths that the compiler knows. */
#define EB_LINES(n) if (width == n) { for (i64 k = 0; k < terms; k++) memcpy(to + k * n, from + k * step, n * sizeof($T)); return; }
        EB_LINES($WIDE) EB_LINES($N) EB_LINES(8) EB_LINES(4) EB_LINES(2)
#undef EB_LINES
    }
    if (count < width) memset(to, 0, width * terms * sizeof($T));
    i64 turned = 0;
    if (step == 1) for (; turned + $N <= count; turned += $N) {
        i64 k = 0;
        for (; k + $N <= terms; k += $N) {
            $V t[$N];
            eb_transpose_$V(from + turned * stride + k, stride, t);
            $T *line = to + k * width + turned;
            $LINES        }
        for (; k < terms; k++) eb_store_$V(to + k * width + turned, eb_gather_$V(from + turned * stride + k, stride, $N));
    }
    /* A few k at a time, so that the lines stay near while their elements come from far apart. */
    for (i64 k0 = 0; k0 < terms; k0 += 16) {
        const i64 k1 = eb_min(k0 + 16, terms);
        if (stride == 1) {
            for (i64 k = k0; k < k1; k++) for (i64 r = turned; r < count; r++) to[k * width + r] = from[k * step + r];
        } else {
            for (i64 r = turned; r < count; r++) for (i64 k = k0; k < k1; k++) to[k * width + r] = from[r * stride + k * step];
        }
    }
}

static void eb_tile_$T(i64 height, i64 width, i64 terms, const $T *a, i64 row, i64 column, const $T *b, i64 line, $T *c, i64 stride, i32 begin) {
    $TILES}

/* A tile whose sums are subnormal, two rows at a time where it is wide; the factors are packed. */
static void eb_gradual_tile_$T(i64 height, i64 width, i64 terms, i32 raise, const $T *a, const $T *b, $T *c, i64 stride, i32 begin) {
    const i64 raised = raise == 3 ? 2 * EB_RAISED_$T : EB_RAISED_$T;
    for (i64 r = 0, rows; r < height; r += rows) {
        rows = height - r >= 2 && width == $WIDE ? 2 : 1;
        for (i64 q = 0; q < rows; q++) {
            for (i64 k = 0; k < terms; k++) eb_raised_rows_$T[q][k] = a[k * height + r + q];
            if (raise & 1) eb_raise_$T(eb_raised_rows_$T[q], eb_raised_rows_$T[q], $CHUNK);
        }
        for (i64 j = 0, w; j < width; j += w) {
            w = rows == 2 ? $WIDE : $N;
            const $T *right = (raise & 2 ? eb_raised_right_$T : b) + j;
            $T *out = c + r * stride + j;
            const i32 fits = rows == 2 ? eb_gradual_$T_wide(terms, raised, right, width, out, stride, begin)
                                       : eb_gradual_$T_one(terms, raised, right, width, out, stride, begin);
            /* What was raised too far is computed as it is. */
            if (!fits) eb_tile_$T(rows, w, terms, a + r, 1, height, b + j, width, out, stride, begin);
        }
    }
}

/* A product of a few rows whose right factor is read along its columns, which are lines in memory. */
static void eb_across_$T(eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms, i32 fresh) {
    eb_underflowed();
    for (i64 i = 0, height; i < rows; i += height) {
        const i64 in = eb_min(rows - i, $TALL);
        height = in > 4 ? 8 : in > 2 ? 4 : in;
        /* A line of the right factor is read to its end, or as far as the left one is packed, before the next one. */
        const i64 most = EB_ROWS_$T * $CHUNK / height;
        for (i64 k0 = 0; k0 == 0 || k0 < terms; k0 += most) {
            const i64 block = eb_min(terms - k0, most);
            const $T *packed = a.at + i * a.row + k0 * a.column;
            if (height > 1 || a.column != 1) {
                eb_pack_$T(eb_left_$T, height, packed, in, a.row, a.column, block);
                packed = eb_left_$T;
            }
            for (i64 j = 0, width; j < columns; j += width) {
                width = height == 1 && columns - j >= 2 * $N ? 2 * $N : $N;
                const i64 lanes = eb_min(columns - j, $N);
                $T *out = c.at + i * c.row + j;
                for (i64 k1 = 0; k1 == 0 || k1 < block; k1 += $CHUNK) {
                    const i64 kn = eb_min(block - k1, $CHUNK);
                    const i32 begin = k0 + k1 > 0 ? EB_LATER : fresh ? EB_AT_ZERO : EB_AT_ELEMENT;
                    const $T *left = packed + k1 * height, *right = b.at + (k0 + k1) * b.row + j * b.column;
                    $ACROSS                }
            }
            if (eb_underflowed()) eb_careful_$T = EB_REMEMBERED;
        }
    }
}

static void eb_pack_left_$T(eb_matrix_$T a, i64 rows, i64 terms) {
    for (i64 i = 0, h; i < rows; i += h) {
        h = eb_height_$T(rows - i);
        eb_pack_$T(eb_left_$T + i * terms, h, a.at + i * a.row, h, a.row, a.column, terms);
    }
}

static void eb_product_$T(eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms, i32 fresh) {
    /* A factor that is used a few times is read where it stands. */
    const i32 strips = rows <= 2 && b.column == 1 && !eb_careful_$T;
    i32 careful = eb_careful_$T > 0, gradual = 0;
    eb_underflowed();
    for (i64 k0 = 0; k0 == 0 || k0 < terms; k0 += $CHUNK) {
        const i64 kn = eb_min(terms - k0, $CHUNK);
        const i32 begin = k0 > 0 ? EB_LATER : fresh ? EB_AT_ZERO : EB_AT_ELEMENT;
        for (i64 i0 = 0; i0 < rows; i0 += EB_ROWS_$T) {
            const i64 in = eb_min(rows - i0, EB_ROWS_$T);
            const eb_matrix_$T block = {a.at + i0 * a.row + k0 * a.column, a.row, a.column};
            i32 pack = careful || a.column != 1 && columns > 4 * $WIDE && !strips;
            if (pack) eb_pack_left_$T(block, in, kn);
            for (i64 j = 0, w; j < columns; j += w) {
                w = eb_width_$T(columns - j, strips);
                const i64 wn = eb_min(columns - j, w);
                i64 done = 0;
            again:;
                const $T *right = b.at + k0 * b.row + j * b.column;
                i64 line = b.row;
                if (wn < w || b.column != 1 || in > 16 || careful) {
                    eb_pack_$T(eb_right_$T, w, right, wn, b.column, b.row, kn);
                    right = eb_right_$T;
                    line = w;
                }
                eb_sizes_$T right_sizes;
                if (careful) right_sizes = eb_measure_$T(right, w * kn);
                i32 raised = 0;
                for (i64 i = done, h; i < in; i += h) {
                    h = eb_height_$T(in - i);
                    const $T *left = pack ? eb_left_$T + i * kn : block.at + i * a.row;
                    const i64 row = pack ? 1 : a.row, column = pack ? h : a.column;
                    $T *const at = c.at + (i0 + i) * c.row + j, tile[$TALL * $WIDE], *const out = wn < w ? tile : at;
                    const i64 stride = wn < w ? w : c.row;
                    if (wn < w && begin != EB_AT_ZERO) for (i64 r = 0; r < h; r++) for (i64 s = 0; s < w; s++)
                        tile[r * w + s] = s < wn ? at[r * c.row + s] : 0;
                    i32 raise = 0;
                    if (careful) raise = eb_to_raise_$T(eb_measure_$T(left, h * kn / $N * $N), right_sizes);
                    if (raise) {
                        if (raise & ~raised & 2) eb_raise_$T(eb_raised_right_$T, right, w * kn);
                        raised |= raise;
                        eb_gradual_tile_$T(h, w, kn, raise, left, right, out, stride, begin);
                    } else {
                        eb_tile_$T(h, w, kn, left, row, column, right, line, out, stride, begin);
                    }
                    if (wn < w) for (i64 r = 0; r < h; r++) for (i64 s = 0; s < wn; s++) at[r * c.row + s] = tile[r * w + s];
                    if (!careful && (i == 0 || i + h == in) && eb_underflowed()) {
                        eb_careful_$T = EB_REMEMBERED;
                        if (strips) continue;
                        if (!pack) eb_pack_left_$T(block, in, kn);
                        careful = pack = 1;
                        done = i + h;
                        goto again;
                    }
                }
                gradual |= raised;
            }
        }
    }
    if (careful) eb_careful_$T = gradual ? EB_REMEMBERED : eb_careful_$T - 1;
}

/* This thread's part of a product. */
static void eb_matmul_$T(eb_frame *f, eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms, i32 fresh) {
    if (rows <= 0 || columns <= 0) return;
    const i64 parts = rows * columns * eb_max(terms, 1) < 65536 ? 1 : f->threads;
    if (f->thread >= parts) return;
    /* To copy the right factor would cost more than the product of a few rows. */
    const i32 across = rows <= $TALL && b.column != 1, by_rows = !across && rows >= $TALL * parts;
    /* Cuts fall between tiles. */
    const i64 size = by_rows ? $TALL : across ? 2 * $N : rows <= 2 ? $STRIP : $WIDE;
    const i64 tiles = ((by_rows ? rows : columns) + size - 1) / size;
    const i64 from = size * (tiles * f->thread / parts), to = size * (tiles * (f->thread + 1) / parts);
    if (by_rows) {
        a.at += from * a.row, c.at += from * c.row;
        rows = eb_min(to, rows) - from;
    } else {
        b.at += from * b.column, c.at += from;
        columns = eb_min(to, columns) - from;
    }
    if (rows <= 0 || columns <= 0) return;
    if (across && !eb_careful_$T) eb_across_$T(a, b, c, rows, columns, terms, fresh);
    else eb_product_$T(a, b, c, rows, columns, terms, fresh);
}
