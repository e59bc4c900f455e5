use ebbtide::prelude::*;

#[derive(Arrays)]
struct World {
    x: Array1<f64>,
}

#[programs]
impl World {
    #[program]
    fn step(&mut self, dt: f64) {
        for i in par(0..self.x.len()) {
            self.x[i] += dt;
        }
    }

    #[program]
    fn make(n: usize) {}

    #[program]
    fn take(self) {}
}

#[program]
fn reads(w: &World) {
    w.step(0.1);
}

#[program]
fn misspells(w: &mut World) {
    w.stpe(0.1);
    w.step(1);
}

fn main() {}
