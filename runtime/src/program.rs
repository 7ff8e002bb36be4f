//! Loaded programs.

use std::rc::Rc;

use eerie_sys::runtime as iree;

use crate::device::{Device, create};
use crate::error::{Error, Status, check};
use crate::ffi::{Ref, host_allocator, text_of, view};
use crate::runtime::{Shared, Target};
use crate::{CallFrame, Vmfb};

/// A loaded program: a module with one function, `main`, that takes and returns tensors.
///
/// Cloning is cheap and shares the program. Its state (constants, memoised command buffers) is shared by all frames
/// that call it.
#[derive(Clone)]
pub struct Program {
    pub(crate) loaded: Rc<Loaded>,
}

/// Fields are dropped in order: the context first, since it uses the bytes and the device.
pub(crate) struct Loaded {
    pub(crate) context: Ref<iree::iree_vm_context_t>,
    /// Points into the module, which the context holds.
    pub(crate) main: iree::iree_vm_function_t,
    pub(crate) argument_count: usize,
    pub(crate) result_count: usize,
    pub(crate) target: Target,
    vmfb: Vmfb,
    pub(crate) shared: Rc<Shared>,
}

impl Program {
    pub(crate) fn load(device: &Device, vmfb: &Vmfb) -> Result<Self, Error> {
        let (target, shared) = (device.target, Rc::clone(&device.shared));
        let failed = |status| Error::Load { target, status };
        let _alone = shared.process.changing();
        let instance = shared.process.instance();
        let bytes = vmfb.bytes();
        // SAFETY: the instance lives for ever, and the bytes as long as `Loaded`, which drops the context, and with it
        // the module, before them. The null allocator leaves their deallocation to us.
        let module: Ref<iree::iree_vm_module_t> = unsafe {
            create(|out| {
                iree::iree_vm_bytecode_module_create(
                    instance,
                    iree::iree_vm_bytecode_module_flags_e_IREE_VM_BYTECODE_MODULE_FLAG_NONE,
                    iree::iree_const_byte_span_t { data: bytes.as_ptr(), data_length: bytes.len() },
                    iree::iree_allocator_t { self_: std::ptr::null_mut(), ctl: None },
                    host_allocator(),
                    out,
                )
            })
        }
        .map_err(failed)?;

        let (main, argument_count, result_count) = entry_of(&module)?;

        let mut modules = [device.backend.module.as_ptr(), module.as_ptr()];
        // SAFETY: all modules are live, and the context keeps its own references and copies the array.
        let context = unsafe {
            create(|out| {
                iree::iree_vm_context_create_with_modules(
                    instance,
                    iree::iree_vm_context_flag_bits_t_IREE_VM_CONTEXT_FLAG_NONE,
                    modules.len(),
                    modules.as_mut_ptr(),
                    host_allocator(),
                    out,
                )
            })
        }
        .map_err(failed)?;
        let vmfb = vmfb.clone();
        let loaded = Loaded { context, main, argument_count, result_count, target, vmfb, shared };
        Ok(Self { loaded: Rc::new(loaded) })
    }

    /// Number of `main`'s arguments.
    pub fn argument_count(&self) -> usize {
        self.loaded.argument_count
    }

    /// Number of `main`'s results.
    pub fn result_count(&self) -> usize {
        self.loaded.result_count
    }

    /// The device it was loaded on.
    pub fn target(&self) -> Target {
        self.loaded.target
    }

    /// A frame for calls: argument and result lists, allocated once and reused by each call.
    pub fn call_frame(&self) -> Result<CallFrame, Error> {
        CallFrame::new(self)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("target", &self.loaded.target)
            .field("arguments", &self.loaded.argument_count)
            .field("results", &self.loaded.result_count)
            .field("vmfb", &self.loaded.vmfb)
            .finish()
    }
}

/// Finds `main` and counts its arguments and results.
fn entry_of(module: &Ref<iree::iree_vm_module_t>) -> Result<(iree::iree_vm_function_t, usize, usize), Error> {
    let not_usable = |status: Status| Error::Entry { reason: status.to_string() };
    // SAFETY: the module is live; out pointers are to locals; the strings of a signature lie in the module.
    unsafe {
        let mut main = std::mem::zeroed::<iree::iree_vm_function_t>();
        check(iree::iree_vm_module_lookup_function_by_name(
            module.as_ptr(),
            iree::iree_vm_function_linkage_e_IREE_VM_FUNCTION_LINKAGE_EXPORT,
            view("main"),
            &raw mut main,
        ))
        .map_err(not_usable)?;
        let signature = iree::iree_vm_function_signature(&raw const main);
        let (mut arguments, mut results) = (view(""), view(""));
        check(iree::iree_vm_function_call_get_cconv_fragments(
            &raw const signature,
            &raw mut arguments,
            &raw mut results,
        ))
        .map_err(not_usable)?;
        Ok((main, count_tensors(&text_of(arguments))?, count_tensors(&text_of(results))?))
    }
}

/// Number of values on one side of a VM calling convention: `r` is a reference, all others are plain numbers.
fn count_tensors(convention: &str) -> Result<usize, Error> {
    match convention.chars().find(|&kind| kind != 'r' && kind != 'v') {
        None => Ok(convention.chars().filter(|&kind| kind == 'r').count()),
        Some(kind) => {
            Err(Error::Entry { reason: format!("it passes a value of VM type `{kind}`, not a tensor") })
        }
    }
}
