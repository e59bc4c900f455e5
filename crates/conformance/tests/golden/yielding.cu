0, EB_THREADS) {
eb_thread me = eb_enter(launch), *const f = &me;
if (f->shared->ended) return;
i32 *a0 = (i32 *)f->data[0];
const i64 d0_0 = extents.of[0];
i32 *a1 = (i32 *)f->data[1];
const i64 d1_0 = extents.of[4];
i32 *a2 = (i32 *)f->data[2];
i32 *a4 = (i32 *)f->data[4];
i32 *a5 = (i32 *)f->data[5];
const i64 d5_0 = extents.of[20];
i32 *a6 = (i32 *)f->data[6];
i32 *a12 = (i32 *)f->data[12];
const i64 d12_0 = extents.of[48];
i32 v7 = 0;
i32 v8 = 0;
i32 v12 = 0;
i32 v13 = 0;
i32 v14 = 0;
i32 v15 = 0;
i32 v16 = 0;
i64 v17 = 0;
i64 v21 = 0;
i32 v27 = 0;
i32 v28 = 0;
i32 v32 = 0;
i32 v33 = 0;
i32 v34 = 0;
i32 v35 = 0;
i32 v36 = 0;
i64 v37 = 0;
i32 v45 = 0;
i32 v46 = 0;
i32 v50 = 0;
i32 v51 = 0;
i32 v52 = 0;
i32 v53 = 0;
i32 v54 = 0;
i64 v55 = 0;
i32 v57 = 0;
i64 v58 = 0;
i64 v60 = d5_0;
i64 v61 = eb_index_sub(d5_0, INT64_C(1));
i64 v62 = 0;
i32 v63 = 0;
i32 l0 = (i32)f->locals[0];
i64 pass0 = 0;
i64 from0 = 0, to0 = 0;
if (f->resume >= 0) {
v7 = (i32)f->values[7];
v8 = (i32)f->values[8];
v12 = (i32)f->values[12];
v13 = (i32)f->values[13];
v14 = (i32)f->values[14];
v15 = (i32)f->values[15];
v16 = (i32)f->values[16];
v17 = (i64)f->values[17];
v21 = (i64)f->values[21];
v27 = (i32)f->values[27];
v28 = (i32)f->values[28];
v32 = (i32)f->values[32];
v33 = (i32)f->values[33];
v34 = (i32)f->values[34];
v35 = (i32)f->values[35];
v36 = (i32)f->values[36];
v37 = (i64)f->values[37];
v45 = (i32)f->values[45];
v46 = (i32)f->values[46];
v50 = (i32)f->values[50];
v51 = (i32)f->values[51];
v52 = (i32)f->values[52];
v53 = (i32)f->values[53];
v54 = (i32)f->values[54];
v55 = (i64)f->values[55];
v57 = (i32)f->values[57];
v58 = (i64)f->values[58];
v60 = (i64)f->values[60];
v61 = (i64)f->values[61];
v62 = (i64)f->values[62];
v63 = (i32)f->values[63];
pass0 = f->passes[0];
from0 = f->bounds[0]; to0 = f->bounds[1];
switch (f->resume) {
case 0: goto region0;
} }
EB_LOOP for (i64 k = f->thread, n = d12_0; k < n; k += f->threads) { a12[k] = 0; }
l0 = 1;
if ((u64)INT64_C(0) >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 0, 0, INT64_C(0), d0_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a0[INT64_C(0)] = ((i32)((u32)a0[INT64_C(0)] + (u32)1)); }
if (eb_barrier(f)) goto leave;
if ((u64)INT64_C(0) >= (u64)d12_0) { eb_fault(f, EB_BOUNDS, 1, 0, INT64_C(0), d12_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a12[INT64_C(0)] = ((i32)((u32)a12[INT64_C(0)] + (u32)1)); }
v7 = l0;
if (eb_barrier(f)) goto leave;
if ((u64)INT64_C(0) >= (u64)d12_0) { eb_fault(f, EB_BOUNDS, 1, 0, INT64_C(0), d12_0); eb_barrier(f); goto leave; }
v8 = a12[INT64_C(0)];
v12 = ((i32)((u32)v7 * (u32)64));
v13 = ((i32)((u32)v8 * (u32)4096));
v14 = ((i32)((u32)0 + (u32)v12));
v15 = ((i32)((u32)v14 + (u32)v13));
v16 = a2[0];
v17 = ((i64)v16);
if ((u64)v17 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 3, 0, v17, d1_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a1[v17] = v15; }
if (eb_barrier(f)) goto leave;
{
if (f->thread == 0) a2[0] = ((i32)((u32)a2[0] + (u32)1)); }
pass0 = 0;
from0 = INT64_C(0); to0 = INT64_C(3);
for (; from0 + pass0 < to0; pass0++) { v21 = from0 + pass0;
f->pass = pass0;
if (EB_NEAR) if (eb_pause_after(f, (u32)pass0 + 1)) goto leave;
if ((u64)INT64_C(1) >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 0, 0, INT64_C(1), d0_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a0[INT64_C(1)] = ((i32)((u32)a0[INT64_C(1)] + (u32)1)); }
if ((u64)INT64_C(0) >= (u64)d12_0) { eb_fault(f, EB_BOUNDS, 1, 0, INT64_C(0), d12_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a12[INT64_C(0)] = ((i32)((u32)a12[INT64_C(0)] + (u32)1)); }
v27 = l0;
if (eb_barrier(f)) goto leave;
if ((u64)INT64_C(0) >= (u64)d12_0) { eb_fault(f, EB_BOUNDS, 1, 0, INT64_C(0), d12_0); eb_barrier(f); goto leave; }
v28 = a12[INT64_C(0)];
v32 = ((i32)((u32)v27 * (u32)64));
v33 = ((i32)((u32)v28 * (u32)4096));
v34 = ((i32)((u32)1 + (u32)v32));
v35 = ((i32)((u32)v34 + (u32)v33));
v36 = a2[0];
v37 = ((i64)v36);
if ((u64)v37 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 3, 0, v37, d1_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a1[v37] = v35; }
if (eb_barrier(f)) goto leave;
{
if (f->thread == 0) a2[0] = ((i32)((u32)a2[0] + (u32)1)); }
/* region 0 */
region0: ;
if ((u64)INT64_C(2) >= (u64)d0_0) { eb_fault(f, EB_BOUNDS, 0, 0, INT64_C(2), d0_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a0[INT64_C(2)] = ((i32)((u32)a0[INT64_C(2)] + (u32)1)); }
if ((u64)INT64_C(0) >= (u64)d12_0) { eb_fault(f, EB_BOUNDS, 1, 0, INT64_C(0), d12_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a12[INT64_C(0)] = ((i32)((u32)a12[INT64_C(0)] + (u32)1)); }
v45 = l0;
if (eb_barrier(f)) goto leave;
if ((u64)INT64_C(0) >= (u64)d12_0) { eb_fault(f, EB_BOUNDS, 1, 0, INT64_C(0), d12_0); eb_barrier(f); goto leave; }
v46 = a12[INT64_C(0)];
v50 = ((i32)((u32)v45 * (u32)64));
v51 = ((i32)((u32)v46 * (u32)4096));
v52 = ((i32)((u32)2 + (u32)v50));
v53 = ((i32)((u32)v52 + (u32)v51));
v54 = a2[0];
v55 = ((i64)v54);
if ((u64)v55 >= (u64)d1_0) { eb_fault(f, EB_BOUNDS, 3, 0, v55, d1_0); eb_barrier(f); goto leave; }
{
if (f->thread == 0) a1[v55] = v53; }
v57 = a6[0];
v58 = ((i64)v57);
v60 = d5_0;
v61 = eb_index_sub(v60, INT64_C(1));
v62 = eb_index_min(v58, v61);
if ((u64)v62 >= (u64)d5_0) { eb_fault(f, EB_BOUNDS, 5, 0, v62, d5_0); eb_barrier(f); goto leave; }
v63 = a5[v62];
{
if (f->thread == 0) a4[0] = v63; }
if (eb_barrier(f)) goto leave;
{
if (f->thread == 0) a2[0] = ((i32)((u32)a2[0] + (u32)1)); }
{
if (f->thread == 0) a6[0] = ((i32)((u32)a6[0] + (u32)1)); }
if (a4[0]) {
if (f->thread == 0) { f->shared->outcome = 1; f->shared->region = 0; f->shared->reason = a4[0]; }
eb_barrier(f); goto leave; }
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
f->data[4] = a4;
f->data[5] = a5;
f->data[6] = a6;
f->data[12] = a12;
f->values[7] = (u64)(u32)v7;
f->values[8] = (u64)(u32)v8;
f->values[12] = (u64)(u32)v12;
f->values[13] = (u64)(u32)v13;
f->values[14] = (u64)(u32)v14;
f->values[15] = (u64)(u32)v15;
f->values[16] = (u64)(u32)v16;
f->values[17] = (u64)v17;
f->values[21] = (u64)v21;
f->values[27] = (u64)(u32)v27;
f->values[28] = (u64)(u32)v28;
f->values[32] = (u64)(u32)v32;
f->values[33] = (u64)(u32)v33;
f->values[34] = (u64)(u32)v34;
f->values[35] = (u64)(u32)v35;
f->values[36] = (u64)(u32)v36;
f->values[37] = (u64)v37;
f->values[45] = (u64)(u32)v45;
f->values[46] = (u64)(u32)v46;
f->values[50] = (u64)(u32)v50;
f->values[51] = (u64)(u32)v51;
f->values[52] = (u64)(u32)v52;
f->values[53] = (u64)(u32)v53;
f->values[54] = (u64)(u32)v54;
f->values[55] = (u64)v55;
f->values[57] = (u64)(u32)v57;
f->values[58] = (u64)v58;
f->values[60] = (u64)v60;
f->values[61] = (u64)v61;
f->values[62] = (u64)v62;
f->values[63] = (u64)(u32)v63;
f->locals[0] = (u64)(u32)l0;
f->passes[0] = pass0;
f->bounds[0] = from0; f->bounds[1] = to0;
}
EB_END(f) }

