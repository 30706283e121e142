//! Chores that need code. `cargo xtask schema` writes the schema tables from a Kubernetes source tree,
//! `cargo xtask oracle` checks them against that tree's own fixtures, `cargo xtask compatibility` writes the
//! page that names a test for what a kubelet does, `cargo xtask dist` makes what a release is made of.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

mod compatibility;
mod dist;
mod oracle;
mod packages;
mod schema;

#[derive(Parser)]
#[command(about = "Project chores that need code")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write crates/api/schema/src/tables from a Kubernetes 1.36 source tree.
    Schema {
        /// Root of the Kubernetes source tree.
        #[arg(long, value_name = "DIR")]
        from: PathBuf,
        /// Where the tables go.
        #[arg(long, value_name = "DIR", default_value = "crates/api/schema/src/tables")]
        to: PathBuf,
    },
    /// Check every kind of every table against the fixtures of a Kubernetes source tree.
    Oracle {
        /// Root of the Kubernetes source tree.
        #[arg(long, value_name = "DIR")]
        from: PathBuf,
    },
    /// Write docs/compatibility.md from docs/compatibility.yaml, whose rows name their tests.
    Compatibility {
        /// Write nothing; fail if the page is not what would be written.
        #[arg(long)]
        check: bool,
    },
    /// Make static binaries, Debian packages, OCI image layouts, bills of materials and SHA256SUMS.
    Dist(dist::DistArgs),
}

fn main() -> anyhow::Result<()> {
    match Args::parse().chore {
        Chore::Schema { from, to } => schema::generate(&from, &to),
        Chore::Oracle { from } => oracle::check(&from),
        Chore::Compatibility { check } => compatibility::run(check),
        Chore::Dist(args) => dist::run(&args),
    }
}
