0(eb_frame *f) {
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = eb_of_array(f->shape[0]);
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = eb_of_array(f->shape[4]);
f64 v0 = 0;
f64 v1 = 0;
i64 v2 = (i64)f->scalars[2];
i64 v5 = d0_0;
i64 v6 = 0;
i64 pass0 = 0;
v0 = eb_f64_bits(f->scalars[0]);
v1 = eb_f64_bits(f->scalars[1]);
v2 = (i64)f->scalars[2];
v5 = d0_0;
if (__builtin_expect(v2 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
pass0 = 0;
for (; INT64_C(0) + pass0 < v2; pass0++) { v6 = INT64_C(0) + pass0;
if (f->thread == 0) eb_tell(f, pass0);
if (eb_pause(f)) goto leave;
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v5);
const i64 rows = 1, row = e0;
if (eb_barrier(f)) goto leave;
const int split = eb_split(f, rows, row, 20.0);
const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;
if ((split || f->thread == 0) && rows > 0 && row > 0) {
const i64 first = 0, end = 1, jf = f0 + eb_column(row, part, parts), jt = f0 + eb_column(row, part + 1, parts);
for (i64 r = first; r < end; r++) {
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f0);
const i64 w10 = eb_tame(&wild, v5) > 0 ? eb_tame(&wild, eb_difference(&wild, v5, INT64_C(1))) - eb_floor_div(eb_tame(&wild, eb_difference(&wild, v5, INT64_C(1))) + (jf + jt) / 2, eb_tame(&wild, v5)) * eb_tame(&wild, v5) : -1;
const i64 w13 = eb_tame(&wild, v5) > 0 ? eb_tame(&wild, INT64_C(1)) - eb_floor_div(eb_tame(&wild, INT64_C(1)) + (jf + jt) / 2, eb_tame(&wild, v5)) * eb_tame(&wild, v5) : -1;
lo = eb_max(lo, -eb_tame(&wild, w10)); hi = eb_min(hi, eb_tame(&wild, (eb_tame(&wild, v5) - 1 - eb_tame(&wild, w10))) + 1);
lo = eb_max(lo, -eb_tame(&wild, eb_difference(&wild, v5, INT64_C(1))));
lo = eb_max(lo, -eb_tame(&wild, w10)); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, w10))) + 1);
lo = eb_max(lo, -eb_tame(&wild, w13)); hi = eb_min(hi, eb_tame(&wild, (eb_tame(&wild, v5) - 1 - eb_tame(&wild, w13))) + 1);
lo = eb_max(lo, -eb_tame(&wild, INT64_C(1)));
lo = eb_max(lo, -eb_tame(&wild, w13)); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, w13))) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - 0)) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_0 - 1 - 0)) + 1);
if (__builtin_expect(wild, 0)) hi = lo;
lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);
if (__builtin_expect(wild, 0)) lo = hi = jt;
i64 j = jf;
for (int side = 0; side < 2; side++) {
for (const i64 stop = side ? jt : lo; j < stop; j++) { const i64 v7 = j; 
const i64 v8 = eb_index_add(v7, v5);
const i64 v9 = eb_index_sub(v8, INT64_C(1));
if (v5 == 0) { eb_fault(f, EB_DIVISION, 0, 0, 0, 0); goto exit1; }
const i64 v10 = eb_index_rem(v9, v5);
if ((u64)v10 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v10, d0_0); goto exit1; }
const f64 v11 = a0[v10];
const i64 v12 = eb_index_add(v7, INT64_C(1));
if (v5 == 0) { eb_fault(f, EB_DIVISION, 0, 0, 0, 0); goto exit1; }
const i64 v13 = eb_index_rem(v12, v5);
if ((u64)v13 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v13, d0_0); goto exit1; }
const f64 v14 = a0[v13];
if ((u64)v7 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v7, d0_0); goto exit1; }
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
if ((u64)v7 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 2, 0, v7, d1_0); goto exit1; }
a1[v7] = v27;
}
if (side) break;
{
#pragma GCC unroll 2
for (const i64 whole = j + ((hi - j) & -2); j < whole; j += 2) {
{ const i64 v7 = j + 0;
const f64x2 v11 = eb_load_f64x2(a0 + (INT64_C(1) * v7 + w10));
const f64x2 v14 = eb_load_f64x2(a0 + (INT64_C(1) * v7 + w13));
const f64x2 v15 = eb_load_f64x2(a0 + (INT64_C(1) * v7 + 0));
const f64x2 v18 = (op_float_f64x2(2.0) * v15);
const f64x2 v19 = (v11 - v18);
const f64x2 v20 = (v19 + v14);
const f64x2 v21 = (op_float_f64x2(v0) * v20);
const f64x2 v22 = (v14 - v11);
const f64x2 v23 = (op_float_f64x2(0.5) * v15);
const f64x2 v24 = (v23 * v22);
const f64x2 v25 = (v21 - v24);
const f64x2 v26 = (op_float_f64x2(v1) * v25);
const f64x2 v27 = (v15 + v26);
eb_store_f64x2(a1 + (INT64_C(1) * v7 + 0), v27);
}
}
if (j < hi) { const i64 tail = hi - j, v7 = j;
const f64x2 v11 = eb_load_part_f64x2(a0 + (INT64_C(1) * v7 + w10), tail);
const f64x2 v14 = eb_load_part_f64x2(a0 + (INT64_C(1) * v7 + w13), tail);
const f64x2 v15 = eb_load_part_f64x2(a0 + (INT64_C(1) * v7 + 0), tail);
const f64x2 v18 = (op_float_f64x2(2.0) * v15);
const f64x2 v19 = (v11 - v18);
const f64x2 v20 = (v19 + v14);
const f64x2 v21 = (op_float_f64x2(v0) * v20);
const f64x2 v22 = (v14 - v11);
const f64x2 v23 = (op_float_f64x2(0.5) * v15);
const f64x2 v24 = (v23 * v22);
const f64x2 v25 = (v21 - v24);
const f64x2 v26 = (op_float_f64x2(v1) * v25);
const f64x2 v27 = (v15 + v26);
eb_store_part_f64x2(a1 + (INT64_C(1) * v7 + 0), tail, v27);
j = hi; }
}
} }
}
exit1: ;
i64 wild = 0; (void)wild;
if ((f->threads == 1 || !(eb_difference(&wild, eb_sum(&wild, v5, v5), eb_sum(&wild, f0 + e0, -1)) >= 0 && eb_difference(&wild, eb_sum(&wild, v5, v5), eb_sum(&wild, f0 + e0, 1)) >= 0 && eb_difference(&wild, v5, 1) >= 0 && eb_exact(&wild, eb_sum(&wild, eb_difference(&wild, eb_sum(&wild, f0, v5), eb_sum(&wild, INT64_C(1), 1)), 1), eb_difference(&wild, eb_difference(&wild, eb_sum(&wild, f0 + e0, eb_sum(&wild, v5, 1)), 1), INT64_C(1))) && eb_exact(&wild, eb_sum(&wild, f0, v5), eb_difference(&wild, eb_sum(&wild, f0 + e0, eb_sum(&wild, v5, 1)), 1)) && eb_sum(&wild, eb_difference(&wild, eb_sum(&wild, f0, v5), eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_sum(&wild, eb_sum(&wild, f0, -1), v5) >= 0 && eb_sum(&wild, eb_sum(&wild, f0, 1), v5) >= 0 && eb_sum(&wild, f0, INT64_C(1)) >= 0 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 >= 0 && v5 <= EB_SMALL && v5 <= d0_0 && !wild)) && eb_barrier(f)) goto leave;
}
if (d0_0 != d1_0) { eb_fault(f, EB_SHAPES, 0, 1, 0, 0); eb_barrier(f); goto leave; }
{ f64 *t = a0; a0 = a1; a1 = t; }
}
if (f->thread == 0) eb_tell(f, pass0);
leave: ;
f->data[0] = a0;
f->data[1] = a1;
if (f->thread == 0) {
}
return 0; }

