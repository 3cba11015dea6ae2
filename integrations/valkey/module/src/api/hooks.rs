//! Callbacks of the server: its events, its timer, `INFO`.

use std::ffi::{c_char, c_int, c_void};
use std::ops::RangeInclusive;
use std::sync::OnceLock;

use super::context::Context;
use super::guard::guarded;
use super::info::Section;
use super::native::Server;
use super::raw::{
    ASYNC_LOAD_ABORTED, ASYNC_LOAD_COMPLETED, ASYNC_LOAD_STARTED, CLIENT_DISCONNECTED, ClientInfo, EVENT_ASYNC_LOAD,
    EVENT_CLIENT, EVENT_FLUSH, EVENT_FORK, EVENT_LOADING, EVENT_PERSISTENCE, EVENT_SLOT_MIGRATION, EVENT_SWAP, Event,
    FLUSH_STARTS, FORK_BORN, FlushInfo, LOADING_ENDED, LOADING_FAILED, NOTIFY_GENERIC, OK, PERSISTENCE_ENDED,
    PERSISTENCE_FAILED, RawContext, RawInfo, RawString, SLOT_IMPORT_STARTED, SlotMigrationInfo, SwapInfo,
};
use super::string::Str;
use super::table::api;

/// The module's reactions to these.
pub struct Hooks {
    /// A database is about to be emptied; all of them if it is negative.
    pub flush: fn(i32),
    /// A flush has ended.
    pub flushed: fn(),
    /// Two databases have changed their places.
    pub swap: fn(i32, i32),
    /// A replica begins to load next to its current data (`None`), or ends the load, and adopts it or not.
    pub aside: fn(Option<bool>),
    /// A key has come to the client's database from another.
    pub moved: fn(Context, Str<'_>),
    /// A child was forked that writes a snapshot, or has ended.
    pub forked: fn(bool),
    /// The client with this number has disconnected.
    pub gone: fn(u64),
    /// The server has accepted an import of slots of this name.
    pub importing: fn(&[u8]),
    /// A snapshot was saved, or its save failed.
    pub saved: fn(),
    /// A snapshot was loaded, or its load failed.
    pub loaded: fn(),
    /// The timer; it returns the milliseconds until its next call.
    pub tick: fn(Context) -> i64,
    /// `INFO`.
    pub info: fn(&mut Section),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();
/// Valkey from 8.1 to 9.1.1 calls with the client's own context, and leaves the client in the database that it was
/// called for, as after `MOVE` and `COPY ... DB`. So the module does not subscribe there, and a moved value holds its
/// old database's tree. (Valkey 8.0 would not need that.)
const FORGETFUL: RangeInclusive<c_int> = 0x08_00_00..=0x09_01_01;
/// Milliseconds until the timer's first call.
const FIRST_TICK: i64 = 20;

/// Registers the hooks with the server.
pub fn register(context: Context, hooks: Hooks) -> Result<(), &'static str> {
    let _ = HOOKS.set(hooks);
    let raw = context.raw();
    // SAFETY: the module is being loaded, and the callbacks live as long as the program.
    unsafe {
        for event_of in [
            EVENT_FLUSH,
            EVENT_SWAP,
            EVENT_ASYNC_LOAD,
            EVENT_PERSISTENCE,
            EVENT_LOADING,
            EVENT_FORK,
            EVENT_CLIENT,
        ] {
            if (api().SubscribeToServerEvent)(raw, event_of, event) != OK {
                return Err("the server has not all of the events that the module needs");
            }
        }
        let server = Server::running();
        if server.is_valkey {
            // Versions before 9.0 have neither the event nor such imports.
            (api().SubscribeToServerEvent)(raw, EVENT_SLOT_MIGRATION, event);
        }
        let is_forgetful = server.is_valkey && FORGETFUL.contains(&server.version);
        if !is_forgetful && (api().SubscribeToKeyspaceEvents)(raw, NOTIFY_GENERIC, notified) != OK {
            return Err("the server does not say which keys move");
        }
        if (api().RegisterInfoFunc)(raw, info) != OK {
            return Err("the server does not take a section of INFO");
        }
        (api().CreateTimer)(raw, FIRST_TICK, tick, std::ptr::null_mut());
    }
    Ok(())
}

fn hooks() -> &'static Hooks {
    HOOKS
        .get()
        .expect("hooks are set before they are registered with the server")
}

unsafe extern "C" fn event(_: *mut RawContext, event: Event, sub: u64, data: *mut c_void) {
    guarded("an event", (), || {
        if event.id == EVENT_FLUSH.id {
            if sub == FLUSH_STARTS {
                // SAFETY: the data of this event is of this type.
                let info = unsafe { &*data.cast::<FlushInfo>() };
                (hooks().flush)(info.database);
            } else {
                (hooks().flushed)();
            }
        } else if event.id == EVENT_CLIENT.id {
            if sub == CLIENT_DISCONNECTED {
                // SAFETY: the data of this event is of this type.
                let info = unsafe { &*data.cast::<ClientInfo>() };
                (hooks().gone)(info.id);
            }
        } else if event.id == EVENT_SLOT_MIGRATION.id {
            if sub == SLOT_IMPORT_STARTED {
                // SAFETY: the data of this event begins with this type.
                let info = unsafe { &*data.cast::<SlotMigrationInfo>() };
                let end = info.name.iter().position(|byte| *byte == 0);
                (hooks().importing)(&info.name[..end.unwrap_or(info.name.len())]);
            }
        } else if event.id == EVENT_SWAP.id {
            // SAFETY: the data of this event is of this type.
            let info = unsafe { &*data.cast::<SwapInfo>() };
            (hooks().swap)(info.first, info.second);
        } else if event.id == EVENT_ASYNC_LOAD.id {
            match sub {
                ASYNC_LOAD_STARTED => (hooks().aside)(None),
                ASYNC_LOAD_ABORTED => (hooks().aside)(Some(false)),
                ASYNC_LOAD_COMPLETED => (hooks().aside)(Some(true)),
                _ => {}
            }
        } else if event.id == EVENT_PERSISTENCE.id && matches!(sub, PERSISTENCE_ENDED | PERSISTENCE_FAILED) {
            (hooks().saved)();
        } else if event.id == EVENT_FORK.id {
            (hooks().forked)(sub == FORK_BORN);
        } else if event.id == EVENT_LOADING.id && matches!(sub, LOADING_ENDED | LOADING_FAILED) {
            (hooks().loaded)();
        }
    });
}

unsafe extern "C" fn notified(context: *mut RawContext, _: c_int, event: *const c_char, key: *mut RawString) -> c_int {
    guarded("a notification", (), || {
        // SAFETY: the server calls with its context, a C string and a string.
        unsafe {
            if std::ffi::CStr::from_ptr(event) == c"move_to" {
                (hooks().moved)(Context::new(context), Str::new(key));
            }
        }
    });
    OK
}

unsafe extern "C" fn tick(context: *mut RawContext, _: *mut c_void) {
    // SAFETY: the server calls with the module's context.
    let called = unsafe { Context::new(context) };
    let next = guarded("the timer", FIRST_TICK, || (hooks().tick)(called));
    // SAFETY: the server calls with the module's context.
    unsafe { (api().CreateTimer)(context, next, tick, std::ptr::null_mut()) };
}

unsafe extern "C" fn info(info: *mut RawInfo, for_crash_report: c_int) {
    if for_crash_report != 0 {
        // The crash may be in the data that would be read.
        return;
    }
    guarded("INFO", (), || {
        // SAFETY: the server passes a valid `info` for the duration of the callback.
        (hooks().info)(&mut unsafe { Section::new(info) });
    });
}
