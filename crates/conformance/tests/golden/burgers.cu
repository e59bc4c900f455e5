0, EB_THREADS) {
eb_thread me = eb_enter(launch), *const f = &me;
if (f->shared->ended) return;
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = extents.of[0];
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = extents.of[4];
f64 v0 = 0;
f64 v1 = 0;
i64 v2 = (i64)f->scalars[2];
i64 v5 = d0_0;
i64 v6 = 0;
i64 pass0 = 0;
__shared__ struct { i64 from, to, of[2]; } inside0;
if (threadIdx.x == 0 % blockDim.x) {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, d0_0), jf = f0, jt = f0 + e0;
i64 from = jf, to = jf, margin = 0;
{ i64 left = jf, right = jt;
#pragma unroll
for (int corner = 0; corner < 1; corner++) {
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
const i64 w10 = eb_tame(&wild, v5) > 0 ? eb_tame(&wild, eb_difference(&wild, v5, INT64_C(1))) - eb_near_div(eb_tame(&wild, eb_difference(&wild, v5, INT64_C(1))) + (jf + jt) / 2, eb_tame(&wild, v5)) * eb_tame(&wild, v5) : -1;
const i64 w13 = eb_tame(&wild, v5) > 0 ? eb_tame(&wild, INT64_C(1)) - eb_near_div(eb_tame(&wild, INT64_C(1)) + (jf + jt) / 2, eb_tame(&wild, v5)) * eb_tame(&wild, v5) : -1;
lo = eb_max(lo, -eb_tame(&wild, w10)); hi = eb_min(hi, eb_tame(&wild, (eb_tame(&wild, v5) - 1 - eb_tame(&wild, w10))) + 1);
lo = eb_max(lo, -eb_tame(&wild, eb_difference(&wild, v5, INT64_C(1))));
lo = eb_max(lo, -eb_tame(&wild, w10)); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, w10))) + 1);
lo = eb_max(lo, -eb_tame(&wild, w13)); hi = eb_min(hi, eb_tame(&wild, (eb_tame(&wild, v5) - 1 - eb_tame(&wild, w13))) + 1);
lo = eb_max(lo, -eb_tame(&wild, INT64_C(1)));
lo = eb_max(lo, -eb_tame(&wild, w13)); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, w13))) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - 0)) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_0 - 1 - 0)) + 1);
if (__builtin_expect(wild, 0)) hi = lo;
left = eb_max(left, lo); right = eb_min(right, hi); }
if (right > left) { from = left; to = right; margin = 0; } }
(void)margin; inside0.from = from; inside0.to = to;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
const i64 w10 = eb_tame(&wild, v5) > 0 ? eb_tame(&wild, eb_difference(&wild, v5, INT64_C(1))) - eb_near_div(eb_tame(&wild, eb_difference(&wild, v5, INT64_C(1))) + (jf + jt) / 2, eb_tame(&wild, v5)) * eb_tame(&wild, v5) : -1;
const i64 w13 = eb_tame(&wild, v5) > 0 ? eb_tame(&wild, INT64_C(1)) - eb_near_div(eb_tame(&wild, INT64_C(1)) + (jf + jt) / 2, eb_tame(&wild, v5)) * eb_tame(&wild, v5) : -1;
inside0.of[0] = w10;
inside0.of[1] = w13;
(void)wild; }
__shared__ eb_plan plan0; i32 column0, nth0; {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, d0_0);
i64 wild = 0; const b8 proved = 1; (void)wild;
const eb_deal deal = eb_share_once(1, e0, f0, 1, proved, &plan0);
column0 = deal.column; nth0 = deal.nth; }
const i32 unlike = eb_kept(d0_0 != d1_0);
__syncthreads();
v0 = eb_f64_bits(f->scalars[0]);
v1 = eb_f64_bits(f->scalars[1]);
v2 = (i64)f->scalars[2];
v5 = d0_0;
if (__builtin_expect(v2 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
pass0 = 0;
for (; INT64_C(0) + pass0 < v2; pass0++) { v6 = INT64_C(0) + pass0;
f->pass = pass0;
if (EB_NEAR) if (eb_pause_after(f, (u32)pass0 + 1)) goto leave;
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v5);
const i64 rows = 1, row = e0;
f64 *const g0 = eb_global(a0);
f64 *const g1 = eb_global(a1);
{
f64 *const a0 = g0;
f64 *const a1 = g1;
const i64 jf = f0, jt = f0 + row;
const i64 from = inside0.from, to = inside0.to;
const eb_deal deal = {column0, plan0.columns, nth0, plan0.band};
const nx few_rows = (nx)rows, few_columns = (nx)row; (void)few_rows; (void)few_columns;
{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first, rows);
if (first < end) for (i64 column = deal.column; column < row; column = eb_next(column, deal.columns, row)) { const i64 j = jf + column;
for (i64 r = first; r < end; r++) {
const i64 lo = from, hi = to;
const i64 w10 = inside0.of[0];
const i64 w13 = inside0.of[1];
const i64 v7 = j;
if (__all_sync(__activemask(), j >= lo && j < hi)) {
const i64 v8 = (INT64_C(1) * v7 + v5);
const i64 v9 = (INT64_C(1) * v7 + (v5 - INT64_C(1)));
const i64 v10 = (INT64_C(1) * v7 + w10);
const f64 v11 = a0[(nx)(INT64_C(1) * v7 + w10)];
const i64 v12 = (INT64_C(1) * v7 + INT64_C(1));
const i64 v13 = (INT64_C(1) * v7 + w13);
const f64 v14 = a0[(nx)(INT64_C(1) * v7 + w13)];
const f64 v15 = a0[(nx)(INT64_C(1) * v7 + 0)];
const f64 v18 = (2.0 * v15);
const f64 v19 = (v11 - v18);
const f64 v20 = (v19 + v14);
const f64 v21 = (v0 * v20);
const f64 v22 = (v14 - v11);
const f64 v23 = (0.5 * v15);
const f64 v24 = (v23 * v22);
const f64 v25 = (v21 - v24);
const f64 v26 = (v1 * v25);
const f64 v27 = (v15 + v26);
a1[(nx)(INT64_C(1) * v7 + 0)] = v27;
} else {
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
const i64 v8 = eb_index_add(v7, v5);
const i64 v9 = eb_index_sub(v8, INT64_C(1));
if (v5 == 0) { if (oops) eb_out_of_bounds(f, oops, oops_index, oops_extent); else eb_fault(f, EB_DIVISION, 0, 0, 0, 0); goto exit1; }
const i64 v10 = eb_index_rem(v9, v5);
b8 ok2 = 1;
if ((u64)v10 >= (u64)d0_0) { ok2 = 0; if (!oops) { oops = 9; oops_index = v10; oops_extent = d0_0; } }
const f64 v11 = ok2 ? a0[v10] : (f64)1;
const i64 v12 = eb_index_add(v7, INT64_C(1));
if (v5 == 0) { if (oops) eb_out_of_bounds(f, oops, oops_index, oops_extent); else eb_fault(f, EB_DIVISION, 0, 0, 0, 0); goto exit1; }
const i64 v13 = eb_index_rem(v12, v5);
b8 ok3 = 1;
if ((u64)v13 >= (u64)d0_0) { ok3 = 0; if (!oops) { oops = 9; oops_index = v13; oops_extent = d0_0; } }
const f64 v14 = ok3 ? a0[v13] : (f64)1;
b8 ok4 = 1;
if ((u64)v7 >= (u64)d0_0) { ok4 = 0; if (!oops) { oops = 9; oops_index = v7; oops_extent = d0_0; } }
const f64 v15 = ok4 ? a0[v7] : (f64)1;
const f64 v18 = (2.0 * v15);
const f64 v19 = (v11 - v18);
const f64 v20 = (v19 + v14);
const f64 v21 = (v0 * v20);
const f64 v22 = (v14 - v11);
const f64 v23 = (0.5 * v15);
const f64 v24 = (v23 * v22);
const f64 v25 = (v21 - v24);
const f64 v26 = (v1 * v25);
const f64 v27 = (v15 + v26);
b8 ok5 = 1;
if ((u64)v7 >= (u64)d1_0) { ok5 = 0; if (!oops) { oops = 17; oops_index = v7; oops_extent = d1_0; } }
if (ok5 && !oops) a1[v7] = v27;
if (oops) { eb_out_of_bounds(f, oops, oops_index, oops_extent); goto exit1; }
}
} } }
exit1: ;
if (eb_barrier(f)) goto leave;
} }
if (unlike && (d0_0 != d1_0)) { eb_fault(f, EB_SHAPES, 0, 1, 0, 0); eb_barrier(f); goto leave; }
{ f64 *t = a0; a0 = a1; a1 = t; }
}
f->pass = pass0; if (eb_first()) eb_tell(f);
leave: ;
if (f->epoch == EB_BEGIN) eb_barrier(f);
if (f->thread == 0) {
eb_keep(launch);
f->shared->ended = f->shared->fault != 0;
f->data[0] = a0;
f->data[1] = a1;
}
EB_END(f) }

