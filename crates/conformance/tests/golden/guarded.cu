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
const i64 d3_1 = extents.of[13];
i64 v0 = (i64)f->scalars[0];
i64 v3 = d0_0;
i64 v4 = d0_1;
i64 v5 = eb_index_sub(d0_0, INT64_C(1));
i64 v6 = eb_index_sub(d0_1, INT64_C(1));
f32 v8 = 0;
i64 v9 = 0;
i64 pass0 = 0;
__shared__ eb_plan plan0; i32 column0, nth0; {
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, d0_0);
const i64 f1 = INT64_C(0), e1 = eb_extent(f1, d0_1);
i64 wild = 0; const b8 proved = INT64_C(7) <= d2_1 && e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && e1 <= EB_SMALL && e1 <= EB_SMALL - f1 && eb_difference(&wild, eb_tame(&wild, v5), INT64_C(1)) <= d1_0 && eb_sum(&wild, INT64_C(3), 1) <= d2_0 && eb_sum(&wild, eb_difference(&wild, INT64_C(1), eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_tame(&wild, v5) <= d1_0 && eb_tame(&wild, v5) <= d2_0 && eb_tame(&wild, v5) <= d3_0 && eb_tame(&wild, v6) <= d1_1 && eb_tame(&wild, v6) <= d2_1 && eb_tame(&wild, v6) <= d3_1 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d2_0 && f0 >= -EB_SMALL && f0 >= 0 && f1 + e1 <= d0_1 && f1 + e1 <= d1_1 && f1 + e1 <= d2_1 && f1 >= -EB_SMALL && f1 >= 0 && !wild; (void)wild;
const eb_deal deal = eb_share_once(eb_times(1, e0), e1, f1, 1, 0, proved, &plan0);
column0 = deal.column; nth0 = deal.nth; }
__shared__ nx bound5; if (threadIdx.x == 0) bound5 = eb_narrow(eb_index_sub(d0_0, INT64_C(1)));
__shared__ nx bound6; if (threadIdx.x == 0) bound6 = eb_narrow(eb_index_sub(d0_1, INT64_C(1)));
const i32 unlike = eb_kept(d1_0 != d2_0 || d1_1 != d2_1);
__syncthreads();
v0 = (i64)f->scalars[0];
v3 = d0_0;
v4 = d0_1;
v5 = eb_index_sub(v3, INT64_C(1));
v6 = eb_index_sub(v4, INT64_C(1));
v8 = ((f32)0.5);
if (__builtin_expect(v0 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
pass0 = 0;
for (; INT64_C(0) + pass0 < v0; pass0++) { v9 = INT64_C(0) + pass0;
f->pass = pass0;
if (EB_NEAR) if (eb_pause_after(f, (u32)pass0 + 1)) goto leave;
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v3);
const i64 f1 = INT64_C(0), e1 = eb_extent(f1, v4);
const i64 rows = e0, row = e1;
if (eb_barrier(f)) goto leave;
f32 *const g0 = eb_global(a0);
f32 *const g1 = eb_global(a1);
f32 *const g2 = eb_global(a2);
f32 *const g3 = eb_global(a3);
{
f32 *const a0 = g0;
f32 *const a1 = g1;
f32 *const a2 = g2;
f32 *const a3 = g3;
const i64 jf = f1; i64 wild = 0; (void)wild;
const eb_plan plan = plan0;
const eb_deal deal = {column0, plan.columns, nth0, plan.band, plan.base, plan.end, plan.last};
const b8 proved = plan.proved;
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
if (proved) {
const nx n5 = bound5;
const nx n6 = bound6;
const nx band = (nx)deal.band, first = (nx)deal.base + deal.nth * band, few_rows = (nx)deal.end;
const nx end = few_rows - first > band ? first + band : few_rows, few_columns = (nx)deal.last;
for (nx column = deal.column; column < few_columns; column += deal.columns) { const nx j = (nx)jf + column;
for (nx r = first; r < end; r += 1) {
{
const nx v10 = (nx)f0 + r;
const nx v11 = j;
__builtin_assume(v10 >= (nx)INT64_C(0));
__builtin_assume(v11 >= (nx)INT64_C(0));
{
const b8 v18 = (v10 >= (nx)INT64_C(1));
const b8 v19 = (v10 < n5);
const b8 v20 = (v18 & v19);
const b8 v21 = (v11 >= (nx)INT64_C(1));
const b8 v22 = (v11 < n6);
const b8 v23 = (v21 & v22);
const b8 v24 = (v20 & v23);
const nx v32 = (v10 + (nx)INT64_C(1));
const b8 v34 = (v32 >= (nx)INT64_C(1));
const b8 v35 = (v32 < n5);
const b8 v36 = (v34 & v35);
const b8 v40 = (v36 & v23);
const nx v48 = (v10 + (nx)(INT64_C(-1)));
const b8 v50 = (v48 >= (nx)INT64_C(1));
const b8 v51 = (v48 < n5);
const b8 v52 = (v50 & v51);
const b8 v56 = (v52 & v23);
const nx v65 = (v11 + (nx)INT64_C(1));
const b8 v69 = (v65 >= (nx)INT64_C(1));
const b8 v70 = (v65 < n6);
const b8 v71 = (v69 & v70);
const b8 v72 = (v20 & v71);
const nx v81 = (v11 + (nx)(INT64_C(-1)));
const b8 v85 = (v81 >= (nx)INT64_C(1));
const b8 v86 = (v81 < n6);
const b8 v87 = (v85 & v86);
const b8 v88 = (v20 & v87);
const b8 v104 = (v36 & v87);
const b8 v122 = (v10 == (nx)INT64_C(3));
const b8 v125 = (v11 < (nx)INT64_C(7));
if (__all_sync(__activemask(), v24 && v40 && v56 && v72 && v88 && v104 && !v122 && !v125)) {
const nx s0_1 = eb_stride(d0_1);
f32 *const p18 = a0 + (v10 * s0_1 + v11);
const nx s1_1 = eb_stride(d1_1);
f32 *const p19 = a1 + ((v10 + -1) * s1_1 + v11);
const nx s2_1 = eb_stride(d2_1);
f32 *const p20 = a2 + (v10 * s2_1 + v11);
const nx s3_1 = eb_stride(d3_1);
f32 *const p21 = a3 + ((v10 + 1) * s3_1 + (v11 + -1));
f32 l0 = 0.0f;
const b8 v18 = (v10 >= (nx)INT64_C(1));
const b8 v19 = (v10 < n5);
const b8 v20 = (v18 & v19);
const b8 v21 = (v11 >= (nx)INT64_C(1));
const b8 v22 = (v11 < n6);
const b8 v23 = (v21 & v22);
const b8 v24 = (v20 & v23);
const f32 v25 = p19[s1_1];
const f32 v26 = __ldg(&p21[-s3_1 + 1]);
const f32 v27 = (v25 * v26);
const f32 v28 = l0;
const f32 v29 = (v28 + v27);
l0 = v29;
const nx v32 = (v10 + (nx)INT64_C(1));
const b8 v34 = (v32 >= (nx)INT64_C(1));
const b8 v35 = (v32 < n5);
const b8 v36 = (v34 & v35);
const b8 v40 = (v36 & v23);
const f32 v41 = p19[(2) * s1_1];
const f32 v42 = __ldg(&p21[1]);
const f32 v43 = (v41 * v42);
const f32 v44 = l0;
const f32 v45 = (v44 + v43);
l0 = v45;
const nx v48 = (v10 + (nx)(INT64_C(-1)));
const b8 v50 = (v48 >= (nx)INT64_C(1));
const b8 v51 = (v48 < n5);
const b8 v52 = (v50 & v51);
const b8 v56 = (v52 & v23);
const f32 v57 = p19[0];
const f32 v58 = __ldg(&p21[(-2) * s3_1 + 1]);
const f32 v59 = (v57 * v58);
const f32 v60 = l0;
const f32 v61 = (v60 + v59);
l0 = v61;
const nx v65 = (v11 + (nx)INT64_C(1));
const b8 v69 = (v65 >= (nx)INT64_C(1));
const b8 v70 = (v65 < n6);
const b8 v71 = (v69 & v70);
const b8 v72 = (v20 & v71);
const f32 v73 = p19[s1_1 + 1];
const f32 v74 = __ldg(&p21[-s3_1 + 2]);
const f32 v75 = (v73 * v74);
const f32 v76 = l0;
const f32 v77 = (v76 + v75);
l0 = v77;
const nx v81 = (v11 + (nx)(INT64_C(-1)));
const b8 v85 = (v81 >= (nx)INT64_C(1));
const b8 v86 = (v81 < n6);
const b8 v87 = (v85 & v86);
const b8 v88 = (v20 & v87);
const f32 v89 = p19[s1_1 + -1];
const f32 v90 = __ldg(&p21[-s3_1]);
const f32 v91 = (v89 * v90);
const f32 v92 = l0;
const f32 v93 = (v92 + v91);
l0 = v93;
const b8 v104 = (v36 & v87);
const f32 v105 = p19[(2) * s1_1 + -1];
const f32 v106 = __ldg(&p21[0]);
const f32 v107 = (v105 * v106);
const f32 v108 = l0;
const f32 v109 = (v108 + v107);
l0 = v109;
const f32 v110 = l0;
const nx v118 = (v10 - (nx)INT64_C(1));
const f32 v119 = p19[0];
const f32 v120 = (v119 * v8);
const b8 v122 = (v10 == (nx)INT64_C(3));
const b8 v125 = (v11 < (nx)INT64_C(7));
const f32 old22 = p18[0];
p18[0] = (old22 + v110);
p20[0] = v120;
} else {
const nx s0_1 = eb_stride(d0_1);
f32 *const p2 = a0 + (v10 * s0_1 + v11);
f32 l0 = 0.0f;
const b8 v18 = (v10 >= (nx)INT64_C(1));
const b8 v19 = (v10 < n5);
const b8 v20 = (v18 & v19);
const b8 v21 = (v11 >= (nx)INT64_C(1));
const b8 v22 = (v11 < n6);
const b8 v23 = (v21 & v22);
const b8 v24 = (v20 & v23);
const b8 m3 = v24;
const f32 v25 = m3 ? a1[((nx)v10 * (nx)d1_1 + (nx)v11)] : (f32)1;
const f32 v26 = m3 ? __ldg(&a3[((nx)v10 * (nx)d3_1 + (nx)v11)]) : (f32)1;
const f32 v27 = (v25 * v26);
const f32 v28 = l0;
const f32 v29 = (v28 + v27);
l0 = (m3 ? v29 : l0);
const nx v32 = (v10 + (nx)INT64_C(1));
const b8 v34 = (v32 >= (nx)INT64_C(1));
const b8 v35 = (v32 < n5);
const b8 v36 = (v34 & v35);
const b8 v40 = (v36 & v23);
const b8 m4 = v40;
const f32 v41 = m4 ? a1[((nx)v32 * (nx)d1_1 + (nx)v11)] : (f32)1;
const f32 v42 = m4 ? __ldg(&a3[((nx)v32 * (nx)d3_1 + (nx)v11)]) : (f32)1;
const f32 v43 = (v41 * v42);
const f32 v44 = l0;
const f32 v45 = (v44 + v43);
l0 = (m4 ? v45 : l0);
const nx v48 = (v10 + (nx)(INT64_C(-1)));
const b8 v50 = (v48 >= (nx)INT64_C(1));
const b8 v51 = (v48 < n5);
const b8 v52 = (v50 & v51);
const b8 v56 = (v52 & v23);
const b8 m5 = v56;
const f32 v57 = m5 ? a1[((nx)v48 * (nx)d1_1 + (nx)v11)] : (f32)1;
const f32 v58 = m5 ? __ldg(&a3[((nx)v48 * (nx)d3_1 + (nx)v11)]) : (f32)1;
const f32 v59 = (v57 * v58);
const f32 v60 = l0;
const f32 v61 = (v60 + v59);
l0 = (m5 ? v61 : l0);
const nx v65 = (v11 + (nx)INT64_C(1));
const b8 v69 = (v65 >= (nx)INT64_C(1));
const b8 v70 = (v65 < n6);
const b8 v71 = (v69 & v70);
const b8 v72 = (v20 & v71);
const b8 m6 = v72;
const f32 v73 = m6 ? a1[((nx)v10 * (nx)d1_1 + (nx)v65)] : (f32)1;
const f32 v74 = m6 ? __ldg(&a3[((nx)v10 * (nx)d3_1 + (nx)v65)]) : (f32)1;
const f32 v75 = (v73 * v74);
const f32 v76 = l0;
const f32 v77 = (v76 + v75);
l0 = (m6 ? v77 : l0);
const nx v81 = (v11 + (nx)(INT64_C(-1)));
const b8 v85 = (v81 >= (nx)INT64_C(1));
const b8 v86 = (v81 < n6);
const b8 v87 = (v85 & v86);
const b8 v88 = (v20 & v87);
const b8 m7 = v88;
const f32 v89 = m7 ? a1[((nx)v10 * (nx)d1_1 + (nx)v81)] : (f32)1;
const f32 v90 = m7 ? __ldg(&a3[((nx)v10 * (nx)d3_1 + (nx)v81)]) : (f32)1;
const f32 v91 = (v89 * v90);
const f32 v92 = l0;
const f32 v93 = (v92 + v91);
l0 = (m7 ? v93 : l0);
const b8 v104 = (v36 & v87);
const b8 m8 = v104;
const f32 v105 = m8 ? a1[((nx)v32 * (nx)d1_1 + (nx)v81)] : (f32)1;
const f32 v106 = m8 ? __ldg(&a3[((nx)v32 * (nx)d3_1 + (nx)v81)]) : (f32)1;
const f32 v107 = (v105 * v106);
const f32 v108 = l0;
const f32 v109 = (v108 + v107);
l0 = (m8 ? v109 : l0);
const f32 v110 = l0;
const b8 m9 = v24;
const nx v118 = (v10 - (nx)INT64_C(1));
const f32 v119 = m9 ? a1[((nx)v118 * (nx)d1_1 + (nx)v11)] : (f32)1;
const f32 v120 = (v119 * v8);
const b8 v122 = (v10 == (nx)INT64_C(3));
const b8 m10 = (m9 && v122);
const f32 old13 = p2[0];
p2[0] = (old13 + v110);
if (m9) a2[((nx)v10 * (nx)d2_1 + (nx)v11)] = v120;
const b8 m11 = (!v24);
const f32 v123 = m11 ? a1[((nx)v10 * (nx)d1_1 + (nx)v11)] : (f32)1;
const b8 v125 = (v11 < (nx)INT64_C(7));
const b8 m12 = v125;
const f32 old15 = m10 ? a2[((nx)v10 * (nx)d2_1 + (nx)v11)] : (f32)1;
if (m10) a2[((nx)v10 * (nx)d2_1 + (nx)v11)] = (old15 + v8);
if (m11) a2[((nx)v10 * (nx)d2_1 + (nx)v11)] = v123;
const f32 old17 = m12 ? a2[((nx)v10 * (nx)d2_1 + (nx)v11)] : (f32)1;
if (m12) a2[((nx)v10 * (nx)d2_1 + (nx)v11)] = eb_max_f32(old17, v8);
}
}
} } }
} else {
{ const i64 first = eb_first_row(deal), end = eb_end_row(deal, first);
if (first < end) for (i64 column = deal.column; column < deal.last; column = eb_next(column, deal)) { const i64 j = jf + column;
for (i64 r = first; r < end; r++) {
const i64 v10 = (i64)f0 + r;
const i64 v11 = j;
f32 l0 = 0.0f;
const b8 v18 = (v10 >= INT64_C(1));
const b8 v19 = (v10 < v5);
const b8 v20 = (v18 & v19);
const b8 v21 = (v11 >= INT64_C(1));
const b8 v22 = (v11 < v6);
const b8 v23 = (v21 & v22);
const b8 v24 = (v20 & v23);
if (v24) {
if ((u64)v10 >= (u64)d1_0) { oops = 9; oops_index = v10; oops_extent = d1_0; goto fault1; }
if ((u64)v11 >= (u64)d1_1) { oops = 10; oops_index = v11; oops_extent = d1_1; goto fault1; }
const f32 v25 = a1[(v10 * d1_1 + v11)];
if ((u64)v10 >= (u64)d3_0) { oops = 17; oops_index = v10; oops_extent = d3_0; goto fault1; }
if ((u64)v11 >= (u64)d3_1) { oops = 18; oops_index = v11; oops_extent = d3_1; goto fault1; }
const f32 v26 = __ldg(&a3[(v10 * d3_1 + v11)]);
const f32 v27 = (v25 * v26);
const f32 v28 = l0;
const f32 v29 = (v28 + v27);
l0 = v29;
}
const i64 v32 = eb_index_add(v10, INT64_C(1));
const b8 v34 = (v32 >= INT64_C(1));
const b8 v35 = (v32 < v5);
const b8 v36 = (v34 & v35);
const b8 v40 = (v36 & v23);
if (v40) {
if ((u64)v32 >= (u64)d1_0) { oops = 9; oops_index = v32; oops_extent = d1_0; goto fault1; }
if ((u64)v11 >= (u64)d1_1) { oops = 10; oops_index = v11; oops_extent = d1_1; goto fault1; }
const f32 v41 = a1[(v32 * d1_1 + v11)];
if ((u64)v32 >= (u64)d3_0) { oops = 17; oops_index = v32; oops_extent = d3_0; goto fault1; }
if ((u64)v11 >= (u64)d3_1) { oops = 18; oops_index = v11; oops_extent = d3_1; goto fault1; }
const f32 v42 = __ldg(&a3[(v32 * d3_1 + v11)]);
const f32 v43 = (v41 * v42);
const f32 v44 = l0;
const f32 v45 = (v44 + v43);
l0 = v45;
}
const i64 v48 = eb_index_add(v10, (INT64_C(-1)));
const b8 v50 = (v48 >= INT64_C(1));
const b8 v51 = (v48 < v5);
const b8 v52 = (v50 & v51);
const b8 v56 = (v52 & v23);
if (v56) {
if ((u64)v48 >= (u64)d1_0) { oops = 9; oops_index = v48; oops_extent = d1_0; goto fault1; }
if ((u64)v11 >= (u64)d1_1) { oops = 10; oops_index = v11; oops_extent = d1_1; goto fault1; }
const f32 v57 = a1[(v48 * d1_1 + v11)];
if ((u64)v48 >= (u64)d3_0) { oops = 17; oops_index = v48; oops_extent = d3_0; goto fault1; }
if ((u64)v11 >= (u64)d3_1) { oops = 18; oops_index = v11; oops_extent = d3_1; goto fault1; }
const f32 v58 = __ldg(&a3[(v48 * d3_1 + v11)]);
const f32 v59 = (v57 * v58);
const f32 v60 = l0;
const f32 v61 = (v60 + v59);
l0 = v61;
}
const i64 v65 = eb_index_add(v11, INT64_C(1));
const b8 v69 = (v65 >= INT64_C(1));
const b8 v70 = (v65 < v6);
const b8 v71 = (v69 & v70);
const b8 v72 = (v20 & v71);
if (v72) {
if ((u64)v10 >= (u64)d1_0) { oops = 9; oops_index = v10; oops_extent = d1_0; goto fault1; }
if ((u64)v65 >= (u64)d1_1) { oops = 10; oops_index = v65; oops_extent = d1_1; goto fault1; }
const f32 v73 = a1[(v10 * d1_1 + v65)];
if ((u64)v10 >= (u64)d3_0) { oops = 17; oops_index = v10; oops_extent = d3_0; goto fault1; }
if ((u64)v65 >= (u64)d3_1) { oops = 18; oops_index = v65; oops_extent = d3_1; goto fault1; }
const f32 v74 = __ldg(&a3[(v10 * d3_1 + v65)]);
const f32 v75 = (v73 * v74);
const f32 v76 = l0;
const f32 v77 = (v76 + v75);
l0 = v77;
}
const i64 v81 = eb_index_add(v11, (INT64_C(-1)));
const b8 v85 = (v81 >= INT64_C(1));
const b8 v86 = (v81 < v6);
const b8 v87 = (v85 & v86);
const b8 v88 = (v20 & v87);
if (v88) {
if ((u64)v10 >= (u64)d1_0) { oops = 9; oops_index = v10; oops_extent = d1_0; goto fault1; }
if ((u64)v81 >= (u64)d1_1) { oops = 10; oops_index = v81; oops_extent = d1_1; goto fault1; }
const f32 v89 = a1[(v10 * d1_1 + v81)];
if ((u64)v10 >= (u64)d3_0) { oops = 17; oops_index = v10; oops_extent = d3_0; goto fault1; }
if ((u64)v81 >= (u64)d3_1) { oops = 18; oops_index = v81; oops_extent = d3_1; goto fault1; }
const f32 v90 = __ldg(&a3[(v10 * d3_1 + v81)]);
const f32 v91 = (v89 * v90);
const f32 v92 = l0;
const f32 v93 = (v92 + v91);
l0 = v93;
}
const b8 v104 = (v36 & v87);
if (v104) {
if ((u64)v32 >= (u64)d1_0) { oops = 9; oops_index = v32; oops_extent = d1_0; goto fault1; }
if ((u64)v81 >= (u64)d1_1) { oops = 10; oops_index = v81; oops_extent = d1_1; goto fault1; }
const f32 v105 = a1[(v32 * d1_1 + v81)];
if ((u64)v32 >= (u64)d3_0) { oops = 17; oops_index = v32; oops_extent = d3_0; goto fault1; }
if ((u64)v81 >= (u64)d3_1) { oops = 18; oops_index = v81; oops_extent = d3_1; goto fault1; }
const f32 v106 = __ldg(&a3[(v32 * d3_1 + v81)]);
const f32 v107 = (v105 * v106);
const f32 v108 = l0;
const f32 v109 = (v108 + v107);
l0 = v109;
}
const f32 v110 = l0;
if ((u64)v10 >= (u64)d0_0) { oops = 25; oops_index = v10; oops_extent = d0_0; goto fault1; }
if ((u64)v11 >= (u64)d0_1) { oops = 26; oops_index = v11; oops_extent = d0_1; goto fault1; }
a0[(v10 * d0_1 + v11)] = (a0[(v10 * d0_1 + v11)] + v110);
if (v24) {
const i64 v118 = eb_index_sub(v10, INT64_C(1));
if ((u64)v118 >= (u64)d1_0) { oops = 9; oops_index = v118; oops_extent = d1_0; goto fault1; }
if ((u64)v11 >= (u64)d1_1) { oops = 10; oops_index = v11; oops_extent = d1_1; goto fault1; }
const f32 v119 = a1[(v118 * d1_1 + v11)];
const f32 v120 = (v119 * v8);
if ((u64)v10 >= (u64)d2_0) { oops = 33; oops_index = v10; oops_extent = d2_0; goto fault1; }
if ((u64)v11 >= (u64)d2_1) { oops = 34; oops_index = v11; oops_extent = d2_1; goto fault1; }
a2[(v10 * d2_1 + v11)] = v120;
const b8 v122 = (v10 == INT64_C(3));
if (v122) {
if ((u64)v10 >= (u64)d2_0) { oops = 33; oops_index = v10; oops_extent = d2_0; goto fault1; }
if ((u64)v11 >= (u64)d2_1) { oops = 34; oops_index = v11; oops_extent = d2_1; goto fault1; }
a2[(v10 * d2_1 + v11)] = (a2[(v10 * d2_1 + v11)] + v8);
}
} else {
if ((u64)v10 >= (u64)d1_0) { oops = 9; oops_index = v10; oops_extent = d1_0; goto fault1; }
if ((u64)v11 >= (u64)d1_1) { oops = 10; oops_index = v11; oops_extent = d1_1; goto fault1; }
const f32 v123 = a1[(v10 * d1_1 + v11)];
if ((u64)v10 >= (u64)d2_0) { oops = 33; oops_index = v10; oops_extent = d2_0; goto fault1; }
if ((u64)v11 >= (u64)d2_1) { oops = 34; oops_index = v11; oops_extent = d2_1; goto fault1; }
a2[(v10 * d2_1 + v11)] = v123;
}
const b8 v125 = (v11 < INT64_C(7));
if (v125) {
if ((u64)v10 >= (u64)d2_0) { oops = 33; oops_index = v10; oops_extent = d2_0; goto fault1; }
if ((u64)v11 >= (u64)d2_1) { oops = 34; oops_index = v11; oops_extent = d2_1; goto fault1; }
a2[(v10 * d2_1 + v11)] = eb_max_f32(a2[(v10 * d2_1 + v11)], v8);
}
} } }
}
goto exit1;
fault1: eb_out_of_bounds(f, oops, oops_index, oops_extent);
exit1: ;
if (!proved && eb_barrier(f)) goto leave;
} }
if (unlike && (d1_0 != d2_0 || d1_1 != d2_1)) { eb_fault(f, EB_SHAPES, 1, 2, 0, 0); eb_barrier(f); goto leave; }
{ f32 *t = a1; a1 = a2; a2 = t; }
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
}
EB_END(f) }

