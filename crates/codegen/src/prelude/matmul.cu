/* Products of matrices: large tiles have less to load for each step, small ones there are enough of for every block. What is known on entry
   to a segment is computed there, by one thread of a block. */
EB_DO eb_product_plan eb_plan_product_$T(i64 rows, i64 columns, i64 terms) {
    eb_product_plan p = {(nx)rows, (nx)columns, (nx)terms};
    if (rows == 0 || columns == 0) return p;
    p.is_large = eb_is_large_$T(rows, columns, terms);
    if (!p.is_large) eb_cut_product<$T>(p);
    return p;
}
EB_DO void eb_matmul_$T(eb_thread *f, const eb_product_plan &p, eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i32 fresh) {
    const bool left_deep = a.column == 1, right_deep = b.column != 1;
    if (p.is_large) f->turn = eb_multiply_large_$T(a, b, c, p.rows, p.columns, p.terms, fresh, f->turn);
    else f->turn = eb_multiply_$T(&p, a.at, (eb_spacing)(left_deep ? a.row : a.column), left_deep, b.at, (eb_spacing)(right_deep ? b.column : b.row),
                                  right_deep, c.at, (eb_spacing)c.row, fresh, f->turn);
}
