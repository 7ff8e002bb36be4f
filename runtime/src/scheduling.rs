//! Scheduling of a thread that waits for a pool of workers.
//!
//! IREE's wait ends in a busy loop, until the worker that wakes the thread has returned from the callback in which it does so. Linux may
//! let a woken thread run in place of the one that woke it: then the loop lasts for a turn of the scheduler, in which nothing is done. On two
//! cores with two workers that was a fifth of the time in which a GPT-2 generates tokens. A thread with the policy `SCHED_BATCH`
//! takes nobody's place when it wakes (`man 7 sched`).

/// The calling thread takes nobody's place when it wakes, until this is dropped. Threads with another policy than the usual one keep it.
pub(crate) struct Yielding {
    #[cfg(target_os = "linux")]
    changed: bool,
}

#[cfg(target_os = "linux")]
impl Yielding {
    pub(crate) fn begin() -> Self {
        Self { changed: policy() == Some(libc::SCHED_OTHER) && set_policy(libc::SCHED_BATCH) }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Yielding {
    fn drop(&mut self) {
        if self.changed {
            set_policy(libc::SCHED_OTHER);
        }
    }
}

/// Policy of the calling thread; `None` if it may not be asked for.
#[cfg(target_os = "linux")]
fn policy() -> Option<std::ffi::c_int> {
    let (mut policy, mut parameters) = (0, no_parameters());
    // SAFETY: the thread is the calling one, and both places live for the call.
    let result =
        unsafe { libc::pthread_getschedparam(libc::pthread_self(), &raw mut policy, &raw mut parameters) };
    (result == 0).then_some(policy)
}

/// Sets the policy of the calling thread; false if that is not allowed, which changes nothing but the time of a wait.
///
/// By the calls for threads: `sched_setscheduler` of musl only says that it is not there.
#[cfg(target_os = "linux")]
fn set_policy(policy: std::ffi::c_int) -> bool {
    let parameters = no_parameters();
    // SAFETY: the thread is the calling one, and the struct lives for the call; both policies have the priority 0 and keep the thread's
    // nice value.
    unsafe { libc::pthread_setschedparam(libc::pthread_self(), policy, &raw const parameters) == 0 }
}

/// Priority 0; with musl the struct has more fields, which are for another policy.
#[cfg(target_os = "linux")]
fn no_parameters() -> libc::sched_param {
    // SAFETY: all fields are integers or structs of integers, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

#[cfg(not(target_os = "linux"))]
impl Yielding {
    pub(crate) fn begin() -> Self {
        Self {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_as_before_afterwards() {
        // A sandbox may allow no other policy.
        if policy() != Some(libc::SCHED_OTHER) || !set_policy(libc::SCHED_BATCH) {
            eprintln!("skipped: this thread's policy may not be changed");
            return;
        }
        set_policy(libc::SCHED_OTHER);
        let yielding = Yielding::begin();
        assert_eq!(policy(), Some(libc::SCHED_BATCH));
        let within = Yielding::begin();
        drop(within);
        assert_eq!(policy(), Some(libc::SCHED_BATCH), "a thread with another policy keeps it");
        drop(yielding);
        assert_eq!(policy(), Some(libc::SCHED_OTHER));
    }
}
