/* Products of matrices: large tiles have less to load for each step, small ones there are enough of for every block. How it is done is
   computed on entry to a segment, by one warp of a block. */
EB_DO void eb_plan_product_$T(eb_product_plan *to, i64 rows, i64 columns, i64 terms) {
    eb_product_plan p = {(nx)rows, (nx)columns, (nx)terms};
    p.is_large = rows > 0 && columns > 0 && eb_is_large_$T(rows, columns, terms);
    if (p.is_large) {
        typedef eb_large_tile<$T> F;
        const u32 tall = (u32)((rows - 1) / F::TALL) + 1, broad = (u32)((columns - 1) / F::WIDE) + 1;
        const eb_large_cutting cut = eb_large_cut_product<F>(tall, broad, (u32)eb_max((terms + $CHUNK - 1) / $CHUNK, 1), eb_product_room());
        p.down = cut.down; p.across = cut.across; p.chunks = cut.chunks;
        eb_lay_groups(p, F::TALL, F::WIDE);
    } else {
        eb_cut_product<$T>(p);
    }
    if (threadIdx.x % 32 == 0) *to = p;
}
EB_DO void eb_matmul_$T(const eb_product_plan &p, eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i32 fresh, u32 turn) {
    const bool left_deep = a.column == 1, right_deep = b.column != 1;
    if (p.is_large) eb_multiply_large_$T(p, a, b, c, fresh, turn);
    else eb_multiply_$T(&p, a.at, (eb_spacing)(left_deep ? a.row : a.column), left_deep, b.at, (eb_spacing)(right_deep ? b.column : b.row),
                        right_deep, c.at, (eb_spacing)c.row, fresh, turn);
}
