//! The system's C compiler.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};
use std::time::UNIX_EPOCH;

use ebbtide_codegen::{Target, Threads};
use ebbtide_runtime::cache::{Cache, Found, Kind};

use crate::command::{Done, run, under_way};
use crate::flags::{OPTIMIZED, compile_flags_here, libraries_here, library_name};
use crate::processor::processor;
use crate::setting;

/// A C compiler.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The command.
    pub command: PathBuf,
    /// Which compiler it is: the file behind the command, its size and its age. Asking it for its version would
    /// take longer than loading what it compiled before.
    pub identity: String,
    /// The flags that every compilation gets.
    pub flags: Vec<String>,
    /// Those of `EBBTIDE_CFLAGS`, which come after them.
    pub more: Vec<String>,
    /// What it compiles for.
    pub target: Target,
}

impl Compiler {
    /// The compiler that `EBBTIDE_CC` names, or `cc`; a reason if there is none. `EBBTIDE_CFLAGS` adds flags,
    /// those of a sanitiser say.
    pub fn find() -> Result<Compiler, String> {
        static FOUND: OnceLock<Result<Compiler, String>> = OnceLock::new();
        FOUND.get_or_init(Compiler::ask).clone()
    }

    fn ask() -> Result<Compiler, String> {
        let named = std::env::var_os("EBBTIDE_CC").filter(|name| !name.is_empty());
        let asked = named.map_or_else(|| PathBuf::from("cc"), PathBuf::from);
        let (command, identity) = locate(&asked).ok_or_else(|| {
            format!("`{}` was not found: install a C compiler or name one in EBBTIDE_CC", asked.display())
        })?;
        let target = Target { vector_bytes: vector_bytes(), threads: Threads::Several };
        let mut flags = vec![OPTIMIZED.to_string()];
        flags.extend(compile_flags_here().into_iter().map(str::to_string));
        if target.vector_bytes == 64 {
            flags.push("-mprefer-vector-width=512".to_string());
        } else if cfg!(target_arch = "x86_64") {
            // Narrow vectors were asked for, or are all that a tool such as valgrind understands.
            flags.push("-mno-avx512f".to_string());
        }
        let more = match std::env::var_os("EBBTIDE_CFLAGS").unwrap_or_default().into_string() {
            Ok(more) => more.split_whitespace().map(str::to_string).collect(),
            Err(more) => return Err(format!("EBBTIDE_CFLAGS is not UTF-8: {}", more.to_string_lossy())),
        };
        Ok(Compiler { command, identity, flags, more, target })
    }

    /// The first line of what it says about its version; this runs it.
    pub fn version(&self) -> Result<String, String> {
        let done = run(&self.command, |command| _ = command.arg("--version"))?;
        if !done.status.success() {
            return Err(format!(
                "`{} --version` failed: is it a C compiler? EBBTIDE_CC can name another",
                self.command.display()
            ));
        }
        Ok(done.stdout.lines().next().unwrap_or_default().to_string())
    }

    /// The same compiler at another level of optimisation: the code has the same bits.
    pub(crate) fn at(&self, level: &str) -> Compiler {
        let flag = |flag: &String| if flag == OPTIMIZED { level.to_string() } else { flag.clone() };
        Compiler { flags: self.flags.iter().map(flag).collect(), ..self.clone() }
    }

    /// Is the library of this source in the cache?
    pub(crate) fn has(&self, source: &str, cache: &Cache) -> bool {
        cache.has(Kind::Library, &self.key(source).each_ref().map(AsRef::as_ref))
    }

    /// Everything that the library of a source depends on.
    fn key<'a>(&'a self, source: &'a str) -> [Cow<'a, str>; 5] {
        let [flags, more] = [&self.flags, &self.more].map(|flags| flags.join(" "));
        [(&self.identity).into(), flags.into(), more.into(), processor().into(), source.into()]
    }

    /// The library of this source, from the cache or built now.
    pub(crate) fn library(
        &self,
        (source, parts): (&str, usize),
        cache: &Cache,
    ) -> Result<(PathBuf, Found), String> {
        let key = self.key(source);
        // Until the folder of the build is gone.
        let _under_way = under_way()?;
        cache.entry(Kind::Library, &key.each_ref().map(AsRef::as_ref), |work| {
            let (text, built) = (work.join("program.c"), work.join(library_name("program")));
            fs::write(&text, source).map_err(|e| format!("{} could not be written: {e}", text.display()))?;
            if parts < 2 || !self.compile_parts(&text, &built, parts) {
                self.compile(&text, &built)?;
            }
            fs::read(&built).map_err(|e| {
                format!(
                    "`{}` says that it compiled, and {} cannot be read: {e}: is it a C compiler? EBBTIDE_CC can name another",
                    self.command.display(),
                    built.display()
                )
            })
        })
    }

    /// Compiles the parts of a text at the same time, and links them; says whether that worked. Where it did not, compiling
    /// the whole text says why.
    fn compile_parts(&self, source: &Path, library: &Path, parts: usize) -> bool {
        let objects: Vec<PathBuf> =
            (0..parts).map(|part| source.with_file_name(format!("part{part}.o"))).collect();
        let compile = |part: usize| {
            run(&self.command, |command| {
                command.args(&self.flags).args(&self.more).arg(format!("-DEB_PART={part}"));
                command.arg("-c").arg("-o").arg(&objects[part]).arg(source);
            })
        };
        let compiled = std::thread::scope(|scope| {
            let compile = &compile;
            let others: Vec<_> = (1..parts).map(|part| scope.spawn(move || compile(part))).collect();
            let first = compile(0);
            let others = others.into_iter().map(|other| other.join().map_err(|_| String::new()).flatten());
            others.chain([first]).all(|done| done.is_ok_and(|done| done.status.success()))
        });
        compiled
            && run(&self.command, |command| {
                command
                    .args(&self.flags)
                    .args(&self.more)
                    .arg("-shared")
                    .arg("-o")
                    .arg(library)
                    .args(&objects);
                command.args(libraries_here());
            })
            .is_ok_and(|done| done.status.success())
    }

    /// Compiles C text into a shared library.
    pub fn compile(&self, source: &Path, library: &Path) -> Result<(), String> {
        let done = self.run(source, library, &self.more)?;
        if done.status.success() {
            return Ok(());
        }
        let shown = self.command.display();
        if let Some(how) = done.killed() {
            return Err(format!("`{shown}` {how}, while it compiled {}", source.display()));
        }
        if done.stderr.trim().is_empty() {
            return Err(format!(
                "`{shown}` failed without a word: is it a C compiler? EBBTIDE_CC can name another"
            ));
        }
        let first: Vec<&str> = done.stderr.lines().take(12).collect();
        Err(format!("{}:\n{}", self.suspect(source, library)?, first.join("\n")))
    }

    fn run(&self, source: &Path, library: &Path, more: &[String]) -> Result<Done, String> {
        run(&self.command, |command| {
            command.args(&self.flags).args(more).arg("-shared").arg("-o").arg(library).arg(source);
            command.args(libraries_here());
        })
    }

    /// What is to blame where the compiler refused a text: a few trials tell.
    fn suspect(&self, source: &Path, library: &Path) -> Result<String, String> {
        let shown = self.command.display();
        let works = |source: &Path, more: &[String]| {
            Ok::<bool, String>(self.run(source, library, more)?.status.success())
        };
        let least = source.with_file_name("least.c");
        let text =
            "#include <stdint.h>\n#include <string.h>\nint64_t segment_0(void *f) { return f != 0; }\n";
        fs::write(&least, text).map_err(|e| format!("{} could not be written: {e}", least.display()))?;
        if !works(&least, &[])? {
            return Ok(format!(
                "`{shown}` does not compile the least of programs: it needs the headers of the C library (`apt-get install \
                 gcc libc6-dev`), room in its temporary folder, and to know {}; EBBTIDE_CC can name another",
                self.flags.join(" ")
            ));
        }
        if !self.more.is_empty() && (!works(&least, &self.more)? || works(source, &[])?) {
            return Ok(format!(
                "`{shown}` fails with the flags of EBBTIDE_CFLAGS, `{}`, and works without them",
                self.more.join(" ")
            ));
        }
        Ok(format!("`{shown}` refused the generated code, which is a flaw of Ebbtide"))
    }
}

/// The file that a command runs, and what tells it from other files.
fn locate(command: &Path) -> Option<(PathBuf, String)> {
    let candidates: Vec<PathBuf> = if command.components().count() > 1 {
        vec![command.to_path_buf()]
    } else {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(command)).collect()
    };
    candidates.into_iter().find_map(|path| {
        let file = path.canonicalize().ok()?;
        let meta = file.metadata().ok().filter(|meta| meta.is_file())?;
        let age = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some((path, format!("{} {} {age}", file.display(), meta.len())))
    })
}

/// The widest vectors that this processor computes with; `EBBTIDE_VECTOR_BYTES` can lower it.
fn vector_bytes() -> usize {
    static ONCE: Once = Once::new();
    let widest = widest_vectors();
    let wanted = format!("16, 32 or 64, and at most {widest} here");
    let fits = |bytes: &usize| [16, 32, 64].contains(bytes) && *bytes <= widest;
    setting("EBBTIDE_VECTOR_BYTES", &wanted, &ONCE, fits).unwrap_or(widest)
}

#[cfg(target_arch = "x86_64")]
fn widest_vectors() -> usize {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        64
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        32
    } else {
        16
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn widest_vectors() -> usize {
    16
}
