//! The server's types and constants, as its module interface lays them out for C.

use std::ffi::{c_char, c_int, c_long, c_void};

macro_rules! opaque {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! {
    /// A string of the server.
    RawString;
    /// An open key.
    RawKey;
    /// A stream that values are saved to or loaded from.
    RawIo;
    /// A digest in the making.
    RawDigest;
    /// A registered type.
    RawType;
    /// A registered command.
    RawCommand;
    /// The section of `INFO` in the making.
    RawInfo;
    /// The key of a value, as passed to a callback.
    RawKeyOptions;
    /// A walk of active defragmentation.
    RawDefrag;
    /// A registered command filter.
    RawFilter;
    /// A command that filters look at.
    RawFiltered;
    /// A user of access control.
    RawUser;
    /// The reply of a command that the module ran.
    RawReply;
    /// The position of a walk over the fields of a hash.
    RawCursor;
}

/// A call's context. It begins with the function that finds all others.
#[repr(C)]
pub struct RawContext {
    pub get_api: *mut c_void,
}

pub const OK: c_int = 0;
pub const ERR: c_int = 1;

pub const READ: c_int = 1;
pub const WRITE: c_int = 2;
pub const OPEN_NO_TOUCH: c_int = 1 << 16;
pub const OPEN_NO_NOTIFY: c_int = 1 << 17;
pub const OPEN_NO_STATS: c_int = 1 << 18;
pub const KEYTYPE_EMPTY: c_int = 0;
pub const KEYTYPE_STRING: c_int = 1;
pub const KEYTYPE_HASH: c_int = 3;
pub const KEYTYPE_MODULE: c_int = 6;
pub const NO_EXPIRE: i64 = -1;
pub const HASH_NONE: c_int = 0;

pub const NOTIFY_GENERIC: c_int = 1 << 2;
pub const NOTIFY_STRING: c_int = 1 << 3;
pub const NOTIFY_HASH: c_int = 1 << 6;
pub const NOTIFY_EXPIRED: c_int = 1 << 8;

pub const CTX_FLAG_SCRIPT: c_int = 1 << 0;
pub const CTX_FLAG_REPLICA: c_int = 1 << 3;
pub const CTX_FLAG_CLUSTER: c_int = 1 << 5;
pub const CTX_FLAG_LOADING: c_int = 1 << 13;
pub const CTX_FLAG_RESP3: c_int = 1 << 22;

pub const POSTPONED_LEN: c_long = -1;

pub const REPLY_UNKNOWN: c_int = -1;
pub const REPLY_ERROR: c_int = 1;
pub const REPLY_INTEGER: c_int = 2;
pub const REPLY_ARRAY: c_int = 3;
pub const REPLY_NULL: c_int = 4;

pub const ACL_LOG_COMMAND: c_int = 1;

pub const OPTION_HANDLE_IO_ERRORS: c_int = 1 << 0;
pub const OPTION_NO_IMPLICIT_SIGNAL: c_int = 1 << 1;
pub const OPTION_HANDLE_REPL_ASYNC_LOAD: c_int = 1 << 2;
pub const OPTION_HANDLE_ATOMIC_SLOT_MIGRATION: c_int = 1 << 5;

pub const CONFIG_DEFAULT: u32 = 0;
pub const CONFIG_MEMORY: u32 = 1 << 7;
pub const FILTER_NO_SELF: c_int = 1 << 0;

pub const KEY_RO: u64 = 1 << 0;
pub const KEY_RW: u64 = 1 << 1;
pub const KEY_OW: u64 = 1 << 2;
pub const KEY_RM: u64 = 1 << 3;
pub const KEY_ACCESS: u64 = 1 << 4;
pub const KEY_UPDATE: u64 = 1 << 5;
pub const KEY_INSERT: u64 = 1 << 6;
pub const KEY_DELETE: u64 = 1 << 7;
pub const KEY_VARIABLE: u64 = 1 << 10;

/// Which event, and the version of what comes with it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    pub id: u64,
    pub version: u64,
}

pub const AUX_BEFORE: c_int = 1 << 0;
pub const AUX_AFTER: c_int = 1 << 1;

pub const EVENT_PERSISTENCE: Event = Event { id: 1, version: 1 };
pub const PERSISTENCE_ENDED: u64 = 3;
pub const PERSISTENCE_FAILED: u64 = 4;
pub const EVENT_LOADING: Event = Event { id: 3, version: 1 };
pub const LOADING_ENDED: u64 = 3;
pub const LOADING_FAILED: u64 = 4;
pub const EVENT_FORK: Event = Event { id: 13, version: 1 };
pub const FORK_BORN: u64 = 0;
pub const EVENT_FLUSH: Event = Event { id: 2, version: 1 };
pub const EVENT_SWAP: Event = Event { id: 11, version: 1 };
pub const EVENT_ASYNC_LOAD: Event = Event { id: 14, version: 1 };
pub const EVENT_CLIENT: Event = Event { id: 4, version: 1 };
pub const CLIENT_DISCONNECTED: u64 = 1;
/// Of Valkey from 9.0 on; Redis has another event of this number.
pub const EVENT_SLOT_MIGRATION: Event = Event { id: 19, version: 1 };
pub const SLOT_IMPORT_STARTED: u64 = 0;
pub const FLUSH_STARTS: u64 = 0;
pub const ASYNC_LOAD_STARTED: u64 = 0;
pub const ASYNC_LOAD_ABORTED: u64 = 1;
pub const ASYNC_LOAD_COMPLETED: u64 = 2;

/// A client, as [`EVENT_CLIENT`] and `GetClientInfoById` describe it: version 1 of the structure.
#[repr(C)]
#[derive(Default)]
pub struct ClientInfo {
    pub version: u64,
    pub flags: u64,
    pub id: u64,
    /// The address as text, which ends with a null. It takes 46 bytes.
    pub address: [[u8; 23]; 2],
    pub port: u16,
    pub database: u16,
}

/// The beginning of what comes with [`EVENT_SLOT_MIGRATION`].
#[repr(C)]
pub struct SlotMigrationInfo {
    pub version: u64,
    /// The name as text, which ends with a null.
    pub name: [u8; 41],
}

#[repr(C)]
pub struct FlushInfo {
    pub version: u64,
    pub sync: i32,
    pub database: i32,
}

#[repr(C)]
pub struct SwapInfo {
    pub version: u64,
    pub first: i32,
    pub second: i32,
}

pub type CommandFn = unsafe extern "C" fn(*mut RawContext, *mut *mut RawString, c_int) -> c_int;
pub type EventFn = unsafe extern "C" fn(*mut RawContext, Event, u64, *mut c_void);
pub type NotifyFn = unsafe extern "C" fn(*mut RawContext, c_int, *const c_char, *mut RawString) -> c_int;
pub type TimerFn = unsafe extern "C" fn(*mut RawContext, *mut c_void);
pub type FieldFn = unsafe extern "C" fn(*mut RawKey, *mut RawString, *mut RawString, *mut c_void);
pub type InfoFn = unsafe extern "C" fn(*mut RawInfo, c_int);
pub type FilterFn = unsafe extern "C" fn(*mut RawFiltered);
pub type GetStringFn = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut RawString;
pub type SetStringFn = unsafe extern "C" fn(*const c_char, *mut RawString, *mut c_void, *mut *mut RawString) -> c_int;
pub type GetNumberFn = unsafe extern "C" fn(*const c_char, *mut c_void) -> i64;
pub type SetNumberFn = unsafe extern "C" fn(*const c_char, i64, *mut c_void, *mut *mut RawString) -> c_int;
pub type ApplyFn = unsafe extern "C" fn(*mut RawContext, *mut c_void, *mut *mut RawString) -> c_int;

/// A type's callbacks, version 5 of the interface. The oldest server here knows version 4, and does not look at what is
/// behind it.
#[repr(C)]
pub struct TypeMethods {
    pub version: u64,
    pub rdb_load: Option<unsafe extern "C" fn(*mut RawIo, c_int) -> *mut c_void>,
    pub rdb_save: Option<unsafe extern "C" fn(*mut RawIo, *mut c_void)>,
    pub aof_rewrite: Option<unsafe extern "C" fn(*mut RawIo, *mut RawString, *mut c_void)>,
    pub mem_usage: Option<unsafe extern "C" fn(*const c_void) -> usize>,
    pub digest: Option<unsafe extern "C" fn(*mut RawDigest, *mut c_void)>,
    pub free: Option<unsafe extern "C" fn(*mut c_void)>,
    pub aux_load: Option<unsafe extern "C" fn(*mut RawIo, c_int, c_int) -> c_int>,
    pub aux_save: *const c_void,
    pub aux_save_triggers: c_int,
    pub free_effort: Option<unsafe extern "C" fn(*mut RawString, *const c_void) -> usize>,
    pub unlink: *const c_void,
    pub copy: *const c_void,
    pub defrag: Option<unsafe extern "C" fn(*mut RawDefrag, *mut RawString, *mut *mut c_void) -> c_int>,
    pub mem_usage2: *const c_void,
    pub free_effort2: *const c_void,
    pub unlink2: *const c_void,
    pub copy2: Option<unsafe extern "C" fn(*mut RawKeyOptions, *const c_void) -> *mut c_void>,
    /// Unlike `aux_save` it leaves nothing in the snapshot where it writes nothing.
    pub aux_save2: Option<unsafe extern "C" fn(*mut RawIo, c_int)>,
}

/// Versions of the following structs, by which the server distinguishes their layouts.
#[repr(C)]
pub struct CommandInfoVersion {
    pub version: c_int,
    pub sizeof_history: usize,
    pub sizeof_key_spec: usize,
    pub sizeof_arg: usize,
}

#[repr(C)]
pub struct CommandInfo {
    pub version: *const CommandInfoVersion,
    pub summary: *const c_char,
    pub complexity: *const c_char,
    pub since: *const c_char,
    pub history: *const c_void,
    pub tips: *const c_char,
    pub arity: c_int,
    pub key_specs: *const KeySpec,
    pub args: *const c_void,
}

/// Where keys are among a command's arguments. The unions of the interface are laid out as their longest member.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KeySpec {
    pub notes: *const c_char,
    pub flags: u64,
    pub begin_search: c_int,
    pub begin: BeginSearch,
    pub find_keys: c_int,
    pub find: KeyRange,
}

pub const BEGIN_BY_INDEX: c_int = 2;
pub const FIND_RANGE: c_int = 2;

#[repr(C)]
#[derive(Clone, Copy)]
pub union BeginSearch {
    pub index: c_int,
    pub keyword: BeginKeyword,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct BeginKeyword {
    pub keyword: *const c_char,
    pub start: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct KeyRange {
    pub last: c_int,
    pub step: c_int,
    pub limit: c_int,
}

/// Sizes that the interface has for histories and arguments, of which there are none here.
pub const SIZE_OF_HISTORY: usize = 2 * size_of::<*const c_char>();
pub const SIZE_OF_ARG: usize = 72;
