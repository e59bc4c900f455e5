0(eb_frame *f) {
f32 *a0 = (f32 *)f->data[0];
const i64 d0_0 = eb_of_array(f->shape[0]);
const i64 d0_1 = eb_of_array(f->shape[1]);
f32 *a1 = (f32 *)f->data[1];
const i64 d1_0 = eb_of_array(f->shape[4]);
const i64 d1_1 = eb_of_array(f->shape[5]);
f32 *a2 = (f32 *)f->data[2];
const i64 d2_0 = eb_of_array(f->shape[8]);
const i64 d2_1 = eb_of_array(f->shape[9]);
f32 *a3 = (f32 *)f->data[3];
const i64 d3_0 = eb_of_array(f->shape[12]);
f32 *a4 = (f32 *)f->data[4];
const i64 d4_0 = eb_of_array(f->shape[16]);
const i64 d4_1 = eb_of_array(f->shape[17]);
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
v0 = (i64)f->scalars[0];
v4 = d0_0;
v5 = d0_1;
v6 = eb_index_sub(v4, INT64_C(1));
v7 = eb_index_sub(v5, INT64_C(1));
if (__builtin_expect(v0 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
pass0 = 0;
for (; INT64_C(0) + pass0 < v0; pass0++) { v8 = INT64_C(0) + pass0;
if (f->thread == 0) eb_tell(f, pass0);
if (eb_pause(f)) goto leave;
if (__builtin_expect(v6 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
if (__builtin_expect(v7 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
{ /* parallel loop */
const i64 f0 = INT64_C(1), e0 = eb_extent(f0, v6);
const i64 f1 = INT64_C(1), e1 = eb_extent(f1, v7);
const i64 rows = e0, row = e1;
const int split = eb_split(f, rows, row, 22.0);
const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;
if ((split || f->thread == 0) && rows > 0 && row > 0) {
const i64 first = eb_share(rows, part, parts), jf = f1; i64 end = eb_share(rows, part + 1, parts), jt = f1 + row;
int alike = 1;
for (int corner = 0; corner < 2; corner++) {
const i64 v9 = corner >> 0 & 1 ? f0 + e0 - 1 : f0;
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f1);
const i64 v11 = eb_index_sub(v9, INT64_C(1));
const i64 v12 = eb_index_add(v9, INT64_C(1));
if (eb_tame(&wild, v9) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, v9))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v11) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, v11))) < 0) hi = lo;
if (eb_tame(&wild, v12) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, v12))) < 0) hi = lo;
lo = eb_max(lo, -eb_tame(&wild, eb_difference(&wild, 0, INT64_C(1)))); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - eb_tame(&wild, eb_difference(&wild, 0, INT64_C(1))))) + 1);
lo = eb_max(lo, -eb_tame(&wild, INT64_C(1))); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - eb_tame(&wild, INT64_C(1)))) + 1);
if (eb_tame(&wild, v9) < 0) hi = lo; if (eb_tame(&wild, (d2_0 - 1 - eb_tame(&wild, v9))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d2_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v9) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v9))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_1 - 1 - 0)) + 1);
if (__builtin_expect(wild, 0)) hi = lo;
alike &= !wild && lo <= jf && hi >= jt; }
for (i64 r = first; r < end; r++) {
const i64 v9 = (i64)f0 + r;
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f1);
const i64 v11 = eb_index_sub(v9, INT64_C(1));
const i64 v12 = eb_index_add(v9, INT64_C(1));
if (!alike) {
if (eb_tame(&wild, v9) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, v9))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v11) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, v11))) < 0) hi = lo;
if (eb_tame(&wild, v12) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, v12))) < 0) hi = lo;
lo = eb_max(lo, -eb_tame(&wild, eb_difference(&wild, 0, INT64_C(1)))); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - eb_tame(&wild, eb_difference(&wild, 0, INT64_C(1))))) + 1);
lo = eb_max(lo, -eb_tame(&wild, INT64_C(1))); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - eb_tame(&wild, INT64_C(1)))) + 1);
if (eb_tame(&wild, v9) < 0) hi = lo; if (eb_tame(&wild, (d2_0 - 1 - eb_tame(&wild, v9))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d2_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v9) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v9))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_1 - 1 - 0)) + 1);
if (__builtin_expect(wild, 0)) hi = lo;
lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);
if (__builtin_expect(wild, 0)) lo = hi = jt;
}
if (jt - jf < 4) lo = hi = jt;
i64 j = jf;
for (int side = 0; side < 2; side++) {
for (const i64 stop = side ? jt : lo; j < stop; j++) { const i64 v10 = j; 
const i64 v11 = eb_index_sub(v9, INT64_C(1));
const i64 v12 = eb_index_add(v9, INT64_C(1));
const i64 v13 = eb_index_sub(v10, INT64_C(1));
const i64 v14 = eb_index_add(v10, INT64_C(1));
if ((u64)v9 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v9, d0_0); goto exit1; }
if ((u64)v10 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 1, 1, v10, d0_1); goto exit1; }
const f32 v15 = a0[(v9 * d0_1 + v10)];
if ((u64)v11 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v11, d0_0); goto exit1; }
if ((u64)v10 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 1, 1, v10, d0_1); goto exit1; }
const f32 v16 = a0[(v11 * d0_1 + v10)];
if ((u64)v12 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v12, d0_0); goto exit1; }
if ((u64)v10 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 1, 1, v10, d0_1); goto exit1; }
const f32 v17 = a0[(v12 * d0_1 + v10)];
if ((u64)v9 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v9, d0_0); goto exit1; }
if ((u64)v13 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 1, 1, v13, d0_1); goto exit1; }
const f32 v18 = a0[(v9 * d0_1 + v13)];
if ((u64)v9 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v9, d0_0); goto exit1; }
if ((u64)v14 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 1, 1, v14, d0_1); goto exit1; }
const f32 v19 = a0[(v9 * d0_1 + v14)];
const f32 v20 = (v16 + v17);
const f32 v21 = (v20 + v18);
const f32 v22 = (v21 + v19);
const f32 v25 = (4.0f * v15);
const f32 v26 = (v22 - v25);
if ((u64)v9 >= (u64)d2_0) { eb_fault(f, EB_BOUNDS, 2, 0, v9, d2_0); goto exit1; }
if ((u64)v10 >= (u64)d2_1) { eb_fault(f, EB_BOUNDS, 2, 1, v10, d2_1); goto exit1; }
const f32 v27 = a2[(v9 * d2_1 + v10)];
const f32 v28 = (v27 * v26);
if ((u64)v9 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 3, 0, v9, d1_0); goto exit1; }
if ((u64)v10 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 3, 1, v10, d1_1); goto exit1; }
const f32 v29 = a1[(v9 * d1_1 + v10)];
const f32 v30 = (2.0f * v15);
const f32 v31 = (v30 - v29);
const f32 v32 = (v31 + v28);
if ((u64)v9 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 3, 0, v9, d1_0); goto exit1; }
if ((u64)v10 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 3, 1, v10, d1_1); goto exit1; }
a1[(v9 * d1_1 + v10)] = v32;
}
if (side) break;
{
#pragma GCC unroll 2
for (const i64 whole = j + ((hi - j) & -4); j < whole; j += 4) {
{ const i64 v10 = j + 0;
const f32x4 v15 = eb_load_f32x4(a0 + (v9 * d0_1 + (INT64_C(1) * v10 + 0)));
const f32x4 v16 = eb_load_f32x4(a0 + (v11 * d0_1 + (INT64_C(1) * v10 + 0)));
const f32x4 v17 = eb_load_f32x4(a0 + (v12 * d0_1 + (INT64_C(1) * v10 + 0)));
const f32x4 v18 = eb_load_f32x4(a0 + (v9 * d0_1 + (INT64_C(1) * v10 + (0 - INT64_C(1)))));
const f32x4 v19 = eb_load_f32x4(a0 + (v9 * d0_1 + (INT64_C(1) * v10 + INT64_C(1))));
const f32x4 v20 = (v16 + v17);
const f32x4 v21 = (v20 + v18);
const f32x4 v22 = (v21 + v19);
const f32x4 v25 = (op_float_f32x4(4.0f) * v15);
const f32x4 v26 = (v22 - v25);
const f32x4 v27 = eb_load_f32x4(a2 + (v9 * d2_1 + (INT64_C(1) * v10 + 0)));
const f32x4 v28 = (v27 * v26);
const f32x4 v29 = eb_load_f32x4(a1 + (v9 * d1_1 + (INT64_C(1) * v10 + 0)));
const f32x4 v30 = (op_float_f32x4(2.0f) * v15);
const f32x4 v31 = (v30 - v29);
const f32x4 v32 = (v31 + v28);
eb_store_f32x4(a1 + (v9 * d1_1 + (INT64_C(1) * v10 + 0)), v32);
}
}
if (j < hi) { const i64 tail = hi - j, v10 = j;
const f32x4 v15 = eb_load_part_f32x4(a0 + (v9 * d0_1 + (INT64_C(1) * v10 + 0)), tail);
const f32x4 v16 = eb_load_part_f32x4(a0 + (v11 * d0_1 + (INT64_C(1) * v10 + 0)), tail);
const f32x4 v17 = eb_load_part_f32x4(a0 + (v12 * d0_1 + (INT64_C(1) * v10 + 0)), tail);
const f32x4 v18 = eb_load_part_f32x4(a0 + (v9 * d0_1 + (INT64_C(1) * v10 + (0 - INT64_C(1)))), tail);
const f32x4 v19 = eb_load_part_f32x4(a0 + (v9 * d0_1 + (INT64_C(1) * v10 + INT64_C(1))), tail);
const f32x4 v20 = (v16 + v17);
const f32x4 v21 = (v20 + v18);
const f32x4 v22 = (v21 + v19);
const f32x4 v25 = (op_float_f32x4(4.0f) * v15);
const f32x4 v26 = (v22 - v25);
const f32x4 v27 = eb_load_part_f32x4(a2 + (v9 * d2_1 + (INT64_C(1) * v10 + 0)), tail);
const f32x4 v28 = (v27 * v26);
const f32x4 v29 = eb_load_part_f32x4(a1 + (v9 * d1_1 + (INT64_C(1) * v10 + 0)), tail);
const f32x4 v30 = (op_float_f32x4(2.0f) * v15);
const f32x4 v31 = (v30 - v29);
const f32x4 v32 = (v31 + v28);
eb_store_part_f32x4(a1 + (v9 * d1_1 + (INT64_C(1) * v10 + 0)), tail, v32);
j = hi; }
}
} }
}
exit1: ;
i64 wild = 0; (void)wild;
if ((f->threads == 1 || !(eb_difference(&wild, eb_sum(&wild, f0 + e0, eb_sum(&wild, INT64_C(1), 1)), 1) <= d0_0 && eb_difference(&wild, eb_sum(&wild, f1 + e1, eb_sum(&wild, INT64_C(1), 1)), 1) <= d0_1 && eb_difference(&wild, f0 + e0, INT64_C(1)) <= d0_0 && eb_difference(&wild, f1 + e1, INT64_C(1)) <= d0_1 && eb_sum(&wild, eb_difference(&wild, f0, eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_sum(&wild, eb_difference(&wild, f1, eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_sum(&wild, f0, INT64_C(1)) >= 0 && eb_sum(&wild, f1, INT64_C(1)) >= 0 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d2_0 && f0 >= 0 && f1 + e1 <= d0_1 && f1 + e1 <= d1_1 && f1 + e1 <= d2_1 && f1 >= 0 && !wild)) && eb_barrier(f)) goto leave;
}
if (d0_0 != d1_0 || d0_1 != d1_1) { eb_fault(f, EB_SHAPES, 0, 1, 0, 0); eb_barrier(f); goto leave; }
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
const b8 owns2 = eb_owns_rows(f, eb_extent(INT64_C(1), eb_index_sub(d0_0, INT64_C(1))), eb_extent(INT64_C(1), eb_index_sub(d0_1, INT64_C(1))), 22.0, eb_nearest(eb_index_div(d0_0, 2), INT64_C(1), eb_extent(INT64_C(1), eb_index_sub(d0_0, INT64_C(1)))));
if (owns2) a0[(v34 * d0_1 + v35)] = (a0[(v34 * d0_1 + v35)] + v33); }
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v5);
const i64 rows = 1, row = e0;
if (eb_barrier(f)) goto leave;
const int split = eb_split(f, rows, row, 3.0);
const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;
if ((split || f->thread == 0) && rows > 0 && row > 0) {
const i64 first = 0, end = 1, jf = f0 + eb_column(row, part, parts), jt = f0 + eb_column(row, part + 1, parts);
for (i64 r = first; r < end; r++) {
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f0);
if (eb_tame(&wild, INT64_C(2)) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, INT64_C(2)))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v8) < 0) hi = lo; if (eb_tame(&wild, (d4_0 - 1 - eb_tame(&wild, v8))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d4_1 - 1 - 0)) + 1);
if (__builtin_expect(wild, 0)) hi = lo;
lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);
if (__builtin_expect(wild, 0)) lo = hi = jt;
i64 j = jf;
for (int side = 0; side < 2; side++) {
for (const i64 stop = side ? jt : lo; j < stop; j++) { const i64 v36 = j; 
if ((u64)INT64_C(2) >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, INT64_C(2), d0_0); goto exit3; }
if ((u64)v36 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 1, 1, v36, d0_1); goto exit3; }
const f32 v37 = a0[(INT64_C(2) * d0_1 + v36)];
if ((u64)v8 >= (u64)d4_0) { eb_fault(f, EB_BOUNDS, 5, 0, v8, d4_0); goto exit3; }
if ((u64)v36 >= (u64)d4_1) { eb_fault(f, EB_BOUNDS, 5, 1, v36, d4_1); goto exit3; }
a4[(v8 * d4_1 + v36)] = v37;
}
if (side) break;
{
#pragma GCC unroll 2
for (const i64 whole = j + ((hi - j) & -4); j < whole; j += 4) {
{ const i64 v36 = j + 0;
const f32x4 v37 = eb_load_f32x4(a0 + (INT64_C(2) * d0_1 + (INT64_C(1) * v36 + 0)));
eb_store_f32x4(a4 + (v8 * d4_1 + (INT64_C(1) * v36 + 0)), v37);
}
}
if (j < hi) { const i64 tail = hi - j, v36 = j;
const f32x4 v37 = eb_load_part_f32x4(a0 + (INT64_C(2) * d0_1 + (INT64_C(1) * v36 + 0)), tail);
eb_store_part_f32x4(a4 + (v8 * d4_1 + (INT64_C(1) * v36 + 0)), tail, v37);
j = hi; }
}
} }
}
exit3: ;
i64 wild = 0; (void)wild;
if ((f->threads == 1 || !(eb_sum(&wild, INT64_C(2), 1) <= d0_0 && eb_sum(&wild, v8, 1) <= d4_0 && f0 + e0 <= d0_1 && f0 + e0 <= d4_1 && f0 >= 0 && v8 >= 0 && !wild)) && eb_barrier(f)) goto leave;
}
}
if (f->thread == 0) eb_tell(f, pass0);
leave: ;
f->data[0] = a0;
f->data[1] = a1;
f->data[2] = a2;
f->data[3] = a3;
f->data[4] = a4;
if (f->thread == 0) {
}
return 0; }

