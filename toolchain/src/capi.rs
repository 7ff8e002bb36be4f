//! Safe wrapper of the compiler's C API: one library, initialised once, one session for each program.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use eerie_sys::compiler::{
    IreeCompiler, iree_compiler_diagnostic_severity_t as RawSeverity,
    iree_compiler_diagnostic_severity_t_IREE_COMPILER_DIAGNOSTIC_SEVERITY_ERROR as ERROR,
    iree_compiler_diagnostic_severity_t_IREE_COMPILER_DIAGNOSTIC_SEVERITY_REMARK as REMARK,
    iree_compiler_diagnostic_severity_t_IREE_COMPILER_DIAGNOSTIC_SEVERITY_WARNING as WARNING,
    iree_compiler_error_t as RawError, iree_compiler_pipeline_t_IREE_COMPILER_PIPELINE_STD as PIPELINE,
    iree_compiler_session_t,
};

use crate::message::{Answer, Diagnostic, Request, Severity, Verification};

/// The name of programs in diagnostics; fixed, so that equal programs compile to equal bytes.
const PROGRAM_NAME: &CStr = c"sheaf.mlir";

/// Parts of a compilation: the phase that each starts after, its last phase, and whether the intermediate representation is verified
/// after each of its passes. The division makes no difference to the result.
type Phases = [(&'static CStr, &'static CStr, bool)];

/// All passes are followed by verification.
const VERIFIED: &Phases = &[(c"start", c"end", true)];

/// The passes of code generation are followed by verification.
const CODE_GENERATION_VERIFIED: &Phases = &[
    (c"start", c"executable-sources", false),
    (c"executable-sources", c"executable-targets", true),
    (c"executable-targets", c"end", false),
];

/// Opens the library at `path`.
///
/// # Safety
///
/// As [`IreeCompiler::open`].
unsafe fn open(path: &Path) -> Result<IreeCompiler, String> {
    // The second opening alone would bind the library to the C library's allocator (`RTLD_DEEPBIND`), and what is allocated by the
    // program's own would be freed by the other. Symbols are sought in the order of the first opening; where that fails, the second
    // says why.
    #[cfg(target_os = "linux")]
    // SAFETY: by the contract of this function.
    let _first = unsafe { libloading::Library::new(path) };
    // SAFETY: by the contract of this function.
    unsafe { IreeCompiler::open(path) }.map_err(|error| error.to_string())
}

/// The compiler, loaded and initialised.
pub(crate) struct Library {
    /// Never unloaded: the compiler leaves threads and exit handlers behind.
    api: ManuallyDrop<IreeCompiler>,
}

impl Library {
    /// Loads the shared library at `path` and initialises the compiler in it. A process can do this once; the
    /// compiler cannot be initialised again after the library was dropped.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        // SAFETY: the path is that of an installed compiler, whose wheel was verified against the pinned digest. Its
        // initialisers run in a worker process that does nothing else. The version of the interface is checked.
        let api = unsafe { open(path) }?;
        // SAFETY: balanced by the shutdown when this is dropped; nothing was called before.
        unsafe { api.ireeCompilerGlobalInitialize() };
        Ok(Self { api: ManuallyDrop::new(api) })
    }

    /// The version of the C interface: major in the upper 16 bits, minor in the lower.
    pub(crate) fn api_version(&self) -> u32 {
        // SAFETY: has no preconditions.
        unsafe { self.api.ireeCompilerGetAPIVersion() }.cast_unsigned()
    }

    /// The tag of the build, empty for development builds.
    pub(crate) fn revision(&self) -> String {
        // SAFETY: the compiler is initialised, and keeps the text while it is.
        unsafe { text(self.api.ireeCompilerGetRevision()) }
    }

    /// Compiles one program in a session of its own.
    pub(crate) fn compile(&self, request: &Request) -> Answer {
        match self.try_compile(request) {
            Ok(answer) => answer,
            Err(cause) => Answer::Failed { cause },
        }
    }

    fn try_compile(&self, request: &Request) -> Result<Answer, String> {
        let api = &*self.api;
        let program =
            CString::new(request.program.as_str()).map_err(|error| format!("the program: {error}"))?;
        let flags = request.flags.iter().map(|flag| CString::new(flag.as_str()));
        let flags = flags.collect::<Result<Vec<_>, _>>().map_err(|error| format!("a flag: {error}"))?;
        // Declared before the objects that may still report to it while they are destroyed.
        let diagnostics: Mutex<Vec<Diagnostic>> = Mutex::default();

        // SAFETY: the compiler is initialised. The owner destroys the session, after everything made from it, since
        // it is declared first.
        let session = Owned::new(
            api,
            unsafe { api.ireeCompilerSessionCreate() },
            IreeCompiler::ireeCompilerSessionDestroy,
        );
        let pointers: Vec<_> = flags.iter().map(|flag| flag.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).map_err(|error| error.to_string())?;
        // SAFETY: the session lives, and `pointers` has `count` zero-terminated texts, which are copied.
        self.check(unsafe { api.ireeCompilerSessionSetFlags(session.raw, count, pointers.as_ptr()) })?;

        let receiver = ptr::from_ref(&diagnostics).cast_mut().cast();
        let phases = match request.verification {
            Verification::CodeGeneration => CODE_GENERATION_VERIFIED,
            Verification::AllPasses => VERIFIED,
        };
        if let Some(bytes) = self.run(session.raw, &program, receiver, phases)? {
            return Ok(Answer::Compiled(bytes));
        }
        let said = std::mem::take(&mut *diagnostics.lock().unwrap_or_else(PoisonError::into_inner));
        if said.is_empty() {
            return Err("the compiler gave up without a reason".to_owned());
        }
        Ok(Answer::Rejected(said))
    }

    /// Runs the compiler on a text. `None` if it is rejected; then `receiver`, the diagnostics, has the reasons.
    fn run(
        &self,
        session: *mut iree_compiler_session_t,
        program: &CStr,
        receiver: *mut c_void,
        phases: &Phases,
    ) -> Result<Option<Vec<u8>>, String> {
        let api = &*self.api;
        let mut raw = ptr::null_mut();
        let bytes = program.to_bytes_with_nul();
        // SAFETY: the session lives. The text, whose length counts its terminating zero, lives as long as the source.
        self.check(unsafe {
            let (name, text) = (PROGRAM_NAME.as_ptr(), bytes.as_ptr().cast());
            api.ireeCompilerSourceWrapBuffer(session, name, text, bytes.len(), true, &raw mut raw)
        })?;
        let source = Owned::new(api, raw, IreeCompiler::ireeCompilerSourceDestroy);

        // SAFETY: the session lives, and longer than the invocation.
        let invocation = unsafe { api.ireeCompilerInvocationCreate(session) };
        let invocation = Owned::new(api, invocation, IreeCompiler::ireeCompilerInvocationDestroy);
        // SAFETY: the invocation lives; `collect` takes the receiver for what it is, and that lives longer.
        unsafe {
            api.ireeCompilerInvocationEnableCallbackDiagnostics(invocation.raw, 0, Some(collect), receiver);
        }
        // SAFETY: invocation and source live and belong to one session; the source is parsed once.
        let parsed = unsafe { api.ireeCompilerInvocationParseSource(invocation.raw, source.raw) };
        // SAFETY: the invocation lives and has parsed its source. The texts end with zeros, and are copied.
        let run = |(from, to, verify): &(&CStr, &CStr, bool)| unsafe {
            api.ireeCompilerInvocationSetVerifyIR(invocation.raw, *verify);
            api.ireeCompilerInvocationSetCompileFromPhase(invocation.raw, from.as_ptr());
            api.ireeCompilerInvocationSetCompileToPhase(invocation.raw, to.as_ptr());
            api.ireeCompilerInvocationPipeline(invocation.raw, PIPELINE)
        };
        if !(parsed && phases.iter().all(run)) {
            return Ok(None);
        }

        let mut raw = ptr::null_mut();
        // SAFETY: the place for the result is valid.
        self.check(unsafe { api.ireeCompilerOutputOpenMembuffer(&raw mut raw) })?;
        let output = Owned::new(api, raw, IreeCompiler::ireeCompilerOutputDestroy);
        // SAFETY: invocation and output live, and the pipeline ran to its end.
        self.check(unsafe { api.ireeCompilerInvocationOutputVMBytecode(invocation.raw, output.raw) })?;
        let (mut contents, mut size) = (ptr::null_mut(), 0);
        // SAFETY: the output lives and is in memory; the places for the results are valid.
        self.check(unsafe { api.ireeCompilerOutputMapMemory(output.raw, &raw mut contents, &raw mut size) })?;
        let size = usize::try_from(size).map_err(|error| error.to_string())?;
        if contents.is_null() || size == 0 {
            return Err("the compiler gave an empty program".to_owned());
        }
        // SAFETY: the output keeps `size` bytes there until it is destroyed.
        let bytes = unsafe { std::slice::from_raw_parts(contents.cast::<u8>(), size) };
        Ok(Some(bytes.to_vec()))
    }

    /// Turns an error of the interface into its text.
    fn check(&self, error: *mut RawError) -> Result<(), String> {
        if error.is_null() {
            return Ok(());
        }
        let error = Owned::new(&self.api, error, IreeCompiler::ireeCompilerErrorDestroy);
        // SAFETY: the error lives, and keeps its text while it does.
        Err(unsafe { text(self.api.ireeCompilerErrorGetMessage(error.raw)) })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: balances the initialisation; every session has ended, since each lives in one call.
        unsafe { self.api.ireeCompilerGlobalShutdown() };
    }
}

/// An object of the compiler that is destroyed at the end of its scope.
struct Owned<'a, T> {
    api: &'a IreeCompiler,
    raw: *mut T,
    destroy: unsafe fn(&IreeCompiler, *mut T),
}

impl<'a, T> Owned<'a, T> {
    /// Takes ownership of an object that `destroy` destroys.
    fn new(api: &'a IreeCompiler, raw: *mut T, destroy: unsafe fn(&IreeCompiler, *mut T)) -> Self {
        Self { api, raw, destroy }
    }
}

impl<T> Drop for Owned<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the caller of `new` passed the function that belongs to the object, and it is destroyed nowhere else.
        unsafe { (self.destroy)(self.api, self.raw) };
    }
}

/// Receives one diagnostic, on any thread.
unsafe extern "C" fn collect(
    severity: RawSeverity,
    message: *const c_char,
    size: usize,
    receiver: *mut c_void,
) {
    // SAFETY: the compiler passes on the receiver it was given, which outlives the invocation.
    let diagnostics = unsafe { &*receiver.cast::<Mutex<Vec<Diagnostic>>>() };
    let bytes = if message.is_null() {
        &[]
    } else {
        // SAFETY: the message has that size for the duration of the call.
        unsafe { std::slice::from_raw_parts(message.cast::<u8>(), size) }
    };
    let severity = match severity {
        ERROR => Severity::Error,
        WARNING => Severity::Warning,
        REMARK => Severity::Remark,
        _ => Severity::Note,
    };
    let message = String::from_utf8_lossy(bytes).into_owned();
    diagnostics.lock().unwrap_or_else(PoisonError::into_inner).push(Diagnostic { severity, message });
}

/// A copy of a text of the compiler.
///
/// # Safety
///
/// The pointer is null or points to a zero-terminated text.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller promises a zero-terminated text.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
