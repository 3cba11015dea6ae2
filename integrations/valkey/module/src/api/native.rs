//! Native commands that the module runs for a client.

use std::ffi::{CStr, CString};
use std::time::{SystemTime, UNIX_EPOCH};

use super::context::Context;
use super::failure::Failure;
use super::raw::{REPLY_ARRAY, REPLY_ERROR, REPLY_INTEGER, REPLY_NULL, REPLY_UNKNOWN, RawReply, RawString};
use super::string::{OwnedStr, Str};
use super::table::api;

/// A server: two vendors number their versions independently of each other.
#[derive(Debug, Clone, Copy)]
pub struct Server {
    /// Whether it is Valkey, and not Redis.
    pub is_valkey: bool,
    /// The major number, the minor one and the patch, of eight bits each.
    pub version: i32,
}

/// The first versions that behave in some way.
#[derive(Debug, Clone, Copy)]
pub struct Since {
    /// Of Valkey.
    pub valkey: i32,
    /// Of Redis; `None` if none does.
    pub redis: Option<i32>,
}

impl Server {
    /// Returns the server that runs the module.
    pub fn running() -> Self {
        Self {
            is_valkey: api().is_valkey,
            // SAFETY: the server takes the call at any time.
            version: unsafe { (api().GetServerVersion)() },
        }
    }

    /// Returns whether it is one of these versions, or a later one.
    pub fn is(self, since: Since) -> bool {
        let first = if self.is_valkey {
            Some(since.valkey)
        } else {
            since.redis
        };
        first.is_some_and(|first| self.version >= first)
    }
}

/// Returns the time in milliseconds of the Unix epoch: the server's own, at which the command, the script or the
/// transaction that runs began. Redis 7.0 does not report it; there it is the clock's.
pub fn now_ms() -> i64 {
    if let Some(cached) = api().CachedMicroseconds {
        // SAFETY: the server takes the call at any time.
        return unsafe { cached() } / 1000;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// A reply of a command that the module ran.
struct CallReply(*mut RawReply);

impl Drop for CallReply {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: it is ours, and freed once.
            unsafe { (api().FreeCallReply)(self.0) };
        }
    }
}

impl Context {
    /// Returns whether the server has a native command of this name.
    pub fn has_command(self, name: &CStr) -> bool {
        let name = CString::from_vec_with_nul(name.to_bytes_with_nul().to_ascii_lowercase()).unwrap_or_default();
        let reply = self.call(c"COMMAND", &[c"INFO", &name]);
        reply.windows(name.count_bytes()).any(|part| part == name.to_bytes())
    }

    /// Runs a native command with everything that it does natively: it notifies, and goes to replicas and the
    /// append-only file. The caller has checked that the user may run it.
    fn run(self, command: &CStr, arguments: &[Str<'_>]) -> CallReply {
        // A `Str` consists of a pointer.
        let strings: *const Str<'_> = arguments.as_ptr();
        // SAFETY: the context is that of the running call. "v" takes a vector of strings and its length; the others are
        // flags: replicate, reply in the client's protocol, errors as replies.
        CallReply(unsafe {
            (api().Call)(
                self.raw(),
                command.as_ptr(),
                c"!0Ev".as_ptr(),
                strings.cast::<*mut RawString>(),
                arguments.len(),
            )
        })
    }

    /// Runs a native command, and forwards its reply.
    pub fn reply_natively(self, command: &CStr, arguments: &[Str<'_>]) {
        self.reply_with(&self.run(command, arguments));
    }

    /// Runs a native command that replies whether it has done anything. If it has, calls `then`, whose error takes the
    /// place of the reply, which is forwarded otherwise.
    pub fn reply_natively_after(
        self,
        command: &CStr,
        arguments: &[Str<'_>],
        then: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let reply = self.run(command, arguments);
        // SAFETY: the reply lives; the server accepts a null one, whose type is none of these.
        if unsafe { (api().CallReplyType)(reply.0) == REPLY_INTEGER && (api().CallReplyInteger)(reply.0) == 1 } {
            then()?;
        }
        self.reply_with(&reply);
        Ok(())
    }

    fn reply_with(self, reply: &CallReply) {
        // SAFETY: the reply lives; the server accepts a null one.
        if unsafe { (api().CallReplyType)(reply.0) } == REPLY_UNKNOWN {
            return self.failure(&Failure::WRONG_TYPE);
        }
        // SAFETY: the context is that of the running call, and the reply lives.
        unsafe { (api().ReplyWithCallReply)(self.raw(), reply.0) };
    }

    /// Runs a scan of keys, and forwards its reply with the keys that `takes` accepts.
    pub fn reply_scan(self, command: &CStr, arguments: &[Str<'_>], takes: impl Fn(Str<'_>) -> bool) {
        let reply = self.run(command, arguments);
        // SAFETY: the reply lives; the server accepts a null one.
        if unsafe { (api().CallReplyType)(reply.0) } != REPLY_ARRAY {
            return self.reply_with(&reply);
        }
        // SAFETY: it is a cursor and an array of keys, which live as long as the reply. The context is that of the
        // running call.
        unsafe {
            let [cursor, keys] = [0, 1].map(|index| (api().CallReplyArrayElement)(reply.0, index));
            let keys: Vec<_> = (0..(api().CallReplyLength)(keys))
                .map(|index| (api().CallReplyArrayElement)(keys, index))
                .filter(|key| {
                    let name = OwnedStr::from_raw((api().CreateStringFromCallReply)(*key));
                    takes(name.as_str())
                })
                .collect();
            self.array(2);
            (api().ReplyWithCallReply)(self.raw(), cursor);
            self.array(keys.len());
            for key in keys {
                (api().ReplyWithCallReply)(self.raw(), key);
            }
        }
    }

    /// Runs a `SCAN` with these arguments; returns the next cursor, and the keys.
    pub fn scan(self, arguments: &[&[u8]]) -> Result<(Vec<u8>, Vec<OwnedStr>), Failure> {
        let arguments: Vec<_> = arguments.iter().map(|argument| OwnedStr::new(argument)).collect();
        let strings: Vec<_> = arguments.iter().map(OwnedStr::as_str).collect();
        let reply = self.run(c"SCAN", &strings);
        // SAFETY: the reply lives; the server accepts a null one.
        if unsafe { (api().CallReplyType)(reply.0) } != REPLY_ARRAY {
            return Err(Failure::text("ERR the server did not run SCAN"));
        }
        // SAFETY: it is a cursor and an array of keys, which live as long as the reply; the strings are copies.
        unsafe {
            let [cursor, keys] = [0, 1].map(|index| (api().CallReplyArrayElement)(reply.0, index));
            let string = |of| OwnedStr::from_raw((api().CreateStringFromCallReply)(of));
            let found = (0..(api().CallReplyLength)(keys))
                .map(|index| string((api().CallReplyArrayElement)(keys, index)))
                .collect();
            Ok((string(cursor).as_str().bytes().to_vec(), found))
        }
    }

    /// Returns the bytes that a key takes by the server's count, its name and its entry in the database included, from
    /// `samples` of its elements; `None` if there is no such key.
    pub fn memory_usage(self, name: Str<'_>, samples: usize) -> Result<Option<u64>, Failure> {
        let count = samples.to_string();
        let [usage, word, count] = [b"USAGE".as_slice(), b"SAMPLES", count.as_bytes()].map(OwnedStr::new);
        let reply = self.run(c"MEMORY", &[usage.as_str(), name, word.as_str(), count.as_str()]);
        // SAFETY: the reply lives; the server accepts a null one.
        match unsafe { (api().CallReplyType)(reply.0) } {
            // SAFETY: the reply is an integer.
            REPLY_INTEGER => Ok(u64::try_from(unsafe { (api().CallReplyInteger)(reply.0) }).ok()),
            REPLY_NULL => Ok(None),
            _ => Err(Failure::text("ERR the server did not run MEMORY USAGE")),
        }
    }

    /// Returns the number that the server is configured with under this name.
    pub fn configured_number(self, name: &CStr) -> Option<u64> {
        let reply = self.call(c"CONFIG", &[c"GET", name]);
        let mut lines = reply.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let last = lines.rfind(|line| !line.is_empty())?;
        std::str::from_utf8(last).ok()?.parse().ok()
    }

    /// Returns whether one of these fields of a native hash has an expiry. The server must have `HPEXPIRETIME`.
    pub fn has_field_expiry<'f>(
        self,
        name: Str<'_>,
        fields: impl ExactSizeIterator<Item = &'f [u8]>,
    ) -> Result<bool, Failure> {
        if fields.len() == 0 {
            return Ok(false);
        }
        let count = OwnedStr::new(fields.len().to_string().as_bytes());
        let (word, fields) = (OwnedStr::new(b"FIELDS"), fields.map(OwnedStr::new).collect::<Vec<_>>());
        let begin = [name, word.as_str(), count.as_str()];
        let arguments: Vec<_> = begin.into_iter().chain(fields.iter().map(OwnedStr::as_str)).collect();
        let reply = self.run(c"HPEXPIRETIME", &arguments);
        // SAFETY: the reply lives; the server accepts a null one.
        if unsafe { (api().CallReplyType)(reply.0) } != REPLY_ARRAY {
            return Err(Failure::text("ERR the server did not run HPEXPIRETIME"));
        }
        // SAFETY: the reply is an array of integers, which live as long as it does.
        Ok(unsafe {
            (0..(api().CallReplyLength)(reply.0))
                .any(|index| (api().CallReplyInteger)((api().CallReplyArrayElement)(reply.0, index)) >= 0)
        })
    }

    /// Runs a native command whose reply is not needed; returns its error.
    pub fn run_natively(self, command: &CStr, arguments: &[Str<'_>]) -> Result<(), Failure> {
        let reply = self.run(command, arguments);
        // SAFETY: the reply lives; the server accepts a null one.
        match unsafe { (api().CallReplyType)(reply.0) } {
            REPLY_UNKNOWN | REPLY_ERROR => Err(Failure::formatted(format!(
                "ERR the server did not run {}",
                command.to_string_lossy()
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_a_vendor() {
        let [valkey, redis] = [true, false].map(|is_valkey| move |version| Server { is_valkey, version });
        let both = Since {
            valkey: 0x08_01_00,
            redis: Some(0x08_04_00),
        };
        assert!(valkey(0x08_01_00).is(both) && valkey(0x09_01_02).is(both) && redis(0x08_04_00).is(both));
        assert!(!valkey(0x08_00_09).is(both) && !redis(0x08_02_00).is(both) && !redis(0x07_00_0f).is(both));
        let one = Since { redis: None, ..both };
        assert!(valkey(0x08_01_00).is(one) && !redis(0x09_00_00).is(one));
    }
}
