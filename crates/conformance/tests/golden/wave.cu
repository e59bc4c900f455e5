0, EB_THREADS) {
eb_thread me = eb_enter(launch), *const f = &me;
if (f->shared->ended) return;
f32 *a0 = (f32 *)f->data[0];
const i64 d0_0 = extents.of[0];
const i64 d0_1 = extents.of[1];
f32 *a1 = (f32 *)f->data[1];
const i64 d1_0 = extents.of[4];
const i64 d1_1 = extents.of[5];
f32 *a2 = (f32 *)f->data[2];
const i64 d2_0 = extents.of[8];
const i64 d2_1 = extents.of[9];
f32 *a3 = (f32 *)f->data[3];
const i64 d3_0 = extents.of[12];
f32 *a4 = (f32 *)f->data[4];
const i64 d4_0 = extents.of[16];
const i64 d4_1 = extents.of[17];
i64 v0 = (i64)f->scalars[0];
i64 v4 = d0_0;
i64 v5 = d0_1;
i64 v6 = eb_index_sub(d0_0, INT64_C(1));
i64 v7 = eb_index_sub(d0_1, INT64_C(1));
i64 v8 = 0;
f32 v33 = 0;
i64 v34 = eb_index_div(d0_0, 2);
i64 v35 = eb_index_div(d0_1, 2);
i64 pass0 = 0;
__shared__ eb_plan plan0; i32 column0, nth0; {
const i64 f0 = INT64_C(1), e0 = eb_extent(f0, eb_index_sub(d0_0, INT64_C(1)));
const i64 f1 = INT64_C(1), e1 = eb_extent(f1, eb_index_sub(d0_1, INT64_C(1)));
i64 wild = 0; const b8 proved = e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && e1 <= EB_SMALL && e1 <= EB_SMALL - f1 && eb_difference(&wild, eb_sum(&wild, f0 + e0, eb_sum(&wild, INT64_C(1), 1)), 1) <= d0_0 && eb_difference(&wild, eb_sum(&wild, f1 + e1, eb_sum(&wild, INT64_C(1), 1)), 1) <= d0_1 && eb_difference(&wild, f0 + e0, INT64_C(1)) <= d0_0 && eb_difference(&wild, f1 + e1, INT64_C(1)) <= d0_1 && eb_sum(&wild, eb_difference(&wild, f0, eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_sum(&wild, eb_difference(&wild, f1, eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_sum(&wild, f0, INT64_C(1)) >= 0 && eb_sum(&wild, f1, INT64_C(1)) >= 0 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d2_0 && f0 >= -EB_SMALL && f0 >= 0 && f1 + e1 <= d0_1 && f1 + e1 <= d1_1 && f1 + e1 <= d2_1 && f1 >= -EB_SMALL && f1 >= 0 && !wild; (void)wild;
const eb_deal deal = eb_share_once(eb_times(1, e0), e1, f1, 2, 0, proved, &plan0);
column0 = deal.column; nth0 = deal.nth; }
const b8 owns11 = eb_owns(f, eb_share(eb_extent(INT64_C(1), eb_index_sub(d0_0, INT64_C(1))), eb_extent(INT64_C(1), eb_index_sub(d0_1, INT64_C(1))), INT64_C(1), 2), eb_extent(INT64_C(1), eb_index_sub(d0_0, INT64_C(1))), eb_extent(INT64_C(1), eb_index_sub(d0_1, INT64_C(1))), eb_nearest(eb_index_div(d0_0, 2), INT64_C(1), eb_extent(INT64_C(1), eb_index_sub(d0_0, INT64_C(1)))), eb_nearest(eb_index_div(d0_1, 2), INT64_C(1), eb_extent(INT64_C(1), eb_index_sub(d0_1, INT64_C(1)))));
__shared__ eb_plan plan1; i32 column1, nth1; {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, d0_1);
i64 wild = 0; const b8 proved = 1; (void)wild;
const eb_deal deal = eb_share_once(1, e0, f0, 1, 0, proved, &plan1);
column1 = deal.column; nth1 = deal.nth; }
const i32 unlike = eb_kept(d0_0 != d1_0 || d0_1 != d1_1);
__syncthreads();
v0 = (i64)f->scalars[0];
v4 = d0_0;
v5 = d0_1;
v6 = eb_index_sub(v4, INT64_C(1));
v7 = eb_index_sub(v5, INT64_C(1));
if (__builtin_expect(v0 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
pass0 = 0;
for (; INT64_C(0) + pass0 < v0; pass0++) { v8 = INT64_C(0) + pass0;
f->pass = pass0;
if (EB_NEAR) if (eb_pause_after(f, (u32)pass0 + 1)) goto leave;
if (__builtin_expect(v6 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
if (__builtin_expect(v7 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
{ /* parallel loop */
const i64 f0 = INT64_C(1), e0 = eb_extent(f0, v6);
const i64 f1 = INT64_C(1), e1 = eb_extent(f1, v7);
const i64 rows = e0, row = e1;
f32 *const g0 = eb_global(a0);
f32 *const g1 = eb_global(a1);
f32 *const g2 = eb_global(a2);
{
f32 *const a0 = g0;
f32 *const a1 = g1;
f32 *const a2 = g2;
const i64 jf = f1; i64 wild = 0; (void)wild;
const eb_plan plan = plan0;
const eb_deal deal = {column0, plan.columns, nth0, plan.band, plan.base, plan.end, plan.last};
const b8 proved = plan.proved;
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
if (proved) {
const nx band = (nx)deal.band, first = (nx)deal.base + deal.nth * band, few_rows = (nx)deal.end;
const nx end = few_rows - first > band ? first + band : few_rows, few_columns = (nx)deal.last;
for (nx column = deal.column; column < few_columns; column += deal.columns) { const nx j = (nx)jf + column;
for (nx r = first; r < end; r += 2) {
if (r + 1 < end) {
const nx v9_0 = (nx)f0 + (r + 0);
const nx v10_0 = j;
__builtin_assume(v9_0 >= (nx)INT64_C(1));
__builtin_assume(v10_0 >= (nx)INT64_C(1));
const nx v9_1 = (nx)f0 + (r + 1);
const nx v10_1 = j;
__builtin_assume(v9_1 >= (nx)INT64_C(1));
__builtin_assume(v10_1 >= (nx)INT64_C(1));
const nx s0_1 = eb_stride(d0_1);
f32 *const p2 = a0 + (v9_0 * s0_1 + v10_0);
const nx s2_1 = eb_stride(d2_1);
f32 *const p3 = a2 + (v9_0 * s2_1 + v10_0);
const nx s1_1 = eb_stride(d1_1);
f32 *const p4 = a1 + (v9_0 * s1_1 + v10_0);
const nx v11_0 = (v9_0 - (nx)INT64_C(1));
const nx v12_0 = (v9_0 + (nx)INT64_C(1));
const nx v13_0 = (v10_0 - (nx)INT64_C(1));
const nx v14_0 = (v10_0 + (nx)INT64_C(1));
const f32 v15_0 = p2[0];
const f32 v16_0 = p2[-s0_1];
const f32 v17_0 = p2[s0_1];
const f32 v18_0 = p2[-1];
const f32 v19_0 = p2[1];
const f32 v20_0 = (v16_0 + v17_0);
const f32 v21_0 = (v20_0 + v18_0);
const f32 v22_0 = (v21_0 + v19_0);
const f32 v25_0 = (4.0f * v15_0);
const f32 v26_0 = (v22_0 - v25_0);
const f32 v27_0 = __ldg(&p3[0]);
const f32 v28_0 = (v27_0 * v26_0);
const f32 v29_0 = p4[0];
const f32 v30_0 = (2.0f * v15_0);
const f32 v31_0 = (v30_0 - v29_0);
const f32 v32_0 = (v31_0 + v28_0);
const nx v11_1 = (v9_1 - (nx)INT64_C(1));
const nx v12_1 = (v9_1 + (nx)INT64_C(1));
const nx v13_1 = (v10_1 - (nx)INT64_C(1));
const nx v14_1 = (v10_1 + (nx)INT64_C(1));
const f32 v15_1 = p2[s0_1];
const f32 v16_1 = p2[0];
const f32 v17_1 = p2[(2) * s0_1];
const f32 v18_1 = p2[s0_1 + -1];
const f32 v19_1 = p2[s0_1 + 1];
const f32 v20_1 = (v16_1 + v17_1);
const f32 v21_1 = (v20_1 + v18_1);
const f32 v22_1 = (v21_1 + v19_1);
const f32 v25_1 = (4.0f * v15_1);
const f32 v26_1 = (v22_1 - v25_1);
const f32 v27_1 = __ldg(&p3[s2_1]);
const f32 v28_1 = (v27_1 * v26_1);
const f32 v29_1 = p4[s1_1];
const f32 v30_1 = (2.0f * v15_1);
const f32 v31_1 = (v30_1 - v29_1);
const f32 v32_1 = (v31_1 + v28_1);
p4[0] = v32_0;
p4[s1_1] = v32_1;
} else for (nx rest = r; rest < end; rest++) { const nx r = rest;
const nx v9 = (nx)f0 + r;
const nx v10 = j;
__builtin_assume(v9 >= (nx)INT64_C(1));
__builtin_assume(v10 >= (nx)INT64_C(1));
const nx s0_1 = eb_stride(d0_1);
f32 *const p7 = a0 + (v9 * s0_1 + v10);
const nx s2_1 = eb_stride(d2_1);
f32 *const p8 = a2 + (v9 * s2_1 + v10);
const nx s1_1 = eb_stride(d1_1);
f32 *const p9 = a1 + (v9 * s1_1 + v10);
const nx v11 = (v9 - (nx)INT64_C(1));
const nx v12 = (v9 + (nx)INT64_C(1));
const nx v13 = (v10 - (nx)INT64_C(1));
const nx v14 = (v10 + (nx)INT64_C(1));
const f32 v15 = p7[0];
const f32 v16 = p7[-s0_1];
const f32 v17 = p7[s0_1];
const f32 v18 = p7[-1];
const f32 v19 = p7[1];
const f32 v20 = (v16 + v17);
const f32 v21 = (v20 + v18);
const f32 v22 = (v21 + v19);
const f32 v25 = (4.0f * v15);
const f32 v26 = (v22 - v25);
const f32 v27 = __ldg(&p8[0]);
const f32 v28 = (v27 * v26);
const f32 v29 = p9[0];
const f32 v30 = (2.0f * v15);
const f32 v31 = (v30 - v29);
const f32 v32 = (v31 + v28);
p9[0] = v32;
} } }
} else {
{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first);
if (first < end) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) { const i64 j = jf + column;
for (i64 r = first; r < end; r++) {
const i64 v9 = (i64)f0 + r;
const i64 v10 = j;
const i64 v11 = eb_index_sub(v9, INT64_C(1));
const i64 v12 = eb_index_add(v9, INT64_C(1));
const i64 v13 = eb_index_sub(v10, INT64_C(1));
const i64 v14 = eb_index_add(v10, INT64_C(1));
if ((u64)v9 >= (u64)d0_0) { oops = 9; oops_index = v9; oops_extent = d0_0; goto fault1; }
if ((u64)v10 >= (u64)d0_1) { oops = 10; oops_index = v10; oops_extent = d0_1; goto fault1; }
const f32 v15 = a0[(v9 * d0_1 + v10)];
if ((u64)v11 >= (u64)d0_0) { oops = 9; oops_index = v11; oops_extent = d0_0; goto fault1; }
if ((u64)v10 >= (u64)d0_1) { oops = 10; oops_index = v10; oops_extent = d0_1; goto fault1; }
const f32 v16 = a0[(v11 * d0_1 + v10)];
if ((u64)v12 >= (u64)d0_0) { oops = 9; oops_index = v12; oops_extent = d0_0; goto fault1; }
if ((u64)v10 >= (u64)d0_1) { oops = 10; oops_index = v10; oops_extent = d0_1; goto fault1; }
const f32 v17 = a0[(v12 * d0_1 + v10)];
if ((u64)v9 >= (u64)d0_0) { oops = 9; oops_index = v9; oops_extent = d0_0; goto fault1; }
if ((u64)v13 >= (u64)d0_1) { oops = 10; oops_index = v13; oops_extent = d0_1; goto fault1; }
const f32 v18 = a0[(v9 * d0_1 + v13)];
if ((u64)v9 >= (u64)d0_0) { oops = 9; oops_index = v9; oops_extent = d0_0; goto fault1; }
if ((u64)v14 >= (u64)d0_1) { oops = 10; oops_index = v14; oops_extent = d0_1; goto fault1; }
const f32 v19 = a0[(v9 * d0_1 + v14)];
const f32 v20 = (v16 + v17);
const f32 v21 = (v20 + v18);
const f32 v22 = (v21 + v19);
const f32 v25 = (4.0f * v15);
const f32 v26 = (v22 - v25);
if ((u64)v9 >= (u64)d2_0) { oops = 17; oops_index = v9; oops_extent = d2_0; goto fault1; }
if ((u64)v10 >= (u64)d2_1) { oops = 18; oops_index = v10; oops_extent = d2_1; goto fault1; }
const f32 v27 = __ldg(&a2[(v9 * d2_1 + v10)]);
const f32 v28 = (v27 * v26);
if ((u64)v9 >= (u64)d1_0) { oops = 25; oops_index = v9; oops_extent = d1_0; goto fault1; }
if ((u64)v10 >= (u64)d1_1) { oops = 26; oops_index = v10; oops_extent = d1_1; goto fault1; }
const f32 v29 = a1[(v9 * d1_1 + v10)];
const f32 v30 = (2.0f * v15);
const f32 v31 = (v30 - v29);
const f32 v32 = (v31 + v28);
if ((u64)v9 >= (u64)d1_0) { oops = 25; oops_index = v9; oops_extent = d1_0; goto fault1; }
if ((u64)v10 >= (u64)d1_1) { oops = 26; oops_index = v10; oops_extent = d1_1; goto fault1; }
a1[(v9 * d1_1 + v10)] = v32;
} } }
}
goto exit1;
fault1: eb_out_of_bounds(f, oops, oops_index, oops_extent);
exit1: ;
if (!proved && eb_barrier(f)) goto leave;
} }
if (unlike && (d0_0 != d1_0 || d0_1 != d1_1)) { eb_fault(f, EB_SHAPES, 0, 1, 0, 0); eb_barrier(f); goto leave; }
{ f32 *t = a0; a0 = a1; a1 = t; }
if ((u64)v8 >= (u64)d3_0) { eb_fault(f, EB_BOUNDS, 4, 0, v8, d3_0); eb_barrier(f); goto leave; }
v33 = a3[v8];
if (INT64_C(2) == 0) eb_fault(f, EB_DIVISION, 0, 0, 0, 0);
if (INT64_C(2) == 0) { eb_barrier(f); goto leave; }
v34 = eb_div_i64(v4, INT64_C(2));
if (INT64_C(2) == 0) eb_fault(f, EB_DIVISION, 0, 0, 0, 0);
if (INT64_C(2) == 0) { eb_barrier(f); goto leave; }
v35 = eb_div_i64(v5, INT64_C(2));
if ((u64)v34 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v34, d0_0); eb_barrier(f); goto leave; }
if ((u64)v35 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 1, 1, v35, d0_1); eb_barrier(f); goto leave; }
{
if (owns11) a0[(v34 * d0_1 + v35)] = (a0[(v34 * d0_1 + v35)] + v33); }
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v5);
const i64 rows = 1, row = e0;
if (eb_barrier(f)) goto leave;
f32 *const g0 = eb_global(a0);
f32 *const g4 = eb_global(a4);
{
f32 *const a0 = g0;
f32 *const a4 = g4;
const i64 jf = f0; i64 wild = 0; (void)wild;
const eb_plan plan = plan1;
const eb_deal deal = {column1, plan.columns, nth1, plan.band, plan.base, plan.end, plan.last};
const b8 proved = e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && eb_sum(&wild, INT64_C(2), 1) <= d0_0 && eb_sum(&wild, v8, 1) <= d4_0 && f0 + e0 <= d0_1 && f0 + e0 <= d4_1 && f0 >= -EB_SMALL && f0 >= 0 && v8 >= 0 && !wild;
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
if (proved) {
const nx band = (nx)deal.band, first = (nx)deal.base + deal.nth * band, few_rows = (nx)deal.end;
const nx end = few_rows - first > band ? first + band : few_rows, few_columns = (nx)deal.last;
for (nx column = deal.column; column < few_columns; column += deal.columns) { const nx j = (nx)jf + column;
for (nx r = first; r < end; r += 1) {
{
const nx v36 = j;
__builtin_assume(v36 >= (nx)INT64_C(0));
const nx s0_1 = eb_stride(d0_1);
f32 *const p13 = a0 + (2 * s0_1 + v36);
const f32 v37 = p13[0];
a4[((nx)v8 * (nx)d4_1 + (nx)v36)] = v37;
} } }
} else {
{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first);
if (first < end) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) { const i64 j = jf + column;
for (i64 r = first; r < end; r++) {
const i64 v36 = j;
if ((u64)INT64_C(2) >= (u64)d0_0) { oops = 9; oops_index = INT64_C(2); oops_extent = d0_0; goto fault12; }
if ((u64)v36 >= (u64)d0_1) { oops = 10; oops_index = v36; oops_extent = d0_1; goto fault12; }
const f32 v37 = a0[(INT64_C(2) * d0_1 + v36)];
if ((u64)v8 >= (u64)d4_0) { oops = 41; oops_index = v8; oops_extent = d4_0; goto fault12; }
if ((u64)v36 >= (u64)d4_1) { oops = 42; oops_index = v36; oops_extent = d4_1; goto fault12; }
a4[(v8 * d4_1 + v36)] = v37;
} } }
}
goto exit12;
fault12: eb_out_of_bounds(f, oops, oops_index, oops_extent);
exit12: ;
if (!proved && eb_barrier(f)) goto leave;
} }
}
f->pass = pass0; if (eb_first()) eb_tell(f);
leave: ;
if (f->epoch == EB_BEGIN) eb_barrier(f);
if (f->thread == 0) {
eb_keep(launch);
f->shared->ended = f->shared->fault != 0;
f->data[0] = a0;
f->data[1] = a1;
f->data[2] = a2;
f->data[3] = a3;
f->data[4] = a4;
}
EB_END(f) }

