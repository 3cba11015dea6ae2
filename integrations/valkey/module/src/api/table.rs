//! The server's functions, found by name when the module is loaded.
//!
//! A table of our own rather than generated bindings: it needs no libclang to build and no server to test what uses
//! none of it, has functions that are newer than the headers of Redis, and says which function a server lacks.

#![allow(
    non_snake_case,
    clippy::type_complexity,
    reason = "functions have the names that the server has for them"
)]

use std::ffi::{c_char, c_int, c_long, c_longlong, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use super::raw::{
    ApplyFn, CommandFn, CommandInfo, Event, EventFn, FieldFn, FilterFn, GetNumberFn, GetStringFn, InfoFn, NotifyFn,
    RawCommand, RawContext, RawCursor, RawDefrag, RawDigest, RawFilter, RawFiltered, RawInfo, RawIo, RawKey,
    RawKeyOptions, RawReply, RawString, RawType, RawUser, SetNumberFn, SetStringFn, TimerFn, TypeMethods,
};

static TABLE: OnceLock<Table> = OnceLock::new();

/// Returns the server's functions.
///
/// # Panics
/// Before [`load`].
#[inline]
pub fn api() -> &'static Table {
    TABLE.get().expect("the server has loaded the module")
}

/// Returns the server's functions, if there is a server.
#[inline]
pub fn loaded() -> Option<&'static Table> {
    TABLE.get()
}

type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;

/// Finds all functions; returns which one the server lacks.
///
/// # Safety
/// `context` is what the server calls the module's entry with.
pub unsafe fn load(context: *mut RawContext) -> Result<(), &'static str> {
    // SAFETY: the server's context begins with this function, of this type, in every version.
    let get = unsafe { std::mem::transmute::<*mut c_void, GetApi>((*context).get_api) };
    let table = Table::find(get)?;
    let _ = TABLE.set(table);
    Ok(())
}

fn find(get: GetApi, name: &'static str) -> Option<*mut c_void> {
    let mut function = std::ptr::null_mut();
    // SAFETY: `name` ends with a null, and the server writes one pointer.
    let found = unsafe { get(name.as_ptr().cast(), &raw mut function) };
    (found == 0 && !function.is_null()).then_some(function)
}

macro_rules! table {
    (
        required { $($name:ident: $type:ty;)* }
        optional { $($optional:ident: $optional_type:ty;)* }
    ) => {
        /// The functions that the module uses; those may be absent that some of the servers lack.
        pub struct Table {
            /// Whether the server is Valkey: Redis knows functions by one name only.
            pub is_valkey: bool,
            $(pub $name: $type,)*
            $(pub $optional: Option<$optional_type>,)*
        }

        impl Table {
            fn find(get: GetApi) -> Result<Self, &'static str> {
                Ok(Self {
                    is_valkey: find(get, "ValkeyModule_GetServerVersion\0").is_some(),
                    $($name: {
                        let name = concat!("RedisModule_", stringify!($name), "\0");
                        let function = find(get, name).ok_or(stringify!($name))?;
                        // SAFETY: the server's function of this name has this type.
                        unsafe { std::mem::transmute::<*mut c_void, $type>(function) }
                    },)*
                    $($optional: {
                        let name = concat!("RedisModule_", stringify!($optional), "\0");
                        // SAFETY: the server's function of this name has this type.
                        find(get, name).map(|function| unsafe {
                            std::mem::transmute::<*mut c_void, $optional_type>(function)
                        })
                    },)*
                })
            }
        }
    };
}

table! {
    required {
        TryAlloc: unsafe extern "C" fn(usize) -> *mut c_void;
        Free: unsafe extern "C" fn(*mut c_void);

        SetModuleAttribs: unsafe extern "C" fn(*mut RawContext, *const c_char, c_int, c_int);
        IsModuleNameBusy: unsafe extern "C" fn(*const c_char) -> c_int;
        SetModuleOptions: unsafe extern "C" fn(*mut RawContext, c_int);
        GetServerVersion: unsafe extern "C" fn() -> c_int;
        GetContextFlags: unsafe extern "C" fn(*mut RawContext) -> c_int;
        GetDetachedThreadSafeContext: unsafe extern "C" fn(*mut RawContext) -> *mut RawContext;
        GetUsedMemoryRatio: unsafe extern "C" fn() -> f32;
        SelectDb: unsafe extern "C" fn(*mut RawContext, c_int) -> c_int;
        GetSelectedDb: unsafe extern "C" fn(*mut RawContext) -> c_int;
        Log: unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...);

        GetClientId: unsafe extern "C" fn(*mut RawContext) -> c_ulonglong;
        GetClientInfoById: unsafe extern "C" fn(*mut c_void, u64) -> c_int;
        GetClientUserNameById: unsafe extern "C" fn(*mut RawContext, u64) -> *mut RawString;
        GetCurrentUserName: unsafe extern "C" fn(*mut RawContext) -> *mut RawString;
        GetModuleUserFromUserName: unsafe extern "C" fn(*mut RawString) -> *mut RawUser;
        FreeModuleUser: unsafe extern "C" fn(*mut RawUser) -> c_int;
        ACLCheckCommandPermissions: unsafe extern "C" fn(*mut RawUser, *mut *mut RawString, c_int) -> c_int;
        ACLAddLogEntry: unsafe extern "C" fn(*mut RawContext, *mut RawUser, *mut RawString, c_int) -> c_int;
        Call: unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...) -> *mut RawReply;
        CallReplyType: unsafe extern "C" fn(*mut RawReply) -> c_int;
        CallReplyInteger: unsafe extern "C" fn(*mut RawReply) -> c_longlong;
        CallReplyLength: unsafe extern "C" fn(*mut RawReply) -> usize;
        CallReplyArrayElement: unsafe extern "C" fn(*mut RawReply, usize) -> *mut RawReply;
        CreateStringFromCallReply: unsafe extern "C" fn(*mut RawReply) -> *mut RawString;
        ReplyWithCallReply: unsafe extern "C" fn(*mut RawContext, *mut RawReply) -> c_int;
        CallReplyProto: unsafe extern "C" fn(*mut RawReply, *mut usize) -> *const c_char;
        FreeCallReply: unsafe extern "C" fn(*mut RawReply);

        CreateCommand:
            unsafe extern "C" fn(
                *mut RawContext, *const c_char, CommandFn, *const c_char, c_int, c_int, c_int,
            ) -> c_int;
        GetCommand: unsafe extern "C" fn(*mut RawContext, *const c_char) -> *mut RawCommand;
        SetCommandInfo: unsafe extern "C" fn(*mut RawCommand, *const CommandInfo) -> c_int;
        IsKeysPositionRequest: unsafe extern "C" fn(*mut RawContext) -> c_int;
        KeyAtPosWithFlags: unsafe extern "C" fn(*mut RawContext, c_int, c_int);
        WrongArity: unsafe extern "C" fn(*mut RawContext) -> c_int;

        CreateString: unsafe extern "C" fn(*mut RawContext, *const c_char, usize) -> *mut RawString;
        FreeString: unsafe extern "C" fn(*mut RawContext, *mut RawString);
        RetainString: unsafe extern "C" fn(*mut RawContext, *mut RawString);
        StringPtrLen: unsafe extern "C" fn(*const RawString, *mut usize) -> *const c_char;

        ReplyWithLongLong: unsafe extern "C" fn(*mut RawContext, c_longlong) -> c_int;
        ReplyWithError: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int;
        ReplyWithSimpleString: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int;
        ReplyWithArray: unsafe extern "C" fn(*mut RawContext, c_long) -> c_int;
        ReplySetArrayLength: unsafe extern "C" fn(*mut RawContext, c_long);
        ReplyWithMap: unsafe extern "C" fn(*mut RawContext, c_long) -> c_int;
        ReplyWithStringBuffer: unsafe extern "C" fn(*mut RawContext, *const c_char, usize) -> c_int;
        ReplyWithNull: unsafe extern "C" fn(*mut RawContext) -> c_int;

        OpenKey: unsafe extern "C" fn(*mut RawContext, *mut RawString, c_int) -> *mut RawKey;
        CloseKey: unsafe extern "C" fn(*mut RawKey);
        ValueLength: unsafe extern "C" fn(*mut RawKey) -> usize;
        GetLRU: unsafe extern "C" fn(*mut RawKey, *mut c_longlong) -> c_int;
        SetLRU: unsafe extern "C" fn(*mut RawKey, c_longlong) -> c_int;
        GetLFU: unsafe extern "C" fn(*mut RawKey, *mut c_longlong) -> c_int;
        SetLFU: unsafe extern "C" fn(*mut RawKey, c_longlong) -> c_int;
        KeyType: unsafe extern "C" fn(*mut RawKey) -> c_int;
        DeleteKey: unsafe extern "C" fn(*mut RawKey) -> c_int;
        GetAbsExpire: unsafe extern "C" fn(*mut RawKey) -> i64;
        SetAbsExpire: unsafe extern "C" fn(*mut RawKey, i64) -> c_int;
        StringDMA: unsafe extern "C" fn(*mut RawKey, *mut usize, c_int) -> *const c_char;
        StringSet: unsafe extern "C" fn(*mut RawKey, *mut RawString) -> c_int;
        ScanCursorCreate: unsafe extern "C" fn() -> *mut RawCursor;
        ScanCursorDestroy: unsafe extern "C" fn(*mut RawCursor);
        ScanKey: unsafe extern "C" fn(*mut RawKey, *mut RawCursor, FieldFn, *mut c_void) -> c_int;
        HashSet: unsafe extern "C" fn(*mut RawKey, c_int, ...) -> c_int;
        SignalModifiedKey: unsafe extern "C" fn(*mut RawContext, *mut RawString) -> c_int;
        NotifyKeyspaceEvent: unsafe extern "C" fn(*mut RawContext, c_int, *const c_char, *mut RawString) -> c_int;
        SubscribeToKeyspaceEvents: unsafe extern "C" fn(*mut RawContext, c_int, NotifyFn) -> c_int;
        ReplicateVerbatim: unsafe extern "C" fn(*mut RawContext) -> c_int;
        Replicate: unsafe extern "C" fn(*mut RawContext, *const c_char, *const c_char, ...) -> c_int;

        CreateDataType: unsafe extern "C" fn(*mut RawContext, *const c_char, c_int, *const TypeMethods) -> *mut RawType;
        ModuleTypeGetType: unsafe extern "C" fn(*mut RawKey) -> *mut RawType;
        ModuleTypeGetValue: unsafe extern "C" fn(*mut RawKey) -> *mut c_void;
        ModuleTypeSetValue: unsafe extern "C" fn(*mut RawKey, *mut RawType, *mut c_void) -> c_int;
        ModuleTypeReplaceValue:
            unsafe extern "C" fn(*mut RawKey, *mut RawType, *mut c_void, *mut *mut c_void) -> c_int;

        SaveUnsigned: unsafe extern "C" fn(*mut RawIo, u64);
        LoadUnsigned: unsafe extern "C" fn(*mut RawIo) -> u64;
        SaveStringBuffer: unsafe extern "C" fn(*mut RawIo, *const c_char, usize);
        LoadStringBuffer: unsafe extern "C" fn(*mut RawIo, *mut usize) -> *mut c_char;
        IsIOError: unsafe extern "C" fn(*mut RawIo) -> c_int;
        LogIOError: unsafe extern "C" fn(*mut RawIo, *const c_char, *const c_char, ...);
        GetKeyNameFromIO: unsafe extern "C" fn(*mut RawIo) -> *const RawString;
        GetDbIdFromIO: unsafe extern "C" fn(*mut RawIo) -> c_int;
        EmitAOF: unsafe extern "C" fn(*mut RawIo, *const c_char, *const c_char, ...);
        DigestAddStringBuffer: unsafe extern "C" fn(*mut RawDigest, *const c_char, usize);
        DigestEndSequence: unsafe extern "C" fn(*mut RawDigest);
        GetToDbIdFromOptCtx: unsafe extern "C" fn(*mut RawKeyOptions) -> c_int;
        DefragAlloc: unsafe extern "C" fn(*mut RawDefrag, *mut c_void) -> *mut c_void;

        CreateTimer: unsafe extern "C" fn(*mut RawContext, c_longlong, TimerFn, *mut c_void) -> u64;
        SubscribeToServerEvent: unsafe extern "C" fn(*mut RawContext, Event, EventFn) -> c_int;
        RegisterInfoFunc: unsafe extern "C" fn(*mut RawContext, InfoFn) -> c_int;
        InfoAddSection: unsafe extern "C" fn(*mut RawInfo, *const c_char) -> c_int;
        InfoAddFieldULongLong: unsafe extern "C" fn(*mut RawInfo, *const c_char, c_ulonglong) -> c_int;
        InfoAddFieldDouble: unsafe extern "C" fn(*mut RawInfo, *const c_char, f64) -> c_int;
        InfoAddFieldCString: unsafe extern "C" fn(*mut RawInfo, *const c_char, *const c_char) -> c_int;

        RegisterStringConfig: unsafe extern "C" fn(
            *mut RawContext, *const c_char, *const c_char, c_uint, GetStringFn, SetStringFn, Option<ApplyFn>,
            *mut c_void,
        ) -> c_int;
        RegisterNumericConfig: unsafe extern "C" fn(
            *mut RawContext, *const c_char, c_longlong, c_uint, c_longlong, c_longlong, GetNumberFn, SetNumberFn,
            Option<ApplyFn>, *mut c_void,
        ) -> c_int;
        LoadConfigs: unsafe extern "C" fn(*mut RawContext) -> c_int;

        RegisterCommandFilter: unsafe extern "C" fn(*mut RawContext, FilterFn, c_int) -> *mut RawFilter;
        CommandFilterArgsCount: unsafe extern "C" fn(*mut RawFiltered) -> c_int;
        CommandFilterArgGet: unsafe extern "C" fn(*mut RawFiltered, c_int) -> *mut RawString;
        CommandFilterArgReplace: unsafe extern "C" fn(*mut RawFiltered, c_int, *mut RawString) -> c_int;
    }
    optional {
        ACLCheckPermissions: unsafe extern "C" fn(*mut RawUser, *mut *mut RawString, c_int, c_int, *mut c_int) -> c_int;
        AvoidReplicaTraffic: unsafe extern "C" fn() -> c_int;
        CachedMicroseconds: unsafe extern "C" fn() -> c_longlong;
        CommandFilterGetClientId: unsafe extern "C" fn(*mut RawFiltered) -> c_ulonglong;
        AddACLCategory: unsafe extern "C" fn(*mut RawContext, *const c_char) -> c_int;
        TryRealloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
        MallocSize: unsafe extern "C" fn(*mut c_void) -> usize;
        SetCommandACLCategories: unsafe extern "C" fn(*mut RawCommand, *const c_char) -> c_int;
    }
}
