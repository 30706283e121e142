//! How a static binary finds the addresses of names.

/// In a static binary: names are looked up in `/etc/hosts` and by DNS, whatever `/etc/nsswitch.conf` says. To be called
/// before there are threads.
///
/// glibc has these two built in. Other modules (`resolve`, `mymachines`, `sss`, …) are shared libraries; a static binary
/// that loads the ones of another glibc may crash. A dynamic binary goes by `/etc/nsswitch.conf` as everybody does.
pub fn resolve_names_by_files_and_dns() {
    #[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
    {
        use std::ffi::{c_char, c_int};

        unsafe extern "C" {
            /// Of `nss.h` in glibc.
            fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
        }
        // SAFETY: both are constant strings with a nul at their end, and glibc copies what it needs.
        // It fails only for a name of a database that does not exist.
        let _ = unsafe { __nss_configure_lookup(c"hosts".as_ptr(), c"files dns".as_ptr()) };
    }
}
