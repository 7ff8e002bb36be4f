//! Calls.

use std::rc::Rc;

use eerie_sys::runtime as iree;

use crate::device::create;
use crate::error::{Error, Status, check};
use crate::ffi::{Ref, host_allocator};
use crate::program::Loaded;
use crate::scheduling::Yielding;
use crate::{Buffer, Program, Target};

/// State of calls of a program, allocated once: its argument list and its result list.
///
/// Arguments stay set from call to call, so a loop sets only those that change. The frame keeps set arguments and
/// results that have not been taken alive; [`CallFrame::clear`] releases them.
pub struct CallFrame {
    arguments: Ref<iree::iree_vm_list_t>,
    results: Ref<iree::iree_vm_list_t>,
    is_set: Vec<bool>,
    /// Arguments that the next call consumes; held until then, so that the suballocations stay recorded.
    donated: Vec<(usize, Buffer)>,
    /// Results of the last call that are still in the list.
    result_count: usize,
    program: Rc<Loaded>,
}

impl CallFrame {
    pub(crate) fn new(program: &Program) -> Result<Self, Error> {
        let program = Rc::clone(&program.loaded);
        let failed = |status| Error::Call { target: program.target, status };
        let arguments = list(program.argument_count).map_err(failed)?;
        // SAFETY: the list is live; new elements are null.
        unsafe { check(iree::iree_vm_list_resize(arguments.as_ptr(), program.argument_count)) }
            .map_err(failed)?;
        let results = list(program.result_count).map_err(failed)?;
        Ok(Self {
            arguments,
            results,
            is_set: vec![false; program.argument_count],
            donated: Vec::new(),
            result_count: 0,
            program,
        })
    }

    /// Sets argument `index`, counted from 0, for all later calls.
    ///
    /// Element type and shape are checked by the program itself when it is called.
    pub fn set(&mut self, index: usize, buffer: &Buffer) -> Result<(), Error> {
        if index >= self.is_set.len() {
            return Err(Error::NoSuchArgument { index, count: self.is_set.len() });
        }
        if !buffer.is_of(&self.program.shared) {
            return Err(Error::ForeignBuffer { index });
        }
        // SAFETY: list and view are live; the list takes a reference of its own to the view.
        unsafe {
            check(iree::iree_vm_list_set_buffer_view_retain(
                self.arguments.as_ptr(),
                index,
                buffer.view().as_ptr(),
            ))
        }
        .map_err(|status| self.failed(status))?;
        self.is_set[index] = true;
        Ok(())
    }

    /// Sets argument `index` for one call, which consumes it: the program may write a result to its memory.
    ///
    /// The buffer must hold the only reference to its memory ([`Buffer::is_unshared`]).
    pub fn donate(&mut self, index: usize, buffer: Buffer) -> Result<(), Error> {
        if !buffer.is_unshared() {
            return Err(Error::SharedBuffer { index });
        }
        self.set(index, &buffer)?;
        self.donated.push((index, buffer));
        Ok(())
    }

    /// Unsets argument `index`; it must be set again before the next call.
    pub fn unset(&mut self, index: usize) {
        if let Some(is_set) = self.is_set.get_mut(index) {
            // SAFETY: the list is live and has this index; null stands for no buffer view and cannot fail.
            let status = unsafe {
                iree::iree_vm_list_set_buffer_view_retain(
                    self.arguments.as_ptr(),
                    index,
                    std::ptr::null_mut(),
                )
            };
            debug_assert!(status.is_null());
            *is_set = false;
        }
    }

    /// Calls the program and waits for it. All arguments must have been set.
    ///
    /// Untaken results of the previous call are dropped.
    pub fn invoke(&mut self) -> Result<(), Error> {
        if let Some(index) = self.is_set.iter().position(|is_set| !is_set) {
            return Err(Error::MissingArgument { index, count: self.is_set.len() });
        }
        self.result_count = 0;
        let waits = matches!(self.program.target, Target::LocalTask(_)).then(Yielding::begin);
        // SAFETY: context, function and lists are live and belong together; the lists are not used elsewhere during the
        // call; there is no policy, for which null stands.
        let status = unsafe {
            check(iree::iree_vm_invoke(
                self.program.context.as_ptr(),
                self.program.main,
                iree::iree_vm_invocation_flag_bits_t_IREE_VM_INVOCATION_FLAG_NONE,
                std::ptr::null(),
                self.arguments.as_ptr(),
                self.results.as_ptr(),
                host_allocator(),
            ))
        };
        drop(waits);
        while let Some((index, _)) = self.donated.pop() {
            self.unset(index);
        }
        if let Err(status) = status {
            // A failed call leaves the list as the previous call filled it.
            self.drop_results();
            return Err(self.failed(status));
        }
        self.result_count = self.program.result_count;
        Ok(())
    }

    /// Result `index`, counted from 0, of the last call.
    pub fn result(&self, index: usize) -> Result<Buffer, Error> {
        if index >= self.result_count {
            return Err(Error::NoSuchResult { index, count: self.result_count });
        }
        // SAFETY: the list is live and holds that many results; returns an owned reference, or null if the result is
        // not a buffer view.
        let view = unsafe { iree::iree_vm_list_get_buffer_view_retain(self.results.as_ptr(), index) };
        if view.is_null() {
            return Err(Error::Entry { reason: format!("result {index} is not a tensor") });
        }
        // SAFETY: as above.
        let view = unsafe { Ref::adopt(view) };
        Buffer::from_view(view, self.program.target, &self.program.shared)
            .map_err(|cause| Error::ResultType { index, cause })
    }

    /// All results of the last call; the frame keeps none.
    pub fn take_results(&mut self) -> Result<Vec<Buffer>, Error> {
        // A collected `Result` would grow the vector step by step.
        let mut results = Vec::with_capacity(self.result_count);
        self.take_each(|result| results.push(result))?;
        Ok(results)
    }

    /// Gives all results of the last call to `take`, in order; the frame keeps none. After an error, those before it were given.
    pub fn take_each(&mut self, mut take: impl FnMut(Buffer)) -> Result<(), Error> {
        let taken = (0..self.result_count).try_for_each(|index| {
            take(self.result(index)?);
            Ok(())
        });
        self.drop_results();
        taken
    }

    /// Releases all arguments and results. The frame can be used again once the arguments are set again.
    pub fn clear(&mut self) {
        self.drop_results();
        self.donated.clear();
        (0..self.is_set.len()).for_each(|index| self.unset(index));
    }

    fn drop_results(&mut self) {
        self.result_count = 0;
        // SAFETY: the list is live; what it held is released.
        unsafe { iree::iree_vm_list_clear(self.results.as_ptr()) };
    }

    fn failed(&self, status: Status) -> Error {
        Error::Call { target: self.program.target, status }
    }
}

impl std::fmt::Debug for CallFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallFrame")
            .field("is_set", &self.is_set)
            .field("result_count", &self.result_count)
            .finish_non_exhaustive()
    }
}

/// A list of buffer views.
fn list(capacity: usize) -> Result<Ref<iree::iree_vm_list_t>, Status> {
    let mut element = iree::iree_vm_type_def_t::default();
    // SAFETY: the id was written when types were registered, before any program could exist, and never again.
    let buffer_view = unsafe { iree::iree_hal_buffer_view_registration };
    // A type definition leaves out the three lowest bits of the id, which are tags.
    element.set_ref_type_bits((buffer_view >> 3) as _);
    // SAFETY: the type is registered and the out pointer is the constructor's.
    unsafe { create(|out| iree::iree_vm_list_create(element, capacity, host_allocator(), out)) }
}
