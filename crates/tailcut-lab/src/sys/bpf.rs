//! BPF programs. libbpf loads compiled objects; iproute2 depends on it, and it is opened on demand.
//! Everything else uses the system call (`linux/bpf.h`). Nothing is pinned: an object exists while
//! some process holds its descriptors.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null};

use super::checked;

const LIBRARY: &CStr = c"libbpf.so.1";
/// Commands, types of programs and points of attachment, by the kernel's numbers.
const MAP_LOOKUP: c_int = 1;
const MAP_UPDATE: c_int = 2;
const MAP_DELETE: c_int = 3;
const PROGRAM_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const SCHED_CLS: u32 = 3;
const STRUCT_OPS: u32 = 44;
const TCX_INGRESS: u32 = 46;
/// `BPF_F_LINK`: a link registers the map of operations, for as long as the link exists.
const BY_LINK: u32 = 1 << 13;

type Handle = *mut c_void;

/// The functions of libbpf that the lab calls.
#[derive(Clone, Copy)]
struct Library {
    open: unsafe extern "C" fn(*const c_void, usize, *const c_void) -> Handle,
    load: unsafe extern "C" fn(Handle) -> c_int,
    close: unsafe extern "C" fn(Handle),
    find_map: unsafe extern "C" fn(Handle, *const c_char) -> Handle,
    find_program: unsafe extern "C" fn(Handle, *const c_char) -> Handle,
    map_fd: unsafe extern "C" fn(Handle) -> c_int,
    key_size: unsafe extern "C" fn(Handle) -> u32,
    value_size: unsafe extern "C" fn(Handle) -> u32,
    set_entries: unsafe extern "C" fn(Handle, u32) -> c_int,
    set_flags: unsafe extern "C" fn(Handle, u32) -> c_int,
    program_fd: unsafe extern "C" fn(Handle) -> c_int,
    attach: unsafe extern "C" fn(Handle) -> Handle,
    link_fd: unsafe extern "C" fn(Handle) -> c_int,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
    version: unsafe extern "C" fn() -> *const c_char,
}

impl Library {
    fn open() -> io::Result<Library> {
        // SAFETY: the name ends in a zero. The library stays open until this process exits.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            let name = LIBRARY.to_string_lossy();
            let message = format!("there is no {name}: install the package libbpf1");
            return Err(io::Error::other(message));
        }
        // SAFETY: the fields have the types of the functions in version 1 of the library's
        // interface. Without a print function, libbpf prints nothing.
        unsafe {
            let quiet: unsafe extern "C" fn(*const c_void) -> *const c_void =
                function(library, c"libbpf_set_print")?;
            quiet(null());
            Ok(Library {
                open: function(library, c"bpf_object__open_mem")?,
                load: function(library, c"bpf_object__load")?,
                close: function(library, c"bpf_object__close")?,
                find_map: function(library, c"bpf_object__find_map_by_name")?,
                find_program: function(library, c"bpf_object__find_program_by_name")?,
                map_fd: function(library, c"bpf_map__fd")?,
                key_size: function(library, c"bpf_map__key_size")?,
                value_size: function(library, c"bpf_map__value_size")?,
                set_entries: function(library, c"bpf_map__set_max_entries")?,
                set_flags: function(library, c"bpf_map__set_map_flags")?,
                program_fd: function(library, c"bpf_program__fd")?,
                attach: function(library, c"bpf_map__attach_struct_ops")?,
                link_fd: function(library, c"bpf_link__fd")?,
                destroy: function(library, c"bpf_link__destroy")?,
                version: function(library, c"libbpf_version_string")?,
            })
        }
    }
}

/// Looks up a function of an open library.
///
/// # Safety
///
/// `F` must be the type of a pointer to the function.
unsafe fn function<F: Copy>(library: Handle, name: &CStr) -> io::Result<F> {
    unsafe {
        const { assert!(size_of::<F>() == size_of::<Handle>()) };
        let found = libc::dlsym(library, name.as_ptr());
        match found.is_null() {
            true => {
                let name = name.to_string_lossy();
                Err(io::Error::other(format!("libbpf has no function {name}")))
            }
            false => Ok(std::mem::transmute_copy(&found)),
        }
    }
}

/// An object loaded into the kernel: its programs and maps exist as long as this value.
pub struct BpfObject {
    library: Library,
    handle: NonNull<c_void>,
}

impl BpfObject {
    /// Loads a compiled object into the kernel. `entries` sets the sizes of maps; `operations`
    /// names the map of operations to [register](Self::register), if any.
    ///
    /// # Errors
    /// libbpf is missing, the bytes are not a BPF object, or the kernel refuses it.
    pub fn load(
        bytes: &[u8],
        entries: &[(&str, u32)],
        operations: Option<&str>,
    ) -> io::Result<BpfObject> {
        let library = Library::open()?;
        // SAFETY: the bytes outlive the call, which copies them, and there are no options.
        let handle = unsafe { (library.open)(bytes.as_ptr().cast(), bytes.len(), null()) };
        let handle = NonNull::new(handle).ok_or_else(io::Error::last_os_error)?;
        let object = BpfObject { library, handle };
        for (name, count) in entries {
            let map = object.map_handle(name)?;
            // SAFETY: the map is this object's, which is not loaded yet.
            library_result(unsafe { (library.set_entries)(map, *count) })?;
        }
        if let Some(name) = operations {
            let map = object.map_handle(name)?;
            // SAFETY: likewise.
            library_result(unsafe { (library.set_flags)(map, BY_LINK) })?;
        }
        // SAFETY: the object is open.
        library_result(unsafe { (library.load)(handle.as_ptr()) })
            .map_err(|error| io::Error::other(format!("the kernel refuses it: {error}")))?;
        Ok(object)
    }

    fn map_handle(&self, name: &str) -> io::Result<Handle> {
        let text = CString::new(name)?;
        // SAFETY: the object is open, and the text ends in a zero.
        let found = unsafe { (self.library.find_map)(self.handle.as_ptr(), text.as_ptr()) };
        match found.is_null() {
            true => Err(missing(name)),
            false => Ok(found),
        }
    }

    /// Returns a map of the object.
    ///
    /// # Errors
    /// The object has no map of that name.
    pub fn map(&self, name: &'static str) -> io::Result<BpfMap<'_>> {
        let handle = self.map_handle(name)?;
        let Library { map_fd, key_size, value_size, .. } = self.library;
        // SAFETY: the map is this object's, which is loaded.
        let (fd, key, value) = unsafe { (map_fd(handle), key_size(handle), value_size(handle)) };
        Ok(BpfMap { name, fd, key: key as usize, value: value as usize, of: PhantomData })
    }

    /// Attaches a program of the object to the ingress of an interface in this process's network
    /// namespace. It stays attached while the returned descriptor is open. This needs no privilege
    /// outside the namespace.
    ///
    /// # Errors
    /// The object has no program of that name, or the kernel's error.
    pub fn attach(&self, name: &str, interface: u32) -> io::Result<OwnedFd> {
        let text = CString::new(name)?;
        // SAFETY: the object is open, and the text ends in a zero.
        let found = unsafe { (self.library.find_program)(self.handle.as_ptr(), text.as_ptr()) };
        if found.is_null() {
            return Err(missing(name));
        }
        // SAFETY: the program is this object's, which is loaded.
        let program = unsafe { (self.library.program_fd)(found) };
        link(program, interface, TCX_INGRESS)
    }

    /// Registers a map of operations; it stays registered while any process holds the returned
    /// descriptor.
    ///
    /// # Errors
    /// The object has no map of that name, or the kernel's error.
    pub fn register(&self, name: &'static str) -> io::Result<OwnedFd> {
        let map = self.map_handle(name)?;
        // SAFETY: the map is this object's, which is loaded.
        let link_of_library = unsafe { (self.library.attach)(map) };
        if link_of_library.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the library owns the link, which is not destroyed yet.
        let (map, made) =
            unsafe { ((self.library.map_fd)(map), (self.library.link_fd)(link_of_library)) };
        let kept = match made == map {
            // Before version 1.2 libbpf fills the map and creates no link.
            true => link(map as RawFd, 0, STRUCT_OPS),
            false => super::process::duplicate_descriptor(&made),
        };
        // SAFETY: likewise; the kernel's link has a descriptor of its own.
        unsafe { (self.library.destroy)(link_of_library) };
        kept
    }
}

impl Drop for BpfObject {
    fn drop(&mut self) {
        // SAFETY: the object is open, and nothing uses it any more.
        unsafe { (self.library.close)(self.handle.as_ptr()) };
    }
}

/// A map of a loaded object.
pub struct BpfMap<'a> {
    name: &'static str,
    fd: RawFd,
    key: usize,
    value: usize,
    /// The object that owns the descriptor.
    of: PhantomData<&'a BpfObject>,
}

impl BpfMap<'_> {
    fn fits(&self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        let fits = key.len() == self.key && value.is_none_or(|value| value.len() == self.value);
        match fits {
            true => Ok(()),
            false => Err(missing(self.name)),
        }
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// A size differs from the map's, or the kernel's error.
    pub fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.fits(key, Some(value))?;
        self.ask(MAP_UPDATE, key, value.as_ptr() as u64).map(drop)
    }

    /// Returns the value of a key, if the key is present.
    ///
    /// # Errors
    /// The key's size differs from the map's, or the kernel's error.
    pub fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.fits(key, None)?;
        let mut value = vec![0; self.value];
        let found = self.ask(MAP_LOOKUP, key, value.as_mut_ptr() as u64);
        unless_absent(found).map(|there| there.then_some(value))
    }

    /// Removes a key, if it is present.
    ///
    /// # Errors
    /// The key's size differs from the map's, or the kernel's error.
    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        self.fits(key, None)?;
        unless_absent(self.ask(MAP_DELETE, key, 0)).map(drop)
    }

    /// Calls the kernel with a key and a value of the map's sizes.
    fn ask(&self, command: c_int, key: &[u8], value: u64) -> io::Result<c_int> {
        bpf_call(command, &mut [words(self.fd as u32, 0), key.as_ptr() as u64, value, 0])
    }
}

fn unless_absent(answer: io::Result<c_int>) -> io::Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks whether libbpf can be opened.
///
/// # Errors
/// The name of the missing library or function.
pub fn check_library() -> io::Result<()> {
    Library::open().map(drop)
}

/// Returns the version of libbpf.
///
/// # Errors
/// The name of the missing library or function.
pub fn version() -> io::Result<String> {
    let library = Library::open()?;
    // SAFETY: the text is the library's own, never changes, and ends in a zero.
    let text = unsafe { CStr::from_ptr((library.version)()) };
    Ok(text.to_string_lossy().into_owned())
}

/// Checks whether this process may load programs, by loading the smallest valid one.
///
/// # Errors
/// The kernel's error.
pub fn check_may_load() -> io::Result<()> {
    // The program: return 0.
    const PROGRAM: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];
    let kind_and_length = words(SCHED_CLS, PROGRAM.len() as u32);
    let (program, licence) = (PROGRAM.as_ptr() as u64, c"GPL".as_ptr() as u64);
    // The first version of the kernel's attributes; the kernel takes omitted ones as zero.
    let made = bpf_call(PROGRAM_LOAD, &mut [kind_and_length, program, licence, 0, 0, 0])?;
    // SAFETY: the descriptor is new.
    drop(unsafe { OwnedFd::from_raw_fd(made) });
    Ok(())
}

fn link(of: RawFd, interface: u32, kind: u32) -> io::Result<OwnedFd> {
    let made = bpf_call(LINK_CREATE, &mut [words(of as u32, interface), words(kind, 0), 0, 0])?;
    // SAFETY: the descriptor is new.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// Packs two attributes of four bytes each.
fn words(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Performs the system call. Attributes beyond those of the command are zero, which every kernel
/// accepts.
fn bpf_call(command: c_int, attributes: &mut [u64]) -> io::Result<c_int> {
    let length = size_of_val(attributes);
    let at = attributes.as_mut_ptr();
    // SAFETY: the attributes and what they point to outlive the call, and have the sizes that the
    // command expects.
    checked(unsafe { libc::syscall(libc::SYS_bpf, command, at, length) } as c_int)
}

/// Converts a result of libbpf, which reports errors as negative numbers.
fn library_result(result: c_int) -> io::Result<()> {
    match result {
        0.. => Ok(()),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

fn missing(name: &str) -> io::Error {
    io::Error::other(format!(
        "the compiled BPF object does not match this version ({name}): run \
                              `make lab-bpf` again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_object_is_refused_or_the_missing_library_named() {
        let error = BpfObject::load(b"no object", &[], None).err().expect("it is none").to_string();
        assert_eq!(
            check_library().is_err(),
            error.contains("install the package libbpf1"),
            "{error}"
        );
    }

    #[test]
    fn two_words_are_packed_in_native_order() {
        assert_eq!(words(1, 2).to_ne_bytes()[..4], 1_u32.to_ne_bytes());
        assert_eq!(words(1, 2).to_ne_bytes()[4..], 2_u32.to_ne_bytes());
    }
}
