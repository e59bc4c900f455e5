
/* Products that wait. A thread keeps copies of the rows that its part of the matrix needs: of the left factor its own
   columns, of the right one all. */
enum { EB_WAITING_$T = 16, EB_ROOM_$T = 16384 };
static _Thread_local __attribute__((aligned(64))) $T eb_waiting_$T[$PLACES][EB_ROOM_$T];
typedef struct { $T *at; i64 count; } eb_rows_$T;

/* The part of a thread: rows of the matrix, the same for every number of terms, and how many terms can wait for it. */
typedef struct { i64 from, rows, depth; } eb_own_$T;
static inline eb_own_$T eb_part_$T(eb_frame *f, i64 rows, i64 columns) {
    const i64 tiles = (rows + 7) / 8, from = eb_min(tiles * f->thread / f->threads * 8, rows);
    const i64 own = eb_min(tiles * (f->thread + 1) / f->threads * 8, rows) - from;
    return (eb_own_$T){from, own, eb_min(EB_WAITING_$T, EB_ROOM_$T / eb_max(own + columns, 1))};
}

static void eb_settle_$T(eb_frame *f, eb_rows_$T *waiting, eb_matrix_$T c, i64 rows, i64 columns) {
    const eb_own_$T own = eb_part_$T(f, rows, columns);
    const eb_matrix_$T left = {waiting->at, 1, own.rows}, right = {waiting->at + own.depth * own.rows, columns, 1};
    c.at += own.from * c.row;
    if (waiting->count > 0 && own.rows > 0 && columns > 0) eb_product_$T(left, right, c, own.rows, columns, waiting->count, 0);
    waiting->count = 0;
}

static void eb_defer_$T(eb_frame *f, eb_rows_$T *waiting, eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms) {
    const eb_own_$T own = eb_part_$T(f, rows, columns);
    if (waiting->count + terms > own.depth) eb_settle_$T(f, waiting, c, rows, columns);
    a.at += own.from * a.row, c.at += own.from * c.row;
    if (2 * terms > own.depth) {
        /* So many at once are worth it. */
        if (own.rows > 0 && columns > 0) eb_product_$T(a, b, c, own.rows, columns, terms, 0);
        return;
    }
    for (i64 k = 0; k < terms; k++, waiting->count++) {
        memcpy(waiting->at + waiting->count * own.rows, a.at + k * a.column, own.rows * sizeof($T));
        memcpy(waiting->at + own.depth * own.rows + waiting->count * columns, b.at + k * b.row, columns * sizeof($T));
    }
}
