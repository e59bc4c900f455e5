//! CUDA C to machine code, by NVIDIA's run-time compiler.

use std::ffi::{CString, c_char};
use std::path::PathBuf;
use std::ptr::null;

use ebbtide_runtime::cache::{Cache, Found, Kind};

use crate::sys::{Handle, nvrtc};

/// Threads per block: few large blocks meet faster than many small ones.
pub const THREADS: u32 = 1024;
/// Blocks that share a multiprocessor.
pub const BLOCKS: u32 = 1;

/// What text is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Major and minor compute capability.
    pub capability: (i32, i32),
    /// Threads per block.
    pub threads: u32,
    /// Blocks that share a multiprocessor.
    pub blocks: u32,
    /// What places of elements are computed in.
    pub places: Places,
    /// What the kernels are.
    pub kernels: Kernels,
    /// The one part of the text that is wanted, by number, or all of it.
    pub part: Option<usize>,
}

/// What the kernels of a text are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernels {
    /// One for each segment.
    Segments,
    /// One that runs one segment after the other.
    Batch,
}

/// The type in which the place of an element is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// 32 bits: every array has fewer than 2³¹ elements.
    Narrow,
    /// 64 bits.
    Wide,
}

impl Architecture {
    /// This compute capability, with the usual number of threads.
    pub fn of(major: i32, minor: i32) -> Architecture {
        Architecture {
            capability: (major, minor),
            threads: THREADS,
            blocks: BLOCKS,
            places: Places::Narrow,
            kernels: Kernels::Segments,
            part: None,
        }
    }
}

/// Rounding is the program's business: nothing is contracted, flushed or approximated.
const FLAGS: [&str; 6] = [
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--disable-warnings",
];

/// The version of the compiler; why not, where there is none.
pub fn version() -> Result<(i32, i32), String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY (*Driver's contract*): the function writes two numbers.
    unsafe { (nvrtc()?.nvrtcVersion)(&mut major, &mut minor) };
    Ok((major, minor))
}

/// The machine code of this text, from the cache or compiled now.
pub fn cubin(source: &str, target: &Architecture, cache: &Cache) -> Result<(PathBuf, Found), String> {
    let (major, minor) = version()?;
    let flags = flags(target).join(" ");
    cache.entry(Kind::Cubin, &["nvrtc", &format!("{major}.{minor}"), &flags, source], |_| {
        compile(source, target)
    })
}

fn flags(target: &Architecture) -> Vec<String> {
    let (major, minor) = target.capability;
    let own = [
        format!("--gpu-architecture=sm_{major}{minor}"),
        format!("--define-macro=EB_THREADS={}", target.threads),
        format!("--define-macro=EB_BLOCKS={}", target.blocks),
    ];
    let wide = (target.places == Places::Wide).then(|| "--define-macro=EB_WIDE".to_string());
    let part = target.part.map(|part| format!("--define-macro=EB_PART={part}"));
    let kernels = match target.kernels {
        Kernels::Segments => None,
        Kernels::Batch => Some("--define-macro=EB_BATCH".to_string()),
    };
    FLAGS.iter().map(|flag| flag.to_string()).chain(own).chain(wide).chain(kernels).chain(part).collect()
}

/// Compiles CUDA C text into machine code.
pub fn compile(source: &str, target: &Architecture) -> Result<Vec<u8>, String> {
    let nvrtc = nvrtc()?;
    let text = |s: &str| CString::new(s).map_err(|e| e.to_string());
    let (source, name) = (text(source)?, text("program.cu")?);
    let flags: Vec<CString> = flags(target).iter().map(|flag| text(flag)).collect::<Result<_, _>>()?;
    let flags: Vec<*const c_char> = flags.iter().map(|flag| flag.as_ptr()).collect();
    let mut program: Handle = std::ptr::null_mut();
    // SAFETY (*Liveness*): texts, flags and buffers outlive the calls; the buffers have the sizes that the compiler asks
    // for; the program is destroyed once, after its last use.
    unsafe {
        if (nvrtc.nvrtcCreateProgram)(&mut program, source.as_ptr(), name.as_ptr(), 0, null(), null()) != 0 {
            return Err("the run-time compiler could not be started".to_string());
        }
        let failed = (nvrtc.nvrtcCompileProgram)(program, flags.len() as i32, flags.as_ptr());
        let mut bytes = 0;
        let result = if failed != 0 {
            (nvrtc.nvrtcGetProgramLogSize)(program, &mut bytes);
            let mut log = vec![0u8; bytes];
            (nvrtc.nvrtcGetProgramLog)(program, log.as_mut_ptr().cast());
            let log = String::from_utf8_lossy(&log);
            let first: Vec<&str> = log.trim_end_matches('\0').lines().take(12).collect();
            Err(format!(
                "NVIDIA's run-time compiler refused the generated code (error {failed}): {}",
                first.join("\n")
            ))
        } else {
            (nvrtc.nvrtcGetCUBINSize)(program, &mut bytes);
            let mut cubin = vec![0u8; bytes];
            match (nvrtc.nvrtcGetCUBIN)(program, cubin.as_mut_ptr().cast()) {
                0 if bytes > 0 => Ok(cubin),
                error => Err(format!("the run-time compiler gave no machine code (error {error})")),
            }
        };
        (nvrtc.nvrtcDestroyProgram)(&mut program);
        result
    }
}
