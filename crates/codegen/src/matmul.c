
/* Products of matrices. An element is one chain of fused steps over ascending k, so blocks, tiles and threads change
   nothing in its bits: between two blocks of k an element waits in memory, exactly. */
enum { EB_TERMS_$T = 256, EB_ROWS_$T = 128 };
static _Thread_local __attribute__((aligned(64))) $T eb_left_$T[EB_ROWS_$T * EB_TERMS_$T], eb_right_$T[$WIDE * EB_TERMS_$T];

/* A matrix: where it begins, and how far apart its rows and its columns are. */
typedef struct { $T *at; i64 row, column; } eb_matrix_$T;

static inline i64 eb_height_$T(i64 rows) { return rows >= $TALL ? $TALL : rows >= 4 ? 4 : rows >= 2 ? 2 : 1; }
/* A row or two leave most registers to a strip that is as long as they allow: it is read in long pieces. */
static inline i64 eb_width_$T(i64 columns, i32 strips) { return strips && columns >= $STRIP ? $STRIP : columns > $WIDE - $N ? $WIDE : $N; }

/* Lines of `width` elements, one for each k; what is beyond `count` is zero. */
static void eb_pack_$T($T *to, i64 width, const $T *from, i64 count, i64 stride, i64 step, i64 terms) {
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

static void eb_tile_$T(i64 height, i64 width, i64 terms, const $T *a, i64 row, i64 column, const $T *b, i64 line, $T *c, i64 stride, i32 fresh) {
    $TILES}

/* A product of a few rows whose right factor is read along its columns, which are lines in memory. */
static void eb_across_$T(eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms, i32 fresh) {
    for (i64 i = 0, height; i < rows; i += height) {
        const i64 in = eb_min(rows - i, $TALL);
        height = in > 4 ? 8 : in > 2 ? 4 : in;
        const i64 most = EB_ROWS_$T * EB_TERMS_$T / height;
        for (i64 k0 = 0; k0 == 0 || k0 < terms; k0 += most) {
            const i64 kn = eb_min(terms - k0, most);
            const i32 begin = fresh && k0 == 0;
            const $T *left = a.at + i * a.row + k0 * a.column;
            if (height > 1 || a.column != 1) {
                eb_pack_$T(eb_left_$T, height, left, in, a.row, a.column, kn);
                left = eb_left_$T;
            }
            for (i64 j = 0, width; j < columns; j += width) {
                width = height == 1 && columns - j >= 2 * $N ? 2 * $N : $N;
                const i64 lanes = eb_min(columns - j, $N);
                const $T *right = b.at + k0 * b.row + j * b.column;
                $T *out = c.at + i * c.row + j;
                $ACROSS            }
        }
    }
}

static void eb_product_$T(eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms, i32 fresh) {
    /* A factor that is used a few times is read where it stands. */
    const i32 strips = rows <= 2 && b.column == 1, pack = columns > 4 * $WIDE && !strips;
    for (i64 k0 = 0; k0 == 0 || k0 < terms; k0 += EB_TERMS_$T) {
        const i64 kn = eb_min(terms - k0, EB_TERMS_$T);
        const i32 begin = fresh && k0 == 0;
        for (i64 i0 = 0; i0 < rows; i0 += EB_ROWS_$T) {
            const i64 in = eb_min(rows - i0, EB_ROWS_$T);
            for (i64 i = 0, h; pack && i < in; i += h) {
                h = eb_height_$T(in - i);
                eb_pack_$T(eb_left_$T + i * kn, h, a.at + (i0 + i) * a.row + k0 * a.column, h, a.row, a.column, kn);
            }
            for (i64 j = 0, w; j < columns; j += w) {
                w = eb_width_$T(columns - j, strips);
                const i64 wn = eb_min(columns - j, w);
                const $T *right = b.at + k0 * b.row + j * b.column;
                i64 line = b.row;
                if (wn < w || b.column != 1 || in > 16) {
                    eb_pack_$T(eb_right_$T, w, right, wn, b.column, b.row, kn);
                    right = eb_right_$T;
                    line = w;
                }
                for (i64 i = 0, h; i < in; i += h) {
                    h = eb_height_$T(in - i);
                    const $T *left = pack ? eb_left_$T + i * kn : a.at + (i0 + i) * a.row + k0 * a.column;
                    const i64 row = pack ? 1 : a.row, column = pack ? h : a.column;
                    $T *out = c.at + (i0 + i) * c.row + j;
                    if (wn == w) {
                        eb_tile_$T(h, w, kn, left, row, column, right, line, out, c.row, begin);
                        continue;
                    }
                    $T tile[$TALL * $WIDE];
                    if (!begin) for (i64 r = 0; r < h; r++) for (i64 s = 0; s < w; s++)
                        tile[r * w + s] = s < wn ? out[r * c.row + s] : 0;
                    eb_tile_$T(h, w, kn, left, row, column, right, line, tile, w, begin);
                    for (i64 r = 0; r < h; r++) for (i64 s = 0; s < wn; s++)
                        out[r * c.row + s] = tile[r * w + s];
                }
            }
        }
    }
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
    if (across) eb_across_$T(a, b, c, rows, columns, terms, fresh);
    else eb_product_$T(a, b, c, rows, columns, terms, fresh);
}
