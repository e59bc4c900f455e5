0(eb_frame *f) {
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = eb_of_array(f->shape[0]);
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = eb_of_array(f->shape[4]);
i64 v0 = (i64)f->scalars[0];
i64 v2 = d0_0;
i64 v3 = 0;
i64 pass0 = 0;
v0 = (i64)f->scalars[0];
v2 = d0_0;
if (__builtin_expect(v0 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
pass0 = 0;
for (; INT64_C(0) + pass0 < v0; pass0++) { v3 = INT64_C(0) + pass0;
if (f->thread == 0) eb_tell(f, pass0);
if (eb_pause(f)) goto leave;
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
const int split = eb_split(f, rows, row, 66.0);
const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;
if ((split || f->thread == 0) && rows > 0 && row > 0) {
const i64 first = 0, end = 1, jf = f0 + eb_column(row, part, parts), jt = f0 + eb_column(row, part + 1, parts);
for (i64 r = first; r < end; r++) {
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f0);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - 0)) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_0 - 1 - 0)) + 1);
if (__builtin_expect(wild, 0)) hi = lo;
lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);
if (__builtin_expect(wild, 0)) lo = hi = jt;
i64 j = jf;
for (int side = 0; side < 2; side++) {
for (const i64 stop = side ? jt : lo; j < stop; j++) { const i64 v4 = j; 
if ((u64)v4 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v4, d0_0); goto exit1; }
const f64 v5 = a0[v4];
if ((u64)v4 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 2, 0, v4, d1_0); goto exit1; }
const f64 v6 = a1[v4];
const f64 v8 = called_eb_tanh_f64(v5);
const f64 v9 = (0.1 * v8);
const f64 v10 = (v9 * v6);
if ((u64)v4 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 1, 0, v4, d0_0); goto exit1; }
a0[v4] = (a0[v4] + v10);
}
if (side) break;
{
for (const i64 whole = j + ((hi - j) & -2); j < whole; j += 2) {
{ const i64 v4 = j + 0;
const f64x2 v5 = eb_load_f64x2(a0 + (INT64_C(1) * v4 + 0));
const f64x2 v6 = eb_load_f64x2(a1 + (INT64_C(1) * v4 + 0));
const f64x2 v8 = eb_tanh_f64x2(v5);
const f64x2 v9 = (op_float_f64x2(0.1) * v8);
const f64x2 v10 = (v9 * v6);
eb_store_f64x2(a0 + (INT64_C(1) * v4 + 0), (eb_load_f64x2(a0 + (INT64_C(1) * v4 + 0)) + v10));
}
}
if (j < hi) { const i64 tail = hi - j, v4 = j;
const f64x2 v5 = eb_load_part_f64x2(a0 + (INT64_C(1) * v4 + 0), tail);
const f64x2 v6 = eb_load_part_f64x2(a1 + (INT64_C(1) * v4 + 0), tail);
const f64x2 v8 = called_eb_tanh_f64x2(v5);
const f64x2 v9 = (op_float_f64x2(0.1) * v8);
const f64x2 v10 = (v9 * v6);
eb_store_part_f64x2(a0 + (INT64_C(1) * v4 + 0), tail, (eb_load_part_f64x2(a0 + (INT64_C(1) * v4 + 0), tail) + v10));
j = hi; }
}
} }
}
exit1: ;
i64 wild = 0; (void)wild;
if ((f->threads == 1 || !(f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 >= 0 && !wild)) && eb_barrier(f)) goto leave;
}
}
if (f->thread == 0) eb_tell(f, pass0);
leave: ;
f->data[0] = a0;
f->data[1] = a1;
if (f->thread == 0) {
}
return 0; }

