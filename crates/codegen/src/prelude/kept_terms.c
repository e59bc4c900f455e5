/* Adds the terms of `here` iterations from `batch` on to the sums of their leaves: this thread takes some of these leaves. The
   lanes of a leaf that began in an earlier window, or ends in a later one, are in `open`, by turns. */
static __attribute__((noinline)) void $NAME(u64 *partials, i64 rows, i64 row, i64 batch, i64 here, i64 part, i64 parts, const $TYPE *kept, $TYPE *open, i64 turn) {
    const eb_leaves cut = eb_cut(rows, row);
    const i64 first = eb_leaf_of(&cut, row, batch), count = eb_leaf_of(&cut, row, batch + here - 1) + 1 - first;
    for (i64 leaf = first + eb_share(count, part, parts); leaf < first + eb_share(count, part + 1, parts); leaf++) {
        const i64 group = leaf / cut.pieces, piece = leaf % cut.pieces, begin = group * cut.rows_per_leaf;
        const i64 from = begin * row + piece * cut.size;
        const i64 to = cut.pieces > 1 ? begin * row + eb_min((piece + 1) * cut.size, row) : eb_min(begin + cut.rows_per_leaf, rows) * row;
        $TYPE lanes[16];
        for (i64 k = 0; k < 16; k++) lanes[k] = from < batch ? open[16 * turn + k] : $NEUTRAL;
        for (i64 at = eb_max(from - batch, 0), stop = eb_min(to - batch, here); at < stop;) {
            const i64 column = (batch + at) % row, length = eb_min(row - column, stop - at);
            for (i64 k = 0; k < length; k++) {
                const $TYPE sum = lanes[(column + k) & 15];
                lanes[(column + k) & 15] = $TERM;
            }
            at += length;
        }
        if (to > batch + here) {
            memcpy(open + 16 * (turn ^ 1), lanes, sizeof lanes);
            continue;
        }
        for (int w = 8; w > 0; w /= 2) for (int k = 0; k < w; k++) lanes[k] = $LANE;
        partials[leaf] = $BITS;
    }
}
