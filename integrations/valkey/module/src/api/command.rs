//! Commands: their registration and their handlers.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null;

use super::acl::{may_run_now, may_run_publicly};
use super::context::{Context, c_text};
use super::failure::Failure;
use super::guard::guarded;
use super::key::Key;
use super::raw::{
    BEGIN_BY_INDEX, BeginSearch, CommandFn, CommandInfo, CommandInfoVersion, FIND_RANGE, KEYTYPE_EMPTY, KeyRange,
    KeySpec, OK, RawContext, RawString, SIZE_OF_ARG, SIZE_OF_HISTORY,
};
use super::string::Str;
use super::table::api;
use super::twin::{RUNNING, Running, Twin};

/// A command's handler: it replies, or returns an error before any reply.
pub type Run = fn(Context, &[Str<'_>]) -> Result<(), Failure>;

/// Positions of a command's keys, and what it does to them.
#[derive(Clone, Copy)]
pub struct Keys {
    /// The first key among the arguments; 0 if there are none.
    pub first: c_int,
    /// The last one, counted from the end if negative.
    pub last: c_int,
    /// The distance between two keys.
    pub step: c_int,
    /// `KEY_*` of `raw`.
    pub flags: u64,
}

/// A command.
pub struct Command<'c> {
    /// Its name.
    pub name: &'static CStr,
    /// The callback of the server, which `handler!` makes of a [`Run`].
    pub run: CommandFn,
    /// The server's flags.
    pub flags: &'c CStr,
    /// Number of arguments, the name included; a negative number is a minimum.
    pub arity: c_int,
    /// Its keys.
    pub keys: Keys,
    /// Its summary in the documentation.
    pub summary: &'static CStr,
    /// Its complexity in the documentation.
    pub complexity: &'static CStr,
    /// The server's categories of access control.
    pub categories: &'static str,
}

/// Returns whether the native command is to run after this failure, which came before any effect: the key has a native
/// value of the native command's type.
///
/// With other types it is not called: in Valkey 9.1, the error of a `GETDEL` or `GETSET` that a module calls becomes
/// part of the reply to the next call.
fn is_left_to_server(running: &Running, context: Context, failure: &Failure) -> bool {
    let has_native_value = || {
        let mut names = running.rest.iter();
        names
            .next()
            .is_some_and(|name| Key::read(context, *name).has_type(running.twin.key_type))
    };
    running.is_rewritten && (*failure == Failure::LeftToServer || *failure == Failure::WRONG_TYPE && has_native_value())
}

/// How a command with twins was sent.
enum Sent {
    /// By its public name.
    Publicly,
    /// By the filter, for the native command, under the public name or not.
    Rewritten { is_public: bool },
    /// By the name that is for the filter only.
    Wrongly,
}

fn sent(name: Str<'_>, twin: &Twin) -> Sent {
    if name.raw() == twin.rewritten_name().raw() {
        return Sent::Rewritten { is_public: false };
    }
    if name.raw() == twin.public_name().raw() {
        return Sent::Rewritten { is_public: true };
    }
    if twin.has_public && name.bytes().eq_ignore_ascii_case(twin.public.to_bytes()) {
        Sent::Publicly
    } else {
        Sent::Wrongly
    }
}

/// Runs a command that replaces native ones.
///
/// # Safety
/// As [`enter`].
pub unsafe fn enter_twin(
    context: *mut RawContext,
    arguments: *mut *mut RawString,
    count: c_int,
    run: Run,
    twin: &'static Twin,
) -> c_int {
    // SAFETY: the server passes its context and `count` strings, which live until the command has run. `RUNNING`, which
    // refers to them, is replaced before this function returns.
    let (caller, all) = unsafe {
        let count = usize::try_from(count).unwrap_or(0);
        (
            Context::new(context),
            std::slice::from_raw_parts(arguments.cast::<Str<'static>>(), count),
        )
    };
    let mut running = None;
    if let Some((name, rest)) = all.split_first()
        && !caller.is_key_request()
    {
        let (is_rewritten, is_public) = match sent(*name, twin) {
            Sent::Publicly => {
                if !is_allowed_publicly(caller, *name, twin.native_name(), rest) {
                    return OK;
                }
                (false, true)
            }
            Sent::Wrongly => {
                caller.failure(&Failure::formatted(format!(
                    "ERR '{}' is not for clients: send the native command, or the one without the underscore",
                    String::from_utf8_lossy(name.bytes())
                )));
                return OK;
            }
            Sent::Rewritten { is_public } => {
                if !guarded("access control", false, || {
                    may_run_now(caller, twin.native_name(), rest)
                }) {
                    caller.failure(&Failure::formatted(format!(
                        "NOPERM this user has no permissions to run the '{}' command or to access one of its keys",
                        twin.native.to_string_lossy().to_ascii_lowercase()
                    )));
                    return OK;
                }
                (true, is_public)
            }
        };
        running = Some(Running {
            twin,
            rest,
            is_rewritten,
            is_public,
        });
    }
    let outer = RUNNING.replace(running);
    // SAFETY: the server passes its context and `count` strings, which live until the command has run. `enter` does not
    // unwind, so that `RUNNING` is replaced after it.
    let outcome = unsafe { enter(context, arguments, count, run) };
    RUNNING.set(outer);
    outcome
}

/// Returns whether a command that was sent by its own name may run; replies with the error if it may not.
fn is_allowed_publicly(caller: Context, name: Str<'_>, native: Str<'_>, rest: &[Str<'_>]) -> bool {
    let is_allowed = guarded("access control", false, || may_run_publicly(caller, name, native, rest));
    if !is_allowed {
        caller.failure(&Failure::formatted(format!(
            "NOPERM this user has no permissions to run the '{}' command",
            String::from_utf8_lossy(name.bytes()).to_ascii_lowercase()
        )));
    }
    is_allowed
}

/// Returns a native command of each kind, for [`enter_of_kind`].
fn native_of(kind: &str) -> Option<Str<'static>> {
    static NATIVES: [(&str, Twin); 5] = [
        ("admin", Twin::new(c"BGREWRITEAOF", c"", false, c"", KEYTYPE_EMPTY)),
        ("write hash", Twin::new(c"HSET", c"", false, c"", KEYTYPE_EMPTY)),
        ("read hash", Twin::new(c"HGETALL", c"", false, c"", KEYTYPE_EMPTY)),
        ("keyspace read", Twin::new(c"KEYS", c"", false, c"", KEYTYPE_EMPTY)),
        ("read slow", Twin::new(c"DBSIZE", c"", false, c"", KEYTYPE_EMPTY)),
    ];
    NATIVES
        .iter()
        .find(|(begin, _)| kind.starts_with(begin))
        .map(|(_, native)| native.native_name())
}

/// Runs a command that has no native twin and is of these categories.
///
/// # Safety
/// As [`enter`].
pub unsafe fn enter_of_kind(
    context: *mut RawContext,
    arguments: *mut *mut RawString,
    count: c_int,
    run: Run,
    kind: &str,
) -> c_int {
    // SAFETY: the server passes its context and `count` strings, which live until the command has run.
    let (caller, all) = unsafe {
        let count = usize::try_from(count).unwrap_or(0);
        (
            Context::new(context),
            std::slice::from_raw_parts(arguments.cast::<Str<'_>>(), count),
        )
    };
    if let Some((name, rest)) = all.split_first()
        && !caller.is_key_request()
        && let Some(native) = native_of(kind)
        && !is_allowed_publicly(caller, *name, native, rest)
    {
        return OK;
    }
    // SAFETY: the server passes its context and `count` strings, which live until the command has run.
    unsafe { enter(context, arguments, count, run) }
}

/// Makes the server's callback of a `Run` and of the native command that it replaces.
macro_rules! handler {
    ($run:path, $twin:expr) => {{
        #[allow(unsafe_code)]
        unsafe extern "C" fn call(
            context: *mut $crate::api::raw::RawContext,
            arguments: *mut *mut $crate::api::raw::RawString,
            count: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the server calls with its context and as many strings.
            unsafe { $crate::api::command::enter_twin(context, arguments, count, $run, $twin) }
        }
        call
    }};
    ($run:path; $kind:literal) => {{
        #[allow(unsafe_code)]
        unsafe extern "C" fn call(
            context: *mut $crate::api::raw::RawContext,
            arguments: *mut *mut $crate::api::raw::RawString,
            count: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the server calls with its context and as many strings.
            unsafe { $crate::api::command::enter_of_kind(context, arguments, count, $run, $kind) }
        }
        call
    }};
}
pub(crate) use handler;

/// Runs a command.
///
/// # Safety
/// The arguments are those that the server calls a command with.
#[inline]
unsafe fn enter(context: *mut RawContext, arguments: *mut *mut RawString, count: c_int, run: Run) -> c_int {
    // SAFETY: the call runs, and a `Str` is a pointer and no more.
    let (context, arguments) = unsafe {
        let count = usize::try_from(count).unwrap_or(0);
        (
            Context::new(context),
            std::slice::from_raw_parts(arguments.cast::<Str<'_>>(), count),
        )
    };
    let defect = Err(Failure::text(
        "ERR a defect in the leafpress module: see the server's log",
    ));
    match guarded("a command", defect, || run(context, arguments)) {
        Ok(()) => {}
        Err(failure) => match RUNNING
            .get()
            .filter(|running| is_left_to_server(running, context, &failure))
        {
            Some(running) => context.reply_natively(running.twin.native, running.rest),
            None => context.failure(&failure),
        },
    }
    OK
}

/// Registers a command and its description.
pub fn register(context: Context, command: &Command<'_>, category: Option<&CStr>) -> Result<(), String> {
    let refused = |what: &str| format!("the server does not take {what} of {}", command.name.to_string_lossy());
    let Keys {
        first,
        last,
        step,
        flags,
    } = command.keys;
    // SAFETY: the module is being loaded; the server copies all of it, here and below.
    unsafe {
        let name = command.name.as_ptr();
        let raw = context.raw();
        if (api().CreateCommand)(raw, name, command.run, command.flags.as_ptr(), first, last, step) != OK {
            return Err(refused("the command"));
        }
        let registered = (api().GetCommand)(raw, name);
        let version = CommandInfoVersion {
            version: 1,
            sizeof_history: SIZE_OF_HISTORY,
            sizeof_key_spec: size_of::<KeySpec>(),
            sizeof_arg: SIZE_OF_ARG,
        };
        let spec = KeySpec {
            notes: null(),
            flags,
            begin_search: BEGIN_BY_INDEX,
            begin: BeginSearch { index: first },
            find_keys: FIND_RANGE,
            find: KeyRange {
                last: if last < 0 { last } else { last - first },
                step,
                limit: 0,
            },
        };
        // A key spec of zeros ends the list.
        let specs: [KeySpec; 2] = [spec, std::mem::zeroed()];
        let info = CommandInfo {
            version: &raw const version,
            summary: command.summary.as_ptr(),
            complexity: command.complexity.as_ptr(),
            since: c"0.1.0".as_ptr(),
            history: null(),
            tips: null::<c_char>(),
            arity: command.arity,
            key_specs: if first == 0 { null() } else { specs.as_ptr() },
            args: null(),
        };
        if (api().SetCommandInfo)(registered, &raw const info) != OK {
            return Err(refused("the description"));
        }
        if let Some(set) = api().SetCommandACLCategories {
            let own = category.map(|category| category.to_string_lossy()).unwrap_or_default();
            let categories = c_text(format!("{} {own}", command.categories).trim());
            if set(registered, categories.as_ptr()) != OK {
                return Err(refused("the categories"));
            }
        }
    }
    Ok(())
}

/// Adds a category of access control, where the server can; `None` if it cannot.
pub fn add_category(context: Context, name: &CStr) -> Option<&CStr> {
    let add = api().AddACLCategory?;
    // SAFETY: the module is being loaded.
    (unsafe { add(context.raw(), name.as_ptr()) } == OK).then_some(name)
}
