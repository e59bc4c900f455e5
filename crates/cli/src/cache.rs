//! `ebbtide cache`: compiled code on disk.

use ebbtide_cpu::Cache;
use serde_json::json;

use crate::Failure;
use crate::size::Human;

/// Compiled code on disk: where it is, how much there is, and away with it.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Where the cache is and what it holds
    Show(Form),
    /// Removes all compiled programs (nothing else in the folder); programs are compiled again when they are next used
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
    let folder = cache.folder().display().to_string();
    match &args.command {
        Command::Show(form) => {
            let contents = cache.contents();
            if form.json {
                println!(
                    "{}",
                    json!({ "folder": folder, "entries": contents.entries, "bytes": contents.bytes })
                );
            } else {
                println!("{folder}: {} programs, {}", contents.entries, Human(contents.bytes.into()));
            }
        }
        Command::Clear(form) => {
            let removed = cache.clear().map_err(|e| Failure::Other(format!("{folder}: {e}")))?;
            if form.json {
                println!("{}", json!({ "folder": folder, "removed": removed }));
            } else {
                println!("{folder}: {removed} programs removed");
            }
        }
    }
    Ok(())
}
