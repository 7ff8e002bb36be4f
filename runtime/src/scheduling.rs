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
        // SAFETY: the call reads the policy of the calling thread, for which 0 stands.
        let is_usual = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
        Self { changed: is_usual && set_policy(libc::SCHED_BATCH) }
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

/// Sets the policy of the calling thread; false if that is not allowed, which changes nothing but the time of a wait.
#[cfg(target_os = "linux")]
fn set_policy(policy: std::ffi::c_int) -> bool {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: the struct lives for the call; both policies have the priority 0 and keep the thread's nice value.
    unsafe { libc::sched_setscheduler(0, policy, &raw const priority) == 0 }
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

    fn policy() -> std::ffi::c_int {
        // SAFETY: the call reads the policy of the calling thread, for which 0 stands.
        unsafe { libc::sched_getscheduler(0) }
    }

    #[test]
    fn the_policy_is_as_before_afterwards() {
        // A sandbox may allow no other policy.
        if policy() != libc::SCHED_OTHER || !set_policy(libc::SCHED_BATCH) {
            eprintln!("skipped: this thread's policy may not be changed");
            return;
        }
        set_policy(libc::SCHED_OTHER);
        let yielding = Yielding::begin();
        assert_eq!(policy(), libc::SCHED_BATCH);
        let within = Yielding::begin();
        drop(within);
        assert_eq!(policy(), libc::SCHED_BATCH, "a thread with another policy keeps it");
        drop(yielding);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
