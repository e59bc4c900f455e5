//! The inversion on several ranks: rank 0 leads, the others evaluate shots at the points that it sends.
//!
//! Rank 0 alone has the optimiser, the durable run and the report, so these exist once. A rank that fails tells all others, and
//! every rank returns the same failure; none waits for a rank that has gone.

use ebbtide_grid::Wire;

use crate::Failure;

/// What rank 0 says before each evaluation: an empty message ends the run, one of this byte and a text fails it, one of the other
/// byte and numbers is a point.
const POINT: u8 = 0;
const FAILED: u8 = 1;

/// Where to evaluate next; `None` after the last evaluation.
type Point = Option<Vec<f64>>;

fn lost(error: String) -> Failure {
    Failure::Other(format!("the ranks lost each other: {error}"))
}

/// Returns `own` where no rank failed, and everywhere the failure of the first rank that did. All ranks call it.
pub fn agree<T>(ranks: &mut dyn Wire, own: Result<T, Failure>) -> Result<T, Failure> {
    let told = match &own {
        Ok(_) => Vec::new(),
        Err(failure) => failure.encode(),
    };
    let all = ranks.all_gather(&told).map_err(lost)?;
    match (own, all.iter().position(|bytes| !bytes.is_empty())) {
        (own, None) => own,
        // Its own words: they need no rank.
        (Err(failure), Some(first)) if first == ranks.rank() => Err(failure),
        (_, Some(0)) => Err(Failure::decode(&all[0], String::new())),
        (_, Some(first)) => Err(Failure::decode(&all[first], format!("rank {first}: "))),
    }
}

/// Sends the next point to the other ranks, or that there is none. Rank 0 calls it.
pub fn send(ranks: &mut dyn Wire, point: Option<&[f64]>) -> Result<(), Failure> {
    let message = point.map_or_else(Vec::new, |point| {
        let numbers = point.iter().flat_map(|x| x.to_le_bytes());
        std::iter::once(POINT).chain(numbers).collect()
    });
    ranks.all_gather(&message).map_err(lost).map(|_| ())
}

/// Tells the other ranks that rank 0 failed.
pub fn send_failure(ranks: &mut dyn Wire, failure: &Failure) -> Result<(), Failure> {
    let message: Vec<u8> = std::iter::once(FAILED).chain(failure.encode()).collect();
    ranks.all_gather(&message).map_err(lost).map(|_| ())
}

/// Receives what rank 0 sends. All other ranks call it.
pub fn receive(ranks: &mut dyn Wire) -> Result<Point, Failure> {
    let all = ranks.all_gather(&[]).map_err(lost)?;
    match all.first().map(Vec::as_slice) {
        Some([FAILED, failure @ ..]) => Err(Failure::decode(failure, String::new())),
        Some([_, numbers @ ..]) => {
            let numbers = numbers.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
            Ok(Some(numbers.collect()))
        }
        _ => Ok(None),
    }
}

impl Failure {
    /// Its kind and its text; never empty.
    fn encode(&self) -> Vec<u8> {
        let (kind, text) = match self {
            Failure::Usage(text) => (0, text),
            Failure::Other(text) => (1, text),
            Failure::Told(text) => (2, text),
        };
        std::iter::once(kind).chain(text.bytes()).collect()
    }

    fn decode(bytes: &[u8], before: String) -> Failure {
        let (kind, text) = bytes.split_first().unwrap_or((&1, b"a rank failed"));
        let text = before + &String::from_utf8_lossy(text);
        match kind {
            0 => Failure::Usage(text),
            1 => Failure::Other(text),
            _ => Failure::Told(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use ebbtide_grid::Channels;

    use super::*;

    /// What each of `count` ranks returns.
    fn on_ranks<R: Send>(count: usize, work: impl Fn(&mut dyn Wire) -> R + Sync) -> Vec<R> {
        std::thread::scope(|scope| {
            let start = |mut wire: Channels| {
                scope.spawn({
                    let work = &work;
                    move || work(&mut wire)
                })
            };
            let threads: Vec<_> = Channels::ranks(count).into_iter().map(start).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn a_rank_that_fails_fails_all_and_is_named() {
        let fails = |ranks: &mut dyn Wire| {
            let own = match ranks.rank() {
                0 => Ok(7),
                rank => Err(Failure::Usage(format!("no device {rank}"))),
            };
            format!("{:?}", agree(ranks, own))
        };
        let named = r#"Err(Usage("rank 1: no device 1"))"#;
        assert_eq!(on_ranks(3, fails), [named, r#"Err(Usage("no device 1"))"#, named]);
        let fine = on_ranks(3, |ranks| {
            let rank = ranks.rank();
            agree(ranks, Ok(rank)).ok()
        });
        assert_eq!(fine, [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn points_arrive_with_all_their_bits_and_a_failure_with_its_text() {
        let point = vec![0.1, -0.0, f64::MIN_POSITIVE, f64::NAN];
        let bits = |point: &[f64]| point.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
        let found = on_ranks(2, |ranks| match ranks.rank() {
            0 => {
                send(ranks, Some(&point)).unwrap();
                send(ranks, Some(&[])).unwrap();
                send(ranks, None).unwrap();
                send_failure(ranks, &Failure::Other("the disk is full".to_owned())).unwrap();
                Vec::new()
            }
            _ => vec![
                format!("{:?}", receive(ranks).unwrap().map(|point| bits(&point))),
                format!("{:?}", receive(ranks).unwrap()),
                format!("{:?}", receive(ranks).unwrap()),
                format!("{:?}", receive(ranks).unwrap_err()),
            ],
        });
        let wanted = [format!("{:?}", Some(bits(&point))), "Some([])".to_owned(), "None".to_owned()];
        assert_eq!(found[1][..3], wanted);
        assert_eq!(found[1][3], r#"Other("the disk is full")"#);
    }
}
