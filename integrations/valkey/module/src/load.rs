//! The module's entry.

use std::ffi::c_int;

use crate::alloc::{early_blocks, find_alignment};
use crate::api::context::{is_memory_short, log_warning};
use crate::api::guard::guarded;
use crate::api::raw::{
    ERR, OK, OPTION_HANDLE_ATOMIC_SLOT_MIGRATION, OPTION_HANDLE_IO_ERRORS, OPTION_HANDLE_REPL_ASYNC_LOAD,
    OPTION_NO_IMPLICIT_SIGNAL, RawContext, RawString,
};
use crate::api::table::{self, api};
use crate::api::{Context, datatype, hooks};
use crate::persist::{ENCODING, dictionaries, digest, load, memory, rewrite, save};
use crate::store::removal;
use crate::{commands, config, events, filter, info, upkeep};

/// Version of the servers' interface.
const INTERFACE: c_int = 1;
const VERSION: c_int = 100;

/// The function that the server calls to load the module.
///
/// # Safety
/// It is called by the server only, with its context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(context: *mut RawContext, _: *mut *mut RawString, count: c_int) -> c_int {
    // Blocks that were allocated before the server is known could not be freed by it later.
    let early = early_blocks();
    // SAFETY: the server calls this function and passes its context. `table::load` allocates no block.
    if early != 0 || unsafe { table::load(context) }.is_err() {
        return ERR;
    }
    find_alignment();
    // SAFETY: the context is the server's, and the table of its functions was loaded. `Context::new` allocates no
    // block.
    let context = unsafe { Context::new(context) };
    let loaded = guarded("loading the module", Err("a defect".to_owned()), || {
        start(context, count)
    });
    match loaded {
        Ok(()) => OK,
        Err(reason) => {
            log_warning(&format!("leafpress: not loaded: {reason}"));
            ERR
        }
    }
}

fn start(context: Context, arguments: c_int) -> Result<(), String> {
    // SAFETY: the module is being loaded, and the name lives as long as the program.
    unsafe {
        if (api().IsModuleNameBusy)(c"leafpress".as_ptr()) != 0 {
            return Err("there is another module of this name".to_owned());
        }
        (api().SetModuleAttribs)(context.raw(), c"leafpress".as_ptr(), VERSION, INTERFACE);
    }
    if arguments != 0 {
        return Err(
            "it takes no arguments: its options are leafpress.codec and others, see CONFIG GET leafpress.*".to_owned(),
        );
    }
    removal::this_is_the_main_thread();
    removal::set_shortage_check(is_memory_short);
    let methods = datatype::Methods {
        load: load::load,
        save: save::save,
        rewrite: rewrite::rewrite,
        digest: digest::digest,
        memory: memory::memory,
        free_effort: memory::free_effort,
        begin_saving: dictionaries::begin_saving,
        end_saving: dictionaries::end_saving,
        load_before: dictionaries::load,
        copy: memory::copy,
    };
    if !datatype::register(context, c"leafpress", ENCODING, methods) {
        return Err("the server does not take the type: another module has it".to_owned());
    }
    commands::register(context)?;
    config::register(context)?;
    hooks::register(
        context,
        hooks::Hooks {
            flush: events::flush,
            flushed: events::flushed,
            swap: events::swap,
            aside: events::aside,
            moved: events::moved,
            forked: upkeep::forked,
            gone: filter::forget,
            importing: filter::confirm_import,
            saved: dictionaries::end_saving,
            loaded: dictionaries::end_loading,
            tick: upkeep::tick,
            info: info::fill,
        },
    )?;
    // SAFETY: the module is being loaded; servers ignore options that they do not know.
    unsafe {
        (api().SetModuleOptions)(
            context.raw(),
            OPTION_HANDLE_IO_ERRORS
                | OPTION_NO_IMPLICIT_SIGNAL
                | OPTION_HANDLE_REPL_ASYNC_LOAD
                | OPTION_HANDLE_ATOMIC_SLOT_MIGRATION,
        );
    }
    Ok(())
}
