
/* Products of matrices, tile by tile; each chunk of an element is one chain of fused steps over ascending terms, and the
   chunks are added in order. */
struct eb_matrix_$T { $T *at; i64 row, column; };
EB_DO void eb_matmul_$T(const eb_thread *f, eb_matrix_$T a, eb_matrix_$T b, eb_matrix_$T c, i64 rows, i64 columns, i64 terms, i32 fresh) {
    typedef $T eb_rows[33];
    eb_rows *const left = (eb_rows *)eb_block_memory(), *const right = left + 32;
    enum { PER_THREAD = 1024 / EB_THREADS, STEP = EB_THREADS / 32 };
    const i64 across = (columns + 31) / 32, tiles = (rows + 31) / 32 * across;
    const int x = threadIdx.x & 31, y = threadIdx.x >> 5;
    for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const i64 i0 = tile / across * 32, j = tile % across * 32 + x;
        $T sum[PER_THREAD], chunks[PER_THREAD];
#pragma unroll
        for (int q = 0; q < PER_THREAD; q++) {
            const i64 i = i0 + y + q * STEP;
            sum[q] = fresh || i >= rows || j >= columns ? ($T)0 : c.at[i * c.row + j * c.column];
        }
        for (i64 k0 = 0; k0 < terms; k0 += 32) {
            if (k0 > 0 && k0 % $CHUNK == 0) {
#pragma unroll
                for (int q = 0; q < PER_THREAD; q++) {
                    chunks[q] = k0 == $CHUNK ? sum[q] : op_add_$T(chunks[q], sum[q]);
                    sum[q] = ($T)0;
                }
            }
            __syncthreads();
#pragma unroll
            for (int q = 0; q < PER_THREAD; q++) {
                const int row = y + q * STEP;
                const i64 i = i0 + row, k = k0 + x, l = k0 + row;
                left[row][x] = i < rows && k < terms ? a.at[i * a.row + k * a.column] : ($T)0;
                right[row][x] = l < terms && j < columns ? b.at[l * b.row + j * b.column] : ($T)0;
            }
            __syncthreads();
            const int count = (int)eb_min(32, terms - k0);
            for (int k = 0; k < count; k++) {
#pragma unroll
                for (int q = 0; q < PER_THREAD; q++) sum[q] = op_fma_$T(left[y + q * STEP][k], right[k][x], sum[q]);
            }
        }
#pragma unroll
        for (int q = 0; q < PER_THREAD; q++) {
            const i64 i = i0 + y + q * STEP;
            if (i < rows && j < columns) c.at[i * c.row + j * c.column] = terms > $CHUNK ? op_add_$T(chunks[q], sum[q]) : sum[q];
        }
    }
}
