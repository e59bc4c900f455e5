//! Where the parts of a rank meet, and through it all parts.
//!
//! Every part posts what it wants. The last one to arrive talks to the other ranks, so that one thread of a rank does so at a
//! time. All parts get what they came for, or all get the same [`Stop`]: where one part failed, yielded or returned, and where
//! parts are at different statements. A part that has returned counts as arrived at every further meeting.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ebbtide::ir::parts::{Cause, Ending, Stop};
use serde::{Deserialize, Serialize};

use crate::wire::Wire;

/// What a part wants.
#[derive(Debug)]
pub(crate) enum Post {
    /// The bytes of all parts.
    Gather { at: String, bytes: Vec<u8> },
    /// Messages to other parts; one comes from each of `sources`.
    Swap { at: String, messages: Vec<(usize, Vec<u8>)>, sources: Vec<usize> },
    /// The end of a launch.
    End { at: String, ending: Ending },
    /// The part has returned, with an error or without.
    Left(Option<Stop>),
}

/// What a meeting gives to a part.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Gathered(Vec<Vec<u8>>),
    Swapped(Vec<(usize, Vec<u8>)>),
    Ended,
    /// All parts have returned: without an error, or with the first one.
    AllLeft(Option<Stop>),
}

/// Where a part is, told to all where they do not agree.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Told {
    part: usize,
    at: String,
    /// The text that it ended with, if it ended.
    ended: Option<String>,
    /// Has it returned?
    left: bool,
    stop: Option<(usize, u8, String)>,
}

struct State {
    /// By local part.
    posts: Vec<Option<Post>>,
    left: Vec<Option<Option<Stop>>>,
    arrived: usize,
    generation: u64,
    /// By local part: what the last meeting gave.
    given: Vec<Option<Result<Given, Stop>>>,
    /// How many parts may compute now.
    permits: usize,
    wire: Option<Box<dyn Wire>>,
}

pub(crate) struct Meeting {
    /// The parts of this rank.
    pub local: Range<usize>,
    pub parts: usize,
    pub ranks_here: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// The parts of a rank: as even as can be, in order.
pub(crate) fn parts_of(rank: usize, ranks: usize, parts: usize) -> Range<usize> {
    rank * parts / ranks..(rank + 1) * parts / ranks
}

fn rank_of(part: usize, ranks: usize, parts: usize) -> usize {
    ((part + 1) * ranks - 1) / parts.max(1)
}

impl Meeting {
    /// `permits` parts compute at a time.
    pub fn new(parts: usize, wire: Box<dyn Wire>, permits: usize) -> Meeting {
        let local = parts_of(wire.rank(), wire.ranks(), parts);
        let ranks_here = wire.ranks_here();
        let none = || (0..local.len()).map(|_| None);
        let state = State {
            posts: none().collect(),
            left: (0..local.len()).map(|_| None).collect(),
            arrived: 0,
            generation: 0,
            given: (0..local.len()).map(|_| None).collect(),
            permits: permits.max(1),
            wire: Some(wire),
        };
        Meeting { local, parts, ranks_here, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that runs under the lock can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the right to compute.
    pub fn begin(&self) {
        let mut state = self.lock();
        while state.permits == 0 {
            state = self.wait(state);
        }
        state.permits -= 1;
    }

    fn pause(&self, state: &mut State) {
        state.permits += 1;
        self.changed.notify_all();
    }

    /// Meets all other parts. The caller computes before and after, and not meanwhile.
    pub fn meet(&self, part: usize, post: Post) -> Result<Given, Stop> {
        let k = part - self.local.start;
        let mut state = self.lock();
        self.pause(&mut state);
        let generation = state.generation;
        state.posts[k] = Some(post);
        state.arrived += 1;
        if state.arrived == self.local.len() {
            state = self.hold(state);
        }
        while state.generation == generation {
            state = self.wait(state);
        }
        while state.permits == 0 {
            state = self.wait(state);
        }
        state.permits -= 1;
        let lost = || Stop { part, cause: Cause::Failed, message: "the meeting was lost".to_string() };
        state.given[k].take().unwrap_or_else(|| Err(lost()))
    }

    /// Says that a part has returned. The last part of a rank stays until all parts have returned, and learns how.
    pub fn leave(&self, part: usize, stop: Option<Stop>) -> Option<Result<Option<Stop>, Stop>> {
        let k = part - self.local.start;
        let mut state = self.lock();
        self.pause(&mut state);
        state.left[k] = Some(stop);
        state.arrived += 1;
        loop {
            if state.arrived < self.local.len() {
                return None;
            }
            let all = state.left.iter().all(Option::is_some);
            state = self.hold(state);
            if !all {
                return None;
            }
            match state.given[k].take() {
                Some(Ok(Given::AllLeft(stop))) => return Some(Ok(stop)),
                // Others have not: they have learnt that this part has.
                Some(Err(stop)) if stop.cause != Cause::Failed || stop.part != usize::MAX => {}
                other => {
                    let message = format!("the last meeting gave {other:?}");
                    return Some(Err(Stop { part, cause: Cause::Failed, message }));
                }
            }
        }
    }

    /// Holds a meeting at which all parts of this rank have arrived; the lock is free meanwhile.
    fn hold<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let mut posts: Vec<Post> = Vec::with_capacity(self.local.len());
        for k in 0..self.local.len() {
            let left = state.left[k].clone();
            posts.push(match left {
                Some(stop) => Post::Left(stop),
                None => state.posts[k].take().unwrap_or(Post::Left(None)),
            });
        }
        let Some(mut wire) = state.wire.take() else { return state };
        drop(state);
        let given = self.talk(&mut *wire, posts);
        let mut state = self.lock();
        state.wire = Some(wire);
        state.given = given.into_iter().map(Some).collect();
        // Who has returned has arrived at the next meeting already.
        state.arrived = state.left.iter().filter(|left| left.is_some()).count();
        state.generation += 1;
        self.changed.notify_all();
        state
    }

    /// What each part of this rank gets.
    fn talk(&self, wire: &mut dyn Wire, posts: Vec<Post>) -> Vec<Result<Given, Stop>> {
        let count = posts.len();
        self.try_talk(wire, posts).unwrap_or_else(|message| {
            // What connects the ranks is lost: every part of this one must know.
            let stop = Stop { part: usize::MAX, cause: Cause::Failed, message };
            (0..count).map(|_| Err(stop.clone())).collect()
        })
    }

    fn try_talk(&self, wire: &mut dyn Wire, posts: Vec<Post>) -> Result<Vec<Result<Given, Stop>>, String> {
        let tags: Vec<(u64, bool)> = posts.iter().map(tag).collect();
        let alike = tags.iter().all(|t| *t == tags[0]) && !tags[0].1;
        // Equal tags have equal maxima of themselves and of their complements.
        let mut words = [tags[0].0, !tags[0].0, u64::from(!alike)];
        wire.all_max(&mut words)?;
        if words[2] != 0 || words[0] != !words[1] {
            return self.disagree(wire, &posts);
        }
        match posts.first() {
            Some(Post::Gather { .. }) => self.gather(wire, posts),
            Some(Post::Swap { .. }) => self.swap(wire, posts),
            _ => Ok(posts.iter().map(|_| Ok(Given::Ended)).collect()),
        }
    }

    fn disagree(&self, wire: &mut dyn Wire, posts: &[Post]) -> Result<Vec<Result<Given, Stop>>, String> {
        let own: Vec<Told> = self.local.clone().zip(posts).map(|(part, post)| told(part, post)).collect();
        let own = serde_json::to_vec(&own).map_err(|error| error.to_string())?;
        let mut all: Vec<Told> = Vec::new();
        for bytes in wire.all_gather(&own)? {
            all.extend(serde_json::from_slice::<Vec<Told>>(&bytes).map_err(|error| error.to_string())?);
        }
        all.sort_by_key(|told| told.part);
        let verdict = verdict(&all);
        Ok(posts.iter().map(|_| verdict.clone()).collect())
    }

    fn gather(&self, wire: &mut dyn Wire, posts: Vec<Post>) -> Result<Vec<Result<Given, Stop>>, String> {
        let (mut own, count) = (Vec::new(), posts.len());
        for post in posts {
            if let Post::Gather { bytes, .. } = post {
                own.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
                own.extend(bytes);
            }
        }
        let mut all = Vec::with_capacity(self.parts);
        for bytes in wire.all_gather(&own)? {
            let mut rest = &bytes[..];
            while let Some(bytes) = take(&mut rest) {
                all.push(bytes.to_vec());
            }
        }
        if all.len() != self.parts {
            return Err(format!("{} of {} parts sent something", all.len(), self.parts));
        }
        Ok((0..count).map(|_| Ok(Given::Gathered(all.clone()))).collect())
    }

    fn swap(&self, wire: &mut dyn Wire, posts: Vec<Post>) -> Result<Vec<Result<Given, Stop>>, String> {
        let (ranks, rank) = (wire.ranks(), wire.rank());
        let mut bundles: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        let mut from_ranks: Vec<usize> = Vec::new();
        let mut inbox: BTreeMap<(usize, usize), Vec<u8>> = BTreeMap::new();
        let mut wanted: Vec<Vec<usize>> = Vec::new();
        for (part, post) in self.local.clone().zip(posts) {
            let Post::Swap { messages, sources, .. } = post else { continue };
            for (to, bytes) in messages {
                if self.local.contains(&to) {
                    inbox.insert((to, part), bytes);
                    continue;
                }
                let bundle = bundles.entry(rank_of(to, ranks, self.parts)).or_default();
                bundle.extend([part, to, bytes.len()].iter().flat_map(|n| (*n as u64).to_le_bytes()));
                bundle.extend(bytes);
            }
            from_ranks.extend(sources.iter().map(|from| rank_of(*from, ranks, self.parts)));
            wanted.push(sources);
        }
        from_ranks.retain(|from| *from != rank);
        from_ranks.sort_unstable();
        from_ranks.dedup();
        for (_, bytes) in wire.swap(bundles.into_iter().collect(), &from_ranks)? {
            let mut rest = &bytes[..];
            while let (Some(from), Some(to)) = (number(&mut rest), number(&mut rest)) {
                let bytes = take(&mut rest).ok_or("a message was cut off")?;
                inbox.insert((to, from), bytes.to_vec());
            }
        }
        let mut given = Vec::new();
        for (part, sources) in self.local.clone().zip(wanted) {
            let mut received = Vec::with_capacity(sources.len());
            for from in sources {
                let bytes = inbox.remove(&(part, from));
                let bytes = bytes.ok_or_else(|| format!("part {part} got no message from part {from}"))?;
                received.push((from, bytes));
            }
            given.push(Ok(Given::Swapped(received)));
        }
        Ok(given)
    }
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let (head, tail) = rest.split_first_chunk::<8>()?;
    *rest = tail;
    usize::try_from(u64::from_le_bytes(*head)).ok()
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)?;
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

/// A number for what a part wants, and whether it is something that no meeting can give.
fn tag(post: &Post) -> (u64, bool) {
    let mut hasher = DefaultHasher::new();
    match post {
        Post::Gather { at, .. } => (0, at).hash(&mut hasher),
        Post::Swap { at, .. } => (1, at).hash(&mut hasher),
        Post::End { at, ending: Ending::Done(text) } => (2, at, text).hash(&mut hasher),
        Post::End { at, ending: Ending::Stopped(_) } => (3, at).hash(&mut hasher),
        Post::Left(_) => 4.hash(&mut hasher),
    }
    let special = matches!(post, Post::Left(_) | Post::End { ending: Ending::Stopped(_), .. });
    (hasher.finish(), special)
}

const CAUSES: [Cause; 5] = [Cause::Failed, Cause::Cancelled, Cause::Yielded, Cause::Disagreed, Cause::Left];

fn told(part: usize, post: &Post) -> Told {
    let code = |stop: &Stop| {
        let cause = CAUSES.iter().position(|cause| *cause == stop.cause).unwrap_or(0) as u8;
        (stop.part, cause, stop.message.clone())
    };
    let nowhere = Told { part, at: String::new(), ended: None, left: false, stop: None };
    match post {
        Post::Gather { at, .. } | Post::Swap { at, .. } => Told { at: at.clone(), ..nowhere },
        Post::End { at, ending: Ending::Done(text) } => {
            Told { at: at.clone(), ended: Some(text.clone()), ..nowhere }
        }
        Post::End { at, ending: Ending::Stopped(stop) } => {
            Told { at: at.clone(), stop: Some(code(stop)), ..nowhere }
        }
        Post::Left(stop) => Told { left: true, stop: stop.as_ref().map(code), ..nowhere },
    }
}

/// What all parts get where they do not all want the same; computed from the same list on every rank.
fn verdict(all: &[Told]) -> Result<Given, Stop> {
    let stop = |(part, cause, message): &(usize, u8, String)| Stop {
        part: *part,
        cause: CAUSES.get(usize::from(*cause)).copied().unwrap_or(Cause::Failed),
        message: message.clone(),
    };
    if all.iter().all(|told| told.left) {
        return Ok(Given::AllLeft(all.iter().find_map(|told| told.stop.as_ref()).map(stop)));
    }
    if let Some(first) = all.iter().filter(|told| !told.left).find_map(|told| told.stop.as_ref()) {
        return Err(stop(first));
    }
    if let Some(left) = all.iter().find(|told| told.left) {
        let waiting = all.iter().find(|told| !told.left).map_or("", |told| &told.at);
        let message = match &left.stop {
            Some((_, _, message)) => format!("{message}, while others are at {waiting}"),
            None => format!("others are at {waiting}"),
        };
        return Err(Stop { part: left.part, cause: Cause::Left, message });
    }
    let yielded = all.iter().find(|told| told.ended.as_ref().is_some_and(|text| !text.is_empty()));
    if let Some(Told { part, ended: Some(at), .. }) = yielded {
        return Err(Stop { part: *part, cause: Cause::Yielded, message: at.clone() });
    }
    let other = all.iter().find(|told| told.at != all[0].at).unwrap_or(&all[0]);
    let message = format!("part 0 is at {}, part {} is at {}", all[0].at, other.part, other.at);
    Err(Stop { part: other.part, cause: Cause::Disagreed, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_one_rank() {
        for parts in 1..30 {
            for ranks in 1..=parts {
                for rank in 0..ranks {
                    assert!(!parts_of(rank, ranks, parts).is_empty());
                    assert!(parts_of(rank, ranks, parts).all(|part| rank_of(part, ranks, parts) == rank));
                }
            }
        }
    }
}
