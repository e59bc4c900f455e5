//! The claims that the schedules make, as tests.

mod best;
mod legality;
mod mixed;
mod multistage;
mod revolve;
mod support;
mod text;
