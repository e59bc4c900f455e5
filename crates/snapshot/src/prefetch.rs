use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::journal::FileNumber;
use crate::store::Store;
use crate::{Checkpoint, Error, Kind};

/// A thread that reads one checkpoint ahead.
pub(crate) struct Prefetcher {
    requests: Option<Sender<Request>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
    reading: Option<FileNumber>,
}

struct Request {
    file: FileNumber,
    step: u64,
    buffer: Checkpoint,
}

/// A checkpoint that was asked for, or the buffer that it was to be read into and what went wrong.
pub(crate) struct Answer {
    pub(crate) file: FileNumber,
    pub(crate) buffer: Checkpoint,
    pub(crate) result: Result<(), Error>,
}

impl Prefetcher {
    pub(crate) fn start(store: Store) -> Result<Self, Error> {
        let (requests, inbox) = channel::<Request>();
        let (outbox, answers) = channel();
        let dir = store.dir.clone();
        let thread = std::thread::Builder::new()
            .name("ebbtide-reader".to_owned())
            .spawn(move || {
                for Request { file, step, mut buffer } in inbox {
                    let result = store.read(file, Kind::State, step, &mut buffer);
                    if outbox.send(Answer { file, buffer, result }).is_err() {
                        return;
                    }
                }
            })
            .map_err(Error::io("start a thread for", &dir))?;
        Ok(Self { requests: Some(requests), answers, thread: Some(thread), reading: None })
    }

    /// The file that is being read, or has been and waits to be taken.
    pub(crate) fn reading(&self) -> Option<FileNumber> {
        self.reading
    }

    pub(crate) fn request(&mut self, file: FileNumber, step: u64, buffer: Checkpoint) {
        if let Some(requests) = &self.requests
            && requests.send(Request { file, step, buffer }).is_ok()
        {
            self.reading = Some(file);
        }
    }

    /// The answer, if it has come.
    pub(crate) fn poll(&mut self) -> Option<Answer> {
        let answer = self.answers.try_recv().ok()?;
        self.reading = None;
        Some(answer)
    }

    /// The answer, when it comes.
    pub(crate) fn wait(&mut self) -> Result<Answer, Error> {
        self.reading = None;
        self.answers.recv().map_err(|_| Error::WorkerDied { doing: "reads snapshots" })
    }
}

impl Drop for Prefetcher {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
