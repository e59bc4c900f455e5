/* Products of matrices: large tiles have less to load for each step, small ones there are enough of for every block. */
EB_DO void eb_matmul_$T(eb_thread *f, eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms, i32 fresh) {
    if (rows == 0 || columns == 0) return;
    if (eb_is_large_$T(rows, columns, terms)) f->turn = eb_multiply_large_$T(a, b, c, rows, columns, terms, fresh, f->turn);
    else f->turn = eb_multiply_$T<4, 2, 64 / sizeof($T)>(eb_product_$T{a, b, rows, columns, terms}, c, fresh, f->turn);
}
