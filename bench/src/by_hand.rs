//! The workloads in hand-written C.

use std::cell::RefCell;
use std::rc::Rc;

use crate::Result;
use crate::case::{Answer, Case, norm};
use crate::reference::{Reference, aligned, memory};
use crate::workloads::{Size, Workload, number};

/// How an array of the reference begins.
#[derive(Clone, Copy)]
enum Start {
    Zero,
    Numbers,
    /// 0.1 and the numbers.
    Speeds,
}

#[derive(Clone, Copy)]
enum Element {
    F32,
    F64,
}

/// What the reference is called with: the function, its arrays in order, and which of them are the answer.
struct Call {
    function: String,
    element: Element,
    arrays: Vec<(usize, Start)>,
    answer: &'static [usize],
    /// Arrays to put back before each run.
    state: &'static [usize],
    extents: [i64; 2],
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }

    fn read(self, words: &mut [u64], count: usize) -> Vec<f64> {
        // SAFETY: `memory` made room for as many elements behind the alignment.
        unsafe {
            let start = aligned(words);
            match self {
                Element::F32 => std::slice::from_raw_parts(start.cast::<f32>(), count)
                    .iter()
                    .map(|x| (*x).into())
                    .collect(),
                Element::F64 => std::slice::from_raw_parts(start.cast::<f64>(), count).to_vec(),
            }
        }
    }

    fn fill(self, words: &mut [u64], count: usize, start: Start) {
        let base = match start {
            Start::Zero => return words.fill(0),
            Start::Numbers => 0.0,
            Start::Speeds => 0.1,
        };
        // SAFETY: as above.
        unsafe {
            let to = aligned(words);
            match self {
                Element::F32 => {
                    let to = std::slice::from_raw_parts_mut(to.cast::<f32>(), count);
                    to.iter_mut().enumerate().for_each(|(k, x)| *x = base as f32 + number(k) as f32);
                }
                Element::F64 => {
                    let to = std::slice::from_raw_parts_mut(to.cast::<f64>(), count);
                    to.iter_mut().enumerate().for_each(|(k, x)| *x = base + number(k));
                }
            }
        }
    }
}

fn case(reference: &Rc<Reference>, call: Call, steps: usize, threads: usize) -> Case {
    let sizes: Vec<usize> = call.arrays.iter().map(|(count, _)| *count).collect();
    let mut arrays: Vec<Vec<u64>> = sizes.iter().map(|n| memory(call.element.bytes() * n)).collect();
    for (array, (count, start)) in arrays.iter_mut().zip(&call.arrays) {
        if !matches!(start, Start::Zero) {
            call.element.fill(array, *count, *start);
        }
    }
    let arrays = Rc::new(RefCell::new(arrays));
    let (to_reset, to_read) = (arrays.clone(), arrays.clone());
    let starts: Vec<Start> = call.arrays.iter().map(|(_, start)| *start).collect();
    let (reference, element) = (reference.clone(), call.element);
    let of_sizes = sizes.clone();
    Case {
        reset: Box::new(move || {
            let mut arrays = to_reset.borrow_mut();
            call.state.iter().for_each(|&k| element.fill(&mut arrays[k], of_sizes[k], starts[k]));
            Ok(())
        }),
        run: Box::new(move || {
            let mut arrays = arrays.borrow_mut();
            reference.run(&call.function, &mut arrays, call.extents, steps as i64, threads as i32)
        }),
        answer: Box::new(move || {
            let mut arrays = to_read.borrow_mut();
            let all = call.answer.iter().flat_map(|&k| element.read(&mut arrays[k], sizes[k]));
            Ok(Answer { loss: None, norm: norm(all.collect::<Vec<_>>().into_iter()) })
        }),
    }
}

/// The gradient of a workload's loss by a hand-derived adjoint, with a state every `period` steps.
pub fn gradient(
    reference: &Rc<Reference>,
    workload: Workload,
    size: Size,
    period: usize,
    threads: usize,
) -> Result<Case> {
    use Start::{Numbers, Speeds, Zero};
    let Size { cells: n, steps } = size;
    let workload = workload.yardstick();
    let (history, states) = ((period + 1) * n, (steps / period + 1) * n);
    let (element, arrays, answer): (Element, Vec<(usize, Start)>, &'static [usize]) = match workload {
        Workload::Pointwise | Workload::Seedloop => (
            Element::F64,
            vec![(n, Numbers), (n, Numbers), (n, Zero), (n, Zero), (history, Zero), (states, Zero)],
            &[2, 3],
        ),
        Workload::Burgers | Workload::LongBurgers => (
            Element::F64,
            vec![(n, Numbers), (n, Zero), (n, Zero), (history, Zero), (states, Zero), (n, Zero), (n, Zero)],
            &[1],
        ),
        Workload::Wave => {
            let plane = n * n;
            let arrays = vec![
                (plane, Zero),
                (plane, Zero),
                (plane, Speeds),
                (steps, Numbers),
                (plane, Zero),
                (plane, Zero),
                (plane, Zero),
                ((period + 2) * plane, Zero),
                (2 * (steps / period + 1) * plane, Zero),
                (2 * plane, Zero),
                (steps * n, Zero),
            ];
            (Element::F32, arrays, &[4])
        }
        Workload::Rnn | Workload::RnnLoops => {
            let arrays = vec![
                (n, Numbers),
                (n * n, Numbers),
                (n, Numbers),
                (n * n, Zero),
                (n, Zero),
                (history, Zero),
                (states, Zero),
                (8 * n, Zero),
                (n, Zero),
                (n, Zero),
                (n, Zero),
            ];
            (Element::F64, arrays, &[3, 4])
        }
    };
    let function = format!("{}_gradient", workload.name());
    let extents = [n as i64, period as i64];
    Ok(case(reference, Call { function, element, arrays, answer, state: &[], extents }, steps, threads))
}

/// The workload itself.
pub fn primal(reference: &Rc<Reference>, workload: Workload, size: Size, threads: usize) -> Result<Case> {
    use Start::{Numbers, Speeds, Zero};
    let Size { cells: n, steps } = size;
    let workload = workload.yardstick();
    // After an odd number of steps the state is in the other array.
    let end: &'static [usize] = if steps % 2 == 0 { &[0] } else { &[1] };
    let (element, arrays, answer): (Element, Vec<(usize, Start)>, &'static [usize]) = match workload {
        Workload::Pointwise | Workload::Seedloop => (Element::F64, vec![(n, Numbers), (n, Numbers)], &[0]),
        Workload::Burgers | Workload::LongBurgers => (Element::F64, vec![(n, Numbers), (n, Zero)], end),
        Workload::Wave => {
            let plane = n * n;
            let arrays =
                vec![(plane, Zero), (plane, Zero), (plane, Speeds), (steps, Numbers), (steps * n, Zero)];
            (Element::F32, arrays, end)
        }
        Workload::Rnn | Workload::RnnLoops => {
            (Element::F64, vec![(n, Numbers), (n, Zero), (n * n, Numbers), (n, Numbers)], end)
        }
    };
    let function = workload.name().to_string();
    let extents = [n as i64; 2];
    Ok(case(reference, Call { function, element, arrays, answer, state: &[0, 1], extents }, steps, threads))
}
