//! Access control: the user that runs a command, and whether that user may run another one.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use super::context::Context;
use super::raw::{ACL_LOG_COMMAND, ClientInfo, OK, RawContext, RawString};
use super::string::{OwnedStr, Str};
use super::table::api;

/// Name of the user that clients have before they authenticate.
pub const DEFAULT_USER: &[u8] = b"default";

/// Arguments that are kept on the stack while permissions are checked.
const FEW: usize = 16;

/// A context for calls that are made while no command of the module runs.
static DETACHED: AtomicPtr<RawContext> = AtomicPtr::new(std::ptr::null_mut());

/// The known state of the default user; 0 if it has to be queried.
static DEFAULT_USER_STATE: AtomicU8 = AtomicU8::new(0);

thread_local! {
    /// The client whose command the filter has checked and that nothing has run since; 0 if there is none.
    static CHECKED: Cell<u64> = const { Cell::new(0) };
}

/// Whether clients act as the default user without authentication.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DefaultUser {
    /// They do, and need no password.
    Open = 1,
    /// They cannot: the user is off.
    Off = 2,
    /// They need a password.
    Password = 3,
}

/// The user that runs a command.
pub enum Runner {
    /// The server itself or another module, which may run anything.
    Server,
    /// A user of access control.
    User(OwnedStr),
    /// A script or a call of another module: the filter does not know the user.
    Nested,
}

/// Prepares the context that is used while no command of the module runs.
pub fn register(context: Context) {
    // SAFETY: the module is being loaded; the new context is never freed.
    let detached = unsafe { (api().GetDetachedThreadSafeContext)(context.raw()) };
    DETACHED.store(detached, Ordering::Relaxed);
}

/// Returns the context for calls that are made while no command of the module runs.
pub fn detached() -> Context {
    // SAFETY: it was made when the module was loaded, and only the main thread uses it.
    unsafe { Context::new(DETACHED.load(Ordering::Relaxed)) }
}

/// Notes that the filter has checked the command that this client runs next; 0 for none.
pub fn set_checked(client: u64) {
    CHECKED.set(client);
}

/// Returns the user of a client, by the client's number.
///
/// The server has no user for what may run anything: its primary, and imports of slots. It does not find the clients of
/// scripts and of other modules' calls by number.
pub fn runner_of(client: u64) -> Runner {
    // SAFETY: the context is the module's, and takes no part in automatic memory: the name is ours.
    let name = unsafe { (api().GetClientUserNameById)(detached().raw(), client) };
    if !name.is_null() {
        // SAFETY: the server gave up the string.
        return Runner::User(unsafe { OwnedStr::from_raw(name) });
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOTSUP) => Runner::Server,
        _ => Runner::Nested,
    }
}

/// Returns the user that runs the command of `context`, scripts and calls of other modules included.
fn runner(context: Context) -> Runner {
    // SAFETY: the context is that of the running call.
    match runner_of(unsafe { (api().GetClientId)(context.raw()) }) {
        Runner::Nested => {}
        known => return known,
    }
    // Asking for the name of a user that there is not crashes the server. A call as the context's user fails before
    // anything else if there is none, and otherwise because there is no such command. SAFETY: the context is that of
    // the running call; the format says that no arguments follow.
    let reply = unsafe { (api().Call)(context.raw(), c"lp._none".as_ptr(), c"C".as_ptr()) };
    let error = std::io::Error::last_os_error().raw_os_error();
    if !reply.is_null() {
        // SAFETY: the reply is ours.
        unsafe { (api().FreeCallReply)(reply) };
    }
    if error == Some(libc::ENOTSUP) {
        return Runner::Server;
    }
    // SAFETY: the context is that of the running call, and the client has a user. Commands' contexts are without
    // automatic memory, so that the string is ours.
    Runner::User(unsafe { OwnedStr::from_raw((api().GetCurrentUserName)(context.raw())) })
}

/// Returns the number of the database that a client has selected, by the client's number.
pub fn database_of(client: u64) -> Option<c_int> {
    let mut info = ClientInfo {
        version: 1,
        ..ClientInfo::default()
    };
    // SAFETY: the server writes the structure of the version in its first field.
    let outcome = unsafe { (api().GetClientInfoById)((&raw mut info).cast::<c_void>(), client) };
    (outcome == OK).then(|| info.database.into())
}

/// Returns whether a user may run `command` with these arguments in the database that `database` returns.
///
/// Where users may be limited to databases, as by Valkey 9.1, the check without a database refuses everything to such
/// users: it is made first, and the database is only looked up after a refusal.
pub fn may_run(
    user: &OwnedStr,
    database: impl FnOnce() -> Option<c_int>,
    command: Str<'_>,
    arguments: &[Str<'_>],
) -> bool {
    let mut few = arrayvec::ArrayVec::<*mut RawString, FEW>::new();
    let mut many = Vec::new();
    let mut all = std::iter::once(command).chain(arguments.iter().copied()).map(Str::raw);
    let vector = if arguments.len() < FEW {
        few.extend(all);
        few.as_mut_slice()
    } else {
        many.extend(&mut all);
        many.as_mut_slice()
    };
    let count = c_int::try_from(vector.len()).unwrap_or(c_int::MAX);
    // SAFETY: the strings live as long as the calls; the server reads as many of them as there are, and accepts a null
    // for the reason of a refusal. The user is freed once.
    unsafe {
        let user = (api().GetModuleUserFromUserName)(user.as_str().raw());
        if user.is_null() {
            return false;
        }
        let mut outcome = (api().ACLCheckCommandPermissions)(user, vector.as_mut_ptr(), count);
        if outcome != OK
            && let Some(check) = api().ACLCheckPermissions
            && let Some(database) = database()
        {
            outcome = check(user, vector.as_mut_ptr(), count, database, std::ptr::null_mut());
        }
        (api().FreeModuleUser)(user);
        outcome == OK
    }
}

/// Returns whether the command of `context` may run as the native `command`; a refusal is noted in the log of access
/// control.
///
/// It looks at the time at which the command runs: it may have been queued in a transaction, and rights may have
/// changed since.
pub fn may_run_now(context: Context, command: Str<'_>, arguments: &[Str<'_>]) -> bool {
    // SAFETY: the context is that of the running call.
    let client = unsafe { (api().GetClientId)(context.raw()) };
    if CHECKED.get() == client {
        return true;
    }
    let user = match runner(context) {
        Runner::Server => return true,
        Runner::User(user) => user,
        Runner::Nested => return false,
    };
    // While the default user is off, a client that has this user has not authenticated.
    let is_authenticated = user.as_str().bytes() != DEFAULT_USER || default_user() != DefaultUser::Off;
    if is_authenticated && may_run(&user, || Some(context.database()), command, arguments) {
        return true;
    }
    // SAFETY: context and strings live as long as the call; the user is freed once.
    unsafe {
        let user = (api().GetModuleUserFromUserName)(user.as_str().raw());
        if !user.is_null() {
            (api().ACLAddLogEntry)(context.raw(), user, command.raw(), ACL_LOG_COMMAND);
            (api().FreeModuleUser)(user);
        }
    }
    false
}

/// Returns whether the command of `context`, which a client sent by its own name, may run where the server has no
/// categories for modules' commands, as Redis before 7.2.
///
/// There a rule as `-@write` takes no command of ours away. So the user must have a right to a native command of the
/// same kind, or to ours by its name.
pub fn may_run_publicly(context: Context, name: Str<'_>, native: Str<'_>, arguments: &[Str<'_>]) -> bool {
    if api().SetCommandACLCategories.is_some() {
        return true;
    }
    let user = match runner(context) {
        Runner::Server => return true,
        Runner::User(user) => user,
        Runner::Nested => return false,
    };
    may_run(&user, || Some(context.database()), native, arguments) || is_named(context, &user, name)
}

/// Returns whether the rules of a user allow a command by its name.
fn is_named(context: Context, user: &OwnedStr, command: Str<'_>) -> bool {
    let Ok(user) = CString::new(user.as_str().bytes()) else {
        return false;
    };
    let rule = [b"+", command.bytes()].concat();
    let rules = context.call(c"ACL", &[c"GETUSER", &user]);
    rules
        .split(|byte| matches!(byte, b' ' | b'\r' | b'\n' | b'(' | b')'))
        .any(|word| word.eq_ignore_ascii_case(&rule))
}

/// Has the state of the default user queried again: a command that may change it is about to run.
pub fn forget_default_user() {
    DEFAULT_USER_STATE.store(0, Ordering::Relaxed);
}

/// Returns whether clients are the default user without authentication.
pub fn default_user() -> DefaultUser {
    match DEFAULT_USER_STATE.load(Ordering::Relaxed) {
        1 => return DefaultUser::Open,
        2 => return DefaultUser::Off,
        3 => return DefaultUser::Password,
        _ => {}
    }
    let flags = detached().call(c"ACL", &[c"GETUSER", c"default"]);
    let has = |flag: &[u8]| flags.windows(flag.len()).any(|window| window == flag);
    // A flag is a line of the reply; nothing else in it is a line of this content.
    let state = if !has(b"\r\non\r\n") {
        DefaultUser::Off
    } else if has(b"\r\nnopass\r\n") {
        DefaultUser::Open
    } else {
        DefaultUser::Password
    };
    DEFAULT_USER_STATE.store(state as u8, Ordering::Relaxed);
    state
}

impl Context {
    /// Runs a command as the server itself, and returns its reply as it goes over the wire; nothing if it failed.
    pub fn call(self, command: &CStr, arguments: &[&CStr]) -> Vec<u8> {
        let strings: Vec<OwnedStr> = arguments.iter().map(|text| OwnedStr::new(text.to_bytes())).collect();
        let vector: Vec<*mut RawString> = strings.iter().map(|string| string.as_str().raw()).collect();
        // SAFETY: the context is that of the running call, or the module's; "v" is a vector of strings and its length.
        // The reply is freed once, after its bytes were copied.
        unsafe {
            let reply = (api().Call)(
                self.raw(),
                command.as_ptr(),
                c"v".as_ptr(),
                vector.as_ptr(),
                vector.len(),
            );
            if reply.is_null() {
                return Vec::new();
            }
            let mut len = 0;
            let start = (api().CallReplyProto)(reply, &raw mut len);
            let bytes = match start.is_null() {
                true => Vec::new(),
                false => std::slice::from_raw_parts(start.cast::<u8>(), len).to_vec(),
            };
            (api().FreeCallReply)(reply);
            bytes
        }
    }

    /// Returns whether the server is about to close the connection of the client that waits for the reply, as where a
    /// limit of its output was passed: what is still replied goes nowhere.
    pub fn is_closing(self) -> bool {
        // SAFETY: the context is that of the running call.
        let client = unsafe { (api().GetClientId)(self.raw()) };
        let Ok(client) = CString::new(client.to_string()) else {
            return false;
        };
        let line = self.call(c"CLIENT", &[c"LIST", c"ID", &client]);
        let Some(start) = line.windows(7).position(|window| window == b" flags=") else {
            return false;
        };
        line[start + 7..]
            .iter()
            .take_while(|flag| **flag != b' ')
            .any(|flag| *flag == b'A')
    }
}
