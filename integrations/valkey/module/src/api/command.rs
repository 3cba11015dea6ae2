//! Commands: their registration, and what runs them.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null;

use super::context::{Context, c_text};
use super::failure::Failure;
use super::guard::guarded;
use super::raw::{
    BEGIN_BY_INDEX, BeginSearch, CommandFn, CommandInfo, CommandInfoVersion, FIND_RANGE, KeyRange, KeySpec, OK,
    RawContext, RawString, SIZE_OF_ARG, SIZE_OF_HISTORY,
};
use super::string::Str;
use super::table::api;

/// What runs a command: it replies, or says what failed before it has.
pub type Run = fn(Context, &[Str<'_>]) -> Result<(), Failure>;

/// Where a command's keys are, and what it does to them.
pub struct Keys {
    /// The first key among the arguments; 0 where there are none.
    pub first: c_int,
    /// The last one, counted from the end where negative.
    pub last: c_int,
    /// From one key to the next.
    pub step: c_int,
    /// `KEY_*` of `raw`.
    pub flags: u64,
}

/// A command.
pub struct Command {
    /// Its name.
    pub name: &'static CStr,
    /// What the server calls: `handler!` makes it of a [`Run`].
    pub run: CommandFn,
    /// The server's flags.
    pub flags: &'static CStr,
    /// How many arguments, the name included; at least so many where negative.
    pub arity: c_int,
    /// Its keys.
    pub keys: Keys,
    /// What it does.
    pub summary: &'static CStr,
    /// How long it takes.
    pub complexity: &'static CStr,
    /// The server's categories of access control.
    pub categories: &'static str,
}

/// Makes what the server calls of a `Run`.
macro_rules! handler {
    ($run:path) => {{
        #[allow(unsafe_code)]
        unsafe extern "C" fn call(
            context: *mut $crate::api::raw::RawContext,
            arguments: *mut *mut $crate::api::raw::RawString,
            count: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the server calls with its context and as many strings.
            unsafe { $crate::api::command::enter(context, arguments, count, $run) }
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
pub unsafe fn enter(context: *mut RawContext, arguments: *mut *mut RawString, count: c_int, run: Run) -> c_int {
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
    if let Err(failure) = guarded("a command", defect, || run(context, arguments)) {
        context.failure(&failure);
    }
    OK
}

/// Registers a command, and says to the server what it is.
pub fn register(context: Context, command: &Command, category: Option<&CStr>) -> Result<(), String> {
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

/// Adds a category of access control, where the server can; `None` where it cannot.
pub fn add_category(context: Context, name: &CStr) -> Option<&CStr> {
    let add = api().AddACLCategory?;
    // SAFETY: the module is being loaded.
    (unsafe { add(context.raw(), name.as_ptr()) } == OK).then_some(name)
}
