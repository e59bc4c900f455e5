//! Loading compiled code, and why it cannot be loaded.

use std::path::{Path, PathBuf};

use ebbtide_runtime::cache::{Cache, Found};
use libloading::Library;

use crate::compiler::Compiler;

/// How often code is built again that went away before it was loaded.
const TRIES: usize = 3;

/// The code of this source, loaded: from the cache, or built now.
pub(crate) fn load(
    compiler: &Compiler,
    (source, parts): (&str, usize),
    cache: &Cache,
) -> Result<(Library, Found), String> {
    let mut tries = 0;
    loop {
        let (path, found) = compiler.library((source, parts), cache)?;
        // SAFETY (*Trusted code*): the library was made from our own text by the user's compiler, or carries the seal of one
        // that was, under the key of this very text; it has no initialisers.
        let error = match unsafe { Library::new(&path) } {
            Ok(library) => return Ok((library, found)),
            Err(error) => error,
        };
        tries += 1;
        if !path.exists() && tries < TRIES {
            // Somebody cleared the cache in between.
            continue;
        }
        // What cannot be loaded now is not to be found again.
        cache.remove(&path);
        return Err(explained(compiler, &path, &error.to_string()));
    }
}

fn explained(compiler: &Compiler, path: &Path, error: &str) -> String {
    let folder = path.parent().unwrap_or(path);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    match mount_of(&mounts, &real) {
        Some((mount, options)) if options.split(',').any(|option| option == "noexec") => format!(
            "{} could not be loaded: {error}: the file system at {} allows no code to run (`noexec`): let EBBTIDE_CACHE name \
             a folder elsewhere",
            path.display(),
            mount.display()
        ),
        _ => format!(
            "{} could not be loaded: {error}: either `{}` does not make shared libraries for this machine (EBBTIDE_CC can \
             name another compiler, and EBBTIDE_CFLAGS can spoil one), or no code may be loaded from that folder \
             (EBBTIDE_CACHE can name another)",
            path.display(),
            compiler.command.display()
        ),
    }
}

/// The mount point that a folder is under, and its options, from the text of `/proc/self/mountinfo`.
fn mount_of(mounts: &str, folder: &Path) -> Option<(PathBuf, String)> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(4);
        Some((PathBuf::from(unescaped(fields.next()?)), fields.next()?.to_string()))
    });
    // Of two at one place the later one is seen.
    mounts.filter(|(mount, _)| folder.starts_with(mount)).max_by_key(|(mount, _)| mount.components().count())
}

/// Blanks and the like are written as three octal digits.
fn unescaped(text: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(text.to_string(), |text, (code, plain)| text.replace(code, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_folder_is_the_innermost_and_the_last() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      30 22 0:26 / /tmp rw,nosuid,noexec - tmpfs tmpfs rw\n\
                      31 22 0:27 / /tmp rw,relatime - tmpfs tmpfs rw\n\
                      32 22 0:28 / /mnt/a\\040b rw,noexec - tmpfs tmpfs rw\n";
        let options = |folder: &str| mount_of(mounts, Path::new(folder)).map(|(_, options)| options);
        assert_eq!(options("/home/me/.cache").as_deref(), Some("rw,relatime"));
        assert_eq!(options("/tmp/cache").as_deref(), Some("rw,relatime"));
        assert_eq!(options("/tmpfoo").as_deref(), Some("rw,relatime"));
        assert_eq!(options("/mnt/a b/c").as_deref(), Some("rw,noexec"));
        assert_eq!(mount_of("", Path::new("/tmp")), None);
    }
}
