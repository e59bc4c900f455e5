//! `ebbtide cache`: compiled code on disk.

use ebbtide_cpu::Cache;
use serde_json::json;

use crate::Failure;
use crate::output::{self, say};
use crate::size::{Human, counted};

/// Compiled code on disk: shows it, removes it.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Where the cache is and what it holds
    Show(Form),
    /// Removes all compiled programs (nothing else in the folder, and not what is being compiled now); programs are compiled
    /// again when they are next used
    Clear(Form),
}

#[derive(clap::Args)]
struct Form {
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let cache = Cache::of_user();
    let folder = output::shown(cache.folder());
    match &args.command {
        Command::Show(form) => {
            let contents = cache.contents();
            if form.json {
                return say!(
                    "{}",
                    json!({
                        "folder": folder,
                        "entries": contents.entries,
                        "bytes": contents.bytes,
                        "abandoned": contents.abandoned,
                        "abandoned_bytes": contents.abandoned_bytes,
                    })
                );
            }
            say!("{folder}: {} programs, {}", contents.entries, Human(contents.bytes.into()))?;
            if contents.abandoned > 0 {
                say!(
                    "{} left by compilations that were stopped, {}: `ebbtide cache clear` removes them",
                    counted(contents.abandoned as usize, "folder"),
                    Human(contents.abandoned_bytes.into())
                )?;
            }
        }
        Command::Clear(form) => {
            let removed = cache.clear().map_err(|e| Failure::Other(format!("{folder}: {e}")))?;
            if form.json {
                say!("{}", json!({ "folder": folder, "removed": removed }))?;
            } else {
                say!("{folder}: {removed} programs removed")?;
            }
        }
    }
    Ok(())
}
