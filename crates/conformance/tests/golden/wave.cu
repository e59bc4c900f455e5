EB_THREADS, EB_BLOCKS) segment_0(const __grid_constant__ eb_launch launch, const __grid_constant__ eb_extents extents) {
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
i64 v0 = 0;
i64 v4 = 0;
i64 v5 = 0;
i64 v6 = 0;
i64 v7 = 0;
i64 v8 = 0;
f32 v33 = 0;
i64 v34 = 0;
i64 v35 = 0;
i64 pass0 = 0;
v0 = (i64)f->scalars[0];
v4 = d0_0;
v5 = d0_1;
v6 = ((i64)((u64)v4 - (u64)INT64_C(1)));
v7 = ((i64)((u64)v5 - (u64)INT64_C(1)));
pass0 = 0;
for (; INT64_C(0) + pass0 < v0; pass0++) { v8 = INT64_C(0) + pass0;
{ /* parallel loop */
const i64 f0 = INT64_C(1), e0 = eb_extent(f0, v6);
const i64 f1 = INT64_C(1), e1 = eb_extent(f1, v7);
const i64 rows = e0, row = e1;
__builtin_assume(__isGlobal(a0));
__builtin_assume(__isGlobal(a1));
__builtin_assume(__isGlobal(a2));
if (rows > 0 && row > 0) {
const i64 jf = f1, jt = f1 + row;
i64 wild = 0;
const b8 proved = eb_difference(&wild, eb_sum(&wild, f0 + e0, eb_sum(&wild, INT64_C(1), 1)), 1) <= d0_0 && eb_difference(&wild, eb_sum(&wild, f1 + e1, eb_sum(&wild, INT64_C(1), 1)), 1) <= d0_1 && eb_difference(&wild, f0 + e0, INT64_C(1)) <= d0_0 && eb_difference(&wild, f1 + e1, INT64_C(1)) <= d0_1 && eb_sum(&wild, eb_difference(&wild, f0, eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_sum(&wild, eb_difference(&wild, f1, eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_sum(&wild, f0, INT64_C(1)) >= 0 && eb_sum(&wild, f1, INT64_C(1)) >= 0 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d2_0 && f0 >= 0 && f1 + e1 <= d0_1 && f1 + e1 <= d1_1 && f1 + e1 <= d2_1 && f1 >= 0 && !wild;
const eb_deal deal = eb_share(f, rows, row);
for (i64 column = deal.column; column < row; column += deal.columns) {
const i64 j = jf + column;
for (i64 r = deal.row; r < rows; r += deal.rows) {
const i64 v9 = f0 + r;
const i64 v10 = j;
if (proved) {
const i64 v11 = ((i64)((u64)v9 - (u64)INT64_C(1)));
const i64 v12 = ((i64)((u64)v9 + (u64)INT64_C(1)));
const i64 v13 = ((i64)((u64)v10 - (u64)INT64_C(1)));
const i64 v14 = ((i64)((u64)v10 + (u64)INT64_C(1)));
const f32 v15 = a0[((ix)v9 * (ix)d0_1 + (ix)v10)];
const f32 v16 = a0[((ix)v11 * (ix)d0_1 + (ix)v10)];
const f32 v17 = a0[((ix)v12 * (ix)d0_1 + (ix)v10)];
const f32 v18 = a0[((ix)v9 * (ix)d0_1 + (ix)v13)];
const f32 v19 = a0[((ix)v9 * (ix)d0_1 + (ix)v14)];
const f32 v20 = (v16 + v17);
const f32 v21 = (v20 + v18);
const f32 v22 = (v21 + v19);
const f32 v25 = (4.0f * v15);
const f32 v26 = (v22 - v25);
const f32 v27 = __ldg(&a2[((ix)v9 * (ix)d2_1 + (ix)v10)]);
const f32 v28 = (v27 * v26);
const f32 v29 = a1[((ix)v9 * (ix)d1_1 + (ix)v10)];
const f32 v30 = (2.0f * v15);
const f32 v31 = (v30 - v29);
const f32 v32 = (v31 + v28);
a1[((ix)v9 * (ix)d1_1 + (ix)v10)] = v32;
} else {
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
const i64 v11 = ((i64)((u64)v9 - (u64)INT64_C(1)));
const i64 v12 = ((i64)((u64)v9 + (u64)INT64_C(1)));
const i64 v13 = ((i64)((u64)v10 - (u64)INT64_C(1)));
const i64 v14 = ((i64)((u64)v10 + (u64)INT64_C(1)));
b8 ok2 = 1;
if ((u64)v9 >= (u64)d0_0) { ok2 = 0; if (!oops) { oops = 1; oops_index = v9; oops_extent = d0_0; } }
if ((u64)v10 >= (u64)d0_1) { ok2 = 0; if (!oops) { oops = 2; oops_index = v10; oops_extent = d0_1; } }
const f32 v15 = ok2 ? a0[(v9 * d0_1 + v10)] : (f32)1;
b8 ok3 = 1;
if ((u64)v11 >= (u64)d0_0) { ok3 = 0; if (!oops) { oops = 1; oops_index = v11; oops_extent = d0_0; } }
if ((u64)v10 >= (u64)d0_1) { ok3 = 0; if (!oops) { oops = 2; oops_index = v10; oops_extent = d0_1; } }
const f32 v16 = ok3 ? a0[(v11 * d0_1 + v10)] : (f32)1;
b8 ok4 = 1;
if ((u64)v12 >= (u64)d0_0) { ok4 = 0; if (!oops) { oops = 1; oops_index = v12; oops_extent = d0_0; } }
if ((u64)v10 >= (u64)d0_1) { ok4 = 0; if (!oops) { oops = 2; oops_index = v10; oops_extent = d0_1; } }
const f32 v17 = ok4 ? a0[(v12 * d0_1 + v10)] : (f32)1;
b8 ok5 = 1;
if ((u64)v9 >= (u64)d0_0) { ok5 = 0; if (!oops) { oops = 1; oops_index = v9; oops_extent = d0_0; } }
if ((u64)v13 >= (u64)d0_1) { ok5 = 0; if (!oops) { oops = 2; oops_index = v13; oops_extent = d0_1; } }
const f32 v18 = ok5 ? a0[(v9 * d0_1 + v13)] : (f32)1;
b8 ok6 = 1;
if ((u64)v9 >= (u64)d0_0) { ok6 = 0; if (!oops) { oops = 1; oops_index = v9; oops_extent = d0_0; } }
if ((u64)v14 >= (u64)d0_1) { ok6 = 0; if (!oops) { oops = 2; oops_index = v14; oops_extent = d0_1; } }
const f32 v19 = ok6 ? a0[(v9 * d0_1 + v14)] : (f32)1;
const f32 v20 = (v16 + v17);
const f32 v21 = (v20 + v18);
const f32 v22 = (v21 + v19);
const f32 v25 = (4.0f * v15);
const f32 v26 = (v22 - v25);
b8 ok7 = 1;
if ((u64)v9 >= (u64)d2_0) { ok7 = 0; if (!oops) { oops = 9; oops_index = v9; oops_extent = d2_0; } }
if ((u64)v10 >= (u64)d2_1) { ok7 = 0; if (!oops) { oops = 10; oops_index = v10; oops_extent = d2_1; } }
const f32 v27 = ok7 ? __ldg(&a2[(v9 * d2_1 + v10)]) : (f32)1;
const f32 v28 = (v27 * v26);
b8 ok8 = 1;
if ((u64)v9 >= (u64)d1_0) { ok8 = 0; if (!oops) { oops = 17; oops_index = v9; oops_extent = d1_0; } }
if ((u64)v10 >= (u64)d1_1) { ok8 = 0; if (!oops) { oops = 18; oops_index = v10; oops_extent = d1_1; } }
const f32 v29 = ok8 ? a1[(v9 * d1_1 + v10)] : (f32)1;
const f32 v30 = (2.0f * v15);
const f32 v31 = (v30 - v29);
const f32 v32 = (v31 + v28);
b8 ok9 = 1;
if ((u64)v9 >= (u64)d1_0) { ok9 = 0; if (!oops) { oops = 17; oops_index = v9; oops_extent = d1_0; } }
if ((u64)v10 >= (u64)d1_1) { ok9 = 0; if (!oops) { oops = 18; oops_index = v10; oops_extent = d1_1; } }
if (ok9 && !oops)
a1[(v9 * d1_1 + v10)] = v32;
if (oops) { eb_out_of_bounds(f, oops, oops_index, oops_extent); goto exit1; }
}
} }
exit1: ;
}
if (eb_barrier(f)) goto leave;
}
if (d0_0 != d1_0 || d0_1 != d1_1) { eb_fault(f, EB_SHAPES, 0, 1, 0, 0); eb_barrier(f); goto leave; }
{ f32 *t = a0; a0 = a1; a1 = t; }
if ((u64)v8 >= (u64)d3_0) { eb_fault(f, EB_BOUNDS, 3, 0, v8, d3_0); eb_barrier(f); goto leave; }
v33 = a3[v8];
if (INT64_C(2) == 0) eb_fault(f, EB_DIVISION, 4, 0, 0, 0);
if (INT64_C(2) == 0) { eb_barrier(f); goto leave; }
v34 = eb_div_i64(v4, INT64_C(2));
if (INT64_C(2) == 0) eb_fault(f, EB_DIVISION, 4, 0, 0, 0);
if (INT64_C(2) == 0) { eb_barrier(f); goto leave; }
v35 = eb_div_i64(v5, INT64_C(2));
if ((u64)v34 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 0, 0, v34, d0_0); eb_barrier(f); goto leave; }
if ((u64)v35 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 0, 1, v35, d0_1); eb_barrier(f); goto leave; }
if (f->thread == 0) a0[(v34 * d0_1 + v35)] = (a0[(v34 * d0_1 + v35)] + v33);
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v5);
const i64 rows = 1, row = e0;
if (eb_barrier(f)) goto leave;
__builtin_assume(__isGlobal(a0));
__builtin_assume(__isGlobal(a4));
if (rows > 0 && row > 0) {
const i64 jf = f0, jt = f0 + row;
i64 wild = 0;
const b8 proved = INT64_C(2) >= 0 && eb_sum(&wild, INT64_C(2), 1) <= d0_0 && eb_sum(&wild, v8, 1) <= d4_0 && f0 + e0 <= d0_1 && f0 + e0 <= d4_1 && f0 >= 0 && v8 >= 0 && !wild;
const eb_deal deal = eb_share(f, rows, row);
for (i64 column = deal.column; column < row; column += deal.columns) {
const i64 j = jf + column;
for (i64 r = deal.row; r < rows; r += deal.rows) {
const i64 v36 = j;
if (proved) {
const f32 v37 = a0[((ix)INT64_C(2) * (ix)d0_1 + (ix)v36)];
a4[((ix)v8 * (ix)d4_1 + (ix)v36)] = v37;
} else {
i32 oops = 0; i64 oops_index = 0, oops_extent = 0;
b8 ok11 = 1;
if ((u64)INT64_C(2) >= (u64)d0_0) { ok11 = 0; if (!oops) { oops = 1; oops_index = INT64_C(2); oops_extent = d0_0; } }
if ((u64)v36 >= (u64)d0_1) { ok11 = 0; if (!oops) { oops = 2; oops_index = v36; oops_extent = d0_1; } }
const f32 v37 = ok11 ? a0[(INT64_C(2) * d0_1 + v36)] : (f32)1;
b8 ok12 = 1;
if ((u64)v8 >= (u64)d4_0) { ok12 = 0; if (!oops) { oops = 41; oops_index = v8; oops_extent = d4_0; } }
if ((u64)v36 >= (u64)d4_1) { ok12 = 0; if (!oops) { oops = 42; oops_index = v36; oops_extent = d4_1; } }
if (ok12 && !oops)
a4[(v8 * d4_1 + v36)] = v37;
if (oops) { eb_out_of_bounds(f, oops, oops_index, oops_extent); goto exit10; }
}
} }
exit10: ;
}
if (eb_barrier(f)) goto leave;
}
}
leave: ;
if (f->epoch == 0) eb_barrier(f);
if (f->thread == 0) {
for (int k = 0; k < launch.patches; k++) f->values[launch.patched[k]] = launch.patch[k];
f->shared->ended = f->shared->fault != 0;
f->data[0] = a0;
f->data[1] = a1;
f->data[2] = a2;
f->data[3] = a3;
f->data[4] = a4;
}
eb_leave(f); }

