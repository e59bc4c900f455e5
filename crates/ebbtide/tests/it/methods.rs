//! Programs as methods of structs of arrays.

use ebbtide::prelude::*;
use expect_test::expect;

use crate::check;

#[derive(Arrays)]
struct Oscillator {
    x: Array1<f64>,
    v: Array1<f64>,
    stiffness: f64,
}

#[programs]
impl Oscillator {
    fn new(device: &Device, n: usize) -> ebbtide::Result<Self> {
        Ok(Oscillator {
            x: device.from_fn([n], |[i]| 1.0 + i as f64)?,
            v: device.zeros([n])?,
            stiffness: 2.0,
        })
    }

    /// One step of symplectic Euler.
    #[program]
    fn step(&mut self, dt: f64) {
        for i in par(0..self.x.len()) {
            self.v[i] -= dt * self.stiffness * self.x[i];
            self.x[i] += dt * self.v[i];
        }
    }

    #[program]
    fn energy(&self, out: &mut Array0<f64>) {
        for i in par(0..self.x.len()) {
            out[[]] += 0.5 * self.v[i] * self.v[i] + 0.5 * self.stiffness * self.x[i] * self.x[i];
        }
    }

    #[program]
    fn run(&mut self, dt: f64, steps: usize, out: &mut Array0<f64>) {
        for _t in 0..steps {
            self.step(dt);
        }
        self.energy(out);
    }
}

#[derive(Arrays)]
struct Pair {
    left: Oscillator,
    right: Oscillator,
}

#[program]
fn both(pair: &mut Pair, dt: f64) {
    pair.left.step(dt);
    pair.right.step(2.0 * dt);
}

#[test]
fn c77_a_method_is_expanded_where_it_is_called() {
    check(
        Oscillator::run(),
        expect![[r#"
            program Oscillator_run(this.x: &mut Array1<f64>, this.v: &mut Array1<f64>, this.stiffness: f64, dt: f64, steps: usize, out: &mut Array0<f64>) {
                for _t in 0..steps {
                    /* Oscillator_step */ {
                        for i in par(0..this.x.len()) {
                            this.v[i] += -(dt * this.stiffness * this.x[i]);
                            this.x[i] += dt * this.v[i];
                        }
                    }
                }
                /* Oscillator_energy */ {
                    for i_2 in par(0..this.x.len()) {
                        out[[]] += 0.5 * this.v[i_2] * this.v[i_2] + 0.5 * this.stiffness * this.x[i_2] * this.x[i_2];
                    }
                }
            }
        "#]],
    );
}

#[test]
fn a_launch_takes_the_struct_first() {
    for device in [Device::interpreter(), crate::cpu()] {
        let mut oscillator = Oscillator::new(&device, 1).unwrap();
        Oscillator::step().compile(&device).unwrap().launch((&mut oscillator, 0.5)).unwrap();
        assert_eq!((oscillator.v[0], oscillator.x[0]), (-1.0, 0.5));
        let mut pair =
            Pair { left: Oscillator::new(&device, 1).unwrap(), right: Oscillator::new(&device, 1).unwrap() };
        let status = both().compile(&device).unwrap().launch((&mut pair, 0.5)).unwrap();
        assert_eq!(status, Status::Done);
        assert_eq!((pair.left.x[0], pair.right.x[0]), (0.5, -1.0));
    }
}

#[test]
fn a_gradient_of_a_method_names_its_parameters_by_its_type() {
    let device = crate::cpu();
    let oscillator = Oscillator::new(&device, 2).unwrap();
    let g = Oscillator::run().grad(Oscillator_run::out).wrt(Oscillator_run::this);
    let out =
        g.compile(&device).unwrap().launch((&oscillator, 0.1, 0, &device.scalar(0.0).unwrap())).unwrap();
    // Without a step, the slope of the energy is that of its formula.
    let slopes = out.get(Oscillator_run::this).unwrap();
    assert_eq!((slopes.x.to_vec(), slopes.stiffness), (vec![2.0, 4.0], 2.5));
}
