//! What a process does, for people to look at.
//!
//! Runtime and devices say what they do through `tracing`. Whoever has a subscriber gets it there. `EBBTIDE_TRACE=FILE`
//! makes this module the subscriber: it writes a trace that `chrome://tracing` and Perfetto show, one event at a time,
//! so that the file is a whole JSON array after every event, also where the process is killed.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Instant;

use ebbtide_schedule::{Action, Slot, Tier};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, EnteredSpan, Id, Record};
use tracing::{Event, Level, Metadata, Span, Subscriber, trace_span};

/// Tells the user something that is no error: through `tracing`, or on standard error where nothing listens there.
pub fn warn(message: &str) {
    match tracing::dispatcher::has_been_set() {
        true => tracing::warn!("{message}"),
        false => eprintln!("ebbtide: warning: {message}"),
    }
}

/// Begins the trace that `EBBTIDE_TRACE` asks for; only the first call in a process does anything.
pub(crate) fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(path) = std::env::var_os("EBBTIDE_TRACE").filter(|path| !path.is_empty()) else { return };
        match Writer::create(Path::new(&path)) {
            Err(error) => eprintln!("ebbtide: warning: EBBTIDE_TRACE: {}: {error}", path.display()),
            Ok(writer) => {
                if tracing::subscriber::set_global_default(writer).is_err() {
                    warn("EBBTIDE_TRACE: this process has a `tracing` subscriber of its own, which gets the events");
                }
            }
        }
    });
}

/// The span of one action of a schedule, of whose states beyond memory this many are on disk.
pub(crate) fn action(action: &Action, on_disk: usize) -> EnteredSpan {
    let place = |slot: Slot| match slot {
        Slot { tier: Tier::Disk, index } if index >= on_disk => format!("host[{}]", index - on_disk),
        slot => slot.to_string(),
    };
    let span = match *action {
        Action::Advance { from, to } => trace_span!("advance", from, to),
        Action::Record { from, to } => trace_span!("record", from, to),
        Action::Reverse { from, to } => trace_span!("reverse", from, to),
        Action::Store { step, slot } => trace_span!("store", step, slot = place(slot)),
        Action::Load { step, slot } => trace_span!("load", step, slot = place(slot)),
        Action::Drop { .. } | Action::Turn => Span::none(),
    };
    span.entered()
}

/// Writes a Chrome trace.
struct Writer {
    file: Mutex<Tail>,
    start: Instant,
    spans: Mutex<HashMap<u64, Open>>,
    next: AtomicU64,
}

/// The file, and where the next event goes: over the bracket that ends it.
struct Tail {
    file: File,
    end: u64,
}

impl Tail {
    /// Writes from the end on, the bracket included, in one piece.
    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(text)
    }
}

struct Open {
    name: &'static str,
    fields: Fields,
    /// What was learnt on the way: told when the span is left.
    learnt: Fields,
    handles: usize,
}

impl Writer {
    fn create(path: &Path) -> io::Result<Writer> {
        let file = File::create(path)?;
        (&file).write_all(b"[\n]\n")?;
        Ok(Writer {
            file: Mutex::new(Tail { file, end: 1 }),
            start: Instant::now(),
            spans: Mutex::default(),
            next: AtomicU64::new(1),
        })
    }

    /// Appends one event. A file that cannot be written any more is no reason to stop the run.
    fn put(&self, phase: char, name: &str, fields: &str) {
        let time = self.start.elapsed().as_nanos();
        let (thread, first) = thread_number();
        let mut tail = lock(&self.file);
        let mut text = String::new();
        let mut event = |phase: char, name: &str, fields: &str| {
            let comma = if tail.end == 1 && text.is_empty() { "" } else { "," };
            let _ = write!(text, "{comma}\n{{\"ph\":\"{phase}\",\"name\":");
            quote(&mut text, name);
            let (whole, part, process) = (time / 1000, time % 1000, std::process::id());
            let _ = write!(text, ",\"pid\":{process},\"tid\":{thread},\"ts\":{whole}.{part:03}");
            if phase == 'i' {
                text.push_str(",\"s\":\"t\"");
            }
            let _ = write!(text, ",\"args\":{{{fields}}}}}");
        };
        if first {
            let current = std::thread::current();
            let mut name = Fields::default();
            name.put("name", |text| quote(text, current.name().unwrap_or("a thread without a name")));
            event('M', "thread_name", &name.json);
        }
        event(phase, name, fields);
        let written = text.len() as u64;
        text.push_str("\n]\n");
        if tail.write(text.as_bytes()).is_ok() {
            tail.end += written;
        }
    }
}

impl Subscriber for Writer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ebbtide")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let open = Open { name: attributes.metadata().name(), fields, learnt: Fields::default(), handles: 1 };
        lock(&self.spans).insert(id, open);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        if let Some(open) = lock(&self.spans).get_mut(&span.into_u64()) {
            values.record(&mut open.learnt);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if *event.metadata().level() <= Level::WARN {
            eprintln!("ebbtide: warning: {}", fields.message);
        }
        let name = if fields.message.is_empty() { event.metadata().name() } else { &fields.message };
        self.put('i', name, &fields.json);
    }

    fn enter(&self, span: &Id) {
        let open = lock(&self.spans).get(&span.into_u64()).map(|open| (open.name, open.fields.json.clone()));
        if let Some((name, fields)) = open {
            self.put('B', name, &fields);
        }
    }

    fn exit(&self, span: &Id) {
        let open = lock(&self.spans).get(&span.into_u64()).map(|open| (open.name, open.learnt.json.clone()));
        if let Some((name, learnt)) = open {
            self.put('E', name, &learnt);
        }
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(open) = lock(&self.spans).get_mut(&span.into_u64()) {
            open.handles += 1;
        }
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut spans = lock(&self.spans);
        let Some(open) = spans.get_mut(&span.into_u64()) else { return true };
        open.handles -= 1;
        let closed = open.handles == 0;
        if closed {
            spans.remove(&span.into_u64());
        }
        closed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change under a lock is one insertion, removal or write.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of this thread, and whether it is asked for the first time.
fn thread_number() -> (u64, bool) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| match number.get() {
        0 => {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
            (number.get(), true)
        }
        known => (known, false),
    })
}

/// Fields as the inside of a JSON object, and the message among them as it is.
#[derive(Default)]
struct Fields {
    json: String,
    message: String,
}

impl Fields {
    fn put(&mut self, name: &str, value: impl FnOnce(&mut String)) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        quote(&mut self.json, name);
        self.json.push(':');
        value(&mut self.json);
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), |text| text.push_str(&value.to_string()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), |text| text.push_str(&value.to_string()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), |text| quote(text, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let value = format!("{value:?}");
        self.put(field.name(), |text| quote(text, &value));
        if field.name() == "message" {
            self.message = value;
        }
    }
}

/// Appends a JSON string.
fn quote(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c < ' ' => {
                let _ = write!(text, "\\u{:04x}", c as u32);
            }
            c => text.push(c),
        }
    }
    text.push('"');
}
