//! Catching panics of sled, and of records that are damaged, without their text on the terminal: they become errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use crate::flaw::words_of;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Does something that may panic; the words of the panic if it did.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !is_caught() {
                before(panic);
            }
        }));
    });
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    done.map_err(|panic| words_of(&*panic))
}

/// Whether what panics now is caught here, or is a thread of sled's own, whose panic comes back to us as an error.
fn is_caught() -> bool {
    let is_sled = || std::thread::current().name().is_some_and(|name| name.starts_with("sled-"));
    DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false) || is_sled()
}
