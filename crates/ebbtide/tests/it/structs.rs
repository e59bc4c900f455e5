//! Structs of arrays as parameters.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

#[derive(Arrays)]
struct Grid<T: Float> {
    u: Array1<T>,
    v: Array1<T>,
    dx: T,
}

#[derive(Arrays)]
struct Simulation {
    grid: Grid<f64>,
    energy: Array0<f64>,
    periodic: bool,
    #[arrays(skip)]
    name: String,
}

#[program]
fn energy(grid: &Grid<f64>, energy: &mut Array0<f64>) {
    for i in par(0..grid.u.len()) {
        energy[[]] += grid.u[i] * grid.u[i] * grid.dx;
    }
}

#[program]
fn advance(s: &mut Simulation, steps: usize) {
    for _t in 0..steps {
        for i in par(0..s.grid.u.len()) {
            s.grid.v[i] = if s.periodic { s.grid.u[i] * 0.5 } else { 0.0 };
        }
        swap(s.grid.u, s.grid.v);
    }
    energy(s.grid, s.energy);
}

#[test]
fn structs_are_taken_apart() {
    check(
        advance(),
        expect![[r#"
        program advance(s.grid.u: &mut Array1<f64>, s.grid.v: &mut Array1<f64>, s.grid.dx: f64, s.energy: &mut Array0<f64>, s.periodic: bool, steps: usize) {
            for _t in 0..steps {
                for i in par(0..s.grid.u.len()) {
                    let mut if_0 = 0.0;
                    if s.periodic {
                        if_0 = s.grid.u[i] * 0.5;
                    } else {
                        if_0 = 0.0;
                    }
                    s.grid.v[i] = if_0;
                }
                swap(s.grid.u, s.grid.v);
            }
            /* energy */ {
                for i_2 in par(0..s.grid.u.len()) {
                    s.energy[[]] += s.grid.u[i_2] * s.grid.u[i_2] * s.grid.dx;
                }
            }
        }
    "#]],
    );
}

#[test]
fn a_struct_is_launched_as_one_argument() {
    let device = Device::interpreter();
    let grid = Grid { u: device.array(&[2.0, 4.0]).unwrap(), v: device.zeros([2]).unwrap(), dx: 0.5 };
    let mut s =
        Simulation { grid, energy: device.scalar(0.0).unwrap(), periodic: true, name: "waves".to_string() };
    let status = advance().compile(&device).unwrap().launch((&mut s, 1)).unwrap();
    assert_eq!((status, s.energy[[]], s.name.as_str()), (Status::Done, 2.5, "waves"));
    assert_eq!((s.grid.u.to_vec(), s.grid.v.to_vec()), (vec![1.0, 2.0], vec![2.0, 4.0]));
}

#[program]
fn only_reads(grid: &Grid<f32>, out: &mut Array0<f32>) {
    out[[]] = grid.dx + grid.u[0];
}

#[test]
fn a_struct_by_reference_is_read() {
    check(
        only_reads(),
        expect![[r#"
        program only_reads(grid.u: &Array1<f32>, grid.v: &Array1<f32>, grid.dx: f32, out: &mut Array0<f32>) {
            out[[]] = grid.dx + grid.u[0];
        }
    "#]],
    );
}
