//! A command's context: its replies, and its reports to the server.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int, c_long};

use super::failure::{Failure, WRONG_TYPE_TEXT};
use super::raw::{
    CTX_FLAG_CLUSTER, CTX_FLAG_LOADING, CTX_FLAG_REPLICA, CTX_FLAG_RESP3, CTX_FLAG_SCRIPT, OK, POSTPONED_LEN,
    RawContext, RawString,
};
use super::string::Str;
use super::table::{api, loaded};
use super::twin;

/// The context of a call of the server. It must not outlive the call.
#[derive(Clone, Copy)]
pub struct Context {
    raw: *mut RawContext,
}

/// A database that is selected meanwhile. The one from before is selected again when this is dropped.
pub struct Selecting {
    context: Context,
    before: i32,
}

impl Drop for Selecting {
    fn drop(&mut self) {
        self.context.select_database(self.before);
    }
}

/// Writes a warning to the server's log, if there is a server.
pub fn log_warning(text: &str) {
    log(c"warning", text);
}

/// Writes a notice to the server's log, if there is a server.
pub fn log_notice(text: &str) {
    log(c"notice", text);
}

fn log(level: &CStr, text: &str) {
    let Some(api) = loaded() else { return };
    let text = c_text(text);
    // SAFETY: the format has one string, and so has the call; the server takes a null context.
    unsafe { (api.Log)(std::ptr::null_mut(), level.as_ptr(), c"%s".as_ptr(), text.as_ptr()) };
}

/// Returns whether the server uses more memory than it may.
pub fn is_memory_short() -> bool {
    // SAFETY: the server takes the call at any time from the main thread.
    loaded().is_some_and(|api| unsafe { (api.GetUsedMemoryRatio)() } > 1.0)
}

/// Returns `text` without characters that end a C string or a line of the protocol.
pub fn c_text(text: &str) -> CString {
    let clean: Vec<u8> = text
        .bytes()
        .map(|byte| if matches!(byte, 0 | b'\r' | b'\n') { b' ' } else { byte })
        .collect();
    CString::new(clean).unwrap_or_default()
}

/// A class of keyspace notifications.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Class {
    /// Of all types.
    Generic = super::raw::NOTIFY_GENERIC,
    /// Of strings.
    Text = super::raw::NOTIFY_STRING,
    /// Of hashes: maps, here.
    Map = super::raw::NOTIFY_HASH,
    /// Of keys whose time has passed.
    Expired = super::raw::NOTIFY_EXPIRED,
}

impl Context {
    /// # Safety
    /// `raw` is the context of the server's running call.
    pub unsafe fn new(raw: *mut RawContext) -> Self {
        Self { raw }
    }

    /// Returns the server's pointer.
    pub fn raw(self) -> *mut RawContext {
        self.raw
    }

    /// Returns the number of the database that the client has selected.
    pub fn database(self) -> i32 {
        // SAFETY: the context is that of the running call.
        unsafe { (api().GetSelectedDb)(self.raw) }
    }

    /// Selects a database for what follows in this call; returns whether the server has it.
    pub fn select_database(self, database: i32) -> bool {
        // SAFETY: the context is that of the running call.
        unsafe { (api().SelectDb)(self.raw, database) == OK }
    }

    /// Selects a database until the returned value is dropped; `None` if the server does not have it.
    pub fn selecting(self, database: i32) -> Option<Selecting> {
        let before = self.database();
        let selecting = Selecting { context: self, before };
        self.select_database(database).then_some(selecting)
    }

    /// Returns whether the module must not write on its own now: writes of clients are paused, as for a failover.
    pub fn has_paused_writes() -> bool {
        // SAFETY: the server takes the call at any time from the main thread.
        api().AvoidReplicaTraffic.is_some_and(|avoid| unsafe { avoid() } != 0)
    }

    /// Returns whether the server only requests the positions of the keys. It does so where a command has the flag
    /// `getkeys-api`: see [`Context::key_at`].
    pub fn is_key_request(self) -> bool {
        // SAFETY: the context is that of the running call.
        unsafe { (api().IsKeysPositionRequest)(self.raw) != 0 }
    }

    /// Reports that an argument is a key, and how it is used.
    pub fn key_at(self, index: c_int, flags: u64) {
        // SAFETY: the context is that of the running call. The flags are the low bits of a C integer.
        unsafe { (api().KeyAtPosWithFlags)(self.raw, index, flags as c_int) };
    }

    fn has_flag(self, flag: c_int) -> bool {
        // SAFETY: the context is that of the running call.
        (unsafe { (api().GetContextFlags)(self.raw) }) & flag != 0
    }

    /// Returns whether the client speaks RESP3.
    pub fn is_resp3(self) -> bool {
        self.has_flag(CTX_FLAG_RESP3)
    }

    /// Returns whether a script runs.
    pub fn is_script(self) -> bool {
        self.has_flag(CTX_FLAG_SCRIPT)
    }

    /// Returns whether the server loads its data set, and answers no client meanwhile.
    pub fn is_loading(self) -> bool {
        self.has_flag(CTX_FLAG_LOADING)
    }

    /// Returns whether the server is a replica.
    pub fn is_replica(self) -> bool {
        self.has_flag(CTX_FLAG_REPLICA)
    }

    /// Returns whether the server is a node of a cluster.
    pub fn is_cluster(self) -> bool {
        self.has_flag(CTX_FLAG_CLUSTER)
    }

    /// Replies with an integer.
    pub fn integer(self, number: i64) {
        // SAFETY: the context is that of the running call.
        unsafe { (api().ReplyWithLongLong)(self.raw, number) };
    }

    /// Replies with bytes.
    #[inline]
    pub fn bytes(self, bytes: &[u8]) {
        // SAFETY: the context is that of the running call; the server copies the bytes.
        unsafe { (api().ReplyWithStringBuffer)(self.raw, bytes.as_ptr().cast(), bytes.len()) };
    }

    /// Replies with a status.
    pub fn status(self, status: &CStr) {
        // SAFETY: the context is that of the running call.
        unsafe { (api().ReplyWithSimpleString)(self.raw, status.as_ptr()) };
    }

    /// Replies with nothing.
    pub fn null(self) {
        // SAFETY: the context is that of the running call.
        unsafe { (api().ReplyWithNull)(self.raw) };
    }

    /// Begins an array of `len` replies.
    pub fn array(self, len: usize) {
        // SAFETY: the context is that of the running call.
        unsafe { (api().ReplyWithArray)(self.raw, len as c_long) };
    }

    /// Begins an array whose length is set when it is complete, by [`Context::end_array`].
    pub fn begin_array(self) {
        // SAFETY: the context is that of the running call.
        unsafe { (api().ReplyWithArray)(self.raw, POSTPONED_LEN) };
    }

    /// Ends the array that [`Context::begin_array`] began, with `len` replies.
    pub fn end_array(self, len: usize) {
        // SAFETY: the context is that of the running call; the server only logs the call if no array was begun.
        unsafe { (api().ReplySetArrayLength)(self.raw, len as c_long) };
    }

    /// Begins a map of `len` pairs; RESP2 has it as an array.
    pub fn map(self, len: usize) {
        // SAFETY: the context is that of the running call.
        unsafe { (api().ReplyWithMap)(self.raw, len as c_long) };
    }

    /// Replies with an error.
    pub fn failure(self, failure: &Failure) {
        failure.count();
        let named = |text: &str| {
            let name = twin::sent_name().unwrap_or_default();
            Cow::Owned(format!("ERR {text} '{name}' command"))
        };
        let text = match failure {
            Failure::Arity if twin::sent_name().is_none() => {
                // SAFETY: the context is that of the running call.
                unsafe { (api().WrongArity)(self.raw) };
                return;
            }
            Failure::Arity => named("wrong number of arguments for"),
            Failure::InvalidExpiry => named("invalid expire time in"),
            Failure::LeftToServer => Cow::Borrowed(WRONG_TYPE_TEXT),
            Failure::Text(text) => Cow::Borrowed(&**text),
        };
        let text = c_text(&text);
        // SAFETY: the context is that of the running call; the server copies the text.
        unsafe { (api().ReplyWithError)(self.raw, text.as_ptr()) };
    }

    /// Sends the command to replicas and the append-only file as it came, under its public name.
    pub fn replicate_verbatim(self) {
        if let Some((name, arguments)) = twin::renamed() {
            return self.replicate(name, arguments);
        }
        // SAFETY: the context is that of the running call.
        unsafe { (api().ReplicateVerbatim)(self.raw) };
    }

    /// Sends another command instead of it.
    pub fn replicate(self, command: &CStr, arguments: &[Str<'_>]) {
        // A `Str` consists of a pointer.
        let strings: *const Str<'_> = arguments.as_ptr();
        // SAFETY: the context is that of the running call; "v" takes a vector of strings and its length, and the server
        // holds the strings itself.
        unsafe {
            (api().Replicate)(
                self.raw,
                command.as_ptr(),
                c"v".as_ptr(),
                strings.cast::<*mut RawString>(),
                arguments.len(),
            )
        };
    }

    /// Signals the key as modified to the clients that watch it.
    pub fn touched(self, key: Str<'_>) {
        // SAFETY: the context is that of the running call.
        unsafe { (api().SignalModifiedKey)(self.raw, key.raw()) };
    }

    /// Notifies the subscribers of the keyspace.
    pub fn notify(self, class: Class, event: &CStr, key: Str<'_>) {
        // SAFETY: the context is that of the running call.
        unsafe { (api().NotifyKeyspaceEvent)(self.raw, class as c_int, event.as_ptr(), key.raw()) };
    }
}
