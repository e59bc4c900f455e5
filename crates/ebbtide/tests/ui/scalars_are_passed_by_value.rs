use ebbtide::prelude::*;

#[program]
fn p(s: &mut f64) {}

fn main() {}
