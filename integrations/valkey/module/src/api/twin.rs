//! Native commands with the module's commands that replace them, and the running one of these.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use super::string::{OwnedStr, Str};

/// A native command and the module's commands that replace it.
pub struct Twin {
    /// The native command.
    pub native: &'static CStr,
    /// The command that is known to access control by its name. Where clients may send it, it is a command of the same
    /// function, and is also sent to replicas.
    pub public: &'static CStr,
    /// Whether clients may send it.
    pub has_public: bool,
    /// The type of its native values, `KEYTYPE_*` of `raw`.
    pub key_type: c_int,
    /// The command that replaces the native one in the filter. It is not known to access control by name: it is allowed
    /// where the native command is, which it checks itself.
    pub rewritten: &'static CStr,
    /// The names as the server's strings.
    names: OnceLock<Names>,
}

/// A twin's names. Commands that the filter has rewritten are recognized by these very strings, which no client can
/// send.
struct Names {
    native: OwnedStr,
    public: OwnedStr,
    rewritten: OwnedStr,
}

// SAFETY: the strings are made when the module is loaded; from then on only the main thread changes their reference
// counts.
unsafe impl Sync for Names {}

impl Twin {
    /// Returns a twin; its names are made by [`register`].
    pub const fn new(
        native: &'static CStr,
        public: &'static CStr,
        has_public: bool,
        rewritten: &'static CStr,
        key_type: c_int,
    ) -> Self {
        Self {
            native,
            public,
            has_public,
            key_type,
            rewritten,
            names: OnceLock::new(),
        }
    }

    fn names(&self) -> &Names {
        self.names.get_or_init(|| Names {
            native: OwnedStr::new(self.native.to_bytes()),
            public: OwnedStr::new(self.public.to_bytes()),
            rewritten: OwnedStr::new(self.rewritten.to_bytes()),
        })
    }

    /// Returns the native command's name.
    pub fn native_name(&self) -> Str<'_> {
        self.names().native.as_str()
    }

    /// Returns the name by which the filter replaces it if access control is to check the module's command as well.
    pub fn public_name(&self) -> Str<'_> {
        self.names().public.as_str()
    }

    /// Returns the name by which the filter replaces it otherwise.
    pub fn rewritten_name(&self) -> Str<'_> {
        self.names().rewritten.as_str()
    }
}

thread_local! {
    /// The command with a twin that runs; `None` if there is none.
    pub(super) static RUNNING: Cell<Option<Running>> = const { Cell::new(None) };
}

/// A command with a twin that runs.
#[derive(Clone, Copy)]
pub(super) struct Running {
    pub twin: &'static Twin,
    /// The arguments behind the name.
    pub rest: &'static [Str<'static>],
    /// Whether the client sent the native command.
    pub is_rewritten: bool,
    /// Whether it has the public name.
    pub is_public: bool,
}

/// Returns the public name of the command that runs under a name that only this server knows, and its arguments.
pub(super) fn renamed<'c>() -> Option<(&'static CStr, &'c [Str<'c>])> {
    let running = RUNNING.get().filter(|running| !running.is_public)?;
    Some((running.twin.public, running.rest))
}

/// Returns the name that errors of the running command with a twin have: that of the command that the client sent.
pub fn sent_name() -> Option<String> {
    let Running { twin, is_rewritten, .. } = RUNNING.get()?;
    Some(match is_rewritten {
        true => twin.native.to_string_lossy().to_ascii_lowercase(),
        false => twin.public.to_string_lossy().into_owned(),
    })
}

/// Returns whether the running command replaces a native one that the client sent.
pub fn is_rewritten() -> bool {
    RUNNING.get().is_some_and(|running| running.is_rewritten)
}
