0, EB_THREADS / 2) {
eb_thread me = eb_enter(launch), *const f = &me;
if (f->shared->ended) return;
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = extents.of[0];
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = extents.of[4];
const i64 v2 = (i64)eb_value(launch, 2);
const i64 v24 = (i64)eb_value(launch, 24);
const i64 v25 = (i64)eb_value(launch, 25);
i64 v3 = 0;
i64 pass0 = 0;
__shared__ eb_plan plan0; i32 column0, nth0; {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
i64 wild = 0; const b8 proved = e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 >= -EB_SMALL && f0 >= 0 && !wild; (void)wild;
const eb_deal deal = eb_share_once(1, e0, f0, 1, 0, proved, &plan0);
column0 = deal.column; nth0 = deal.nth; }
__syncthreads();
{ /* loop 0, inside its parallel loops */
const i64 begin = v24, passes = eb_extent(begin, v25);
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
i64 wild = 0;
const b8 inner = passes > 0 && eb_exact(&wild, v24, eb_sum(&wild, v24, 1)) && eb_exact(&wild, v25, eb_sum(&wild, v25, 1)) && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 >= 0 && !wild;
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
pass0 = 0;
for (; v24 + pass0 < v25; pass0++) { v3 = v24 + pass0;
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
if ((u64)v4 >= (u64)d0_0) { oops = 1; oops_index = v4; oops_extent = d0_0; goto fault1; }
const f64 v5 = a0[v4];
if ((u64)v4 >= (u64)d1_0) { oops = 9; oops_index = v4; oops_extent = d1_0; goto fault1; }
const f64 v6 = __ldg(&a1[v4]);
const f64 v8 = called_eb_tanh_f64(v5);
const f64 v9 = (0.1 * v8);
const f64 v10 = (v9 * v6);
if ((u64)v4 >= (u64)d0_0) { oops = 1; oops_index = v4; oops_extent = d0_0; goto fault1; }
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

---
1, EB_THREADS / 2) {
eb_thread me = eb_enter(launch), *const f = &me;
if (f->shared->ended) return;
eb_tape t0 = eb_open(f, 0);
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = extents.of[0];
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = extents.of[4];
f64 *a10 = (f64 *)f->data[10];
const i64 d10_0 = extents.of[40];
const i64 v2 = (i64)eb_value(launch, 2);
const i64 v24 = (i64)eb_value(launch, 24);
const i64 v25 = (i64)eb_value(launch, 25);
i64 v56 = 0;
i64 pass0 = 0;
__shared__ eb_plan plan2; i32 column2, nth2; {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
i64 wild = 0; const b8 proved = e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && f0 + e0 <= d0_0 && f0 + e0 <= d10_0 && f0 + e0 <= d1_0 && f0 >= -EB_SMALL && f0 >= 0 && !wild; (void)wild;
const eb_deal deal = eb_share_once(1, e0, f0, 1, 0, proved, &plan2);
column2 = deal.column; nth2 = deal.nth; }
__syncthreads();
{ /* loop 0, inside its parallel loops */
const i64 begin = v24, passes = eb_extent(begin, v25);
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
i64 wild = 0;
const b8 inner = passes > 0 && eb_exact(&wild, v24, eb_sum(&wild, v24, 1)) && eb_exact(&wild, v25, eb_sum(&wild, v25, 1)) && eb_times(passes, 1) <= eb_min(t0.capacity - t0.depth, INT32_MAX) && f0 + e0 <= d0_0 && f0 + e0 <= d10_0 && f0 + e0 <= d1_0 && f0 == 0 && e0 == d0_0 && f0 == 0 && e0 == d10_0 && f0 >= 0 && !wild;
if (inner) {
eb_settle(f, &t0);
__builtin_assume(__isGlobal(a0));
__builtin_assume(__isGlobal(a1));
if (rows > 0 && row > 0) {
const eb_deal deal = {column2, plan2.columns, nth2, plan2.band, plan2.base, plan2.end, plan2.last};
const i64 begun = eb_first_row(deal), ended = eb_end_row(deal, begun);
if (begun < ended) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) {
for (i64 r = begun; r < ended; r++) {
const i64 v57 = f0 + column;
const nx at0 = (nx)v57;
f64 h0 = a0[at0];
const nx at1 = (nx)v57;
f64 h1 = a1[at1];
const nx at10 = (nx)v57;
f64 h10 = 0;
eb_pushes<f64, 8> q0; q0.begin(t0, at0, passes * 1);
for (i64 pass = 0; pass < passes;) {
f->pass = pass; if (column == 0 && r == 0) eb_tell(f);
if (pass > 0 && eb_stopped(f)) goto exit11;
const i64 until = eb_until(pass, passes);
while (pass + 8 <= until) {
q0.ahead();
#pragma unroll
for (int nth = 0; nth < 8; nth++, pass++) { v56 = begin + pass;
q0.push(nth, h0);
h10 = h0;
const f64 v58 = h10;
const f64 v59 = h1;
const f64 v61 = eb_tanh_f64(v58);
const f64 v62 = (0.1 * v61);
const f64 v63 = (v62 * v59);
const f64 v65 = (v58 + v63);
h0 = v65;
}
q0.turn();
}
#pragma unroll
for (int nth = 0; nth < 7; nth++, pass++) {
if (pass >= until) break;
v56 = begin + pass;
q0.push(nth, h0);
h10 = h0;
const f64 v58 = h10;
const f64 v59 = h1;
const f64 v61 = eb_tanh_f64(v58);
const f64 v62 = (0.1 * v61);
const f64 v63 = (v62 * v59);
const f64 v65 = (v58 + v63);
h0 = v65;
}
}
a0[at0] = h0;
} }
exit11: ;
}
t0.depth += passes * 1;
if (eb_barrier(f)) goto leave;
f->pass = passes; if (eb_first()) eb_tell(f);
} else {
pass0 = 0;
for (; v24 + pass0 < v25; pass0++) { v56 = v24 + pass0;
f->pass = pass0;
if (eb_pause_after(f, (u32)pass0 + 1)) goto leave;
if (t0.depth >= t0.capacity) eb_fault(f, EB_TAPE, 0, 0, 0, 0);
else {
f64 *t = a0; a0 = (f64 *)eb_exchange(f, &t0, t0.depth++, t); a10 = t;
}
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
f64 *const g0 = eb_global(a0);
f64 *const g1 = eb_global(a1);
f64 *const g10 = eb_global(a10);
{
f64 *const a0 = g0;
f64 *const a1 = g1;
f64 *const a10 = g10;
const i64 jf = f0; i64 wild = 0; (void)wild;
const eb_plan plan = plan2;
const eb_deal deal = {column2, plan.columns, nth2, plan.band, plan.base, plan.end, plan.last};
const b8 proved = plan.proved;
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
if (proved) {
const nx band = (nx)deal.band, first = (nx)deal.base + deal.nth * band, few_rows = (nx)deal.end;
const nx end = few_rows - first > band ? first + band : few_rows, few_columns = (nx)deal.last;
for (nx column = deal.column; column < few_columns; column += deal.columns) { const nx j = (nx)jf + column;
for (nx r = first; r < end; r += 1) {
{
const nx v57 = j;
__builtin_assume(v57 >= (nx)INT64_C(0));
f64 *const p7 = a10 + v57;
f64 *const p8 = a1 + v57;
f64 *const p9 = a0 + v57;
const f64 v58 = p7[0];
const f64 v59 = __ldg(&p8[0]);
const f64 v61 = eb_tanh_f64(v58);
const f64 v62 = (0.1 * v61);
const f64 v63 = (v62 * v59);
const f64 v65 = (v58 + v63);
p9[0] = v65;
} } }
} else {
{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first);
if (first < end) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) { const i64 j = jf + column;
for (i64 r = first; r < end; r++) {
const i64 v57 = j;
if ((u64)v57 >= (u64)d10_0) { oops = 17; oops_index = v57; oops_extent = d10_0; goto fault6; }
const f64 v58 = a10[v57];
if ((u64)v57 >= (u64)d1_0) { oops = 9; oops_index = v57; oops_extent = d1_0; goto fault6; }
const f64 v59 = __ldg(&a1[v57]);
const f64 v61 = called_eb_tanh_f64(v58);
const f64 v62 = (0.1 * v61);
const f64 v63 = (v62 * v59);
const f64 v65 = (v58 + v63);
if ((u64)v57 >= (u64)d0_0) { oops = 1; oops_index = v57; oops_extent = d0_0; goto fault6; }
a0[v57] = v65;
} } }
}
goto exit6;
fault6: eb_out_of_bounds(f, oops, oops_index, oops_extent);
exit6: ;
if (!proved && eb_barrier(f)) goto leave;
} }
}
f->pass = pass0; if (eb_first()) eb_tell(f);
} }
leave: ;
if (f->epoch == EB_BEGIN) eb_barrier(f);
eb_close(f, &t0, 0);
if (f->thread == 0) {
eb_keep(launch);
f->shared->ended = f->shared->fault != 0;
f->data[0] = a0;
f->data[1] = a1;
f->data[10] = a10;
}
EB_END(f) }

---
2, EB_THREADS / 2) {
eb_thread me = eb_enter(launch), *const f = &me;
if (f->shared->ended) return;
eb_tape t0 = eb_open(f, 0);
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = extents.of[0];
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = extents.of[4];
f64 *a7 = (f64 *)f->data[7];
const i64 d7_0 = extents.of[28];
f64 *a8 = (f64 *)f->data[8];
const i64 d8_0 = extents.of[32];
const i64 v2 = (i64)eb_value(launch, 2);
const i64 v24 = (i64)eb_value(launch, 24);
const i64 v25 = (i64)eb_value(launch, 25);
i64 v35 = 0;
i64 pass0 = 0;
__shared__ eb_plan plan4; i32 column4, nth4; {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
i64 wild = 0; const b8 proved = e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d7_0 && f0 + e0 <= d8_0 && f0 >= -EB_SMALL && f0 >= 0 && !wild; (void)wild;
const eb_deal deal = eb_share_once(1, e0, f0, 1, 0, proved, &plan4);
column4 = deal.column; nth4 = deal.nth; }
__syncthreads();
{ /* loop 0, inside its parallel loops */
const i64 begin = v24, passes = eb_extent(begin, v25);
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
i64 wild = 0;
const b8 inner = passes > 0 && eb_exact(&wild, v24, eb_sum(&wild, v24, 1)) && eb_exact(&wild, v25, eb_sum(&wild, v25, 1)) && eb_times(passes, 1) <= eb_min(t0.depth, INT32_MAX) && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d7_0 && f0 + e0 <= d8_0 && f0 == 0 && e0 == d0_0 && f0 >= 0 && !wild;
if (inner) {
eb_settle(f, &t0);
__builtin_assume(__isGlobal(a0));
__builtin_assume(__isGlobal(a1));
__builtin_assume(__isGlobal(a7));
__builtin_assume(__isGlobal(a8));
if (rows > 0 && row > 0) {
const eb_deal deal = {column4, plan4.columns, nth4, plan4.band, plan4.base, plan4.end, plan4.last};
const i64 begun = eb_first_row(deal), ended = eb_end_row(deal, begun);
if (begun < ended) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) {
for (i64 r = begun; r < ended; r++) {
const i64 v41 = f0 + column;
const nx at0 = (nx)v41;
f64 h0 = a0[at0];
const nx at1 = (nx)v41;
f64 h1 = a1[at1];
const nx at7 = (nx)v41;
f64 h7 = a7[at7];
const nx at8 = (nx)v41;
f64 h8 = a8[at8];
eb_pops<f64, 8> q0; q0.begin(t0, at0, passes * 1);
for (i64 pass = 0; pass < passes;) {
f->pass = pass; if (column == 0 && r == 0) eb_tell(f);
if (pass > 0 && eb_stopped(f)) goto exit19;
const i64 until = eb_until(pass, passes);
while (pass + 8 <= until) {
q0.ahead();
#pragma unroll
for (int nth = 0; nth < 8; nth++, pass++) { v35 = begin + pass;
h0 = q0.pop(nth);
const f64 v42 = h0;
const f64 v43 = h1;
const f64 v45 = eb_tanh_f64(v42);
const f64 v46 = (0.1 * v45);
const f64 v48 = h7;
const f64 v49 = (v48 * v43);
const f64 v50 = (v48 * v46);
const f64 v51 = (v49 * 0.1);
const f64 v53 = (v45 * v45);
const f64 v54 = (1.0 - v53);
const f64 v55 = (v51 * v54);
h8 = (h8 + v50);
h7 = (h7 + v55);
}
q0.turn();
}
#pragma unroll
for (int nth = 0; nth < 7; nth++, pass++) {
if (pass >= until) break;
v35 = begin + pass;
h0 = q0.pop(nth);
const f64 v42 = h0;
const f64 v43 = h1;
const f64 v45 = eb_tanh_f64(v42);
const f64 v46 = (0.1 * v45);
const f64 v48 = h7;
const f64 v49 = (v48 * v43);
const f64 v50 = (v48 * v46);
const f64 v51 = (v49 * 0.1);
const f64 v53 = (v45 * v45);
const f64 v54 = (1.0 - v53);
const f64 v55 = (v51 * v54);
h8 = (h8 + v50);
h7 = (h7 + v55);
}
}
a0[at0] = h0;
a7[at7] = h7;
a8[at8] = h8;
} }
exit19: ;
}
t0.depth -= passes * 1;
if (eb_barrier(f)) goto leave;
f->pass = passes; if (eb_first()) eb_tell(f);
} else {
pass0 = 0;
for (; v24 + pass0 < v25; pass0++) { v35 = v24 + pass0;
f->pass = pass0;
if (eb_pause_after(f, (u32)pass0 + 1)) goto leave;
if (t0.depth == 0) eb_fault(f, EB_TAPE, 0, 0, 0, 0);
else a0 = (f64 *)eb_exchange(f, &t0, --t0.depth, a0);
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
f64 *const g0 = eb_global(a0);
f64 *const g1 = eb_global(a1);
f64 *const g7 = eb_global(a7);
f64 *const g8 = eb_global(a8);
{
f64 *const a0 = g0;
f64 *const a1 = g1;
f64 *const a7 = g7;
f64 *const a8 = g8;
const i64 jf = f0; i64 wild = 0; (void)wild;
const eb_plan plan = plan4;
const eb_deal deal = {column4, plan.columns, nth4, plan.band, plan.base, plan.end, plan.last};
const b8 proved = plan.proved;
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
if (proved) {
const nx band = (nx)deal.band, first = (nx)deal.base + deal.nth * band, few_rows = (nx)deal.end;
const nx end = few_rows - first > band ? first + band : few_rows, few_columns = (nx)deal.last;
for (nx column = deal.column; column < few_columns; column += deal.columns) { const nx j = (nx)jf + column;
for (nx r = first; r < end; r += 1) {
{
const nx v41 = j;
__builtin_assume(v41 >= (nx)INT64_C(0));
f64 *const p13 = a0 + v41;
f64 *const p14 = a1 + v41;
f64 *const p15 = a7 + v41;
f64 *const p16 = a8 + v41;
const f64 v42 = p13[0];
const f64 v43 = __ldg(&p14[0]);
const f64 v45 = eb_tanh_f64(v42);
const f64 v46 = (0.1 * v45);
const f64 v48 = p15[0];
const f64 v49 = (v48 * v43);
const f64 v50 = (v48 * v46);
const f64 v51 = (v49 * 0.1);
const f64 v53 = (v45 * v45);
const f64 v54 = (1.0 - v53);
const f64 v55 = (v51 * v54);
const f64 old17 = p16[0];
const f64 old18 = p15[0];
p16[0] = (old17 + v50);
p15[0] = (old18 + v55);
} } }
} else {
{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first);
if (first < end) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) { const i64 j = jf + column;
for (i64 r = first; r < end; r++) {
const i64 v41 = j;
if ((u64)v41 >= (u64)d0_0) { oops = 1; oops_index = v41; oops_extent = d0_0; goto fault12; }
const f64 v42 = a0[v41];
if ((u64)v41 >= (u64)d1_0) { oops = 9; oops_index = v41; oops_extent = d1_0; goto fault12; }
const f64 v43 = __ldg(&a1[v41]);
const f64 v45 = called_eb_tanh_f64(v42);
const f64 v46 = (0.1 * v45);
if ((u64)v41 >= (u64)d7_0) { oops = 25; oops_index = v41; oops_extent = d7_0; goto fault12; }
const f64 v48 = a7[v41];
const f64 v49 = (v48 * v43);
const f64 v50 = (v48 * v46);
const f64 v51 = (v49 * 0.1);
const f64 v53 = (v45 * v45);
const f64 v54 = (1.0 - v53);
const f64 v55 = (v51 * v54);
if ((u64)v41 >= (u64)d8_0) { oops = 33; oops_index = v41; oops_extent = d8_0; goto fault12; }
a8[v41] = (a8[v41] + v50);
if ((u64)v41 >= (u64)d7_0) { oops = 25; oops_index = v41; oops_extent = d7_0; goto fault12; }
a7[v41] = (a7[v41] + v55);
} } }
}
goto exit12;
fault12: eb_out_of_bounds(f, oops, oops_index, oops_extent);
exit12: ;
if (!proved && eb_barrier(f)) goto leave;
} }
}
f->pass = pass0; if (eb_first()) eb_tell(f);
} }
leave: ;
if (f->epoch == EB_BEGIN) eb_barrier(f);
eb_close(f, &t0, 0);
if (f->thread == 0) {
eb_keep(launch);
f->shared->ended = f->shared->fault != 0;
f->data[0] = a0;
f->data[1] = a1;
f->data[7] = a7;
f->data[8] = a8;
}
EB_END(f) }

