use ebbtide::prelude::*;

#[program]
fn p(v: &Vec<f64>) {}

#[program]
fn q(name: String) {}

fn main() {}
