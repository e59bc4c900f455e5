use ebbtide::prelude::*;

#[derive(Label)]
enum Stage {
    Detect(i32),
    Solve,
}

#[derive(Label)]
struct NotAnEnum;

fn main() {}
