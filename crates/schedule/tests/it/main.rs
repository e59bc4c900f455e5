//! The claims that the schedules make, as tests.

mod legality;
mod multistage;
mod revolve;
mod support;
mod text;
