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
const i64 d3_1 = eb_of_array(f->shape[13]);
i64 v0 = (i64)f->scalars[0];
i64 v3 = d0_0;
i64 v4 = d0_1;
i64 v5 = eb_index_sub(d0_0, INT64_C(1));
i64 v6 = eb_index_sub(d0_1, INT64_C(1));
f32 v8 = 0;
i64 v9 = 0;
i64 pass0 = 0;
v0 = (i64)f->scalars[0];
v3 = d0_0;
v4 = d0_1;
v5 = eb_index_sub(v3, INT64_C(1));
v6 = eb_index_sub(v4, INT64_C(1));
v8 = ((f32)0.5);
if (__builtin_expect(v0 == INT64_MIN, 0)) { eb_fault(f, EB_OVERFLOW, 0, 0, 0, 0); eb_barrier(f); goto leave; }
pass0 = 0;
for (; INT64_C(0) + pass0 < v0; pass0++) { v9 = INT64_C(0) + pass0;
if (f->thread == 0) eb_tell(f, pass0);
if (eb_pause(f)) goto leave;
{ /* parallel loop */
const i64 f0 = INT64_C(0), e0 = eb_extent(f0, v3);
const i64 f1 = INT64_C(0), e1 = eb_extent(f1, v4);
const i64 rows = e0, row = e1;
if (eb_barrier(f)) goto leave;
const int split = eb_split(f, rows, row, 41.0 + 1.0 * (7.0) + 1.0 * (1.0) + 1.0 * (7.0) + 1.0 * (1.0) + 1.0 * (7.0) + 1.0 * (1.0) + 1.0 * (7.0) + 1.0 * (1.0) + 1.0 * (7.0) + 1.0 * (1.0) + 1.0 * (7.0) + 1.0 * (1.0) + 1.0 * (7.0 + 1.0 * (2.0) + 1.0 * (1.0)) + 1.0 * (3.0) + 1.0 * (2.0) + 1.0 * (1.0));
const i64 part = split ? f->thread : 0, parts = split ? f->threads : 1;
if ((split || f->thread == 0) && rows > 0 && row > 0) {
const i64 first = eb_share(rows, part, parts), jf = f1; i64 end = eb_share(rows, part + 1, parts), jt = f1 + row;
int alike = 1;
for (int corner = 0; corner < 2; corner++) {
const i64 v10 = corner >> 0 & 1 ? f0 + e0 - 1 : f0;
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f1);
const i64 v32 = eb_index_add(v10, INT64_C(1));
const i64 v48 = eb_index_add(v10, (INT64_C(-1)));
const i64 v118 = eb_index_sub(v10, INT64_C(1));
lo = eb_max(lo, -eb_tame(&wild, (0 - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(0 - eb_tame(&wild, v6))) - 1)) + 1);
if (eb_tame(&wild, v10) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v10))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v10) < 0) hi = lo; if (eb_tame(&wild, (d3_0 - 1 - eb_tame(&wild, v10))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d3_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v32) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v32))) < 0) hi = lo;
if (eb_tame(&wild, v32) < 0) hi = lo; if (eb_tame(&wild, (d3_0 - 1 - eb_tame(&wild, v32))) < 0) hi = lo;
if (eb_tame(&wild, v48) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v48))) < 0) hi = lo;
if (eb_tame(&wild, v48) < 0) hi = lo; if (eb_tame(&wild, (d3_0 - 1 - eb_tame(&wild, v48))) < 0) hi = lo;
lo = eb_max(lo, -eb_tame(&wild, (eb_tame(&wild, INT64_C(1)) - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(eb_tame(&wild, INT64_C(1)) - eb_tame(&wild, v6))) - 1)) + 1);
lo = eb_max(lo, -eb_tame(&wild, INT64_C(1))); hi = eb_min(hi, eb_tame(&wild, (d1_1 - 1 - eb_tame(&wild, INT64_C(1)))) + 1);
lo = eb_max(lo, -eb_tame(&wild, INT64_C(1))); hi = eb_min(hi, eb_tame(&wild, (d3_1 - 1 - eb_tame(&wild, INT64_C(1)))) + 1);
lo = eb_max(lo, -eb_tame(&wild, (eb_tame(&wild, (INT64_C(-1))) - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(eb_tame(&wild, (INT64_C(-1))) - eb_tame(&wild, v6))) - 1)) + 1);
lo = eb_max(lo, -eb_tame(&wild, (INT64_C(-1)))); hi = eb_min(hi, eb_tame(&wild, (d1_1 - 1 - eb_tame(&wild, (INT64_C(-1))))) + 1);
lo = eb_max(lo, -eb_tame(&wild, (INT64_C(-1)))); hi = eb_min(hi, eb_tame(&wild, (d3_1 - 1 - eb_tame(&wild, (INT64_C(-1))))) + 1);
if (eb_tame(&wild, v10) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, v10))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v118) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v118))) < 0) hi = lo;
if (eb_tame(&wild, v10) < 0) hi = lo; if (eb_tame(&wild, (d2_0 - 1 - eb_tame(&wild, v10))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d2_1 - 1 - 0)) + 1);
lo = eb_max(lo, -eb_tame(&wild, (0 - eb_tame(&wild, INT64_C(7)))));
if (__builtin_expect(wild, 0)) hi = lo;
alike &= !wild && lo <= jf && hi >= jt; }
int proved; { i64 wild = 0; proved = INT64_C(7) <= d2_1 && e0 <= EB_SMALL && e0 <= EB_SMALL - f0 && e1 <= EB_SMALL && e1 <= EB_SMALL - f1 && eb_difference(&wild, eb_tame(&wild, v5), INT64_C(1)) <= d1_0 && eb_sum(&wild, INT64_C(3), 1) <= d2_0 && eb_sum(&wild, eb_difference(&wild, INT64_C(1), eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_tame(&wild, v5) <= d1_0 && eb_tame(&wild, v5) <= d2_0 && eb_tame(&wild, v5) <= d3_0 && eb_tame(&wild, v6) <= d1_1 && eb_tame(&wild, v6) <= d2_1 && eb_tame(&wild, v6) <= d3_1 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d2_0 && f0 >= -EB_SMALL && f0 >= 0 && f1 + e1 <= d0_1 && f1 + e1 <= d1_1 && f1 + e1 <= d2_1 && f1 >= -EB_SMALL && f1 >= 0 && !wild; }
for (i64 r = first; r < end; r++) {
const i64 v10 = (i64)f0 + r;
i64 lo = jf, hi = jt;
i64 wild = 0; eb_tame(&wild, jf); eb_tame(&wild, jt);
eb_tame(&wild, f1);
const i64 v32 = eb_index_add(v10, INT64_C(1));
const i64 v48 = eb_index_add(v10, (INT64_C(-1)));
const i64 v118 = eb_index_sub(v10, INT64_C(1));
if (!alike) {
if (proved) {
lo = eb_max(lo, -eb_tame(&wild, (0 - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(0 - eb_tame(&wild, v6))) - 1)) + 1);
lo = eb_max(lo, -eb_tame(&wild, (eb_tame(&wild, INT64_C(1)) - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(eb_tame(&wild, INT64_C(1)) - eb_tame(&wild, v6))) - 1)) + 1);
lo = eb_max(lo, -eb_tame(&wild, (eb_tame(&wild, (INT64_C(-1))) - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(eb_tame(&wild, (INT64_C(-1))) - eb_tame(&wild, v6))) - 1)) + 1);
lo = eb_max(lo, -eb_tame(&wild, (0 - eb_tame(&wild, INT64_C(7)))));
if (__builtin_expect(wild, 0)) hi = lo;
} else {
lo = eb_max(lo, -eb_tame(&wild, (0 - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(0 - eb_tame(&wild, v6))) - 1)) + 1);
if (eb_tame(&wild, v10) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v10))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d1_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v10) < 0) hi = lo; if (eb_tame(&wild, (d3_0 - 1 - eb_tame(&wild, v10))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d3_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v32) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v32))) < 0) hi = lo;
if (eb_tame(&wild, v32) < 0) hi = lo; if (eb_tame(&wild, (d3_0 - 1 - eb_tame(&wild, v32))) < 0) hi = lo;
if (eb_tame(&wild, v48) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v48))) < 0) hi = lo;
if (eb_tame(&wild, v48) < 0) hi = lo; if (eb_tame(&wild, (d3_0 - 1 - eb_tame(&wild, v48))) < 0) hi = lo;
lo = eb_max(lo, -eb_tame(&wild, (eb_tame(&wild, INT64_C(1)) - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(eb_tame(&wild, INT64_C(1)) - eb_tame(&wild, v6))) - 1)) + 1);
lo = eb_max(lo, -eb_tame(&wild, INT64_C(1))); hi = eb_min(hi, eb_tame(&wild, (d1_1 - 1 - eb_tame(&wild, INT64_C(1)))) + 1);
lo = eb_max(lo, -eb_tame(&wild, INT64_C(1))); hi = eb_min(hi, eb_tame(&wild, (d3_1 - 1 - eb_tame(&wild, INT64_C(1)))) + 1);
lo = eb_max(lo, -eb_tame(&wild, (eb_tame(&wild, (INT64_C(-1))) - eb_tame(&wild, INT64_C(1)))));
hi = eb_min(hi, eb_tame(&wild, ((-(eb_tame(&wild, (INT64_C(-1))) - eb_tame(&wild, v6))) - 1)) + 1);
lo = eb_max(lo, -eb_tame(&wild, (INT64_C(-1)))); hi = eb_min(hi, eb_tame(&wild, (d1_1 - 1 - eb_tame(&wild, (INT64_C(-1))))) + 1);
lo = eb_max(lo, -eb_tame(&wild, (INT64_C(-1)))); hi = eb_min(hi, eb_tame(&wild, (d3_1 - 1 - eb_tame(&wild, (INT64_C(-1))))) + 1);
if (eb_tame(&wild, v10) < 0) hi = lo; if (eb_tame(&wild, (d0_0 - 1 - eb_tame(&wild, v10))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d0_1 - 1 - 0)) + 1);
if (eb_tame(&wild, v118) < 0) hi = lo; if (eb_tame(&wild, (d1_0 - 1 - eb_tame(&wild, v118))) < 0) hi = lo;
if (eb_tame(&wild, v10) < 0) hi = lo; if (eb_tame(&wild, (d2_0 - 1 - eb_tame(&wild, v10))) < 0) hi = lo;
lo = eb_max(lo, -0); hi = eb_min(hi, eb_tame(&wild, (d2_1 - 1 - 0)) + 1);
lo = eb_max(lo, -eb_tame(&wild, (0 - eb_tame(&wild, INT64_C(7)))));
if (__builtin_expect(wild, 0)) hi = lo;
}
lo = eb_min(eb_max(lo, jf), jt); hi = eb_max(eb_min(hi, jt), lo);
if (__builtin_expect(wild, 0)) lo = hi = jt;
}
if (jt - jf < 4) lo = hi = jt;
i64 j = jf;
for (int side = 0; side < 2; side++) {
for (const i64 stop = side ? jt : lo; j < stop; j++) { const i64 v11 = j; 
f32 l0 = 0.0f;
const b8 v18 = (v10 >= INT64_C(1));
const b8 v19 = (v10 < v5);
const b8 v20 = (v18 & v19);
const b8 v21 = (v11 >= INT64_C(1));
const b8 v22 = (v11 < v6);
const b8 v23 = (v21 & v22);
const b8 v24 = (v20 & v23);
if (v24) {
if ((u64)v10 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v10, d1_0); goto exit1; }
if ((u64)v11 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 1, 1, v11, d1_1); goto exit1; }
const f32 v25 = a1[(v10 * d1_1 + v11)];
if ((u64)v10 >= (u64)d3_0) { eb_fault(f, EB_BOUNDS, 2, 0, v10, d3_0); goto exit1; }
if ((u64)v11 >= (u64)d3_1) { eb_fault(f, EB_BOUNDS, 2, 1, v11, d3_1); goto exit1; }
const f32 v26 = a3[(v10 * d3_1 + v11)];
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
if ((u64)v32 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v32, d1_0); goto exit1; }
if ((u64)v11 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 1, 1, v11, d1_1); goto exit1; }
const f32 v41 = a1[(v32 * d1_1 + v11)];
if ((u64)v32 >= (u64)d3_0) { eb_fault(f, EB_BOUNDS, 2, 0, v32, d3_0); goto exit1; }
if ((u64)v11 >= (u64)d3_1) { eb_fault(f, EB_BOUNDS, 2, 1, v11, d3_1); goto exit1; }
const f32 v42 = a3[(v32 * d3_1 + v11)];
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
if ((u64)v48 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v48, d1_0); goto exit1; }
if ((u64)v11 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 1, 1, v11, d1_1); goto exit1; }
const f32 v57 = a1[(v48 * d1_1 + v11)];
if ((u64)v48 >= (u64)d3_0) { eb_fault(f, EB_BOUNDS, 2, 0, v48, d3_0); goto exit1; }
if ((u64)v11 >= (u64)d3_1) { eb_fault(f, EB_BOUNDS, 2, 1, v11, d3_1); goto exit1; }
const f32 v58 = a3[(v48 * d3_1 + v11)];
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
if ((u64)v10 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v10, d1_0); goto exit1; }
if ((u64)v65 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 1, 1, v65, d1_1); goto exit1; }
const f32 v73 = a1[(v10 * d1_1 + v65)];
if ((u64)v10 >= (u64)d3_0) { eb_fault(f, EB_BOUNDS, 2, 0, v10, d3_0); goto exit1; }
if ((u64)v65 >= (u64)d3_1) { eb_fault(f, EB_BOUNDS, 2, 1, v65, d3_1); goto exit1; }
const f32 v74 = a3[(v10 * d3_1 + v65)];
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
if ((u64)v10 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v10, d1_0); goto exit1; }
if ((u64)v81 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 1, 1, v81, d1_1); goto exit1; }
const f32 v89 = a1[(v10 * d1_1 + v81)];
if ((u64)v10 >= (u64)d3_0) { eb_fault(f, EB_BOUNDS, 2, 0, v10, d3_0); goto exit1; }
if ((u64)v81 >= (u64)d3_1) { eb_fault(f, EB_BOUNDS, 2, 1, v81, d3_1); goto exit1; }
const f32 v90 = a3[(v10 * d3_1 + v81)];
const f32 v91 = (v89 * v90);
const f32 v92 = l0;
const f32 v93 = (v92 + v91);
l0 = v93;
}
const b8 v104 = (v36 & v87);
if (v104) {
if ((u64)v32 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v32, d1_0); goto exit1; }
if ((u64)v81 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 1, 1, v81, d1_1); goto exit1; }
const f32 v105 = a1[(v32 * d1_1 + v81)];
if ((u64)v32 >= (u64)d3_0) { eb_fault(f, EB_BOUNDS, 2, 0, v32, d3_0); goto exit1; }
if ((u64)v81 >= (u64)d3_1) { eb_fault(f, EB_BOUNDS, 2, 1, v81, d3_1); goto exit1; }
const f32 v106 = a3[(v32 * d3_1 + v81)];
const f32 v107 = (v105 * v106);
const f32 v108 = l0;
const f32 v109 = (v108 + v107);
l0 = v109;
}
const f32 v110 = l0;
if ((u64)v10 >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 3, 0, v10, d0_0); goto exit1; }
if ((u64)v11 >= (u64)d0_1) { eb_fault(f, EB_BOUNDS, 3, 1, v11, d0_1); goto exit1; }
a0[(v10 * d0_1 + v11)] = (a0[(v10 * d0_1 + v11)] + v110);
if (v24) {
const i64 v118 = eb_index_sub(v10, INT64_C(1));
if ((u64)v118 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v118, d1_0); goto exit1; }
if ((u64)v11 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 1, 1, v11, d1_1); goto exit1; }
const f32 v119 = a1[(v118 * d1_1 + v11)];
const f32 v120 = (v119 * v8);
if ((u64)v10 >= (u64)d2_0) { eb_fault(f, EB_BOUNDS, 4, 0, v10, d2_0); goto exit1; }
if ((u64)v11 >= (u64)d2_1) { eb_fault(f, EB_BOUNDS, 4, 1, v11, d2_1); goto exit1; }
a2[(v10 * d2_1 + v11)] = v120;
const b8 v122 = (v10 == INT64_C(3));
if (v122) {
if ((u64)v10 >= (u64)d2_0) { eb_fault(f, EB_BOUNDS, 4, 0, v10, d2_0); goto exit1; }
if ((u64)v11 >= (u64)d2_1) { eb_fault(f, EB_BOUNDS, 4, 1, v11, d2_1); goto exit1; }
a2[(v10 * d2_1 + v11)] = (a2[(v10 * d2_1 + v11)] + v8);
}
} else {
if ((u64)v10 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 1, 0, v10, d1_0); goto exit1; }
if ((u64)v11 >= (u64)d1_1) { eb_fault(f, EB_BOUNDS, 1, 1, v11, d1_1); goto exit1; }
const f32 v123 = a1[(v10 * d1_1 + v11)];
if ((u64)v10 >= (u64)d2_0) { eb_fault(f, EB_BOUNDS, 4, 0, v10, d2_0); goto exit1; }
if ((u64)v11 >= (u64)d2_1) { eb_fault(f, EB_BOUNDS, 4, 1, v11, d2_1); goto exit1; }
a2[(v10 * d2_1 + v11)] = v123;
}
const b8 v125 = (v11 < INT64_C(7));
if (v125) {
if ((u64)v10 >= (u64)d2_0) { eb_fault(f, EB_BOUNDS, 4, 0, v10, d2_0); goto exit1; }
if ((u64)v11 >= (u64)d2_1) { eb_fault(f, EB_BOUNDS, 4, 1, v11, d2_1); goto exit1; }
a2[(v10 * d2_1 + v11)] = eb_max_f32(a2[(v10 * d2_1 + v11)], v8);
}
}
if (side) break;
{
for (const i64 whole = j + ((hi - j) & -4); j < whole; j += 4) {
{ const i64 v11 = j + 0;
f32x4 l0 = op_float_f32x4(0.0f);
const b8 v18 = (v10 >= INT64_C(1));
const b8 v19 = (v10 < v5);
const b8 v20 = (v18 & v19);
const b8 v24 = (v20 & 1);
if (v24) {
const f32x4 v25 = eb_load_f32x4(a1 + (v10 * d1_1 + (INT64_C(1) * v11 + 0)));
const f32x4 v26 = eb_load_f32x4(a3 + (v10 * d3_1 + (INT64_C(1) * v11 + 0)));
const f32x4 v27 = (v25 * v26);
const f32x4 v28 = l0;
const f32x4 v29 = (v28 + v27);
l0 = v29;
}
const b8 v34 = (v32 >= INT64_C(1));
const b8 v35 = (v32 < v5);
const b8 v36 = (v34 & v35);
const b8 v40 = (v36 & 1);
if (v40) {
const f32x4 v41 = eb_load_f32x4(a1 + (v32 * d1_1 + (INT64_C(1) * v11 + 0)));
const f32x4 v42 = eb_load_f32x4(a3 + (v32 * d3_1 + (INT64_C(1) * v11 + 0)));
const f32x4 v43 = (v41 * v42);
const f32x4 v44 = l0;
const f32x4 v45 = (v44 + v43);
l0 = v45;
}
const b8 v50 = (v48 >= INT64_C(1));
const b8 v51 = (v48 < v5);
const b8 v52 = (v50 & v51);
const b8 v56 = (v52 & 1);
if (v56) {
const f32x4 v57 = eb_load_f32x4(a1 + (v48 * d1_1 + (INT64_C(1) * v11 + 0)));
const f32x4 v58 = eb_load_f32x4(a3 + (v48 * d3_1 + (INT64_C(1) * v11 + 0)));
const f32x4 v59 = (v57 * v58);
const f32x4 v60 = l0;
const f32x4 v61 = (v60 + v59);
l0 = v61;
}
const b8 v72 = (v20 & 1);
if (v72) {
const f32x4 v73 = eb_load_f32x4(a1 + (v10 * d1_1 + (INT64_C(1) * v11 + INT64_C(1))));
const f32x4 v74 = eb_load_f32x4(a3 + (v10 * d3_1 + (INT64_C(1) * v11 + INT64_C(1))));
const f32x4 v75 = (v73 * v74);
const f32x4 v76 = l0;
const f32x4 v77 = (v76 + v75);
l0 = v77;
}
const b8 v88 = (v20 & 1);
if (v88) {
const f32x4 v89 = eb_load_f32x4(a1 + (v10 * d1_1 + (INT64_C(1) * v11 + (INT64_C(-1)))));
const f32x4 v90 = eb_load_f32x4(a3 + (v10 * d3_1 + (INT64_C(1) * v11 + (INT64_C(-1)))));
const f32x4 v91 = (v89 * v90);
const f32x4 v92 = l0;
const f32x4 v93 = (v92 + v91);
l0 = v93;
}
const b8 v104 = (v36 & 1);
if (v104) {
const f32x4 v105 = eb_load_f32x4(a1 + (v32 * d1_1 + (INT64_C(1) * v11 + (INT64_C(-1)))));
const f32x4 v106 = eb_load_f32x4(a3 + (v32 * d3_1 + (INT64_C(1) * v11 + (INT64_C(-1)))));
const f32x4 v107 = (v105 * v106);
const f32x4 v108 = l0;
const f32x4 v109 = (v108 + v107);
l0 = v109;
}
const f32x4 v110 = l0;
eb_store_f32x4(a0 + (v10 * d0_1 + (INT64_C(1) * v11 + 0)), (eb_load_f32x4(a0 + (v10 * d0_1 + (INT64_C(1) * v11 + 0))) + v110));
if (v24) {
const f32x4 v119 = eb_load_f32x4(a1 + (v118 * d1_1 + (INT64_C(1) * v11 + 0)));
const f32x4 v120 = (v119 * op_float_f32x4(v8));
eb_store_f32x4(a2 + (v10 * d2_1 + (INT64_C(1) * v11 + 0)), v120);
const b8 v122 = (v10 == INT64_C(3));
if (v122) {
eb_store_f32x4(a2 + (v10 * d2_1 + (INT64_C(1) * v11 + 0)), (eb_load_f32x4(a2 + (v10 * d2_1 + (INT64_C(1) * v11 + 0))) + op_float_f32x4(v8)));
}
} else {
const f32x4 v123 = eb_load_f32x4(a1 + (v10 * d1_1 + (INT64_C(1) * v11 + 0)));
eb_store_f32x4(a2 + (v10 * d2_1 + (INT64_C(1) * v11 + 0)), v123);
}
}
}
if (j < hi) { const i64 tail = hi - j, v11 = j;
f32x4 l0 = op_float_f32x4(0.0f);
const b8 v18 = (v10 >= INT64_C(1));
const b8 v19 = (v10 < v5);
const b8 v20 = (v18 & v19);
const b8 v24 = (v20 & 1);
if (v24) {
const f32x4 v25 = eb_load_part_f32x4(a1 + (v10 * d1_1 + (INT64_C(1) * v11 + 0)), tail);
const f32x4 v26 = eb_load_part_f32x4(a3 + (v10 * d3_1 + (INT64_C(1) * v11 + 0)), tail);
const f32x4 v27 = (v25 * v26);
const f32x4 v28 = l0;
const f32x4 v29 = (v28 + v27);
l0 = v29;
}
const b8 v34 = (v32 >= INT64_C(1));
const b8 v35 = (v32 < v5);
const b8 v36 = (v34 & v35);
const b8 v40 = (v36 & 1);
if (v40) {
const f32x4 v41 = eb_load_part_f32x4(a1 + (v32 * d1_1 + (INT64_C(1) * v11 + 0)), tail);
const f32x4 v42 = eb_load_part_f32x4(a3 + (v32 * d3_1 + (INT64_C(1) * v11 + 0)), tail);
const f32x4 v43 = (v41 * v42);
const f32x4 v44 = l0;
const f32x4 v45 = (v44 + v43);
l0 = v45;
}
const b8 v50 = (v48 >= INT64_C(1));
const b8 v51 = (v48 < v5);
const b8 v52 = (v50 & v51);
const b8 v56 = (v52 & 1);
if (v56) {
const f32x4 v57 = eb_load_part_f32x4(a1 + (v48 * d1_1 + (INT64_C(1) * v11 + 0)), tail);
const f32x4 v58 = eb_load_part_f32x4(a3 + (v48 * d3_1 + (INT64_C(1) * v11 + 0)), tail);
const f32x4 v59 = (v57 * v58);
const f32x4 v60 = l0;
const f32x4 v61 = (v60 + v59);
l0 = v61;
}
const b8 v72 = (v20 & 1);
if (v72) {
const f32x4 v73 = eb_load_part_f32x4(a1 + (v10 * d1_1 + (INT64_C(1) * v11 + INT64_C(1))), tail);
const f32x4 v74 = eb_load_part_f32x4(a3 + (v10 * d3_1 + (INT64_C(1) * v11 + INT64_C(1))), tail);
const f32x4 v75 = (v73 * v74);
const f32x4 v76 = l0;
const f32x4 v77 = (v76 + v75);
l0 = v77;
}
const b8 v88 = (v20 & 1);
if (v88) {
const f32x4 v89 = eb_load_part_f32x4(a1 + (v10 * d1_1 + (INT64_C(1) * v11 + (INT64_C(-1)))), tail);
const f32x4 v90 = eb_load_part_f32x4(a3 + (v10 * d3_1 + (INT64_C(1) * v11 + (INT64_C(-1)))), tail);
const f32x4 v91 = (v89 * v90);
const f32x4 v92 = l0;
const f32x4 v93 = (v92 + v91);
l0 = v93;
}
const b8 v104 = (v36 & 1);
if (v104) {
const f32x4 v105 = eb_load_part_f32x4(a1 + (v32 * d1_1 + (INT64_C(1) * v11 + (INT64_C(-1)))), tail);
const f32x4 v106 = eb_load_part_f32x4(a3 + (v32 * d3_1 + (INT64_C(1) * v11 + (INT64_C(-1)))), tail);
const f32x4 v107 = (v105 * v106);
const f32x4 v108 = l0;
const f32x4 v109 = (v108 + v107);
l0 = v109;
}
const f32x4 v110 = l0;
eb_store_part_f32x4(a0 + (v10 * d0_1 + (INT64_C(1) * v11 + 0)), tail, (eb_load_part_f32x4(a0 + (v10 * d0_1 + (INT64_C(1) * v11 + 0)), tail) + v110));
if (v24) {
const f32x4 v119 = eb_load_part_f32x4(a1 + (v118 * d1_1 + (INT64_C(1) * v11 + 0)), tail);
const f32x4 v120 = (v119 * op_float_f32x4(v8));
eb_store_part_f32x4(a2 + (v10 * d2_1 + (INT64_C(1) * v11 + 0)), tail, v120);
const b8 v122 = (v10 == INT64_C(3));
if (v122) {
eb_store_part_f32x4(a2 + (v10 * d2_1 + (INT64_C(1) * v11 + 0)), tail, (eb_load_part_f32x4(a2 + (v10 * d2_1 + (INT64_C(1) * v11 + 0)), tail) + op_float_f32x4(v8)));
}
} else {
const f32x4 v123 = eb_load_part_f32x4(a1 + (v10 * d1_1 + (INT64_C(1) * v11 + 0)), tail);
eb_store_part_f32x4(a2 + (v10 * d2_1 + (INT64_C(1) * v11 + 0)), tail, v123);
}
j = hi; }
}
} }
}
exit1: ;
i64 wild = 0; (void)wild;
if ((f->threads == 1 || !(INT64_C(7) <= d2_1 && eb_difference(&wild, eb_tame(&wild, v5), INT64_C(1)) <= d1_0 && eb_sum(&wild, INT64_C(3), 1) <= d2_0 && eb_sum(&wild, eb_difference(&wild, INT64_C(1), eb_sum(&wild, INT64_C(1), 1)), 1) >= 0 && eb_tame(&wild, v5) <= d1_0 && eb_tame(&wild, v5) <= d2_0 && eb_tame(&wild, v5) <= d3_0 && eb_tame(&wild, v6) <= d1_1 && eb_tame(&wild, v6) <= d2_1 && eb_tame(&wild, v6) <= d3_1 && f0 + e0 <= d0_0 && f0 + e0 <= d1_0 && f0 + e0 <= d2_0 && f0 >= 0 && f1 + e1 <= d0_1 && f1 + e1 <= d1_1 && f1 + e1 <= d2_1 && f1 >= 0 && !wild)) && eb_barrier(f)) goto leave;
}
if (d1_0 != d2_0 || d1_1 != d2_1) { eb_fault(f, EB_SHAPES, 1, 2, 0, 0); eb_barrier(f); goto leave; }
{ f32 *t = a1; a1 = a2; a2 = t; }
}
if (f->thread == 0) eb_tell(f, pass0);
leave: ;
f->data[0] = a0;
f->data[1] = a1;
f->data[2] = a2;
f->data[3] = a3;
if (f->thread == 0) {
}
return 0; }

