//! Asking for memory before it is needed.

/// Brings the cache line of `value` closer. A hint: it changes speed, never results.
#[inline]
#[allow(unsafe_code, reason = "the only way to reach the instruction; see SAFETY")]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing architecturally and faults on no address, and this one is
    // valid.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
