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
__shared__ eb_plan plan0; i32 column0, nth0; {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, d0_0);
i64 wild = 0; const b8 proved = e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && eb_difference(&wild, eb_sum(&wild, v5, v5), eb_sum(&wild, f0 + e0, -1)) >= 0 && eb_difference(&wild, eb_sum(&wild, v5, v5), eb_sum(&wild, f0 + e0, 1)) >= 0 && eb_difference(&wild, v5, 1) >= 0 && eb_exact(&wild, eb_sum(&wild, eb_difference(&wild, eb_sum(&wild, f0, v5), eb_sum(&wild, INT64_C(1), 1)), 1), eb_difference(&wild, eb_difference(&wild, eb_sum(&wild, f0 + e0, eb_sum(&wild, v5, 1)), 1), INT64_C(1))) && eb_exact(&wild, eb_sum(&wild, f0, v5), eb_difference(&wild, eb_sum(&wild, f0 + e0, eb_sum(&wild, v5, 1)), 1)) && eb_sum(&wild, eb_difference(&wild, eb_sum(&wild, f0, v5), eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_sum(&wild, eb_sum(&wild, f0, -1), v5) >= 0 && eb_sum(&wild, eb_sum(&wild, f0, 1), v5) >= 0 && eb_sum(&wild, f0, INT64_C(1)) >= 0 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 >= -EB_SMALL && f0 >= 0 && v5 <= EB_SMALL && v5 <= d0_0 && !wild; (void)wild;
const eb_deal deal = eb_share_once(1, e0, f0, 1, 0, proved, &plan0);
column0 = deal.column; nth0 = deal.nth; }
__shared__ nx bound5; if (threadIdx.x == 0) bound5 = eb_narrow(d0_0);
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
if (eb_barrier(f)) goto leave;
f64 *const g0 = eb_global(a0);
f64 *const g1 = eb_global(a1);
{
f64 *const a0 = g0;
f64 *const a1 = g1;
const i64 jf = f0; i64 wild = 0; (void)wild;
const eb_plan plan = plan0;
const eb_deal deal = {column0, plan.columns, nth0, plan.band, plan.base, plan.end, plan.last};
const b8 proved = plan.proved;
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
if (proved) {
const nx n5 = bound5;
const nx band = (nx)deal.band, first = (nx)deal.base + deal.nth * band, few_rows = (nx)deal.end;
const nx end = few_rows - first > band ? first + band : few_rows, few_columns = (nx)deal.last;
for (nx column = deal.column; column < few_columns; column += deal.columns) { const nx j = (nx)jf + column;
for (nx r = first; r < end; r += 1) {
{
const nx v7 = j;
__builtin_assume(v7 >= (nx)INT64_C(0));
f64 *const p2 = a0 + v7;
f64 *const p3 = a1 + v7;
const i64 v8 = ((i64)((u64)v7 + (u64)v5));
const i64 v9 = ((i64)((u64)v8 - (u64)INT64_C(1)));
const nx v10 = (((v7 + (nx)(INT64_C(-1))) < (nx)INT64_C(0)) ? ((v7 + (nx)(INT64_C(-1))) + n5) : (((v7 + (nx)(INT64_C(-1))) >= n5) ? ((v7 + (nx)(INT64_C(-1))) - n5) : (v7 + (nx)(INT64_C(-1)))));
const f64 v11 = a0[(nx)v10];
const nx v12 = (v7 + (nx)INT64_C(1));
const nx v13 = (((v7 + (nx)INT64_C(1)) < (nx)INT64_C(0)) ? ((v7 + (nx)INT64_C(1)) + n5) : (((v7 + (nx)INT64_C(1)) >= n5) ? ((v7 + (nx)INT64_C(1)) - n5) : (v7 + (nx)INT64_C(1))));
const f64 v14 = a0[(nx)v13];
const f64 v15 = p2[0];
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
p3[0] = v27;
} } }
} else {
{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first);
if (first < end) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) { const i64 j = jf + column;
for (i64 r = first; r < end; r++) {
const i64 v7 = j;
const i64 v8 = eb_index_add(v7, v5);
const i64 v9 = eb_index_sub(v8, INT64_C(1));
if (v5 == 0) { eb_fault(f, EB_DIVISION, 0, 0, 0, 0); goto exit1; }
const i64 v10 = eb_index_rem(v9, v5);
if ((u64)v10 >= (u64)d0_0) { oops = 9; oops_index = v10; oops_extent = d0_0; goto fault1; }
const f64 v11 = a0[v10];
const i64 v12 = eb_index_add(v7, INT64_C(1));
if (v5 == 0) { eb_fault(f, EB_DIVISION, 0, 0, 0, 0); goto exit1; }
const i64 v13 = eb_index_rem(v12, v5);
if ((u64)v13 >= (u64)d0_0) { oops = 9; oops_index = v13; oops_extent = d0_0; goto fault1; }
const f64 v14 = a0[v13];
if ((u64)v7 >= (u64)d0_0) { oops = 9; oops_index = v7; oops_extent = d0_0; goto fault1; }
const f64 v15 = a0[v7];
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
if ((u64)v7 >= (u64)d1_0) { oops = 17; oops_index = v7; oops_extent = d1_0; goto fault1; }
a1[v7] = v27;
} } }
}
goto exit1;
fault1: eb_out_of_bounds(f, oops, oops_index, oops_extent);
exit1: ;
if (!proved && eb_barrier(f)) goto leave;
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

