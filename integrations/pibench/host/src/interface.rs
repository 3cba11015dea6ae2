//! Which of PiBench's two interfaces a tree was compiled for.
//!
//! PiBench's newer branches insert the virtual method `bulk_load` before `find`, and some of them add `tls_setup` after
//! `scan`; `create_tree` has the same name and type in all of them. A call through the wrong interface runs the
//! neighbouring method, so the interface is found out from the library before anything is called:
//! - `tree_api::bulk_load` has a body in the header, so a wrapper that does not override it exports that symbol;
//! - the names that the loader knows for the methods in the tree's virtual table say which method stands where;
//! - a table of exactly seven methods has no room for `bulk_load`.
//!
//! Where none of these decides, the wrapper is refused.

use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

use crate::LoadError;
use crate::mapped::is_mapped;

/// `tree_api::bulk_load(const char*, size_t, size_t, size_t)`.
pub(crate) const BULK_LOAD: &[u8] = b"_ZN8tree_api9bulk_loadEPKcmmm\0";
/// `tree_api::tls_setup()`.
pub(crate) const TLS_SETUP: &[u8] = b"_ZN8tree_api9tls_setupEv\0";

/// The methods after the destructor's two slots, as a mangled name spells them up to the first parameters. Whatever
/// class overrides a method, its name ends so.
const ORIGINAL: [&str; 5] = ["4findEPKc", "6insertEPKc", "6updateEPKc", "6removeEPKc", "4scanEPKc"];
const WITH_BULK_LOAD: [&str; 5] = ["9bulk_loadEPKc", ORIGINAL[0], ORIGINAL[1], ORIGINAL[2], ORIGINAL[3]];

/// Slots of the destructor.
const DESTRUCTOR_SLOTS: usize = 2;
/// Slots of the original interface, and of those with `bulk_load` and without `tls_setup`.
const ORIGINAL_SLOTS: usize = DESTRUCTOR_SLOTS + 5;
const BULK_LOAD_SLOTS: usize = ORIGINAL_SLOTS + 1;

/// The order of a tree's virtual methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// `find` is the first method.
    Original,
    /// `bulk_load` is the first method.
    BulkLoad { has_tls_setup: bool },
}

/// Why a tree is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    TooFewMethods(usize),
    Unknown,
}

impl Refusal {
    /// Returns the error for the wrapper at `path`.
    pub(crate) fn of(self, path: &Path) -> LoadError {
        let path = path.to_owned();
        match self {
            Self::TooFewMethods(methods) => LoadError::NotATree { path, methods },
            Self::Unknown => LoadError::UnknownInterface { path },
        }
    }
}

impl Interface {
    #[inline]
    pub(crate) fn has_bulk_load(self) -> bool {
        self != Self::Original
    }

    #[inline]
    pub(crate) fn has_tls_setup(self) -> bool {
        self == Self::BulkLoad { has_tls_setup: true }
    }

    /// Returns the interface of `tree`, whose library exports [`BULK_LOAD`] and [`TLS_SETUP`] or does not.
    pub(crate) fn of(tree: NonNull<c_void>, exports_bulk_load: bool, exports_tls_setup: bool) -> Result<Self, Refusal> {
        let methods = methods(tree);
        // Methods with the same body may share their code (identical code folding), whose name is then that of any of
        // them.
        let is_shared = |method| methods.iter().filter(|other| **other == method).count() > 1;
        let own_name = |method: &usize| if is_shared(*method) { None } else { name(*method) };
        let names: Vec<Option<&str>> = methods.iter().map(own_name).collect();
        Self::by(&names, exports_bulk_load, exports_tls_setup)
    }

    /// As [`Interface::of`], by the names of the methods, as far as the loader knows them.
    fn by(names: &[Option<&str>], exports_bulk_load: bool, exports_tls_setup: bool) -> Result<Self, Refusal> {
        if names.len() < ORIGINAL_SLOTS {
            return Err(Refusal::TooFewMethods(names.len()));
        }
        let agrees_with = |order: [&str; 5]| {
            names[DESTRUCTOR_SLOTS..]
                .iter()
                .zip(order)
                .any(|(name, method)| name.is_some_and(|name| name.contains(method)))
        };
        let has_bulk_load = match (agrees_with(ORIGINAL), exports_bulk_load || agrees_with(WITH_BULK_LOAD)) {
            (true, false) => false,
            (false, true) if names.len() >= BULK_LOAD_SLOTS => true,
            (false, false) if names.len() == ORIGINAL_SLOTS => false,
            _ => return Err(Refusal::Unknown),
        };
        if !has_bulk_load {
            return Ok(Self::Original);
        }
        let has_tls_setup = match names.get(BULK_LOAD_SLOTS) {
            None => false,
            Some(_) if exports_tls_setup => true,
            Some(Some(name)) => name.contains("9tls_setupEv"),
            Some(None) => return Err(Refusal::Unknown),
        };
        Ok(Self::BulkLoad { has_tls_setup })
    }
}

/// Returns the addresses in the virtual table of `object` up to the first that is not code; no more than the largest
/// interface has.
fn methods(object: NonNull<c_void>) -> Vec<usize> {
    let word = |address: usize| {
        let address = std::ptr::with_exposed_provenance::<usize>(address);
        (address.is_aligned() && is_mapped(address.cast(), size_of::<usize>()))
            // SAFETY: the address is aligned and mapped, and every bit pattern is a `usize`. Nobody writes to an object
            // of `create_tree` or to a virtual table now.
            .then(|| unsafe { address.read() })
    };
    let Some(table) = word(object.as_ptr().expose_provenance()) else {
        return Vec::new();
    };
    (0..=BULK_LOAD_SLOTS)
        .map_while(|slot| word(table.checked_add(slot * size_of::<usize>())?))
        .take_while(|method| is_code(*method))
        .collect()
}

/// Returns whether `address` lies in an executable segment of a loaded object.
fn is_code(address: usize) -> bool {
    /// What the loader's visitor looks for, and whether it has found it.
    struct Search {
        address: usize,
        found: bool,
    }
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes an object that exists during the call, and the pointer that `dl_iterate_phdr` was
        // given below.
        let (object, search) = unsafe { (&*object, &mut *search.cast::<Search>()) };
        // SAFETY: the loader says how many headers there are and where.
        let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
        search.found |= headers.iter().any(|header| {
            let start = object.dlpi_addr.wrapping_add(header.p_vaddr) as usize;
            header.p_type == libc::PT_LOAD
                && header.p_flags & libc::PF_X != 0
                && search.address.wrapping_sub(start) < header.p_memsz as usize
        });
        c_int::from(search.found)
    }
    let mut search = Search { address, found: false };
    // SAFETY: `visit` keeps to the loader's interface, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// Returns the name that a loaded library exports for the function at exactly `address`.
fn name(address: usize) -> Option<&'static str> {
    // SAFETY: all zeros is a valid value of this structure of pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the loader looks the address up in its tables and reads nothing there.
    let known = unsafe { libc::dladdr(std::ptr::with_exposed_provenance(address), &mut info) } != 0;
    if !known || info.dli_sname.is_null() || info.dli_saddr.addr() != address {
        return None;
    }
    // SAFETY: the name is a string in the library's symbol table, and a wrapper's library is never unloaded.
    unsafe { CStr::from_ptr(info.dli_sname) }.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::{Interface, Refusal};

    const ORIGINAL: [&str; 7] = [
        "_ZN3MapD1Ev",
        "_ZN3MapD0Ev",
        "_ZN3Map4findEPKcmPc",
        "_ZN3Map6insertEPKcmS1_m",
        "_ZN3Map6updateEPKcmS1_m",
        "_ZThn8_N3Map6removeEPKcm",
        "_ZN3Map4scanEPKcmiRPc",
    ];

    fn with_bulk_load() -> Vec<Option<&'static str>> {
        let mut names: Vec<_> = ORIGINAL.into_iter().map(Some).collect();
        names.insert(2, Some("_ZN3Map9bulk_loadEPKcmmm"));
        names
    }

    #[test]
    fn detects_the_interface_by_its_names() {
        let original: Vec<_> = ORIGINAL.into_iter().map(Some).collect();
        assert_eq!(Interface::by(&original, false, false), Ok(Interface::Original));
        let mut more = original.clone();
        more.push(Some("_ZN3Map5closeEv"));
        more.push(None);
        assert_eq!(Interface::by(&more, false, false), Ok(Interface::Original));
        for known in 2..7 {
            let mut names = vec![None; 9];
            names[known] = original[known];
            assert_eq!(Interface::by(&names, false, false), Ok(Interface::Original), "{known}");
        }

        let mut names = with_bulk_load();
        let without = Ok(Interface::BulkLoad { has_tls_setup: false });
        let with = Ok(Interface::BulkLoad { has_tls_setup: true });
        assert_eq!(Interface::by(&names, false, false), without);
        names.push(Some("_ZN3Map5closeEv"));
        assert_eq!(Interface::by(&names, false, false), without);
        names[8] = Some("_ZN3Map9tls_setupEv");
        assert_eq!(Interface::by(&names, false, false), with);
        // The symbols of the header's own bodies, where no method has a name.
        assert_eq!(Interface::by(&[None; 8], true, false), without);
        assert_eq!(Interface::by(&[None; 9], true, true), with);
    }

    #[test]
    fn rejects_ambiguous_interfaces() {
        assert_eq!(Interface::by(&[None; 7], false, false), Ok(Interface::Original));
        assert_eq!(Interface::by(&[None; 8], false, false), Err(Refusal::Unknown));
        assert_eq!(Interface::by(&[None; 9], true, false), Err(Refusal::Unknown));
        assert_eq!(Interface::by(&[None; 6], false, false), Err(Refusal::TooFewMethods(6)));
        assert_eq!(Interface::by(&[], true, true), Err(Refusal::TooFewMethods(0)));
        // Names that contradict each other.
        let mut names = with_bulk_load();
        names[5] = ORIGINAL.map(Some)[5];
        assert_eq!(Interface::by(&names, false, false), Err(Refusal::Unknown));
        // A table of the original's length in a library that exports bulk_load.
        assert_eq!(Interface::by(&[None; 7], true, false), Err(Refusal::Unknown));
    }
}
