0(eb_frame *f) {
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = eb_of_array(f->shape[0]);
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = eb_of_array(f->shape[4]);
const i64 v2 = (i64)f->values[2];
const i64 v24 = (i64)f->values[24];
const i64 v25 = (i64)f->values[25];
i64 v3 = 0;
i64 pass0 = 0;
pass0 = 0;
for (; v24 + pass0 < v25; pass0++) { v3 = v24 + pass0;
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
if ((u64)v4 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 0, 0, v4, d0_0); goto exit1; }
const f64 v5 = a0[v4];
if ((u64)v4 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v4, d1_0); goto exit1; }
const f64 v6 = a1[v4];
const f64 v8 = called_eb_tanh_f64(v5);
const f64 v9 = (0.1 * v8);
const f64 v10 = (v9 * v6);
if ((u64)v4 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 0, 0, v4, d0_0); goto exit1; }
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

---
1(eb_frame *f) {
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = eb_of_array(f->shape[0]);
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = eb_of_array(f->shape[4]);
f64 *a10 = (f64 *)f->data[10];
const i64 d10_0 = eb_of_array(f->shape[40]);
const i64 v2 = (i64)f->values[2];
const i64 v24 = (i64)f->values[24];
const i64 v25 = (i64)f->values[25];
i64 v56 = 0;
i64 pass0 = 0;
pass0 = 0;
for (; v24 + pass0 < v25; pass0++) { v56 = v24 + pass0;
if (f->thread == 0) eb_tell(f, pass0);
if (eb_pause(f)) goto leave;
if (f->depth[0] >= f->capacity[0]) eb_fault(f, EB_TAPE, 0, 0, 0, 0);
else { void **place = f->tape[0] + f->depth[0]++;
void *t = a0; a10 = t; a0 = *place; *place = t;
}
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
const int split = eb_split(f, rows, row, 67.0);
const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;
if ((split || f->thread == 0) && rows > 0 && row > 0) {
const i64 first = 0, end = 1, jf = f0 + eb_column(row, part, parts), jt = f0 + eb_column(row, part + 1, parts);
for (i64 r = first; r < end; r++) {
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f0);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d10_0 - 1 - 0)) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_0 - 1 - 0)) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - 0)) + 1);
if (__builtin_expect(wild, 0)) hi = lo;
lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);
if (__builtin_expect(wild, 0)) lo = hi = jt;
i64 j = jf;
for (int side = 0; side < 2; side++) {
for (const i64 stop = side ? jt : lo; j < stop; j++) { const i64 v57 = j; 
if ((u64)v57 >= (u64)d10_0) { eb_fault(f, EB_BOUNDS, 2, 0, v57, d10_0); goto exit2; }
const f64 v58 = a10[v57];
if ((u64)v57 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v57, d1_0); goto exit2; }
const f64 v59 = a1[v57];
const f64 v61 = called_eb_tanh_f64(v58);
const f64 v62 = (0.1 * v61);
const f64 v63 = (v62 * v59);
const f64 v65 = (v58 + v63);
if ((u64)v57 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 0, 0, v57, d0_0); goto exit2; }
a0[v57] = v65;
}
if (side) break;
{
for (const i64 whole = j + ((hi - j) & -2); j < whole; j += 2) {
{ const i64 v57 = j + 0;
const f64x2 v58 = eb_load_f64x2(a10 + (INT64_C(1) * v57 + 0));
const f64x2 v59 = eb_load_f64x2(a1 + (INT64_C(1) * v57 + 0));
const f64x2 v61 = eb_tanh_f64x2(v58);
const f64x2 v62 = (op_float_f64x2(0.1) * v61);
const f64x2 v63 = (v62 * v59);
const f64x2 v65 = (v58 + v63);
eb_store_f64x2(a0 + (INT64_C(1) * v57 + 0), v65);
}
}
if (j < hi) { const i64 tail = hi - j, v57 = j;
const f64x2 v58 = eb_load_part_f64x2(a10 + (INT64_C(1) * v57 + 0), tail);
const f64x2 v59 = eb_load_part_f64x2(a1 + (INT64_C(1) * v57 + 0), tail);
const f64x2 v61 = called_eb_tanh_f64x2(v58);
const f64x2 v62 = (op_float_f64x2(0.1) * v61);
const f64x2 v63 = (v62 * v59);
const f64x2 v65 = (v58 + v63);
eb_store_part_f64x2(a0 + (INT64_C(1) * v57 + 0), tail, v65);
j = hi; }
}
} }
}
exit2: ;
i64 wild = 0; (void)wild;
if ((f->threads == 1 || !(f0 + e0 <= d0_0 && f0 + e0 <= d10_0 && f0 + e0 <= d1_0 && f0 >= 0 && !wild)) && eb_barrier(f)) goto leave;
}
}
if (f->thread == 0) eb_tell(f, pass0);
leave: ;
f->data[0] = a0;
f->data[1] = a1;
f->data[10] = a10;
if (f->thread == 0) {
}
return 0; }

---
2(eb_frame *f) {
f64 *a0 = (f64 *)f->data[0];
const i64 d0_0 = eb_of_array(f->shape[0]);
f64 *a1 = (f64 *)f->data[1];
const i64 d1_0 = eb_of_array(f->shape[4]);
f64 *a7 = (f64 *)f->data[7];
const i64 d7_0 = eb_of_array(f->shape[28]);
f64 *a8 = (f64 *)f->data[8];
const i64 d8_0 = eb_of_array(f->shape[32]);
const i64 v2 = (i64)f->values[2];
const i64 v24 = (i64)f->values[24];
const i64 v25 = (i64)f->values[25];
i64 v35 = 0;
i64 pass0 = 0;
pass0 = 0;
for (; v24 + pass0 < v25; pass0++) { v35 = v24 + pass0;
if (f->thread == 0) eb_tell(f, pass0);
if (eb_pause(f)) goto leave;
if (f->depth[0] == 0) eb_fault(f, EB_TAPE, 0, 0, 0, 0);
else { void **place = f->tape[0] + --f->depth[0]; void *t = a0; a0 = *place; *place = t; }
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v2);
const i64 rows = 1, row = e0;
const int split = eb_split(f, rows, row, 73.0);
const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;
if ((split || f->thread == 0) && rows > 0 && row > 0) {
const i64 first = 0, end = 1, jf = f0 + eb_column(row, part, parts), jt = f0 + eb_column(row, part + 1, parts);
for (i64 r = first; r < end; r++) {
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f0);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_0 - 1 - 0)) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_0 - 1 - 0)) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d7_0 - 1 - 0)) + 1);
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d8_0 - 1 - 0)) + 1);
if (__builtin_expect(wild, 0)) hi = lo;
lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);
if (__builtin_expect(wild, 0)) lo = hi = jt;
i64 j = jf;
for (int side = 0; side < 2; side++) {
for (const i64 stop = side ? jt : lo; j < stop; j++) { const i64 v41 = j; 
if ((u64)v41 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 0, 0, v41, d0_0); goto exit3; }
const f64 v42 = a0[v41];
if ((u64)v41 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v41, d1_0); goto exit3; }
const f64 v43 = a1[v41];
const f64 v45 = called_eb_tanh_f64(v42);
const f64 v46 = (0.1 * v45);
if ((u64)v41 >= (u64)d7_0) { eb_fault(f, EB_BOUNDS, 3, 0, v41, d7_0); goto exit3; }
const f64 v48 = a7[v41];
const f64 v49 = (v48 * v43);
const f64 v50 = (v48 * v46);
const f64 v51 = (v49 * 0.1);
const f64 v53 = (v45 * v45);
const f64 v54 = (1.0 - v53);
const f64 v55 = (v51 * v54);
if ((u64)v41 >= (u64)d8_0) { eb_fault(f, EB_BOUNDS, 4, 0, v41, d8_0); goto exit3; }
a8[v41] = (a8[v41] + v50);
if ((u64)v41 >= (u64)d7_0) { eb_fault(f, EB_BOUNDS, 3, 0, v41, d7_0); goto exit3; }
a7[v41] = (a7[v41] + v55);
}
if (side) break;
{
for (const i64 whole = j + ((hi - j) & -2); j < whole; j += 2) {
{ const i64 v41 = j + 0;
const f64x2 v42 = eb_load_f64x2(a0 + (INT64_C(1) * v41 + 0));
const f64x2 v43 = eb_load_f64x2(a1 + (INT64_C(1) * v41 + 0));
const f64x2 v45 = eb_tanh_f64x2(v42);
const f64x2 v46 = (op_float_f64x2(0.1) * v45);
const f64x2 v48 = eb_load_f64x2(a7 + (INT64_C(1) * v41 + 0));
const f64x2 v49 = (v48 * v43);
const f64x2 v50 = (v48 * v46);
const f64x2 v51 = (v49 * op_float_f64x2(0.1));
const f64x2 v53 = (v45 * v45);
const f64x2 v54 = (op_float_f64x2(1.0) - v53);
const f64x2 v55 = (v51 * v54);
eb_store_f64x2(a8 + (INT64_C(1) * v41 + 0), (eb_load_f64x2(a8 + (INT64_C(1) * v41 + 0)) + v50));
eb_store_f64x2(a7 + (INT64_C(1) * v41 + 0), (eb_load_f64x2(a7 + (INT64_C(1) * v41 + 0)) + v55));
}
}
if (j < hi) { const i64 tail = hi - j, v41 = j;
const f64x2 v42 = eb_load_part_f64x2(a0 + (INT64_C(1) * v41 + 0), tail);
const f64x2 v43 = eb_load_part_f64x2(a1 + (INT64_C(1) * v41 + 0), tail);
const f64x2 v45 = called_eb_tanh_f64x2(v42);
const f64x2 v46 = (op_float_f64x2(0.1) * v45);
const f64x2 v48 = eb_load_part_f64x2(a7 + (INT64_C(1) * v41 + 0), tail);
const f64x2 v49 = (v48 * v43);
const f64x2 v50 = (v48 * v46);
const f64x2 v51 = (v49 * op_float_f64x2(0.1));
const f64x2 v53 = (v45 * v45);
const f64x2 v54 = (op_float_f64x2(1.0) - v53);
const f64x2 v55 = (v51 * v54);
eb_store_part_f64x2(a8 + (INT64_C(1) * v41 + 0), tail, (eb_load_part_f64x2(a8 + (INT64_C(1) * v41 + 0), tail) + v50));
eb_store_part_f64x2(a7 + (INT64_C(1) * v41 + 0), tail, (eb_load_part_f64x2(a7 + (INT64_C(1) * v41 + 0), tail) + v55));
j = hi; }
}
} }
}
exit3: ;
i64 wild = 0; (void)wild;
if ((f->threads == 1 || !(f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d7_0 && f0 + e0 <= d8_0 && f0 >= 0 && !wild)) && eb_barrier(f)) goto leave;
}
}
if (f->thread == 0) eb_tell(f, pass0);
leave: ;
f->data[0] = a0;
f->data[1] = a1;
f->data[7] = a7;
f->data[8] = a8;
if (f->thread == 0) {
}
return 0; }

