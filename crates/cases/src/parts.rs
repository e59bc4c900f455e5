//! Parts that stand in a line, each on a thread of its own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use ebbtide_ir::parts::{Cause, Ending, Sharing, Stop, Transport, Way, within};
use ebbtide_ir::{HostArg, Type};

/// What connects a part with the others. The parts stand in a line: the first and the last element of an array of rank 1 are
/// halos, which belong to the neighbours before and behind the part. Those at the ends of the line are ordinary elements.
pub struct Line {
    part: usize,
    meeting: Arc<Meeting>,
}

#[derive(Default)]
struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

/// Where parts wait for one another.
#[derive(Default)]
struct State {
    /// How often all of them have met.
    met: u64,
    /// The statement and the bytes of each part that waits.
    brought: Vec<Option<(String, Vec<u8>)>>,
    /// What all brought when they last met.
    all: Vec<(String, Vec<u8>)>,
    /// A part that has returned.
    gone: Option<usize>,
}

impl Meeting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs each part on a thread of its own; what they give, in the order of their numbers.
pub(crate) fn together<G: Sync, R: Send>(given: &[G], run: &(dyn Fn(&G) -> R + Sync)) -> Vec<R> {
    let meeting = Arc::new(Meeting::default());
    meeting.state().brought = given.iter().map(|_| None).collect();
    std::thread::scope(|scope| {
        let start = |(part, given)| {
            let line = Arc::new(Line { part, meeting: Arc::clone(&meeting) });
            scope.spawn(move || {
                let transport: Arc<dyn Transport> = line.clone();
                let result = within(Some(transport), || run(given));
                line.leave();
                result
            })
        };
        let threads: Vec<_> = given.iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no part of a case panics")).collect()
    })
}

impl Line {
    /// No other part need wait for this one any more.
    fn leave(&self) {
        self.meeting.state().gone.get_or_insert(self.part);
        self.meeting.changed.notify_all();
    }

    fn stop(&self, part: usize, cause: Cause, message: String) -> Stop {
        Stop { part, cause, message }
    }
}

impl Transport for Line {
    fn part(&self) -> usize {
        self.part
    }

    fn parts(&self) -> usize {
        self.meeting.state().brought.len()
    }

    fn threads(&self) -> Option<usize> {
        Some(1)
    }

    fn sharing(&self) -> Sharing {
        Sharing { process: self.parts(), machine: self.parts() }
    }

    fn identity(&self) -> String {
        format!("part {} of a line of {}", self.part, self.parts())
    }

    fn gather(&self, at: &str, own: &[u8]) -> Result<Vec<Vec<u8>>, Stop> {
        let mut state = self.meeting.state();
        let before = state.met;
        state.brought[self.part] = Some((at.to_string(), own.to_vec()));
        if state.brought.iter().all(Option::is_some) {
            state.all = state.brought.iter_mut().filter_map(Option::take).collect();
            state.met += 1;
            self.meeting.changed.notify_all();
        }
        while state.met == before {
            if let Some(gone) = state.gone {
                let message = format!("part {} waits in {at}", self.part);
                return Err(self.stop(gone, Cause::Left, message));
            }
            state = self.meeting.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // All have met: the next meeting waits for this part.
        match state.all.iter().position(|(statement, _)| statement != &state.all[0].0) {
            Some(part) => {
                let message =
                    format!("part 0 is in {}, part {part} in {}", state.all[0].0, state.all[part].0);
                Err(self.stop(part, Cause::Disagreed, message))
            }
            None => Ok(state.all.iter().map(|(_, bytes)| bytes.clone()).collect()),
        }
    }

    fn exchange(&self, at: &str, way: Way, arrays: &mut [HostArg<'_>]) -> Result<(), String> {
        for array in arrays {
            let HostArg::Write { ty: Type::F64, shape: [extent], bytes } = array else {
                return Err("parts of a case exchange arrays of `f64` of rank 1".to_string());
            };
            let extent = *extent as usize;
            if extent < 3 {
                return Err("there is no element between the halos".to_string());
            }
            let all = self.gather(at, bytes).map_err(|stop| stop.to_string())?;
            let before = self.part.checked_sub(1).and_then(|part| all.get(part)).map(|bytes| numbers(bytes));
            let behind = all.get(self.part + 1).map(|bytes| numbers(bytes));
            let mut own = numbers(bytes);
            match way {
                Way::Fill => {
                    if let Some(before) = before {
                        own[0] = before[before.len() - 2];
                    }
                    if let Some(behind) = behind {
                        own[extent - 1] = behind[1];
                    }
                }
                // In ascending order of the neighbours' numbers.
                Way::Add => {
                    if let Some(before) = before {
                        own[1] += before[before.len() - 1];
                        own[0] = 0.0;
                    }
                    if let Some(behind) = behind {
                        own[extent - 2] += behind[0];
                        own[extent - 1] = 0.0;
                    }
                }
            }
            let made: Vec<u8> = own.iter().flat_map(|x| x.to_ne_bytes()).collect();
            bytes.copy_from_slice(&made);
        }
        Ok(())
    }

    fn end(&self, at: &str, ending: Ending) -> Result<(), Stop> {
        match ending {
            Ending::Stopped(stop) => Err(stop),
            Ending::Done(how) => self.gather(&format!("{at}, {how}"), &[]).map(drop),
        }
    }
}

fn numbers(bytes: &[u8]) -> Vec<f64> {
    let number = |chunk: &[u8; 8]| f64::from_ne_bytes(*chunk);
    bytes.as_chunks::<8>().0.iter().map(number).collect()
}
