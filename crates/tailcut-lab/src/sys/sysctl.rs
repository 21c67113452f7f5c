//! Sysctls of a network namespace.

use std::path::Path;
use std::{fs, io};

fn sysctl_file(name: &str) -> String {
    format!("/proc/sys/net/{name}")
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Sets sysctls below `net.` in this process's namespace, disables IPv6, and reads all of them
/// back.
///
/// # Errors
/// The first sysctl that cannot be set or has another value when read back.
pub fn set_sysctls(sysctls: &[(&'static str, String)]) -> io::Result<Vec<(String, String)>> {
    let mut done = vec![];
    let no_ipv6 = ("ipv6/conf/all/disable_ipv6", "1".to_owned());
    for (name, value) in sysctls.iter().chain([&no_ipv6]) {
        let file = sysctl_file(name);
        if *name == no_ipv6.0 && !Path::new(&file).exists() {
            continue; // a kernel without IPv6 sends none
        }
        let said = |error: io::Error| io::Error::other(format!("sysctl net/{name}: {error}"));
        fs::write(&file, value).map_err(said)?;
        let found = words(&fs::read_to_string(&file).map_err(said)?);
        if found != words(value) {
            let message = format!("sysctl net/{name} is {found:?}, not {value:?}");
            return Err(io::Error::other(message));
        }
        done.push(((*name).to_owned(), found));
    }
    Ok(done)
}
