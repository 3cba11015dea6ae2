//! The C++ object that `create_tree` returns: all of the unsafe code of this library.
//!
//! `tree_api` is a class with virtual methods and no data. By the Itanium C++ ABI, which GCC and Clang follow on Linux,
//! an object of such a class starts with a pointer to its table of methods, and a virtual destructor has two places in
//! that table: one that destroys the object, one that frees it too. In front of the table stand the object's offset in
//! a larger one, here 0, and its type information, here none, as in a library that is compiled with -fno-rtti. Source:
//! <https://itanium-cxx-abi.github.io/cxx-abi/abi.html#vtable>.
//!
//! PiBench's newer branches declare one more method, `bulk_load`, before the others, so there are two tables: see
//! `program` for which of them a program gets. The methods are exported under the names that a C++ compiler would give
//! them, so that a host can determine from the table which of the two it has.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::index::{CreateError, Index};
use crate::program::{self, Interface};
use crate::report;
use crate::settings::Settings;

/// `tree_api`, as its caller sees it, and the tree behind.
#[repr(C)]
pub struct TreeApi {
    methods: *const c_void,
    index: ManuallyDrop<Index>,
}

/// The first members of `tree_options_t`. Those behind are never looked at: where they are depends on the C++ library's
/// `std::string`, and the original PiBench does not pass the last three.
#[repr(C)]
pub struct TreeOptions {
    key_size: usize,
    value_size: usize,
}

/// The two slots of the virtual destructor, which come first.
#[repr(C)]
struct Destructor {
    destroy: unsafe extern "C" fn(*mut TreeApi),
    destroy_and_free: unsafe extern "C" fn(*mut TreeApi),
}

/// The methods that both interfaces have, in the order of their declaration.
#[repr(C)]
struct Operations {
    find: unsafe extern "C" fn(*mut TreeApi, *const u8, usize, *mut u8) -> bool,
    insert: unsafe extern "C" fn(*mut TreeApi, *const u8, usize, *const u8, usize) -> bool,
    update: unsafe extern "C" fn(*mut TreeApi, *const u8, usize, *const u8, usize) -> bool,
    remove: unsafe extern "C" fn(*mut TreeApi, *const u8, usize) -> bool,
    scan: unsafe extern "C" fn(*mut TreeApi, *const u8, usize, c_int, *mut *mut u8) -> c_int,
}

/// The virtual methods of the original PiBench.
#[repr(C)]
struct OriginalMethods {
    destructor: Destructor,
    operations: Operations,
}

/// The virtual methods of PiBench's newer branches. Those without `tls_setup` never look behind `scan`.
#[repr(C)]
struct BulkLoadMethods {
    destructor: Destructor,
    bulk_load: unsafe extern "C" fn(*mut TreeApi, *const u8, usize, usize, usize) -> bool,
    operations: Operations,
    tls_setup: unsafe extern "C" fn(*mut TreeApi),
}

#[repr(C)]
struct Table<Methods> {
    offset_to_top: isize,
    type_information: usize,
    methods: Methods,
    /// A host that counts methods stops here.
    end: usize,
}

impl<Methods> Table<Methods> {
    const fn of(methods: Methods) -> Self {
        Self {
            offset_to_top: 0,
            type_information: 0,
            methods,
            end: 0,
        }
    }
}

const DESTRUCTOR: Destructor = Destructor {
    destroy,
    destroy_and_free,
};

const OPERATIONS: Operations = Operations {
    find,
    insert,
    update,
    remove,
    scan,
};

static ORIGINAL: Table<OriginalMethods> = Table::of(OriginalMethods {
    destructor: DESTRUCTOR,
    operations: OPERATIONS,
});

static BULK_LOAD: Table<BulkLoadMethods> = Table::of(BulkLoadMethods {
    destructor: DESTRUCTOR,
    bulk_load,
    operations: OPERATIONS,
    tls_setup,
});

fn methods(interface: Interface) -> *const c_void {
    match interface {
        Interface::Original => (&raw const ORIGINAL.methods).cast(),
        Interface::BulkLoad => (&raw const BULK_LOAD.methods).cast(),
    }
}

/// PiBench's entry point: makes a tree with the options that `LEAFPRESS_TREE` names. Null, after a line on standard
/// error that says why, when it cannot.
///
/// # Safety
/// `options` is null or points to a `tree_options_t`, of which the first two members are read. The tree is deleted
/// once, through its virtual destructor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn create_tree(options: *const TreeOptions) -> *mut TreeApi {
    let created = catch_unwind(|| {
        // SAFETY: `options` is null or points to a `tree_options_t`, which begins with the two members of
        // `TreeOptions`.
        let Some(options) = (unsafe { options.as_ref() }) else {
            return Err("create_tree was given no options".to_owned());
        };
        create(options).map_err(|e| e.to_string())
    });
    let reason = match created {
        Ok(Ok((index, interface))) => {
            return Box::into_raw(Box::new(TreeApi {
                methods: methods(interface),
                index: ManuallyDrop::new(index),
            }));
        }
        Ok(Err(reason)) => reason,
        Err(panic) => panicked(&*panic),
    };
    report::line(reason);
    std::ptr::null_mut()
}

fn create(options: &TreeOptions) -> Result<(Index, Interface), CreateError> {
    let settings = Settings::from_environment()?;
    let interface = settings.interface.unwrap_or_else(program::interface);
    let index = Index::new(settings.tree, options.key_size, options.value_size)?;
    Ok((index, interface))
}

fn panicked(payload: &(dyn Any + Send)) -> String {
    format!("a bug in leafpress: {}", report::panic_text(payload))
}

/// `length` bytes from `start`, which may be anything when there are none.
///
/// # Safety
/// The bytes are there, and do not change, while the slice is used.
unsafe fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller provides `length` readable bytes, which do not change while the slice is used.
    unsafe { std::slice::from_raw_parts(start, length) }
}

/// Calls `method` on the tree; a panic is reported like any failure, and the answer is `failure`.
///
/// # Safety
/// `this` was made by [`create_tree`] and is not destroyed.
#[inline]
unsafe fn guarded<R>(this: *mut TreeApi, name: &str, failure: R, method: impl FnOnce(&Index) -> R) -> R {
    // SAFETY: `this` came from `create_tree` and is not destroyed, so that the index lives during the call; methods
    // only share it.
    let index: &Index = unsafe { &(*this).index };
    catch_unwind(AssertUnwindSafe(|| method(index))).unwrap_or_else(|panic| {
        index.report(name, panicked(&*panic));
        failure
    })
}

/// # Safety
/// `this` was made by [`create_tree`]; no thread uses its tree any more.
unsafe extern "C" fn destroy(this: *mut TreeApi) {
    // SAFETY: `this` came from `create_tree`; a C++ program destroys an object once, when no thread uses it.
    let destroyed = catch_unwind(AssertUnwindSafe(|| unsafe {
        ManuallyDrop::drop(&mut (*this).index);
    }));
    if let Err(panic) = destroyed {
        report::line(panicked(&*panic));
    }
}

/// # Safety
/// As [`destroy`]; `this` is not used any more either.
unsafe extern "C" fn destroy_and_free(this: *mut TreeApi) {
    // SAFETY: `this` is the box of `create_tree`; a C++ program deletes an object once. Freeing the box does not drop
    // the index a second time, which is in a `ManuallyDrop`.
    unsafe {
        destroy(this);
        drop(Box::from_raw(this));
    }
}

/// # Safety
/// This and the methods below: `this` as in [`guarded`], keys and values are as long as the caller says, and
/// `value_out` has room for a value.
#[unsafe(export_name = "_ZN9leafpress5Index4findEPKcmPc")]
unsafe extern "C" fn find(this: *mut TreeApi, key: *const u8, key_size: usize, value_out: *mut u8) -> bool {
    // SAFETY: `this` came from `create_tree` and is not destroyed, `key` has `key_size` bytes, and `value_out` has room
    // for a value.
    unsafe {
        guarded(this, "find", false, |index| {
            let value: &mut [MaybeUninit<u8>] = match index.value_size() {
                0 => &mut [],
                value_size => std::slice::from_raw_parts_mut(value_out.cast(), value_size),
            };
            index.find(bytes(key, key_size), value)
        })
    }
}

/// # Safety
/// As [`find`].
#[unsafe(export_name = "_ZN9leafpress5Index6insertEPKcmS2_m")]
unsafe extern "C" fn insert(
    this: *mut TreeApi,
    key: *const u8,
    key_size: usize,
    value: *const u8,
    value_size: usize,
) -> bool {
    // SAFETY: `this` came from `create_tree` and is not destroyed, `key` has `key_size` bytes, and `value` has
    // `value_size`.
    unsafe {
        guarded(this, "insert", false, |index| {
            index.insert(bytes(key, key_size), bytes(value, value_size))
        })
    }
}

/// # Safety
/// As [`find`].
#[unsafe(export_name = "_ZN9leafpress5Index6updateEPKcmS2_m")]
unsafe extern "C" fn update(
    this: *mut TreeApi,
    key: *const u8,
    key_size: usize,
    value: *const u8,
    value_size: usize,
) -> bool {
    // SAFETY: `this` came from `create_tree` and is not destroyed, `key` has `key_size` bytes, and `value` has
    // `value_size`.
    unsafe {
        guarded(this, "update", false, |index| {
            index.update(bytes(key, key_size), bytes(value, value_size))
        })
    }
}

/// # Safety
/// As [`find`].
#[unsafe(export_name = "_ZN9leafpress5Index6removeEPKcm")]
unsafe extern "C" fn remove(this: *mut TreeApi, key: *const u8, key_size: usize) -> bool {
    // SAFETY: `this` came from `create_tree` and is not destroyed, and `key` has `key_size` bytes.
    unsafe { guarded(this, "remove", false, |index| index.remove(bytes(key, key_size))) }
}

/// # Safety
/// As [`find`]; `data` has `records` keys of `key_size` bytes, each followed by its value of `value_size`.
#[unsafe(export_name = "_ZN9leafpress5Index9bulk_loadEPKcmmm")]
unsafe extern "C" fn bulk_load(
    this: *mut TreeApi,
    data: *const u8,
    records: usize,
    key_size: usize,
    value_size: usize,
) -> bool {
    // SAFETY: `this` came from `create_tree` and is not destroyed, and `data` has as many bytes as `records` keys and
    // values have. They are in memory, so that the product does not exceed `usize`.
    unsafe {
        guarded(this, "bulk_load", false, |index| {
            let length = records.saturating_mul(key_size.saturating_add(value_size));
            index.bulk_load(bytes(data, length), key_size, value_size)
        })
    }
}

/// Threads need no preparation.
#[unsafe(export_name = "_ZN9leafpress5Index9tls_setupEv")]
unsafe extern "C" fn tls_setup(_: *mut TreeApi) {}

/// # Safety
/// As [`find`]; `values_out` points to a pointer that may be set.
#[unsafe(export_name = "_ZN9leafpress5Index4scanEPKcmiRPc")]
unsafe extern "C" fn scan(
    this: *mut TreeApi,
    key: *const u8,
    key_size: usize,
    count: c_int,
    values_out: *mut *mut u8,
) -> c_int {
    // A scan of fewer than no records is one of none.
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: `this` came from `create_tree` and is not destroyed, `key` has `key_size` bytes, and `values_out` points
    // to a writable pointer.
    unsafe {
        let (scanned, records) = guarded(this, "scan", (0, std::ptr::null_mut()), |index| {
            index.scan(bytes(key, key_size), count)
        });
        *values_out = records;
        // No more than `count`, which was a `c_int`.
        c_int::try_from(scanned).unwrap_or(c_int::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{TreeOptions, create_tree, destroy_and_free, find, guarded, insert, scan};

    #[test]
    fn a_panic_is_an_answer_and_the_tree_goes_on() {
        let options = TreeOptions {
            key_size: 3,
            value_size: 3,
        };
        let mut value = [0; 3];
        // SAFETY: the options, keys and values are as long as they say, and the tree is used before it is freed.
        unsafe {
            let tree = create_tree(&options);
            assert!(!tree.is_null());
            assert!(insert(tree, b"key".as_ptr(), 3, b"one".as_ptr(), 3));
            for _ in 0..2 {
                assert_eq!(guarded(tree, "find", 7, |_| panic!("on purpose")), 7);
            }
            assert!(find(tree, b"key".as_ptr(), 3, value.as_mut_ptr()));
            let mut records = std::ptr::null_mut();
            assert_eq!(scan(tree, b"key".as_ptr(), 3, 9, &mut records), 1);
            destroy_and_free(tree);
        }
        assert_eq!(&value, b"one");
    }

    #[test]
    fn no_options_make_no_tree() {
        // SAFETY: null is allowed.
        assert!(unsafe { create_tree(std::ptr::null()) }.is_null());
    }
}
