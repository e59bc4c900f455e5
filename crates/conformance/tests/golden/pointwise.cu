0, EB_THREADS / 2) {
eb_thread me = eb_enter(launch), *const f = &me;
if (f->shared->ended) return;
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = extents.of[0];
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = extents.of[4];
i64 v0 = (i64)f->scalars[0];
i64 v2 = d0_0;
i64 v3 = 0;
i64 pass0 = 0;
__shared__ eb_plan plan0; i32 column0, nth0; {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, d0_0);
i64 wild = 0; const b8 proved = e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 >= -EB_SMALL && f0 >= 0 && !wild; (void)wild;
const eb_deal deal = eb_share_once(1, e0, f0, 1, 0, proved, &plan0);
column0 = deal.column; nth0 = deal.nth; }
__syncthreads();
v0 = (i64)f->scalars[0];
v2 = d0_0;
{ /* loop 0, inside its parallel loops */
const i64 begin = INT64_C(0), passes = eb_extent(begin, v0);
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
i64 wild = 0;
const b8 inner = passes > 0 && eb_exact(&wild, INT64_C(0), eb_sum(&wild, INT64_C(0), 1)) && eb_exact(&wild, eb_tame(&wild, v0), eb_sum(&wild, v0, 1)) && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 >= 0 && v0 != INT64_MIN && !wild;
if (inner) {
__builtin_assume(__isGlobal(a0));
__builtin_assume(__isGlobal(a1));
if (rows > 0 && row > 0) {
const eb_deal deal = {column0, plan0.columns, nth0, plan0.band, plan0.base, plan0.end, plan0.last};
const i64 begun = eb_first_row(deal), ended = eb_end_row(deal, begun);
if (begun < ended) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) {
for (i64 r = begun; r < ended; r++) {
const i64 v4 = f0 + column;
const nx at0 = (nx)v4;
f64 h0 = a0[at0];
const nx at1 = (nx)v4;
f64 h1 = a1[at1];
for (i64 pass = 0; pass < passes;) {
f->pass = pass; if (column == 0 && r == 0) eb_tell(f);
if (pass > 0 && eb_stopped(f)) goto exit5;
const i64 until = eb_until(pass, passes);
#pragma unroll 8
for (; pass < until; pass++) { v3 = begin + pass;
const f64 v5 = h0;
const f64 v6 = h1;
const f64 v8 = eb_tanh_f64(v5);
const f64 v9 = (0.1 * v8);
const f64 v10 = (v9 * v6);
h0 = (h0 + v10);
} }
a0[at0] = h0;
} }
exit5: ;
}
if (eb_barrier(f)) goto leave;
f->pass = passes; if (eb_first()) eb_tell(f);
} else {
if (__builtin_expect(v0 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
pass0 = 0;
for (; INT64_C(0) + pass0 < v0; pass0++) { v3 = INT64_C(0) + pass0;
f->pass = pass0;
if (eb_pause_after(f, (u32)pass0 + 1)) goto leave;
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
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
const nx band = (nx)deal.band, first = (nx)deal.base + deal.nth * band, few_rows = (nx)deal.end;
const nx end = few_rows - first > band ? first + band : few_rows, few_columns = (nx)deal.last;
for (nx column = deal.column; column < few_columns; column += deal.columns) { const nx j = (nx)jf + column;
for (nx r = first; r < end; r += 1) {
{
const nx v4 = j;
__builtin_assume(v4 >= (nx)INT64_C(0));
f64 *const p2 = a0 + v4;
f64 *const p3 = a1 + v4;
const f64 v5 = p2[0];
const f64 v6 = __ldg(&p3[0]);
const f64 v8 = eb_tanh_f64(v5);
const f64 v9 = (0.1 * v8);
const f64 v10 = (v9 * v6);
const f64 old4 = p2[0];
p2[0] = (old4 + v10);
} } }
} else {
{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first);
if (first < end) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) { const i64 j = jf + column;
for (i64 r = first; r < end; r++) {
const i64 v4 = j;
if ((u64)v4 >= (u64)d0_0) { oops = 9; oops_index = v4; oops_extent = d0_0; goto fault1; }
const f64 v5 = a0[v4];
if ((u64)v4 >= (u64)d1_0) { oops = 17; oops_index = v4; oops_extent = d1_0; goto fault1; }
const f64 v6 = __ldg(&a1[v4]);
const f64 v8 = called_eb_tanh_f64(v5);
const f64 v9 = (0.1 * v8);
const f64 v10 = (v9 * v6);
if ((u64)v4 >= (u64)d0_0) { oops = 9; oops_index = v4; oops_extent = d0_0; goto fault1; }
a0[v4] = (a0[v4] + v10);
} } }
}
goto exit1;
fault1: eb_out_of_bounds(f, oops, oops_index, oops_extent);
exit1: ;
if (!proved && eb_barrier(f)) goto leave;
} }
}
f->pass = pass0; if (eb_first()) eb_tell(f);
} }
leave: ;
if (f->epoch == EB_BEGIN) eb_barrier(f);
if (f->thread == 0) {
eb_keep(launch);
f->shared->ended = f->shared->fault != 0;
f->data[0] = a0;
f->data[1] = a1;
}
EB_END(f) }

