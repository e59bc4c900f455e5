//! Lists in which the threads of a launch note terms of ordered sums for one another.

use std::alloc::{Layout, alloc, dealloc, realloc};

/// The bytes of a note: the place of an element, and a term; `eb_note` of the prelude.
const NOTE: usize = 16;
/// The notes that a list has room for at first.
const FIRST: i64 = 256;

/// Notes, in order; `eb_list` of the prelude. Threads count the notes of their lists all the time: each has cache lines of
/// its own.
#[repr(C, align(128))]
pub(crate) struct List {
    notes: *mut u8,
    count: i64,
    room: i64,
}

/// The lists of one launch. They live as long as it runs.
pub(crate) struct Lists(Vec<List>);

fn layout(room: i64) -> Option<Layout> {
    Layout::array::<[u64; NOTE / 8]>(usize::try_from(room).ok()?).ok()
}

impl Lists {
    pub fn new(count: usize) -> Lists {
        Lists((0..count).map(|_| List { notes: std::ptr::null_mut(), count: 0, room: 0 }).collect())
    }

    /// The first list; null where there are none.
    pub fn table(&mut self) -> *mut List {
        if self.0.is_empty() { std::ptr::null_mut() } else { self.0.as_mut_ptr() }
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        for list in &self.0 {
            if let (false, Some(layout)) = (list.notes.is_null(), layout(list.room)) {
                // SAFETY (*Liveness*): `grow` allocated it with this layout, and no thread runs any more.
                unsafe { dealloc(list.notes, layout) };
            }
        }
    }
}

/// Makes room for more notes; 0 where there is no memory.
///
/// # Safety
///
/// (*Exclusive access*): the list is one of a launch, and the calling thread the only one that touches it now.
pub(crate) unsafe extern "C" fn grow(list: *mut List) -> i32 {
    // SAFETY (*Exclusive access*): the caller's.
    let list = unsafe { &mut *list };
    let room = if list.room == 0 { FIRST } else { list.room.saturating_mul(2) };
    let (Some(old), Some(new)) = (layout(list.room), layout(room)) else { return 0 };
    // SAFETY (*Bounds*): the layout is not empty, and the old one is what the notes were allocated with.
    let notes =
        unsafe { if list.notes.is_null() { alloc(new) } else { realloc(list.notes, old, new.size()) } };
    if notes.is_null() {
        return 0;
    }
    (list.notes, list.room) = (notes, room);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_notes_while_it_grows() {
        let mut lists = Lists::new(1);
        let list = lists.table();
        for k in 0..5000i64 {
            // SAFETY (*Exclusive access*): this thread is the only one.
            unsafe {
                if (*list).count == (*list).room {
                    assert_eq!(grow(list), 1);
                }
                (*list).notes.cast::<[i64; 2]>().add(k as usize).write([k, -k]);
                (*list).count += 1;
            }
        }
        // SAFETY (*Exclusive access*): as above.
        let notes = unsafe { std::slice::from_raw_parts((*list).notes.cast::<[i64; 2]>(), 5000) };
        assert!(notes.iter().zip(0..).all(|(note, k)| *note == [k, -k]));
    }
}
