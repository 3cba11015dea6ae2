//! Threads that are started by the system's interface instead of `std::thread`.
//!
//! Whenever `std` starts or ends a thread, that thread takes a lock of the process for a moment (for the handler of
//! stack overflows). A child that is forked in that moment inherits the lock locked, and every thread that it starts by
//! `std` waits for ever. The library's threads must start in a forked child, so that it may make trees and caches of
//! its own, and must not prevent the threads of others from starting there. The system's own locks are in order after a
//! fork.
//!
//! These threads differ from those of `std` in two ways: a stack overflow ends the process without a message, and only
//! [`current_name`] knows their names.

use std::any::Any;
use std::cell::OnceCell;
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::plain::Mutex;

/// The stack's size in bytes, as `std` has it.
const STACK_BYTES: usize = 2 << 20;

/// What a thread has returned, or the payload of its panic.
pub type Outcome<T> = Result<T, Box<dyn Any + Send>>;

type Work<'w> = Box<dyn FnOnce() + Send + 'w>;

/// Returns a number of the calling thread that no other running thread has.
#[must_use]
pub fn current_id() -> usize {
    // SAFETY: the call has no preconditions.
    unsafe { libc::pthread_self() as usize }
}

thread_local! {
    /// The name of a thread that was started here.
    static NAME: OnceCell<Box<str>> = const { OnceCell::new() };
}

/// Returns the name of the calling thread; empty if it has none.
#[must_use]
pub fn current_name() -> String {
    let own = NAME.try_with(|name| name.get().map(|name| name.to_string()));
    let name = own.ok().flatten();
    name.or_else(|| std::thread::current().name().map(str::to_owned))
        .unwrap_or_default()
}

#[derive(Debug)]
struct Packet<T> {
    outcome: Mutex<Option<Outcome<T>>>,
    is_finished: AtomicBool,
}

/// A thread. Dropping it lets the thread go on.
#[derive(Debug)]
pub struct Thread<T> {
    native: Native,
    packet: Arc<Packet<T>>,
}

/// A started thread, which is joined or detached once.
#[derive(Debug)]
struct Native(libc::pthread_t);

// SAFETY: a `pthread_t` identifies a thread for all threads of the process, also where it is a pointer.
unsafe impl Send for Native {}
// SAFETY: a shared `Native` only gives its `pthread_t`, a number or an address that is never dereferenced here.
unsafe impl Sync for Native {}

impl Drop for Native {
    fn drop(&mut self) {
        // SAFETY: the thread was started by `start`, and was not joined: `join` forgets the number.
        unsafe { libc::pthread_detach(self.0) };
    }
}

impl Native {
    fn join(self) {
        // SAFETY: the thread was started by `start`, and is neither joined nor detached elsewhere: `self` is consumed.
        unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
        std::mem::forget(self);
    }
}

/// Starts a thread. `name` is visible to tools; the system may shorten it to 15 bytes.
///
/// # Errors
/// The system's error if it provides no more threads.
pub fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Thread<T>> {
    let packet = Arc::new(Packet {
        outcome: Mutex::new(None),
        is_finished: AtomicBool::new(false),
    });
    let own = Arc::clone(&packet);
    let work = move || {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        *own.outcome.lock() = Some(outcome);
        own.is_finished.store(true, Ordering::Release);
    };
    let native = start(name, Box::new(work))?;
    Ok(Thread { native, packet })
}

fn start(name: &str, work: Work<'static>) -> io::Result<Native> {
    let name: Box<str> = name.into();
    let work: Work<'static> = Box::new(move || {
        show_name(&name);
        // Each thread is named once.
        let _ = NAME.try_with(|own| own.set(name));
        work();
    });
    let argument = Box::into_raw(Box::new(work));
    let mut native = MaybeUninit::uninit();
    // Miri has no attributes of threads.
    #[cfg(miri)]
    // SAFETY: `run` takes the ownership of `argument`, a pointer from a box of the type that it expects.
    let error = unsafe { libc::pthread_create(native.as_mut_ptr(), ptr::null(), run, argument.cast()) };
    #[cfg(not(miri))]
    // SAFETY: the attributes are initialised first and destroyed last. `run` takes the ownership of `argument`, a
    // pointer from a box of the type that it expects.
    let error = unsafe {
        let mut attributes = MaybeUninit::uninit();
        libc::pthread_attr_init(attributes.as_mut_ptr());
        // Without effect if the system refuses the size.
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES);
        let error = libc::pthread_create(native.as_mut_ptr(), attributes.as_ptr(), run, argument.cast());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        error
    };
    if error != 0 {
        // SAFETY: no thread was started, so the box still belongs to this function.
        drop(unsafe { Box::from_raw(argument) });
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: the call above has succeeded.
    Ok(Native(unsafe { native.assume_init() }))
}

extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a pointer from a box of this type, and gives it up.
    let work = unsafe { Box::from_raw(argument.cast::<Work<'static>>()) };
    // It catches the panics of the caller's work.
    work();
    ptr::null_mut()
}

/// Gives the calling thread a name that tools show.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
fn show_name(name: &str) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let mut shown = [0_u8; 16];
        let len = name.len().min(shown.len() - 1);
        shown[..len].copy_from_slice(&name.as_bytes()[..len]);
        // SAFETY: the name has a zero at its end, and the thread is the calling one.
        unsafe { libc::pthread_setname_np(libc::pthread_self(), shown.as_ptr().cast()) };
    }
}

impl<T> Thread<T> {
    /// Returns true if the thread's work has ended.
    pub fn is_finished(&self) -> bool {
        self.packet.is_finished.load(Ordering::Acquire)
    }

    /// Returns true if this is the calling thread, which must not join itself.
    pub fn is_current(&self) -> bool {
        self.native.0 as usize == current_id()
    }

    /// Waits for the thread's end.
    ///
    /// # Errors
    /// Returns the payload of its panic.
    pub fn join(self) -> Outcome<T> {
        self.native.join();
        let outcome = self.packet.outcome.lock().take();
        outcome.unwrap_or_else(|| Err(Box::new("the thread was ended by the system")))
    }
}

/// Threads that may borrow from their starter: see [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    threads: Mutex<Vec<Thread<()>>>,
    /// The lifetimes are invariant, as those of `std::thread::Scope`.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread that may borrow what outlives the scope.
    ///
    /// # Errors
    /// The system's error if it provides no more threads.
    pub fn spawn(&'scope self, name: &str, work: impl FnOnce() + Send + 'scope) -> io::Result<()> {
        let work: Work<'scope> = Box::new(work);
        // SAFETY: `scope` joins the thread before it returns or unwinds, and 'scope is not over before that.
        let work = unsafe { std::mem::transmute::<Work<'scope>, Work<'static>>(work) };
        let thread = spawn(name, work)?;
        self.threads.lock().push(thread);
        Ok(())
    }
}

/// Calls `body` with a scope, and waits for the end of the threads that were started in it.
///
/// # Panics
/// Panics with the payload of `body`, or of the first of the threads that has panicked.
pub fn scope<'env, R>(body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    let scope = Scope {
        threads: Mutex::default(),
        scope: PhantomData,
        env: PhantomData,
    };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    let mut panicked = None;
    loop {
        // A thread may start others.
        let threads = std::mem::take(&mut *scope.threads.lock());
        if threads.is_empty() {
            break;
        }
        for thread in threads {
            if let Err(panic) = thread.join() {
                panicked.get_or_insert(panic);
            }
        }
    }
    match (result, panicked) {
        (Err(panic), _) | (Ok(_), Some(panic)) => resume_unwind(panic),
        (Ok(result), None) => result,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn a_thread_returns_its_result_or_its_panic() {
        let thread = spawn("leafpress-test-with-a-long-name", || (current_id(), current_name())).unwrap();
        assert!(!thread.is_current());
        let (id, name) = thread.join().unwrap();
        assert!(id != current_id());
        assert_eq!(name, "leafpress-test-with-a-long-name");
        let thread = spawn("panics", || -> u8 { panic!("a bug") }).unwrap();
        let panic = thread.join().unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a bug"));
    }

    #[test]
    fn a_thread_that_is_not_joined_goes_on() {
        let (send, receive) = std::sync::mpsc::channel();
        drop(spawn("detached", move || send.send(7).unwrap()).unwrap());
        assert_eq!(receive.recv(), Ok(7));
        let thread = spawn("finishes", || ()).unwrap();
        while !thread.is_finished() {
            std::thread::yield_now();
        }
        thread.join().unwrap();
    }

    #[test]
    fn a_scope_waits_for_its_threads() {
        let count = AtomicU64::new(0);
        let five = scope(|scope| {
            for _ in 0..4 {
                let work = || {
                    count.fetch_add(1, Ordering::SeqCst);
                    scope
                        .spawn("inner", || _ = count.fetch_add(10, Ordering::SeqCst))
                        .unwrap();
                };
                scope.spawn("outer", work).unwrap();
            }
            5
        });
        assert_eq!((five, count.into_inner()), (5, 44));
        let ended = AtomicBool::new(false);
        let panics = catch_unwind(AssertUnwindSafe(|| {
            scope(|scope| {
                scope.spawn("ends", || ended.store(true, Ordering::SeqCst)).unwrap();
                scope.spawn("panics", || panic!("a bug")).unwrap();
            });
        }));
        assert_eq!(panics.unwrap_err().downcast_ref(), Some(&"a bug"));
        assert!(ended.into_inner());
    }

    /// Values of the thread are dropped at its end, as those of other threads.
    #[test]
    fn thread_local_values_are_dropped() {
        struct Notes(Arc<AtomicU64>);
        impl Drop for Notes {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        thread_local!(static NOTES: std::cell::RefCell<Option<Notes>> = const { std::cell::RefCell::new(None) });
        let drops = Arc::<AtomicU64>::default();
        let own = Arc::clone(&drops);
        spawn("local", move || NOTES.set(Some(Notes(own))))
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    }
}
